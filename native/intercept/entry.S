/*
 * entry.S - the only ways into the core and out of it: a call's entry, the three exits, signals.
 *
 * Registers at dfi_entry are those of a syscall instruction, and %rcx is the address behind it, as
 * the instruction itself leaves it. %rcx and %r11 are the kernel's to destroy, so they are ours.
 *
 * What makes this safe against signals: everything of a call that is not finished lies in the
 * program's registers, on the program's stack, or is guarded by T_IN_CORE. While T_IN_CORE is set,
 * signal.c holds the program's signals back. The exits are restartable: a signal that arrives
 * between the look at T_DEFERRED and the moment the core is left sends the thread back to
 * dfi_leave_begin or dfi_pass_begin (dfi_signal_pick()).
 */
#include "intercept/offsets.h"

        .text

/* ---- in ---- */

        .globl  dfi_entry
        .hidden dfi_entry
        .type   dfi_entry, @function
        .balign 16                      /* gs.c writes a jump over the first instruction */
dfi_entry:
        movb    $1, %gs:T_IN_CORE
entered:
        movq    %rsp, %r11
        movq    %gs:T_FRAME, %rsp
        cltq                            /* to the kernel a number is an int */
        movq    %rax, F_NR(%rsp)
        movq    %rax, F_ORIGIN(%rsp)
        movq    %rdi, F_ARGS(%rsp)
        movq    %rsi, F_ARGS+8(%rsp)
        movq    %rdx, F_ARGS+16(%rsp)
        movq    %r10, F_ARGS+24(%rsp)
        movq    %r8, F_ARGS+32(%rsp)
        movq    %r9, F_ARGS+40(%rsp)
        movq    %rcx, F_IP(%rsp)
        movq    %r11, F_SP(%rsp)
        lahf
        seto    %al
        movq    %rax, F_FLAGS(%rsp)
        movq    %rdi, F_SAVED(%rsp)
        movq    %rsi, F_SAVED+8(%rsp)
        movq    %rdx, F_SAVED+16(%rsp)
        movq    %r10, F_SAVED+24(%rsp)
        movq    %r8, F_SAVED+32(%rsp)
        movq    %r9, F_SAVED+40(%rsp)
        movq    %rbx, F_CALLEE(%rsp)
        movq    %rbp, F_CALLEE+8(%rsp)
        movq    %r12, F_CALLEE+16(%rsp)
        movq    %r13, F_CALLEE+24(%rsp)
        movq    %r14, F_CALLEE+32(%rsp)
        movq    %r15, F_CALLEE+40(%rsp)
        cld
        movq    %rsp, %rdi
        call    dfi_enter
        cmpq    $1, %rax                /* overflows for DFI_PASS alone */
        jo      dfi_pass_begin
        movq    %rax, F_RESULT(%rsp)
        /* falls through */

/* ---- out, with a result ---- */

        .macro  registers_of_result
        movq    F_SAVED(%rsp), %rdi
        movq    F_SAVED+8(%rsp), %rsi
        movq    F_SAVED+16(%rsp), %rdx
        movq    F_SAVED+24(%rsp), %r10
        movq    F_SAVED+32(%rsp), %r8
        movq    F_SAVED+40(%rsp), %r9
        movq    F_FLAGS(%rsp), %rax
        addb    $127, %al
        sahf
        movq    F_RESULT(%rsp), %rax
        movq    F_IP(%rsp), %rcx
        movq    F_SP(%rsp), %rsp
        .endm

        .globl  dfi_leave_begin
        .hidden dfi_leave_begin
dfi_leave_begin:
        movq    %gs:T_FRAME, %rsp
        cmpl    $0, %gs:T_DEFERRED      /* T_REFUSED, T_GS_APART */
        jne     leave_slowly
        registers_of_result
        movb    $0, %gs:T_IN_CORE
        .globl  dfi_leave_end
        .hidden dfi_leave_end
dfi_leave_end:
        jmp     *%rcx

/*
 * ---- out, and the program's call is made for it ----
 * Below the program's red zone: where to go on, and the argument registers as they were. A handler
 * of the program that is called meanwhile is shown the program's own instruction:
 * dfi_signal_pick().
 */
        .macro  registers_of_pass
        movq    F_SP(%rsp), %r11
        subq    $P_ROOM, %r11
        movq    F_IP(%rsp), %rcx
        movq    %rcx, P_IP(%r11)
        movq    F_SAVED(%rsp), %rdi
        movq    %rdi, P_SAVED(%r11)
        movq    F_SAVED+8(%rsp), %rsi
        movq    %rsi, P_SAVED+8(%r11)
        movq    F_SAVED+16(%rsp), %rdx
        movq    %rdx, P_SAVED+16(%r11)
        movq    F_SAVED+24(%rsp), %r10
        movq    %r10, P_SAVED+24(%r11)
        movq    F_SAVED+32(%rsp), %r8
        movq    %r8, P_SAVED+32(%r11)
        movq    F_SAVED+40(%rsp), %r9
        movq    %r9, P_SAVED+40(%r11)
        movq    F_ARGS(%rsp), %rdi
        movq    F_ARGS+8(%rsp), %rsi
        movq    F_ARGS+16(%rsp), %rdx
        movq    F_ARGS+24(%rsp), %r10
        movq    F_ARGS+32(%rsp), %r8
        movq    F_ARGS+40(%rsp), %r9
        movq    F_FLAGS(%rsp), %rax
        addb    $127, %al
        sahf
        movq    F_NR(%rsp), %rax
        movq    %r11, %rsp
        .endm

        .globl  dfi_pass_begin
        .hidden dfi_pass_begin
dfi_pass_begin:
        movq    %gs:T_FRAME, %rsp
        cmpl    $0, %gs:T_DEFERRED      /* T_REFUSED, T_GS_APART */
        jne     pass_slowly
        registers_of_pass
        movb    $0, %gs:T_IN_CORE
        .globl  dfi_pass_end
        .hidden dfi_pass_end
dfi_pass_end:
        syscall
        movq    P_IP(%rsp), %rcx
        movq    P_SAVED(%rsp), %rdi
        movq    P_SAVED+8(%rsp), %rsi
        movq    P_SAVED+16(%rsp), %rdx
        movq    P_SAVED+24(%rsp), %r10
        movq    P_SAVED+32(%rsp), %r8
        movq    P_SAVED+40(%rsp), %r9
        leaq    P_ROOM(%rsp), %rsp
        .globl  dfi_pass_out
        .hidden dfi_pass_out
dfi_pass_out:
        jmp     *%rcx

/*
 * ---- out, and a signal has been waiting ----
 * dfi_signal_release() queues the signal again; it is delivered when the program's mask is set
 * again, which is done where nothing of the core is in use: on the program's stack. After the
 * program's handler either the result is handed over, or the call is made anew.
 */
        .macro  leave_core by           /* with every signal blocked */
        cmpb    $0, %gs:T_GS_APART
        je      8f
        movq    %gs:T_GS_BASE, \by
        movb    $0, %gs:T_IN_CORE
        wrgsbase \by
        jmp     9f
8:      movb    $0, %gs:T_IN_CORE
9:
        .endm

pass_slowly:
        cmpw    $0, %gs:T_DEFERRED      /* T_REFUSED */
        je      dfi_pass_gs_begin
pass_deferred:
        movq    $1, %rsi
        jmp     1f
leave_slowly:
        cmpw    $0, %gs:T_DEFERRED      /* T_REFUSED */
        je      dfi_leave_gs_begin
leave_deferred:
        xorl    %esi, %esi
1:      movq    %rsp, %rdi
        movq    F_SP(%rsp), %rdx
        leaq    D_MASK-D_ROOM(%rdx), %rdx
        call    dfi_signal_release      /* (frame, is a pass, where the mask goes) */
        cmpl    $DFI_RELEASE_PASS, %eax
        je      dfi_pass_begin
        cmpl    $DFI_RELEASE_LEAVE, %eax
        je      dfi_leave_begin
        movq    F_SP(%rsp), %r11
        subq    $D_ROOM, %r11
        movq    F_IP(%rsp), %rcx
        movq    %rcx, D_IP(%r11)
        movq    F_RESULT(%rsp), %rdx
        cmpl    $DFI_RELEASE_REDO, %eax
        jne     2f
        leaq    dfi_entry(%rip), %rcx
        movq    F_ORIGIN(%rsp), %rdx
2:      movq    %rcx, D_TARGET(%r11)
        movq    %rdx, D_RAX(%r11)
        movq    F_FLAGS(%rsp), %rax
        movq    %rax, D_FLAGS(%r11)
        movq    F_SAVED(%rsp), %rax
        movq    %rax, D_SAVED(%r11)
        movq    F_SAVED+8(%rsp), %rax
        movq    %rax, D_SAVED+8(%r11)
        movq    F_SAVED+16(%rsp), %rax
        movq    %rax, D_SAVED+16(%r11)
        movq    F_SAVED+24(%rsp), %rax
        movq    %rax, D_SAVED+24(%r11)
        movq    F_SAVED+32(%rsp), %rax
        movq    %rax, D_SAVED+32(%r11)
        movq    F_SAVED+40(%rsp), %rax
        movq    %rax, D_SAVED+40(%r11)
        movq    %r11, %rsp
        movb    $0, %gs:T_DEFERRED
        leave_core %rdx
        movl    $14, %eax               /* rt_sigprocmask(SIG_SETMASK, mask, NULL, 8) */
        movl    $2, %edi
        leaq    D_MASK(%rsp), %rsi
        xorl    %edx, %edx
        movl    $8, %r10d
        syscall
        .globl  dfi_let_in
        .hidden dfi_let_in
dfi_let_in:
        movq    D_SAVED(%rsp), %rdi
        movq    D_SAVED+8(%rsp), %rsi
        movq    D_SAVED+16(%rsp), %rdx
        movq    D_SAVED+24(%rsp), %r10
        movq    D_SAVED+32(%rsp), %r8
        movq    D_SAVED+40(%rsp), %r9
        movq    D_FLAGS(%rsp), %rax
        addb    $127, %al
        sahf
        movq    D_RAX(%rsp), %rax
        movq    D_IP(%rsp), %rcx
        movq    D_TARGET(%rsp), %r11
        leaq    D_ROOM(%rsp), %rsp
        .globl  dfi_let_out
        .hidden dfi_let_out
dfi_let_out:
        jmp     *%r11

/*
 * ---- a program with a base of %gs of its own: gs.c ----
 * Who the thread is only the kernel knows. Below the program's red zone: what that takes of the
 * registers. A handler of the program that is called meanwhile is shown the program's own
 * instruction.
 */
        .globl  dfi_gs_entry
        .hidden dfi_gs_entry
dfi_gs_entry:
        leaq    -G_ROOM(%rsp), %rsp
        .globl  dfi_gs_begun
        .hidden dfi_gs_begun
dfi_gs_begun:
        movq    %rax, G_RAX(%rsp)
        movq    %rcx, G_IP(%rsp)
        movq    %rdx, G_RDX(%rsp)
        .globl  dfi_gs_kept
        .hidden dfi_gs_kept
dfi_gs_kept:
        lahf
        seto    %al
        movq    %rax, G_FLAGS(%rsp)
        movl    $186, %eax              /* gettid */
        call    dfi_free_call
        .globl  dfi_gs_known
        .hidden dfi_gs_known
dfi_gs_known:
        movl    %eax, %ecx
        andl    $GS_THREADS-1, %ecx
        leaq    dfi_gs_threads(%rip), %r11
        leaq    (%r11,%rcx,8), %rdx
        movq    (%rdx), %r11
        testq   %r11, %r11
        jz      1f
        cmpl    %eax, T_TID(%r11)
        je      3f
1:      movq    dfi_threads(%rip), %r11
2:      cmpl    %eax, T_TID(%r11)
        je      4f
        movq    T_NEXT(%r11), %r11
        jmp     2b
4:      movq    %r11, (%rdx)
3:      movb    $1, T_IN_CORE(%r11)
        .globl  dfi_gs_inside
        .hidden dfi_gs_inside
dfi_gs_inside:
        rdgsbase %rax
        cmpq    %r11, %rax              /* the core's still: the program has set none here */
        je      5f
        movb    $1, T_GS_APART(%r11)
        movq    %rax, T_GS_BASE(%r11)
        wrgsbase %r11
5:      movq    G_FLAGS(%rsp), %rax
        addb    $127, %al
        sahf
        movq    G_RAX(%rsp), %rax
        movq    G_IP(%rsp), %rcx
        movq    G_RDX(%rsp), %rdx
        leaq    G_ROOM(%rsp), %rsp
        jmp     entered

        .macro  exit_with_gs exit, registers, onward:vararg
        .globl  dfi_\exit\()_gs_begin
        .hidden dfi_\exit\()_gs_begin
dfi_\exit\()_gs_begin:
        cmpw    $0, %gs:T_DEFERRED      /* T_REFUSED */
        jne     \exit\()_deferred
        \registers
        movq    %gs:T_GS_BASE, %r11
        movb    $0, %gs:T_IN_CORE
        .globl  dfi_\exit\()_gs_end
        .hidden dfi_\exit\()_gs_end
dfi_\exit\()_gs_end:
        wrgsbase %r11
        .globl  dfi_\exit\()_gs_out
        .hidden dfi_\exit\()_gs_out
dfi_\exit\()_gs_out:
        jmp     \onward
        .endm

        exit_with_gs leave, registers_of_result, *%rcx
        exit_with_gs pass, registers_of_pass, dfi_pass_end

/* The registers of a C function's arguments become those of a system call, of which the first is the
 * number. */
        .macro  as_system_call
        movq    %rdi, %rax
        movq    %rsi, %rdi
        movq    %rdx, %rsi
        movq    %rcx, %rdx
        movq    %r8, %r10
        movq    %r9, %r8
        .endm

/* ---- a call of the core that a signal ends: dfi_kernel_wait6() ---- */

        .globl  dfi_kernel_wait6
        .hidden dfi_kernel_wait6
        .type   dfi_kernel_wait6, @function
dfi_kernel_wait6:
        as_system_call
        movq    8(%rsp), %r9
        .globl  dfi_wait_begin
        .hidden dfi_wait_begin
dfi_wait_begin:
        cmpb    $0, %gs:T_DEFERRED
        jne     dfi_wait_interrupted
        syscall
        .globl  dfi_wait_end
        .hidden dfi_wait_end
dfi_wait_end:
        ret
        .globl  dfi_wait_interrupted
        .hidden dfi_wait_interrupted
dfi_wait_interrupted:
        movq    $-4, %rax               /* -EINTR */
        ret

/* ---- new threads and processes ---- */

/*
 * long dfi_clone(nr, a, b, c, d, struct dfi_thread *child, e): in the parent it returns. The child
 * comes out of the kernel with the parent's registers and must not use the parent's stack.
 */
        .globl  dfi_clone
        .hidden dfi_clone
        .type   dfi_clone, @function
dfi_clone:
        pushq   %r12
        movq    %rdi, %rax
        movq    %rsi, %rdi
        movq    %rdx, %rsi
        movq    %rcx, %rdx
        movq    %r8, %r10
        movq    %r9, %r12
        movq    16(%rsp), %r8
        syscall
        testq   %rax, %rax
        jz      1f
        popq    %r12
        ret
1:      movq    T_FRAME(%r12), %rsp
        movl    $158, %edi              /* arch_prctl(ARCH_SET_GS, child) */
        movl    $0x1001, %esi
        movq    %r12, %rdx
        call    dfi_unfiltered
        movq    %r12, %rdi
        call    dfi_thread_born
        movq    F_CALLEE(%rsp), %rbx
        movq    F_CALLEE+8(%rsp), %rbp
        movq    F_CALLEE+16(%rsp), %r12
        movq    F_CALLEE+24(%rsp), %r13
        movq    F_CALLEE+32(%rsp), %r14
        movq    F_CALLEE+40(%rsp), %r15
        jmp     dfi_leave_begin

/* void dfi_thread_exit(status, int *state): state becomes 0 when the stack is used no more. */
        .globl  dfi_thread_exit
        .hidden dfi_thread_exit
dfi_thread_exit:
        movl    $60, %eax
        movl    $0, (%rsi)
        syscall
        ud2

/* void dfi_sigreturn(sp): rt_sigreturn of the program, from the frame at sp. */
        .globl  dfi_sigreturn
        .hidden dfi_sigreturn
dfi_sigreturn:
        movq    %rdi, %rsp
        movb    $0, %gs:T_DEFERRED
        leave_core %rdx
        movl    $15, %eax
        syscall
        ud2

/* ---- signals: what the kernel calls ---- */

/*
 * SIGSYS. The core stack is free: only the program's own instructions trap, and what is sent while
 * the core is in use waits as any other signal. Every signal is blocked here, and SIGSYS must not
 * be in a handler of the program: its mask is set where nothing of the core is in use.
 */
        .globl  dfi_trap_entry
        .hidden dfi_trap_entry
dfi_trap_entry:
        cmpb    $0, dfi_gs_used(%rip)
        jne     trap_with_gs
trapped:
        cmpb    $0, %gs:T_IN_CORE
        jne     dfi_signal_entry
        pushq   $0                      /* struct dfi_handing */
        pushq   $0
        movq    %rsp, %rcx
        pushq   %rdi
        pushq   %rsi
        pushq   %rdx
        pushq   %rbx
        movq    %rsp, %rbx
        movq    %gs:T_FRAME, %rsp
        call    dfi_trap                /* (signal, info, ucontext, handing): a handler, or 0 */
        movq    %rbx, %rsp
        testq   %rax, %rax
        jz      1f
        movq    %rax, %rbx
        movl    $14, %eax               /* rt_sigprocmask(SIG_SETMASK, mask, NULL, 8) */
        movl    $2, %edi
        leaq    32(%rsp), %rsi
        xorl    %edx, %edx
        movl    $8, %r10d
        syscall
        movq    %rbx, %rax
1:      popq    %rbx
        popq    %rdx
        popq    %rsi
        popq    %rdi
        movq    %rax, %r11
        movq    8(%rsp), %rax           /* where to the frame has been moved */
        leaq    16(%rsp,%rax), %rsp
        addq    %rax, %rsi
        addq    %rax, %rdx
        xorl    %eax, %eax
        testq   %r11, %r11
        jz      1f
        jmp     *%r11
1:      ret
trap_with_gs:
        pushq   %rdi
        pushq   %rsi
        pushq   %rdx
        call    dfi_gs_trap
        popq    %rdx
        popq    %rsi
        popq    %rdi
        jmp     trapped

/* Every signal for which the program has a handler, and SIGSEGV and SIGBUS. */
        .globl  dfi_signal_entry
        .hidden dfi_signal_entry
dfi_signal_entry:
        pushq   %rdi                    /* the stack is as after a call: 8 bytes off 16 */
        pushq   %rsi
        pushq   %rdx
        call    dfi_signal_pick         /* (signal, info, ucontext): the program's handler, or 0 */
        popq    %rdx
        popq    %rsi
        popq    %rdi
        movq    %rax, %r11
        xorl    %eax, %eax
        testq   %r11, %r11
        jz      1f
        jmp     *%r11
1:      ret

/* dfi_on_core_stack(first, second, function) */
        .globl  dfi_on_core_stack
        .hidden dfi_on_core_stack
dfi_on_core_stack:
        pushq   %rbx
        movq    %rsp, %rbx
        movq    %gs:T_FRAME, %rsp
        call    *%rdx
        movq    %rbx, %rsp
        popq    %rbx
        ret

/* long dfi_unfiltered(nr, a, b, c, d, e), by the one instruction that filters of the program are
 * made to know: sandbox.c. */
        .globl  dfi_unfiltered
        .hidden dfi_unfiltered
        .type   dfi_unfiltered, @function
dfi_unfiltered:
        as_system_call
        jmp     dfi_free_call

/* What handlers return to. Unwinders know a signal's frame by these very nine bytes. */
        .globl  dfi_restorer
        .hidden dfi_restorer
        .balign 16
        nop
dfi_restorer:
        movq    $15, %rax
        .globl  dfi_free_call
        .hidden dfi_free_call
dfi_free_call:
        syscall
        ret                             /* not from rt_sigreturn */
        .globl  dfi_free_end
        .hidden dfi_free_end
dfi_free_end:
        .section .note.GNU-stack,"",@progbits
