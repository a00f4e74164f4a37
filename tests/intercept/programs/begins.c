/*
 * begins.c - writes what its registers and flags are when it begins. Linked with -nostdlib.
 */
#include <sys/syscall.h>

__asm__(".globl _start\n"
        "_start:\n"
        "pushfq\n"
        "pushq %rax; pushq %rbx; pushq %rcx; pushq %rdx; pushq %rsi; pushq %rdi; pushq %rbp\n"
        "pushq %r8; pushq %r9; pushq %r10; pushq %r11; pushq %r12; pushq %r13; pushq %r14\n"
        "pushq %r15\n"
        "movl $1, %eax; movl $1, %edi; movq %rsp, %rsi; movl $128, %edx; syscall\n"
        "movl $60, %eax; xorl %edi, %edi; syscall\n");
