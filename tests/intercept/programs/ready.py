"""Waits for files of gates.c, in the directory $1, and tells what it is told.

Nothing here sleeps to give something time: who changes a gate waits until somebody waits for it.
"""

import contextlib
import ctypes
import errno
import os
import select
import signal
import socket
import sys
import threading

POINT = sys.argv[1]
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


def by_select():
    a, b = gate("a"), gate("b")
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


# ---- the end of the file system ------------------------------------------------------------------


def end_of(how):
    a = gate("a")
    with later(how):
        show("died", polled(-1, (a, select.POLLIN)))
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
    show("cannot", polled(-1, (fd, select.POLLIN | select.POLLOUT | select.POLLPRI)))
    show("is not asked", polled(-1, (a, select.POLLIN | select.POLLOUT)))


for part in sys.argv[2:]:
    globals()[part]()
