/*
 * hooks_signal.c - a guest's signals. Handlers, masks and timers of the process belong to the host;
 * what a guest sends to the process that it takes for its own is done to the guest alone.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "loader/guest.h"
#include "loader/hooks.h"
#include "loader/plugin.h"
#include "loader/program.h"

/* ---- handlers: kept, for signals that the guest sends to itself -------------------------- */

static bool is_number(int number)
{
    return number > 0 && number < _NSIG;
}

static int hook_sigaction(int number, const struct sigaction *new, struct sigaction *old)
{
    struct df_guest *guest = df_guest_current();
    if (!guest)
        return sigaction(number, new, old);
    if (!is_number(number) || (new && (number == SIGKILL || number == SIGSTOP))) {
        errno = EINVAL;
        return -1;
    }
    pthread_mutex_lock(&guest->lock);
    struct sigaction before = guest->actions[number];
    if (new)
        guest->actions[number] = *new;
    pthread_mutex_unlock(&guest->lock);
    if (old)
        *old = before;
    return 0;
}

static sighandler_t hook_signal(int number, sighandler_t handler)
{
    if (!df_guest_current())
        return signal(number, handler);
    const struct sigaction new = {.sa_handler = handler};
    struct sigaction old;
    return hook_sigaction(number, &new, &old) == 0 ? old.sa_handler : SIG_ERR;
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

/* As those of System V: a mask is the host's (below), so SIG_HOLD holds nothing. */
static sighandler_t hook_sigset(int number, sighandler_t handler)
{
    if (!df_guest_current())
        return sigset(number, handler);
    return handler == SIG_HOLD ? SIG_DFL : hook_signal(number, handler);
}

static int hook_sigignore(int number)
{
    if (!df_guest_current())
        return sigignore(number);
    return hook_signal(number, SIG_IGN) == SIG_ERR ? -1 : 0;
}

static int hook_siginterrupt(int number, int interrupts)
{
    return df_guest_current() ? 0 : siginterrupt(number, interrupts);
}

#pragma GCC diagnostic pop

/* ---- sending ----------------------------------------------------------------------------- */

static void default_action(struct df_guest *guest, int number)
{
    switch (number) {
    case SIGCHLD:
    case SIGCONT:
    case SIGURG:
    case SIGWINCH:
    case SIGSTOP: /* the host is not to stop */
    case SIGTSTP:
    case SIGTTIN:
    case SIGTTOU:
        return;
    case SIGKILL:
    case SIGABRT:
    case SIGSEGV:
    case SIGBUS:
    case SIGFPE:
    case SIGILL:
    case SIGSYS:
    case SIGTRAP:
        df_hooks_end(guest, DF_PROGRAM_KILLED + number);
    default: /* SIGTERM and its like: its mount ends, as with fuse_set_signal_handlers() */
        df_plugin_exit(guest->plugin);
    }
}

/* The guest has sent itself a signal. On this thread, at once, as raise(3) would. */
static int deliver(struct df_guest *guest, int number)
{
    if (number == 0)
        return 0;
    if (!is_number(number)) {
        errno = EINVAL;
        return -1;
    }
    pthread_mutex_lock(&guest->lock);
    struct sigaction action = guest->actions[number];
    pthread_mutex_unlock(&guest->lock);
    siginfo_t info = {.si_signo = number, .si_code = SI_USER};
    info.si_pid = getpid();
    info.si_uid = getuid();
    if (number == SIGKILL || number == SIGSTOP || action.sa_handler == SIG_DFL)
        default_action(guest, number);
    else if (action.sa_handler == SIG_IGN)
        return 0;
    else if (action.sa_flags & SA_SIGINFO)
        action.sa_sigaction(number, &info, NULL);
    else
        action.sa_handler(number);
    return 0;
}

/* Its own process and groups are the host's, its parent is the host's parent. */
static bool means_host(pid_t pid)
{
    return pid == getpid() || pid == 0 || pid == -1 || pid == -getpgrp() || pid == getppid();
}

static int hook_kill(pid_t pid, int number)
{
    struct df_guest *guest = df_guest_current();
    if (!guest || !means_host(pid))
        return kill(pid, number);
    return pid == getppid() ? 0 : deliver(guest, number);
}

static int hook_killpg(pid_t group, int number)
{
    return df_guest_current() ? hook_kill(-group, number) : killpg(group, number);
}

static int hook_raise(int number)
{
    struct df_guest *guest = df_guest_current();
    return guest ? deliver(guest, number) : raise(number);
}

static int hook_sigqueue(pid_t pid, int number, const union sigval value)
{
    if (!df_guest_current() || !means_host(pid))
        return sigqueue(pid, number, value);
    return hook_kill(pid, number);
}

/* To another thread: all of the guest's have every signal blocked, and the host's are not its. */
static int hook_pthread_kill(pthread_t thread, int number)
{
    struct df_guest *guest = df_guest_current();
    if (!guest || number == 0)
        return pthread_kill(thread, number);
    return pthread_equal(thread, pthread_self()) && deliver(guest, number) != 0 ? errno : 0;
}

static int hook_tgkill(pid_t group, pid_t thread, int number)
{
    struct df_guest *guest = df_guest_current();
    if (!guest || group != getpid())
        return tgkill(group, thread, number);
    return thread == gettid() ? deliver(guest, number) : 0;
}

/* ---- masks and timers -------------------------------------------------------------------- */

/* It may look, and is told that it changed what it did not. */
static int hook_sigprocmask(int how, const sigset_t *set, sigset_t *old)
{
    return sigprocmask(how, df_guest_current() ? NULL : set, old);
}

static int hook_pthread_sigmask(int how, const sigset_t *set, sigset_t *old)
{
    return pthread_sigmask(how, df_guest_current() ? NULL : set, old);
}

/* Its threads have all signals blocked. So they would take the host's, if they waited for signals,
 * and the host's handlers would not learn of them: they wait for none. */
static const sigset_t *to_wait_for(const sigset_t *set)
{
    static const sigset_t none;
    return df_guest_current() ? &none : set;
}

static int hook_sigwait(const sigset_t *set, int *number)
{
    return sigwait(to_wait_for(set), number);
}

static int hook_sigwaitinfo(const sigset_t *set, siginfo_t *info)
{
    return sigwaitinfo(to_wait_for(set), info);
}

static int hook_sigtimedwait(const sigset_t *set, siginfo_t *info, const struct timespec *timeout)
{
    return sigtimedwait(to_wait_for(set), info, timeout);
}

static int hook_signalfd(int fd, const sigset_t *set, int flags)
{
    return signalfd(fd, to_wait_for(set), flags);
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

/* It runs, and its signal, which nobody expects of the host's process, is not sent. */
static int hook_timer_create(clockid_t clock, struct sigevent *event, timer_t *timer)
{
    struct sigevent silent = {.sigev_notify = SIGEV_NONE};
    bool signals = !event || event->sigev_notify != SIGEV_THREAD;
    return timer_create(clock, df_guest_current() && signals ? &silent : event, timer);
}

/* ---- the same by number ------------------------------------------------------------------ */

/* syscall(2), for the few numbers that would end, signal or replace the host, or close its files.
 */
static long hook_syscall(long number, ...)
{
    long words[6];
    va_list arguments;
    va_start(arguments, number);
    for (size_t i = 0; i < 6; i++)
        words[i] = va_arg(arguments, long);
    va_end(arguments);
    struct df_guest *guest = df_guest_current();
    switch (guest ? number : -1) {
    case SYS_exit_group:
        df_hooks_end(guest, (int)words[0] & 0xff);
    case SYS_kill:
        return hook_kill((pid_t)words[0], (int)words[1]);
    case SYS_tgkill:
        return hook_tgkill((pid_t)words[0], (pid_t)words[1], (int)words[2]);
    case SYS_tkill:
        return hook_tgkill(getpid(), (pid_t)words[0], (int)words[1]);
    case SYS_close:
        return df_hooks_close((int)words[0]);
    case SYS_close_range: /* glibc has a function for it since 2.34 */
        return 0;
    case SYS_execve:
    case SYS_execveat:
        errno = EPERM;
        return -1;
    }
    return syscall(number, words[0], words[1], words[2], words[3], words[4], words[5]);
}

const struct df_hook df_hooks_signal[] = {
    {"sigaction", hook_sigaction},
    {"signal", hook_signal},
    {"__sysv_signal", hook_signal},
    {"bsd_signal", hook_signal},
    {"ssignal", hook_signal},
    {"sigset", hook_sigset},
    {"sigignore", hook_sigignore},
    {"siginterrupt", hook_siginterrupt},
    {"kill", hook_kill},
    {"killpg", hook_killpg},
    {"raise", hook_raise},
    {"gsignal", hook_raise},
    {"sigqueue", hook_sigqueue},
    {"pthread_kill", hook_pthread_kill},
    {"tgkill", hook_tgkill},
    {"sigprocmask", hook_sigprocmask},
    {"pthread_sigmask", hook_pthread_sigmask},
    {"sigwait", hook_sigwait},
    {"sigwaitinfo", hook_sigwaitinfo},
    {"sigtimedwait", hook_sigtimedwait},
    {"signalfd", hook_signalfd},
    {"alarm", hook_alarm},
    {"setitimer", hook_setitimer},
    {"timer_create", hook_timer_create},
    {"syscall", hook_syscall},
    {NULL, NULL},
};
