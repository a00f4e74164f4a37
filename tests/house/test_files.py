"""Files: one job each, said in the first comment, short enough to be read in one sitting."""

import ast
import re
import subprocess

import pytest

from .tree import CODE, ROOT, files, shown

LINES_MAX = 800
TEXT = (*CODE, "*.md", "*.toml", "*.sh", "*.lock", "run")


def others(*patterns):
    """Files but these rules themselves, which have to name what they forbid."""
    return [path for path in files(*patterns) if path.parent != ROOT / "tests/house"]


def found_in(paths, pattern):
    """Lines that hold the pattern, as file: text."""
    expression = re.compile(pattern)
    return [
        f"{shown(path)}: {match[0]}"
        for path in paths
        for match in expression.finditer(path.read_text(errors="surrogateescape"))
    ]


def test_no_file_is_too_long():
    counts = {shown(path): len(path.read_text().splitlines()) for path in files(*CODE, "run")}
    assert not {name: count for name, count in counts.items() if count > LINES_MAX}


def test_modules_of_ours_are_not_sought_in_the_working_directory():
    """That may be a clone of the source, where README has people install and use the command; -m
    alone would take the package that lies there, which has no compiled parts. (An editable
    installation is found first, so the tests of the command cannot see it.)"""
    started = found_in(files("*.py", under="directfuse"), r'sys\.executable,[^]]*"-m", "directfuse')
    started += found_in(files("*.py", under="directfuse"), r'\(sys\.executable,[^)]*"directfuse"\)')
    assert started and not [words for words in started if not re.search('"-(P|I)"', words)]


def test_c_begins_with_its_job():
    def says(text):
        return text.startswith("/*") and len(text.partition("*/")[0].split()) > 3

    sources = files("*.c", "*.h", "*.def", "*.map")
    assert not [shown(path) for path in sources if not says(path.read_text())]


def test_python_begins_with_its_job():
    def says(text):
        return not text.strip() or ast.get_docstring(ast.parse(text))

    assert not [shown(path) for path in files("*.py") if not says(path.read_text())]


def test_nothing_is_left_for_later():
    assert not found_in(others(*TEXT), r"\b(?:TODO|FIXME|XXX)\b[^\n]*")


def test_no_file_names_the_machine_it_was_written_on():
    assert not found_in(others(*TEXT), r"(?<![\w./])/(?:work|tmp/df|opt/pypi|opt/wheels)/[^\n]*")


def tracked(*patterns):
    command = ["git", "ls-files", "--", *patterns]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip("not a git checkout")
    return done.stdout.splitlines()


def test_no_build_product_is_tracked():
    assert not tracked("*.so", "*.o", "*.a", "*.whl", "build/*", "*.pyc")


def test_nothing_empty_is_tracked():
    """But for what says by its name alone what it says: a probe's file came in so once."""
    by_name = {"__init__.py", "py.typed"}
    names = [ROOT / name for name in tracked()]
    assert names and not [
        shown(path)
        for path in names
        if path.is_file() and path.name not in by_name and path.stat().st_size == 0
    ]
