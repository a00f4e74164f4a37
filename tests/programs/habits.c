/*
 * habits.c - a FUSE program with the habits of programs that have a process to themselves. Each
 * file is one: reading it does that, and gives what came of it; "--before HABIT" does it before the
 * loop, and says what came of it. It counts its options "-owords", and takes them out. It talks
 * when it is asked for the attributes of "talkative".
 */
#define FUSE_USE_VERSION 31
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fuse.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char answer[1024] = "nothing";

#define SAY(...) snprintf(answer, sizeof(answer), __VA_ARGS__)

/* How many it has waited for by their numbers. */
static void have_children(void)
{
    int ended = 0;
    for (int i = 0; i < 50; i++) {
        pid_t pid = fork();
        if (pid == 0)
            _exit(0);
        ended += waitpid(pid, NULL, 0) == pid;
        ended += system("exit 0") == 0;
    }
    SAY("%d", ended);
}

static void have_a_child_that_prints(void)
{
    int status = 0;
    pid_t pid = fork();
    if (pid == 0) {
        printf("words of a child\n");
        fprintf(stdout, "and half a ");
        printf("line");
        exit(3);
    }
    pid_t ended = waitpid(pid, &status, 0);
    SAY("%d", ended == pid ? WEXITSTATUS(status) : -1);
}

static void tell_end(int status, void *words)
{
    fprintf(stderr, "%s %d\n", (const char *)words, status);
    if (strcmp(words, "second") == 0)
        exit(5);
}

static void ask_for_its_end(void)
{
    int one = on_exit(tell_end, "first"), other = on_exit(tell_end, "second");
    SAY("%d %d", one, other);
}

static int ends; /* main is to return, with this status */

static void have_a_child_that_returns(void)
{
    int status = 0;
    pid_t pid = fork();
    if (pid == 0) {
        static char room[BUFSIZ]; /* Python may have taken the stream's own away */
        setvbuf(stdout, room, _IOFBF, sizeof(room));
        printf("half a line");
        ends = 3;
        return;
    }
    pid_t ended = waitpid(pid, &status, 0);
    SAY("%d", ended == pid ? WEXITSTATUS(status) : -1);
}

/* As a daemon does, and then prints by number. */
static void reopen_its_streams(void)
{
    FILE *in = freopen("/dev/null", "r", stdin), *out = freopen("/dev/null", "w", stdout);
    fprintf(stderr, "words after that\n");
    ssize_t written = write(fileno(stderr), "words by number\n", 16);
    SAY("%d %d %zd", in == stdin, out == stdout, written);
}

static void have_a_child_that_reopens_its_streams(void)
{
    int status = 0;
    pid_t pid = fork();
    if (pid == 0) {
        reopen_its_streams();
        printf("words for nobody\n");
        _exit(freopen("/dev/null", "w", stderr) == stderr ? 3 : 1);
    }
    pid_t ended = waitpid(pid, &status, 0);
    SAY("%d", ended == pid && WIFEXITED(status) ? WEXITSTATUS(status) : -1);
}

static void have_a_child_with_its_environment(void)
{
    static char *words[] = {"sh", "-c", "echo found $HABITS_WORD", NULL};
    setenv("HABITS_WORD", "mine", 1);
    pid_t pid = fork();
    if (pid == 0)
        _exit(execve("/bin/sh", words, environ));
    SAY("%d", waitpid(pid, NULL, 0) == pid);
}

static void spawn_with_its_environment(void)
{
    static char *words[] = {"sh", "-c", "echo ${HOME-no home} $HABITS_WORD $HABITS_OTHER", NULL};
    pid_t pid;
    putenv("HABITS_OTHER=other");
    clearenv();
    setenv("PATH", "/usr/bin:/bin", 1);
    setenv("HABITS_WORD", "some", 1);
    setenv("HABITS_WORD", "mine", 1);
    int error = posix_spawnp(&pid, "sh", NULL, NULL, words, environ);
    SAY("%d %d", error, !error && waitpid(pid, NULL, 0) == pid);
}

/* It is over when its signal has been sent. */
static void have_a_timer(void)
{
    struct itimerspec once = {.it_value.tv_nsec = 1}, left;
    timer_t timer;
    if (timer_create(CLOCK_MONOTONIC, NULL, &timer) != 0 || timer_settime(timer, 0, &once, NULL))
        abort();
    do
        timer_gettime(timer, &left);
    while (left.it_value.tv_sec || left.it_value.tv_nsec);
    SAY("%d", timer_delete(timer));
}

static void wait_for_signals(void)
{
    struct signalfd_siginfo info;
    sigset_t all;
    sigfillset(&all);
    int number = sigtimedwait(&all, NULL, &(struct timespec){0}), error = errno;
    int fd = signalfd(-1, &all, SFD_NONBLOCK | SFD_CLOEXEC);
    ssize_t size = read(fd, &info, sizeof(info));
    SAY("%d %d %zd %d", number, error == EAGAIN, size, errno == EAGAIN);
    close(fd);
}

/* Under the names that programs had for these functions before glibc 2.33, too. */
int __xmknodat(int version, int dirfd, const char *path, mode_t mode, dev_t *device);
int __fxstatat(int version, int dirfd, const char *path, struct stat *st, int flags);

static int mode_of(const char *name)
{
    struct stat st;
    return __fxstatat(1, AT_FDCWD, name, &st, 0) == 0 ? (int)(st.st_mode & 0777) : -1;
}

static int is_made(const char *name)
{
    int mode = mode_of(name);
    return name && mode >= 0 && !strstr(name, "XXXXXX");
}

static void enter_a_directory(void)
{
    static char made[] = "/tmp/habits-XXXXXX";
    if (!mkdtemp(made) || chdir(made) != 0)
        abort();
}

static void make_up_names(void)
{
    char one[] = "one-XXXXXX", two[] = "two-XXXXXX.txt", three[] = "three-XXXXXX";
    struct dirent **list;
    enter_a_directory();
    int fds = (mkstemp(one) >= 0) + (mkostemps(two, 4, O_CLOEXEC) >= 0);
    const char *directory = mkdtemp(three), *found = canonicalize_file_name(one);
    char here[PATH_MAX];
    if (!getcwd(here, sizeof(here)))
        abort();
    SAY("%d %d %d %d %d %d %d", fds, is_made(one), is_made(two), directory == three, is_made(three),
        scandir(".", &list, NULL, NULL), found && strncmp(found, here, strlen(here)) == 0);
    unlink(one);
    unlink(two);
    rmdir(three);
    rmdir(here);
}

static void watch_its_directory(void)
{
    char here[PATH_MAX], room[sizeof(struct inotify_event) + NAME_MAX + 1] = {0};
    enter_a_directory();
    int fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC), added = inotify_add_watch(fd, ".", IN_CREATE);
    bool made = mkdir("sub", 0755) == 0, told = read(fd, room, sizeof(room)) > 0;
    SAY("%d %d %s", added > 0, made, told ? room + sizeof(struct inotify_event) : "nothing");
    rmdir("sub");
    if (getcwd(here, sizeof(here)))
        rmdir(here);
    close(fd);
}

/* The modes of what it makes with one umask and another. */
static void make_files(void)
{
    char here[PATH_MAX];
    dev_t none = 0;
    enter_a_directory();
    umask(0);
    FILE *one = fopen("one", "w"), *again = fopen("one", "a+x");
    umask(077);
    FILE *two = fopen("two", "a"), *three = fopen("three", "wx");
    if (!one || !two || !three || again || fputs("words", one) < 0 || fflush(one) != 0)
        abort();
    umask(0);
    int fifos = mkfifoat(AT_FDCWD, "four", 0622) + __xmknodat(0, AT_FDCWD, "five", 0604, &none);
    SAY("%o %o %o %d %o %o %ld", mode_of("one"), mode_of("two"), mode_of("three"), fifos,
        mode_of("four"), mode_of("five"), pathconf("one", _PC_NAME_MAX));
    for (const char *const *name = (const char *[]){"one", "two", "three", "four", "five", NULL};
         *name; name++)
        unlink(*name);
    if (getcwd(here, sizeof(here)))
        rmdir(here);
}

static void use_much_of_its_stack(void)
{
    char room[5 << 20];
    memset(room, 'x', sizeof(room));
    SAY("%zu", strnlen(room, sizeof(room)));
}

static void say_where_it_is(void)
{
    char here[PATH_MAX] = "nowhere";
    SAY("%s %d", getcwd(here, sizeof(here)), access("proc/self/stat", F_OK));
}

static const struct {
    const char *name;
    void (*function)(void);
} habits[] = {
    {"children", have_children},
    {"printing child", have_a_child_that_prints},
    {"returning child", have_a_child_that_returns},
    {"end", ask_for_its_end},
    {"environment of a child", have_a_child_with_its_environment},
    {"environment of a spawned child", spawn_with_its_environment},
    {"timer", have_a_timer},
    {"signals", wait_for_signals},
    {"made up names", make_up_names},
    {"watch", watch_its_directory},
    {"modes", make_files},
    {"much stack", use_much_of_its_stack},
    {"directory", say_where_it_is},
    {"streams", reopen_its_streams},
    {"streams of a child", have_a_child_that_reopens_its_streams},
};

static void carry_out(const char *name)
{
    for (size_t i = 0; i < sizeof(habits) / sizeof(habits[0]); i++)
        if (strcmp(habits[i].name, name) == 0)
            habits[i].function();
}

#include "asked.h"

static int get_attr_aloud(const char *path, struct stat *st, struct fuse_file_info *fi)
{
    if (strcmp(path, "/talkative") == 0)
        for (int i = 0; i < 20; i++)
            fprintf(stderr, "asked for attributes\n");
    return get_attr(path, st, fi);
}

static const struct fuse_operations operations = {
    .getattr = get_attr_aloud,
    .open = open_it,
    .read = read_it,
};

int main(int argc, char *argv[])
{
    if (argc > 2 && strcmp(argv[1], "--before") == 0) {
        carry_out(argv[2]);
        if (ends)
            return ends;
        fprintf(stderr, "it said: %s\n", answer);
        argv[2] = argv[0];
        argc -= 2;
        argv += 2;
    }
    if (argc > 2 && strcmp(argv[argc - 1], "-owords") == 0)
        SAY("%d", argc);
    while (argc > 2 && strcmp(argv[argc - 1], "-owords") == 0)
        argv[--argc] = NULL;
    return fuse_main(argc, argv, &operations, NULL);
}
