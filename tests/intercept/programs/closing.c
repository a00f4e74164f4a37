/*
 * closing.c - what is closed is closed at once: numbers, errors, /proc/self/fd, locks.
 *
 * Prints what is the same wherever its working directory is. A process that looks whether another
 * one's lock is gone is told when to by shared memory, and the other one calls nothing meanwhile:
 * a system call could be what finishes a close. closing locked: what it is executed as, once.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static _Atomic int *turn; /* shared: whose it is */

static const char *name_of(int result)
{
    return result < 0 ? strerrorname_np(errno) : "0";
}

static int must_open(const char *path, int flags)
{
    int fd = open(path, flags, 0600);

    if (fd < 0) {
        perror(path);
        exit(1);
    }
    return fd;
}

static void pass_turn(int to)
{
    atomic_store(turn, to);
}

static void await_turn(int mine)
{
    while (atomic_load(turn) != mine)
        ;
}

/* ---- numbers and errors ---------------------------------------------------------------------- */

static void after_close(const char *what, int result)
{
    printf("%s: %s\n", what, name_of(result));
}

static void descriptor_is_gone(void)
{
    char byte;
    struct stat st;
    int fd = must_open("f", O_RDWR);

    close(fd);
    after_close("close again", close(fd));
    close(must_open("f", O_RDWR));
    after_close("read", (int)read(fd, &byte, 1));
    close(must_open("f", O_RDWR));
    after_close("write", (int)write(fd, "x", 1));
    close(must_open("f", O_RDWR));
    after_close("fstat", fstat(fd, &st));
    close(must_open("f", O_RDWR));
    after_close("lseek", (int)lseek(fd, 0, SEEK_CUR));
    close(must_open("f", O_RDWR));
    after_close("fcntl", fcntl(fd, F_GETFD));
    close(must_open("f", O_RDWR));
    after_close("dup", dup(fd));
    close(must_open("f", O_RDWR));
    after_close("fsync", fsync(fd));
    close(must_open("f", O_RDWR));
    after_close("openat", openat(fd, "g", O_RDONLY));
    close(must_open("f", O_RDWR));
    after_close("fchdir", fchdir(fd));
    close(must_open("f", O_RDWR));
    after_close("mmap", mmap(NULL, 1, PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED ? -1 : 0);
    close(must_open("f", O_RDWR));
    after_close("getdents", fdopendir(fd) ? 0 : -1);
    close(must_open("f", O_RDWR));
    after_close("flock", flock(fd, LOCK_SH));
}

static void print_number(const char *what, int fd, int first)
{
    printf("%s: %d\n", what, fd < 0 ? fd : fd - first);
}

static void numbers(void)
{
    int first = must_open("f", O_RDWR), second = must_open("g", O_RDWR), pipes[2];

    close(first);
    print_number("lowest", must_open("f", O_RDWR), first);
    close(second);
    close(first);
    print_number("lowest of two", must_open("f", O_RDWR), first);
    second = must_open("g", O_RDWR);
    close(first);
    close(second);
    print_number("lowest of two, closed first", must_open("g", O_RDWR), first);
    close(first);
    print_number("dup", dup(0), first);
    print_number("behind it", must_open("f", O_RDONLY), first);
    close(second);
    close(first); /* the kernel's, below one that was closed */
    print_number("below", must_open("f", O_RDONLY), first);
    close(first);
    print_number("dup", dup(0), first);
    second = must_open("f", O_RDONLY);
    close(first);
    close(second);
    print_number("below, closed before", must_open("f", O_RDONLY), first);
    close(first);
    print_number("dup", dup(0), first);
    second = must_open("f", O_RDONLY);
    close_range((unsigned)first, (unsigned)first, 0);
    close(second);
    print_number("below, by close_range", must_open("f", O_RDONLY), first);
    close(first);
    if (pipe(pipes) < 0)
        exit(1);
    print_number("pipe", pipes[0], first);
    close(pipes[0]);
    close(pipes[1]);
    close(must_open("f", O_RDONLY));
    print_number("of the kernel", must_open("/dev/null", O_RDONLY), first);
    print_number("high", fcntl(first, F_DUPFD, first + 7), first);
    close(first);
    close(must_open("g", O_RDONLY | O_PATH));
    print_number("a directory", must_open(".", O_RDONLY | O_DIRECTORY), first);
    close(first);
    close(must_open("f", O_RDONLY));
    print_number("O_PATH", must_open("f", O_PATH), first);
    close(first);
    close(must_open("f", O_RDONLY));
    print_number("created", open("new", O_RDONLY | O_CREAT | O_EXCL, 0600), first);
    close(first);
    close(first + 7);
}

/* As cp(1) has them open, and in other orders. */
static void numbers_of_two(void)
{
    int first = must_open("f", O_RDONLY), second, copy, pipes[2];

    copy = dup(first);
    second = must_open("g", O_RDONLY);
    close(second);
    close(copy); /* below one that was closed before */
    print_number("below, a copy", must_open("g", O_RDONLY), first);
    close(copy);
    for (int i = 0; i < 3; i++) {
        second = must_open("g", O_WRONLY);
        close(second);
        close(first);
        print_number("first of two", must_open("f", O_RDONLY), first);
        print_number("second of two", must_open("g", O_WRONLY), first);
        after_close("write", (int)write(second, "x", 1));
        close(second);
    }
    second = must_open("g", O_RDONLY);
    print_number("third", must_open("new", O_RDONLY | O_CREAT), first);
    close(second + 1);
    close(second);
    close(first);
    for (int i = 0; i < 3; i++)
        print_number("of three", must_open("f", O_RDONLY), first);
    close(second + 1);
    close(second);
    close(first);
    if (pipe(pipes) < 0)
        exit(1);
    first = must_open("f", O_RDONLY);
    second = must_open("g", O_RDONLY);
    close(second);
    close(first);
    print_number("above a pipe", must_open("f", O_RDONLY), pipes[0]);
    close(pipes[1]); /* below one that was closed */
    print_number("where the pipe was", must_open("g", O_RDONLY), pipes[0]);
    print_number("the other", must_open("g", O_RDONLY), pipes[0]);
    close(second);
    close(first);
    close(pipes[0]);
    close(pipes[1]);
    after_close("read", (int)read(second, &copy, 1));
    unlink("new");
}

static void flags(void)
{
    int fd = must_open("f", O_RDONLY | O_CLOEXEC);
    char byte;

    close(fd);
    fd = must_open("f", O_RDONLY);
    printf("close-on-exec: %d", fcntl(fd, F_GETFD));
    close(fd);
    fd = must_open("f", O_RDONLY | O_CLOEXEC);
    printf(" %d", fcntl(fd, F_GETFD));
    fcntl(fd, F_SETFD, 0);
    close(fd);
    fd = must_open("f", O_RDONLY | O_CLOEXEC);
    printf(" %d", fcntl(fd, F_GETFD));
    dup2(fd, fd + 1);
    close(fd);
    dup2(fd + 1, fd);
    close(fd + 1);
    close(fd);
    fd = must_open("f", O_RDONLY | O_CLOEXEC);
    printf(" %d", fcntl(fd, F_GETFD));
    close(fd);
    fd = must_open("f", O_RDONLY);
    close_range(fd, ~0U, CLOSE_RANGE_CLOEXEC);
    close(fd);
    fd = must_open("f", O_RDONLY);
    printf(" %d\n", fcntl(fd, F_GETFD));
    close(fd);
    fd = must_open("f", O_WRONLY | O_APPEND);
    printf("read what is to be written: %s", name_of((int)read(fd, &byte, 1)));
    printf(", flags %#x\n", fcntl(fd, F_GETFL) & (O_ACCMODE | O_APPEND));
    close(fd);
    fd = must_open("f", O_RDONLY);
    printf("position %d, flags %#x\n", (int)lseek(fd, 0, SEEK_CUR),
           fcntl(fd, F_GETFL) & (O_ACCMODE | O_APPEND));
    close(fd);
}

static int count_entries(DIR *directory)
{
    int count = 0;

    while (readdir(directory))
        count++;
    return count;
}

static void in_proc(void)
{
    DIR *before = opendir("/proc/self/fd"), *after;
    char link[40], target[4096];
    int fd = must_open("f", O_RDONLY), count;
    struct stat st;

    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    close(fd);
    after_close("stat of its link", lstat(link, &st));
    close(must_open("f", O_RDONLY));
    after_close("its link", (int)readlink(link, target, sizeof(target)));
    close(must_open("f", O_RDONLY));
    after_close("open again", open(link, O_RDONLY));
    close(must_open("f", O_RDONLY));
    count = count_entries(before);
    closedir(before);
    close(must_open("f", O_RDONLY));
    after = opendir("/proc/self/fd");
    printf("listed before and after: %d\n", count_entries(after) - count);
    closedir(after);
}

/* A file on disk is read in between, as tar(1) does. */
static void beside_a_file(void)
{
    int other = memfd_create("other", MFD_CLOEXEC), fd, again;
    char text[4] = "abc";

    write(other, text, 3);
    fd = must_open("f", O_RDWR);
    close(fd);
    after_close("read of another", (int)pread(other, text, 3, 0));
    after_close("read", (int)read(fd, text, 1));
    close(must_open("f", O_RDWR));
    pread(other, text, 3, 0);
    after_close("fcntl", fcntl(fd, F_GETFD));
    close(must_open("f", O_RDWR));
    lseek(other, 1, SEEK_SET);
    print_number("read behind lseek", (int)read(other, text, 3), 0);
    again = must_open("f", O_RDWR);
    print_number("opened again", again, fd);
    print_number("dup", dup(other), fd);
    close(fd + 1);
    close(again);
    pread(other, text, 3, 0);
    print_number("dup behind the close", dup(other), fd);
    close(fd);
    close(must_open("f", O_RDWR));
    pread(other, text, 3, 0);
    close(other);
    print_number("lower", must_open("f", O_RDWR), other);
    close(other);
}

static void limit(void)
{
    int fd = must_open("f", O_RDONLY);
    struct rlimit old, low;

    getrlimit(RLIMIT_NOFILE, &old);
    low = (struct rlimit){(rlim_t)fd, old.rlim_max};
    close(fd);
    setrlimit(RLIMIT_NOFILE, &low);
    printf("limit reached: %s", name_of(open("f", O_RDONLY)));
    printf(", %s\n", name_of(open("newer", O_RDWR | O_CREAT, 0600)));
    setrlimit(RLIMIT_NOFILE, &old);
    printf("not made: %s\n", name_of(access("newer", F_OK)));
}

static void *open_and_close(void *arg)
{
    const char *name = arg;
    char byte = '\0';

    for (int i = 0; i < 20000; i++) {
        int fd = must_open(name, O_RDWR);

        if (pread(fd, &byte, 1, 0) != 1 || byte != name[0] || close(fd) < 0)
            printf("%s: %c, %s\n", name, byte, strerrorname_np(errno));
    }
    return NULL;
}

static void write_name(const char *name)
{
    int fd = must_open(name, O_RDWR);

    if (pwrite(fd, name, 1, 0) != 1)
        exit(1);
    close(fd);
}

static void threads(void)
{
    pthread_t thread;
    int fd = must_open("f", O_RDONLY);

    write_name("f");
    write_name("g");
    close(fd);
    if (pthread_create(&thread, NULL, open_and_close, "g") != 0)
        exit(1);
    open_and_close("f");
    pthread_join(thread, NULL);
    print_number("after threads", must_open("f", O_RDONLY), fd);
    close(fd);
}

/* ---- locks ----------------------------------------------------------------------------------- */

enum lock { FLOCK, RECORD, OFD };

static int set_lock(enum lock kind, int fd, bool test)
{
    struct flock lock = {.l_type = F_WRLCK};
    int ret;

    if (kind == FLOCK)
        return flock(fd, LOCK_EX | LOCK_NB);
    if (!test)
        return fcntl(fd, kind == OFD ? F_OFD_SETLK : F_SETLK, &lock);
    ret = fcntl(fd, F_GETLK, &lock);
    errno = EAGAIN;
    return ret < 0 || lock.l_type != F_UNLCK ? -1 : 0;
}

/* Another process looks, twice: when the turn is 1 and when it is 3. */
static void look(enum lock kind)
{
    int fd = must_open("f", O_RDWR);

    await_turn(1);
    printf("%s", name_of(set_lock(kind, fd, true)));
    flock(fd, LOCK_UN);
    fflush(stdout);
    pass_turn(2);
    await_turn(3);
    printf(" %s\n", name_of(set_lock(kind, fd, true)));
    fflush(stdout);
    pass_turn(4);
    _exit(0);
}

static pid_t begin_looking(const char *what, enum lock kind)
{
    pid_t pid;

    printf("%s: ", what);
    fflush(stdout);
    pass_turn(0);
    pid = fork();
    if (pid == 0)
        look(kind);
    return pid;
}

static void let_look(int now)
{
    pass_turn(now);
    await_turn(now + 1);
}

static void lock_goes(const char *what, enum lock kind)
{
    pid_t pid = begin_looking(what, kind);
    int fd = must_open("f", O_RDWR);

    set_lock(kind, fd, false);
    let_look(1);
    close(fd);
    let_look(3);
    waitpid(pid, NULL, 0);
}

/* fcntl(2): closing any descriptor of the file drops the process's record locks on it. */
static void lock_goes_with_another(void)
{
    pid_t pid = begin_looking("record lock, another descriptor", RECORD);
    int fd = must_open("f", O_RDWR), other;

    set_lock(RECORD, fd, false);
    other = must_open("f", O_RDONLY);
    let_look(1);
    close(other);
    let_look(3);
    waitpid(pid, NULL, 0);
    close(fd);
}

/* It was closed before, whatever is called then. */
static void lock_stays(void)
{
    pid_t pid = begin_looking("record lock, closed before", RECORD);
    int fd = must_open("f", O_RDWR);

    close(must_open("f", O_RDWR));
    set_lock(RECORD, fd, false);
    close(dup(0));
    let_look(1);
    close(dup(0));
    let_look(3);
    waitpid(pid, NULL, 0);
    close(fd);
}

/* A lock of the description that a child has, too: the last of both takes it along. */
static void lock_of_a_child(bool child_is_last)
{
    pid_t pid = begin_looking(child_is_last ? "child last" : "child first", FLOCK), child;
    _Atomic int *step = turn + 1;
    int fd = must_open("f", O_RDWR);

    atomic_store(step, 0);
    child = fork();
    if (child == 0) {
        flock(fd, LOCK_EX);
        atomic_store(step, 1);
        while (child_is_last && atomic_load(step) != 2)
            ;
        close(fd);
        atomic_store(step, 3);
        while (atomic_load(step) != 4)
            ;
        _exit(0);
    }
    while (atomic_load(step) != (child_is_last ? 1 : 3))
        ;
    let_look(1);
    close(fd);
    if (child_is_last) {
        atomic_store(step, 2);
        while (atomic_load(step) != 3)
            ;
    }
    let_look(3);
    atomic_store(step, 4);
    waitpid(child, NULL, 0);
    waitpid(pid, NULL, 0);
}

/* What a child has goes on to be another description than what its parent opens then. */
static void description_of_a_child(void)
{
    int fd = must_open("f", O_RDWR), other;
    pid_t child;

    pass_turn(0);
    child = fork();
    if (child == 0) {
        await_turn(1);
        flock(fd, LOCK_EX);
        pass_turn(2);
        await_turn(3);
        _exit(0);
    }
    close(fd);
    other = must_open("f", O_RDWR);
    let_look(1);
    printf("description of a child: %s\n", name_of(set_lock(FLOCK, other, false)));
    pass_turn(3);
    waitpid(child, NULL, 0);
    close(other);
}

/* ---- over execve(2) -------------------------------------------------------------------------- */

static void await_file(const char *path)
{
    struct stat st;

    while (stat(path, &st) < 0)
        ;
}

static void wait_for_lock(bool held)
{
    int fd = must_open("f", O_RDWR);

    while ((set_lock(RECORD, fd, true) < 0) != held)
        ;
    close(fd);
}

/* Holds a record lock by a descriptor from before. */
static int executed(void)
{
    await_file("seen"); /* held, by another process */
    close(must_open("f", O_RDONLY));
    await_file("gone");
    puts("lock of a process that was executed: gone");
    while (wait(NULL) > 0)
        ;
    return 0;
}

static void over_exec(char *self)
{
    int fd = must_open("f", O_RDWR);

    set_lock(RECORD, fd, false);
    fflush(stdout);
    if (fork() == 0) {
        wait_for_lock(true);
        close(must_open("seen", O_RDWR | O_CREAT));
        wait_for_lock(false);
        close(must_open("gone", O_RDWR | O_CREAT));
        _exit(0);
    }
    execl(self, self, "locked", NULL);
    exit(1);
}

int main(int argc, char **argv)
{
    alarm(40);
    if (argc > 1)
        return executed();
    close_range(3, ~0U, 0);
    turn = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    close(must_open("f", O_RDWR | O_CREAT));
    close(must_open("g", O_RDWR | O_CREAT));
    descriptor_is_gone();
    numbers();
    numbers_of_two();
    flags();
    in_proc();
    beside_a_file();
    limit();
    threads();
    lock_goes("flock", FLOCK);
    lock_of_a_child(false);
    lock_of_a_child(true);
    description_of_a_child();
    lock_goes("record lock", RECORD);
    lock_goes("lock of the description", OFD);
    lock_goes_with_another();
    lock_stays();
    over_exec(argv[0]);
}
