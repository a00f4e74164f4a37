/*
 * sandbox.c - a filter that a program puts on its own system calls lets a few of the core's
 * through.
 *
 * A call that traps ends with the rt_sigreturn of a signal that the program knows nothing of, and a
 * thread begins with calls that have it trap. Sandboxes that list what they need (sshd's, Firefox')
 * kill for them. So a filter is given a beginning that allows these at one address, and nothing
 * else.
 */
#include "intercept/sandbox.h"

#include "intercept/mem.h"
#include "intercept/rewrite.h"
#include "intercept/run.h"
#include "intercept/signal.h"

#include <asm/prctl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>

#define RETURN_SIZE  9    /* bytes of dfi_restorer up to where the kernel sees the call come from */
#define BEGIN        15   /* instructions */
#define LENGTH_MAX   4080 /* a longer filter stays as it is: its memory could not be given back */

#define FIELD(field) (unsigned)offsetof(struct seccomp_data, field)

#define LOAD(field)  BPF_STMT(BPF_LD | BPF_W | BPF_ABS, field)
#define IF(value, t, f) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, t, f)

/* The last one: what follows finds the accumulator as filters do, 0. In a form that the kernel's
 * cache of calls that are allowed anyway understands. */
static void write_begin(struct sock_filter *to)
{
    uintptr_t at = (uintptr_t)dfi_restorer + RETURN_SIZE;
    const struct sock_filter code[BEGIN] = {
        LOAD(FIELD(nr)),
        IF(__NR_rt_sigreturn, 7, 0),
        IF(__NR_gettid, 6, 0),
        IF(__NR_getpid, 5, 0),
        IF(__NR_prctl, 1, 0),
        IF(__NR_arch_prctl, 0, 8),
        LOAD(FIELD(args)),
        IF(PR_SET_SYSCALL_USER_DISPATCH, 1, 0),
        IF(ARCH_SET_GS, 0, 5),
        LOAD(FIELD(instruction_pointer)),
        IF((unsigned)at, 0, 3),
        LOAD(FIELD(instruction_pointer) + 4),
        IF((unsigned)(at >> 32), 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0),
    };
    memcpy(to, code, sizeof code);
}

/* Whatever is wrong with the program's filter is left for the kernel to say. */
static struct sock_filter *with_begin(const void *program, struct sock_fprog *out)
{
    struct sock_fprog given;
    if (dfi_copy_from(&given, program, sizeof given) < 0 || given.len == 0 ||
        given.len > LENGTH_MAX)
        return NULL;
    struct sock_filter *code = dfi_alloc((BEGIN + (size_t)given.len) * sizeof *code);
    if (code == NULL)
        return NULL;
    write_begin(code);
    if (dfi_copy_from(code + BEGIN, given.filter, given.len * sizeof *code) < 0) {
        dfi_free(code);
        return NULL;
    }
    *out = (struct sock_fprog){(unsigned short)(BEGIN + given.len), code};
    return code;
}

/* Calls of rewriting are none that a filter expects: from now on sites stay as they are. So is
 * openat2(2), also in what the program starts. */
static void expect_filter(void)
{
    if (dfi_rewrite_on)
        dfi_note("a program filters its system calls: it is rewritten no further");
    dfi_rewrite_on = false;
    dfi_run_filtered();
}

long dfi_sandbox_begin(struct dfi_frame *frame, bool has_filter)
{
    struct sock_fprog program;
    if (has_filter && dfi_copy_from(&program, (void *)frame->args[2], sizeof program) < 0)
        return DFI_PASS; /* asked with no filter whether there are any: EFAULT */
    expect_filter();
    struct sock_filter *code = has_filter ? with_begin((void *)frame->args[2], &program) : NULL;
    if (code == NULL)
        return DFI_PASS;
    long result = dfi_kernel(frame->nr, frame->args[0], frame->args[1], &program, frame->args[3],
                             frame->args[4], frame->args[5]);
    dfi_free(code);
    return result;
}

long dfi_do_seccomp(struct dfi_frame *frame)
{
    bool has_filter = frame->args[0] == SECCOMP_SET_MODE_FILTER;
    return has_filter || frame->args[0] == SECCOMP_SET_MODE_STRICT
               ? dfi_sandbox_begin(frame, has_filter)
               : DFI_PASS;
}
