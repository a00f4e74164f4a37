/*
 * starts.c - a tracer that asks for no events: starts PROGRAM [ARGUMENT...] and prints the
 * registers of each stop by SIGTRAP, which is that of an execve.
 */
#include <signal.h>
#include <stdio.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#define IN_PAGE 0xfff

int main(int argc, char *argv[])
{
    struct user_regs_struct at;
    pid_t child = fork();
    int status;

    if (child == 0) {
        ptrace(PTRACE_TRACEME, 0, NULL, NULL);
        execv(argv[argc > 1], argv + 1);
        _exit(127);
    }
    while (waitpid(child, &status, 0) == child && WIFSTOPPED(status)) {
        int sent = WSTOPSIG(status) == SIGTRAP ? 0 : WSTOPSIG(status);

        ptrace(PTRACE_GETREGS, child, NULL, &at);
        printf("%d: at %llx, call %lld, flags %llx, rax %llx, rdx %llx, r11 %llx\n",
               WSTOPSIG(status), at.rip & IN_PAGE, (long long)at.orig_rax, at.eflags, at.rax,
               at.rdx, at.r11);
        ptrace(PTRACE_CONT, child, NULL, (void *)(long)sent);
    }
    printf("%x\n", (unsigned)status);
    return 0;
}
