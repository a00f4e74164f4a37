/*
 * limits.c - a program that has used up its descriptors, RLIMIT_NOFILE: what Linux does without
 * one more. Prints what came of it.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
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

int main(int argc, char **argv)
{
    setvbuf(stdout, NULL, _IONBF, 0);
    if (argc > 1 && strcmp(argv[1], "soft") == 0)
        return (int)soft_limit();
    programs(argv[0]);
    return 0;
}
