/*
 * filter.c - trapping system calls where the kernel has no Syscall User Dispatch: by seccomp.
 *
 * A seccomp filter sees the address a call comes from. It is inherited by children and programs and
 * cannot be taken back, so the core must lie where the filter says in all of them:
 * directfuse-exec-fixed is the loader, linked to a fixed address. no_new_privs, which filters of
 * ordinary users need, keeps set-user-id programs from gaining rights.
 */
#include "intercept/filter.h"

#include <linux/filter.h>
#include <linux/prctl.h>
#include <linux/seccomp.h>

extern const char __ehdr_start[] __attribute__((visibility("hidden")));
extern const char etext[] __attribute__((visibility("hidden")));

bool dfi_filtered DFI_HOT;

bool dfi_dispatch_supported(void)
{
    return dfi_kernel(__NR_prctl, PR_SET_SYSCALL_USER_DISPATCH, 0, 0, 0, 0) == 0;
}

long dfi_filter_install(void)
{
    uintptr_t start = (uintptr_t)__ehdr_start, end = (uintptr_t)etext;
    unsigned at = offsetof(struct seccomp_data, instruction_pointer);
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, at + 4),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)(start >> 32), 0, 4),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, at),
        BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, (unsigned)start, 0, 2),
        BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, (unsigned)end, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP | DFI_FILTER_DATA),
    };
    struct sock_fprog program = {sizeof code / sizeof *code, code};
    if (start >> 32 != end >> 32)
        return -EINVAL;
    long result = dfi_kernel(__NR_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (result == 0)
        result = dfi_kernel(__NR_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program);
    dfi_filtered = result == 0;
    return result;
}
