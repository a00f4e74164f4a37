/*
 * site.c - the instructions before a syscall instruction: which of them can become a jump.
 *
 * A jump takes five bytes, a syscall instruction has two, and the bytes behind it may be about to
 * be executed by a thread that is inside the call. So one instruction of at least five bytes BEFORE
 * it is replaced, and all from there to the syscall are moved. The others stay in place untouched:
 * a thread that is just between them, or jumps there, goes on as before and traps.
 *
 * Where that cannot be, the syscall's own two bytes, or the "xor %eax, %eax" of a read before it,
 * may become a short jump into padding.
 *
 * x86 cannot be decoded backwards. Two kinds of evidence for where an instruction begins are taken:
 * "mov $n, %eax" with the very n that %rax had in the trap, from which known instructions lead
 * exactly to the syscall; and the sequences that glibc's read(3), and what can be cancelled, are
 * made of.
 */
#include "intercept/site.h"

#include <stdbool.h>

#include "intercept/mem.h"

#define CALLS_MAX 1024 /* above any system call's number */
#define ALIGNED   16   /* functions begin so, and padding ends there */

/* ---- lengths of the instructions that may be moved: none depends on where it stands ---- */

/* ModRM, SIB and displacement; 0: relative to %rip. */
static size_t operand_size(const unsigned char *at)
{
    unsigned mode = at[0] >> 6, rm = at[0] & 7;
    if (mode == 3)
        return 1;
    if (mode == 0 && rm == 5)
        return 0;
    size_t size = 1 + (rm == 4);
    if (mode == 1)
        return size + 1;
    bool wide = mode == 2 || (mode == 0 && rm == 4 && (at[1] & 7) == 5);
    return size + (wide ? 4 : 0);
}

static size_t with_operand(size_t before, const unsigned char *operand, size_t immediate)
{
    size_t size = operand_size(operand);
    return size == 0 ? 0 : before + size + immediate;
}

/* Opcodes of two bytes, 0f xx: conditional moves, setcc, long nops; and what compilers store two
 * pointers at once with: moves of %xmm registers, punpcklqdq. */
static size_t two_byte_size(const unsigned char *at, bool narrow)
{
    switch (at[1]) {
    case 0x6c:
        return narrow ? with_operand(2, at + 2, 0) : 0;
    case 0x10:
    case 0x11:
    case 0x1f:
    case 0x28:
    case 0x29:
    case 0x6e:
    case 0x6f:
    case 0x7f:
        return with_operand(2, at + 2, 0);
    default:
        return (at[1] & 0xf0) == 0x40 || (at[1] & 0xf0) == 0x90 ? with_operand(2, at + 2, 0) : 0;
    }
}

static size_t opcode_size(const unsigned char *at, bool narrow)
{
    switch (at[0]) {
    case 0x89:
    case 0x8b: /* mov */
    case 0x01:
    case 0x03:
    case 0x09:
    case 0x0b:
    case 0x21:
    case 0x23:
    case 0x29:
    case 0x2b:
    case 0x31:
    case 0x33:
    case 0x39:
    case 0x3b:
    case 0x85: /* arithmetic */
        return with_operand(1, at + 1, 0);
    case 0x8d: /* lea, of memory */
        return at[1] < 0xc0 ? with_operand(1, at + 1, 0) : 0;
    case 0x80:
    case 0x83:
    case 0xc1: /* with a byte */
        return with_operand(1, at + 1, 1);
    case 0x81: /* with four */
        return with_operand(1, at + 1, 4);
    case 0xc6:
    case 0xc7: /* mov, the first of eight; the last is relative (xbegin) */
        return (at[1] & 0x38) == 0 ? with_operand(1, at + 1, at[0] == 0xc6 ? 1 : 4) : 0;
    case 0xf7: /* not, neg */
        return (at[1] & 0x30) == 0x10 ? with_operand(1, at + 1, 0) : 0;
    case 0x90:
        return 1;
    case 0x0f:
        return two_byte_size(at, narrow);
    default:
        return at[0] >= 0xb8 && at[0] <= 0xbf ? 5 : 0; /* mov $n, %reg */
    }
}

static size_t instruction_size(const unsigned char *at)
{
    size_t prefixes = 0;
    bool narrow = false;
    for (; at[prefixes] == 0x66 || at[prefixes] == 0x64; prefixes++) /* 16 bits; %fs */
        narrow |= at[prefixes] == 0x66;
    bool rex = (at[prefixes] & 0xf0) == 0x40;
    if (rex && (at[prefixes] & 8) != 0 && (at[prefixes + 1] & 0xf8) == 0xb8)
        return 0; /* mov $n, %reg with eight bytes: never before a syscall */
    prefixes += rex;
    size_t size = opcode_size(at + prefixes, narrow);
    if (narrow && size > 4)
        return 0; /* immediates of 16 bits */
    return size == 0 ? 0 : prefixes + size;
}

static bool leads_to(const unsigned char *at, const unsigned char *site)
{
    while (at < site) {
        size_t size = instruction_size(at);
        if (size == 0)
            return false;
        at += size;
    }
    return at == site;
}

/* ---- mov $n, %eax ---- */

static unsigned long little(const unsigned char *at)
{
    return at[0] | (unsigned long)at[1] << 8 | (unsigned long)at[2] << 16 |
           (unsigned long)at[3] << 24;
}

/* b8 as the tail of a longer instruction: a register of REX.B, the end of a constant of eight
 * bytes, a displacement of -72. */
static bool is_tail(const unsigned char *at, size_t before)
{
    if (before >= 1 && (at[-1] & 0xf1) == 0x41)
        return true;
    if (before >= 5 && (at[-5] & 0xf8) == 0x48 && (at[-4] & 0xf8) == 0xb8)
        return true;
    bool short_operand = before >= 2 && (at[-1] & 0xc0) == 0x40;
    bool sib_operand = before >= 3 && (at[-2] & 0xc7) == 0x44;
    unsigned char opcode = short_operand ? at[-2] : 0, far = sib_operand ? at[-3] : 0;
    return opcode == 0xc7 || opcode == 0x81 || opcode == 0x69 || opcode == 0xf7 || far == 0xc7 ||
           far == 0x81 || far == 0x69 || far == 0xf7;
}

/* The bytes from the number's instruction to the syscall; 0: not found. */
static size_t find_number(const unsigned char *site, size_t readable, unsigned long rax)
{
    if (rax >= CALLS_MAX)
        return 0;
    for (size_t back = DFI_JUMP_SIZE; back <= DFI_MOVED_MAX && back <= readable; back++) {
        const unsigned char *at = site - back;
        if (at[0] != 0xb8 || little(at + 1) != rax || is_tail(at, readable - back))
            continue;
        if (leads_to(at + DFI_JUMP_SIZE, site))
            return back;
    }
    return 0;
}

/* mov $n, %rax with a sign-extended number: 48 c7 c0 n. */
static bool is_long_number(const unsigned char *site, size_t readable, unsigned long rax)
{
    const unsigned char *at = site - 7;
    return readable >= 7 && at[0] == 0x48 && at[1] == 0xc7 && at[2] == 0xc0 &&
           little(at + 3) == rax;
}

/* ---- sequences of glibc ---- */

/* cmpb $0, __libc_single_threaded; je ...; xor %eax, %eax: the fast way of read(3). */
static bool is_read(const unsigned char *site, size_t readable)
{
    const unsigned char *at = site - 11;
    return readable >= 11 && at[0] == 0x80 && at[1] == 0x3d && at[6] == 0 && at[7] == 0x74 &&
           at[9] == 0x31 && at[10] == 0xc0;
}

static void plan_read(const unsigned char *site, struct dfi_plan *plan)
{
    const unsigned char *at = site - 11;
    memcpy(plan->moved, at, 7);
    plan->moved[7] = 0x0f; /* je with 32 bits */
    plan->moved[8] = 0x84;
    plan->moved[13] = 0x31;
    plan->moved[14] = 0xc0;
    plan->moved_size = 15;
    plan->address = 6;
    plan->address_end = 7;
    plan->operand = (uintptr_t)at + 7 + (uintptr_t)(long)(int)little(at + 2);
    plan->branch = 13;
    plan->target = (uintptr_t)at + 9 + (uintptr_t)(long)(signed char)at[8];
    plan->size = 11;
    plan->first = 7;
}

/* mov n(%rsp), %rsi; mov %eax, %r8d; mov n(%rsp), %edi; xor %eax, %eax: its way with threads. */
static bool is_threaded_read(const unsigned char *site, size_t readable)
{
    static const unsigned char start[] = {0x48, 0x8b, 0x74, 0x24};
    static const unsigned char middle[] = {0x41, 0x89, 0xc0, 0x8b, 0x7c, 0x24};
    const unsigned char *at = site - 14;
    return readable >= 14 && memcmp(at, start, sizeof start) == 0 &&
           memcmp(at + 5, middle, sizeof middle) == 0 && at[12] == 0x31 && at[13] == 0xc0;
}

/* mov 8(%rsp), %r9: the last instruction of syscall(3). */
static bool is_syscall_function(const unsigned char *site, size_t readable)
{
    static const unsigned char code[] = {0x4c, 0x8b, 0x4c, 0x24, 0x08};
    return readable >= sizeof code && memcmp(site - sizeof code, code, sizeof code) == 0;
}

/* mov n(%rsp), %rax: the number is an argument, in the calls of glibc (from 2.41 on) that can be
 * cancelled, if there is one thread. Before it lies padding, or mov %rcx, %r10. */
static bool is_number_of_stack(const unsigned char *site, size_t readable)
{
    static const unsigned char code[] = {0x48, 0x8b, 0x44, 0x24};
    static const unsigned char padding[] = {0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0};
    static const unsigned char fourth[] = {0x49, 0x89, 0xca};
    const unsigned char *at = site - sizeof code - 1;
    return readable >= sizeof code + 1 + sizeof padding && memcmp(at, code, sizeof code) == 0 &&
           (memcmp(at - sizeof padding, padding, sizeof padding) == 0 ||
            memcmp(at - sizeof fourth, fourth, sizeof fourth) == 0);
}

/* mov 8(%rsp), %r8; mov 16(%rsp), %r9; mov %r11, 8(%rsp): the same with threads, in glibc and in
 * musl. The second of them becomes the jump, for it lies in a word where the function is aligned.
 */
static bool is_cancellable(const unsigned char *site, size_t readable)
{
    static const unsigned char code[] = {0x4c, 0x8b, 0x44, 0x24, 0x08, 0x4c, 0x8b, 0x4c,
                                         0x24, 0x10, 0x4c, 0x89, 0x5c, 0x24, 0x08};
    return readable >= sizeof code && memcmp(site - sizeof code, code, sizeof code) == 0;
}

/*
 * nopl n(%rax,%rax); xor %eax, %eax: how glibc's read without cancellation, and that of its dynamic
 * linker, begin. The nop is padding; or somebody comes through it. Its last five bytes say what it
 * would address, which it does not, so whatever they are it stays the nop that it is, also with
 * prefixes: the jump lies in them.
 */
static bool is_padded_read(const unsigned char *site, size_t readable, unsigned long rax)
{
    static const unsigned char code[] = {0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0, 0x31, 0xc0};
    return rax == 0 && readable >= sizeof code &&
           memcmp(site - sizeof code, code, sizeof code) == 0;
}

static void plan_padded_read(const unsigned char *site, struct dfi_plan *plan)
{
    plan->size = plan->first = plan->moved_size = 2;
    memcpy(plan->moved, site - 2, 2);
    plan->hole = (uintptr_t)site - 2 - DFI_JUMP_SIZE;
}

/* A nop, perhaps with prefixes, to which nothing leads. */
static bool is_behind_return(const unsigned char *nop)
{
    for (int prefixes = 0; prefixes < 7 && (nop[-1] == 0x66 || nop[-1] == 0x2e); prefixes++)
        nop--;
    return nop[-1] == 0xc3;
}

/* Where a jump may lie in the padding before read's way with threads, which begins at an aligned
 * address with sub $n, %rsp and ends with what is_threaded_read() knows. 0: there is none. */
static uintptr_t padding_before(const unsigned char *site, size_t readable)
{
    static const unsigned char code[] = {0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0, 0x48, 0x83, 0xec};
    const unsigned char *begin =
        (const unsigned char *)((uintptr_t)(site - 14) & -(uintptr_t)ALIGNED);
    for (; begin >= site - readable + ALIGNED; begin -= ALIGNED) {
        if (memcmp(begin - 8, code, sizeof code) == 0 && is_behind_return(begin - 8))
            return (uintptr_t)begin - DFI_JUMP_SIZE;
    }
    return 0;
}

void dfi_site_plan_short(const unsigned char *site, size_t readable, struct dfi_plan *plan)
{
    uintptr_t hole = is_threaded_read(site, readable) ? padding_before(site, readable) : 0;
    if (hole == 0)
        return;
    plan_padded_read(site, plan);
    plan->hole = hole;
}

static size_t find_move(const unsigned char *site, size_t readable, unsigned long rax,
                        size_t *first)
{
    *first = DFI_JUMP_SIZE;
    size_t size = find_number(site, readable, rax);
    if (size > 0)
        return size;
    if (is_long_number(site, readable, rax)) {
        *first = 7;
        return 7;
    }
    if (is_threaded_read(site, readable))
        return 14;
    if (is_cancellable(site, readable))
        return 10;
    return is_syscall_function(site, readable) || is_number_of_stack(site, readable) ? 5 : 0;
}

void dfi_site_plan(const unsigned char *site, size_t readable, unsigned long rax,
                   struct dfi_plan *plan)
{
    plan->branch = plan->address = -1;
    plan->size = 0;
    plan->hole = 0;
    if (is_read(site, readable)) {
        plan_read(site, plan);
        return;
    }
    if (is_padded_read(site, readable, rax)) {
        plan_padded_read(site, plan);
        return;
    }
    plan->size = find_move(site, readable, rax, &plan->first);
    plan->moved_size = plan->size;
    memcpy(plan->moved, site - plan->size, plan->size);
}

/* ---- holes ---- */

#define PADDING 0xcc /* int3: what Go and lld put between functions; never executed */

static bool is_hole(const unsigned char *at)
{
    for (size_t i = 0; i < DFI_JUMP_SIZE; i++) {
        if (at[i] != PADDING)
            return false;
    }
    return true;
}

uintptr_t dfi_site_hole(const unsigned char *site, size_t readable_before, size_t readable_behind)
{
    size_t before = readable_before < DFI_SHORT_REACH ? readable_before : DFI_SHORT_REACH;
    size_t behind = readable_behind < DFI_SHORT_REACH ? readable_behind : DFI_SHORT_REACH;
    const unsigned char *end = site + behind;
    uintptr_t first = ((uintptr_t)(site - before) + ALIGNED - 1) & -(uintptr_t)ALIGNED;
    for (uintptr_t edge = first; edge <= (uintptr_t)end; edge += ALIGNED) {
        const unsigned char *hole = (const unsigned char *)edge - DFI_JUMP_SIZE;
        if (hole >= site - before && is_hole(hole))
            return (uintptr_t)hole;
    }
    return 0;
}
