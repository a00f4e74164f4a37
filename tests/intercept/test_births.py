"""A child of a process without open files of mounts is nobody to the mount server until it asks for
something (decision 069): what that spares, and what must not differ."""

import os
import sys

import pytest
from building import fuse


def test_children_that_ask_for_nothing_make_no_trip(mounted):
    script = "i=0; while [ $i -lt $1 ]; do /bin/true; (:); i=$((i + 1)); done"
    few, many = (mounted("/bin/sh", "-c", script, "sh", count) for count in ("1", "20"))
    assert few.events["trips"] == many.events["trips"]
    assert many.events["forks"] == few.events["forks"] + 2 * 19


#: What is free in the end is what was in the beginning, although a child lives.
_CHILD_OUTLIVES_FILE = """
before=$(stat -f -c %f .)
sh -c 'sleep 40 & echo $! >pid; exec 3>big; rm big; head -c 16M /dev/zero >&3; stat -f -c %f . >less
kill -9 $$' 2>/dev/null
i=0
while [ $(($(stat -f -c %f .) + 100)) -lt $before ] && [ $i -lt 400 ]; do
    sleep .05; i=$((i + 1))
done
[ $(stat -f -c %f .) -gt $(cat less) ] && echo closed
kill $(cat pid) && echo lives
"""


def test_what_a_killed_parent_opened_is_closed_although_its_child_lives(mounted):
    found = mounted("/bin/sh", "-c", _CHILD_OUTLIVES_FILE)
    assert found.out == b"closed\nlives\n"


#: The child is killed when its write has begun.
_WRITES_AND_IS_KILLED = """
import os, signal, sys, time
name, begun = sys.argv[1:]
child = os.fork()
if child == 0:
    os.pwrite(os.open(name, os.O_WRONLY), b"new", 0)
while not os.path.exists(begun):
    time.sleep(0.001)
os.kill(child, signal.SIGKILL)
os.waitpid(child, 0)
print(open(name).read())
"""


def test_what_a_killed_child_had_begun_is_done_when_it_was_waited_for(mounted, compiled, tmp_path):
    """It came to the file later, perhaps over what somebody had written since."""
    begun = tmp_path / "begun"
    mounted.file_system = f"{compiled('tardy', *fuse())} -o begun={begun}"
    words = [sys.executable, "-S", "-c", _WRITES_AND_IS_KILLED, f"{mounted.deep}/f", begun]
    assert mounted(*words, deep=True).out == b"new\n"


#: The child waits until its parent is gone.
_CHILD_OPENS_LATER = """
sh -c '(while kill -0 $$; do sleep .02; done; exec 3<>f; rm f; echo kept >&3
exec 4<&3; echo twice >&4; echo done >last) 2>/dev/null &'
i=0; while [ ! -e last ] && [ $i -lt 400 ]; do sleep .05; i=$((i + 1)); done; cat last
"""


def test_what_a_child_opens_is_its_own_when_its_parent_is_gone(mounted):
    assert mounted("/bin/sh", "-c", _CHILD_OPENS_LATER).out == b"done\n"


def test_more_children_join_at_once_than_clients_are_offered(plain, mounted):
    script = """
    for i in $(seq 40); do (echo $i >f$i; cat f$i >g$i) & done; wait; cat g* | sort -n; ls | wc -l
    """
    wanted = plain("/bin/sh", "-c", script)
    assert mounted("/bin/sh", "-c", script).seen() == wanted.seen()


def test_files_are_open_until_the_last_thread_has_ended(plain, mounted, compiled, tmp_path):
    wanted = plain(compiled("leaves"))
    assert wanted.out == b"ended 100\n"
    (tmp_path / "source").mkdir()
    mounted.file_system = f"passthrough {tmp_path / 'source'}"
    assert mounted(compiled("leaves")).seen() == wanted.seen()


def test_parents_are_whole_after_children_that_share_with_them(plain, mounted, compiled):
    wanted = plain(compiled("shares"))
    assert wanted.out.count(b": 3 4 4 text 0 0") == 7
    assert mounted(compiled("shares")).seen() == wanted.seen()


def test_nobody_else_waits_while_a_child_with_memory_of_its_own_is_waited_for(
    plain, mounted, compiled
):
    """CLONE_VFORK without CLONE_VM; see waits.c."""
    wanted = plain(compiled("waits"))
    assert wanted.seen() == (0, b"it has ended: yes, 0\nit has read: 0\n", b"")
    assert mounted(compiled("waits"), timeout=20).seen() == wanted.seen()


_THREADS = """
import os, threading
wall = threading.Barrier(8)
def use(number):
    wall.wait()
    with open(f"t{number}", "w+") as f:
        f.write(str(number))
        f.seek(0)
        assert f.read() == str(number)
def child():
    pid = os.fork()
    if pid == 0:
        open("forked", "w").write("x")
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
threads = [threading.Thread(target=use, args=(i,)) for i in range(8)]
for thread in threads:
    thread.start()
child()
for thread in threads:
    thread.join()
print(sorted(os.listdir(".")))
"""


def test_threads_that_ask_at_once_while_another_forks(plain, mounted):
    wanted = plain(sys.executable, "-c", _THREADS)
    assert mounted(sys.executable, "-c", _THREADS).seen() == wanted.seen()


_SPAWN = """
import os
for i in range(3):
    opened = (os.POSIX_SPAWN_OPEN, 1, f"out{i}", os.O_WRONLY | os.O_CREAT, 0o600)
    pid = os.posix_spawn("/bin/echo", ["echo", str(i)], os.environ, file_actions=[opened])
    assert os.waitpid(pid, 0)[1] == 0
    print(open(f"out{i}").read())
"""


def test_numbers_that_are_free_in_a_child_are_of_what_it_opens(mounted, compiled):
    """Though threads of its parent opened and closed files when it was made; see numbered.c."""
    assert mounted(compiled("numbered")).seen() == (0, b"0 of fork, 0 of vfork\n", b"")


def test_a_spawned_child_opens_a_file_before_it_is_another_program(plain, mounted):
    wanted = plain(sys.executable, "-c", _SPAWN)
    assert mounted(sys.executable, "-c", _SPAWN).seen() == wanted.seen()


#: subprocess closes all descriptors in a child that shares memory.
_FIRST_ASKED_BY_A_CHILD = """
import subprocess, sys, threading
over = threading.Event()
threading.Thread(target=over.wait).start()
print(subprocess.call(["/bin/sh", "-c", "echo found >$0; cat $0", sys.argv[1]]))
over.set()
"""


def test_a_child_of_threads_that_asked_for_nothing_closes_all_descriptors(mounted):
    words = [sys.executable, "-I", "-S", "-c", _FIRST_ASKED_BY_A_CHILD, f"{mounted.deep}/f"]
    found = mounted("/bin/sh", "-c", '"$@"; :', "sh", *words, deep=True)
    assert found.seen() == (0, b"found\n0\n", b"")


@pytest.mark.skipif(os.geteuid() != 0, reason="becoming another user needs root")
def test_a_child_asks_for_the_first_time_as_another_user(mounted):
    """The server does not know it yet, and it is not of the user whose server it is."""
    script = "chmod 777 .; setpriv --reuid 4321 --clear-groups sh -c 'echo own >g'; stat -c %u g"
    assert mounted("/bin/sh", "-c", script).seen() == (0, b"4321\n", b"")


@pytest.mark.parametrize("flags", ["", "norewrite", "seccomp", "preload"])
def test_children_without_handlers(plain, inside, compiled, flags):
    wanted = plain(compiled("cleared"))
    assert (wanted.out.count(b"executed\n"), wanted.out.count(b"handler\n")) == (2, 9)
    assert inside(compiled("cleared"), flags=flags).seen() == wanted.seen()


def test_children_killed_in_a_call_leave_no_lock_taken(plain, mounted, compiled):
    """They share their parent's memory, and what the core has in it."""
    wanted = plain(compiled("killed"), "60")
    assert wanted.seen() == (0, b"all killed\n", b"")
    assert mounted(compiled("killed"), "60").seen() == wanted.seen()


def test_children_go_on_when_their_parent_is_gone(plain, inside, compiled):
    """They share what the core had in it, with locks that its threads held; see outlives.c."""
    wanted = plain(compiled("outlives"), "2")
    assert wanted.seen() == (0, b"all ended\n", b"")
    assert inside(compiled("outlives"), "2").seen() == wanted.seen()


#: What the scripts of what was killed begin with.
_IS_FREE = """
import fcntl, os, random, signal, time
def is_free():
    with open("f") as f:
        try:
            fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True
def is_free_within(seconds):
    until = time.monotonic() + seconds
    while not is_free() and time.monotonic() < until:
        time.sleep(.001)
    return is_free()
"""

#: Of twenty children that are killed at once some have not said yet that they are born.
_KILLED_AT_BIRTH = """
for round in range(20):
    with open("f", "w") as f:
        fcntl.flock(f, fcntl.LOCK_EX)
        child = os.fork()
        if child == 0:
            os._exit(0)
        os.kill(child, signal.SIGKILL)
        if round % 2:
            os.waitpid(child, 0)
        else:
            os.waitid(os.P_PID, child, os.WEXITED)
    assert is_free_within(3), round
"""

#: What is killed is mostly about to make a child, which is never made.
_KILLED_AT_A_FORK = """
def forks():
    file = os.open("f", os.O_RDWR | os.O_CREAT)
    fcntl.flock(file, fcntl.LOCK_EX)
    while True:
        if os.fork() == 0:
            os._exit(0)
        os.wait()
choose = random.Random(1)
os.close(os.open("f", os.O_RDWR | os.O_CREAT))
for round in range(30):
    child = os.fork()
    if child == 0:
        forks()
    while is_free():
        pass
    time.sleep(choose.random() / 100)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    assert is_free_within(2), round
"""


@pytest.mark.parametrize("script", [_KILLED_AT_BIRTH, _KILLED_AT_A_FORK], ids=["birth", "fork"])
def test_what_was_killed_at_a_birth_has_nothing_open(mounted, tmp_path, script):
    """The child, or its parent before it is made. The file system has the lock, until the server
    closes the file."""
    (tmp_path / "source").mkdir()
    mounted.file_system = f"passthrough {tmp_path / 'source'}"
    assert mounted(sys.executable, "-S", "-c", _IS_FREE + script).seen() == (0, b"", b"")


#: The kernel ends a child's socket, which is at a high number, before a lock that it has inherited.
_ENDS_LOCKED = """
import errno, fcntl, os
def locks(name):
    file = os.open(name, os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return file
    except BlockingIOError:
        os.close(file)
def ends():
    file = locks("one")
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.close(file)
    os.unlink("one")
    wrong = 0
    while os.waitpid(child, os.WNOHANG)[0] == 0:
        file = locks("other")
        if file is None:
            wrong += 1
        else:
            os.close(file)
        os.unlink("other")
    return wrong
first = os.dup(0)
between = [os.dup(0) for _ in range(800)]
os.close(first)
print(sum(ends() for _ in range(100)))
"""


def test_a_lock_that_a_child_takes_to_its_end_is_of_no_other_file(plain, mounted):
    wanted = plain(sys.executable, "-S", "-c", _ENDS_LOCKED)
    assert wanted.seen() == (0, b"0\n", b"")
    assert mounted(sys.executable, "-S", "-c", _ENDS_LOCKED).seen() == wanted.seen()


#: Of what other threads open, lock and close meanwhile, children get descriptors.
_LOCKS_BESIDE_FORKS = """
import fcntl, os, threading
done, wrong = False, 0
def lock(thread):
    global wrong
    number = 0
    while not done:
        number += 1
        file = os.open(name := f"{thread}.{number}", os.O_RDWR | os.O_CREAT)
        os.unlink(name)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            wrong += 1
        os.close(file)
threads = [threading.Thread(target=lock, args=(i,)) for i in range(3)]
for thread in threads:
    thread.start()
for _ in range(200):
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
done = True
for thread in threads:
    thread.join()
print(wrong)
"""


def test_a_lock_that_a_child_got_beside_a_close_is_of_no_other_file(plain, mounted):
    command = (sys.executable, "-S", "-W", "ignore", "-c", _LOCKS_BESIDE_FORKS)
    wanted = plain(*command)
    assert wanted.seen() == (0, b"0\n", b"")
    assert mounted(*command).seen() == wanted.seen()


@pytest.mark.sweep
@pytest.mark.timeout(150)
def test_a_child_that_a_debugger_holds_keeps_its_files(plain, mounted, compiled):
    """For longer than the server waits for a first word before it looks whether there is a child
    (native/process/unborn.h)."""
    wanted = plain(compiled("late"), "0")
    assert wanted.seen() == (0, b"0\n", b"")
    assert mounted(compiled("late"), "64", timeout=120).seen() == wanted.seen()
