/*
 * thread.c - what the core keeps for each thread: its stack, its state at the base of %gs.
 *
 * A thread cannot unmap the stack it ends on. It marks its memory as unused with its very last
 * instruction but one (dfi_thread_exit), and the next thread to be made takes it over.
 */
#include "intercept/thread.h"

#include "intercept/filter.h"
#include "intercept/lock.h"
#include "intercept/mem.h"
#include "intercept/offsets.h"
#include "intercept/run.h"
#include "intercept/signal.h"

#include <asm/prctl.h>

#define STACK_SIZE (256 * 1024ul) /* touched as far as it is used; the lowest page is a guard */

#define PROT_RW    3       /* PROT_READ | PROT_WRITE */
#define MAP_STACK  0x24022 /* PRIVATE | ANONYMOUS | NORESERVE | STACK */

/* The linker's: the core's code lies between them. */
extern const char __ehdr_start[] __attribute__((visibility("hidden")));
extern const char etext[] __attribute__((visibility("hidden")));

_Static_assert(offsetof(struct dfi_thread, self) == T_SELF, "offsets.h");
_Static_assert(offsetof(struct dfi_thread, in_core) == T_IN_CORE, "offsets.h");
_Static_assert(offsetof(struct dfi_thread, deferred) == T_DEFERRED, "offsets.h");
_Static_assert(offsetof(struct dfi_thread, refused) == T_REFUSED, "offsets.h");
_Static_assert(offsetof(struct dfi_thread, gs_apart) == T_GS_APART, "offsets.h");
_Static_assert(offsetof(struct dfi_thread, frame) == T_FRAME, "offsets.h");
_Static_assert(offsetof(struct dfi_thread, gs_base) == T_GS_BASE, "offsets.h");
_Static_assert(offsetof(struct dfi_thread, tid) == T_TID, "offsets.h");
_Static_assert(offsetof(struct dfi_thread, next) == T_NEXT, "offsets.h");
_Static_assert(offsetof(struct dfi_frame, args) == F_ARGS, "offsets.h");
_Static_assert(offsetof(struct dfi_frame, result) == F_RESULT, "offsets.h");
_Static_assert(offsetof(struct dfi_frame, ip) == F_IP, "offsets.h");
_Static_assert(offsetof(struct dfi_frame, sp) == F_SP, "offsets.h");
_Static_assert(offsetof(struct dfi_frame, flags) == F_FLAGS, "offsets.h");
_Static_assert(offsetof(struct dfi_frame, saved) == F_SAVED, "offsets.h");
_Static_assert(offsetof(struct dfi_frame, callee) == F_CALLEE, "offsets.h");
_Static_assert(offsetof(struct dfi_frame, saved_nr) == F_ORIGIN, "offsets.h");
_Static_assert(sizeof(struct dfi_frame) == F_SIZE, "offsets.h");

/* What lies at the top of a thread's mapping; the core stack grows down from the frame. */
struct memory {
    struct dfi_frame frame;
    struct dfi_thread thread;
    struct dfi_pending pending;
    int running; /* 0 when the thread has ended */
} __attribute__((aligned(16)));

struct dfi_lock dfi_thread_lock DFI_HOT;

/* All that have memory, under dfi_thread_lock; none is ever taken off, and gs.c looks without. */
struct dfi_thread *dfi_threads DFI_HOT;

static struct memory *memory_of(struct dfi_thread *thread)
{
    return (struct memory *)((char *)thread - offsetof(struct memory, thread));
}

static struct memory *unused(void)
{
    dfi_lock(&dfi_thread_lock);
    struct memory *memory = NULL;
    for (struct dfi_thread *at = dfi_threads; at != NULL && memory == NULL; at = at->next) {
        if (__atomic_load_n(&memory_of(at)->running, __ATOMIC_ACQUIRE) == 0)
            memory = memory_of(at);
    }
    if (memory != NULL)
        memory->running = 1;
    dfi_unlock(&dfi_thread_lock);
    return memory;
}

static struct memory *map(void)
{
    long at = dfi_kernel(__NR_mmap, 0, STACK_SIZE, PROT_RW, MAP_STACK, -1, 0);
    if (at < 0 && at > -4096)
        return NULL;
    dfi_kernel(__NR_mprotect, at, DFI_PAGE, 0);
    struct memory *memory = (struct memory *)(at + STACK_SIZE - sizeof *memory);
    memory->running = 1;
    dfi_lock(&dfi_thread_lock);
    memory->thread.next = dfi_threads;
    __atomic_store_n(&dfi_threads, &memory->thread, __ATOMIC_RELEASE); /* gs.c looks without */
    dfi_unlock(&dfi_thread_lock);
    return memory;
}

/* As new, but in the list all the while: gs.c goes through it without the lock. */
static void clear(struct dfi_thread *thread)
{
    const size_t behind = offsetof(struct dfi_thread, next) + sizeof thread->next;
    memset(thread, 0, offsetof(struct dfi_thread, next));
    memset((char *)thread + behind, 0, sizeof *thread - behind);
}

struct dfi_thread *dfi_thread_new(struct dfi_process *process)
{
    struct memory *memory = unused();
    if (memory == NULL)
        memory = map();
    if (memory == NULL)
        return NULL;
    struct dfi_thread *thread = &memory->thread;
    dfi_lock(&dfi_thread_lock); /* it is in the list, and runs as far as others see */
    clear(thread);
    memset(&memory->pending, 0, sizeof memory->pending);
    thread->self = thread;
    thread->in_core = 1;
    thread->frame = &memory->frame;
    thread->process = process;
    thread->pending = &memory->pending;
    dfi_unlock(&dfi_thread_lock);
    return thread;
}

void dfi_thread_free(struct dfi_thread *thread)
{
    thread->tid = 0;
    __atomic_store_n(&memory_of(thread)->running, 0, __ATOMIC_RELEASE);
}

_Noreturn void dfi_thread_end(struct dfi_thread *self, long status)
{
    dfi_counts_give(self);
    self->tid = 0; /* another may have the number before `running` is looked at */
    dfi_thread_exit(status, &memory_of(self)->running);
}

struct dfi_thread *dfi_threads_visit(const struct dfi_process *process,
                                     bool (*visit)(struct dfi_thread *, unsigned long),
                                     unsigned long with)
{
    dfi_lock(&dfi_thread_lock);
    struct dfi_thread *at = dfi_threads;
    while (at != NULL && (__atomic_load_n(&memory_of(at)->running, __ATOMIC_ACQUIRE) == 0 ||
                          at->process != process || !visit(at, with)))
        at = at->next;
    dfi_unlock(&dfi_thread_lock);
    return at;
}

void dfi_threads_forked(struct dfi_thread *self)
{
    for (struct dfi_thread *at = dfi_threads; at != NULL; at = at->next)
        memory_of(at)->running = at == self;
}

uintptr_t dfi_thread_bottom(const struct dfi_thread *thread)
{
    const char *frame = (const char *)thread - offsetof(struct memory, thread);
    return (uintptr_t)frame + sizeof(struct memory) - STACK_SIZE + DFI_PAGE;
}

long dfi_thread_adopt(struct dfi_thread *thread)
{
    long result = dfi_kernel(__NR_arch_prctl, ARCH_SET_GS, thread);
    thread->tid = (int)dfi_kernel(__NR_gettid);
    if (result == 0)
        dfi_lock_begin();
    return result;
}

long dfi_thread_arm(void)
{
    if (dfi_filtered)
        return 0;
    return dfi_unfiltered(__NR_prctl, PR_SET_SYSCALL_USER_DISPATCH, 1, (uintptr_t)__ehdr_start,
                          (uintptr_t)(etext - __ehdr_start), 0);
}

struct dfi_process *dfi_process_new(void)
{
    struct dfi_action *actions;
    size_t actions_size = DFI_SIGNALS * sizeof *actions;
    struct dfi_process *process =
        dfi_alloc(sizeof *process + actions_size + sizeof *process->parked);
    if (process == NULL)
        return NULL;
    process->actions = (struct dfi_action *)(process + 1);
    process->parked = (struct dfi_parked *)(process->actions + DFI_SIGNALS);
    process->pid = (int)dfi_kernel(__NR_getpid);
    process->threads = 1;
    return process;
}

struct dfi_process *dfi_process_copy(struct dfi_process *process, bool shares_actions)
{
    struct dfi_process *copy = dfi_process_new();
    if (copy == NULL)
        return NULL;
    /* Ahead of the numbers that are hidden: this may add one, by which the child is known. */
    struct dfi_files *files = dfi_files_copy(process->files);
    if (process->files != NULL && files == NULL) {
        dfi_process_free(copy);
        return NULL;
    }
    struct dfi_action *actions = copy->actions;
    struct dfi_parked *parked = copy->parked;
    memcpy(actions, process->actions, DFI_SIGNALS * sizeof *actions);
    memcpy(copy, process, sizeof *copy);
    copy->actions = shares_actions ? process->actions : actions;
    copy->parked = parked;
    copy->lends = false;
    copy->threads = 1;
    copy->brief = NULL; /* its descriptors are others, and it has one thread */
    copy->files = files;
    if (shares_actions)
        process->lends = true;
    return copy;
}

void dfi_process_free(struct dfi_process *process)
{
    if (process->files != NULL)
        dfi_files_free(process->files);
    dfi_free(process->brief);
    if (!process->lends) /* nobody counts who has them */
        dfi_free(process);
}
