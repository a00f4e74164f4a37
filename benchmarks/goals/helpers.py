"""Issue 4: "Helper process: stat of a path of depth 4 ≥ 3× its own kernel mount, sequential 4 KiB
reads ≥ 3×", of programs as they come: both mounted with what the program wants cached, in turn.

A file is opened for each pass, which ends what the kernel knows of its bytes; where the program
says that it need not (FOPEN_KEEP_CACHE), the kernel is told so by posix_fadvise(2). Called from
Python.
"""

import contextlib
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from judge import Row, at_least

import directfuse
from directfuse import _kernel

TIMES = 3.0
BYTES, PIECE, ROUNDS = 8 << 20, 4096, 7
DEEP = "a/b/c/file"


class Program(NamedTuple):
    make: Callable[
        [str], list[str]
    ]  #: command line, without the mountpoint, of a tree in a directory
    stays: str  #: the option that keeps it in the foreground


def squashfuse(area: str) -> list[str]:
    image = f"{area}/image"
    subprocess.run(["mksquashfs", tree(area), image, "-quiet", "-no-progress"], check=True)
    return ["squashfuse", image]


def gocryptfs(area: str) -> list[str]:
    cipher, password = f"{area}/cipher", f"{area}/password"
    os.mkdir(cipher)
    with open(password, "w") as file:
        file.write("secret\n")
    words = ["gocryptfs", "-q", "-passfile", password]
    subprocess.run([*words, "-init", "-scryptn", "10", cipher], check=True)
    with directfuse.mount([*words, cipher, f"{area}/fill"], placement="helper") as mount:
        point = mount.mountpoint
        directfuse.makedirs(f"{point}/{os.path.dirname(DEEP)}")
        with directfuse.open(f"{point}/{DEEP}", "wb") as file:
            file.write(os.urandom(BYTES))
    return [*words, cipher]


def tree(area: str) -> str:
    deep = f"{area}/tree/{DEEP}"
    os.makedirs(os.path.dirname(deep))
    with open(deep, "wb") as file:
        file.write(os.urandom(BYTES))
    return f"{area}/tree"


PROGRAMS = {"squashfuse": Program(squashfuse, "-f"), "gocryptfs": Program(gocryptfs, "-fg")}


def judge() -> Iterator[Row]:
    for name, program in PROGRAMS.items():
        found = {"stat, depth 4": float("nan"), "a file once, by 4 KiB": float("nan")}
        if shutil.which(name):
            with tempfile.TemporaryDirectory(dir="/dev/shm") as area:
                found = ratios(program, area)
        for what, ratio in found.items():
            yield at_least(f"helper, {name} against its kernel mount: {what}", ratio, TIMES)


def ratios(program: Program, area: str) -> dict[str, float]:
    """How many times faster the helper is, by what was measured; the fastest of some rounds."""
    words, point = program.make(area), f"{area}/kernel"
    os.mkdir(point)
    with contextlib.ExitStack() as stack:
        kernel = stack.enter_context(_kernel.Program([*words, point, program.stays]))
        kernel.wait_mounted(15)
        mount = stack.enter_context(
            directfuse.mount([*words, f"{area}/helper"], placement="helper")
        )
        sides = [(os, os.open, point), (directfuse, directfuse.os_open, mount.mountpoint)]
        times: list[dict[str, list[int]]] = [{}, {}]
        for _ in range(ROUNDS):
            for found, (api, opens, root) in zip(times, sides, strict=True):
                path = f"{root}/{DEEP}"
                found.setdefault("stat, depth 4", []).append(stats(api, path))
                found.setdefault("a file once, by 4 KiB", []).append(once(api, opens, path))
    return {what: min(times[0][what]) / min(times[1][what]) for what in times[0]}


def stats(api: Any, path: str) -> int:
    begin = time.perf_counter_ns()
    for _ in range(2000):
        api.stat(path)
    return time.perf_counter_ns() - begin


def once(api: Any, opens: Callable[[str, int], int], path: str) -> int:
    fd = opens(path, os.O_RDONLY)
    if api is os:
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    begin = time.perf_counter_ns()
    for offset in range(0, BYTES, PIECE):
        if len(api.pread(fd, PIECE, offset)) != PIECE:
            raise RuntimeError(f"{path}: short read")
    took = time.perf_counter_ns() - begin
    api.close(fd)
    return took
