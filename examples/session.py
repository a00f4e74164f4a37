"""A session on memfs: files that live in this process and cost a function call.

python examples/session.py
"""

import directfuse

with directfuse.mount("memfs /mem"):
    directfuse.mkdir("/mem/notes")
    with directfuse.open("/mem/notes/today.txt", "w") as file:
        file.write("no mount, no root, no system call\n")

    directfuse.symlink("today.txt", "/mem/notes/latest")
    with directfuse.open("/mem/notes/latest") as file:
        print(file.read(), end="")

    for entry in directfuse.scandir("/mem/notes"):
        kind = "link" if entry.is_symlink() else "file"
        print(f"{entry.name}: {kind}, {entry.stat().st_size} bytes")

    # A path outside every mount is the ordinary one.
    print("same call, real file:", directfuse.stat("/etc/hostname").st_size > 0)

try:
    directfuse.stat("/mem/notes")
except FileNotFoundError as error:
    print("unmounted:", error.filename)
