/*
 * site.h - the instructions before a syscall instruction: which of them can become a jump.
 */
#ifndef DF_INTERCEPT_SITE_H
#define DF_INTERCEPT_SITE_H

#include <stddef.h>
#include <stdint.h>

#define DFI_JUMP_SIZE  5  /* jmp rel32 */
#define DFI_BEFORE_MAX 40 /* bytes before a syscall that are looked at */
#define DFI_MOVED_MAX  24 /* bytes that the moved instructions become at most */

/* How a site is rewritten: the instruction at `size` bytes before the syscall becomes the jump, or
 * with a hole (below) a short jump there. */
struct dfi_plan {
    size_t size;  /* bytes from there to the syscall; 0: the site cannot be rewritten */
    size_t first; /* bytes of that instruction, 5 or more: no other one is written to */
    unsigned char moved[DFI_MOVED_MAX]; /* all of them, to be run elsewhere */
    size_t moved_size;
    long branch;       /* where in `moved` a 32-bit displacement ends, or -1: see below */
    uintptr_t target;  /* of that branch */
    long address;      /* the same for a %rip-relative operand: end of displacement, or -1 */
    long address_end;  /* end of the instruction that holds it, as displacements count from there */
    uintptr_t operand; /* what it addresses */
    uintptr_t hole;    /* 0: none; `first` is 2 then */
};

/*
 * Looks at the bytes before the syscall instruction at site; readable tells how many there are.
 * rax is the register when it trapped: the evidence that a "mov $n, %eax" found in the bytes is
 * the one that was executed.
 */
void dfi_site_plan(const unsigned char *site, size_t readable, unsigned long rax,
                   struct dfi_plan *plan);

/*
 * Where the jump cannot be stored because other threads run: changes the plan to a short jump into
 * padding, if there is room; the way of glibc's read(3) with threads has it, and no number that two
 * stores could go by.
 */
void dfi_site_plan_short(const unsigned char *site, size_t readable, struct dfi_plan *plan);

/*
 * The other way, for a syscall with only short instructions before it: its own two bytes become a
 * short jump to a hole, five bytes of padding between functions within its reach, and that jumps
 * on. Who is inside the call returns behind it, or (restarted) to it, and finds the jump. The
 * hole's address, or 0: there is none among the bytes that may be read.
 */
uintptr_t dfi_site_hole(const unsigned char *site, size_t readable_before, size_t readable_behind);

#define DFI_SHORT_JUMP_SIZE 2
#define DFI_SHORT_REACH     120 /* bytes, on both sides */

#endif
