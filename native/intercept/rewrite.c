/*
 * rewrite.c - a site that has trapped a few times becomes a jump to a trampoline of its own
 * (trampoline.c). The syscall instruction itself is left alone, for threads that are just before
 * it, or inside the call.
 *
 * Other threads may be executing the bytes. A jump that lies within an aligned word is stored at
 * once. Where it does not, the four bytes of the displacement are stored first: a "mov $n, %eax"
 * then loads nonsense for a moment, the call behind it traps, and the site's record says what n
 * was. Then, when every processor has seen that (membarrier), the opcode. An instruction that is
 * not a mov with a number is only rewritten in one store, or while the process has one thread.
 *
 * Where there is no such instruction, the syscall itself becomes a short jump into padding
 * (site.c).
 *
 * Memory that is both writable and executable exists for the time of a store. Where it is refused
 * (SELinux, PR_SET_MDWE), nothing is rewritten any more: calls trap.
 */
#include "intercept/rewrite.h"

#include "intercept/learn.h"
#include "intercept/lock.h"
#include "intercept/maps.h"
#include "intercept/mem.h"
#include "intercept/signal.h"
#include "intercept/site.h"
#include "intercept/thread.h"
#include "intercept/trampoline.h"

#define HITS_TO_REWRITE          4 /* a trap costs 2 microseconds, a rewriting as much as a few: */
#define REWRITE_COST             8 /* traps */
#define SITES                    2048 /* sites beyond trap for ever */
#define CHAINS                   256

#define PROT_RX                  5
#define PROT_RWX                 7

#define MEMBARRIER_SYNC_CORE     (1 << 5) /* MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE */
#define MEMBARRIER_SYNC_REGISTER (1 << 6)

enum state { COUNTED, KEPT, REWRITTEN };

struct site {
    uintptr_t at;
    unsigned hits, nr;
    enum state state;
    unsigned short next; /* of its chain: 1 + index; 0: the last */
};

struct dfi_lock dfi_rewrite_lock DFI_HOT;
bool dfi_rewrite_on DFI_HOT;

/* Written before the program's first instruction. */
static uintptr_t linker_start DFI_HOT, linker_end DFI_HOT;

/* One behind the other in memory, so that a short program's few sites take one page, and chained
 * by the hash of their address. All under dfi_rewrite_lock. */
static struct site sites[SITES];
static unsigned short chains[CHAINS] DFI_HOT; /* 0: none; else 1 + index in sites */
static unsigned sites_used DFI_HOT;

static struct site *find_site(uintptr_t at)
{
    unsigned short *chain = &chains[(at * 0x9e3779b97f4a7c15ul) >> 56];
    for (unsigned i = *chain; i != 0; i = sites[i - 1].next) {
        if (sites[i - 1].at == at)
            return &sites[i - 1];
    }
    if (sites_used == SITES)
        return NULL;
    struct site *site = &sites[sites_used++];
    *site = (struct site){.at = at, .next = *chain};
    *chain = (unsigned short)sites_used;
    return site;
}

/* ---- the store ---- */

/* Every processor that runs this process has seen the stores before, and fetches anew. */
static bool sync_cores(void)
{
    if (dfi_kernel(__NR_membarrier, MEMBARRIER_SYNC_CORE, 0, 0) == 0)
        return true;
    dfi_kernel(__NR_membarrier, MEMBARRIER_SYNC_REGISTER, 0, 0);
    return dfi_kernel(__NR_membarrier, MEMBARRIER_SYNC_CORE, 0, 0) == 0;
}

/* Nobody else can be executing what is written to. */
static bool is_alone(void)
{
    return dfi_process()->threads == 1 && !dfi_self()->shares_memory && !dfi_clone_beside();
}

void dfi_rewrite_shared(void)
{
    static bool registered DFI_HOT; /* children of fork(2) are, too */
    if (registered || !dfi_rewrite_on || !is_alone())
        return;
    registered = true; /* or it is refused: sync_cores() will see */
    dfi_kernel(__NR_membarrier, MEMBARRIER_SYNC_REGISTER, 0, 0);
}

static bool lies_in_word(uintptr_t at, size_t size)
{
    return (at & 7) + size <= 8;
}

/* In one store where the bytes lie in one word. */
static void store_bytes(uintptr_t at, const unsigned char *bytes, size_t size)
{
    if (!lies_in_word(at, size)) {
        memcpy((void *)at, bytes, size);
        return;
    }
    uint64_t *word = (uint64_t *)(at & -8ul), value = *word;
    memcpy((unsigned char *)&value + (at & 7), bytes, size);
    __atomic_store_n(word, value, __ATOMIC_RELEASE);
}

static bool store_in_two(uintptr_t at, const unsigned char *jump)
{
    if (!sync_cores()) /* registered by now, or never */
        return false;
    for (size_t i = 1; i < DFI_JUMP_SIZE; i++)
        __atomic_store_n((unsigned char *)at + i, jump[i], __ATOMIC_RELEASE);
    sync_cores();
    __atomic_store_n((unsigned char *)at, jump[0], __ATOMIC_RELEASE);
    return true;
}

static bool takes_two(uintptr_t at)
{
    return !lies_in_word(at, DFI_JUMP_SIZE) && !is_alone();
}

static bool store_jump(uintptr_t at, uintptr_t target, bool is_number)
{
    unsigned char jump[DFI_JUMP_SIZE] = {0xe9};
    dfi_put_displacement(jump + DFI_JUMP_SIZE, at + DFI_JUMP_SIZE, target);
    if (takes_two(at))
        return is_number && store_in_two(at, jump);
    store_bytes(at, jump, sizeof jump);
    if (!is_alone())
        sync_cores();
    return true;
}

bool dfi_rewrite_redirect(uintptr_t at, uintptr_t target)
{
    if (!dfi_code_open(at, DFI_JUMP_SIZE))
        return false;
    bool stored = store_jump(at, target, false);
    dfi_code_close(at, DFI_JUMP_SIZE);
    return stored;
}

/* ---- deciding ---- */

static bool is_number(const struct dfi_plan *plan)
{
    return plan->moved[0] == 0xb8;
}

/* The instruction of five bytes or more before the syscall becomes the jump. */
static bool rewrite_before(struct site *site, const struct dfi_plan *plan, uintptr_t trampoline)
{
    uintptr_t at = site->at - plan->size;
    if (!dfi_code_open(at, DFI_JUMP_SIZE))
        return false;
    bool stored = store_jump(at, trampoline, is_number(plan));
    dfi_code_close(at, DFI_JUMP_SIZE);
    return stored;
}

static void fill(uintptr_t hole, uintptr_t trampoline)
{
    unsigned char *jump = (unsigned char *)hole;
    jump[0] = 0xe9;
    dfi_put_displacement(jump + DFI_JUMP_SIZE, hole + DFI_JUMP_SIZE, trampoline);
}

static void store_leap(uintptr_t at, uintptr_t hole)
{
    unsigned char leap[] = {0xeb, (unsigned char)(hole - at - DFI_SHORT_JUMP_SIZE)};
    store_bytes(at, leap, sizeof leap);
}

/* Nobody executes the hole: it is filled first, and then what is at `at` leads there. */
static bool rewrite_by_hole(uintptr_t at, uintptr_t hole, uintptr_t trampoline)
{
    uintptr_t start = hole < at ? hole : at;
    uintptr_t end = hole < at ? at + DFI_SHORT_JUMP_SIZE : hole + DFI_JUMP_SIZE;
    if ((!is_alone() && !lies_in_word(at, DFI_SHORT_JUMP_SIZE)) || !sync_cores() ||
        !dfi_code_open(start, end - start))
        return false;
    fill(hole, trampoline);
    sync_cores();
    store_leap(at, hole);
    sync_cores();
    dfi_code_close(start, end - start);
    return true;
}

static bool make_plan(uintptr_t at, unsigned long nr, struct dfi_plan *plan)
{
    size_t before = dfi_maps_code_before(at, DFI_SHORT_REACH);
    const unsigned char *code = (const unsigned char *)at;
    if (before == 0 || nr == __NR_rt_sigreturn) /* unwinders know its site by its bytes */
        return false;
    dfi_site_plan(code, before < DFI_BEFORE_MAX ? before : DFI_BEFORE_MAX, nr, plan);
    if (plan->size == 0)
        plan->hole = dfi_site_hole(code, before, dfi_maps_code_behind(at, DFI_SHORT_REACH));
    else if (!is_number(plan) && takes_two(at - plan->size))
        dfi_site_plan_short(code, before, plan);
    return plan->size != 0 || plan->hole != 0;
}

static bool rewrite(struct site *site, unsigned long nr)
{
    struct dfi_plan plan;
    if (!make_plan(site->at, nr, &plan))
        return false;
    struct dfi_arena *arena = dfi_arena_open(site->at);
    if (arena == NULL)
        return false;
    uintptr_t trampoline = dfi_trampoline_put(arena, &plan, site->at);
    dfi_arena_close(arena);
    if (trampoline == 0)
        return false;
    return plan.hole != 0 ? rewrite_by_hole(site->at - plan.size, plan.hole, trampoline)
                          : rewrite_before(site, &plan, trampoline);
}

/* ---- what is learnt ---- */

/* In code that is writable and that nobody executes yet. */
static bool rewrite_unused(struct dfi_arena *arena, uintptr_t at, uintptr_t start, unsigned nr)
{
    const unsigned char *code = (const unsigned char *)at;
    size_t before = at - start < DFI_BEFORE_MAX ? at - start : DFI_BEFORE_MAX;
    struct dfi_plan plan;
    if (code[0] != 0x0f || code[1] != 0x05 || nr == __NR_rt_sigreturn)
        return false;
    dfi_site_plan(code, before, nr, &plan);
    uintptr_t trampoline = plan.size == 0 ? 0 : dfi_trampoline_put(arena, &plan, at);
    if (trampoline == 0)
        return false;
    fill(plan.hole != 0 ? plan.hole : at - plan.size, trampoline);
    if (plan.hole != 0)
        store_leap(at - plan.size, plan.hole);
    return true;
}

/* All that is learnt of [offset, offset + size), which lies at start. */
static void rewrite_learnt(uintptr_t start, size_t size, int file, unsigned long offset)
{
    struct dfi_arena *arena = dfi_arena_open(start);
    struct dfi_learn_site *site;
    unsigned at = 0, done = 0;
    if (arena == NULL)
        return;
    for (unsigned i = 0; i < DFI_LEARN_SITES; i++) {
        site = dfi_learn_next(file, offset, size - 1, &at); /* a syscall takes two bytes */
        if (site == NULL)
            break;
        if (rewrite_unused(arena, start + (site->offset - offset), start, site->nr))
            done++;
        else
            __atomic_store_n(&site->state, DFI_LEARN_CANNOT, __ATOMIC_RELAXED);
    }
    dfi_arena_close(arena);
    dfi_count_more(DFI_EVENT_LEARNT, done);
}

void dfi_rewrite_linker(uintptr_t start, uintptr_t end)
{
    linker_start = start;
    linker_end = end;
}

bool dfi_rewrite_is_linker(uintptr_t ip)
{
    return ip >= linker_start && ip < linker_end;
}

static bool is_mapped(long result)
{
    return result >= 0 || result <= -4096;
}

static bool has_learnt(int file, unsigned long offset, size_t size)
{
    unsigned at = 0;
    return file != DFI_LEARN_NONE && dfi_learn_next(file, offset, size, &at) != NULL;
}

long dfi_rewrite_map(uintptr_t at, size_t size, unsigned long flags, int fd, unsigned long offset)
{
    long got = -EACCES;
    int file = dfi_rewrite_on ? dfi_learn_file(fd) : DFI_LEARN_NONE;
    bool open = has_learnt(file, offset, size);
    dfi_lock(&dfi_rewrite_lock);
    if (open)
        got = dfi_kernel(__NR_mmap, at, size, PROT_RWX, flags, fd, offset);
    if (is_mapped(got)) {
        rewrite_learnt((uintptr_t)got, size, file, offset);
        dfi_code_close((uintptr_t)got, size);
    } else { /* nothing is learnt, or writable code is refused */
        got = dfi_kernel(__NR_mmap, at, size, PROT_RX, flags, fd, offset);
    }
    if (is_mapped(got))
        dfi_maps_known((uintptr_t)got, (uintptr_t)got + size, file, offset);
    dfi_unlock(&dfi_rewrite_lock);
    return got;
}

void dfi_rewrite_copy(uintptr_t at, size_t size, int file, unsigned long offset)
{
    if (!dfi_rewrite_on)
        return;
    dfi_lock(&dfi_rewrite_lock);
    if (has_learnt(file, offset, size))
        rewrite_learnt(at, size, file, offset);
    dfi_maps_known(at, at + size, file, offset);
    dfi_unlock(&dfi_rewrite_lock);
}

void dfi_rewrite_changed(uintptr_t start, size_t size)
{
    uintptr_t end = start + size < start ? UINTPTR_MAX : start + size;
    if (!dfi_rewrite_on || !dfi_maps_knows(start, end))
        return;
    dfi_lock(&dfi_rewrite_lock);
    dfi_maps_forget(start, end);
    for (unsigned i = 0; i < sites_used; i++) {
        if (sites[i].at >= start && sites[i].at < end) {
            sites[i].state = COUNTED;
            sites[i].hits = 0;
        }
    }
    dfi_unlock(&dfi_rewrite_lock);
}

/* ---- traps ---- */

/* The first trap at a site in this program. */
static void tell(uintptr_t at, unsigned long nr)
{
    unsigned long offset;
    int file = dfi_maps_file(at, &offset);
    if (file != DFI_LEARN_NONE && nr < DFI_CALLS_MAX)
        dfi_learn_trap(file, offset, (unsigned)nr);
}

/* One more, and what it led to. */
static void tell_more(uintptr_t at, unsigned traps)
{
    unsigned long offset;
    int file = dfi_maps_file(at, &offset);
    if (file != DFI_LEARN_NONE)
        dfi_learn_cost(file, offset, traps);
}

/* A record of a site that has become a jump, but still traps: threads on their way, or new code. */
static void correct(const struct site *site, unsigned long *nr)
{
    if (*nr >= DFI_CALLS_MAX)
        *nr = site->nr;
}

static void rewrite_often_hit(struct site *site, unsigned long nr)
{
    site->nr = (unsigned)nr;
    site->state = REWRITTEN; /* before it is: a child that shares our memory may be killed */
    if (!rewrite(site, nr))
        site->state = KEPT;
    dfi_count(site->state == REWRITTEN ? DFI_EVENT_REWRITTEN : DFI_EVENT_KEPT);
    if (site->state == REWRITTEN)
        tell_more(site->at, 1 + REWRITE_COST);
}

static void count(struct site *site, unsigned long nr)
{
    site->hits++;
    if (site->hits == 1)
        tell(site->at, nr);
    else if (site->hits < HITS_TO_REWRITE)
        tell_more(site->at, 1);
    else
        rewrite_often_hit(site, nr);
}

void dfi_rewrite_hit(uintptr_t at, unsigned long *nr)
{
    if (!dfi_rewrite_on)
        return;
    dfi_lock(&dfi_rewrite_lock);
    struct site *site = find_site(at);
    if (site != NULL && site->state == REWRITTEN)
        correct(site, nr);
    else if (site != NULL && site->state == COUNTED)
        count(site, *nr);
    dfi_unlock(&dfi_rewrite_lock);
}
