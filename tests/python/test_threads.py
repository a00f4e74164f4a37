"""Threads, the GIL, signals, fork."""

import os
import pickle
import signal
import sys
import threading
import time
import traceback

import pytest

import directfuse


def in_threads(count, work):
    """work(number) in each thread at once; raises what one of them raised."""
    failures = []
    started = threading.Barrier(count)

    def run(number):
        started.wait()
        try:
            work(number)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert not any(thread.is_alive() for thread in threads), "a thread hangs"
    if failures:
        raise failures[0]


def test_files_of_their_own(root):
    def work(number):
        path = f"{root}/{number}"
        for turn in range(200):
            data = bytes([number]) * (turn * 37 % 5000)
            with directfuse.open(path, "wb") as file:
                file.write(data)
            with directfuse.open(path, "rb") as file:
                assert file.read() == data
            assert directfuse.stat(path).st_size == len(data)

    in_threads(4, work)


def test_one_descriptor(root, opened):
    fd = opened(f"{root}/shared")
    block = 4096

    def work(number):
        for turn in range(100):
            place = (turn * 4 + number) * block
            directfuse.pwrite(fd, bytes([number]) * block, place)
            assert directfuse.pread(fd, block, place) == bytes([number]) * block

    in_threads(4, work)


def test_appending_to_one_file(root, opened):
    def work(number):
        fd = opened(f"{root}/log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        for _ in range(200):
            directfuse.write(fd, bytes([48 + number]) * 10 + b"\n")

    in_threads(4, work)
    with directfuse.open(f"{root}/log", "rb") as file:
        lines = file.read().splitlines()
    assert len(lines) == 800 and all(line == line[:1] * 10 for line in lines)


def test_mounting_while_others_call(tmp_path, memfs, mem):
    stop = threading.Event()

    def call():
        while not stop.is_set():
            for point in (mem, tmp_path / "other"):
                try:
                    with directfuse.open(f"{point}/f", "w") as file:
                        file.write("x")
                except FileNotFoundError:
                    pass

    def mount(turns):
        for _ in range(turns):
            mounted = directfuse.mount(["memfs", tmp_path / "other"])
            mounted.unmount(lazy=True)
        stop.set()

    in_threads(3, lambda number: mount(30) if number == 0 else call())


def test_a_long_copy_lets_others_run(mem, opened):
    """The GIL is released while much is copied."""
    fd = opened(f"{mem}/big")
    size = 64 << 20
    directfuse.ftruncate(fd, size)
    directfuse.pwrite(fd, b"x" * (1 << 20), size - (1 << 20))
    turns = 0
    done = threading.Event()

    def read():
        for _ in range(3):
            directfuse.pread(fd, size, 0)
        done.set()

    reader = threading.Thread(target=read)
    switch = sys.getswitchinterval()
    sys.setswitchinterval(10)  # nobody gets the GIL but by its being released
    try:
        reader.start()
        while not done.is_set():
            turns += 1
            time.sleep(0)
    finally:
        sys.setswitchinterval(switch)
    reader.join()
    assert turns > 3


def test_a_lock_that_waits_lets_others_run(root, opened):
    import fcntl

    one, two = opened(f"{root}/f"), opened(f"{root}/f")
    directfuse.flock(one, fcntl.LOCK_EX)
    order = []
    waiting = threading.Event()

    def wait():
        waiting.set()
        directfuse.flock(two, fcntl.LOCK_EX)
        order.append("granted")

    thread = threading.Thread(target=wait)
    thread.start()
    waiting.wait()
    order.append("released")
    directfuse.flock(one, fcntl.LOCK_UN)
    thread.join(20)
    assert not thread.is_alive() and order[0] == "released"


def test_a_signal_interrupts_a_waiting_call(root, opened):
    import fcntl

    one, two = opened(f"{root}/f"), opened(f"{root}/f")
    directfuse.flock(one, fcntl.LOCK_EX)

    class Alarm(Exception):
        pass

    def ring(*_):
        raise Alarm

    former = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, 0.05, 0.2)
    try:
        with pytest.raises(Alarm):
            directfuse.flock(two, fcntl.LOCK_EX)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, former)


STEPS = {
    "out of a mount": lambda mem, real: directfuse.chmod(f"{mem}/out/f", 0o604),
    "by the second of two paths": lambda mem, real: directfuse.rename(f"{real}/g", f"{mem}/out/h"),
    "into a mount": lambda mem, real: directfuse.truncate(f"{real}/in/f", 3),
}


@pytest.mark.parametrize("name", STEPS)
def test_calls_between_two_steps_of_another_do_not_change_it(name, mem, tmp_path, fill):
    """As a signal's handler makes them; here the profiler does, whenever a C function returns."""
    real = tmp_path / "real"
    real.mkdir()
    for file in ("f", "g"):
        (real / file).touch()
    directfuse.symlink(real, f"{mem}/out")
    fill(f"{mem}/f")
    (real / "in").symlink_to(mem)
    between = []

    def profile(_, event, __):
        if event == "c_return":
            between.append(directfuse.path.exists(f"{mem}/f"))
            between.append(directfuse.path.exists(f"{mem}/none"))
            between.append(directfuse.path.exists("/none"))

    sys.setprofile(profile)
    try:
        STEPS[name](mem, real)
    finally:
        sys.setprofile(None)
    assert set(between) == {True, False}


def test_signals_do_not_disturb_calls(root):
    """A handler that raises nothing is not noticed (PEP 475)."""
    rung = []
    former = signal.signal(signal.SIGALRM, lambda *_: rung.append(1))
    signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
    try:
        while len(rung) < 50:
            with directfuse.open(f"{root}/f", "wb") as file:
                file.write(bytes(200_000))
            with directfuse.open(f"{root}/f", "rb") as file:
                assert len(file.read()) == 200_000
            directfuse.listdir(root)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, former)


def test_signals_do_not_make_poll_wait_longer(script):
    """As with select.poll: after each it waits for what is left."""
    text = """
        import os, select, signal, stat, pyfuse3, directfuse

        class Never(pyfuse3.Operations):
            async def lookup(self, parent, name, ctx):
                return await self.getattr(2, ctx)
            async def getattr(self, inode, ctx):
                entry = pyfuse3.EntryAttributes()
                entry.st_ino, entry.st_nlink = inode, 1
                entry.st_mode = 0o755 | (stat.S_IFDIR if inode == 1 else stat.S_IFREG)
                return entry
            async def open(self, inode, flags, ctx):
                return pyfuse3.FileInfo(fh=1)
            async def poll(self, inode, fh, handle, ctx):
                return 0

        directfuse.mount(Never(), "/never")
        fd = directfuse.os_open("/never/f", os.O_RDONLY)
        signal.signal(signal.SIGALRM, lambda *_: came.append(1))
        came = []
        signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)
        print(directfuse.poll([(fd, select.POLLIN)], 300), len(came) > 2)
        signal.setitimer(signal.ITIMER_REAL, 0)
    """
    pytest.importorskip("pyfuse3")
    assert script(text) == "[] True"


# ---- fork --------------------------------------------------------------------------------------


def in_child(work):
    """work() in a forked child; its value, or its failure as an AssertionError."""
    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            try:
                answer = (True, work())
            except BaseException:
                answer = (False, traceback.format_exc())
            with open(write_end, "wb") as pipe:
                pickle.dump(answer, pipe)
        finally:
            os._exit(0)
    os.close(write_end)
    with open(read_end, "rb") as pipe:
        data = pipe.read()
    os.waitpid(pid, 0)
    assert data, "the child ended without an answer"
    good, value = pickle.loads(data)
    assert good, value
    return value


def test_a_child_has_its_own_copy(mem, fill, opened):
    fill(f"{mem}/f", b"before")
    fd = opened(f"{mem}/f", os.O_RDWR)

    def child():
        assert directfuse.read(fd, 9) == b"before"
        directfuse.pwrite(fd, b"child!", 0)
        with directfuse.open(f"{mem}/new", "w") as file:
            file.write("x")
        return sorted(directfuse.listdir(mem))

    assert in_child(child) == ["f", "new"]
    assert directfuse.pread(fd, 9, 0) == b"before"
    assert directfuse.listdir(mem) == ["f"]


def test_a_child_of_passthrough_writes_to_the_same_files(mount_of):
    root = mount_of("passthrough").mountpoint

    def child():
        with directfuse.open(f"{root}/f", "w") as file:
            file.write("by the child")

    in_child(child)
    with directfuse.open(f"{root}/f") as file:
        assert file.read() == "by the child"


def test_fork_while_threads_call(root):
    stop = threading.Event()

    def call(number):
        while not stop.is_set():
            with directfuse.open(f"{root}/{number}", "wb") as file:
                file.write(b"x" * 100)
            directfuse.listdir(root)

    threads = [threading.Thread(target=call, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(20):
            assert in_child(lambda: directfuse.path.isdir(root))
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def test_a_child_may_exit_normally(script, tmp_path):
    """Its atexit leaves the parent's file systems alone."""
    text = f"""
        import directfuse, os, sys
        root = {str(tmp_path / "m")!r}
        with directfuse.mount(["memfs", root]):
            directfuse.mkdir(root + "/d")
            sys.stdout.flush()
            pid = os.fork()
            if pid == 0:
                with directfuse.open(root + "/child", "w") as file:
                    file.write("x")
                sys.exit(7)
            print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), directfuse.listdir(root))
    """
    assert script(text) == "7 ['d']"


def test_a_child_may_mount(mem, tmp_path):
    def child():
        with directfuse.mount(["memfs", tmp_path / "child"]):
            directfuse.mkdir(tmp_path / "child" / "d")
            return directfuse.listdir(tmp_path / "child")

    assert in_child(child) == ["d"]


def test_multiprocessing_spawn_and_fork(script, tmp_path):
    text = f"""
        import directfuse, multiprocessing
        root = {str(tmp_path / "m")!r}
        def size(name):
            return directfuse.stat(name).st_size
        def main():
            with directfuse.mount(["memfs", root]):
                with directfuse.open(root + "/f", "w") as file:
                    file.write("12345")
                with multiprocessing.get_context("fork").Pool(2) as pool:
                    print(pool.map(size, [root + "/f"] * 4))
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                print(pool.map(size, ["/dev/null"]))
        if __name__ == "__main__":
            main()
    """
    assert script(text) == "[5, 5, 5, 5]\n[0]"
