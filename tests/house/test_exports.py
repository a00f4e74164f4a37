"""Our libfuse ABI libraries offer the symbols, in their versions, that libfuse's own offer."""

import ctypes.util
import subprocess

import pytest

_paths = pytest.importorskip("directfuse._paths")

#: Second names of the same functions, for our own libdf2.so.2 (native/libfuse2/real.h).
PRIVATE = "@@DIRECTFUSE_3"

#: Names that later versions of libfuse have, for plugins built against them.
LATER = {"fuse_set_fail_signal_handlers@@FUSE_3.17"}

#: What libfuse.so.2 offers and our translator lacks. A program that imports one does not load, with
#: the name in the message; nothing falls through to the real library.
LACKING_2 = {
    # Character devices in user space: there is no device to make.
    "cuse_lowlevel_main@@FUSE_2.8",
    "cuse_lowlevel_new@@FUSE_2.8",
    "cuse_lowlevel_setup@@FUSE_2.8",
    "cuse_lowlevel_teardown@@FUSE_2.8",
    # Modules stacked by hand.
    "fuse_fs_access@@FUSE_2.7",
    "fuse_fs_bmap@@FUSE_2.7",
    "fuse_fs_chmod@@FUSE_2.7",
    "fuse_fs_chown@@FUSE_2.7",
    "fuse_fs_create@@FUSE_2.7",
    "fuse_fs_destroy@@FUSE_2.7",
    "fuse_fs_fallocate@@FUSE_2.9.1",
    "fuse_fs_fgetattr@@FUSE_2.7",
    "fuse_fs_flock@@FUSE_2.9",
    "fuse_fs_flush@@FUSE_2.7",
    "fuse_fs_fsync@@FUSE_2.7",
    "fuse_fs_fsyncdir@@FUSE_2.7",
    "fuse_fs_ftruncate@@FUSE_2.7",
    "fuse_fs_getattr@@FUSE_2.7",
    "fuse_fs_getxattr@@FUSE_2.7",
    "fuse_fs_init@@FUSE_2.7",
    "fuse_fs_ioctl@@FUSE_2.8",
    "fuse_fs_link@@FUSE_2.7",
    "fuse_fs_listxattr@@FUSE_2.7",
    "fuse_fs_lock@@FUSE_2.7",
    "fuse_fs_mkdir@@FUSE_2.7",
    "fuse_fs_mknod@@FUSE_2.7",
    "fuse_fs_new@@FUSE_2.7",
    "fuse_fs_open@@FUSE_2.7",
    "fuse_fs_opendir@@FUSE_2.7",
    "fuse_fs_poll@@FUSE_2.8",
    "fuse_fs_read@@FUSE_2.7",
    "fuse_fs_read_buf@@FUSE_2.9",
    "fuse_fs_readdir@@FUSE_2.7",
    "fuse_fs_readlink@@FUSE_2.7",
    "fuse_fs_release@@FUSE_2.7",
    "fuse_fs_releasedir@@FUSE_2.7",
    "fuse_fs_removexattr@@FUSE_2.7",
    "fuse_fs_rename@@FUSE_2.7",
    "fuse_fs_rmdir@@FUSE_2.7",
    "fuse_fs_setxattr@@FUSE_2.7",
    "fuse_fs_statfs@@FUSE_2.7",
    "fuse_fs_symlink@@FUSE_2.7",
    "fuse_fs_truncate@@FUSE_2.7",
    "fuse_fs_unlink@@FUSE_2.7",
    "fuse_fs_utimens@@FUSE_2.7",
    "fuse_fs_write@@FUSE_2.7",
    "fuse_fs_write_buf@@FUSE_2.9",
    # Unversioned names of before 2.2.
    "__fuse_exited",
    "__fuse_loop_mt",
    "__fuse_process_cmd",
    "__fuse_read_cmd",
    "__fuse_set_getcontext_func",
    "__fuse_setup",
    "__fuse_teardown",
    # Modules of other libraries.
    "fuse_register_module@@FUSE_2.7",
    # Programs that move the kernel's messages themselves, and binaries of before 2.6.
    "fuse_add_dirent@@FUSE_2.4",
    "fuse_chan_new@@FUSE_2.6",
    "fuse_chan_new@FUSE_2.4",
    "fuse_chan_new_compat24@@FUSE_2.6",
    "fuse_chan_receive@@FUSE_2.4",
    "fuse_chan_send@@FUSE_2.4",
    "fuse_dirent_size@@FUSE_2.4",
    "fuse_kern_chan_new@@FUSE_2.4",
    "fuse_lowlevel_new@FUSE_2.4",
    "fuse_lowlevel_new_compat@@FUSE_2.5",
    "fuse_main",
    "fuse_main@@FUSE_2.2",
    "fuse_main_compat1@@FUSE_2.2",
    "fuse_main_compat2@@FUSE_2.2",
    "fuse_mount_compat1@@FUSE_2.2",
    "fuse_new",
    "fuse_new_compat1@@FUSE_2.2",
    "fuse_new_compat2@@FUSE_2.2",
    "fuse_reply_open@FUSE_2.4",
    "fuse_reply_open_compat@@FUSE_2.5",
    "fuse_reply_statfs@FUSE_2.4",
    "fuse_reply_statfs_compat@@FUSE_2.5",
    "fuse_session_new@@FUSE_2.4",
    "fuse_setup_compat2@@FUSE_2.2",
}


def functions(library):
    """Functions that a library defines: name@version, or name@@version for the default one."""
    command = ["nm", "-D", "--defined-only", "--with-symbol-versions", str(library)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    names = (line.split()[2] for line in done.stdout.splitlines() if line.split()[1] == "T")
    return {name for name in names if not name.endswith(PRIVATE)}


def loaded_from(name):
    """The file that the dynamic linker takes for a library's name."""
    maps = f"import ctypes; ctypes.CDLL({name!r}); print(open('/proc/self/maps').read())"
    done = subprocess.run(["python3", "-c", maps], capture_output=True, text=True, check=True)
    return next(line.split()[-1] for line in done.stdout.splitlines() if "/libfuse" in line)


@pytest.fixture(scope="module")
def ours():
    return functions(_paths.plugin_library())


def test_exports_are_those_of_libfuse(ours):
    if not ctypes.util.find_library("fuse3"):
        pytest.skip("libfuse3.so.3 is not installed (Debian: apt install libfuse3-3)")
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
    """Strict both ways: what is added leaves LACKING_2, what is lost is found out."""
    ours = functions(_paths.plugin_library().with_name("libdf2.so.2"))
    if not ctypes.util.find_library("fuse"):
        pytest.skip("libfuse.so.2 is not installed (Debian: apt install libfuse2)")
    theirs = functions(loaded_from("libfuse.so.2"))
    assert ours - theirs == set(), "no such name, or with another version"
    assert theirs - ours == LACKING_2
