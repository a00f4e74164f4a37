"""Each program against itself: the conformance cases that fail on its kernel mount are the cases
that fail inline, and no others. Both runs are runs of the suite, in a process of their own."""

import os
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from concurrent.futures import ThreadPoolExecutor
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from tests.conformance.deviations import DEVIATIONS, SOMETIMES
from tests.conformance.programs import CHOICE, PROGRAMS, UNCACHED

ROOT = Path(__file__).parents[2]
RUN_SECONDS = 600

#: Quick, and what programs get wrong first.
SUBSET = ("test_directory", "test_open", "test_rename", "test_link", "test_xattr")

#: Instead of all modules. Archives are packed at the end of each; fuse-zip ends itself over what
#: test_io and test_path leave there (docs/programs.md); each call of s3fs is requests of HTTP.
SUBSETS = {
    "fuse-zip": SUBSET,
    "archivemount": SUBSET,
    "s3fs": ("test_open", "test_link", "test_xattr"),
}

# Inline a program makes its system calls with the rights of its caller (docs/decisions/004), behind
# the kernel with those of its daemon, here root's. No process can lend it others.
TIME_OF_A_WRITER = (
    "libfuse 2 gives the program the time itself in place of 'now', and utimensat(2) lets nobody "
    "but the owner set that, which the daemon's root may"
)
WORK_DIRECTORY = (
    "it makes and removes names by way of its work directory, which belongs to who set it up, and "
    "asks for the attributes of all it lists"
)
OWN_FILES = "it keeps modes and owners in files of its own, which belong to root here"

COUNT = (
    "asked after the rename it counts a link of the file that was replaced; the kernel asks only "
    "when its own count has passed its time-out"
)
STALE = (
    "an ACL that is set changes the mode behind the kernel, which believes the one it has until "
    "its time-out has passed; we ask again"
)
BELOW_A_MOVE = (
    "asked by its new path it does not find what is below a directory that moved; the kernel "
    "believes the names it knows until their time-out, we forget them with the move"
)
WHOLE_SECONDS = "its times are whole seconds: a change shows when a second has ended meanwhile"

#: (program, cases as -k names them, reason): what ends or stops the program, on its kernel mount,
#: too.
CRASHES = [
    ("unionfs", "deep_path_near_the_limit", "its own paths are longer than its buffers"),
    ("convmvfs", "deep_path_near_the_limit", "its own paths are longer than its buffers"),
    *[
        ("archivemount", cases, "it packs a FIFO by opening it, which never ends")
        for cases in ("fifo", "entries", "scandir", "closed_iterator", "two_iterators")
    ],
]

#: (program, case, reason): what fails inline alone.
INLINE_ALONE = [
    ("*", "test_permission::test_writer_may_set_the_times_to_now", TIME_OF_A_WRITER),
    ("fuse-overlayfs", "test_mode::*sticky_directory*", WORK_DIRECTORY),
    *[
        ("fuse-overlayfs", f"test_permission::{case}", WORK_DIRECTORY)
        for case in (
            "test_listing_needs_the_r_bit_alone",
            "test_new_objects_belong_to_their_maker",
            "test_rights_on_the_file_do_not_matter_for_unlink",
        )
    ],
    ("fuse-overlayfs", "test_acl::test_acl_of_a_directory_lets_make_and_remove", WORK_DIRECTORY),
    ("mount.posixovl", "test_permission::*", OWN_FILES),
    ("fuse2fs", "test_time::*", WHOLE_SECONDS),
]

#: (program, case, reason): what fails behind the kernel, too, where it believes nothing.
HIDDEN_BY_CACHES = [
    ("*", "test_acl::test_acl_lets_a_user_in", STALE),
    ("fuse-overlayfs", "test_unlinked::test_file_replaced_by_rename_goes_on", COUNT),
    ("archivemount", "test_rename::test_inodes_below_a_moved_directory_stay", BELOW_A_MOVE),
]


def allowed(program, case):
    """Known already: of this program, or of our core whatever the backend."""
    ours = [
        (backend, pattern.replace(".py::", "::"), reason)
        for routes, backend, pattern, reason in [*DEVIATIONS, *SOMETIMES]
        if "inline" in routes or routes == "*"
    ]
    return any(
        name in ("*", program) and fnmatchcase(case.replace("[", "("), pattern.replace("[", "("))
        for name, pattern, _ in [*INLINE_ALONE, *HIDDEN_BY_CACHES, *ours]
    )


def outcomes(route, program, modules, report, *words, **environment):
    """(cases that ran, cases that failed), their names without the route. Skips where the route
    cannot run at all: without the program's server, say. words: more for pytest."""
    where = f"{route}-{program}"
    files = [ROOT / "tests/conformance" / f"{name}.py" for name in modules]
    command = [sys.executable, "-m", "pytest", "-q", "--runxfail", "-p", "no:cacheprovider"]
    crashes = [cases for name, cases, _ in CRASHES if name == program]
    if crashes:
        command += ["-k", f"not ({' or '.join(crashes)})"]
    done = subprocess.run(
        [*command, "--timeout=120", f"--junitxml={report}", *words, *files],
        cwd=ROOT,
        env={**os.environ, CHOICE: f"{route}:{program}", **environment},
        capture_output=True,
        text=True,
        errors="replace",
        timeout=RUN_SECONDS,
    )
    assert done.returncode in (0, 1), done.stdout[-3000:] + done.stderr[-3000:]
    ran, failed, skipped = set(), set(), ""
    for case in ElementTree.parse(report).iter("testcase"):
        name = case.get("name").replace(f"{where}-", "").replace(f"[{where}]", "")
        name = case.get("classname").rpartition(".")[2] + "::" + name.replace(f"-{where}", "")
        if (skip := case.find("skipped")) is None:
            ran.add(name)
        else:
            skipped = skip.get("message", "")
        if case.find("failure") is not None or case.find("error") is not None:
            failed.add(name)
    if not ran:
        pytest.skip(skipped)
    return ran, failed


def need(name):
    program = PROGRAMS[name]
    if program.executable() is None:
        pytest.skip(f"{name} is not installed (apt-get install {program.package})")
    if os.geteuid() != 0 or not os.access("/dev/fuse", os.R_OK | os.W_OK):
        pytest.skip("a kernel mount to compare with needs root and /dev/fuse")


def compare(name, modules, tmp_path):
    def go(route, report):
        return outcomes(route, name, modules, tmp_path / report)

    need(name)
    with ThreadPoolExecutor() as pool:  # each side has a core
        both = pool.map(go, ("kernel", "inline"), ("kernel.xml", "inline.xml"))
        (kernel_ran, kernel_failed), (inline_ran, inline_failed) = both
    assert inline_ran == kernel_ran and len(inline_ran) > 100
    worse = {case for case in inline_failed - kernel_failed if not allowed(name, case)}
    if worse:  # a race of the program's own fails now and then, on both sides: ours fail always
        worse &= go("inline", "again.xml")[1]
    if worse:
        worse -= go("kernel", "kernel-again.xml")[1]
    assert not worse


@pytest.mark.kernel_fuse
@pytest.mark.timeout(4 * RUN_SECONDS)
@pytest.mark.parametrize("name", ["bindfs"])
def test_a_program_fails_where_its_kernel_mount_fails(name, tmp_path):
    compare(name, SUBSET, tmp_path)


@pytest.mark.kernel_fuse
@pytest.mark.timeout(RUN_SECONDS)
@pytest.mark.parametrize(("name", "case"), [entry[:2] for entry in HIDDEN_BY_CACHES])
def test_what_caches_hide_fails_without_them(name, case, tmp_path):
    name = "bindfs" if name == "*" else name
    need(name)
    module, _, function = case.partition("::")
    words = ([module], tmp_path / "report.xml", "-k", function)
    ran, failed = outcomes("kernel", name, *words, **{UNCACHED: "1"})
    assert ran == {case}
    if name == "archivemount" and not failed:  # 1b has been mended: then it is right here, too
        assert outcomes("inline", name, *words) == ({case}, set())
    else:
        assert failed == {case}


@pytest.mark.sweep
@pytest.mark.kernel_fuse
@pytest.mark.timeout(4 * RUN_SECONDS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_all_cases_of_a_program(name, tmp_path):
    modules = sorted(path.stem for path in (ROOT / "tests/conformance").glob("test_*.py"))
    modules.remove("test_suite")
    compare(name, SUBSETS.get(name, modules), tmp_path)
