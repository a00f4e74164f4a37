/*
 * gs.c - whose base of %gs it is: the program's own, or where the core finds the thread.
 */
#include "intercept/gs.h"

#include "intercept/lock.h"
#include "intercept/offsets.h"
#include "intercept/rewrite.h"
#include "intercept/signal_private.h"
#include "intercept/thread.h"

#define FSGSBASE 2 /* of AT_HWCAP2: the instructions may be used */

bool dfi_gs_used;
static bool can_write; /* by wrgsbase */

/* By the number of a thread. One that was born later is found here before one of its number that
 * has ended; where two of them fall together, the list of all is asked. Each entry is its threads'
 * alone to write. */
extern struct dfi_thread *dfi_gs_threads[GS_THREADS];
struct dfi_thread *dfi_gs_threads[GS_THREADS];

static unsigned long read_base(void)
{
    unsigned long base;
    __asm__ volatile("rdgsbase %0" : "=r"(base));
    return base;
}

static void write_base(unsigned long base)
{
    __asm__ volatile("wrgsbase %0" : : "r"(base) : "memory");
}

static struct dfi_thread **entry_of(int tid)
{
    return &dfi_gs_threads[(unsigned)tid % GS_THREADS];
}

unsigned long dfi_gs_hide(unsigned long hwcap2)
{
    can_write = (hwcap2 & FSGSBASE) != 0;
    return hwcap2 & ~(unsigned long)FSGSBASE;
}

/* From now on all who come in are asked who they are: handlers first. A thread keeps the core's
 * base all the time until it is found with another, so it does not matter who asks already. */
static bool begin(void)
{
    dfi_lock(&dfi_rewrite_lock);
    if (!dfi_gs_used && can_write) {
        __atomic_store_n(&dfi_gs_used, true, __ATOMIC_SEQ_CST);
        dfi_gs_used = dfi_rewrite_redirect((uintptr_t)dfi_entry, (uintptr_t)dfi_gs_entry);
    }
    bool begun = dfi_gs_used;
    dfi_unlock(&dfi_rewrite_lock);
    return begun;
}

long dfi_gs_set(unsigned long base)
{
    struct dfi_thread *self = dfi_self();
    if (base >= DFI_USER_END || !begin())
        return -EPERM;
    self->gs_base = base;
    self->gs_apart = 1;
    return 0;
}

void dfi_gs_born(struct dfi_thread *self)
{
    if (dfi_gs_used)
        *entry_of(self->tid) = self;
}

struct dfi_thread *dfi_gs_self(void)
{
    int tid = (int)dfi_unfiltered(__NR_gettid, 0, 0, 0, 0, 0);
    struct dfi_thread *at = *entry_of(tid);
    if (at != NULL && at->tid == tid)
        return at;
    for (at = dfi_threads; at->tid != tid;)
        at = at->next;
    return at;
}

void dfi_gs_take(struct dfi_thread *self)
{
    unsigned long base = read_base();
    if (base != (uintptr_t)self) {
        self->gs_base = base;
        self->gs_apart = 1;
        write_base((uintptr_t)self);
    }
}

void dfi_gs_give(const struct dfi_thread *self)
{
    if (self->gs_apart)
        write_base(self->gs_base);
}

/* Called by dfi_trap_entry. */
void dfi_gs_trap(void);
void dfi_gs_trap(void)
{
    dfi_gs_take(dfi_gs_self());
}

void dfi_gs_end_leaving(struct sigcontext *at)
{
    if (at->rip == (uintptr_t)dfi_leave_gs_end || at->rip == (uintptr_t)dfi_leave_gs_out)
        at->rip = (uintptr_t)dfi_leave_end;
    else if (at->rip == (uintptr_t)dfi_pass_gs_end || at->rip == (uintptr_t)dfi_pass_gs_out)
        at->rip = (uintptr_t)dfi_pass_end;
}

/* rt_sigreturn(2) is made there, too: what lies on its stack is no address of ours. */
bool dfi_gs_asks(const struct sigcontext *at)
{
    return dfi_between(at->rip, dfi_free_call, dfi_free_end) &&
           *(const uintptr_t *)at->rsp == (uintptr_t)dfi_gs_known;
}
