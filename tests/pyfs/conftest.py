"""Programs for the tests: files that the tests write."""

import os
import textwrap

import pytest

from .programs import TESTS


@pytest.fixture
def script(tmp_path):
    """Writes a program; its path."""

    def write(text, name="program.py", shebang=None):
        path = tmp_path / name
        first = f"#!{shebang}\n" if shebang else ""
        path.write_text(
            f"{first}import sys\nsys.path.insert(0, {TESTS!r})\n{textwrap.dedent(text)}"
        )
        path.chmod(0o755)
        return os.fspath(path)

    return write
