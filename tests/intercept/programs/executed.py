"""What execve(2) makes of odd files: each is made in the working directory and executed; its
errno, or its end, is printed, and of scripts the words that their interpreter is given. With a
number as argument so many random files as well."""

import ctypes
import errno
import os
import random
import resource
import struct
import sys

libc = ctypes.CDLL(None, use_errno=True)

# exit(7): mov $60, %eax; mov $7, %edi; syscall
EXIT = b"\xb8\x3c\x00\x00\x00\xbf\x07\x00\x00\x00\x0f\x05"
# Before that, write(1, argv[0], envp[0] - argv[0]): mov 8(%rsp), %rsi; mov (%rsp), %rax;
# mov 16(%rsp, %rax, 8), %rdx; sub %rsi, %rdx; mov $1, %edi; mov %edi, %eax; syscall
SHOW = bytes.fromhex("488b742408 488b0424 488b54c410 4829f2 bf01000000 89f8 0f05") + EXIT
PAGE, BASE = 4096, 0x400000
LOAD, DYNAMIC, INTERP, STACK = 1, 2, 3, 0x6474E551
R, RX, RW, RWX = 4, 5, 6, 7


def header(kind=2, entry=BASE + 0x800, count=1, **other):
    f = {"magic": b"\x7fELF", "width": 2, "data": 1, "machine": 62, "phoff": 64, "phentsize": 56}
    f |= other
    ident = f["magic"] + bytes([f["width"], f["data"], 1, 0]) + bytes(8)
    return ident + struct.pack(
        "<HHIQQQIHHHHHH", kind, f["machine"], 1, entry, f["phoff"], 0, 0, 64,
        f["phentsize"], count, 64, 0, 0,
    )  # fmt: skip


def part(flags=RX, offset=0, at=BASE, filesz=0x1000, memsz=None, align=PAGE, kind=LOAD):
    memsz = filesz if memsz is None else memsz
    return struct.pack("<IIQQQQQQ", kind, flags, offset, at, at, filesz, memsz, align)


def image(*segments, size=0x3000, code=0x800, does=EXIT, **fields):
    begin = header(count=fields.pop("count", len(segments)), **fields) + b"".join(segments)
    body = bytearray(begin.ljust(size, b"\0"))
    body[code : code + len(does)] = does
    return bytes(body)


def independent(*segments, entry=0x800, **fields):
    return image(*segments, kind=3, entry=entry, **fields)


def with_interpreter(name, size=None, place=0x900, **fields):
    """Its interpreter's name stands at `place`."""
    size = len(name) if size is None else size
    body = bytearray(
        image(part(R, place, BASE + place, size, align=1, kind=INTERP), part(), **fields)
    )
    body[place : place + len(name)] = name
    return bytes(body)


def make(name, body, mode=0o755):
    with open(name, "wb") as file:
        file.write(body)
    os.chmod(name, mode)
    return name


def execute(name, argv=None, envp=None, dirfd=None, flags=0):
    """Of a child: its errno, exit status or signal."""
    reads, writes = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reads)
        words = [name] if argv is None else argv
        vector = (ctypes.c_char_p * (len(words) + 1))(*[os.fsencode(w) for w in words], None)
        env = (ctypes.c_char_p * 2)(b"A=b", None) if envp is None else envp
        if dirfd is None:
            libc.execve(os.fsencode(name), vector if argv != [] else None, env)
        else:
            libc.syscall(322, dirfd, os.fsencode(name), vector, env, flags)
        os.write(writes, errno.errorcode.get(ctypes.get_errno(), "?").encode())
        os._exit(0)
    os.close(writes)
    said = os.read(reads, 99)
    os.close(reads)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return said.decode() or (f"status {status}" if status >= 0 else f"signal {-status}")


def show(what, *args, **options):
    sys.stdout.flush()
    print(f"{what}: {execute(*args, **options)}")
    sys.stdout.flush()


plain = make("plain", image(part()))
make("words", image(part(), does=SHOW))
make("loader", independent(part(at=0)))
make("unloadable", independent(part(at=0, offset=0x123)))
os.mkdir("directory")
make("not-executable", image(part()), 0o644)
here = os.fsencode(os.getcwd())

ELF = {
    "plain": image(part()),
    "position-independent": independent(part(at=0)),
    "independent at an address": independent(part(at=0x10000), entry=0x10800),
    "independent, p_align 0": independent(part(at=0, align=0)),
    "independent, p_align 1": independent(part(at=0, align=1)),
    "independent, p_align 3": independent(part(at=0, align=3)),
    "independent, p_align 2 MiB": independent(part(at=0, align=2 << 20)),
    "independent, p_align 1 GiB": independent(part(at=0, align=1 << 30)),
    "independent, p_align of no address": independent(part(at=0, align=1 << 62)),
    "p_align 0": image(part(align=0)),
    "p_align 2 MiB": image(part(align=2 << 20)),
    "no segment": image(count=0),
    "no PT_LOAD": image(part(R, kind=STACK)),
    "many headers":
        image(*[part(R, kind=STACK)] * 127, part(), size=0x4000, code=0x3800, entry=BASE),
    "truncated headers": image(part())[:80],
    "headers behind the end": image(part(), phoff=0x100000),
    "headers far behind the end": image(part(), phoff=1 << 63),
    "headers at an odd place": image(part(), phoff=65),
    "short file": image(part())[:30],
    "empty": b"",
    "one byte": b"\x7f",
    "magic only": b"\x7fELF",
    "phentsize": image(part(), phentsize=55),
    "too many segments": image(part(), count=65535),
    "relocatable": image(part(), kind=1),
    "core file": image(part(), kind=4),
    "another machine": image(part(), machine=183),
    "32 bits": image(part(), width=1),
    "big-endian": image(part(), data=2),
    "class 0": image(part(), width=0),
    "entry 0": image(part(), entry=0),
    "entry outside": image(part(), entry=0x123456789000),
    "entry in the kernel": image(part(), entry=(1 << 64) - PAGE),
    "not executable segment": image(part(R)),
    "execute only": image(part(1)),
    "no rights": image(part(0)),
    "all rights": image(part(RWX)),
    "offset that does not fit": image(part(offset=1)),
    "address that does not fit": image(part(at=BASE + 1)),
    "offset and address alike": image(part(offset=0x10, at=BASE + 0x10, filesz=0xFF0)),
    "filesz above memsz": image(part(filesz=0x1000, memsz=0x800)),
    "filesz behind the file": image(part(filesz=0x100000)),
    "segment behind the file": image(part(), part(R, 0x100000, at=BASE + 0x2000)),
    "bss": image(part(), part(RW, 0x1000, BASE + 0x1000, filesz=0x10, memsz=0x20000)),
    "bss alone": image(part(), part(RW, at=BASE + 0x5000, filesz=0, memsz=0x1234)),
    "bss of no page": image(part(), part(RW, 0x1000, BASE + 0x1000, filesz=0x10, memsz=0x18)),
    "bss that is read only":
        image(part(), part(R, 0x1000, BASE + 0x1000, filesz=0x10, memsz=0x2000)),
    "executable bss": image(part(RX, filesz=0x900, memsz=0x5000)),
    "nothing of a segment": image(part(), part(R, at=BASE + 0x5000, filesz=0, memsz=0)),
    "huge memsz": image(part(), part(RW, at=BASE + 0x5000, filesz=0, memsz=1 << 46)),
    "huge memsz, independent":
        independent(part(at=0), part(RW, at=0x5000, filesz=0, memsz=1 << 46)),
    "memsz that wraps": image(part(), part(RW, at=BASE + 0x5000, filesz=0, memsz=(1 << 64) - PAGE)),
    "memsz above user memory": image(part(), part(RW, at=BASE + 0x5000, filesz=0, memsz=1 << 48)),
    "filesz that wraps": image(part(filesz=(1 << 64) - 1)),
    "segment in the kernel": image(part(), part(R, at=(1 << 64) - (2 << 20))),
    "segment at 0": image(part(), part(R, at=0)),
    "segment at 64 KiB": image(part(), part(R, at=0x10000)),
    "segments that overlap": image(part(filesz=0x2000), part(RW, 0x1000, BASE + 0x1000)),
    "segments that share a page":
        image(part(filesz=0x900), part(RWX, 0x900, at=BASE + 0x900, filesz=0x100)),
    "segments in one place": image(part(), part()),
    "segments downwards": image(part(R, at=BASE + 0x1000, offset=0x1000), part()),
    "overlap, independent": independent(part(at=0, filesz=0x2000), part(RW, 0x1000, 0x1000)),
    "shared page, independent":
        independent(part(at=0, filesz=0x900), part(RWX, 0x900, at=0x900, filesz=0x100)),
    "segments downwards, independent":
        independent(part(R, at=0x11000, offset=0x1000), part(at=0x10000), entry=0x10800),
    "gap": image(part(), part(R, 0x1000, at=BASE + 0x100000)),
    "gap, independent": independent(part(at=0), part(R, 0x1000, at=0x100000)),
    "where our own loader may be": image(part(), part(R, at=0x3A0000000000)),
    "high": image(part(at=0x7F0000000000), entry=0x7F0000000800),
    "highest": image(part(at=0x7FFFFFFFE000), entry=0x7FFFFFFFE800),
    "above the highest": image(part(at=0x7FFFFFFFF000), entry=0x7FFFFFFFF800),
    "executable stack": image(part(), part(RWX, kind=STACK)),
    "stack without rights": image(part(), part(0, kind=STACK)),
    "interpreter": with_interpreter(b"./loader\0"),
    "interpreter by its whole path": with_interpreter(here + b"/loader\0"),
    "interpreter of an independent one": with_interpreter(b"./loader\0"),
    "interpreter without NUL": with_interpreter(b"./loader"),
    "interpreter of one byte": with_interpreter(b"\0"),
    "interpreter without a name": with_interpreter(b"\0\0"),
    "interpreter with two NULs": with_interpreter(b"./loader\0\0"),
    "interpreter of no size": with_interpreter(b"./loader\0", 0),
    "interpreter of PATH_MAX": with_interpreter(b"./" * 2043 + b"./loader\0", place=0x1000),
    "interpreter above PATH_MAX": with_interpreter(b"./" * 2044 + b"./loader\0", place=0x1000),
    "interpreter of a huge size": with_interpreter(b"./loader\0", 1 << 62),
    "interpreter behind the end": with_interpreter(b"./loader\0", place=0x2000)[:0x2000],
    "missing interpreter": with_interpreter(b"./nothing\0"),
    "interpreter that is a directory": with_interpreter(b"./directory\0"),
    "interpreter below a file": with_interpreter(b"./plain/x\0"),
    "interpreter not executable": with_interpreter(b"./not-executable\0"),
    "interpreter that is no ELF file": with_interpreter(b"./script\0"),
    "interpreter that is empty": with_interpreter(b"./nil\0"),
    "interpreter that is short": with_interpreter(b"./short\0"),
    "interpreter at a fixed address": with_interpreter(b"./fixed\0"),
    "interpreter of another machine": with_interpreter(b"./foreign\0"),
    "interpreter that cannot be loaded": with_interpreter(b"./unloadable\0"),
    "interpreter without segments": with_interpreter(b"./hollow\0"),
    "interpreter that is a device": with_interpreter(b"/dev/null\0"),
    "interpreter outside": with_interpreter(b"/lib64/ld-linux-x86-64.so.2\0"),
}  # fmt: skip

make("script", b"#!./plain\n")
make("nil", b"")
make("short", b"\x7fELF")
make("fixed", image(part(at=0x20000000), entry=0x20000800))
make("foreign", image(part(), machine=183))
make("hollow", image(part(R, kind=STACK), kind=3))

for what, body in ELF.items():
    show(what, make("elf", body))

LINES = {
    "": b"", "newline": b"\n", "blank": b"  \t\n", "blanks to the end": b" " * 300,
    "path": b"./words\n", "no newline": b"./words", "blank before": b" \t./words\n",
    "blank behind": b"./words \t \n", "argument": b"./words a\n", "arguments": b"./words a  b\t\n",
    "NUL": b"\0", "NUL behind": b"./words\0x\n", "NUL before": b"\0./words\n",
    "NUL after a blank": b"./words \0 a\n", "CR": b"./words\r\n", "directory": b"./directory\n",
    "missing": b"./nothing\n", "below a file": b"./words/x\n",
    "not executable": b"./not-executable\n",
    "slash": b"/\n", "dot": b".\n", "device": b"/dev/null\n", "name alone": b"words\n",
    "foreign": b"./foreign\n", "empty file": b"./nil\n", "ELF without segments": b"./hollow\n",
    "second line": b"\n./words\n",
}  # fmt: skip
for what, line in LINES.items():
    show(f"#! {what}", make("line", b"#!" + line))
for size in (*range(250, 260), 511, 512, 1022, 1024, 4096):
    for end in (b"", b"\n", b" a\n", b"\0", b" "):
        line = b"./" * ((size - 8) // 2) + (b"/" if size % 2 else b"") + b"./words"
        show(f"#! of {len(line)} {end!r}", make("line", b"#!" + line[-size:] + end))
    show(f"#! argument of {size}", make("line", b"#!./words " + b"a" * size + b"\n"))
last = "words"
for depth in range(1, 9):
    name = make(f"chain{depth}", b"#!./" + last.encode() + b" a%d\n" % depth)
    show(f"#! chain of {depth}", name)
    last = name
make("loop", b"#!./loop\n")
show("#! of itself", "loop")

make("sparse", image(part()))
os.truncate("sparse", 1 << 35)
limits = resource.getrlimit(resource.RLIMIT_AS)
resource.setrlimit(resource.RLIMIT_AS, (1 << 34, limits[1]))  # it is not to be mapped whole
show("sparse file", "sparse")
resource.setrlimit(resource.RLIMIT_AS, limits)
os.unlink("sparse")

show("no argv", plain, argv=[])
show("no argv of a script", "line", argv=[])
show("no envp", plain, envp=ctypes.c_void_p(0))
show("bad envp", plain, envp=ctypes.c_void_p(1))
show("word of 128 KiB", plain, argv=["a" * (128 * 1024 - 1)])
show("word above 128 KiB", plain, argv=["a" * (128 * 1024)])
show("many words", plain, argv=["a"] * 100000)
show("too many words", plain, argv=["a"] * 1000000)
show("directory", "directory")
show("not executable", "not-executable")
show("missing", "nothing")
show("below a file", "plain/x")
show("trailing slash", "plain/")
show("empty name", "")
show("name of 255", "n" * 255)
show("name of 256", "n" * 256)
show("path of 4095", "./" * 2045 + "plain")
show("path of 4096", "./" * 2046 + "plain")
os.symlink("plain", "link")
os.symlink("link2", "link2")
os.symlink("nothing", "dangling")
show("link", "link")
show("link of itself", "link2")
show("dangling link", "dangling")
os.mkfifo("fifo", 0o755)
show("fifo", "fifo")
CHECKS = (0x10000, 0x10100, 0x11000)  # AT_EXECVE_CHECK: nothing is executed, errno is 0
top = os.open(".", os.O_RDONLY)
for flag in (0, 0x1000, 0x100, 0x1100, 0x2000, 1 << 31, *CHECKS):
    for name in ("plain", "link", "", "nothing", "line", "not-executable"):
        show(f"execveat {name!r} {flag:x}", name, dirfd=top, flags=flag)
found = os.open("plain", os.O_RDONLY)
os.set_inheritable(found, True)
for mode in (os.O_RDONLY, os.O_PATH, os.O_RDONLY | os.O_CLOEXEC):
    for file in ("plain", "line", "not-executable", "directory", "foreign"):
        fd = os.open(file, mode)
        os.set_inheritable(fd, mode != os.O_RDONLY | os.O_CLOEXEC)
        show(f"execveat of {file} {mode:x}", "", dirfd=fd, flags=0x1000)
        os.close(fd)
show("execveat of -1", "", dirfd=-1, flags=0x1000)
show("execveat of -1 by name", "plain", dirfd=-1)
show("execveat below a file", "x", dirfd=found)
show("execveat here", "", dirfd=-100, flags=0x1000)
number = int(sys.argv[1]) if len(sys.argv) > 1 else 0
draw = random.Random(14)
ODD = [0, 1, 2, 3, 5, 0xFF, 0x1000, 0x7FFF, 0xFFFF, 0x10000, BASE, (1 << 64) - 1]
ODD += [1 << bit for bit in (31, 32, 47, 63)]
for i in range(number):
    body = bytearray(draw.choice(list(ELF.values())) or image(part()))
    for _ in range(draw.randrange(1, 4)):
        if len(body) < 200:
            break
        at, width = draw.choice([(a, w) for w in (1, 2, 4, 8) for a in range(4, 176, w)])
        body[at : at + width] = (draw.choice(ODD) & ((1 << 8 * width) - 1)).to_bytes(
            width, "little"
        )
    make("elf", bytes(body))
    show(f"random {i}", "elf")
