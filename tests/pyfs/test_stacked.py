"""File systems that mount what they are built on, and mounts while another one starts."""

import signal
import threading

import pytest

import directfuse

pytest.importorskip("pyfuse3")
pytest.importorskip("trio")

from server.forks import expect, in_fork

from .notes import Notes  # needs pyfuse3
from .test_bad_input import run


class Upper(Notes):
    """Shows a file for each of a file system below, which it mounts in one of two ways."""

    def __init__(self, how):
        if how == "mount":
            directfuse.mount(Notes("below"), "/stacked-lower")
        else:
            directfuse.attach("pyfs.notes:Notes below /stacked-lower")
        super().__init__(*directfuse.listdir("/stacked-lower"), "above")


class UpperInit(Notes):
    """Mounts in its event loop."""

    def init(self):
        directfuse.mount(Notes("below"), "/stacked-lower")


@pytest.mark.parametrize(
    ("kind", "names"),
    [("Upper mount", ["above", "below"]), ("Upper attach", ["above", "below"]), ("UpperInit", "a")],
)
@pytest.mark.parametrize("call", ["mount", "attach"])
def test_a_file_system_may_mount_another_while_it_starts(call, kind, names):
    done = run(f"""
        import directfuse, sys
        words, output = sys.argv, sys.stdout
        upper = directfuse.{call}("pyfs.test_stacked:{kind} /stacked-upper")
        print(directfuse.listdir("/stacked-upper"), directfuse.listdir("/stacked-lower"))
        print(sys.argv is words, sys.stdout is output)
    """)
    wanted = f"{[*names]} ['below']\nTrue True\n"
    assert (done.returncode, done.stdout, done.stderr) == (0, wanted, "")


def test_a_forked_child_may_mount_though_another_thread_was_mounting():
    """The child does not have that thread, which had the turn."""
    inside, go = threading.Event(), threading.Event()

    class Slow(Notes):
        def __init__(self):
            inside.set()
            go.wait()
            super().__init__()

    def mount_and_list():
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(10)
        with directfuse.mount(Notes(), "/stacked-child"):
            expect(directfuse.listdir("/stacked-child"), ["a"])

    made = []
    starter = threading.Thread(target=lambda: made.append(directfuse.mount(Slow, "/stacked-slow")))
    starter.start()
    try:
        assert inside.wait(10)
        assert in_fork(mount_and_list) == 0
    finally:
        go.set()
        starter.join()
    made[0].unmount()
