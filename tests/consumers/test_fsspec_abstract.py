"""fsspec's own suite for file systems, in full, over memfs and over a directory."""

import pytest

pytest.importorskip("fsspec", reason="fsspec is not installed (pip install directfuse[consumers])")
from fsspec.tests import abstract

import directfuse
from directfuse.filesystem import DirectFuseFileSystem

# Their names for tests come from fsspec; a class here binds them to a file system.


class Fixtures(abstract.AbstractFixtures):
    @pytest.fixture
    def fs(self, root):
        return DirectFuseFileSystem(auto_mkdir=True)

    @pytest.fixture
    def fs_path(self, root):
        return root

    @pytest.fixture(params=["memfs", "passthrough"])
    def root(self, request, tmp_path):
        source = tmp_path / "source-directory"
        source.mkdir()
        words = ["memfs"] if request.param == "memfs" else ["passthrough", source]
        with directfuse.mount([*words, tmp_path / "mount"]) as mounted:
            yield mounted.mountpoint
            assert mounted.stats().calls > 0


class TestCopy(Fixtures, abstract.AbstractCopyTests):
    pass


class TestGet(Fixtures, abstract.AbstractGetTests):
    pass


class TestPut(Fixtures, abstract.AbstractPutTests):
    pass


class TestOpen(Fixtures, abstract.AbstractOpenTests):
    pass


class TestPipe(Fixtures, abstract.AbstractPipeTests):
    pass
