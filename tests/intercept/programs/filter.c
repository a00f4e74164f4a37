/*
 * filter.c [seccomp] - a program that filters its own system calls, as sandboxes do: then a file,
 * many calls. By prctl, or by seccomp(2) if it is asked to.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define DENY(call)                                                                                 \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##call, 0, 1),                                         \
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)

static int install(struct sock_fprog *program, int by_seccomp)
{
    if (by_seccomp)
        return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, program);
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, program);
}

int main(int argc, char *argv[])
{
    (void)argv;
    struct sock_filter code[] = {
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, 0), /* the accumulator is 0 at first */
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        DENY(mprotect),
        DENY(membarrier),
        DENY(socket),
        DENY(rt_sigreturn), /* as sshd's does, which expects no signal */
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EDOM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof code / sizeof *code, code};
    struct sock_fprog bad = {1, (struct sock_filter *)8};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || install(&bad, argc > 1) == 0 ||
        errno != EFAULT || install(&program, argc > 1) != 0)
        return 2;
    long result = 0;
    for (int i = 0; i < 50; i++) {
        int fd = open("/etc/passwd", O_RDONLY);
        result += lseek(fd, 0, SEEK_END) > 0;
        close(fd);
    }
    long parent = syscall(SYS_getppid);
    int error = errno;
    printf("%ld %ld\n", result, parent);
    return error == EDOM ? 0 : 3;
}
