"""The conformance suite: one body, many routes.

`routes.py` says how a call travels to a file system; the cases do not.
"""
