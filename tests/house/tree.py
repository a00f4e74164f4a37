"""The repository as the house rules see it: its files, its lists, its prototypes."""

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NATIVE = ROOT / "native"
HEADER = NATIVE / "include/directfuse.h"

CODE = ("*.c", "*.h", "*.py", "*.pyi", "*.def", "*.map", "*.cmake", "CMakeLists.txt")


#: Directories that an installation makes in the source, whose files are not the project's.
MADE = {".venv", "build"}


def files(*patterns: str, under: str = ".") -> list[Path]:
    """Files of the repository, tracked or about to be."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z", "--", under]
    try:
        listed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout
        names = {ROOT / name for name in listed.decode().split("\0") if name}
    except (OSError, subprocess.CalledProcessError):  # an unpacked source distribution
        found = (ROOT / under).rglob("*")
        names = {path for path in found if not MADE.intersection(path.relative_to(ROOT).parts)}
    return sorted(
        path for path in names if path.is_file() and any(path.match(part) for part in patterns)
    )


def shown(path: Path) -> str:
    return str(path.relative_to(ROOT))


def without_comments(text: str) -> str:
    """C source without comments and string contents."""
    return re.sub(
        r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"",
        lambda match: '""' if match[0].startswith('"') else " ",
        text,
        flags=re.DOTALL,
    )


def prototypes(text: str) -> dict[str, str]:
    """Every function declared in C text: name -> prototype in one spelling."""
    text = re.sub(r"^\s*#(?:[^\n\\]|\\.|\\\n)*", "", without_comments(text), flags=re.MULTILINE)
    text = re.sub(r'extern\s+""\s*\{', "", text)
    text = re.sub(r"__attribute__\s*\(\(.*?\)\)", " ", text, flags=re.DOTALL)
    text = re.sub(r"\{[^{}]*\}", ";", text)
    found = {}
    for statement in text.split(";"):
        match = re.fullmatch(
            r"\s*((?:[A-Za-z_]\w*[\s*]+)+)(df_\w+)\s*\((.*)\)\s*(?:DF_\w+\s*)?",
            statement,
            re.DOTALL,
        )
        if match and "typedef" not in match[1]:
            kind = re.sub(r"\b(?:extern|DF_API|DF_PUBLIC)\b", "", match[1])
            found[match[2]] = spelled(f"{kind} {match[2]}({match[3]})")
    return found


def spelled(prototype: str) -> str:
    """One spelling for one meaning: spaces, and the stars' place."""
    text = " ".join(prototype.split())
    text = re.sub(r"\s*([*(),\[\]])\s*", r"\1", text)
    return text.replace("(void)", "()").strip()


def exported_by_map(path: Path) -> dict[str, set[str]]:
    """A version script: node -> the names after `global:`."""
    text = re.sub(r"/\*.*?\*/|#[^\n]*", " ", path.read_text(), flags=re.DOTALL)
    nodes = {}
    for node, body in re.findall(r"([\w.]*)\s*\{(.*?)\}", text, re.DOTALL):
        shared = re.search(r"global\s*:(.*?)(?:local\s*:|$)", body, re.DOTALL)
        names = shared[1].split(";") if shared else []
        nodes[node] = {name.strip() for name in names if name.strip()}
    return nodes


def exported_by(library: Path) -> set[tuple[str, str]]:
    """Dynamic symbols that a library defines: (name, version), by nm(1)."""
    command = ["nm", "-D", "--defined-only", "--with-symbol-versions", str(library)]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    found = set()
    for line in lines:
        *_, kind, name = line.split()
        if kind in "TtDdBbRrVvWwi":
            bare, _, version = name.replace("@@", "@").partition("@")
            found.add((bare, version))
    return found
