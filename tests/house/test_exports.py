"""Our libfuse ABI libraries offer the symbols, in their versions, that libfuse's own offer."""

import subprocess
import sys
from pathlib import Path

import pytest

_paths = pytest.importorskip("directfuse._paths")

#: Second names of the same functions, for our own libdf2.so.2 (native/libfuse2/real.h).
PRIVATE = "@@DIRECTFUSE_3"

#: Names that later versions of libfuse have, for plugins built against them.
LATER = {
    "fuse_set_fail_signal_handlers@@FUSE_3.17",
    "fuse_lowlevel_notify_increment_epoch@@FUSE_3.18",
    "fuse_lowlevel_notify_prune@@FUSE_3.19",
    "fuse_reply_statx@@FUSE_3.18",
}


def functions(library):
    """Functions that a library defines: name@version, or name@@version for the default one."""
    command = ["nm", "-D", "--defined-only", "--with-symbol-versions", str(library)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    names = (line.split()[2] for line in done.stdout.splitlines() if line.split()[1] == "T")
    return {name for name in names if not name.endswith(PRIVATE)}


def loaded_from(name):
    """The file that the dynamic linker takes for a library's name. Skips where there is none."""
    maps = f"import ctypes; ctypes.CDLL({name!r}); print(open('/proc/self/maps').read())"
    done = subprocess.run([sys.executable, "-c", maps], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"{name} is not installed: {done.stderr.splitlines()[-1]}")
    return next(line.split()[-1] for line in done.stdout.splitlines() if "/libfuse" in line)


def kept():
    """The functions of libfuse3.so.4, which few have: its list is kept beside this file."""
    return set(Path(__file__).with_name("libfuse3.so.4.symbols").read_text().split())


@pytest.fixture(scope="module")
def ours():
    return functions(_paths.plugin_library())


def test_exports_are_those_of_libfuse(ours):
    theirs = functions(loaded_from("libfuse3.so.3"))
    assert theirs - ours == set(), "missing, or with another version"
    assert ours - theirs <= LATER


def test_names_with_several_versions(ours):
    """What a binary binds is its own version's meaning of the name."""
    for name, versions in {
        "fuse_new": ("@FUSE_3.0", "@@FUSE_3.1"),
        "fuse_loop_mt": ("@FUSE_3.0", "@FUSE_3.2", "@@FUSE_3.12"),
        "fuse_session_loop_mt": ("@FUSE_3.0", "@FUSE_3.2", "@@FUSE_3.12"),
        "fuse_parse_cmdline": ("@FUSE_3.0", "@@FUSE_3.12"),
    }.items():
        assert {name + version for version in versions} <= ours


def test_nothing_else_is_exported(ours):
    assert {name for name in ours if not name.startswith(("fuse_", "cuse_"))} == set()


def test_exports_for_programs_of_libfuse_2():
    ours = functions(_paths.plugin_library().with_name("libdf2.so.2"))
    theirs = functions(loaded_from("libfuse.so.2"))
    assert ours ^ theirs == set(), "missing, too many, or with another version"


def test_exports_for_programs_of_libfuse_3_17():
    ours = functions(_paths.plugin_library().with_name("libdf4.so.4"))
    assert kept() - ours == set(), "missing, or with another version"
    assert ours - kept() <= LATER


def test_the_kept_list_is_that_of_the_library():
    theirs = functions(loaded_from("libfuse3.so.4"))
    assert theirs - kept() == set(), "names that libdf4.so.4 lacks"
