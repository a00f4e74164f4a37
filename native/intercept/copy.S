/*
 * copy.S - copies of what may not be there.
 *
 *   size_t dfi_copy_some(to, from, size)
 *   size_t dfi_copy_past(to, from, size)   stores that pass by the caches; a line of 64 bytes or more
 *   int dfi_copy_byte(from)                the byte, or -1
 *   long dfi_copy_text(to, from, size)     up to the NUL: the length; size: there is none; or -1
 *
 * A fault before dfi_copy_rest is sent there (signal.c), and the rest is copied up to the very byte
 * that is not there; that one's fault is sent to dfi_copy_fault. A fault at dfi_copy_byte is sent to
 * dfi_byte_fault, and one in dfi_copy_text to dfi_text_fault.
 *
 * The core leaves vector registers to the program, whose they stay in a system call. A copy borrows
 * one, which halves its instructions, and gives it back behind a fault, too: it lies in the red zone
 * meanwhile, which signals leave alone.
 */
        .text

        .macro  borrow
        movups  %xmm0, -24(%rsp)
        .endm

        .macro  give_back
        movups  -24(%rsp), %xmm0
        .endm

        .macro  copy_two at             /* words */
        movups  \at(%rsi), %xmm0
        movups  %xmm0, \at(%rdi)
        .endm

        .globl  dfi_copy_some
        .hidden dfi_copy_some
        .type   dfi_copy_some, @function
dfi_copy_some:
        movq    %rdx, %rcx              /* bytes left: right wherever a fault may come */
        movq    %rdx, %rax
        cmpq    $256, %rdx              /* a string instruction takes 20 ns to begin */
        ja      dfi_copy_insn
        borrow
        cmpq    $144, %rcx              /* struct stat: a fault begins it anew */
        jb      0f
        .irp    at, 0, 16, 32, 48, 64, 80, 96, 112, 128
        copy_two \at
        .endr
        addq    $144, %rsi
        addq    $144, %rdi
        subq    $144, %rcx
        jz      4f
0:      cmpq    $16, %rcx
        jb      2f
1:      copy_two 0
        addq    $16, %rsi
        addq    $16, %rdi
        subq    $16, %rcx
        cmpq    $16, %rcx
        jae     1b
2:      cmpq    $8, %rcx
        jb      3f
        movq    (%rsi), %r8
        movq    %r8, (%rdi)
        addq    $8, %rsi
        addq    $8, %rdi
        subq    $8, %rcx
        jmp     2b
3:      testq   %rcx, %rcx
        jz      4f
        movb    (%rsi), %r8b
        movb    %r8b, (%rdi)
        incq    %rsi
        incq    %rdi
        decq    %rcx
        jmp     3b
4:      give_back
        ret
        .globl  dfi_copy_past
        .hidden dfi_copy_past
        .type   dfi_copy_past, @function
dfi_copy_past:                          /* lines of 64 bytes, at least one */
        movq    %rdx, %rcx
        movq    %rdx, %rax
        borrow                          /* as dfi_copy_rest gives it back */
5:      movq    (%rsi), %r8
        movq    8(%rsi), %r9
        movq    16(%rsi), %r10
        movq    24(%rsi), %r11
        movnti  %r8, (%rdi)
        movnti  %r9, 8(%rdi)
        movnti  %r10, 16(%rdi)
        movnti  %r11, 24(%rdi)
        movq    32(%rsi), %r8
        movq    40(%rsi), %r9
        movq    48(%rsi), %r10
        movq    56(%rsi), %r11
        movnti  %r8, 32(%rdi)
        movnti  %r9, 40(%rdi)
        movnti  %r10, 48(%rdi)
        movnti  %r11, 56(%rdi)
        addq    $64, %rsi
        addq    $64, %rdi
        subq    $64, %rcx
        cmpq    $64, %rcx
        jae     5b
        .globl  dfi_copy_rest
        .hidden dfi_copy_rest
dfi_copy_rest:
        give_back
        .globl  dfi_copy_insn
        .hidden dfi_copy_insn
dfi_copy_insn:
        rep movsb
        .globl  dfi_copy_fault
        .hidden dfi_copy_fault
dfi_copy_fault:
        subq    %rcx, %rax
        ret

        .globl  dfi_copy_byte
        .hidden dfi_copy_byte
        .type   dfi_copy_byte, @function
dfi_copy_byte:
        movzbl  (%rdi), %eax
        ret
        .globl  dfi_byte_fault
        .hidden dfi_byte_fault
dfi_byte_fault:
        movl    $-1, %eax
        ret

        .globl  dfi_copy_text
        .hidden dfi_copy_text
        .type   dfi_copy_text, @function
dfi_copy_text:
        movabsq $0x0101010101010101, %r8
        movabsq $0x8080808080808080, %r9
        xorl    %eax, %eax              /* bytes copied */
1:      leal    (%rsi,%rax), %ecx
        andl    $4095, %ecx
        cmpl    $4096-8, %ecx           /* a word that is all in the page of its first byte, */
        ja      3f
        leaq    8(%rax), %r10
        cmpq    %rdx, %r10
        ja      3f
        movq    (%rsi,%rax), %rcx
        movq    %rcx, (%rdi,%rax)
        movq    %rcx, %r11
        subq    %r8, %r11
        notq    %rcx
        andq    %r9, %r11
        andq    %rcx, %r11              /* its lowest bit is of the first NUL */
        jnz     2f
        movq    %r10, %rax
        jmp     1b
2:      bsfq    %r11, %r11
        shrl    $3, %r11d
        addq    %r11, %rax
        ret
3:      cmpq    %rdx, %rax              /* or the byte alone */
        jae     4f
        movzbl  (%rsi,%rax), %ecx
        movb    %cl, (%rdi,%rax)
        testl   %ecx, %ecx
        jz      4f
        incq    %rax
        jmp     1b
4:      ret
        .globl  dfi_text_fault
        .hidden dfi_text_fault
dfi_text_fault:
        movq    $-1, %rax
        ret

        .section .note.GNU-stack,"",@progbits
