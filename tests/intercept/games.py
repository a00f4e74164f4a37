"""What is played in test_games.py: strategies of steps, which programs/game/stage.py takes.

No name, and no target of a symlink, leads out of the directory of a game: what is done there
is done to the machine. ROOT is that directory.
"""

import os

from hypothesis import strategies as st

ACTORS, SLOTS, MAPS = 3, 6, 3
AT_CWD, BAD_FD = -100, -5
EMPTY_PATH, NOFOLLOW, FOLLOW = 0x1000, 0x100, 0x400

one_of = st.sampled_from
actors, slots, maps = (st.integers(0, count - 1) for count in (ACTORS, SLOTS, MAPS))
seeds = st.integers(0, 98)
dirfds = st.just(AT_CWD) | st.just(AT_CWD) | slots | st.just(BAD_FD)
fds, dir_fds = (numbers.map(lambda slot: (slot,)) for numbers in (slots, dirfds))
plain_names = one_of(
    ["a", "b", "c", "d", "d/e", "d/e/f", "d/f", "l", "l/f", "m", "d/..", ".", "a/", "d/", "l/"]
)
odd_names = one_of(
    [
        *("", "n" * 255, "n" * 256, "d/e/../f", "none/x", "a/x", "loop", "loop/x", "d//e/."),
        *("ROOT/a", "ROOT/d/e", "ROOT", "a/.", "d/.", "d/e/..", "l/..", "./" * 2046 + "a"),
        "./" * 2045 + "a",
    ]
)
names = plain_names | plain_names | plain_names | plain_names | odd_names
link_targets = one_of(["a", "d", "none", "loop", "ROOT/d", "d/", "", "t" * 4095, "t" * 4096])

NEAR = [0, 1, 100, 4095, 4096, 4097, 8192, 10_000, 70_000, 131_072, 200_000]
HUGE = [1 << 31, (1 << 32) + 5, 1 << 40]
NEGATIVE, LAST = [-1, -4096, -(1 << 63)], [(1 << 63) - 1]
near = one_of(NEAR)
#: Where a file may end: how much further it may is a file system's own.
ends = near | near | near | near | one_of(HUGE) | one_of(NEGATIVE)
offsets = near | near | near | near | one_of(HUGE) | one_of(NEGATIVE) | one_of(LAST)
maybe_offset = st.none() | offsets
lengths = near | near | one_of(NEGATIVE)
sizes = one_of([0, 1, 2, 10, 100, 4095, 4096, 4097, 8192, 20_000, 70_000])
vectors = st.lists(one_of([0, 1, 3, 100, 4096, 5000]), min_size=1, max_size=5)
#: How much of a buffer is memory: all, so many bytes, none.
there = st.none() | st.none() | one_of([0, 1, 100, 4000, 5000, 5001, -1])
#: Of a write, some: ext4 of Linux 6.18 lets one of none at all make a file longer.
there_some = st.none() | st.none() | one_of([1, 100, 4000, 5000, 5001])
modes = one_of([0o644, 0o600, 0o755, 0o777, 0o1777, 0o2775, 0o4755, 0o2755, 0o000, 0o444, 0o2644])
ids = one_of([-1, 0, 1000, 1001])
keys = one_of([b"user.a", b"user.b", b"user.c"])
at_flags = one_of([0, 0, 0, EMPTY_PATH, NOFOLLOW, EMPTY_PATH | NOFOLLOW])

#: No O_DIRECT: how bytes have to lie for it is a file system's own.
open_flags = st.builds(
    lambda access, more: access | sum(set(more)),
    one_of([os.O_RDWR, os.O_RDWR, os.O_RDWR, os.O_RDONLY, os.O_WRONLY, os.O_PATH, 3]),
    st.lists(
        one_of(
            [
                *(os.O_CREAT, os.O_CREAT, os.O_CREAT, os.O_EXCL, os.O_TRUNC, os.O_APPEND),
                *(os.O_NOFOLLOW, os.O_DIRECTORY, os.O_CLOEXEC, os.O_PATH, os.O_TMPFILE),
                *(os.O_SYNC, os.O_NOATIME, os.O_NONBLOCK),
            ]
        ),
        max_size=3,
    ),
)
NODES = [0o100644, 0o140600, 0o600, 0o20600, 0o40600, 0o120600, 0o160600]
GROUPS = [[], [1000], [1001, 5]]
READS, WRITES = ["readv", "preadv", "preadv2"], ["writev", "pwritev", "pwritev2"]
#: Kind, whence, start and length.
LOCK = (
    st.integers(0, 2),
    one_of([0, 0, 1, 2]),
    one_of([0, 1, 5, 10, 1 << 40]),
    one_of([0, 1, 5, 10]),
)
values = one_of([0, 1, 99])
copy_sizes = sizes | one_of([-1, 1 << 31])
whole_flags = one_of([os.O_TRUNC | os.O_RDWR, os.O_RDONLY, os.O_CREAT | os.O_RDWR | os.O_APPEND])


def step(name, *arguments):
    return st.tuples(actors, st.just(name), st.tuples(*arguments))


def call(*names_and_arguments):
    names, *arguments = names_and_arguments
    return step("call", one_of(names.split()), *arguments)


DESCRIPTORS = [
    *[step("open", slots, dirfds, names, open_flags, modes)] * 7,
    step("openat2", slots, dirfds, names, open_flags, st.just(0), one_of([0, 2, 4, 8, 16, 12])),
    *[step("close", slots)] * 2,
    step("close_range", slots, one_of([0, 4, 8])),
    step("dup", slots, slots, one_of(["dup", "dup2", "dup3"]), one_of([0, os.O_CLOEXEC, 5])),
    step("dup", slots, slots, st.just("fcntl"), one_of([0, 1030])),
    call("fcntl", fds, one_of([1, 3, 8, 9, 10, 11, 999, 1025, 1032]), st.just(0)),
    call("fcntl", fds, one_of([2, 4]), one_of([0, 1, os.O_APPEND, os.O_NONBLOCK])),
    *[step("lock", slots, one_of([5, 6, 6, 36, 37]), *LOCK)] * 3,
    call("flock", fds, one_of([5, 6, 8, 4, 7])),
    step("lseek", slots, ends, one_of([0, 1, 2, 5])),
    step("poll", slots, one_of([1, 4, 5])),
    step("name", slots),
    step("fdinfo", slots),
]

BYTES = [
    *[step("read", slots, sizes, there, maybe_offset)] * 3,
    *[step("write", slots, seeds, sizes, there_some, maybe_offset)] * 5,
    step("readv", one_of(READS), slots, vectors, there, offsets, one_of([0, 0, 1, 2, 4])),
    step(
        "writev",
        one_of(WRITES),
        slots,
        seeds,
        vectors,
        there_some,
        offsets,
        one_of([0, 0, 1, 2, 4]),
    ),
    *[step("copy", slots, maybe_offset, slots, maybe_offset, copy_sizes, st.just(0))] * 2,
    #: Behind where a file may end (s_maxbytes) sendfile fails, though it sends nothing.
    step("sendfile", slots, slots, st.none() | ends, sizes),
    step("splice", slots, maybe_offset, slots, maybe_offset, one_of([1, 100, 5000, 60_000])),
    *[call("ftruncate", fds, ends)] * 2,
    call("truncate", names, ends),
    *[call("fallocate", fds, one_of([0, 1, 2, 3, 3]), offsets, lengths)] * 2,
    call("fsync fdatasync syncfs", fds),
    call("fadvise64", fds, offsets, offsets, one_of([0, 1, 4, 9])),
    call("sync_file_range", fds, offsets, offsets, one_of([0, 1, 7, 8])),
    call("readahead", fds, offsets, st.just(5000)),
]

map_lengths = one_of([1, 4096, 5000, 8192, 20_000, 100_000, 0])
map_offsets = one_of([0, 0, 0, 4096, 8192, 1, -4096, (1 << 63) - 4096])
map_flags = one_of([1, 1, 1, 1, 2, 3, 0])
in_map = one_of([0, 1, 4090, 4096, 8192])
MAPPINGS = [
    *[step("mmap", slots, maps, map_lengths, one_of([1, 3, 3, 3, 2, 0, 5]), map_flags, map_offsets)]
    * 3,
    step("munmap", maps),
    *[step("load", maps, in_map, one_of([1, 10, 4096, 9000]))] * 3,
    *[step("store", maps, seeds, in_map, one_of([1, 10, 4096, 9000]))] * 3,
    step("on_map", st.just("msync"), maps, in_map, one_of([4096, 8192, 0]), st.integers(0, 6)),
    step("on_map", st.just("mprotect"), maps, in_map, one_of([4096, 8192]), one_of([0, 1, 3, 3])),
    step(
        "on_map", st.just("madvise"), maps, in_map, one_of([4096, 8192]), one_of([0, 1, 2, 3, 77])
    ),
    step("mremap", maps, one_of([4096, 8192, 50_000, 0])),
]

NAMES = [
    *[step("stat", dirfds, names, at_flags)] * 4,
    step("stat", slots, st.just(""), st.just(EMPTY_PATH)),
    step(
        "statx", dirfds, names, one_of([0, 0x2000, 0x4000, 0x6000]), one_of([0x7FF, 0x200, 1 << 31])
    ),
    *[call("mkdirat", dir_fds, names, modes)] * 2,
    call("mknodat", dir_fds, names, one_of(NODES), st.just(0)),
    call("symlinkat", link_targets, dir_fds, names),
    *[call("linkat", dir_fds, names, dir_fds, names, one_of([0, FOLLOW, EMPTY_PATH]))] * 2,
    *[call("renameat2", dir_fds, names, dir_fds, names, one_of([0, 0, 1, 2, 2]))] * 2,
    *[call("rename", names, names)] * 2,
    call("unlinkat", dir_fds, names, one_of([0, 0, 0x200, 0x200, 1])),
    call("unlink rmdir", names),
    call("creat", names, st.just(0o644)),
    call("chdir", st.just("ROOT") | st.just("ROOT") | names),
    call("fchdir", fds),
    step(
        "readlink", dirfds, one_of(["l", "m", "a", "d/e/f", ""]), one_of([0, 1, 2, 100, 4096, -1])
    ),
    step("getcwd", one_of([1, 0, -5, 100])),
    *[step("list", slots, one_of([20, 300, 4096]))] * 2,
]

RIGHTS = [
    call("fchmod", fds, modes),
    call("fchmodat fchmodat2", dir_fds, names, modes, at_flags),
    call("fchown", fds, ids, ids),
    call("fchownat", dir_fds, names, ids, ids, at_flags),
    call("faccessat2", dir_fds, names, one_of([0, 1, 2, 4, 7]), at_flags),
    call("faccessat", dir_fds, names, one_of([0, 1, 2, 4, 7])),
    call("utimensat", dir_fds, names | st.just(0), st.just(0), at_flags),
    step("identity", one_of([0, 0, 0, 1000, 1001]), one_of([0, 0, 1000, 1001]), one_of(GROUPS)),
    call("umask", one_of([0, 0o22, 0o77, 0o777, 0o27])),
]

ATTRIBUTES = [
    step("getxattr", st.just("getxattr"), names, keys, one_of([0, 1, 100, 5000])),
    step("getxattr", st.just("fgetxattr"), slots, keys, one_of([0, 1, 100, 5000])),
    step("listxattr", st.just("listxattr"), names, one_of([0, 70_000])),
    step("listxattr", st.just("flistxattr"), slots, one_of([0, 70_000])),
    step(
        "setxattr",
        one_of(["setxattr", "lsetxattr"]),
        names,
        keys,
        seeds,
        values,
        one_of([0, 0, 1, 2]),
    ),
    step("setxattr", st.just("fsetxattr"), slots, keys, seeds, values, one_of([0, 0, 1, 2])),
    call("removexattr", names, keys),
]

PROCESSES = [
    step("limit", st.just("RLIMIT_FSIZE"), one_of([None, None, 50_000, 5000])),
    step("limit", st.just("RLIMIT_NOFILE"), one_of([None, None, 40])),
    *[step("send", slots, actors)] * 2,
    *[step("receive", slots, actors, one_of([0, 0x40000000]))] * 3,
    step("again", slots, actors, slots, open_flags.map(lambda flags: flags & ~os.O_TMPFILE)),
    step("fork", actors),
    step("exec"),
]

#: What is played with: all; what one file's bytes, sizes and mappings have to do with each other.
ALL = st.one_of(*DESCRIPTORS, *BYTES, *MAPPINGS, *NAMES, *RIGHTS, *ATTRIBUTES, *PROCESSES)
ONE_FILE = st.one_of(
    *[step("open", slots, st.just(AT_CWD), st.just("a"), st.just(os.O_RDWR), st.just(0))] * 3,
    *[step("open", slots, st.just(AT_CWD), st.just("a"), whole_flags, st.just(0o644))] * 3,
    *[call("truncate", st.just("a"), near)] * 2,
    *[call("rename", one_of(["a", "b"]), one_of(["a", "b"]))],
    *[step("close", slots)] * 2,
    *[step("stat", slots, st.just(""), st.just(EMPTY_PATH))] * 2,
    *[step("fork", actors)] * 2,
    *BYTES,
    *MAPPINGS,
    *MAPPINGS,
)


def games(steps, count):
    """So many steps; a smaller game has fewer, and the same seeds and names in the others."""
    made = st.lists(st.none() | steps, min_size=count, max_size=count)
    return made.map(lambda game: [step for step in game if step])
