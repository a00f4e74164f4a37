"""Ids are a thread's: raw system calls change its own, glibc's those of all (credentials(7))."""

import ctypes
import os
import queue
import subprocess
import threading

from shown import show

SETFSUID, SETFSGID, SETGROUPS = 122, 123, 116  # x86-64
NOBODY = 65534
GROUP = 4321

libc = ctypes.CDLL(None)


class Worker:
    """A thread that does what it is told, one thing after the other."""

    def __init__(self):
        self._wanted, self._results = queue.Queue(), queue.Queue()
        threading.Thread(target=self._work, daemon=True).start()

    def _work(self):
        while True:
            call, words = self._wanted.get()
            try:
                self._results.put((call(*words), None))
            except OSError as error:
                self._results.put((None, error))

    def __call__(self, call, *words):
        self._wanted.put((call, words))
        result, error = self._results.get()
        if error:
            raise error
        return result


def made(name):
    os.close(os.open(name, os.O_CREAT | os.O_EXCL, 0o666))
    status = os.stat(name)
    return status.st_uid, status.st_gid


def by_child(name):
    child = os.fork()
    if child == 0:
        try:
            os.mkdir(name)
        except OSError as error:
            os._exit(error.errno)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def by_program(name):
    return subprocess.run(["mkdir", name], stderr=subprocess.DEVNULL).returncode


def look(who, do):
    """In a directory that is root's, in one of its group, and in one that is everybody's."""
    show(f"{who} in private", do, made, f"private/{who}")
    show(f"{who} in group", do, made, f"group/{who}")
    show(f"{who} in public", do, made, f"public/{who}")
    show(f"{who} may write", do, os.access, "private", os.W_OK)
    show(f"{who}'s child", do, by_child, f"private/{who}-child")
    show(f"{who}'s program", do, by_program, f"private/{who}-program")


def myself(call, *words):
    return call(*words)


def main():
    for name, mode in ("private", 0o700), ("group", 0o770), ("public", 0o777):
        os.mkdir(name)
        os.chmod(name, mode)
    os.chown("group", 0, GROUP)
    one, two = Worker(), Worker()
    one(libc.syscall, SETFSUID, NOBODY)
    look("one", one)
    look("main", myself)
    look("two", two)
    three = one(Worker)
    look("three", three)
    groups = (ctypes.c_uint32 * 1)(GROUP)
    three(libc.syscall, SETGROUPS, 1, groups)
    three(libc.syscall, SETFSGID, NOBODY)
    look("three again", three)
    look("one again", one)
    show("mask", os.umask, 0o077)
    show("one with a mask", one, os.mkdir, "public/masked")
    show("its mode", lambda: oct(os.stat("public/masked").st_mode))
    os.seteuid(NOBODY)
    for name, do in ("all: main", myself), ("all: two", two):
        look(name, do)
    os.seteuid(0)
    for name, do in ("back: main", myself), ("back: two", two), ("back: one", one):
        look(name, do)


main()
