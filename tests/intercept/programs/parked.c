/*
 * parked.c - SIGSEGV and SIGSYS that are sent while they are blocked: they are pending, can be
 * waited for and are handled when they are let in, by whoever lets them in.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/aio_abi.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static int sent;     /* the signal that is tried */
static sigset_t one; /* has it alone */
static volatile sig_atomic_t handled;
static int ends[2];

static void line(const char *name, long value)
{
    printf("%s %ld\n", name, value);
    fflush(stdout);
}

static void count(int signal)
{
    (void)signal;
    handled++;
}

static void block_all_and_count(int signal)
{
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, NULL);
    count(signal);
}

static void set(void (*handler)(int))
{
    struct sigaction action = {.sa_handler = handler};
    sigaction(sent, &action, NULL);
}

static void mask(int how)
{
    pthread_sigmask(how, &one, NULL);
}

static int is_pending(void)
{
    sigset_t pending;
    sigemptyset(&pending);
    sigpending(&pending);
    return sigismember(&pending, sent);
}

static void to_process(void)
{
    kill(getpid(), sent);
}

static void to_thread(void)
{
    syscall(SYS_tgkill, getpid(), gettid(), sent);
}

/* ---- one thread ---- */

static void waits_and_is_let_in(void (*send)(void))
{
    handled = 0;
    mask(SIG_BLOCK);
    send();
    send();
    line("pending", is_pending());
    line("handled while blocked", handled);
    mask(SIG_UNBLOCK);
    line("handled when let in", handled);
    line("pending behind it", is_pending());
}

static void is_waited_for(void (*send)(void))
{
    siginfo_t info;
    struct timespec none = {0};
    handled = 0;
    mask(SIG_BLOCK);
    send();
    line("waited for", sigtimedwait(&one, &info, &none) == sent);
    line("code", info.si_code);
    line("sender", info.si_pid == getpid());
    line("none is left", sigtimedwait(&one, &info, &none) < 0 ? errno : 0);
    mask(SIG_UNBLOCK);
    line("handled", handled);
}

static void is_ignored(void)
{
    mask(SIG_BLOCK);
    set(SIG_IGN);
    to_process();
    line("pending though ignored", is_pending());
    set(SIG_IGN);
    line("dropped", is_pending());
    to_thread();
    set(SIG_IGN);
    line("dropped of a thread", is_pending());
    set(count);
    mask(SIG_UNBLOCK);
}

/* io_pgetevents(2), for which nothing comes. */
static long wait_for_io(const sigset_t *mask, struct timespec *timeout)
{
    const struct {
        const sigset_t *mask;
        size_t size;
    } argument = {mask, 8};
    struct io_event event;
    aio_context_t context = 0;
    if (syscall(SYS_io_setup, 1, &context) < 0)
        abort();
    long ret = syscall(SYS_io_pgetevents, context, 1, 1, &event, timeout, &argument);
    int error = errno;
    syscall(SYS_io_destroy, context);
    return ret < 0 ? error : ret;
}

/* Calls that have a mask of their own let it in, too. */
static void ends_a_wait(void)
{
    sigset_t none;
    struct timespec at_once = {0};
    sigemptyset(&none);
    handled = 0;
    mask(SIG_BLOCK);
    to_process();
    line("ppoll that blocks it", ppoll(NULL, 0, &at_once, &one));
    line("sigsuspend", sigsuspend(&none) < 0 ? errno : 0);
    line("handled", handled);
    to_thread();
    line("ppoll", ppoll(NULL, 0, NULL, &none) < 0 ? errno : 0);
    line("handled", handled);
    to_process();
    line("pselect", pselect(0, NULL, NULL, NULL, NULL, &none) < 0 ? errno : 0);
    line("handled", handled);
    line("pending", is_pending());
    to_thread();
    line("io_pgetevents", wait_for_io(&none, NULL));
    line("handled", handled);
    mask(SIG_UNBLOCK);
}

/* What comes while it waits is handled with that mask: by calls that trap, too. */
static void calls_with_all_blocked(int signal)
{
    count(signal);
    for (int i = 0; i < 3; i++)
        syscall(SYS_getppid);
}

static void is_blocked_by_a_wait(void)
{
    struct sigaction action = {.sa_handler = calls_with_all_blocked};
    struct itimerval soon = {.it_value.tv_usec = 20000};
    struct timespec long_enough = {5, 0};
    sigset_t others;
    sigfillset(&others);
    sigdelset(&others, SIGALRM);
    handled = 0;
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &soon, NULL);
    line("io_pgetevents with all blocked", wait_for_io(&others, &long_enough));
    line("handled", handled);
    line("with a wrong mask", wait_for_io((sigset_t *)8, &long_enough));
}

static void is_blocked_no_more_behind_a_handler(void)
{
    handled = 0;
    struct sigaction action = {.sa_handler = block_all_and_count};
    sigaction(SIGUSR1, &action, NULL);
    raise(SIGUSR1);
    to_thread();
    line("handled behind a handler that blocks", handled);
}

/* ---- processes ---- */

static pid_t child_that_sends(pid_t to)
{
    pid_t child = fork();
    if (child == 0) {
        kill(to, sent);
        if (write(ends[1], "x", 1) != 1)
            abort();
        _exit(0);
    }
    return child;
}

static int status_of(pid_t child)
{
    int status;
    return waitpid(child, &status, 0) == child ? status : -1;
}

static void interrupts_no_call(void)
{
    char byte;
    mask(SIG_BLOCK);
    pid_t child = child_that_sends(getpid());
    line("read", read(ends[0], &byte, 1));
    status_of(child);
    line("pending", is_pending());
    mask(SIG_UNBLOCK);
}

static void is_not_inherited(void)
{
    mask(SIG_BLOCK);
    to_process();
    to_thread();
    pid_t child = fork();
    if (child == 0)
        _exit(is_pending());
    line("pending in a child", status_of(child));
    line("pending in its parent", is_pending());
    mask(SIG_UNBLOCK);
}

static void ends_a_process(void)
{
    pid_t child = fork();
    if (child == 0) {
        set(SIG_DFL);
        mask(SIG_BLOCK);
        to_process();
        line("it goes on", 1);
        mask(SIG_UNBLOCK);
        _exit(0);
    }
    int status = status_of(child);
    line("ended by it", WIFSIGNALED(status) && WTERMSIG(status) == sent);
}

static void is_there_in_the_next_program(const char *self)
{
    char number[8];
    snprintf(number, sizeof number, "%d", sent);
    pid_t child = fork();
    if (child == 0) {
        mask(SIG_BLOCK);
        to_process();
        if (execl("/no/such/program", "none", (char *)NULL) < 0 && is_pending())
            execl(self, self, number, (char *)NULL);
        _exit(1);
    }
    line("executed", status_of(child));
}

/* ---- threads ---- */

/* The other thread says by a byte that it is there; that it has ended is told by its result. */
static void *waits_for_it(void *unused)
{
    int got = 0;
    if (write(ends[1], "x", 1) == 1)
        sigwait(&one, &got);
    line("another thread waited", got == sent);
    return unused;
}

static void *lets_it_in(void *unused)
{
    mask(SIG_UNBLOCK);
    if (write(ends[1], "x", 1) != 1)
        abort();
    while (!handled) /* and makes no call: the SIGSYS of one that traps may swallow another */
        ;
    line("another thread handled", handled);
    return unused;
}

static void is_for_another(void *(*other)(void *))
{
    char byte;
    pthread_t thread;
    handled = 0;
    mask(SIG_BLOCK);
    pthread_create(&thread, NULL, other, NULL);
    if (read(ends[0], &byte, 1) != 1)
        abort();
    to_process();
    pthread_join(thread, NULL);
    line("pending", is_pending());
    mask(SIG_UNBLOCK);
}

static void try(const char *self)
{
    set(count);
    waits_and_is_let_in(to_process);
    waits_and_is_let_in(to_thread);
    is_waited_for(to_process);
    is_waited_for(to_thread);
    is_ignored();
    ends_a_wait();
    is_blocked_by_a_wait();
    is_blocked_no_more_behind_a_handler();
    interrupts_no_call();
    is_not_inherited();
    ends_a_process();
    is_there_in_the_next_program(self);
    is_for_another(waits_for_it);
    is_for_another(lets_it_in);
}

int main(int argc, char **argv)
{
    const int signals[] = {SIGSEGV, SIGSYS};
    if (pipe(ends) < 0)
        abort();
    for (int i = 0; i < 2; i++) {
        sent = argc > 1 ? atoi(argv[1]) : signals[i];
        sigemptyset(&one);
        sigaddset(&one, sent);
        if (argc > 1)
            return !is_pending();
        try(argv[0]);
    }
    return 0;
}
