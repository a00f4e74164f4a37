/*
 * signals.c - what signals promise, one line for each: restarts, EINTR, masks, stacks, nesting.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

static int ends[2];
static volatile sig_atomic_t count;
static void *volatile seen;

static void line(const char *name, long value)
{
    printf("%s %ld\n", name, value);
    fflush(stdout);
}

static void feed(int signal)
{
    (void)signal;
    count++;
    if (write(ends[1], "x", 1) != 1)
        abort();
}

static void tick(int signal)
{
    (void)signal;
    count++;
}

static void set(int signal, void (*handler)(int), int flags)
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
    sigaction(signal, &action, NULL);
}

static void alarm_in(long microseconds)
{
    struct itimerval timer = {.it_value.tv_usec = microseconds};
    setitimer(ITIMER_REAL, &timer, NULL);
}

/* A read that blocks, whose handler feeds it: with SA_RESTART it gets the byte. */
static void restart(void)
{
    char byte = 0;
    set(SIGALRM, feed, SA_RESTART);
    alarm_in(20000);
    line("restarted read", read(ends[0], &byte, 1));
    set(SIGALRM, tick, 0);
    alarm_in(20000);
    long result = read(ends[0], &byte, 1);
    line("interrupted read", result < 0 ? errno : result);
}

static void waits(void)
{
    struct pollfd poll_fd = {.fd = ends[0], .events = POLLIN};
    sigset_t all, none;
    sigfillset(&all);
    sigemptyset(&none);
    set(SIGALRM, tick, SA_RESTART);
    alarm_in(20000);
    line("poll", poll(&poll_fd, 1, 5000) < 0 ? errno : 0);
    sigprocmask(SIG_SETMASK, &all, NULL);
    alarm_in(20000);
    struct timespec long_time = {5, 0}, short_time = {0, 30000000};
    line("ppoll lets in", ppoll(&poll_fd, 1, &long_time, &none) < 0 ? errno : 0);
    alarm_in(10000);
    line("ppoll keeps out", ppoll(&poll_fd, 1, &short_time, &all));
    line("sigsuspend", sigsuspend(&none) < 0 ? errno : 0);
    alarm_in(20000);
    fd_set fds;
    FD_ZERO(&fds);
    line("pselect", pselect(0, &fds, NULL, NULL, &long_time, &none) < 0 ? errno : 0);
    int epoll = epoll_create1(0);
    struct epoll_event event;
    alarm_in(20000);
    line("epoll_pwait", epoll_pwait(epoll, &event, 1, 5000, &none) < 0 ? errno : 0);
    alarm_in(20000);
    sigset_t one;
    sigemptyset(&one);
    sigaddset(&one, SIGALRM);
    line("sigwaitinfo", sigwaitinfo(&one, NULL));
    sigprocmask(SIG_SETMASK, &none, NULL);
    close(epoll);
}

static void dispositions(void)
{
    struct sigaction action, old;
    sigset_t set_, got;
    set(SIGUSR1, tick, SA_RESETHAND | SA_NODEFER);
    sigaction(SIGUSR1, NULL, &old);
    line("handler is shown", old.sa_handler == tick && (old.sa_flags & SA_RESETHAND));
    count = 0;
    raise(SIGUSR1);
    sigaction(SIGUSR1, NULL, &old);
    line("reset after one", count == 1 && old.sa_handler == SIG_DFL);
    sigaction(SIGSYS, NULL, &old);
    line("SIGSYS at first", old.sa_handler == SIG_DFL);
    memset(&action, 0, sizeof action);
    action.sa_handler = tick;
    sigaction(SIGSYS, &action, NULL);
    sigaction(SIGSYS, NULL, &old);
    line("SIGSYS as set", old.sa_handler == tick);
    count = 0;
    raise(SIGSYS);
    line("SIGSYS handled", count);
    sigfillset(&set_);
    sigprocmask(SIG_SETMASK, &set_, NULL);
    sigprocmask(SIG_BLOCK, NULL, &got);
    line("SIGSYS looks blocked", sigismember(&got, SIGSYS));
    getppid();
    sigemptyset(&set_);
    sigprocmask(SIG_SETMASK, &set_, NULL);
    sigprocmask(SIG_BLOCK, NULL, &got);
    line("and is not", sigismember(&got, SIGSYS));
    signal(SIGSYS, SIG_IGN);
    line("bad signal", sigaction(65, &action, NULL) < 0 ? errno : 0);
    line("SIGKILL", sigaction(SIGKILL, &action, NULL) < 0 ? errno : 0);
    line("bad address", syscall(SYS_rt_sigaction, SIGUSR1, 8, NULL, 8) < 0 ? errno : 0);
}

static sigjmp_buf back;

static void jump(int signal)
{
    siglongjmp(back, signal);
}

static void faults(void)
{
    set(SIGSEGV, jump, 0);
    int came = sigsetjmp(back, 1);
    if (came == 0)
        *(volatile int *)8 = 1;
    line("fault", came);
    line("read into nowhere", read(ends[0], (void *)8, 0));
    line("stat of nowhere", syscall(SYS_stat, 8, 16) < 0 ? errno : 0);
    set(SIGSEGV, SIG_DFL, 0);
    pid_t child = fork();
    if (child == 0) {
        *(volatile int *)8 = 1;
        _exit(0);
    }
    int status;
    waitpid(child, &status, 0);
    line("death by fault", WIFSIGNALED(status) ? WTERMSIG(status) : -1);
}

static void note_stack(int signal)
{
    char here;
    (void)signal;
    seen = &here;
    getppid();
    raise(SIGUSR2);
}

static void stacks(void)
{
    static char small[8192];
    stack_t stack = {.ss_sp = small, .ss_size = sizeof small}, old;
    sigaltstack(&stack, NULL);
    set(SIGUSR1, note_stack, SA_ONSTACK);
    set(SIGUSR2, tick, SA_ONSTACK);
    count = 0;
    raise(SIGUSR1);
    line("on its stack", (char *)seen >= small && (char *)seen < small + sizeof small);
    line("nested", count);
    sigaltstack(NULL, &old);
    line("stack as set", old.ss_sp == small);
    stack.ss_flags = SS_DISABLE;
    sigaltstack(&stack, NULL);
}

static int child_function(void *argument)
{
    *(int *)argument = getppid() > 0;
    return 5;
}

static void births(void)
{
    int status, word = 0;
    pid_t child = vfork();
    if (child == 0)
        _exit(3);
    waitpid(child, &status, 0);
    line("vfork", WEXITSTATUS(status));
    child = vfork();
    if (child == 0) {
        execl("/bin/sh", "sh", "-c", "exit 6", (char *)NULL);
        _exit(1);
    }
    waitpid(child, &status, 0);
    line("vfork and exec", WEXITSTATUS(status));
    set(SIGUSR1, tick, 0);
    child = vfork();
    if (child == 0) {
        signal(SIGUSR1, SIG_IGN); /* must not be the parent's */
        execl("/nonexistent", "x", (char *)NULL);
        _exit(errno);
    }
    waitpid(child, &status, 0);
    line("vfork and no exec", WEXITSTATUS(status));
    struct sigaction old;
    sigaction(SIGUSR1, NULL, &old);
    line("dispositions are the parent's", old.sa_handler == tick);
    char *arguments[] = {"sh", "-c", "exit 4", NULL};
    posix_spawnattr_t attributes;
    sigset_t set_;
    posix_spawnattr_init(&attributes);
    sigfillset(&set_);
    posix_spawnattr_setsigdefault(&attributes, &set_);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
    posix_spawn(&child, "/bin/sh", NULL, &attributes, arguments, NULL);
    waitpid(child, &status, 0);
    line("posix_spawn", WEXITSTATUS(status));
    char *stack = mmap(NULL, 16384, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    child = clone(child_function, stack + 16384, CLONE_VM | SIGCHLD, &word);
    waitpid(child, &status, 0);
    line("clone with a stack", WEXITSTATUS(status) * 10 + word);
    for (int i = 0; i < 20; i++) {
        child = fork();
        if (child == 0)
            _exit(getppid() > 0 ? 0 : 1);
        waitpid(child, &status, 0);
        word += WEXITSTATUS(status);
    }
    line("forks", word);
}

static void *end_by_exit(void *argument)
{
    (void)argument;
    sched_yield();
    syscall(SYS_exit, 0);
    return NULL;
}

static void *cancelled(void *argument)
{
    (void)argument;
    for (;;)
        pause();
    return NULL;
}

static void threads(void)
{
    pthread_t thread;
    void *result;
    int bad = 0;
    for (int i = 0; i < 200; i++) {
        bad += pthread_create(&thread, NULL, end_by_exit, NULL);
        bad += pthread_join(thread, NULL);
    }
    line("threads", bad);
    pthread_create(&thread, NULL, cancelled, NULL);
    pthread_cancel(thread);
    pthread_join(thread, &result);
    line("cancelled", result == PTHREAD_CANCELED);
}

int main(void)
{
    if (pipe(ends) != 0)
        return 2;
    restart();
    waits();
    dispositions();
    faults();
    stacks();
    births();
    threads();
    return 0;
}
