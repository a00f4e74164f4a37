/*
 * hooks_process.c - a guest's process: its end, its threads, its session, its ids.
 *
 * In a child that the guest forked there is no guest (df_guest_current() is NULL): there every hook
 * is the real function, but for exit(3).
 */
#include <errno.h>
#include <grp.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <threads.h>
#include <unistd.h>

#include "core/masked_thread.h"
#include "loader/guarded.h"
#include "loader/guest.h"
#include "loader/hooks.h"
#include "loader/plugin.h"
#include "loader/program.h"

/* ---- its end ---------------------------------------------------------------------------- */

/* Before the mount ends: what is gone has no name to be told by. Who hears of it may look at once:
 * ops fail by now. */
static void tell_end(struct df_guest *guest, int status)
{
    df_guarded_bar();
    if (df_guarded_inside())
        df_plugin_ended_itself(guest->plugin, status, "in the middle of a call");
    else if (!df_program_runs()) /* main's own end is an error of the mount, or its unmount */
        df_plugin_ended_itself(guest->plugin, status, "on a thread of its own");
}

/*
 * The mount ends, and what the thread does ends with it. Inside an op, on a thread of the
 * application: the op fails. On the thread of main: df_program_run() returns with the status. Else
 * it is a thread of the guest's own.
 */
_Noreturn void df_hooks_end(struct df_guest *guest, int status)
{
    fflush(guest->output);
    tell_end(guest, status);
    df_plugin_exit(guest->plugin);
    df_guarded_leave();
    df_program_leave(status);
    pthread_exit(NULL);
}

static void end_guest(int status)
{
    struct df_guest *guest = df_guest_current();
    if (guest)
        df_hooks_end(guest, status & 0xff);
}

/* In a forked child the host's atexit handlers, and what it has in other streams, are not its own.
 */
_Noreturn void df_hooks_exit(int status)
{
    end_guest(status);
    if (!df_guest_parent())
        exit(status);
    fflush(stdout);
    fflush(df_guest_parent()->output);
    _exit(status);
}

static void hook_exit(int status)
{
    end_guest(status);
    _exit(status);
}

static void hook_quick_exit(int status)
{
    end_guest(status);
    if (df_guest_parent())
        _exit(status);
    quick_exit(status);
}

/* What atexit(3) is given belongs to an object, and runs when that is unloaded; of on_exit(3) libc
 * knows the function alone, and would call it when the host ends. */
struct df_ending {
    struct df_ending *next;
    void (*function)(int status, void *argument);
    void *argument;
};

static int hook_on_exit(void (*function)(int status, void *argument), void *argument)
{
    struct df_guest *guest = df_guest_current();
    if (!guest || !df_guest_is_code(guest, (const void *)function))
        return on_exit(function, argument);
    struct df_ending *ending = malloc(sizeof(*ending));
    if (!ending)
        return -1;
    *ending = (struct df_ending){.function = function, .argument = argument};
    pthread_mutex_lock(&guest->lock);
    ending->next = guest->endings;
    guest->endings = ending;
    pthread_mutex_unlock(&guest->lock);
    return 0;
}

static struct df_ending *take_ending(struct df_guest *guest)
{
    pthread_mutex_lock(&guest->lock);
    struct df_ending *ending = guest->endings;
    if (ending)
        guest->endings = ending->next;
    pthread_mutex_unlock(&guest->lock);
    return ending;
}

void df_hooks_run_endings(struct df_guest *guest, int status)
{
    struct df_ending *ending;
    while ((ending = take_ending(guest))) {
        const struct df_ending taken = *ending;
        free(ending); /* it may not come back: exit(3) */
        taken.function(status, taken.argument);
    }
}

static void hook_abort(void)
{
    struct df_guest *guest = df_guest_current();
    if (!guest)
        abort();
    df_hooks_end(guest, DF_PROGRAM_KILLED + SIGABRT);
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

/* ---- its threads ------------------------------------------------------------------------ */

struct start {
    struct df_guest *guest;
    void *(*function)(void *);
    void *argument;
};

static void thread_ended(void *guest)
{
    df_guest_enter(NULL);
    df_plugin_put(((struct df_guest *)guest)->plugin);
}

static void *run_thread(void *data)
{
    struct start start = *(struct start *)data;
    void *result;
    free(data);
    df_guest_enter(start.guest);
    pthread_cleanup_push(thread_ended, start.guest); /* also after pthread_exit, cancellation */
    result = start.function(start.argument);
    pthread_cleanup_pop(1);
    return result;
}

/* The guest that a new thread will work for. An op of a shared object runs on its caller's thread,
 * which works for nobody; the object must stay loaded all the same. */
static struct df_guest *guest_of(void *(*function)(void *))
{
    struct df_guest *guest = df_guest_current();
    return guest ? guest : df_plugin_guest_of_code((void *)function);
}

/* A thread of the guest works for the guest. */
static int hook_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                               void *(*function)(void *), void *argument)
{
    struct df_guest *guest = guest_of(function);
    if (!guest)
        return pthread_create(thread, attributes, function, argument);
    struct start *start = malloc(sizeof(*start));
    if (!start)
        return EAGAIN;
    *start = (struct start){guest, function, argument};
    atomic_fetch_add(&guest->users, 1);
    int error = df_masked_thread_create(thread, attributes, run_thread, start);
    if (error) {
        atomic_fetch_sub(&guest->users, 1); /* the calling thread is one, too */
        free(start);
    }
    return error;
}

/* C11's, whose function returns an int; thrd_join(3) takes it from the pointer. */
static int hook_thrd_create(thrd_t *thread, thrd_start_t function, void *argument)
{
    if (!guest_of((void *(*)(void *))(void *)function))
        return thrd_create(thread, function, argument);
    int error = hook_pthread_create(thread, NULL, (void *(*)(void *))(void *)function, argument);
    return error == 0 ? thrd_success : error == ENOMEM ? thrd_nomem : thrd_error;
}

/* ---- its session ------------------------------------------------------------------------ */

static int hook_daemon(int nochdir, int noclose)
{
    if (!df_guest_current())
        return daemon(nochdir, noclose);
    return nochdir ? 0 : df_hooks_chdir("/");
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

/* 0, 1 and 2, and until the guest has mounted all that was open before it: a guest that closes or
 * replaces them is told that it did. */
static bool is_hosts(int fd)
{
    struct df_guest *guest = df_guest_current();
    if (!guest || fd < 0)
        return false;
    return fd <= 2 || (!atomic_load(&guest->mounted) && df_host_fds_have(&guest->host_fds, fd));
}

int df_hooks_close(int fd)
{
    return is_hosts(fd) ? 0 : close(fd);
}

static int hook_dup2(int old, int new)
{
    return is_hosts(new) ? new : dup2(old, new);
}

static int hook_dup3(int old, int new, int flags)
{
    return is_hosts(new) ? new : dup3(old, new, flags);
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

/* ---- its ids, root and limits: those of the whole process ------------------------------- */

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

static bool stays(id_t wanted, id_t is)
{
    return wanted == (id_t)-1 || wanted == is;
}

static int hook_setreuid(uid_t real, uid_t effective)
{
    return df_guest_current() ? refuse_unless(stays(real, getuid()) && stays(effective, geteuid()))
                              : setreuid(real, effective);
}

static int hook_setregid(gid_t real, gid_t effective)
{
    return df_guest_current() ? refuse_unless(stays(real, getgid()) && stays(effective, getegid()))
                              : setregid(real, effective);
}

static int hook_setresuid(uid_t real, uid_t effective, uid_t saved)
{
    uid_t is[3];
    if (!df_guest_current())
        return setresuid(real, effective, saved);
    getresuid(&is[0], &is[1], &is[2]);
    return refuse_unless(stays(real, is[0]) && stays(effective, is[1]) && stays(saved, is[2]));
}

static int hook_setresgid(gid_t real, gid_t effective, gid_t saved)
{
    gid_t is[3];
    if (!df_guest_current())
        return setresgid(real, effective, saved);
    getresgid(&is[0], &is[1], &is[2]);
    return refuse_unless(stays(real, is[0]) && stays(effective, is[1]) && stays(saved, is[2]));
}

static int hook_setgroups(size_t count, const gid_t *groups)
{
    return df_guest_current() ? refuse_unless(false) : setgroups(count, groups);
}

static int hook_initgroups(const char *user, gid_t group)
{
    return df_guest_current() ? refuse_unless(false) : initgroups(user, group);
}

static int hook_chroot(const char *path)
{
    return df_guest_current() ? refuse_unless(false) : chroot(path);
}

static int hook_setrlimit(__rlimit_resource_t resource, const struct rlimit *limit)
{
    return df_guest_current() ? 0 : setrlimit(resource, limit);
}

static int hook_prlimit(pid_t pid, enum __rlimit_resource resource, const struct rlimit *limit,
                        struct rlimit *before)
{
    bool own = pid == 0 || pid == getpid();
    return prlimit(pid, resource, df_guest_current() && own ? NULL : limit, before);
}

static int hook_nice(int more)
{
    return df_guest_current() ? getpriority(PRIO_PROCESS, 0) : nice(more);
}

static int hook_setpriority(__priority_which_t which, id_t who, int priority)
{
    return df_guest_current() ? 0 : setpriority(which, who, priority);
}

/* Of what it asks for its process or its thread, which may be the host's, nothing is done; what it
 * would rely on is refused. */
static int hook_prctl(int option, ...)
{
    unsigned long words[4];
    va_list arguments;
    va_start(arguments, option);
    for (size_t i = 0; i < 4; i++)
        words[i] = va_arg(arguments, unsigned long);
    va_end(arguments);
    switch (df_guest_current() ? option : -1) {
    case PR_SET_CHILD_SUBREAPER:
    case PR_SET_DUMPABLE:
    case PR_SET_NAME:
    case PR_SET_PDEATHSIG:
    case PR_SET_TIMERSLACK:
        return 0;
    case PR_CAPBSET_DROP:
    case PR_SET_KEEPCAPS:
    case PR_SET_NO_NEW_PRIVS:
    case PR_SET_SECCOMP:
    case PR_SET_SECUREBITS:
        return refuse_unless(false);
    }
    return prctl(option, words[0], words[1], words[2], words[3]);
}

static int hook_mlockall(int flags)
{
    return df_guest_current() ? 0 : mlockall(flags);
}

const struct df_hook df_hooks_process[] = {
    {"__libc_start_main", hook_libc_start_main},
    {"exit", df_hooks_exit},
    {"_exit", hook_exit},
    {"_Exit", hook_exit},
    {"quick_exit", hook_quick_exit},
    {"on_exit", hook_on_exit},
    {"abort", hook_abort},
    {"__assert_fail", hook_assert_fail},
    {"pthread_create", hook_pthread_create},
    {"thrd_create", hook_thrd_create},
    {"daemon", hook_daemon},
    {"setsid", hook_setsid},
    {"setpgid", hook_setpgid},
    {"setpgrp", hook_setpgrp},
    {"close", df_hooks_close},
    {"dup2", hook_dup2},
    {"dup3", hook_dup3},
    {"close_range", hook_close_range},
    {"closefrom", hook_closefrom},
    {"setuid", hook_setuid},
    {"seteuid", hook_seteuid},
    {"setgid", hook_setgid},
    {"setegid", hook_setegid},
    {"setreuid", hook_setreuid},
    {"setregid", hook_setregid},
    {"setresuid", hook_setresuid},
    {"setresgid", hook_setresgid},
    {"setgroups", hook_setgroups},
    {"initgroups", hook_initgroups},
    {"chroot", hook_chroot},
    {"setrlimit", hook_setrlimit},
    {"setrlimit64", hook_setrlimit},
    {"prlimit", hook_prlimit},
    {"prlimit64", hook_prlimit},
    {"nice", hook_nice},
    {"setpriority", hook_setpriority},
    {"prctl", hook_prctl},
    {"mlockall", hook_mlockall},
    {NULL, NULL},
};
