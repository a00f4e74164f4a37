/*
 * trampoline.c - memory near call sites for what is executed in place of them.
 *
 * A trampoline runs the instructions that were moved (site.c), puts the address behind the syscall
 * into %rcx and jumps to dfi_entry. Beside it stands where it is from, for handlers of signals,
 * which hold no lock: arenas are only added, and what is in them stays.
 */
#include "intercept/trampoline.h"

#include "intercept/intercept.h"
#include "intercept/mem.h"
#include "intercept/rewrite.h"
#include "intercept/signal.h"

#define ARENA_SIZE      (64 * 1024ul)
#define ARENAS          64
#define NEAR            0x7f000000l /* what a 32-bit displacement reaches, with a margin */

#define PROT_RX         5
#define PROT_RWX        7

#define MAP_ANYWHERE    0x22     /* PRIVATE | ANONYMOUS */
#define MAP_TRAMPOLINES 0x100022 /* PRIVATE | ANONYMOUS | FIXED_NOREPLACE */

struct trampoline {
    unsigned char code[48];
    uintptr_t site;
    unsigned char size, first, moved_size; /* of its plan */
};
_Static_assert(sizeof(struct trampoline) == 64,
               "a line of a cache, and found by any address in it");

struct dfi_arena {
    uintptr_t start;
    size_t used;
};

static struct dfi_arena arenas[ARENAS];
static unsigned arenas_used DFI_HOT;

/* ---- code that is written to ---- */

static bool refuse(void)
{
    dfi_rewrite_on = false;
    dfi_note("writable code is refused here: every system call traps");
    return false;
}

static long protect(uintptr_t start, size_t size, int prot)
{
    uintptr_t page = start & -DFI_PAGE, end = (start + size + DFI_PAGE - 1) & -DFI_PAGE;
    return dfi_kernel(__NR_mprotect, page, end - page, prot);
}

/* EPERM is said of these very pages: mseal(2). */
bool dfi_code_open(uintptr_t start, size_t size)
{
    long result = protect(start, size, PROT_RWX);
    return result == 0 || (result != -EPERM && refuse());
}

void dfi_code_close(uintptr_t start, size_t size)
{
    protect(start, size, PROT_RX);
}

void dfi_put_displacement(unsigned char *end, uintptr_t from, uintptr_t to)
{
    int distance = (int)(to - from);
    memcpy(end - 4, &distance, sizeof distance);
}

/* ---- arenas ---- */

static bool is_near(uintptr_t left, uintptr_t right)
{
    long distance = (long)(left - right);
    return distance > -NEAR && distance < NEAR;
}

/* They are made to be written to. 0: not there. */
static uintptr_t map_arena(uintptr_t at, int flags)
{
    long got = dfi_kernel(__NR_mmap, at, ARENA_SIZE, PROT_RWX, flags, -1, 0);
    if (got == -EACCES || got == -EPERM)
        refuse();
    return got < 0 && got > -4096 ? 0 : (uintptr_t)got;
}

static uintptr_t map_arena_at(uintptr_t at)
{
    uintptr_t got = map_arena(at, MAP_TRAMPOLINES);
    if (got != 0 && got != at) /* a kernel that takes the address for a wish */
        dfi_kernel(__NR_munmap, got, ARENA_SIZE);
    return got == at ? at : 0;
}

/* Where the kernel would map the next file. */
static uintptr_t map_arena_anywhere(uintptr_t site)
{
    uintptr_t got = map_arena(0, MAP_ANYWHERE);
    if (got == 0 || is_near(got, site))
        return got;
    dfi_kernel(__NR_munmap, got, ARENA_SIZE);
    return 0;
}

/* Free memory near a site: below it first, where nothing grows into. Libraries lie where the core
 * does, close together. */
static struct dfi_arena *open_new(uintptr_t site)
{
    if (arenas_used == ARENAS)
        return NULL;
    uintptr_t start = site & -ARENA_SIZE, step = 32 * ARENA_SIZE, found = 0;
    if (is_near(site, (uintptr_t)dfi_entry))
        found = map_arena_anywhere(site);
    for (uintptr_t way = step; way < (uintptr_t)NEAR && found == 0 && dfi_rewrite_on; way += step) {
        if (start > way + ARENA_SIZE)
            found = map_arena_at(start - way);
        if (found == 0 && start + way < DFI_USER_END - ARENA_SIZE)
            found = map_arena_at(start + way);
    }
    if (found == 0)
        return NULL;
    struct dfi_arena *arena = &arenas[arenas_used];
    *arena = (struct dfi_arena){.start = found};
    __atomic_store_n(&arenas_used, arenas_used + 1, __ATOMIC_RELEASE);
    return arena;
}

struct dfi_arena *dfi_arena_open(uintptr_t site)
{
    for (unsigned i = 0; i < arenas_used; i++) {
        if (is_near(arenas[i].start, site) && arenas[i].used < ARENA_SIZE)
            return dfi_code_open(arenas[i].start, ARENA_SIZE) ? &arenas[i] : NULL; /* one piece */
    }
    return open_new(site);
}

void dfi_arena_close(const struct dfi_arena *arena)
{
    dfi_code_close(arena->start, ARENA_SIZE);
}

/* ---- trampolines ---- */

/* The longest is behind "mov $n, %eax" and what follows that, far from the entry. */
_Static_assert(DFI_MOVED_MAX + 7 + 14 <= sizeof((struct trampoline){0}.code), "its code");

/* The code of a trampoline that will stand at `at`. */
static void put_code(unsigned char *code, uintptr_t at, const struct dfi_plan *plan,
                     uintptr_t behind)
{
    static const unsigned char load[] = {0x48, 0x8d, 0x0d}, /* lea n(%rip), %rcx */
        jump[] = {0xff, 0x25, 0, 0, 0, 0};                  /* jmp *0(%rip) */
    const uintptr_t entry = (uintptr_t)dfi_entry;
    size_t size = plan->moved_size;
    memcpy(code, plan->moved, size);
    if (plan->branch >= 0)
        dfi_put_displacement(code + plan->branch, at + (uintptr_t)plan->branch, plan->target);
    if (plan->address >= 0)
        dfi_put_displacement(code + plan->address, at + (uintptr_t)plan->address_end,
                             plan->operand);
    memcpy(code + size, load, sizeof load);
    size += sizeof load + 4;
    dfi_put_displacement(code + size, at + size, behind);
    if (is_near(at, entry)) {
        code[size] = 0xe9;
        size += DFI_JUMP_SIZE;
        dfi_put_displacement(code + size, at + size, entry);
        return;
    }
    memcpy(code + size, jump, sizeof jump);
    memcpy(code + size + sizeof jump, &entry, sizeof entry);
}

/* An arena is opened for a whole mapping, of which a site may lie far behind the start. */
static bool is_reachable(const struct dfi_plan *plan, uintptr_t at, uintptr_t site)
{
    return is_near(site, at) && (plan->branch < 0 || is_near(plan->target, at)) &&
           (plan->address < 0 || is_near(plan->operand, at));
}

uintptr_t dfi_trampoline_put(struct dfi_arena *arena, const struct dfi_plan *plan, uintptr_t site)
{
    struct trampoline made = {.site = site,
                              .size = (unsigned char)plan->size,
                              .first = (unsigned char)plan->first,
                              .moved_size = (unsigned char)plan->moved_size};
    uintptr_t at = arena->start + arena->used;
    if (arena->used == ARENA_SIZE || !is_reachable(plan, at, site))
        return 0;
    put_code(made.code, at, plan, site + 2);
    memcpy((void *)at, &made, sizeof made);
    arena->used += sizeof made;
    return at;
}

static bool is_in_arena(uintptr_t ip)
{
    unsigned used = __atomic_load_n(&arenas_used, __ATOMIC_ACQUIRE);
    for (unsigned i = 0; i < used; i++) {
        if (ip - arenas[i].start < ARENA_SIZE)
            return true;
    }
    return false;
}

/* One of the moved may have become longer (a branch): what is behind it is counted from the end. */
uintptr_t dfi_trampoline_origin(uintptr_t ip)
{
    if (!is_in_arena(ip))
        return 0;
    const struct trampoline *t = (const struct trampoline *)(ip & -sizeof *t);
    size_t at = ip - (uintptr_t)t;
    if (at >= t->moved_size)
        return t->site;
    return at <= t->first ? t->site - t->size + at : t->site - (t->moved_size - at);
}
