"""Where a container or batch system refuses and limits, a run is as a plain directory there."""

import subprocess
import sys

import needs
import pytest

from tests.cli.conftest import COMMAND

pytestmark = needs.run

FORBID = """
import ctypes, os, struct, sys
code, numbers = int(sys.argv[1]), [int(word) for word in sys.argv[2].split(",")]
libc = ctypes.CDLL(None)
left = list(range(len(numbers) - 1, -1, -1))
tests = [(0x15, jump + 1, 0, number) for jump, number in zip(left, numbers)]
rows = [(0x20, 0, 0, 0), *tests, (6, 0, 0, 0x7FFF0000), (6, 0, 0, 0x50000 | code)]
text = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *row) for row in rows))
program = struct.pack("HxxxxxxQ", len(rows), ctypes.addressof(text))
assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, program) == 0
os.execv(sys.argv[3], sys.argv[3:])
"""

STEPS = """
import os, sys
os.chdir(sys.argv[1])
def tried(call, *arguments):
    try:
        return call(*arguments)
    except OSError as error:
        return error.errno
print(tried(os.mkdir, "d"), tried(os.chdir, "d"))
print(tried(lambda: open("f", "w").write("x")), tried(os.symlink, "f", "l"))
print(*(tried(os.access, *asked) for asked in (("f", os.R_OK), ("f", os.X_OK), ("l", os.R_OK))))
print(tried(os.chmod, "f", 0o4711), oct(os.stat("f").st_mode), tried(os.utime, "f", (1, 2)))
print(tried(os.setxattr, "f", "user.a", b"1"), tried(os.getxattr, "f", "user.a"))
print(tried(os.getxattr, "f", "user.b"), tried(os.listxattr, "f"))
print(tried(os.removexattr, "f", "user.a"), tried(os.removexattr, "f", "user.a"))
print(os.stat("f").st_uid == os.getuid(), sorted(os.listdir(".")))
"""

EPERM, ENOSYS = 1, 38


@pytest.fixture(params=["memfs", "passthrough"])
def mounted(request, tmp_path):
    """The words that run a command with a mount, and the mountpoint."""
    point, below = tmp_path / "m", tmp_path / "below"
    below.mkdir()
    source = f"{below} " if request.param == "passthrough" else ""
    return [*COMMAND, "run", "-m", f"{request.param} {source}{point}", "--"], point


@pytest.mark.parametrize("code", [EPERM, ENOSYS])
@pytest.mark.parametrize(
    "numbers",
    [
        pytest.param("439", id="faccessat2"),
        pytest.param("452", id="fchmodat2"),
        pytest.param("463,464,465,466", id="setxattrat and its like"),
        pytest.param("122,123", id="setfsuid and setfsgid"),
        pytest.param("437,332,436,334,326", id="openat2, statx and others"),
    ],
)
def test_calls_that_a_filter_refuses(mounted, tmp_path, code, numbers):
    """As that of a container which is older than the kernel."""
    words, point = mounted
    plain = tmp_path / "plain"
    plain.mkdir()
    forbid = [sys.executable, "-c", FORBID, str(code), numbers]
    outcomes = [
        subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        for command in (
            [*forbid, sys.executable, "-c", STEPS, plain],
            [*forbid, *words, sys.executable, "-c", STEPS, point],
        )
    ]
    assert outcomes[0].returncode == 0 and outcomes[0].stdout
    assert outcomes[1].stdout == outcomes[0].stdout and outcomes[1].stderr == outcomes[0].stderr
