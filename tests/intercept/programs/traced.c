/*
 * traced.c - tracers that wait as for any child: for one that stops itself, and for one that was
 * attached to. Prints every stop, and what a second tracer is told.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* Calls by a site that nobody has called from before: it traps. */
static long fresh_call(void)
{
    long result = SYS_getppid;

    __asm__ volatile("syscall" : "+a"(result) : : "rcx", "r11", "memory");
    return result;
}

static void child(int signal)
{
    struct stat st;

    if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0)
        _exit(1);
    if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) == 0 || errno != EPERM)
        _exit(2);
    kill(getpid(), signal);
    for (int i = 0; i < 5; i++)
        if (stat(".", &st) != 0 || open("file", O_CREAT | O_RDWR, 0600) < 0 || fresh_call() < 1)
            _exit(3);
    _exit(ptrace(PTRACE_TRACEME, 0, NULL, NULL) == 0 || errno != EPERM ? 4 : 5);
}

static void print(const char *how, int status)
{
    if (WIFSTOPPED(status))
        printf("%s stopped %d\n", how, WSTOPSIG(status));
    else if (WIFSIGNALED(status))
        printf("%s killed %d\n", how, WTERMSIG(status));
    else
        printf("%s exited %d\n", how, WEXITSTATUS(status));
    fflush(stdout);
}

/* Until it ends, giving it each signal but those that say it was stopped. */
static void follow(const char *how, pid_t pid)
{
    int status;

    while (waitpid(pid, &status, 0) == pid) {
        print(how, status);
        if (!WIFSTOPPED(status))
            break;
        ptrace(PTRACE_CONT, pid, NULL, WSTOPSIG(status) == SIGUSR1 ? SIGUSR1 : 0);
    }
}

static void follow_by_info(const char *how, pid_t pid)
{
    siginfo_t info;

    while (waitid(P_PID, (id_t)pid, &info, WEXITED) == 0) {
        printf("%s %d %d\n", how, info.si_code, info.si_status);
        if (info.si_code == CLD_EXITED || info.si_code == CLD_KILLED)
            break;
        ptrace(PTRACE_CONT, pid, NULL, info.si_status == SIGUSR1 ? SIGUSR1 : 0);
    }
}

int main(void)
{
    static const int signals[] = {0, SIGSTOP, SIGUSR1, SIGKILL, SIGCHLD};
    int ends[2], status;
    pid_t pid;
    char byte;

    for (unsigned i = 0; i < sizeof(signals) / sizeof(*signals); i++)
        for (int info = 0; info < 2; info++) {
            if ((pid = fork()) == 0)
                child(signals[i]);
            (info ? follow_by_info : follow)(info ? "waitid" : "waitpid", pid);
        }
    if (pipe(ends) != 0)
        return 1;
    if ((pid = fork()) == 0) {
        close(ends[1]);
        _exit(read(ends[0], &byte, 1) == 0 && fresh_call() > 0 ? 6 : 7);
    }
    printf("attached %ld\n", ptrace(PTRACE_ATTACH, pid, NULL, NULL));
    if (waitpid(pid, &status, 0) != pid || !WIFSTOPPED(status))
        return 1;
    print("attached", status);
    close(ends[1]);
    ptrace(PTRACE_CONT, pid, NULL, NULL);
    follow("attached", pid);
    return 0;
}
