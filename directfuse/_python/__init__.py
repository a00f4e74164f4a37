"""Python file systems as plugins of this process: pyfuse3, fusepy, mfusepy, refuse.

    meaning.py   whether a command line means one
    programs.py  a program made from an object or a command line; its main(), on the plugin's thread
    patches.py   unmodified programs find our functions in the place of those that reach the kernel
    foreign.py   ... and no libfuse of their own
    nodes.py     a pyfuse3 file system: inline or by the event loop
    suspend.py   ... which its code decides
    loops.py     the event loops
    paths.py     a file system of fusepy, mfusepy or refuse
    ends.py      fork, and the end of the interpreter

Behind them is directfuse._pyhost (native/pyhost). Only meaning.py is imported before it is known
that a file system is Python.
"""
