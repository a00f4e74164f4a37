"""Random accesses to mapped files by several processes, one after another: what each of them sees.

mapped.py SEED STEPS: the same seed prints the same lines wherever mmap(2) is what it should be.
"""

import mmap
import os
import random
import signal
import sys
import threading
import zlib

MIB = 1 << 20
PAGE = mmap.PAGESIZE
SIZES = (17 * MIB + 5, 24 * MIB, 33 * MIB + PAGE)
RW = mmap.PROT_READ | mmap.PROT_WRITE
KINDS = {
    "shared": (mmap.MAP_SHARED, RW),
    "seen": (mmap.MAP_SHARED, mmap.PROT_READ),
    "own": (mmap.MAP_PRIVATE, RW),
    "own seen": (mmap.MAP_PRIVATE, mmap.PROT_READ),
}


def summed(data):
    return zlib.crc32(data)


class Worker:
    """A process with some files open and mapped."""

    def __init__(self, names):
        self.fds = [os.open(name, os.O_RDWR) for name in names]
        self.maps = {}

    def size(self, which):
        return os.fstat(self.fds[which]).st_size

    def unmap(self, which):
        for key in [key for key in self.maps if key[0] == which]:
            self.maps.pop(key).close()

    def mapped(self, which, kind):
        """The mapping, as long as the file is now: others may have made it longer."""
        memory = self.maps.get((which, kind))
        if memory is None or len(memory) < self.size(which):
            flags, prot = KINDS[kind]
            self.maps[which, kind] = mmap.mmap(self.fds[which], 0, flags=flags, prot=prot)
        return self.maps[which, kind]

    def look(self, which, kind, offset, size):
        return summed(self.mapped(which, kind)[offset : offset + size])

    def store(self, which, kind, offset, data):
        self.mapped(which, kind)[offset : offset + len(data)] = data
        return len(data)

    def read(self, which, offset, size):
        return summed(os.pread(self.fds[which], size, offset))

    def write(self, which, offset, data):
        return os.pwrite(self.fds[which], data, offset)

    def copy(self, which, kind, offset, size, to):
        """write(2) out of mapped memory, and read(2) into it."""
        with memoryview(self.mapped(which, kind)) as memory:
            done = os.pwrite(self.fds[to], memory[offset : offset + size], offset)
            return done, os.preadv(
                self.fds[which], [memory[offset : offset + 100]] * (kind in ("shared", "own")), 7
            )

    def sync(self, which):
        return [self.maps[key].flush() for key in sorted(self.maps) if key[0] == which] != []

    def forked(self, which, kind, offset, data, end):
        """A child with a copy of this process stores there and ends, or is killed."""
        self.mapped(which, kind)
        child = os.fork()
        if child == 0:
            try:
                self.store(which, kind, offset, data)
                if end:
                    os.kill(os.getpid(), signal.SIGKILL)
            finally:
                os._exit(0)
        return os.waitpid(child, 0)[1], self.look(which, kind, offset, len(data) + 9)

    def threads(self, which, kind):
        """Each looks at every page, from another place on."""
        memory = self.mapped(which, kind)
        sums = [0] * 3

        def scan(index):
            pages = range(0, len(memory), 16 * PAGE)
            start = len(pages) * index // len(sums)
            order = [*pages[start:], *pages[:start]]
            sums[index] = sum(memory[at] * (at + 1) for at in order)

        all_of_them = [threading.Thread(target=scan, args=(i,)) for i in range(len(sums))]
        for thread in all_of_them:
            thread.start()
        for thread in all_of_them:
            thread.join()
        return sums

    def resize(self, which, size):
        os.ftruncate(self.fds[which], size)
        return self.size(which)


def serve(names, questions, answers):
    """A process: a line of Python for each step, and its answer."""
    worker = Worker(names)
    for line in questions:
        answer = eval(line, {"w": worker})
        answers.write(f"{answer}\n")
        answers.flush()


class Process:
    def __init__(self, names):
        ours, theirs = os.pipe(), os.pipe()
        self.child = os.fork()
        if self.child == 0:
            os.close(ours[1])
            os.close(theirs[0])
            serve(names, os.fdopen(ours[0]), os.fdopen(theirs[1], "w"))
            os._exit(0)
        os.close(ours[0])
        os.close(theirs[1])
        self._to, self._from = os.fdopen(ours[1], "w"), os.fdopen(theirs[0])

    def __call__(self, line):
        self._to.write(line + "\n")
        self._to.flush()
        return self._from.readline().strip()

    def end(self):
        self._to.close()
        os.waitpid(self.child, 0)


def step(rng, sizes):
    """Which files shrink under a mapping is left out: what is behind the end gives SIGBUS."""
    which = rng.randrange(len(sizes))
    kind = rng.choice(list(KINDS))
    writable = rng.choice(["shared", "shared", "own"])
    offset = rng.randrange(sizes[which] - 3 * MIB)
    if rng.random() < 0.3:  # where chunks meet
        offset = min(offset // (2 * MIB) * 2 * MIB + 2 * MIB - 50, sizes[which] - 3 * MIB)
    size = rng.choice([1, 100, PAGE, 300_000, 5 * MIB // 2])
    data = f"bytes([{rng.randrange(256)}]) * {size}"
    return which, rng.choice(
        [
            f"w.look({which}, {kind!r}, {offset}, {size})",
            f"w.look({which}, {kind!r}, {offset}, {size})",
            f"w.store({which}, {writable!r}, {offset}, {data})",
            f"w.store({which}, {writable!r}, {offset}, {data})",
            f"w.read({which}, {offset}, {size})",
            f"w.write({which}, {offset}, {data})",
            f"w.copy({which}, {kind!r}, {offset}, {size}, {rng.randrange(len(sizes))})",
            f"w.sync({which})",
            f"w.unmap({which})",
            f"w.forked({which}, {writable!r}, {offset}, {data}, {rng.random() < 0.5})",
            f"w.threads({which}, {kind!r})",
            "resize",
        ]
    )


def main(seed, steps):
    rng = random.Random(seed)
    sizes = list(SIZES)
    names = [f"f{i}" for i in range(len(sizes))]
    for name, size in zip(names, sizes, strict=True):
        with open(name, "wb") as file:
            for at in range(0, size, MIB):
                file.write(rng.randbytes(997) * 1052 if at // MIB % 5 else bytes(MIB))
            file.truncate(size)
    processes = [Process(names) for _ in range(3)]
    for _ in range(steps):
        which, line = step(rng, sizes)
        if line == "resize":
            size = rng.randrange(17 * MIB, 35 * MIB)
            for process in processes:
                process(f"w.unmap({which})")
            sizes[which] = min(size, sizes[which]) if rng.random() < 0.5 else size
            line = f"w.resize({which}, {sizes[which]})"
        who = rng.randrange(len(processes))
        print(who, line[:70], processes[who](line))
        sizes = [os.stat(name).st_size for name in names]  # copies make files longer
    for process in reversed(
        processes
    ):  # a later one has copies of the descriptors of an earlier one
        process.end()
    for name in names:
        with open(name, "rb") as file:
            print(name, summed(file.read()))


main(int(sys.argv[1]), int(sys.argv[2]))
