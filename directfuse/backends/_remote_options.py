"""The command line of the fsspec backend: fsspec URL MOUNTPOINT [-o OPTION[=VALUE],...].

Options of ours have names of ours; every other one is a storage option of the file system. A dot
makes a dictionary: `-o client_kwargs.region_name=eu`, and with chained URLs `-o s3.anon`.
"""

import errno
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from directfuse._errors import MountError

__all__ = ["Options", "parse", "parse_size"]

USAGE = (
    "usage: fsspec URL MOUNTPOINT [-o OPTION[=VALUE],...], for example: "
    "fsspec s3://bucket /s3 -o anon,ttl=60,endpoint_url=http://localhost:9000"
)


@dataclass(slots=True)
class Options:
    """How a file system of fsspec is shown."""

    ttl: float = 5.0  # seconds that attributes and listings are believed
    max_paths: int = 100_000  # of so many attributes and listings are kept
    block_size: int = 4 << 20  # bytes fetched at once
    cache_blocks: int = 16  # blocks kept of each open file
    cache_type: str = "background"  # fsspec.caching: background, blockcache, readahead, bytes ...
    read_only: bool = False
    create: bool = False  # the directory to mount, when it is not there
    uid: int | None = None  # owner of all files; None: who mounts
    gid: int | None = None
    umask: int = 0o022
    storage: dict[str, Any] = field(default_factory=dict)  # the file system's own


def parse(words: Sequence[str]) -> tuple[str, str, Options, list[str]]:
    """(URL, mountpoint, options, what FUSE itself is to be told) of the words behind "fsspec"."""
    plain: list[str] = []
    settings: list[str] = []
    rest = iter(words)
    for word in rest:
        if word == "-o":
            settings += _split(next(rest, ""))
        elif word.startswith("-o"):
            settings += _split(word[2:])
        elif word.startswith("-"):
            raise _refuse(f"unknown option {word}")
        else:
            plain.append(word)
    if len(plain) != 2:
        raise _refuse("a URL and a mountpoint are wanted")
    options, fuse = _read(settings)
    return plain[0], plain[1], options, fuse


def _refuse(why: str) -> MountError:
    return MountError(errno.EINVAL, f"{why}; {USAGE}", "fsspec")


def _split(text: str) -> list[str]:
    """At the commas; "\\," is one, as in libfuse's options."""
    return [part.replace("\\,", ",") for part in re.split(r"(?<!\\),", text) if part]


_FUSE = {"allow_other", "allow_root", "auto_unmount", "default_permissions", "fsname", "subtype"}


def _read(settings: list[str]) -> tuple[Options, list[str]]:
    options, fuse = Options(), []
    for setting in settings:
        name, equals, value = setting.partition("=")
        if name in _FUSE:
            fuse.append(setting)
        elif name in ("ro", "rw"):
            options.read_only = name == "ro"
        elif name == "create":
            options.create = True
        elif name in _OWN:
            setattr(options, name, _own(name, value))
        else:
            _store(options.storage, name, _value(value) if equals else True)
    if options.read_only:
        fuse.append("ro")
    return options, fuse


def _own(name: str, value: str) -> Any:
    try:
        return _OWN[name](value)
    except ValueError:
        raise _refuse(f"{name}={value} makes no sense") from None


def parse_size(text: str) -> int:
    """Bytes: a number, or one with K, M or G."""
    match = re.fullmatch(r"(\d+)([kKmMgG]?)", text)
    if match is None or int(match[1]) == 0:
        raise ValueError(text)
    return int(match[1]) << {"": 0, "k": 10, "m": 20, "g": 30}[match[2].lower()]


def _seconds(text: str) -> float:
    seconds = float(text)
    if not seconds >= 0:
        raise ValueError(text)
    return seconds


def _count(text: str) -> int:
    if int(text) < 1:
        raise ValueError(text)
    return int(text)


def _cache(text: str) -> str:
    from fsspec.caching import caches

    if text not in caches:
        raise _refuse(f"cache_type is one of {', '.join(map(str, caches))}, not {text!r}")
    return text


_OWN: dict[str, Any] = {
    "ttl": _seconds,
    "max_paths": _count,
    "block_size": parse_size,
    "cache_blocks": _count,
    "cache_type": _cache,
    "uid": int,
    "gid": int,
    "umask": lambda text: int(text, 8),
}


def _value(text: str) -> Any:
    """true, 5, 1.5, null, lists and objects as in JSON; else it is text."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def _store(storage: dict[str, Any], name: str, value: Any) -> None:
    *above, last = name.split(".")
    for part in above:
        storage = storage.setdefault(part, {})
        if not isinstance(storage, dict):
            raise _refuse(f"option {name}: {part} has a value already")
    storage[last] = value
