"""Files: one job each, said in the first comment, short enough to be read in one sitting."""

import ast
import re
import subprocess

import pytest

from .tree import CODE, ROOT, files, shown

LINES_MAX = 800


def parametrized(*patterns):
    return pytest.mark.parametrize("path", files(*patterns), ids=shown)


@parametrized(*CODE, "*.sh", "run")
def test_a_file_is_not_too_long(path):
    count = len(path.read_text().splitlines())
    assert count <= LINES_MAX, f"{count} lines: does it still have one job?"


@parametrized("*.c", "*.h", "*.def", "*.map")
def test_c_begins_with_its_job(path):
    text = path.read_text()
    assert text.startswith("/*"), "the first thing in a file is a comment that says its one job"
    assert len(text.partition("*/")[0].split()) > 3


@parametrized("*.py")
def test_python_begins_with_its_job(path):
    text = path.read_text()
    assert not text.strip() or ast.get_docstring(ast.parse(text)), "a module says its one job"


@parametrized(*CODE, "*.md", "*.toml", "*.sh", "run")
def test_nothing_is_left_for_later(path):
    if path.relative_to(ROOT).parts[:2] == ("tests", "house"):
        return  # this rule itself has to name them
    found = re.findall(r"\b(?:TODO|FIXME|XXX)\b.*", path.read_text())
    assert not found


@parametrized(*CODE, "*.md", "*.toml", "*.sh", "*.lock", "run")
def test_no_file_names_the_machine_it_was_written_on(path):
    if path.relative_to(ROOT).parts[:2] == ("tests", "house"):
        return
    found = re.findall(r"(?<![\w.])/(?:work|root|tmp/df)/\S*", path.read_text())
    assert not found


def test_no_build_product_is_tracked():
    command = ["git", "ls-files", "*.so", "*.o", "*.a", "*.whl", "build/*", "*.pyc"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip("not a git checkout")
    assert done.stdout == ""
