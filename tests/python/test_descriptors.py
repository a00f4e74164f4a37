"""Calls on descriptors: bytes that move, sizes that make no sense, descriptors that are gone."""

import errno
import fcntl
import gc
import mmap
import os
import select

import pytest

import directfuse


@pytest.fixture
def fd(root, opened):
    """An open file with ten bytes, read and write, at position 0."""
    number = opened(f"{root}/f")
    directfuse.pwrite(number, b"0123456789", 0)
    return number


def code_of(function, *args):
    """The errno a call raises, or None."""
    try:
        function(*args)
    except OSError as error:
        return error.errno
    return None


def test_numbers_are_far_from_real_ones(fd):
    assert fd >= 1 << 30


def test_read_and_position(fd):
    assert directfuse.read(fd, 4) == b"0123"
    assert directfuse.lseek(fd, 0, os.SEEK_CUR) == 4
    assert directfuse.pread(fd, 3, 8) == b"89"
    assert directfuse.lseek(fd, 0, os.SEEK_CUR) == 4
    assert directfuse.lseek(fd, -1, os.SEEK_END) == 9
    assert directfuse.read(fd, 100) == b"9"
    assert directfuse.read(fd, 100) == b""


def test_write(fd):
    assert directfuse.write(fd, bytearray(b"ab")) == 2
    assert directfuse.write(fd, memoryview(b"xcdx")[1:3]) == 2
    assert directfuse.pwrite(fd, b"end", 8) == 3
    assert directfuse.pread(fd, 100, 0) == b"abcd4567end"


def test_vectors_at_no_offset_are_at_the_position(fd):
    """As os.preadv and os.pwritev, which call preadv2(2) and pwritev2(2)."""
    buffer = bytearray(3)
    assert directfuse.preadv(fd, [buffer], -1) == directfuse.lseek(fd, 0, os.SEEK_CUR) == 3
    assert buffer == b"012"
    assert directfuse.pwritev(fd, [b"a", b"b"], -1) == 2
    assert directfuse.lseek(fd, 0, os.SEEK_CUR) == 5
    assert directfuse.pread(fd, 100, 0) == b"012ab56789"


def test_write_takes_bytes_only(fd):
    with pytest.raises(TypeError):
        directfuse.write(fd, "text")
    with pytest.raises(TypeError):
        directfuse.pwrite(fd, 5, 0)
    with pytest.raises(BufferError):
        directfuse.write(fd, memoryview(bytes(8))[::2])


def test_vectors(fd):
    one, many = bytearray(3), [bytearray(1) for _ in range(20)]
    assert directfuse.readv(fd, [one, bytearray(2)]) == 5
    assert one == b"012"
    assert directfuse.preadv(fd, many, 2) == 8
    assert b"".join(many[:8]) == b"23456789"
    assert directfuse.writev(fd, (b"AB", bytearray(b"C"))) == 3
    assert directfuse.pwritev(fd, [b"x"] * 20, 0) == 20
    assert directfuse.pread(fd, 100, 0) == b"x" * 20
    assert directfuse.readv(fd, []) == 0
    assert code_of(directfuse.readv, fd, [bytearray(1)] * 2000) == errno.EINVAL


def test_vectors_say_what_is_wrong_and_hold_nothing(fd):
    good = bytearray(4)
    with pytest.raises(TypeError):
        directfuse.readv(fd, [good, "text"])
    with pytest.raises(BufferError):
        directfuse.readv(fd, [good, b"read-only"])
    good.extend(b"a buffer still exported could not grow")
    assert code_of(directfuse.preadv, fd, [good], 0, os.RWF_NOWAIT) == errno.EOPNOTSUPP
    assert code_of(directfuse.preadv, fd, [good], -2) == errno.EINVAL


def test_readinto(mem, opened, tmp_path):
    """os has it from Python 3.14 on."""
    (tmp_path / "real").write_bytes(b"abcdef")
    directfuse.open(f"{mem}/f", "wb").write(b"abcdef")
    for path in (str(tmp_path / "real"), f"{mem}/f"):
        fd, buffer = opened(path, os.O_RDONLY), bytearray(4)
        assert (directfuse.readinto(fd, buffer), buffer) == (4, b"abcd")
        assert (directfuse.readinto(fd, memoryview(buffer)[1:]), buffer) == (2, b"aefd")
        assert directfuse.readinto(fd, buffer) == directfuse.readinto(fd, bytearray()) == 0
        with pytest.raises(TypeError):
            directfuse.readinto(fd, b"read-only")
        with pytest.raises(TypeError):
            directfuse.readinto(fd, "text")


@pytest.mark.parametrize(
    ("call", "args"),
    [
        ("read", (-1,)),
        ("pread", (-1, 0)),
        ("pread", (1, -1)),
        ("pwrite", (b"x", -1)),
        ("lseek", (-1, os.SEEK_SET)),
        ("lseek", (0, 99)),
        ("ftruncate", (-1,)),
        ("posix_fallocate", (0, 0)),
    ],
)
def test_sizes_and_offsets_that_make_no_sense(fd, call, args):
    assert code_of(getattr(directfuse, call), fd, *args) == errno.EINVAL
    assert directfuse.pread(fd, 100, 0) == b"0123456789"


def test_counts_beyond_memory(fd):
    with pytest.raises(MemoryError):
        directfuse.read(fd, 1 << 60)
    with pytest.raises(OverflowError):
        directfuse.read(fd, 1 << 70)
    with pytest.raises(OverflowError):
        directfuse.pread(fd, 1, 1 << 70)
    assert directfuse.read(fd, 1 << 28) == b"0123456789"
    assert directfuse.pread(fd, 5, (1 << 62)) == b""


CLOSED = [
    ("read", (1,)),
    ("pread", (1, 0)),
    ("write", (b"x",)),
    ("pwrite", (b"x", 0)),
    ("readv", ([bytearray(1)],)),
    ("readinto", (bytearray(1),)),
    ("lseek", (0, 0)),
    ("fstat", ()),
    ("stat", ()),
    ("close", ()),
    ("fsync", ()),
    ("fdatasync", ()),
    ("ftruncate", (0,)),
    ("truncate", (0,)),
    ("fchmod", (0,)),
    ("chmod", (0,)),
    ("fchown", (0, 0)),
    ("chown", (0, 0)),
    ("utime", ()),
    ("listdir", ()),
    ("scandir", ()),
    ("dup", ()),
    ("dup2", (1 << 30,)),
    ("fstatvfs", ()),
    ("statvfs", ()),
    ("getxattr", ("user.x",)),
    ("listxattr", ()),
    ("flock", (fcntl.LOCK_SH,)),
    ("fcntl", (fcntl.F_GETFL,)),
    ("posix_fadvise", (0, 0, 0)),
    ("posix_fallocate", (0, 1)),
    ("fallocate", (0, 0, 1)),
    ("open", ()),
]


@pytest.mark.parametrize(("call", "args"), CLOSED)
def test_a_closed_descriptor(root, call, args):
    number = directfuse.os_open(f"{root}/f", os.O_RDWR | os.O_CREAT)
    directfuse.close(number)
    assert code_of(getattr(directfuse, call), number, *args) == errno.EBADF
    assert code_of(getattr(directfuse, call), (1 << 31) - 1, *args) == errno.EBADF


def test_modes_are_kept(root, opened):
    opened(f"{root}/f")
    reader, writer = opened(f"{root}/f", os.O_RDONLY), opened(f"{root}/f", os.O_WRONLY)
    assert code_of(directfuse.write, reader, b"x") == errno.EBADF
    assert code_of(directfuse.read, writer, 1) == errno.EBADF


def test_dup_shares_the_position(fd, opened):
    other = directfuse.dup(fd)
    directfuse.lseek(fd, 5, os.SEEK_SET)
    assert directfuse.read(other, 2) == b"56"
    target = directfuse.dup(fd)
    assert directfuse.dup2(other, target) == target
    directfuse.close(other)
    assert directfuse.read(target, 1) == b"7"
    directfuse.close(target)
    assert code_of(directfuse.dup2, fd, 1) == errno.EXDEV
    for closed, target in ((other, 1), (other, fd), (9999, fd)):
        assert code_of(directfuse.dup2, closed, target) == errno.EBADF
    assert directfuse.dup2(fd, fd) == fd


def test_flags(fd):
    assert directfuse.fcntl(fd, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDWR
    assert directfuse.fcntl(fd, fcntl.F_GETFD) == fcntl.FD_CLOEXEC
    directfuse.fcntl(fd, fcntl.F_SETFL, os.O_APPEND)
    directfuse.lseek(fd, 0, os.SEEK_SET)
    directfuse.write(fd, b"!")
    assert directfuse.pread(fd, 100, 0) == b"0123456789!"


def test_locks(root, fd, opened):
    other = opened(f"{root}/f")
    directfuse.flock(fd, fcntl.LOCK_EX)
    assert code_of(directfuse.flock, other, fcntl.LOCK_SH | fcntl.LOCK_NB) == errno.EWOULDBLOCK
    directfuse.flock(fd, fcntl.LOCK_UN)
    directfuse.flock(other, fcntl.LOCK_SH | fcntl.LOCK_NB)
    directfuse.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB, 4, 2)
    with pytest.raises(ValueError, match="lockf"):
        directfuse.lockf(fd, fcntl.LOCK_NB)
    with directfuse.open(f"{root}/f", "r+") as file:  # file objects too, without a fileno()
        directfuse.flock(file, fcntl.LOCK_SH)
        directfuse.fsync(file)


@pytest.mark.parametrize(
    "numbers", [("x",), (1.5,), (1 << 70,), (-5,), (0, "y"), (0, 0, 1 << 40), (0, 0, 5), (0, 0, -1)]
)
def test_a_lock_of_odd_numbers(fd, tmp_path, numbers):
    """As fcntl.lockf; of text it was struct.error."""
    with open(tmp_path / "f", "w") as file:
        raised = []
        for call, number in ((fcntl.lockf, file.fileno()), (directfuse.lockf, fd)):
            with pytest.raises((OSError, TypeError, OverflowError)) as caught:
                call(number, fcntl.LOCK_EX, *numbers)
            raised.append((caught.type, getattr(caught.value, "errno", None)))
    assert raised[0] == raised[1]


def result_of(function, *arguments):
    try:
        return function(*arguments)
    except (OSError, ValueError) as error:
        return type(error)


def test_odd_kinds_of_locks(fd, tmp_path):
    """As fcntl.lockf: of several the first one, and nothing beside LOCK_UN."""
    kinds = [one | other for one in (0, 1, 2, 8) for other in (0, 1, 2, 4, 8, 64)]
    with open(tmp_path / "f", "w+") as file:
        plain = [result_of(fcntl.lockf, file.fileno(), kind) for kind in kinds]
    assert [result_of(directfuse.lockf, fd, kind) for kind in kinds] == plain
    assert {None, ValueError} <= set(plain)


def test_poll(fd):
    assert directfuse.poll([(fd, select.POLLIN | select.POLLOUT)], 0) == [
        (fd, select.POLLIN | select.POLLOUT)
    ]
    read_end, write_end = os.pipe()
    assert directfuse.poll([(read_end, select.POLLIN)], 0) == []
    assert code_of(directfuse.poll, [(fd, 1), (read_end, 1)], 0) == errno.EINVAL
    os.close(read_end)
    os.close(write_end)


def test_copy_file_range(root, fd, opened):
    target = opened(f"{root}/g")
    assert directfuse.copy_file_range(fd, target, 4, 2) == 4
    assert directfuse.pread(target, 100, 0) == b"2345"
    assert directfuse.copy_file_range(fd, target, 100, 0, 1) == 10
    assert directfuse.lseek(fd, 0, os.SEEK_CUR) == 0
    real = os.open(os.devnull, os.O_WRONLY)
    assert code_of(directfuse.copy_file_range, fd, real, 1) == errno.EXDEV
    os.close(real)


def test_where_blocks_lie_is_not_told(fd):
    """As behind FUSE; filefrag and bmaptool ask."""
    fiemap = 0xC020660B
    assert code_of(directfuse.ioctl, fd, fiemap, bytearray(32)) == errno.EOPNOTSUPP


def test_truncate_and_allocate(root, fd):
    directfuse.ftruncate(fd, 3)
    directfuse.truncate(f"{root}/f", 5)
    assert directfuse.pread(fd, 100, 0) == b"012\0\0"
    directfuse.posix_fallocate(fd, 0, 8)
    assert directfuse.fstat(fd).st_size == 8
    directfuse.posix_fadvise(fd, 0, 0, os.POSIX_FADV_SEQUENTIAL)
    directfuse.fsync(fd)
    directfuse.fdatasync(fd)


def test_unlinked_files_live_on(root, fd):
    directfuse.unlink(f"{root}/f")
    assert directfuse.pread(fd, 100, 0) == b"0123456789"
    directfuse.pwrite(fd, b"x", 10)
    assert directfuse.fstat(fd).st_size == 11


# ---- memory ------------------------------------------------------------------------------------


def test_borrow(fd, tmp_path):
    with directfuse.borrow(fd) as view:
        assert view == b"0123456789" and view.readonly
    assert bytes(directfuse.borrow(fd, 3, 8)) == b"89"
    assert bytes(directfuse.borrow(fd, 3, 100)) == b""
    path = tmp_path / "real"
    path.write_bytes(bytes(5000) + b"real")
    with open(path, "rb") as file:
        assert bytes(directfuse.borrow(file.fileno(), offset=5000)) == b"real"
    with pytest.raises(ValueError, match="negative"):
        directfuse.borrow(fd, -1)


def test_mmap_reads(fd):
    with directfuse.mmap(fd, 0, prot=1) as mapped:
        assert len(mapped) == 10 and mapped[2] == ord("2") and mapped[3:5] == b"34"
        assert bytes(memoryview(mapped)) == b"0123456789"
        with pytest.raises(TypeError):
            mapped[0] = 1
    assert mapped.closed
    with pytest.raises(ValueError, match="closed"):
        len(mapped)


def test_mmap_writes_back(fd):
    mapped = directfuse.mmap(fd, 6)
    mapped[2:4] = b"AB"
    mapped.flush()
    assert directfuse.pread(fd, 100, 0) == b"01AB456789"
    mapped[5] = ord("D")
    view = memoryview(mapped)
    with pytest.raises(BufferError):
        mapped.close()
    view.release()
    mapped.close()
    mapped.close()
    assert directfuse.pread(fd, 100, 0) == b"01AB4D6789"


def test_mmap_says_what_is_wrong(fd):
    with pytest.raises(ValueError, match="greater than file size"):
        directfuse.mmap(fd, 11)
    with pytest.raises(OverflowError):
        directfuse.mmap(fd, -1)
    with pytest.raises(ValueError, match="access"):
        directfuse.mmap(fd, 1, access=99)
    with pytest.raises(ValueError, match="both access and flags, prot"):
        directfuse.mmap(fd, 1, prot=mmap.PROT_READ, access=mmap.ACCESS_WRITE)
    assert code_of(directfuse.mmap, fd, 1, 1, 1, 0, 5) == errno.EINVAL
    directfuse.ftruncate(fd, 0)
    with pytest.raises(ValueError, match="cannot mmap an empty file"):
        directfuse.mmap(fd, 0)


def test_memory_that_is_of_no_file_of_ours(fd):
    """Anonymous memory is that of mmap.mmap, which looks at the file's size all the same."""
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    with directfuse.mmap(fd, 10, flags) as memory:
        assert memory[:] == bytes(10)
    with pytest.raises(ValueError, match="greater than file size"):
        directfuse.mmap(fd, 11, flags)
    assert code_of(directfuse.Mapping, fd, 10, mmap.PROT_READ, flags) == errno.EINVAL
    assert code_of(directfuse.Mapping, 0, 10) == errno.EBADF


def test_a_view_outlives_its_file(root, fill):
    path = fill(f"{root}/view", b"bytes that stay")
    number = directfuse.os_open(path, os.O_RDONLY)
    view = directfuse.borrow(number)
    directfuse.close(number)
    directfuse.unlink(path)
    gc.collect()
    assert bytes(view) == b"bytes that stay"
    view.release()
