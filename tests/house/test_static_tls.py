"""Our thread-local variables are loaded from %fs (cmake/flags.cmake). glibc has some 1.6 KiB for
such variables of libraries that a process loads later, for ours and for everybody's."""

import subprocess

import pytest

_paths = pytest.importorskip("directfuse._paths")


def sizes():
    """Of thread-local variables, in bytes, by the library's name."""
    for path in sorted(_paths.library().parent.glob("lib*.so*")):
        segments = subprocess.run(
            ["readelf", "-lW", path], capture_output=True, text=True, check=True
        ).stdout
        rows = [line.split() for line in segments.splitlines() if line.split()[:1] == ["TLS"]]
        yield path.name, sum(int(row[5], 16) for row in rows)


def test_a_process_has_room_for_the_thread_local_variables_of_others():
    found = dict(sizes())
    assert "libdirectfuse.so" in found
    assert sum(found.values()) <= 300, found
