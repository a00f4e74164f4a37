"""Waits for files of gates.c, in the directory $1, and tells what it is told.

Nothing here sleeps to give something time: who changes a gate waits until somebody waits for it.
"""

import contextlib
import ctypes
import errno
import fcntl
import mmap
import os
import re
import resource
import select
import signal
import socket
import sys
import threading

POINT = sys.argv[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (2000, 2000))
NAMES = {
    select.POLLIN: "IN",
    select.POLLPRI: "PRI",
    select.POLLOUT: "OUT",
    select.POLLERR: "ERR",
    select.POLLHUP: "HUP",
    select.POLLNVAL: "NVAL",
    select.POLLRDNORM: "RDNORM",
    select.POLLWRNORM: "WRNORM",
    select.POLLRDHUP: "RDHUP",
}
LIBC = ctypes.CDLL(None, use_errno=True)


def names(events):
    return "|".join(name for bit, name in NAMES.items() if events & bit) or "none"


def gate(name, flags=os.O_RDWR):
    return os.open(f"{POINT}/{name}", flags)


def order(name, text):
    fd = gate(name)
    os.write(fd, text.encode())
    os.close(fd)


def asked():
    fd = gate("asked", os.O_RDONLY)
    count = int(os.read(fd, 20))
    os.close(fd)
    return count


def drain(*which):
    for name in which or ("a", "b", "c"):
        fd = gate(name)
        with contextlib.suppress(BlockingIOError):
            while os.read(fd, 100):
                pass
        os.write(fd, b"free")
        os.close(fd)


@contextlib.contextmanager
def later(change, more=1):
    """Another process makes the change once the file system was asked to tell later."""
    before = asked()
    pid = os.fork()
    if pid == 0:
        while asked() < before + more:
            os.sched_yield()
        change()
        os._exit(0)
    yield
    os.waitpid(pid, 0)


def polled(timeout, *wanted):
    poller = select.poll()
    for fd, events in wanted:
        poller.register(fd, events)
    order_of = {fd: i for i, (fd, _) in enumerate(wanted)}
    return sorted((order_of[fd], names(events)) for fd, events in poller.poll(timeout))


def show(what, *found):
    print(what, *found, flush=True)


# ---- poll and select ------------------------------------------------------------------------


def at_once():
    a, b, broken = gate("a"), gate("b"), gate("broken")
    show("nothing to read", polled(0, (a, select.POLLIN)))
    show("to write", polled(0, (a, select.POLLIN | select.POLLOUT)))
    order("a", "+2")
    show("both", polled(0, (a, select.POLLIN | select.POLLOUT | select.POLLPRI)))
    show("no events", polled(0, (a, 0)))
    show("one of two", polled(-1, (b, select.POLLIN), (a, select.POLLIN)))
    show("other names", polled(0, (a, select.POLLRDNORM | select.POLLWRNORM)))
    os.read(a, 1)
    show("one left", polled(0, (a, select.POLLIN)))
    os.read(a, 1)
    show("none left", polled(1, (a, select.POLLIN)))
    order("a", "full")
    show("full", polled(0, (a, select.POLLOUT)))
    show("broken", polled(-1, (broken, select.POLLIN)))
    show("directory", polled(-1, (gate("", os.O_RDONLY), select.POLLIN | select.POLLOUT)))
    show("path", polled(-1, (gate("a", os.O_PATH), select.POLLIN)))
    os.close(b)
    show("closed", polled(-1, (b, select.POLLIN), (a, select.POLLIN)))
    drain()


def selected(*sets, timeout=None):
    return [len(found) for found in select.select(*sets, timeout)]


def set_before_an_end():
    """Of as many bits as the kernel looks at, which may be fewer than it is asked for."""
    LIBC.mmap.restype = ctypes.c_void_p
    status = open("/proc/self/status").read()
    words = int(re.search(r"FDSize:\t(\d+)", status)[1]) // 64
    at = LIBC.mmap(None, ctypes.c_size_t(2 * mmap.PAGESIZE), 3, 0x22, -1, ctypes.c_long(0))
    end = at + mmap.PAGESIZE
    LIBC.mprotect(ctypes.c_void_p(end), ctypes.c_size_t(mmap.PAGESIZE), 0)
    return (ctypes.c_ulong * words).from_address(end - 8 * words)


def by_select():
    a, b = gate("a"), gate("b")
    for fd in a, b:
        order("b", "+1")
        bits, none = set_before_an_end(), (ctypes.c_ulong * 2)()
        bits[fd // 64] = 1 << fd % 64
        show("select all", LIBC.select(100_000, bits, None, None, none), bits[fd // 64] >> fd % 64)
    drain()
    show("select nothing", selected([a], [], [], timeout=0), selected([a], [], [a], timeout=0.01))
    show("select to write", selected([a], [a, b], [a]))
    order("b", "+1")
    show("select to read", selected([a, b], [], []))
    show("select broken", selected([gate("broken")], [gate("broken")], [gate("broken")]))
    drain()
    with later(lambda: order("a", "+1")):
        show("select later", selected([a, b], [], []))
    drain()
    reader, writer = os.pipe()
    order("a", "full")
    with later(lambda: os.write(writer, b"x")):
        show("select a pipe", selected([a, reader], [a], []))
    bits, none = (ctypes.c_ulong * 32)(), (ctypes.c_ulong * 32)()
    bits[0] = 1 << a | 1 << 62
    with later(lambda: order("a", "+1")):
        show("select, bits behind", LIBC.select(a + 1, bits, none, none, None), bits[0] >> a)
    drain()
    high = [fcntl.fcntl(reader, fcntl.F_DUPFD, 900) for _ in range(200)]
    with later(lambda: order("a", "+1")):
        show("select, high numbers", selected([a], [], [a]))
    for number in high:
        os.close(number)
    drain()
    os.close(b)
    try:
        selected([a], [b], [])
    except OSError as error:
        show("select closed", errno.errorcode[error.errno])
    drain()


def by_waiting():
    a, b = gate("a"), gate("b")
    with later(lambda: order("a", "+1")):
        show("later", polled(-1, (a, select.POLLIN)))
    with later(lambda: order("b", "+1"), 2):
        show("later, of two", polled(-1, (b, select.POLLIN), (gate("c"), select.POLLIN)))
    drain()
    with later(lambda: (order("a", "poke"), order("a", "poke"), order("a", "+1"))):
        show("poked", polled(-1, (a, select.POLLIN)))
    drain()
    with later(lambda: order("a", "poke")):
        show("poked only", polled(300, (a, select.POLLIN)))
    order("a", "full")
    with later(lambda: order("a", "free")):
        show("free", polled(60000, (a, select.POLLOUT)))
    drain()
    left, right = socket.socketpair()
    with later(lambda: right.send(b"x")):
        show("a socket", polled(-1, (a, select.POLLIN), (left.fileno(), select.POLLIN)))
    with later(lambda: order("a", "+1")):
        show("among pipes", polled(-1, *[(fd, select.POLLIN) for fd in (os.pipe()[0], b, a)]))
    drain()
    same = os.dup(a)
    with later(lambda: order("a", "+1")):
        os.close(a)
        show("a copy", polled(-1, (same, select.POLLIN)))
    drain()


def together():
    """Several threads and processes wait for one file."""
    a = gate("a")
    found = []
    waiters = [
        threading.Thread(target=lambda: found.append(polled(-1, (a, select.POLLIN))))
        for _ in range(3)
    ]
    before = asked()
    children = []
    for _ in range(2):
        children.append(os.fork())
        if children[-1] == 0:
            os._exit(len(polled(-1, (a, select.POLLIN))))
    for waiter in waiters:
        waiter.start()
    while asked() < before + 5:
        os.sched_yield()
    order("a", "+1")
    for waiter in waiters:
        waiter.join()
    statuses = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children]
    show("together", found, statuses)
    drain()


def closed_meanwhile():
    """Of a descriptor that another thread closes, who waits hears when the file would tell."""
    a, before = gate("a"), asked()
    pid = os.fork()
    if pid == 0:
        while asked() < before + 2:
            os.sched_yield()
        order("a", "+1")
        os._exit(0)
    waiter = threading.Thread(target=lambda: show("closed", polled(-1, (a, select.POLLIN))))
    waiter.start()
    while asked() < before + 1:
        os.sched_yield()
    os.close(a)
    b = gate("b")
    os.dup2(b, 100)
    os.close(b)
    polled(50, (100, select.POLLIN))
    waiter.join()
    os.waitpid(pid, 0)
    drain()


def take_all(wait, writer):
    """Takes bytes of the gate c, as they come, until it hangs up."""
    c = gate("c")
    while "HUP" not in wait(c):
        with contextlib.suppress(BlockingIOError):
            os.write(writer, os.read(c, 1))
    os._exit(0)


def race():
    """Nobody misses what comes while others take it."""

    def by_poll(c):
        return polled(-1, (c, select.POLLIN))[0][1]

    def by_epoll(how):
        watched = []

        def wait(c):
            watched or watched.append(Watched(c=(c, select.EPOLLIN | how)))
            return watched[0].wait()[0][1]

        return wait

    def by_select(c):
        select.select([c], [], [])
        return by_poll(c)

    def by_one_told(_):
        again()
        events = shared.wait()[0][1]
        if "HUP" in events:
            again()
        return events

    def again():
        shared.epoll.modify(gate_of_all, select.EPOLLIN | select.EPOLLONESHOT)

    gate_of_all = gate("c")
    shared = Watched(c=(gate_of_all, select.EPOLLIN | select.EPOLLONESHOT))
    reader, writer = os.pipe()
    each = by_poll, by_poll, by_select, by_epoll(0), by_epoll(select.EPOLLET), *[by_one_told] * 4
    for wait in each:
        if os.fork() == 0:
            take_all(wait, writer)
    for _ in range(500):
        order("c", "+1")
    taken = 0
    while taken < 500:
        taken += len(os.read(reader, 500))
    order("c", "hup")
    show("taken", taken, {os.waitstatus_to_exitcode(os.wait()[1]) for _ in each})
    drain()


# ---- signals -------------------------------------------------------------------------------------


class Pollfd(ctypes.Structure):
    _fields_ = [("fd", ctypes.c_int), ("events", ctypes.c_short), ("revents", ctypes.c_short)]


def raw(call, *arguments):
    ctypes.set_errno(0)
    result = call(*arguments)
    return result if result >= 0 else errno.errorcode[ctypes.get_errno()]


def mask_of(*signals):
    mask = (ctypes.c_ulong * 16)()
    for number in signals:
        mask[0] |= 1 << (number - 1)
    return mask


def by_signals():
    a, me, heard = gate("a"), os.getpid(), []
    signal.signal(signal.SIGUSR1, lambda *_: heard.append("USR1"))
    signal.signal(signal.SIGUSR2, lambda *_: heard.append("USR2"))
    signal.siginterrupt(signal.SIGUSR1, False)
    one = Pollfd(a, select.POLLIN, 77)
    with later(lambda: os.kill(me, signal.SIGUSR1)):
        show("poll", raw(LIBC.poll, ctypes.byref(one), 1, -1), one.revents, heard)
    heard.clear()
    usr1 = {signal.SIGUSR1}
    signal.pthread_sigmask(signal.SIG_BLOCK, usr1)
    with later(lambda: os.kill(me, signal.SIGUSR1)):
        ready = raw(LIBC.ppoll, ctypes.byref(one), 1, None, mask_of())
        show("ppoll", ready, heard, signal.sigpending() & usr1)
    heard.clear()
    os.kill(me, signal.SIGUSR1)
    show("ppoll, pending", raw(LIBC.ppoll, ctypes.byref(one), 1, None, mask_of()), heard)
    heard.clear()
    with later(lambda: (os.kill(me, signal.SIGUSR1), order("a", "+1"))):
        ready = raw(LIBC.ppoll, ctypes.byref(one), 1, None, mask_of(signal.SIGUSR1))
        show("ppoll, blocked", ready, names(one.revents), heard)
    drain()
    bits = (ctypes.c_ulong * 16)()
    bits[a // 64] |= 1 << a % 64
    show("pselect, pending", raw(LIBC.pselect, a + 1, bits, None, None, None, mask_of()), heard)
    heard.clear()
    with later(lambda: os.kill(me, signal.SIGUSR1)):
        bits[a // 64] |= 1 << a % 64
        found = raw(LIBC.pselect, a + 1, bits, None, None, None, mask_of())
        show("pselect", found, heard, signal.pthread_sigmask(signal.SIG_BLOCK, ()) & usr1)
    heard.clear()
    signal.pthread_sigmask(signal.SIG_UNBLOCK, usr1)
    with later(lambda: os.kill(me, signal.SIGUSR2)):
        found = raw(LIBC.pselect, a + 1, bits, None, None, None, mask_of(signal.SIGUSR1))
        show("pselect, another", found, heard)
    drain()


def wrong_masks():
    a, bits = gate("a"), (ctypes.c_ulong * 16)()
    one, now, none = Pollfd(a, select.POLLOUT), (ctypes.c_long * 2)(), mask_of()
    for size in 8, 7:
        for mask in ctypes.addressof(none), 8:
            pair = (ctypes.c_ulong * 2)(mask, size)
            bits[a // 64] = 1 << a % 64
            ppoll = raw(LIBC.syscall, 271, ctypes.byref(one), 1, now, ctypes.c_ulong(mask), size)
            pselect = raw(LIBC.syscall, 270, a + 1, None, bits, None, now, pair)
            show("mask", "there" if mask > 8 else "bad", size, ppoll, pselect)


# ---- epoll ---------------------------------------------------------------------------------------


class Watched:
    """An epoll instance, whose descriptors have names."""

    def __init__(self, **files):
        self.epoll, self.names = select.epoll(), {}
        for name, (fd, events) in files.items():
            self.add(name, fd, events)

    def add(self, name, fd, events):
        self.names[fd] = name
        self.epoll.register(fd, events)

    def wait(self, timeout=-1, room=-1):
        return sorted(
            (self.names[fd], names(events)) for fd, events in self.epoll.poll(timeout, room)
        )


def refused(call, *arguments):
    try:
        call(*arguments)
    except OSError as error:
        return errno.errorcode[error.errno]
    return "done"


def epoll_controls():
    a, b, epoll = gate("a"), gate("b"), select.epoll()
    show("add", refused(epoll.register, a, select.EPOLLIN))
    show("again", refused(epoll.register, a, select.EPOLLIN))
    show("a copy", refused(epoll.register, os.dup(a), select.EPOLLIN))
    show("another open", refused(epoll.register, gate("a"), select.EPOLLIN))
    show("change", refused(epoll.modify, a, select.EPOLLIN | select.EPOLLET))
    show("change another", refused(epoll.modify, b, select.EPOLLIN))
    show("remove", refused(epoll.unregister, a), refused(epoll.unregister, a))
    show("add once more", refused(epoll.register, a, select.EPOLLIN))
    show("first in another", refused(select.epoll().modify, a, select.EPOLLIN))
    show("a directory", refused(epoll.register, gate("", os.O_RDONLY), select.EPOLLIN))
    show("a path", refused(epoll.register, gate("b", os.O_PATH), select.EPOLLIN))
    exclusive = select.EPOLLIN | select.EPOLLEXCLUSIVE
    show("exclusive", refused(epoll.register, b, exclusive), refused(epoll.modify, b, exclusive))
    show("not any more", refused(epoll.modify, b, select.EPOLLIN))
    c = gate("c")
    show("too exclusive", refused(epoll.register, c, exclusive | select.EPOLLONESHOT))
    event = ctypes.create_string_buffer(12)
    show("a pipe", raw(LIBC.epoll_ctl, os.pipe()[0], 1, c, event))
    show("a file", raw(LIBC.epoll_ctl, a, 1, c, event), raw(LIBC.epoll_ctl, a, 3, c, event))
    show("closed", raw(LIBC.epoll_ctl, 999, 1, c, event), raw(LIBC.epoll_ctl, 999, 2, c, event))
    show("no event", raw(LIBC.epoll_ctl, epoll.fileno(), 1, c, None))
    show("no such call", raw(LIBC.epoll_ctl, epoll.fileno(), 7, c, event))


def epoll_before():
    """A thread waits before the first file is there."""
    watched = Watched()
    waiter = threading.Thread(target=lambda: show("before", watched.wait()))
    waiter.start()
    state = f"/proc/self/task/{waiter.native_id}/stat"
    while open(state).read().rpartition(")")[2].split()[0] != "S":
        os.sched_yield()
    watched.add("a", gate("a"), select.EPOLLOUT)
    waiter.join()


def epoll_levels():
    a, b = gate("a"), gate("b")
    watched = Watched(a=(a, select.EPOLLIN))
    show("nothing", watched.wait(0), watched.wait(0.01))
    order("a", "+1")
    show("level", watched.wait(), watched.wait(0))
    os.read(a, 9)
    show("taken", watched.wait(0))
    with later(lambda: order("a", "+1"), 0):
        show("later", watched.wait())
    watched.epoll.modify(a, select.EPOLLOUT)
    show("to write", watched.wait())
    watched.epoll.modify(a, select.EPOLLIN | select.EPOLLOUT | select.EPOLLPRI)
    show("both", watched.wait())
    watched.add("b", b, select.EPOLLOUT)
    show("one at a time", sorted(watched.wait(room=1) + watched.wait(room=1)))
    watched.epoll.unregister(a)
    show("one removed", watched.wait())
    order("b", "full")
    show("none left", watched.wait(0))
    reader, writer = os.pipe()
    watched.add("pipe", reader, select.EPOLLIN)
    with later(lambda: os.write(writer, b"x"), 0):
        show("a pipe", watched.wait())
    watched.add("broken", gate("broken"), select.EPOLLIN)
    show("broken", watched.wait())
    drain()
    show("all", watched.wait())


def epoll_edges():
    a = gate("a")
    order("a", "+1")
    watched = Watched(a=(a, select.EPOLLIN | select.EPOLLET))
    show("edge", watched.wait(), watched.wait(0))
    order("a", "poke")
    show("told again", watched.wait(), watched.wait(0))
    order("a", "+1")
    show("more", watched.wait(), watched.wait(0))
    os.read(a, 9)
    order("a", "poke")
    show("poked", watched.wait(0))
    with later(lambda: order("a", "+1"), 0):
        show("edge later", watched.wait())
    watched.epoll.modify(a, select.EPOLLIN | select.EPOLLET)
    show("changed", watched.wait(), watched.wait(0))
    watched.epoll.modify(a, select.EPOLLIN | select.EPOLLONESHOT)
    show("once", watched.wait(), watched.wait(0))
    order("a", "+1")
    show("no more", watched.wait(0))
    watched.epoll.modify(a, select.EPOLLIN | select.EPOLLONESHOT)
    show("once again", watched.wait(), watched.wait(0))
    drain()


def epoll_lives():
    """Until the last descriptor of the file is closed, in whatever process."""
    a = gate("a")
    watched = Watched(a=(a, select.EPOLLIN))
    order("a", "+1")
    copy = os.dup(a)
    os.close(a)
    show("a copy is left", watched.wait(0))
    os.close(copy)
    show("none is left", watched.wait(0))
    a = gate("a")
    watched = Watched(a=(a, select.EPOLLIN))
    pid = os.fork()
    if pid == 0:
        show("in a child", watched.wait())
        watched.add("b", gate("b"), select.EPOLLOUT)
        show("of a child", watched.wait())
        watched.epoll.unregister(a)
        os._exit(0)
    os.waitpid(pid, 0)
    show("after it", watched.wait(0), refused(watched.epoll.unregister, a))
    watched.add("a", a, select.EPOLLIN)
    program = f"import select; print(len(select.epoll.fromfd({watched.epoll.fileno()}).poll()))"
    for fd in (watched.epoll.fileno(), a):
        os.set_inheritable(fd, True)
    pid = os.fork()
    if pid == 0:
        os.execv(sys.executable, [sys.executable, "-S", "-c", program])
    os.waitpid(pid, 0)
    outer = select.epoll()
    outer.register(watched.epoll.fileno(), select.EPOLLIN)
    show("in another", len(outer.poll()), polled(-1, (watched.epoll.fileno(), select.POLLIN)))
    drain()


def epoll_together():
    """At an edge one of several threads is told."""
    a, found = gate("a"), []
    watched = Watched(a=(a, select.EPOLLIN | select.EPOLLET))
    waiters = [threading.Thread(target=lambda: found.append(watched.wait())) for _ in range(2)]
    for waiter in waiters:
        waiter.start()
    while any(waiter.is_alive() for waiter in waiters):
        order("a", "+1")
        os.sched_yield()
    show("together", found)
    drain()


def epoll_signals():
    a, me, heard = gate("a"), os.getpid(), []
    watched = Watched(a=(a, select.EPOLLIN))
    epoll = watched.epoll.fileno()
    event, usr1 = ctypes.create_string_buffer(12), {signal.SIGUSR1}
    signal.signal(signal.SIGUSR1, lambda *_: heard.append("USR1"))
    signal.siginterrupt(signal.SIGUSR1, False)
    returned, returns = os.pipe()

    def interrupt():
        """Once may be ahead of the call, which would hear of nothing."""
        while polled(0, (returned, select.POLLIN)) == []:
            os.kill(me, signal.SIGUSR1)

    with later(interrupt, 0):
        show("epoll_wait", raw(LIBC.epoll_wait, epoll, event, 1, 60000) or heard)
        os.write(returns, b"x")
    os.close(returned)
    os.close(returns)
    signal.pthread_sigmask(signal.SIG_BLOCK, usr1)
    os.kill(me, signal.SIGUSR1)
    heard.clear()
    show("epoll_pwait", raw(LIBC.epoll_pwait, epoll, event, 1, -1, mask_of()), heard)
    os.kill(me, signal.SIGUSR1)
    show("epoll_pwait2", raw(LIBC.epoll_pwait2, epoll, event, 1, None, mask_of()), heard)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, usr1)
    show(
        "no room", raw(LIBC.epoll_wait, epoll, event, 0, 0), raw(LIBC.epoll_wait, epoll, None, 1, 0)
    )
    order("a", "+1")
    show("no memory", raw(LIBC.epoll_wait, epoll, None, 1, 0))
    drain()


# ---- the end of the file system ------------------------------------------------------------------


def end_of(how):
    a, b = gate("a"), gate("b")
    watched = Watched(a=(a, select.EPOLLIN), b=(b, select.EPOLLIN))
    with later(how):
        show("died", polled(-1, (a, select.POLLIN)))
    show("watched", watched.wait())
    show("dead", polled(-1, (a, select.POLLIN)))
    show("dead, by select", selected([a], [a], [a]))


def itself():
    """The file system ends in the middle of a call."""

    def kill():
        with contextlib.suppress(OSError):
            order("a", "die")

    end_of(kill)


def killed():
    """What has the mountpoint on its command line, and is no interpreter, is what serves it."""

    def is_server(number):
        with contextlib.suppress(OSError):
            words = open(f"/proc/{number}/cmdline").read().split("\0")
            return POINT in words[1:] and not os.path.basename(words[0]).startswith("python")
        return False

    def kill():
        for number in filter(is_server, filter(str.isdigit, os.listdir("/proc"))):
            os.kill(int(number), signal.SIGKILL)

    end_of(kill)


def silent():
    """Once it has said that it cannot tell, it is never asked again."""
    a, fd = gate("a"), gate("silent")
    order("a", "full")
    show("can tell", polled(0, (a, select.POLLIN | select.POLLOUT)))
    both = select.POLLIN | select.POLLOUT
    show("cannot", polled(-1, (fd, both | select.POLLPRI), (a, both), (gate("b"), both)))
    show("is not asked", polled(-1, (a, select.POLLIN | select.POLLOUT)))


def untold():
    """Once it has said so, its files are as those of a disk."""
    epoll = select.epoll()
    show("can tell", refused(epoll.register, gate("a"), select.EPOLLIN))
    show("cannot", refused(epoll.register, gate("silent"), select.EPOLLIN))
    show("another", refused(epoll.register, gate("b"), select.EPOLLIN))
    show("two", polled(-1, (gate("a"), select.POLLIN), (gate("b"), select.POLLIN)))


for part in sys.argv[2:]:
    globals()[part]()
