"""Numbers of descriptors are the program's, whatever the core opens for a moment; see numbers.c."""

import sys

from building import fuse


def test_numbers_that_are_free(plain, mounted, compiled):
    """One thread takes and gives them back, others read and map files that are mapped."""
    program = compiled("numbers")
    wanted = plain(program, "free", "20000")
    assert wanted.seen() == (0, b"0 lost, 0 wrong\n", b"")
    assert mounted(program, "free", "20000").seen() == wanted.seen()


def test_numbers_while_a_read_is_under_way(mounted, compiled):
    """Closing does not reach what the read stands on, a child has no copy, dup2 waits for it."""
    mounted.file_system = compiled("deadly", *fuse())
    outcome = mounted(compiled("numbers"), "held", timeout=20)
    lines = ["in between: some", "closed 0, a child's 0", "read: right, taken: yes", "left: 1"]
    assert outcome.seen() == (0, "".join(f"{line}\n" for line in lines).encode(), b"")


def test_a_number_that_another_thread_replaces(mounted, compiled, tmp_path):
    """By dup2(2), while it is written to; see replaced.c."""
    assert mounted(compiled("replaced"), tmp_path / "there").seen() == (0, b"ok\n", b"")


def test_a_number_that_is_replaced_while_it_is_read_by(plain, mounted, compiled, tmp_path):
    wanted = plain(compiled("reused"), tmp_path / "there")
    assert wanted.out == b"of both: 1, failed 0\n"
    assert mounted(compiled("reused"), tmp_path / "there").seen() == wanted.seen()


def test_a_number_that_is_closed_while_it_is_copied(plain, mounted, compiled):
    wanted = plain(compiled("copied"))
    assert wanted.seen() == (0, b"ok\n", b"")
    assert mounted(compiled("copied")).seen() == wanted.seen()


def test_a_number_by_a_path_of_proc_with_dots(plain, mounted):
    script = """if True:
        import os
        with open("f", "w+") as file:
            print("text", file=file, flush=True)
            for way in "self/fd/../fd", "self/../self/fd", "thread-self/../../fd":
                path = f"/proc/{way}/{file.fileno()}"
                print(way, open(path).read(), os.stat(path).st_size, os.access(path, os.W_OK))
                os.chmod(path, 0o640)
                os.truncate(path, 3)
                print(os.stat("f").st_size, oct(os.stat("f").st_mode))
    """
    wanted = plain(sys.executable, "-S", "-c", script)
    assert wanted.seen()[::2] == (0, b"")
    assert mounted(sys.executable, "-S", "-c", script).seen() == wanted.seen()


def test_flock_with_an_operation_that_locks_nothing(plain, mounted):
    script = """if True:
        import errno, fcntl, os
        file, other = (os.open("f", os.O_RDWR | os.O_CREAT) for _ in range(2))
        for operation in (0, 4, 32, 32 | 4, 32 | 64, 64, 1 | 2):
            try:
                print(operation, fcntl.flock(file, operation))
            except OSError as error:
                print(operation, errno.errorcode[error.errno])
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    """
    wanted = plain(sys.executable, "-S", "-c", script)
    assert wanted.seen()[::2] == (0, b"")
    assert mounted(sys.executable, "-S", "-c", script).seen() == wanted.seen()
