"""Random calls on files of gates.c, in the directory $1: those of the seeds $2 to $3.

Of each seed it tells a line: what was done, and what was found. All is done by one thread, and what
a call changes is changed when it returns; so two mounts of the file system tell the same.
"""

import errno
import os
import random
import select
import sys

POINT = sys.argv[1]
EVENTS = [
    select.EPOLLIN,
    select.EPOLLOUT,
    select.EPOLLIN | select.EPOLLOUT,
    select.EPOLLIN | select.EPOLLPRI | select.EPOLLRDNORM,
    0,
]
HOW = [
    *[0] * 3,
    select.EPOLLET,
    select.EPOLLONESHOT,
    select.EPOLLET | select.EPOLLONESHOT,
    select.EPOLLEXCLUSIVE,
]


def gate(name):
    return os.open(f"{POINT}/{name}", os.O_RDWR)


ORDERS = {name: gate(name) for name in "abc"}


def order(name, text):
    os.write(ORDERS[name], text.encode())
    return f"{name} {text}"


def drain():
    for name, fd in ORDERS.items():
        try:
            while os.read(fd, 100):
                pass
        except BlockingIOError:
            order(name, "free")


class Game:
    def __init__(self, seed):
        drain()
        self.random = random.Random(seed)
        self.files = {}  # by a name of ours: descriptors
        self.pipe = os.pipe()
        self.epolls = [select.epoll(), select.epoll()]
        for epoll in self.epolls:
            epoll.register(self.pipe[0], select.EPOLLIN)

    def end(self):
        for fd in (*self.files.values(), *self.pipe):
            os.close(fd)

    def names(self, found):
        name_of = {fd: name for name, fd in self.files.items()} | {self.pipe[0]: "pipe"}
        return sorted((name_of.get(fd, "closed"), events) for fd, events in found)

    def any(self):
        return self.random.choice(sorted(self.files))

    def events(self):
        return self.random.choice(EVENTS) | self.random.choice(HOW)

    def open(self, turn):
        name = f"{self.random.choice('abc')}{turn}"
        self.files[name] = gate(name[0])
        return f"open {name}"

    def dup(self, turn):
        name = self.any()
        self.files[f"{name[0]}{turn}"] = os.dup(self.files[name])
        return f"dup {name}"

    def close(self, turn):
        name = self.any()
        os.close(self.files.pop(name))
        return f"close {name}"

    def add(self, turn):
        name, events, epoll = self.any(), self.events(), self.random.choice(self.epolls)
        return f"add {name} {events:x} {told(epoll.register, self.files[name], events)}"

    def modify(self, turn):
        name, events, epoll = self.any(), self.events(), self.random.choice(self.epolls)
        return f"modify {name} {events:x} {told(epoll.modify, self.files[name], events)}"

    def remove(self, turn):
        name, epoll = self.any(), self.random.choice(self.epolls)
        return f"remove {name} {told(epoll.unregister, self.files[name])}"

    def order(self, turn):
        texts = ["+1", "+2", "poke", "full", "free", "hup"]
        return order(self.random.choice("abc"), self.random.choice(texts))

    def read(self, turn):
        name = self.random.choice("abc")
        return f"read {name} {told(os.read, ORDERS[name], 1)}"

    def write(self, turn):
        return f"write {os.write(self.pipe[1], b'x')}"

    def poll(self, turn):
        poll = select.poll()
        for name in sorted(self.files):
            poll.register(self.files[name], self.random.choice([0, 1, 3, 4, 5]))
        return f"poll {self.names(poll.poll(0))}"

    def select(self, turn):
        fds = [*self.files.values(), self.pipe[0]]
        found = select.select(fds, fds, fds, 0)
        return f"select {[self.names((fd, 0) for fd in some) for some in found]}"

    def wait(self, turn):
        at = self.random.randrange(2)
        return f"wait {at} {self.names(self.epolls[at].poll(0))}"


def told(call, *arguments):
    try:
        return call(*arguments)
    except OSError as error:
        return errno.errorcode[error.errno]


MOVES = [
    *[Game.wait] * 4,
    *[Game.add] * 3,
    *[Game.order] * 2,
    *[Game.read, Game.modify, Game.remove, Game.poll, Game.select],
    *[Game.open, Game.dup, Game.close, Game.write],
]


def play(seed):
    game = Game(seed)
    for turn in range(45):
        move = game.random.choice(MOVES) if len(game.files) > 1 else Game.open
        yield move(game, turn)
    game.end()


for number in range(int(sys.argv[2]), int(sys.argv[3])):
    print(number, *play(number), sep="; ", flush=True)
