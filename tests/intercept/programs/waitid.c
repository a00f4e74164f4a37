/*
 * waitid.c - a tracer that waits by waitid(2): prints every stop of a program that it starts.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    siginfo_t info;
    int options = WEXITED | WSTOPPED | __WALL;
    if (argc < 2)
        return 2;
    pid_t child = fork();
    if (child == 0) {
        ptrace(PTRACE_TRACEME, 0, NULL, NULL);
        execv(argv[1], argv + 1);
        _exit(127);
    }
    for (;;) {
        info.si_pid = 0;
        if (waitid(P_PID, (id_t)child, &info, options | WNOWAIT) != 0 ||
            waitid(P_ALL, 0, &info, options) != 0)
            return 3;
        printf("%s %d %d\n", info.si_pid == child ? "child" : "another", info.si_code,
               info.si_status);
        if (info.si_code == CLD_EXITED || info.si_code == CLD_KILLED)
            break;
        ptrace(PTRACE_CONT, child, NULL, info.si_status == SIGTRAP ? 0 : info.si_status);
    }
    return waitid(P_ALL, 0, &info, options) == 0;
}
