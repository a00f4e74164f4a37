"""Programs that run code in a subinterpreter which shares the GIL with the main one."""

import textwrap

_PROGRAM = """
try:
    import _interpreters as interpreters
    other = interpreters.create("legacy")
except ImportError:  # before Python 3.13
    import _xxsubinterpreters as interpreters
    other = interpreters.create(isolated=False)
failed = interpreters.run_string(other, TEXT)
interpreters.destroy(other)
assert not failed, failed.formatted
"""


def in_subinterpreter(text):
    """The program."""
    return _PROGRAM.replace("TEXT", repr(textwrap.dedent(text)))
