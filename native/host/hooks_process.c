/*
 * hooks_process.c - a guest's process: its end, its threads, its signals, its session, its ids.
 *
 * In a child that the guest forked there is no guest (df_guest_current() is NULL): there every hook
 * is the real function, so that fork and exec (sshfs and its ssh) work as written.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#include "host/guarded.h"
#include "host/guest.h"
#include "host/hooks.h"
#include "host/plugin.h"
#include "host/program.h"

/* ---- its end ---------------------------------------------------------------------------- */

/*
 * The mount ends, and what the thread does ends with it. Inside an op, on a thread of the
 * application: the op fails. On the thread of main: df_program_run() returns with the status. Else
 * it is a thread of the guest's own.
 */
static _Noreturn void end_guest(struct df_guest *guest, int status)
{
    fflush(guest->output);
    df_plugin_exit(guest->plugin);
    df_guarded_leave();
    df_program_leave(status);
    pthread_exit(NULL);
}

static void hook_exit(int status)
{
    struct df_guest *guest = df_guest_current();
    if (guest)
        end_guest(guest, status & 0xff);
    _exit(status); /* a forked child: the host's atexit handlers and stdio are not its own */
}

static void hook_abort(void)
{
    struct df_guest *guest = df_guest_current();
    if (!guest)
        abort();
    df_plugin_log(guest->plugin, "the plugin called abort()");
    end_guest(guest, DF_PROGRAM_ABORTED);
}

static void hook_assert_fail(const char *assertion, const char *file, unsigned line,
                             const char *function)
{
    struct df_guest *guest = df_guest_current();
    if (guest)
        fprintf(guest->output, "%s:%u: %s: Assertion `%s' failed.\n", file, line,
                function ? function : "?", assertion);
    hook_abort();
}

static int hook_libc_start_main(df_main_function main)
{
    df_program_enter(main);
}

/* ---- its children ----------------------------------------------------------------------- */

/* In the child there is no guest. vfork(2) cannot be called through a function of ours: the child
 * would return into a frame that the parent uses again; fork(2) is what it promises. */
static pid_t hook_fork(void)
{
    pid_t pid = fork();
    if (pid == 0)
        df_guest_enter(NULL);
    return pid;
}

/* ---- its threads ------------------------------------------------------------------------ */

struct start {
    struct df_guest *guest;
    void *(*function)(void *);
    void *argument;
};

static void *run_thread(void *data)
{
    struct start start = *(struct start *)data;
    free(data);
    df_guest_enter(start.guest);
    return start.function(start.argument);
}

/* A thread of the guest works for the guest. Signals are the host's: it is born with all blocked.
 */
static int hook_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                               void *(*function)(void *), void *argument)
{
    struct df_guest *guest = df_guest_current();
    if (!guest)
        return pthread_create(thread, attributes, function, argument);
    struct start *start = malloc(sizeof(*start));
    if (!start)
        return EAGAIN;
    *start = (struct start){guest, function, argument};
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(thread, attributes, run_thread, start);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error)
        free(start);
    return error;
}

/* ---- its signals: handlers and masks belong to the host --------------------------------- */

static int hook_sigaction(int signal, const struct sigaction *new, struct sigaction *old)
{
    if (!df_guest_current())
        return sigaction(signal, new, old);
    if (old)
        memset(old, 0, sizeof(*old));
    return 0;
}

static sighandler_t hook_signal(int number, sighandler_t handler)
{
    return df_guest_current() ? SIG_DFL : signal(number, handler);
}

/* It may look, and is told that it changed what it did not. */
static int hook_sigprocmask(int how, const sigset_t *set, sigset_t *old)
{
    return sigprocmask(how, df_guest_current() ? NULL : set, old);
}

static int hook_pthread_sigmask(int how, const sigset_t *set, sigset_t *old)
{
    return hook_sigprocmask(how, set, old);
}

static unsigned hook_alarm(unsigned seconds)
{
    return df_guest_current() ? 0 : alarm(seconds);
}

static int hook_setitimer(__itimer_which_t which, const struct itimerval *value,
                          struct itimerval *old)
{
    if (!df_guest_current())
        return setitimer(which, value, old);
    if (old)
        memset(old, 0, sizeof(*old));
    return 0;
}

/* ---- its session ------------------------------------------------------------------------ */

static int hook_daemon(int nochdir, int noclose)
{
    return df_guest_current() ? 0 : daemon(nochdir, noclose);
}

static pid_t hook_setsid(void)
{
    return df_guest_current() ? getpid() : setsid();
}

static int hook_setpgid(pid_t pid, pid_t group)
{
    return df_guest_current() ? 0 : setpgid(pid, group);
}

static int hook_setpgrp(void)
{
    return df_guest_current() ? 0 : setpgrp();
}

/* 0, 1 and 2 are the host's: a guest that closes or replaces them is told that it did. */
static int hook_close(int fd)
{
    return df_guest_current() && fd >= 0 && fd <= 2 ? 0 : close(fd);
}

static int hook_dup2(int old, int new)
{
    return df_guest_current() && new >= 0 && new <= 2 ? new : dup2(old, new);
}

static int hook_close_range(unsigned first, unsigned last, int flags)
{
    return df_guest_current() ? 0 : close_range(first, last, flags);
}

static void hook_closefrom(int first)
{
    if (!df_guest_current())
        closefrom(first);
}

/* ---- its ids and limits: those of the whole process ------------------------------------- */

static int refuse_unless(int same)
{
    if (same)
        return 0;
    errno = EPERM;
    return -1;
}

static int hook_setuid(uid_t uid)
{
    return df_guest_current() ? refuse_unless(uid == geteuid()) : setuid(uid);
}

static int hook_seteuid(uid_t uid)
{
    return df_guest_current() ? refuse_unless(uid == geteuid()) : seteuid(uid);
}

static int hook_setgid(gid_t gid)
{
    return df_guest_current() ? refuse_unless(gid == getegid()) : setgid(gid);
}

static int hook_setegid(gid_t gid)
{
    return df_guest_current() ? refuse_unless(gid == getegid()) : setegid(gid);
}

static int hook_setrlimit(__rlimit_resource_t resource, const struct rlimit *limit)
{
    return df_guest_current() ? 0 : setrlimit(resource, limit);
}

static int hook_mlockall(int flags)
{
    return df_guest_current() ? 0 : mlockall(flags);
}

const struct df_hook df_hooks_process[] = {
    {"__libc_start_main", hook_libc_start_main},
    {"exit", hook_exit},
    {"_exit", hook_exit},
    {"_Exit", hook_exit},
    {"quick_exit", hook_exit},
    {"abort", hook_abort},
    {"__assert_fail", hook_assert_fail},
    {"fork", hook_fork},
    {"vfork", hook_fork},
    {"pthread_create", hook_pthread_create},
    {"sigaction", hook_sigaction},
    {"signal", hook_signal},
    {"__sysv_signal", hook_signal},
    {"sigprocmask", hook_sigprocmask},
    {"pthread_sigmask", hook_pthread_sigmask},
    {"alarm", hook_alarm},
    {"setitimer", hook_setitimer},
    {"daemon", hook_daemon},
    {"setsid", hook_setsid},
    {"setpgid", hook_setpgid},
    {"setpgrp", hook_setpgrp},
    {"close", hook_close},
    {"dup2", hook_dup2},
    {"close_range", hook_close_range},
    {"closefrom", hook_closefrom},
    {"setuid", hook_setuid},
    {"seteuid", hook_seteuid},
    {"setgid", hook_setgid},
    {"setegid", hook_setegid},
    {"setrlimit", hook_setrlimit},
    {"setrlimit64", hook_setrlimit},
    {"mlockall", hook_mlockall},
    {NULL, NULL},
};
