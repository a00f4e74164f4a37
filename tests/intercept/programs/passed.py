"""passed.py - files whose descriptors are sent by processes that then end, or run another program:
the receiver has them, and nobody has others any longer."""

import fcntl
import os
import signal
import socket
import sys

signal.alarm(4)  # a lock that a process had is free when it has ended
here, there = socket.socketpair()
nowhere = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)


def child(life):
    pid = os.fork()
    if pid == 0:
        life()
        os._exit(0)
    return pid


def ends(pid):
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def send(fd):
    socket.send_fds(there, [b"x"], [fd])


def receive():
    return socket.recv_fds(here, 1, 1)[1][0]


def new(name):
    return os.open(name, os.O_RDWR | os.O_CREAT | os.O_TRUNC)


def sends_and_ends():
    fd = new("sent")
    os.write(fd, b"sent")
    send(fd)
    os.unlink("sent")


def sends_and_runs_another():
    sends_and_ends()
    os.dup2(question[0], 0)
    os.dup2(answer[1], 1)
    os.execvp("cat", ["cat"])


def locks():
    fcntl.flock(os.open("locked", os.O_RDWR), fcntl.LOCK_EX)


def locks_and_sends():
    locks()
    sends_and_ends()


def show_received():
    fd = receive()
    print(os.pread(fd, 9, 0), os.fstat(fd).st_nlink)
    os.close(fd)


print(ends(child(sends_and_ends)))
show_received()

question, answer = os.pipe(), os.pipe()
pid = child(sends_and_runs_another)
os.write(question[1], b"?")
os.read(answer[0], 1)  # of the other program
show_received()
os.close(question[1])
os.close(question[0])
print(ends(pid))

locked = new("locked")
print(ends(child(locks_and_sends)))
fcntl.flock(locked, fcntl.LOCK_EX)
fcntl.flock(locked, fcntl.LOCK_UN)
show_received()

os.mkdir("d")
os.chdir("d")
for i in range(9):  # of what has arrived and is closed, nobody knows
    fd = new("gone")
    os.unlink("gone")
    send(fd)
    os.close(fd)
    fd = receive()
    os.write(fd, b"%d" % i)
    print(os.pread(fd, 9, 0), end=" ")
    os.close(fd)
for _ in range(3):  # and of what was not sent
    fd = new("gone")
    os.unlink("gone")
    try:
        socket.send_fds(nowhere, [b"x"], [fd])
    except OSError as error:
        print(error.strerror)
    os.close(fd)

fd = new("seen")  # where it was only looked at, it is still to come
os.write(fd, b"seen")
send(fd)
os.close(fd)
os.unlink("seen")
looked = here.recvmsg(1, socket.CMSG_LEN(4), socket.MSG_PEEK)[1][0][2]
os.close(int.from_bytes(looked, sys.byteorder))
send(locked)
show_received()
send(locked)
os.close(receive())
os.close(receive())
print(os.listdir())
os.chdir("..")

send(locked)  # and who has done so has children
os.close(receive())
print(ends(child(locks)))
fcntl.flock(locked, fcntl.LOCK_EX)
print("free")
