"""A file system of fsspec that behaves as a remote object store, and counts."""

import time

import fsspec


class Counting(fsspec.AbstractFileSystem):
    """A store of whole objects in memory that counts what it is asked, as a remote one would."""

    protocol = "counting"
    cachable = False

    def __init__(self):
        super().__init__()
        self.objects = {"bucket/d/one": b"one", "bucket/big": bytes(range(256)) * 4096}
        self.asked = []
        self.fail = None
        self.times = dict.fromkeys(self.objects, 1e9)

    def _ask(self, what):
        self.asked.append(what)
        if self.fail is not None:
            raise self.fail

    def _info(self, name):
        return {
            "name": name,
            "size": len(self.objects[name]),
            "type": "file",
            "mtime": self.times[name],
        }

    def info(self, path, **_):
        self._ask("info")
        path = self._strip_protocol(path)
        if path in self.objects:
            return self._info(path)
        if any(one.startswith(path + "/") for one in self.objects) or path == "bucket":
            return {"name": path, "size": 0, "type": "directory"}
        raise FileNotFoundError(path)

    def ls(self, path, detail=True, **_):
        self._ask("ls")
        prefix = self._strip_protocol(path) + "/"
        below = {
            one.removeprefix(prefix).split("/")[0] for one in self.objects if one.startswith(prefix)
        }
        if not below and prefix != "bucket/":
            raise FileNotFoundError(path)
        found = [
            self._info(prefix + one)
            if prefix + one in self.objects
            else {"name": prefix + one, "size": 0, "type": "directory"}
            for one in sorted(below)
        ]
        return found if detail else [one["name"] for one in found]

    def mkdir(self, path, create_parents=True, **_):
        pass  # as an object store

    def rmdir(self, path):
        pass

    def rm_file(self, path):
        self._ask("rm")
        self.objects.pop(self._strip_protocol(path), None)

    def cp_file(self, path1, path2, **_):
        data = self.objects.get(self._strip_protocol(path1))
        if data is not None:  # a directory has nothing of its own
            self._put(self._strip_protocol(path2), data)

    def _put(self, path, data):
        self._ask("put")
        self.objects[path] = data
        self.times[path] = time.time()

    def _open(
        self, path, mode="rb", block_size=None, autocommit=True, cache_options=None, **kwargs
    ):
        cls = CountingFile
        return cls(self, path, mode, block_size, autocommit, cache_options=cache_options, **kwargs)


class CountingFile(fsspec.spec.AbstractBufferedFile):
    def _fetch_range(self, start, end):
        self.fs._ask("get")
        return self.fs.objects[self.path][start:end]

    def _initiate_upload(self):
        self.parts = []

    def _upload_chunk(self, final=False):
        self.parts.append(self.buffer.getvalue())
        if final:
            self.fs._put(self.path, b"".join(self.parts))
        return True
