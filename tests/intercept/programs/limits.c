/*
 * limits.c - a program that has used up its descriptors, RLIMIT_NOFILE, or its memory, RLIMIT_AS:
 * what Linux does without more. argv[1] says what is done. Prints what came of it.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SOFT 64

extern char **environ;

static void need(int holds, const char *what)
{
    if (!holds) {
        perror(what);
        exit(1);
    }
}

static rlim_t soft_limit(void)
{
    struct rlimit limit;

    need(getrlimit(RLIMIT_NOFILE, &limit) == 0, "getrlimit");
    return limit.rlim_cur;
}

static void set_soft_limit(rlim_t soft)
{
    struct rlimit limit;

    need(getrlimit(RLIMIT_NOFILE, &limit) == 0, "getrlimit");
    limit.rlim_cur = soft;
    need(setrlimit(RLIMIT_NOFILE, &limit) == 0, "setrlimit");
}

/* All but the last `left` numbers, by descriptors that no other program inherits. */
static void use_up(int left)
{
    int fd = 0;

    set_soft_limit(SOFT);
    while (fd >= 0 && fd < SOFT - 1 - left)
        fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    need(fd >= 0 || left == 0, "open");
}

static int end_of(pid_t child)
{
    int status = -1;

    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* ---- other programs are run ---- */

static void run(char *name)
{
    char *words[] = {name, "soft", NULL};
    pid_t child = 0;
    int error = posix_spawn(&child, name, NULL, NULL, words, environ);

    printf("spawned: %s, %d\n", strerror(error), error == 0 ? end_of(child) : -1);
    if ((child = fork()) == 0) {
        execve(name, words, environ);
        _exit(errno);
    }
    printf("executed: %d\n", end_of(child));
}

static void make_script(const char *name)
{
    static const char text[] = "#!/bin/sh\nexit 3\n";
    int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0700);

    need(fd >= 0 && write(fd, text, sizeof(text) - 1) == sizeof(text) - 1, name);
    close(fd);
}

static void programs(char *self)
{
    make_script("script");
    use_up(0);
    run(self);
    run("./copy");
    run("./script");
}

/* ---- the limit is looked at and changed while another thread reads a mapped file ---- */

static atomic_int over, wrong;

static void *read_mapped(void *file)
{
    char byte;

    while (!over)
        if (pread(*(int *)file, &byte, 1, 4) != 1 || byte != 't')
            wrong++;
    return NULL;
}

static int spawned_with(char *self)
{
    char *words[] = {self, "soft", NULL};
    pid_t child;

    need(posix_spawn(&child, self, NULL, NULL, words, environ) == 0, "spawn");
    return end_of(child);
}

/* A thread that is another program now. */
static int executed_with(char *self, int *file)
{
    char *words[] = {self, "soft", NULL};
    pthread_t thread;
    pid_t child = fork();

    if (child == 0) {
        need(pthread_create(&thread, NULL, read_mapped, file) == 0, "thread");
        for (int i = 0; i < 100; i++) /* the other one is at it */
            pread(*file, &(char){0}, 1, 4);
        execve(self, words, environ);
        _exit(255);
    }
    return end_of(child);
}

static void threads(char *self)
{
    int file = open("f", O_RDWR | O_CREAT | O_CLOEXEC, 0600), child = 0, seen = 0, lost = 0;
    pthread_t thread;

    need(file >= 0 && ftruncate(file, 4096) == 0 && pwrite(file, "right", 5, 0) == 5, "f");
    need(mmap(NULL, 4096, PROT_READ, MAP_SHARED, file, 0) != MAP_FAILED, "map");
    use_up(0);
    need(pthread_create(&thread, NULL, read_mapped, &file) == 0, "thread");
    for (int i = 0; i < 20; i++)
        child += (spawned_with(self) != SOFT) + (executed_with(self, &file) != SOFT);
    for (int i = 0; i < 5000; i++)
        seen += soft_limit() != SOFT;
    for (int i = 0; i < 5000; i++) {
        set_soft_limit(SOFT - i % 2);
        lost += soft_limit() != (rlim_t)(SOFT - i % 2);
    }
    over = 1;
    pthread_join(thread, NULL);
    printf("of children %d, seen %d, lost %d; wrong %d\n", child, seen, lost, wrong);
}

/* ---- a mapped file, and no means left that could be had ---- */

static void set_limit(int which, rlim_t most)
{
    need(setrlimit(which, &(struct rlimit){most, most}) == 0, "setrlimit");
}

static void use_up_for_good(const char *what)
{
    if (strcmp(what, "memory") == 0) {
        set_limit(RLIMIT_AS, 1);
        return;
    }
    set_limit(RLIMIT_NOFILE, SOFT);
    while (open("/dev/null", O_RDONLY | O_CLOEXEC) >= 0)
        ;
}

static char *map_new(size_t size, int *file)
{
    char *memory;

    *file = open("f", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    need(*file >= 0 && ftruncate(*file, (off_t)size) == 0, "f");
    memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, *file, 0);
    need(memory != MAP_FAILED, "map");
    memset(memory, 'm', size);
    return memory;
}

static void stored(size_t size, const char *what, const char *end)
{
    int file;
    char *memory = map_new(size, &file);

    use_up_for_good(what);
    memory[size / 2] = 's';
    if (strcmp(end, "unmap") == 0)
        need(munmap(memory, size) == 0, "unmap");
    else if (strcmp(end, "cover") == 0)
        need(mmap(memory, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
                 memory,
             "cover");
    else if (strcmp(end, "sync") == 0)
        need(msync(memory, size, MS_SYNC) == 0 && fsync(file) == 0, "sync");
    if (strcmp(end, "exit") != 0)
        _exit(0);
}

static void say(const char *what, int result)
{
    printf("%s: %d %s\n", what, result, strerror(errno));
}

static void refused(size_t size)
{
    int file;

    map_new(size, &file);
    use_up_for_good("descriptors");
    say("write", (int)pwrite(file, "w", 1, 0));
    say("grow", ftruncate(file, (off_t)size + 1));
    say("punch", fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 1));
}

/* ---- the first file of a mount, with few descriptors left ---- */

/* As on Linux it is made, or there is none. 0, or an exit status that says what is wrong. */
static int make_first(const char *name, int left)
{
    int last = -1, fd, error;

    set_limit(RLIMIT_NOFILE, SOFT);
    while ((fd = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0)
        last = fd;
    for (int i = 0; i < left; i++)
        close(last - i);
    fd = open(name, O_WRONLY | O_CREAT | O_EXCL, 0600);
    error = errno;
    if (fd >= 0)
        return unlink(name);
    return error != EMFILE ? error : access(name, F_OK) == 0 || errno != ENOENT;
}

static void first(const char *directory)
{
    char name[4096];
    pid_t child;

    snprintf(name, sizeof(name), "%s/first", directory);
    for (int left = 0; left < 4; left++) {
        if ((child = fork()) == 0)
            _exit(make_first(name, left));
        printf("%d left: %d\n", left, end_of(child));
    }
}

/* ---- a child, with few descriptors left ---- */

/* The number of a socket of another process; 0: the descriptor is none. */
static unsigned long socket_of(pid_t process, int fd)
{
    char name[64], target[64] = "";

    snprintf(name, sizeof(name), "/proc/%d/fd/%d", (int)process, fd);
    if (readlink(name, target, sizeof(target) - 1) < 0 || strncmp(target, "socket:[", 8) != 0)
        return 0;
    return strtoul(target + 8, NULL, 10);
}

/* The server hears of a process's end by a socket that no other has. */
static int count_own(pid_t child, const unsigned long *parents)
{
    int own = 0;

    for (int fd = 0; fd < 1024; fd++) {
        unsigned long one = socket_of(child, fd);
        int at = 0;

        while (one && at < 1024 && parents[at] != one)
            at++;
        own += one && at == 1024;
    }
    return own;
}

/* Its parent's sockets it tells, which sees its own while it is stopped. */
static void look_and_stop(int file, unsigned long *sockets)
{
    for (int fd = 0; fd < 1024; fd++)
        sockets[fd] = socket_of(getppid(), fd);
    if (write(file, "child", 5) == 5)
        raise(SIGSTOP);
    _exit(0);
}

static void one_child(char *left)
{
    int file = open("f", O_RDWR | O_CREAT | O_TRUNC, 0600), last = -1, fd, status;
    unsigned long *sockets = mmap(NULL, 1024 * sizeof(*sockets), PROT_READ | PROT_WRITE,
                                  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t child;

    set_limit(RLIMIT_NOFILE, SOFT);
    while ((fd = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0)
        last = fd;
    for (int i = 0; i < atoi(left); i++)
        close(last - i);
    if ((child = fork()) == 0)
        look_and_stop(file, sockets);
    if (waitpid(child, &status, WUNTRACED) == child && WIFSTOPPED(status))
        printf("sockets of its own: %d\n", count_own(child, sockets));
    kill(child, SIGCONT);
    end_of(child);
}

/* ---- the limit is set by another process while it is raised for moments ---- */

static void read_full(int ready)
{
    int file = open("f", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    char byte;

    need(file >= 0 && ftruncate(file, 4096) == 0, "f");
    need(mmap(NULL, 4096, PROT_READ, MAP_SHARED, file, 0) != MAP_FAILED, "map");
    use_up(0);
    need(write(ready, "", 1) == 1, "ready");
    for (;;) /* which fails where the limit is set just before it counts */
        need(pread(file, &byte, 1, 0) >= 0 || errno == EIO, "read");
}

/* It may be raised just now, or just being put back. */
static bool is_set(pid_t child, rlim_t soft)
{
    struct rlimit now = {0};
    time_t end = time(NULL) + 3;

    while (now.rlim_cur != soft && time(NULL) < end)
        need(prlimit(child, RLIMIT_NOFILE, NULL, &now) == 0, "get");
    return now.rlim_cur == soft;
}

static void set_from_outside(void)
{
    struct rlimit limit;
    int ready[2], lost = 0;
    pid_t child;

    need(pipe(ready) == 0 && getrlimit(RLIMIT_NOFILE, &limit) == 0, "pipe");
    if ((child = fork()) == 0)
        read_full(ready[1]);
    need(read(ready[0], &(char){0}, 1) == 1, "ready");
    for (int i = 0; i < 20000 && lost == 0; i++) {
        limit.rlim_cur = SOFT - (rlim_t)i % 4;
        need(prlimit(child, RLIMIT_NOFILE, &limit, NULL) == 0, "set");
        lost += !is_set(child, limit.rlim_cur);
    }
    kill(child, SIGKILL);
    end_of(child);
    printf("lost %d\n", lost);
}

/* ---- a timer whose signals take all the room that there is for signals that wait ---- */

static volatile sig_atomic_t told, wrongly;

static void tell(int signal, siginfo_t *info, void *context)
{
    (void)signal, (void)context;
    told++;
    wrongly += info->si_code != SI_TIMER || info->si_value.sival_int != 77;
}

static bool comes_in_time(timer_t timer)
{
    struct itimerspec soon = {.it_value.tv_nsec = 200000};
    int before = told;
    time_t end = time(NULL) + 3;
    struct stat st;

    timer_settime(timer, 0, &soon, NULL);
    while (told == before && time(NULL) < end)
        stat(".", &st);
    return told != before;
}

static void timers(int signal)
{
    struct sigaction action = {.sa_sigaction = tell, .sa_flags = SA_SIGINFO | SA_RESTART};
    struct sigevent event = {.sigev_signo = signal, .sigev_value.sival_int = 77};
    timer_t timer;
    int rounds = 0;

    sigaction(signal, &action, NULL);
    need(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0, "timer");
    set_limit(RLIMIT_SIGPENDING, 1);
    while (rounds < 100 && comes_in_time(timer))
        rounds++;
    printf("%d came, %d of them wrong\n", rounds, (int)wrongly);
}

int main(int argc, char **argv)
{
    setvbuf(stdout, NULL, _IONBF, 0);
    if (argc > 1 && strcmp(argv[1], "soft") == 0)
        return (int)soft_limit();
    if (argc > 1 && strcmp(argv[1], "programs") == 0)
        programs(argv[0]);
    else if (argc > 1 && strcmp(argv[1], "threads") == 0)
        threads(argv[0]);
    else if (argc > 1 && strcmp(argv[1], "outside") == 0)
        set_from_outside();
    else if (argc > 2 && strcmp(argv[1], "child") == 0)
        one_child(argv[2]);
    else if (argc > 2 && strcmp(argv[1], "timers") == 0)
        timers(strcmp(argv[2], "real-time") == 0 ? SIGRTMIN : SIGALRM);
    else if (argc > 2 && strcmp(argv[1], "first") == 0)
        first(argv[2]);
    else if (argc > 4 && strcmp(argv[1], "stored") == 0)
        stored(strtoul(argv[2], NULL, 10), argv[3], argv[4]);
    else if (argc > 2 && strcmp(argv[1], "refused") == 0)
        refused(strtoul(argv[2], NULL, 10));
    else
        return 2;
    return 0;
}
