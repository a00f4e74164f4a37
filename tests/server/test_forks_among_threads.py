"""A process forks while its other threads open and close files: what they were at belongs to nobody
but it. The children close what they find, so what is open then nobody could ever close."""

import os
import signal
import subprocess
import sys
import threading

import needs

import directfuse

from .named import served
from .test_lives import the_server, until

FORKS = 20
#: native/include/directfuse.h; tests before may have left some open
NUMBERS = range(1 << 30, (1 << 30) + 4096)
SECONDS = 60


def test_a_child_of_the_library_has_no_file_that_it_knows_nothing_of(memfs):
    path = f"{memfs.mountpoint}/f"
    over = threading.Event()

    def churn():
        while not over.is_set():
            directfuse.close(directfuse.os_open(path, os.O_RDWR | os.O_CREAT))

    threads = [threading.Thread(target=churn) for _ in range(2)]
    for thread in threads:
        thread.start()
    children = [closing_child() for _ in range(FORKS)]
    over.set()
    for thread in threads:
        thread.join(SECONDS)
    try:
        memfs.unmount()  # EBUSY, if anybody has a file open
    finally:
        for child in children:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)


def closing_child():
    """A forked child that has closed all it had, and waits."""
    closed, told = os.pipe()
    child = os.fork()
    if child == 0:
        for fd in NUMBERS:
            try:
                directfuse.close(fd)
            except OSError:
                continue
        os.write(told, b"x")
        while True:
            signal.pause()
    os.close(told)
    assert os.read(closed, 1) == b"x"
    os.close(closed)
    return child


PROGRAM = f"""
import os, signal, sys, threading

over = threading.Event()

def churn():
    while not over.is_set():
        os.close(os.open(sys.argv[1], os.O_RDWR | os.O_CREAT))

def closing_child():
    closed, told = os.pipe()
    child = os.fork()
    if child == 0:
        os.dup2(told, 1)
        os.closerange(3, 200)
        os.write(1, b"x")
        while True:
            signal.pause()
    os.close(told)
    assert os.read(closed, 1) == b"x"
    os.close(closed)
    return child

threads = [threading.Thread(target=churn) for _ in range(2)]
for thread in threads:
    thread.start()
children = [closing_child() for _ in range({FORKS})]
over.set()
for thread in threads:
    thread.join()
print("closed", flush=True)
sys.stdin.readline()
for child in children:
    os.kill(child, signal.SIGKILL)
"""


@needs.run
def test_a_child_in_a_run_has_no_file_that_it_knows_nothing_of(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    source = tmp_path / "source"
    source.mkdir()
    words = [sys.executable, "-m", "directfuse", "run", "-m", "@churn", "--"]
    words += ["/usr/bin/python3", "-c", PROGRAM, f"{tmp_path}/mnt/f"]
    with served(f"passthrough {source} {tmp_path}/mnt", "churn"):
        with subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as run:
            assert run.stdout.readline() == "closed\n"
            until(lambda: not opened_below(source))  # RELEASE follows close
            run.communicate("\n", SECONDS)
        assert run.returncode == 0


def opened_below(source):
    """What the server, of a file system on a real directory, has open there."""
    server = f"/proc/{the_server()}/fd"
    names = []
    for fd in os.listdir(server):
        try:
            names.append(os.readlink(f"{server}/{fd}"))
        except FileNotFoundError:
            continue
    return [name for name in names if name.startswith(f"{source}/")]
