"""Programs that show a tree of files, and their command lines."""

from .conftest import need


def commands(name, source, request, tmp_path, point="m"):
    """The command line of a program that shows `source` at tmp_path/point, and that path."""
    point = tmp_path / point
    if name.startswith("squashfuse"):
        program, _, compressor = name.partition(":")
        need(program, "mksquashfs")
        return [program, request.getfixturevalue("image")(compressor), point], point
    need(name)
    if name in ("fuse-zip", "archivemount"):
        need("zip")
        point.mkdir()  # archivemount itself wants to see its mountpoint
        return [name, request.getfixturevalue("archive"), point], point
    if name in ("bindfs", "disorderfs"):
        point.mkdir()  # bindfs itself wants to see its mountpoint
        return [name, source, point], point
    if name == "fuseiso":
        need("genisoimage")
        return [name, "-n", request.getfixturevalue("iso"), point], point  # -n: no list of mounts
    if name == "convmvfs":
        return [name, "-o", f"srcdir={source}", point], point
    if name == "mhddfs":
        more = point.with_name(f"{point.name}-more")
        more.mkdir()
        return [name, f"{source},{more}", point], point
    if name == "mount.posixovl":
        return [name, "-S", source, point], point
    if name == "sshfs":
        point.mkdir()  # sshfs itself wants to see its mountpoint
        options, host = request.getfixturevalue("ssh")
        return [name, *options, f"{host}{source}", point], point
    if name == "unionfs":
        return [name, f"{source}=RO", point], point
    assert name == "fuse-overlayfs"
    return [name, "-o", f"lowerdir={source}", point], point


PROGRAMS = [
    "squashfuse:gzip",
    "squashfuse:xz",
    "squashfuse:zstd",
    "squashfuse:lz4",
    "squashfuse_ll:zstd",
    "bindfs",
    "unionfs",
    "fuse-overlayfs",
    "fuse-zip",
    "archivemount",
    "fuseiso",
    "disorderfs",  # C++, with std::cout and std::clog of its own
    "convmvfs",
    "mhddfs",
    "mount.posixovl",
    "sshfs",
]
