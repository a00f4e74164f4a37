"""Mappings of many sizes, from many offsets, of files with and without zeros: do they show it?"""

import mmap
import os
import random

PIECE = 256 << 10  # what is asked for at a time
SIZES = [1, 4095, PIECE - 1, PIECE, PIECE + 1, 3 * PIECE, (4 << 20) + 5, (16 << 20) + PIECE + 9]


def contents(size, draw):
    """Random bytes, some whole pieces of zeros, and zeros in the middle of one."""
    data = bytearray(draw.randbytes(size))
    for at in range(PIECE, size, 3 * PIECE):
        end = min(at + PIECE, size)
        data[at:end] = bytes(end - at)
    middle = size // 2
    data[middle : middle + 5000] = bytes(len(data[middle : middle + 5000]))
    return bytes(data)


def main():
    draw, checked = random.Random(6), 0
    for size in SIZES:
        data = contents(size, draw)
        with open("file", "wb") as file:
            file.write(data)
        for kind in mmap.MAP_PRIVATE, mmap.MAP_SHARED:
            for offset in {0, mmap.PAGESIZE, PIECE, size // 2} & set(range(0, size, mmap.PAGESIZE)):
                fd = os.open("file", os.O_RDONLY)
                shown = mmap.mmap(fd, size - offset, kind, mmap.PROT_READ, offset=offset)
                checked += shown[:] == data[offset:]
                shown.close()
                os.close(fd)
        os.remove("file")
    print("as they are", checked)


main()
