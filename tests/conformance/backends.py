"""Where the backends' executables are, and how their command lines read."""

import os
import shutil
import sys

ENVIRONMENT = "DIRECTFUSE_BACKENDS_DIR"

#: A directory with the examples of pyfuse3's source distribution: they are tested then as well.
EXAMPLES = "DIRECTFUSE_PYFUSE3_EXAMPLES"

#: What both routes ask of a backend, so that both see the same file system: everybody may enter,
#: mode bits decide.
OPTIONS = ("allow_other", "default_permissions")


class Unavailable(Exception):
    """This machine cannot run a route or a backend; the text says why."""


class Backend:
    """One file system we ship: `source` says whether its command line names a directory,
    `keeps_names` whether an open file that is unlinked is renamed until it is closed (libfuse's
    high-level API: .fuse_hidden)."""

    takes_options = True

    def __init__(self, name, *, source, keeps_names, program=None, options=()):
        self.name = name
        self.program = program or name
        self.options = (*OPTIONS, *options)
        self.source = source
        self.keeps_names = keeps_names
        self.needs_mountpoint = False  # the program itself looks at its mountpoint

    def command(self, mountpoint, source, *, readonly=False):
        """The command line: words, the first one the name of the backend."""
        options = ",".join((*self.options, *(["ro"] if readonly else [])))
        where = [source, mountpoint] if self.source else [mountpoint]
        return [self.program, *where, "-o", options]

    def daemon(self, words):
        """The command line of the process that serves a kernel mount; None when it is not built."""
        path = self.executable()
        return [path, *words[1:], "-f"] if path else None

    def executable(self):
        """Path of the executable, or None when it is not built."""
        if directory := os.environ.get(ENVIRONMENT):
            return shutil.which(self.program, path=directory)
        try:
            from directfuse._paths import program

            return program(self.program)
        except ImportError:
            return None


class Example(Backend):
    """An example of pyfuse3's, as it is: it knows a mountpoint and, perhaps, a source."""

    takes_options = False

    def command(self, mountpoint, source, *, readonly=False):
        path = os.path.join(os.environ[EXAMPLES], self.name)
        return [path, *([source] if self.source else []), mountpoint]

    def daemon(self, words):
        return [sys.executable, *words]


BACKENDS = {
    backend.name: backend
    for backend in (
        Backend("memfs", source=False, keeps_names=False),
        Backend("passthrough", source=True, keeps_names=True),
    )
}

#: Like memfs, but it wants its writes to be gathered (FUSE_CAP_WRITEBACK_CACHE), which only a mount
#: server does.
GATHERED = Backend(
    "memfs-writeback",
    source=False,
    keeps_names=False,
    program="memfs",
    options=["writeback_cache"],
)

if EXAMPLES in os.environ:
    for example in (
        Example("tmpfs.py", source=False, keeps_names=False),
        Example("passthroughfs.py", source=True, keeps_names=False),
    ):
        BACKENDS[example.name] = example
