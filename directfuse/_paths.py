"""Where the installed native files are: libraries, plugins, programs, the C header.

directfuse/_native/
    lib/             libdirectfuse.so, libdf3.so.3 (what plugins link to)
    lib/backends/    memfs.so, passthrough.so: the file systems we ship, as plugins
    lib/pkgconfig/   directfuse.pc, directfuse-plugin.pc
    bin/             memfs, passthrough: the same, as programs that mount through the kernel
    libexec/         df-bench, for `directfuse bench`
    libexec/helper/  what a helper process is given: a preloaded library, a stand-in for fusermount
    include/         directfuse.h
"""

import functools
import sys
from collections.abc import Iterable
from pathlib import Path

__all__ = [
    "COMMAND",
    "HELPER",
    "LIBRARY",
    "MODULE",
    "PLUGIN_LIBRARY",
    "backend_names",
    "bench_helper",
    "include_dir",
    "library",
    "loader",
    "native_dir",
    "pkgconfig_dir",
    "plugin",
    "plugin_library",
    "preload_library",
    "program",
    "server",
    "unknown",
]

LIBRARY = "libdirectfuse.so"
PLUGIN_LIBRARY = "libdf3.so.3"
HELPER = "helper"  #: the plugin that serves other processes' file systems

#: Starts a module of this very installation. -P: the working directory may be a clone of the
#: source, and `-m` alone would take the package that lies there, which has no compiled parts.
MODULE = (sys.executable, "-P", "-m")
COMMAND = (*MODULE, "directfuse")  #: its `directfuse`


@functools.cache
def native_dir() -> Path:
    """The `_native` tree of this installation.

    An editable installation has two package directories, the sources and the compiled files; only
    the second holds the tree.
    """
    package = sys.modules[__package__]
    for directory in package.__path__:
        tree = Path(directory, "_native")
        if tree.is_dir():
            return tree
    raise ImportError(
        f"the native files of directfuse are missing beside {list(package.__path__)}: this looks "
        "like an uncompiled source tree; install it with `pip install .` or `pip install -e .`"
    )


def library() -> Path:
    """libdirectfuse.so, the core behind the Python package and the C API."""
    return native_dir() / "lib" / LIBRARY


def plugin_library() -> Path:
    """libdf3.so.3, which plugins link to instead of libfuse3.so.3."""
    return native_dir() / "lib" / PLUGIN_LIBRARY


def include_dir() -> Path:
    """The directory of directfuse.h."""
    return native_dir() / "include"


def pkgconfig_dir() -> Path:
    """The directory of directfuse.pc and directfuse-plugin.pc."""
    return native_dir() / "lib" / "pkgconfig"


def backend_names() -> list[str]:
    """Names of the built-in file systems, sorted; helper is none by itself."""
    names = {path.stem for path in (native_dir() / "lib/backends").glob("*.so")}
    return sorted(names - {HELPER})


def plugin(name: str) -> Path | None:
    """The built-in file system `name` as a shared object, or None."""
    path = native_dir() / "lib/backends" / f"{name}.so"
    return path if "/" not in name and path.is_file() else None


def unknown(name: str, others: Iterable[str] = ()) -> str:
    """What to say of the first word of a command line that means nothing, and what would help.
    others: names that are known besides those of the built-in file systems."""
    if "/" in name:
        return "no such file"
    known = ", ".join([*backend_names(), *others])
    return (
        f"neither a built-in file system ({known}) nor a program on PATH; a program or plugin of "
        "your own is named by its path, with a slash"
    )


def bench_helper() -> Path:
    """df-bench, the native half of `directfuse bench`."""
    return native_dir() / "libexec/df-bench"


def loader() -> Path:
    """directfuse-exec, which starts the programs of `directfuse run`."""
    return native_dir() / "libexec/directfuse-exec"


def server() -> Path:
    """directfuse-server, which hosts the file systems of a run."""
    return native_dir() / "bin/directfuse-server"


def preload_library() -> Path:
    """libdirectfuse-preload.so, which programs are entered by when LD_PRELOAD names it."""
    return native_dir() / "lib/libdirectfuse-preload.so"


def program(name: str) -> Path | None:
    """The built-in file system `name` as a program that mounts through the kernel, or None."""
    path = native_dir() / "bin" / name
    return path if "/" not in name and path.is_file() else None
