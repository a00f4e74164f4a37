"""Who stands below a directory that he may not search: Linux looks at nothing above him."""

import os
import subprocess

from shown import show

NOBODY = 65534


def stand():
    """As nobody in above/here."""
    os.umask(0o22)
    for name in "above", "above/here", "above/here/below":
        os.mkdir(name)
        os.chown(name, NOBODY, NOBODY)
    with open("above/here/script", "w") as script:
        script.write("#!/bin/sh\necho executed $0; cat file; ls -a below\n")
        os.fchmod(script.fileno(), 0o755)
    os.chdir("above/here")
    os.setgroups([])
    os.setresgid(NOBODY, NOBODY, NOBODY)
    os.setresuid(NOBODY, NOBODY, NOBODY)


def written(name, text):
    with open(name, "w") as file:
        file.write(text)
    with open(name) as file:
        return file.read(), os.path.samestat(os.fstat(file.fileno()), os.stat(name))


def names():
    return sorted(os.listdir("."))


def make():
    show("write", written, "file", "text\n")
    show("mkdir", os.mkdir, "made")
    show("in it", written, "made/file", "more\n")
    show("link", os.link, "file", "made/link")
    show("symlink", os.symlink, "made/link", "symlink")
    show("by it", written, "symlink", "text\n")
    show("rename", os.rename, "made/file", "below/file")
    show("chmod", os.chmod, "file", 0o640)
    show("times", os.utime, "file", (1, 2))
    show("status", lambda: (oct(os.stat("file").st_mode), os.stat("file").st_mtime))
    show("names", names)
    show("execute", subprocess.check_output, ["./script"])
    show("remove", os.unlink, "made/link")
    show("rmdir", os.rmdir, "made")
    show("missing", os.stat, "missing")
    show("not mine", written, "/file", "")


def look_up():
    show("here", lambda: os.path.samestat(os.stat("."), os.stat(os.open(".", os.O_RDONLY))))
    show("above", lambda: oct(os.stat("..").st_mode))
    show("its names", os.listdir, "..")
    show("its directory", os.stat, "../here")
    show("by name", os.stat, os.getcwd())


def move():
    fd = os.open("below", os.O_RDONLY)
    show("chdir", os.chdir, "below")
    show("there", names)
    show("write", written, "other", "other\n")
    show("up", os.chdir, "..")
    show("fchdir", os.fchdir, fd)
    show("there", names)
    show("name", lambda: os.path.basename(os.getcwd()))
    show("child", subprocess.check_output, ["/bin/sh", "-c", "cat other; ls .."])


stand()
show("search", os.chmod, "..", 0o0)
make()
look_up()
move()
