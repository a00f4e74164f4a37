/*
 * broker.c - a sandbox as browsers have them: a filter that sends SIGSYS, whose handler makes the
 * call in another way, and in threads that begin behind it. It says what the handler was shown. The
 * handler has not asked for the alternate stack that there is, and wants more room than that has.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#ifndef SYS_SECCOMP
#define SYS_SECCOMP 1 /* si_code */
#endif

#define ON(call, what)                                                                             \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##call, 0, 1), BPF_STMT(BPF_RET | BPF_K, what)

#define ALTERNATE 16384

static int given, calls, wrong;
static char alternate[2 * ALTERNATE];

/* What a kernel that refuses a call shows: its number in place of a result, the place behind it. */
static void make_otherwise(int signal, siginfo_t *info, void *context)
{
    greg_t *at = ((ucontext_t *)context)->uc_mcontext.gregs;
    const unsigned char *instruction = (const unsigned char *)at[REG_RIP] - 2;

    volatile char room[ALTERNATE];
    (void)signal;
    calls++;
    room[0] = room[ALTERNATE - 1] = 1;
    wrong += (char *)room >= alternate - ALTERNATE && (char *)room < alternate + sizeof(alternate);
    wrong += info->si_code != SYS_SECCOMP || info->si_call_addr != (void *)at[REG_RIP] ||
             info->si_syscall != at[REG_RAX] || info->si_errno != 7 ||
             memcmp(instruction, "\x0f\x05", 2) != 0;
    if (info->si_syscall == SYS_openat)
        at[REG_RAX] = strcmp((const char *)at[REG_RSI], "other") != 0 ? dup(given) : -13;
    else
        at[REG_RAX] = 1000 + at[REG_RDI];
}

static void *use(void *name)
{
    struct stat st = {.st_size = -1};
    char text[8] = "";
    int fd = open("given", O_RDONLY), other = open("other", O_RDONLY);
    int disk = open("/etc/passwd", O_RDONLY);
    long answer = syscall(SYS_getpriority, 5, 0);
    ssize_t got = read(fd, text, sizeof(text) - 1);

    fstat(fd, &st);
    printf("%s: %zd %s %ld, %d, %s, %ld; %d calls, %d wrong\n", (const char *)name, got, text,
           (long)st.st_size, other, disk < 0 ? "refused" : "given", answer, calls, wrong);
    close(disk);
    close(fd);
    return NULL;
}

int main(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        ON(openat, SECCOMP_RET_TRAP | 7),
        ON(open, SECCOMP_RET_TRAP | 7),
        ON(getpriority, SECCOMP_RET_TRAP | 7),
        ON(readlink, SECCOMP_RET_TRAP | 7),
        ON(readlinkat, SECCOMP_RET_TRAP | 7),
        ON(prctl, SECCOMP_RET_KILL_PROCESS),
        ON(arch_prctl, SECCOMP_RET_KILL_PROCESS),
        ON(gettid, SECCOMP_RET_KILL_PROCESS),
        ON(rt_tgsigqueueinfo, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof(code) / sizeof(*code), code};
    struct sigaction action = {.sa_sigaction = make_otherwise, .sa_flags = SA_SIGINFO};
    const stack_t stack = {.ss_sp = alternate + ALTERNATE, .ss_size = ALTERNATE};
    pthread_t thread;

    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, NULL) == 0 ||
        errno != EFAULT) /* so is asked whether there are filters */
        return 4;
    given = open("given", O_RDWR | O_CREAT, 0600);
    if (write(given, "text", 4) != 4 || lseek(given, 0, SEEK_SET) != 0 ||
        sigaltstack(&stack, NULL) != 0 || sigaction(SIGSYS, &action, NULL) != 0 ||
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) != 0)
        return 2;
    for (int i = 0; i < 4; i++) { /* sites that are met often are rewritten */
        lseek(given, 0, SEEK_SET);
        use("main");
    }
    lseek(given, 0, SEEK_SET);
    if (pthread_create(&thread, NULL, use, "thread") != 0 || pthread_join(thread, NULL) != 0)
        return 3;
    return 0;
}
