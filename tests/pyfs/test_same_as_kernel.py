"""pyfuse3's own examples pass inline the conformance cases that they pass on a kernel mount.

A long test (`pytest -m sweep`): the suite runs over each example twice, in processes of its own.
The examples come with pyfuse3's source distribution, which pip fetches.
"""

import os
import subprocess
import sys
import tarfile
import xml.etree.ElementTree as ElementTree
from concurrent.futures import ThreadPoolExecutor
from fnmatch import fnmatchcase

import pytest

pytest.importorskip("pyfuse3")

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

#: What the kernel does before the example is asked; and cases that need 4 GiB of an example.
LEFT_OUT = "not four_gib and not 5368709120"

FULL = (
    "the example goes on when readdir_reply() says that there is no more room: a shorter name "
    "fits, and those between are lost, depending on their order"
)
ROWS = (
    "the example deletes the row of a replaced file that is looked up but not opened yet: reading "
    "it after open() is EIO, on a kernel mount as well, now and then"
)
NAMES = "the example forgets the paths of what is in a renamed directory, now and then"
LINKS = "links of both paths of a call are not counted as Linux does (tests/conformance/deviations)"

# (example, case, reason)
DEVIATIONS = [
    ("tmpfs.py", "test_names_of_every_length_are_listed*", FULL),
    ("tmpfs.py", "test_name_that_is_replaced_is_always_there*", ROWS),
    ("passthroughfs.py", "test_directory_takes_its_tree_along*", NAMES),
    ("passthroughfs.py", "test_directory_is_renamed*", NAMES),
    ("passthroughfs.py", "test_new_directory_of_the_old_name_is_empty*", NAMES),
    ("*", "test_every_call_follows_forty_symlinks*", LINKS),
    ("*", "test_symlinks_inside_and_outside_count_together*", LINKS),
    ("*", "test_walk_needs_the_x_bit[*dot]", LINKS),
]


@pytest.fixture(scope="module")
def examples(tmp_path_factory):
    """The directory of the examples of the installed version."""
    from importlib.metadata import version

    base = tmp_path_factory.mktemp("sdist")
    done = subprocess.run(
        [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", "pyfuse3",
         "-d", base, f"pyfuse3=={version('pyfuse3')}"],
        capture_output=True,
        text=True,
    )  # fmt: skip
    archives = list(base.glob("*.tar.gz"))
    if not archives:
        pytest.skip(f"pip cannot fetch pyfuse3's sources: {done.stderr.strip()[-200:]}")
    with tarfile.open(archives[0]) as archive:
        if hasattr(tarfile, "data_filter"):  # not in Debian 12's Python 3.11.2
            archive.extraction_filter = tarfile.data_filter
        archive.extractall(base)
    return os.fspath(next(base.glob("*/examples")))


def failures(route, example, examples, report):
    """The cases that fail."""
    subprocess.run(
        [sys.executable, "-m", "pytest", "tests/conformance", "-q", "-p", "no:cacheprovider",
         "-k", f"{route}-{example} and {LEFT_OUT}", "--runxfail", f"--junitxml={report}"],
        cwd=ROOT,
        env=os.environ | {"DIRECTFUSE_PYFUSE3_EXAMPLES": examples},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    cases = list(ElementTree.parse(report).iter("testcase"))
    assert len(cases) > 1000, "the suite has not run"
    return {
        case.get("name").replace(f"{route}-{example}", "")
        for case in cases
        if case.find("failure") is not None or case.find("error") is not None
    }


@pytest.mark.sweep
@pytest.mark.kernel_fuse
@pytest.mark.timeout(900)
@pytest.mark.parametrize("example", ["tmpfs.py", "passthroughfs.py"])
def test_passes_what_it_passes_on_a_kernel_mount(example, examples, tmp_path):
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        pytest.skip("/dev/fuse cannot be opened")

    def go(route, report):
        return failures(route, example, examples, tmp_path / report)

    with ThreadPoolExecutor() as pool:  # each side has a core
        theirs, ours = pool.map(go, ("kernel", "inline"), ("kernel.xml", "inline.xml"))
    more = {
        case
        for case in ours - theirs
        if not any(
            fnmatchcase(example, kind) and fnmatchcase(case, pattern.replace("[", "[[]"))
            for kind, pattern, _ in DEVIATIONS
        )
    }
    if more:  # the examples' own races fail now and then, on both sides: ours fail always
        more &= go("inline", "again.xml")
    if more:
        more -= go("kernel", "kernel-again.xml")
    assert not more
