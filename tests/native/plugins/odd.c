/*
 * odd.c - a program that never mounts, for test_plugin.c: what it does is in its first argument.
 */
#define FUSE_USE_VERSION 312
#include <fuse.h>
#include <fuse_lowlevel.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int log_and_fail(void)
{
    fuse_log(FUSE_LOG_ERR, "the %s is missing\n", "key");
    return 3;
}

/* Every asynchronous signal is blocked on main's thread, faults are not. */
static int check_signals(void)
{
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    return sigismember(&mask, SIGINT) && sigismember(&mask, SIGUSR1) &&
                   sigismember(&mask, SIGCHLD) && !sigismember(&mask, SIGSEGV)
               ? 40
               : 41;
}

static int log_a_lot(void)
{
    for (int i = 0; i < 2000; i++)
        fuse_log(FUSE_LOG_INFO, "line %d of many that say nothing\n", i);
    return 0;
}

/* Mounts on a descriptor that a parent opened: cannot be served here. */
static int mount_on_descriptor(void)
{
    static const struct fuse_lowlevel_ops ops;
    char *argv[] = {"odd", NULL};
    struct fuse_args args = FUSE_ARGS_INIT(1, argv);
    struct fuse_session *se = fuse_session_new(&args, &ops, sizeof(ops), NULL);
    int result = se && fuse_session_mount(se, "/dev/fd/3") == -1 ? 50 : 51;
    if (se)
        fuse_session_destroy(se);
    fuse_opt_free_args(&args);
    return result;
}

/* getopt(3) begins at the beginning for each program. */
static int parse_options(int argc, char *argv[])
{
    int option, sum = 60;
    while ((option = getopt(argc, argv, "ab:")) != -1)
        sum += option == 'a' ? 1 : option == 'b' ? atoi(optarg) : 100;
    return sum;
}

static void own_log(enum fuse_log_level level, const char *format, va_list args)
{
    (void)level;
    (void)format;
    (void)args;
}

int main(int argc, char *argv[])
{
    const char *what = argc > 1 ? argv[1] : "";
    static const struct fuse_operations ops;
    if (strcmp(what, "status") == 0)
        return atoi(argv[2]);
    if (strcmp(what, "log") == 0)
        return log_and_fail();
    if (strcmp(what, "much") == 0)
        return log_a_lot();
    if (strcmp(what, "signals") == 0)
        return check_signals();
    if (strcmp(what, "descriptor") == 0)
        return mount_on_descriptor();
    if (strcmp(what, "own-log") == 0) {
        fuse_set_log_func(own_log);
        return log_and_fail();
    }
    if (strcmp(what, "-a") == 0)
        return parse_options(argc, argv);
    if (strcmp(what, "arguments") == 0) { /* they are its own to change */
        argv[1][0] = 'A';
        return argv[argc] == NULL ? argc : -1;
    }
    return fuse_main(argc, argv, &ops, NULL);
}
