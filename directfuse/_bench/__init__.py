"""The benchmark behind `directfuse bench`: the same work on every route, in turn.

subject.py    what is measured: a file system's command line, and how its caches are turned off
routes.py     the ways to it: plain directory, kernel FUSE, inline, helper; each starts a worker
worker.py     one df-bench process: makes its files, times one sample when told to
session.py    one run: what is measured, on which routes, within how much time
measure.py    rounds in changing order, and what is said of the samples
programs.py   whole programs on the routes that every program can reach; runner.py runs them
python.py     Python calls against `os`
report.py     Markdown and HTML, comparison with an older run
plots.py      pictures
"""
