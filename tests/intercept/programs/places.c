/* Where a handler finds that the thread was interrupted: in the program, whatever stands for its
 * system calls. The second loop calls as glibc (from 2.41 on) and musl do where a call can be
 * cancelled: handlers of theirs ask whether the call is still to be made by where that is. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <ucontext.h>
#include <unistd.h>

long count_calls(long count);
long count_cancellable(long count);
extern const char __executable_start[], etext[];

__asm__(".text\n"
        ".p2align 4\n"
        "count_calls: push %rbx\n"
        "mov %rdi, %rbx\n"
        "1: mov $39, %eax\n" /* getpid */
        "syscall\n"
        "dec %rbx\n"
        "jnz 1b\n"
        "pop %rbx\n"
        "ret\n"
        ".p2align 4\n"
        "cancellable_start: mov %rdi, %r11\n"
        "mov %rsi, %rax\n"
        "mov %rdx, %rdi\n"
        "mov %rcx, %rsi\n"
        "mov %r8, %rdx\n"
        "mov %r9, %r10\n"
        "nopl 0(%rax)\n" /* as far as the check of a flag has moved it there */
        "mov 8(%rsp), %r8\n"
        "mov 16(%rsp), %r9\n"
        "mov %r11, 8(%rsp)\n"
        "syscall\n"
        "ret\n"
        "count_cancellable: push %rbx\n"
        "mov %rdi, %rbx\n"
        "sub $16, %rsp\n"
        "1: mov $39, %esi\n"
        "call cancellable_start\n"
        "dec %rbx\n"
        "jnz 1b\n"
        "add $16, %rsp\n"
        "pop %rbx\n"
        "ret\n");

static volatile sig_atomic_t inside, elsewhere, signals;

static void note(int signal, siginfo_t *info, void *context)
{
    const ucontext_t *uc = context;
    unsigned long ip = (unsigned long)uc->uc_mcontext.gregs[REG_RIP];

    (void)signal, (void)info;
    signals++;
    if (inside && (ip < (unsigned long)__executable_start || ip >= (unsigned long)etext))
        elsewhere++;
}

static void run(const char *name, long (*loop)(long))
{
    struct itimerval often = {{0, 100}, {0, 100}}, never = {{0, 0}, {0, 0}};

    signals = elsewhere = 0;
    loop(100); /* its calls are rewritten by then */
    setitimer(ITIMER_REAL, &often, NULL);
    for (int i = 0; i < 100000 && signals < 3000; i++) {
        inside = 1;
        loop(1000);
        inside = 0;
    }
    setitimer(ITIMER_REAL, &never, NULL);
    printf("%s: %s, %d elsewhere\n", name, signals >= 100 ? "signals" : "too few", (int)elsewhere);
}

int main(void)
{
    struct sigaction action = {.sa_sigaction = note, .sa_flags = SA_SIGINFO | SA_RESTART};

    sigaction(SIGALRM, &action, NULL);
    run("calls", count_calls);
    run("cancellable", count_cancellable);
    return 0;
}
