# The extension module of native/python: hot calls, the raw file, scans, mappings.

import io
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import (
    IO,
    Any,
    AnyStr,
    BinaryIO,
    Generic,
    Literal,
    NoReturn,
    Self,
    TypeAlias,
    final,
    overload,
)

from _typeshed import (
    OpenBinaryMode,
    OpenBinaryModeReading,
    OpenBinaryModeUpdating,
    OpenBinaryModeWriting,
    OpenTextMode,
    ReadableBuffer,
    StrOrBytesPath,
    WriteableBuffer,
)

_Opener: TypeAlias = Callable[[str, int], int]
_File: TypeAlias = StrOrBytesPath | int

# attributes
def stat(
    path: StrOrBytesPath | int, *, dir_fd: int | None = None, follow_symlinks: bool = True
) -> os.stat_result: ...
def lstat(path: StrOrBytesPath, *, dir_fd: int | None = None) -> os.stat_result: ...
def fstat(fd: int) -> os.stat_result: ...
def access(
    path: StrOrBytesPath,
    mode: int,
    *,
    dir_fd: int | None = None,
    effective_ids: bool = False,
    follow_symlinks: bool = True,
) -> bool: ...

# descriptors
def os_open(
    path: StrOrBytesPath, flags: int, mode: int = 0o777, *, dir_fd: int | None = None
) -> int: ...
def close(fd: int) -> None: ...
def read(fd: int, length: int, /) -> bytes: ...
def pread(fd: int, length: int, offset: int, /) -> bytes: ...
def write(fd: int, data: ReadableBuffer, /) -> int: ...
def pwrite(fd: int, buffer: ReadableBuffer, offset: int, /) -> int: ...
def readv(fd: int, buffers: Sequence[WriteableBuffer], /) -> int: ...
def writev(fd: int, buffers: Sequence[ReadableBuffer], /) -> int: ...
def preadv(fd: int, buffers: Sequence[WriteableBuffer], offset: int, flags: int = 0, /) -> int: ...
def pwritev(fd: int, buffers: Sequence[ReadableBuffer], offset: int, flags: int = 0, /) -> int: ...
def lseek(fd: int, position: int, whence: int, /) -> int: ...

_Request: TypeAlias = _File | tuple[_File, int, int | None]

@overload
def read_many(
    requests: Iterable[_Request], into: None = None, *, errors: Literal["raise"] = "raise"
) -> list[bytes]: ...
@overload
def read_many(
    requests: Iterable[_Request], into: None = None, *, errors: str
) -> list[bytes | OSError]: ...
@overload
def read_many(
    requests: Iterable[_Request],
    into: WriteableBuffer | list[WriteableBuffer] | tuple[WriteableBuffer, ...],
    *,
    errors: Literal["raise"] = "raise",
) -> list[int]: ...
@overload
def read_many(
    requests: Iterable[_Request],
    into: WriteableBuffer | list[WriteableBuffer] | tuple[WriteableBuffer, ...],
    *,
    errors: str,
) -> list[int | OSError]: ...

# file objects: the overloads are those of builtins.open in typeshed
@overload
def open(
    file: _File,
    mode: OpenTextMode = "r",
    buffering: int = -1,
    encoding: str | None = None,
    errors: str | None = None,
    newline: str | None = None,
    closefd: bool = True,
    opener: _Opener | None = None,
) -> io.TextIOWrapper: ...
@overload
def open(
    file: _File,
    mode: OpenBinaryMode,
    buffering: Literal[0],
    encoding: None = None,
    errors: None = None,
    newline: None = None,
    closefd: bool = True,
    opener: _Opener | None = None,
) -> FileIO: ...
@overload
def open(
    file: _File,
    mode: OpenBinaryModeUpdating,
    buffering: Literal[-1, 1] = -1,
    encoding: None = None,
    errors: None = None,
    newline: None = None,
    closefd: bool = True,
    opener: _Opener | None = None,
) -> io.BufferedRandom: ...
@overload
def open(
    file: _File,
    mode: OpenBinaryModeWriting,
    buffering: Literal[-1, 1] = -1,
    encoding: None = None,
    errors: None = None,
    newline: None = None,
    closefd: bool = True,
    opener: _Opener | None = None,
) -> io.BufferedWriter: ...
@overload
def open(
    file: _File,
    mode: OpenBinaryModeReading,
    buffering: Literal[-1, 1] = -1,
    encoding: None = None,
    errors: None = None,
    newline: None = None,
    closefd: bool = True,
    opener: _Opener | None = None,
) -> io.BufferedReader: ...
@overload
def open(
    file: _File,
    mode: OpenBinaryMode,
    buffering: int = -1,
    encoding: None = None,
    errors: None = None,
    newline: None = None,
    closefd: bool = True,
    opener: _Opener | None = None,
) -> BinaryIO: ...
@overload
def open(
    file: _File,
    mode: str,
    buffering: int = -1,
    encoding: str | None = None,
    errors: str | None = None,
    newline: str | None = None,
    closefd: bool = True,
    opener: _Opener | None = None,
) -> IO[Any]: ...

class FileIO(io.RawIOBase, BinaryIO):
    name: Any
    @property
    def mode(self) -> str: ...
    @property
    def closefd(self) -> bool: ...
    @property
    def descriptor(self) -> int: ...
    def read(self, size: int | None = -1, /) -> bytes | Any: ...
    def readinto(self, buffer: WriteableBuffer, /) -> int | None: ...
    def write(self, b: ReadableBuffer, /) -> int: ...
    def truncate(self, size: int | None = None, /) -> int: ...
    def seek(self, pos: int, whence: int = 0, /) -> int: ...
    def fileno(self) -> NoReturn: ...
    def __enter__(self) -> Self: ...

# directories
@overload
def listdir(path: str | os.PathLike[str] | None = None) -> list[str]: ...
@overload
def listdir(path: bytes | os.PathLike[bytes]) -> list[bytes]: ...
@overload
def listdir(path: int) -> list[str]: ...
@overload
def scandir(path: None = None) -> ScandirIterator[str]: ...
@overload
def scandir(path: int) -> ScandirIterator[str]: ...
@overload
def scandir(path: AnyStr | os.PathLike[AnyStr]) -> ScandirIterator[AnyStr]: ...

@final
class ScandirIterator(Iterator[DirEntry[AnyStr]], Generic[AnyStr]):
    def __next__(self) -> DirEntry[AnyStr]: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *exception: object) -> None: ...
    def close(self) -> None: ...

@final
class DirEntry(Generic[AnyStr]):
    @property
    def name(self) -> AnyStr: ...
    @property
    def path(self) -> AnyStr: ...
    def inode(self) -> int: ...
    def is_dir(self, *, follow_symlinks: bool = True) -> bool: ...
    def is_file(self, *, follow_symlinks: bool = True) -> bool: ...
    def is_symlink(self) -> bool: ...
    def is_junction(self) -> bool: ...
    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result: ...
    def __fspath__(self) -> AnyStr: ...

# memory
@final
class Mapping:
    def __new__(
        cls, fd: int, length: int, prot: int = 1, flags: int = 1, offset: int = 0
    ) -> Self: ...
    @property
    def closed(self) -> bool: ...
    def flush(self) -> None: ...
    def close(self) -> None: ...
    def __len__(self) -> int: ...
    @overload
    def __getitem__(self, key: int) -> int: ...
    @overload
    def __getitem__(self, key: slice) -> bytes: ...
    @overload
    def __setitem__(self, key: int, value: int) -> None: ...
    @overload
    def __setitem__(self, key: slice, value: ReadableBuffer) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *exception: object) -> None: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...

# for _mount.py: native/python/gil.h
def expect_mount(begin: bool, /) -> None: ...
def quiesce(seconds: float, /) -> None: ...
def forked() -> None: ...
def declare_prompt(mount_id: int, /) -> None: ...
def attempt(error: int, /, *call: Any) -> tuple[int, bytes | None, bytes | None]: ...
def explain_by(function: Callable[[OSError], object], /) -> None: ...
def listen_by(function: Callable[[str], object], /) -> None: ...
