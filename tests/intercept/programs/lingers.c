/*
 * lingers.c - whose calls of the kernel leave what the last close(2) left.
 *
 * Another process, which the first one lets look by shared memory, says of each call that came
 * behind an open(2) and a close(2) whether the number is still one of a descriptor.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

struct shared {
    _Atomic int turn; /* odd: the other process's; negative: it may end */
    _Atomic int fd;   /* what it is to look for */
    _Atomic int seen;
};

static struct shared *shared;

static int must(int result, const char *what)
{
    if (result < 0) {
        perror(what);
        exit(1);
    }
    return result;
}

static _Noreturn void look(void)
{
    pid_t parent = getppid();

    for (;;) {
        char link[40];
        int turn;

        while ((turn = atomic_load(&shared->turn)) % 2 == 0)
            ;
        if (turn < 0)
            _exit(0);
        snprintf(link, sizeof(link), "/proc/%d/fd/%d", parent, atomic_load(&shared->fd));
        atomic_store(&shared->seen, faccessat(AT_FDCWD, link, F_OK, AT_SYMLINK_NOFOLLOW) == 0);
        atomic_store(&shared->turn, turn + 1);
    }
}

static void open_and_close(void)
{
    int fd = must(open("f", O_RDWR | O_CREAT, 0600), "f");

    atomic_store(&shared->fd, fd);
    close(fd);
}

/* Calls nothing meanwhile. */
static void print_seen(const char *what)
{
    int turn = atomic_fetch_add(&shared->turn, 1) + 2;

    while (atomic_load(&shared->turn) != turn)
        ;
    printf("%s: %s\n", what, atomic_load(&shared->seen) ? "there" : "gone");
    fflush(stdout); /* to a pipe or a file that is empty: that ends it */
}

int main(void)
{
    int stored, empty, status, pipes[2];
    char text[4] = "abc";

    alarm(40);
    shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    stored = must(memfd_create("stored", 0), "memfd_create");
    empty = must(memfd_create("empty", 0), "memfd_create");
    status = must(open("/proc/self/status", O_RDONLY), "/proc/self/status");
    must(pipe2(pipes, O_NONBLOCK), "pipe2");
    must((int)write(stored, text, 3), "write");
    fflush(stdout);
    if (must(fork(), "fork") == 0)
        look();

    open_and_close();
    print_seen("no call");
    open_and_close();
    pread(stored, text, 3, 0);
    print_seen("pread of a file that is stored");
    open_and_close();
    lseek(stored, 0, SEEK_SET);
    read(stored, text, 3);
    pwrite(stored, text, 3, 3);
    print_seen("lseek, read and pwrite");
    open_and_close();
    pread(stored, text, 3, 0);
    pread(empty, text, 3, 0);
    print_seen("of one without a block, too");
    open_and_close();
    pread(status, text, 3, 0);
    print_seen("of a file of proc");
    open_and_close();
    read(pipes[0], text, 3);
    print_seen("of a pipe");
    open_and_close();
    pread(stored, text, 3, 0);
    read(atomic_load(&shared->fd), text, 3);
    print_seen("of itself");
    open_and_close();
    pread(stored, text, 3, 0);
    dup2(pipes[0], stored);
    open_and_close();
    read(stored, text, 3);
    print_seen("of a pipe where the file was");

    atomic_store(&shared->turn, -1);
    wait(NULL);
    return 0;
}
