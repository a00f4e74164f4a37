/*
 * cleared.c - children that begin without their parent's signal handlers (CLONE_CLEAR_SIGHAND), as
 * posix_spawn(3) of glibc 2.38 and later makes them: what they find, and what ends them.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* No call: a child that shares our memory would leave its return address changed. */
static inline __attribute__((always_inline)) long clone3(const struct clone_args *args)
{
    long result = SYS_clone3;
    __asm__ volatile("syscall"
                     : "+a"(result)
                     : "D"(args), "S"(sizeof *args)
                     : "rcx", "r11", "memory");
    return result;
}

static void handler(int signal)
{
    (void)signal;
    if (write(1, "handler\n", 8) < 0)
        _exit(9);
}

static int is_set(int signal, void (*wanted)(int))
{
    struct sigaction found;
    return sigaction(signal, NULL, &found) == 0 && found.sa_handler == wanted;
}

/* Calls whose sites are rewritten, a copy that faults, dispositions; then `last` ends it. */
static void child(int last)
{
    for (int i = 0; i < 8; i++)
        getppid();
    if (!is_set(SIGUSR1, SIG_DFL) || !is_set(SIGUSR2, SIG_IGN) || !is_set(SIGSEGV, SIG_DFL) ||
        !is_set(SIGBUS, SIG_IGN))
        _exit(3);
    if (open((const char *)1, 0) >= 0 || errno != EFAULT)
        _exit(4);
    signal(SIGTERM, handler);
    raise(SIGTERM);
    if (last == 0)
        execl("/bin/echo", "echo", "executed", NULL);
    else if (last == SIGSEGV)
        *(volatile int *)8 = 1;
    else
        raise(last);
    _exit(0);
}

static void make(const char *what, unsigned long flags, int last)
{
    struct clone_args args = {.flags = CLONE_CLEAR_SIGHAND | flags, .exit_signal = SIGCHLD};
    int status = 0;
    fflush(stdout);
    long pid = clone3(&args);
    if (pid == 0)
        child(last);
    if (pid > 0)
        waitpid((pid_t)pid, &status, 0);
    printf("%s %d: %ld, %x\n", what, last, pid < 0 ? pid : 0, (unsigned)status);
}

/* As of kernels to come: what is behind the fields that are known has to be 0. */
static void make_of(size_t size, size_t set)
{
    union {
        struct clone_args args;
        char bytes[5000];
    } given = {.args = {.exit_signal = SIGCHLD}};
    int status = 0;
    if (set > 0)
        given.bytes[set] = 1;
    fflush(stdout);
    long pid = syscall(SYS_clone3, &given, size);
    if (pid == 0)
        _exit(7);
    int error = pid < 0 ? errno : 0;
    if (pid > 0)
        waitpid((pid_t)pid, &status, 0);
    printf("of %zu bytes, %zu set: %d, %x\n", size, set, error, (unsigned)status);
}

int main(void)
{
    static const int lasts[] = {0, SIGUSR1, SIGUSR2, SIGSEGV};
    signal(SIGUSR1, handler);
    signal(SIGSEGV, handler);
    signal(SIGUSR2, SIG_IGN);
    signal(SIGBUS, SIG_IGN);
    for (size_t i = 0; i < sizeof lasts / sizeof *lasts; i++) {
        make("forked", 0, lasts[i]);
        make("spawned", CLONE_VM | CLONE_VFORK, lasts[i]);
    }
    make("with handlers to share", CLONE_VM | CLONE_SIGHAND, 0);
    static const size_t sizes[][2] = {{63, 0},    {216, 0},  {216, 215},   {224, 0},
                                      {224, 223}, {4096, 0}, {4096, 4095}, {4097, 0}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        make_of(sizes[i][0], sizes[i][1]);
    raise(SIGUSR1); /* ours are as they were */
    return 0;
}
