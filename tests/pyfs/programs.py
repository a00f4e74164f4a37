"""Texts of unmodified programs, as users of these libraries write them."""

import os

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # where they find pyfs

PYFUSE3 = """
    import argparse, trio, pyfuse3
    from pyfs.notes import Notes

    def main():
        parser = argparse.ArgumentParser()
        parser.add_argument("mountpoint")
        parser.add_argument("--names", default="a")
        options = parser.parse_args()
        print("a word of the program")
        pyfuse3.init(Notes(*options.names.split(",")), options.mountpoint, {"fsname=notes"})
        try:
            trio.run(pyfuse3.main)
        finally:
            pyfuse3.close()

    if __name__ == "__main__":
        main()
"""

PYFUSE3_ASYNCIO = """
    import asyncio, pyfuse3, pyfuse3.asyncio
    from pyfs.notes import Notes

    class Slow(Notes):
        async def read(self, fh, off, size):
            await asyncio.sleep(0)
            return await super().read(fh, off, size)

    pyfuse3.asyncio.enable()
    try:
        pyfuse3.init(Slow(), sys.argv[1])
        asyncio.run(pyfuse3.main())
        pyfuse3.close()
    finally:
        pyfuse3.asyncio.disable()
"""

PYFUSE3_ON_A_THREAD = """
    import threading, trio, pyfuse3
    from pyfs.notes import Notes

    def begin():
        pyfuse3.init(Notes(), sys.argv[1])

    def serve():
        {first}
        trio.run(pyfuse3.main)
        {last}

    {before}
    thread = threading.Thread(target=serve{how})
    thread.start()
    {then}
"""

MFUSEPY = """
    import mfusepy
    from pyfs.memory import Memory

    class Fs(Memory, mfusepy.Operations):
        pass

    mfusepy.FUSE(Fs(), sys.argv[1], foreground=True, {options})
"""

FUSEPY_ON_A_THREAD = """
    import fuse, threading
    from pyfs.memory import Memory

    class Fs(Memory, fuse.Operations):
        pass

    def serve():
        fuse.FUSE(Fs(), sys.argv[1], foreground=True)

    thread = threading.Thread(target=serve{how})
    thread.start()
    {then}
"""

FUSEPY = """
    import fuse
    from pyfs.memory import Memory

    class Fs(fuse.LoggingMixIn, Memory, fuse.Operations):
        pass

    fuse.FUSE(Fs(), sys.argv[1], foreground=True, nothreads=True)
"""
