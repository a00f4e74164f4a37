/*
 * loader.S - the first and the last instructions of directfuse-exec.
 */
#include "intercept/offsets.h"
#include "intercept/tracer.h"

        .text
        .globl  dfi_loader_start
        .hidden dfi_loader_start
dfi_loader_start:
        xorl    %ebp, %ebp
        movq    %rsp, %rdi
        movq    %rdx, %rsi
        andq    $-16, %rsp
        call    dfi_loader
        ud2

/*
 * void dfi_loader_jump(sp, entry, traced): the program begins, with what execve leaves in registers
 * and flags.
 * Traced, it stops before: its tracer has been told of no execve yet, and sets the registers right.
 */
        .globl  dfi_loader_jump
        .hidden dfi_loader_jump
dfi_loader_jump:
        movq    %rdi, %rsp
        movq    %rsi, %r11
        movq    %rsi, begin(%rip)
        movl    %edx, %eax
        xorl    %ebx, %ebx
        xorl    %ecx, %ecx
        xorl    %esi, %esi
        xorl    %edi, %edi
        xorl    %ebp, %ebp
        xorl    %r8d, %r8d
        xorl    %r9d, %r9d
        xorl    %r10d, %r10d
        xorl    %r12d, %r12d
        xorl    %r13d, %r13d
        xorl    %r14d, %r14d
        xorl    %r15d, %r15d
        cmpl    $DFI_TRACED, %eax
        jne     1f
        int3
1:      movl    $1, %edx
        testl   %edx, %edx              /* sets no flag */
        movl    $0, %eax
        movl    $0, %edx
        movl    $0, %r11d
        jmp     *begin(%rip)

        .section .data.hot, "aw"
        .balign 8
begin:  .quad   0

        .section .note.GNU-stack,"",@progbits
