"""What is public says what it takes and gives: in the header, and in docstrings."""

import inspect
import re
import shutil
import subprocess

import pytest

import directfuse

from .tree import HEADER

#: A function whose arguments, results and errors are those of one that is documented elsewhere.
ELSEWHERE = re.compile(r"(?:os|fcntl|select|mmap|builtins)\.\w+")
#: Of a comment in C.
RESULT = re.compile(r"Returns|\b0, |-1\b")

PUBLIC = {name: getattr(directfuse, name) for name in directfuse.__all__}


@pytest.mark.parametrize("standard", ["c89", "c99", "c17", "c++98", "c++20"])
def test_the_header_is_of_every_standard(standard):
    """As an application compiles that wants no extension, and no warning."""
    compiler = "g++" if "++" in standard else "gcc"
    if shutil.which(compiler) is None:
        pytest.skip(f"needs {compiler}")
    words = [compiler, f"-std={standard}", "-Wall", "-Wextra", "-pedantic", "-Werror"]
    language = "c++" if "++" in standard else "c"
    words += ["-fsyntax-only", f"-I{HEADER.parent}", "-x", language, "-"]
    source = "#include <directfuse.h>\nint main(void) { return 0; }\n"
    done = subprocess.run(words, input=source, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_functions_of_our_own_in_c_say_what_they_return():
    """Those that Linux has say what differs; they come behind "opening" in the header."""
    text = HEADER.read_text()
    own = text[text.index("---- mounts") : text.index("---- opening")]
    declared = r"(/\*(?:(?!\*/).)*\*/\n)?DF_PUBLIC ([\w ]+?[ *]+)(df_\w+)\("
    found = re.findall(declared, own, re.DOTALL)
    assert len(found) > 10
    assert not [
        name
        for comment, kind, name in found
        if not comment or not (kind.strip() == "void" or RESULT.search(comment))
    ]


def test_public_names_say_what_they_are():
    things = {n: x for n, x in PUBLIC.items() if inspect.isroutine(x) or inspect.isclass(x)}
    assert len(things) > 70
    assert not [name for name, thing in things.items() if not inspect.getdoc(thing)]


def test_functions_of_our_own_explain_their_arguments():
    """One of the standard library's says which; of any other each argument is named."""
    unexplained = []
    for name, function in PUBLIC.items():
        text = inspect.getdoc(function) or ""
        if inspect.isroutine(function) and not ELSEWHERE.match(text):
            words = inspect.signature(function).parameters
            unexplained += [f"{name}: {w}" for w in words if not re.search(rf"\b{w}\b", text)]
    assert not unexplained
