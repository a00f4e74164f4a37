"""Directories that change while they are listed: whoever makes something of each name that he is
told comes to an end, and has been told each name that was there."""

import os
import shutil

COUNT = 500
NAMES = [f"{number:0150}" for number in range(COUNT)]  # more than one piece of a listing


def fresh():
    shutil.rmtree("d", ignore_errors=True)
    os.mkdir("d")
    for name in NAMES:
        os.close(os.open(f"d/{name}", os.O_CREAT | os.O_WRONLY))


def told(act):
    """How many of the names were told, when all is said; no more than thrice as many are."""
    fresh()
    names = set()
    for rounds, entry in enumerate(os.scandir("d")):
        assert rounds < 3 * COUNT, "no end"
        names.add(entry.name)
        act(f"d/{entry.name}")
    return len(names.intersection(NAMES))


def rename(path):
    os.rename(path, "d/moved")
    os.rename("d/moved", path)


def replace(path):
    os.close(os.open("d/new", os.O_CREAT | os.O_WRONLY))
    os.rename("d/new", path)


def copy(path):
    os.close(os.open(path + "x", os.O_CREAT | os.O_WRONLY))


for act in rename, replace, copy, os.unlink:
    print(act.__name__, told(act))
