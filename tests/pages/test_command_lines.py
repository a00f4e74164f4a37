"""Command lines and options that are shown, in pages and in --help, are those of the programs."""

import inspect
import re
import shlex
import subprocess
from contextlib import suppress

import click
import pytest

import directfuse
from directfuse import _cli, _paths
from tests.house.tree import ROOT, shown

from .blocks import BLOCK, blocks, pages

GROUP = _cli.directfuse
NAMES = GROUP.list_commands(click.Context(GROUP))
SPAN = re.compile(r"`([^`]+)`")
COMMAND = re.compile(rf"\bdirectfuse ({'|'.join(NAMES)})\b(.*)")
EXAMPLES = re.compile(r"Examples:\n(.*?)(?:\n\n|\Z)", re.DOTALL)


def command(name):
    return GROUP.get_command(click.Context(GROUP), name)


def words_of(rest):
    """Up to the end of the command: an operator of the shell, a comment, a quote around it."""
    lexer = shlex.shlex(rest, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    with suppress(ValueError):  # the quote
        for word in lexer:
            if set(word) <= set(";&|()<>"):
                return
            yield word


def shown_in(text):
    return [(name, list(words_of(rest))) for name, rest in COMMAND.findall(text)]


def sources():
    """The texts that show command lines."""
    for page in pages():
        spans = [span.replace("\n", " ") for span in SPAN.findall(BLOCK.sub("", page.read_text()))]
        lines = [block.text.replace("\\\n", " ") for block in blocks(page)]
        yield pytest.param("\n".join(spans + lines), id=shown(page))
    for name in NAMES:
        examples = EXAMPLES.search(inspect.cleandoc(command(name).help))[1]
        yield pytest.param(examples, id=f"{name} --help")


@pytest.mark.parametrize("text", list(sources()))
def test_command_lines_have_options_that_there_are(text):
    for name, words in shown_in(text):
        command(name).make_parser(click.Context(command(name))).parse_args(words)


def section(page, title):
    """The text below a heading, up to the next one."""
    return (ROOT / page).read_text().partition(f"# {title}\n")[2].partition("\n#")[0]


def first_cells(text):
    """What the first column of its tables names by code."""
    cells = re.findall(r"^\|([^|]*)\|", text, re.MULTILINE)
    return {name for cell in cells for name in re.findall(r"`([\w-]+)", cell)}


def test_readme_names_every_command():
    assert {name for name, _ in shown_in(section("README.md", "Commands"))} == set(NAMES)


def test_run_has_the_options_of_its_page():
    there = {option.opts[0] for option in command("run").params if option.opts[0].startswith("-")}
    assert first_cells(section("docs/run.md", "Options")) == there


def test_the_build_has_the_options_of_its_page():
    there = re.findall(r"^ *(?:option|set)\((DF_\w+)", (ROOT / "CMakeLists.txt").read_text(), re.M)
    assert first_cells(section("CONTRIBUTING.md", "Building")) == set(there)


def test_memfs_has_the_options_of_its_page():
    done = subprocess.run([_paths.program("memfs"), "--help"], capture_output=True, text=True)
    own = done.stdout.partition("memfs options:")[2].partition("Always set")[0]
    there = set(re.findall(r"-o (\w+)", own))
    assert first_cells(section("backends/memfs/README.md", "Options")) == {"-o", *there}


def test_mount_has_the_arguments_of_its_page():
    page = (ROOT / "docs/python.md").read_text()
    told = re.search(r"`mount\((command, .*?)\)`", page, re.DOTALL)[1].split()
    signature = inspect.signature(directfuse.mount)
    plain = [one.replace(annotation=one.empty) for one in signature.parameters.values()]
    there = str(inspect.Signature(plain)).strip("()").replace("'", '"').split()
    assert told == there
