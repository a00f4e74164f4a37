/*
 * late.c SECONDS - a child that a tracer holds at its first instruction for so long: what its
 * parent had open is its own all the same.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#define FORKS (PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE)

/* What the tracer follows. Its status: the child's. */
static int parent(void)
{
    int fd = open("file", O_CREAT | O_RDWR, 0600), other, status;
    pid_t child;

    ptrace(PTRACE_TRACEME, 0, NULL, NULL);
    raise(SIGSTOP);
    child = fork();
    if (child == 0) {
        if (write(fd, "late", 4) != 4)
            _exit(1);
        other = open("other", O_CREAT | O_RDWR, 0600);
        _exit(other < 0 || write(other, "late", 4) != 4 ? 2 : 0);
    }
    return waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : 3;
}

/* Its own stops are the tracer's; what else it is sent it gets. */
static int signal_of(int status)
{
    return WSTOPSIG(status) == SIGSTOP || WSTOPSIG(status) == SIGTRAP ? 0 : WSTOPSIG(status);
}

int main(int argc, char *argv[])
{
    unsigned seconds = argc > 1 ? (unsigned)atoi(argv[1]) : 0;
    pid_t pid = fork(), stopped;
    unsigned long child = 0;
    int status;

    if (pid == 0)
        _exit(parent());
    waitpid(pid, &status, 0);
    ptrace(PTRACE_SETOPTIONS, pid, NULL, FORKS);
    ptrace(PTRACE_CONT, pid, NULL, 0);
    while ((stopped = waitpid(pid, &status, __WALL)) == pid && WIFSTOPPED(status)) {
        if (status >> 16 != 0)
            ptrace(PTRACE_GETEVENTMSG, pid, NULL, &child);
        ptrace(PTRACE_CONT, pid, NULL, signal_of(status));
        if (child == 0)
            continue;
        waitpid((pid_t)child, NULL, __WALL);
        sleep(seconds);
        ptrace(PTRACE_DETACH, (pid_t)child, NULL, 0);
        child = 0;
    }
    printf("%d\n", WIFEXITED(status) ? WEXITSTATUS(status) : -1);
    return 0;
}
