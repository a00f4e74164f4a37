/*
 * habits.c - a FUSE program with the habits of programs that have a process to themselves. Each
 * file is one: reading it does that, and gives what came of it; "--before HABIT" does it before the
 * loop, and says what came of it. It counts its options "-owords", and takes them out.
 */
#define FUSE_USE_VERSION 31
#define _GNU_SOURCE
#include <fuse.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
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

static const struct {
    const char *name;
    void (*function)(void);
} habits[] = {
    {"children", have_children},
    {"printing child", have_a_child_that_prints},
    {"environment of a child", have_a_child_with_its_environment},
    {"streams", reopen_its_streams},
    {"streams of a child", have_a_child_that_reopens_its_streams},
};

static void have(const char *name)
{
    for (size_t i = 0; i < sizeof(habits) / sizeof(habits[0]); i++)
        if (strcmp(habits[i].name, name) == 0)
            habits[i].function();
}

static int get_attr(const char *path, struct stat *st, struct fuse_file_info *fi)
{
    (void)fi;
    memset(st, 0, sizeof(*st));
    st->st_mode = path[1] ? S_IFREG | 0444 : S_IFDIR | 0755;
    st->st_nlink = 1;
    return 0;
}

static int open_it(const char *path, struct fuse_file_info *fi)
{
    (void)path;
    fi->direct_io = 1;
    return 0;
}

static int read_it(const char *path, char *data, size_t size, off_t at, struct fuse_file_info *fi)
{
    (void)fi;
    if (at > 0)
        return 0;
    have(path + 1);
    size_t length = strlen(answer);
    memcpy(data, answer, length < size ? length : size);
    return (int)(length < size ? length : size);
}

static const struct fuse_operations operations = {
    .getattr = get_attr,
    .open = open_it,
    .read = read_it,
};

int main(int argc, char *argv[])
{
    if (argc > 2 && strcmp(argv[1], "--before") == 0) {
        have(argv[2]);
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
