"""Plays games: reads from its input, a line each, the steps of one, and prints what they answered
and what they left, a line each.

A step is the number of an actor, what it does and the arguments. Actors are processes that take
turns; they fork in each other's place, execute themselves and send each other descriptors. Each
game is played by new ones, in a directory of its own. Some directories above that one are the
game's too: whatever a name with dots in it finds there, it does not leave what is removed.
"""

import ast
import errno
import os
import select
import shutil
import signal
import socket
import stat
import sys

from actor import CLOSED, Actor
from calls import digest, text

ACTORS = 3
MESSAGE_MAX = 1 << 17
SECONDS = 20  #: for an answer; no call waits for anything


def told(end):
    return ast.literal_eval(end.recv(MESSAGE_MAX).decode() or "'gone', ()")


def tell(end, *what):
    end.send(repr(what[0] if len(what) == 1 else what).encode())


# ---- an actor's side -----------------------------------------------------------------------------


class Player:
    """One actor: its number, the ends that all are told by, and the links between them."""

    def __init__(self, number, ends, links, root, slots):
        self.number, self.ends, self.links = number, ends, links
        self.actor = Actor(root, slots)

    def fork(self, number):
        """The child is the actor of that number."""
        if os.fork() == 0:
            self.number = number
            tell(self.ends[number], "born")

    def execute(self):
        """As root again, who can read this file wherever it is."""
        os.setresuid(-1, os.getresuid()[2], -1)
        for number in list(self.actor.maps):
            self.actor.do_munmap(number)
        for end in (*self.ends, *(end for row in self.links for end in row if end)):
            os.set_inheritable(end.fileno(), True)
        ends = [end.fileno() for end in self.ends]
        links = [[end.fileno() if end else -1 for end in row] for row in self.links]
        state = self.number, ends, links, self.actor.root, self.actor.slots
        os.execv(sys.executable, [sys.executable, "-S", __file__, repr(state)])

    def answer(self, name, args):
        if name == "send":
            return self.actor.send(self.links[self.number][args[1]], args[0])
        if name == "receive":
            return self.actor.receive(self.links[self.number][args[1]], args[0], args[2])
        return getattr(self.actor, "do_" + name)(*args)

    def play(self):
        while True:
            name, args = told(self.ends[self.number])
            if name == "gone":  # the stage has ended
                os._exit(1)
            if name == "end":
                tell(self.ends[self.number], "ended")
                os._exit(0)
            if name == "fork":
                self.fork(*args)
            elif name == "exec":
                self.execute()
            else:
                self.say(name, args)

    def say(self, name, args):
        """Errors of the interpreter's own calls are told as the others."""
        try:
            answer = self.answer(name, args)
        except OSError as error:
            answer = errno.errorcode[error.errno]
        tell(self.ends[self.number], answer)


def inherited(state):
    """The player that executed itself."""
    number, ends, links, root, slots = ast.literal_eval(state)
    ends = [socket.socket(fileno=fd) for fd in ends]
    links = [[socket.socket(fileno=fd) if fd >= 0 else None for fd in row] for row in links]
    player = Player(number, ends, links, root, slots)
    tell(ends[number], "executed")
    return player


# ---- the director's side -------------------------------------------------------------------------


def linked():
    """A socket for each two actors, from the one to the other."""
    links = [[None] * ACTORS for _ in range(ACTORS)]
    for one in range(ACTORS):
        for two in range(one):
            links[one][two], links[two][one] = socket.socketpair()
    return links


class Game:
    def __init__(self, root):
        pairs = [socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET) for _ in range(ACTORS)]
        self.ends, theirs = zip(*pairs, strict=True)
        for end in self.ends:
            end.settimeout(SECONDS)
        links = linked()
        for number in range(ACTORS):
            if os.fork() == 0:
                self.become(number, theirs, links, root)
        for end in (*theirs, *(end for row in links for end in row if end)):
            end.close()

    def become(self, number, theirs, links, root):
        for end in self.ends:
            end.close()
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        os.chdir(root)
        os.umask(0o22)
        Player(number, theirs, links, root, {}).play()

    def ask(self, number, name, *args):
        tell(self.ends[number], name, args)
        return told(self.ends[number])

    def act(self, number, name, args):
        if name in ("send", "receive", "fork") and number == args[-1 if name == "fork" else 1]:
            return None
        if name == "fork":
            self.leave(args[0])
            tell(self.ends[number], name, args)
            return told(self.ends[args[0]])
        if name == "again":
            slot, other, which, flags = args
            pid, slots = self.ask(other, "table")
            return self.ask(number, "again", slot, pid, slots.get(which, CLOSED), flags)
        return self.ask(number, name, *args)

    def leave(self, number):
        """Until it is gone, with its files and locks."""
        process = os.pidfd_open(self.ask(number, "table")[0])
        self.ask(number, "end")
        select.select([process], [], [])
        os.close(process)

    def end(self):
        for number, end in enumerate(self.ends):
            self.leave(number)
            end.close()


def prepare(root):
    """a, b and d/f (files of 9,000 bytes), d/e, and links: l to d, m to a, loop to itself."""
    os.makedirs(root + "/d/e")
    os.chmod(root, 0o777)
    for name in ("a", "d/f", "b"):
        with open(f"{root}/{name}", "wb") as file:
            file.write(text(7, 9000))
    for name, target in ("l", "d"), ("m", "a"), ("loop", "loop"):
        os.symlink(target, f"{root}/{name}")


def tree(path, root):
    """What is left below: of each name its mode, its owner and what is in it."""
    found = {}
    for entry in sorted(os.scandir(path), key=lambda entry: entry.name):
        status = entry.stat(follow_symlinks=False)
        content = None
        if entry.is_symlink():
            content = os.readlink(entry.path).replace(root, "ROOT")
        elif stat.S_ISREG(status.st_mode):
            with open(entry.path, "rb") as file:
                content = status.st_size, digest(file.read(1 << 20))
        elif entry.is_dir(follow_symlinks=False):
            content = tree(entry.path, root)
        owner = status.st_uid, status.st_gid, status.st_nlink
        found[entry.name] = oct(status.st_mode), owner, content
    return found


def play(top, steps):
    shutil.rmtree(top, ignore_errors=True)  # of a game that was the end of a stage
    root = top + "/1/2/3"
    prepare(root)
    game = Game(root)
    answers = [game.act(number, name, args) for number, name, args in steps]
    game.end()
    left = tree(root, root)
    shutil.rmtree(top)
    return answers, left


def main():
    if len(sys.argv) > 1:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        inherited(sys.argv[1]).play()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for actors
    for line in sys.stdin:
        print(play(f"{os.getcwd()}/game", ast.literal_eval(line)), flush=True)


if __name__ == "__main__":
    main()
