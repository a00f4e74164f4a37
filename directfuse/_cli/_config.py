"""The TOML file of --config: which file systems are to be mounted, and how."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from directfuse._cli._failure import Failure

__all__ = ["PLACEMENTS", "RESTARTS", "Config", "check_placement", "read_config"]

PLACEMENTS = ("auto", "inline", "server")
RESTARTS = ("never", "on-failure")

_LIMIT = 1 << 20  # bytes of such a file


@dataclass(frozen=True, slots=True)
class Config:
    """What such a file says."""

    path: Path
    lines: Sequence[str]
    """The command lines of its [[mount]] tables."""
    restart: str
    """Its own key; "never" where that is not there."""


def read_config(path: Path) -> Config:
    """Read once: a pipe gives its words only once (--config <(…))."""
    document = _read(path)
    _check_keys(document, ("mount", "restart"), str(path))
    found = document.get("mount", [])
    if not isinstance(found, list):
        raise Failure(f"{path}: mount is {_kind(found)}; it is written [[mount]], once for each")
    if not found:
        raise Failure(f'{path}: no [[mount]] table; each needs: command = "memfs /scratch"')
    lines = [_configured_line(path, number, table) for number, table in enumerate(found, 1)]
    return Config(path, lines, _one_of(RESTARTS, document, "restart", str(path)))


def _configured_line(config: Path, number: int, table: Any) -> str:
    where = f"{config}: [[mount]] number {number}"
    if not isinstance(table, dict):
        raise Failure(f'{where}: is {_kind(table)}, no table with command = "memfs /scratch"')
    _check_keys(table, ("command", "placement"), where)
    if "command" not in table:
        raise Failure(f'{where}: command is missing; for example: command = "memfs /scratch"')
    command = table["command"]
    if not isinstance(command, str):
        words = f"command is {_kind(command)}, no string"
        raise Failure(f'{where}: {words}; for example: command = "memfs /scratch"')
    if not command.strip():
        raise Failure(f'{where}: command is empty; for example: command = "memfs /scratch"')
    if "\0" in command:
        raise Failure(f"{where}: command holds a NUL character, which ends words of programs")
    check_placement(_one_of(PLACEMENTS, table, "placement", where), where)
    return command


def _check_keys(table: dict[str, Any], known: Sequence[str], where: str) -> None:
    unknown = sorted(set(table) - set(known))
    if unknown:
        raise Failure(f"{where}: unknown key {unknown[0]!r}; known: {', '.join(known)}")


def _one_of(words: Sequence[str], table: dict[str, Any], key: str, where: str) -> str:
    """The value of a key that has a few; the first of them where the key is not there."""
    value = table.get(key, words[0])
    if value not in words:
        said = repr(value) if isinstance(value, str) else _kind(value)
        raise Failure(f"{where}: {key} is {said}, not one of {', '.join(words)}")
    return str(value)


_KINDS = {
    str: "a string",
    bool: "true or false",
    int: "a number",
    float: "a number",
    list: "an array",
    dict: "a table",
}


def _kind(value: object) -> str:
    """What it is in TOML."""
    return _KINDS.get(type(value), "a date or time")


def check_placement(placement: str, where: str = "--placement") -> None:
    """Programs see no file system that lives in another process's own memory."""
    if placement == "inline":
        raise Failure(
            f"{where}: inline is for a process's own mounts (Python, C): programs share a file "
            "system through a mount server; use server or auto"
        )


def _read(config: Path) -> dict[str, Any]:
    import tomllib  # few have such a file

    try:
        # In every locale; with a byte-order mark, as editors of Windows write it.
        return tomllib.loads(_contents(config).decode("utf-8-sig"))
    except OSError as error:
        raise Failure(f"{config}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:  # also a number too long for Python
        raise Failure(f"{config}: not TOML: {error}") from error


def _contents(config: Path) -> bytes:
    """What a device that never ends gives would be taken until there is no memory."""
    with config.open("rb") as file:
        contents = file.read(_LIMIT + 1)
    if len(contents) > _LIMIT:
        raise Failure(f"{config}: has more than {_LIMIT >> 20} MiB, and is no list of mounts")
    return contents
