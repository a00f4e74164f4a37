"""What fcntl(2) says of leases and watched directories where none is given."""

import errno
import fcntl
import os


def tell(fd, *words):
    try:
        print(*words, fcntl.fcntl(fd, *words))
    except OSError as error:
        print(*words, errno.errorcode[error.errno])


os.mkdir("d")
open("f", "w").close()
for name, how in ("f", os.O_RDONLY), ("f", os.O_RDWR), ("f", os.O_PATH), ("d", os.O_RDONLY):
    fd = os.open(name, how)
    print(name, how)
    tell(fd, fcntl.F_GETLEASE)
    tell(fd, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    tell(fd, fcntl.F_SETLEASE, 7)
    tell(fd, fcntl.F_NOTIFY, 0)
    if name == "f":
        tell(fd, fcntl.F_NOTIFY, fcntl.DN_CREATE)
    else:
        tell(fd, fcntl.F_SETLEASE, fcntl.F_RDLCK)
