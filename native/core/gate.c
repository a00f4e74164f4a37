/*
 * gate.c - records of threads, entering and leaving, pins. The protocol is described in gate.h;
 * memory that waits for readers is in gate_retired.c.
 */
#include "core/gate_private.h"

#include <errno.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "core/caller.h"
#include "core/clock.h"
#include "core/fd.h"
#include "core/file.h"
#include "core/fork.h"
#include "core/mount.h"

#define POLL_NS      50000 /* between two looks of somebody who waits for threads to leave */
#define RECORD_ALIGN 128   /* two cache lines: the adjacent-line prefetcher pairs them */

_Thread_local struct df_thread *df_gate_self;
struct df_gate df_gate;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t exit_key; /* its destructor gives the record back */
static int init_error;         /* of the one initialisation */
_Atomic(struct df_thread *) df_gate_threads;
static _Atomic uint32_t thread_count;

/* ---- barriers ------------------------------------------------------------------------------ */

static int membarrier(int command)
{
    return (int)syscall(SYS_membarrier, command, 0, 0);
}

void df_gate_barrier(void)
{
#ifndef DF_TSAN
    atomic_thread_fence(memory_order_seq_cst);
    if (df_gate.asymmetric)
        membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
#endif
}

void df_gate_pause(void)
{
    struct timespec pause = {.tv_nsec = POLL_NS};

    nanosleep(&pause, NULL);
}

/* ---- records ------------------------------------------------------------------------------- */

/* Gives the record to the next thread. Also when the thread ends in the middle of a call. */
static void give_back(void *record)
{
    struct df_thread *thread = record;
    uint64_t passage = atomic_load_explicit(&thread->passage, memory_order_relaxed);

    df_fd_unstash(thread);
    df_file_unstash(thread);
    for (unsigned i = 0; i < DF_GATE_DEPTH; i++) {
        atomic_store_explicit(&thread->levels[i].pin, NULL, memory_order_release);
        atomic_store_explicit(&thread->levels[i].use, NULL, memory_order_release);
    }
    atomic_store_explicit(&thread->passage, (passage + 1) & ~UINT64_C(1), memory_order_release);
    atomic_store_explicit(&thread->rests, false, memory_order_release);
    thread->disturbed = false;
    thread->depth = 0;
    thread->caller = NULL;
    thread->follow_real_links = 0;
    df_gate_self = NULL;
    atomic_store_explicit(&thread->used, false, memory_order_release);
}

static void initialise(void)
{
    df_gate.asymmetric = membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0;
    init_error = pthread_key_create(&exit_key, give_back);
    if (init_error == 0)
        init_error = df_fork_register();
}

static struct df_thread *claim_record(void)
{
    for (struct df_thread *t = atomic_load(&df_gate_threads); t; t = t->next) {
        bool expected = false;

        if (!atomic_load_explicit(&t->used, memory_order_relaxed) &&
            atomic_compare_exchange_strong(&t->used, &expected, true))
            return t;
    }
    return NULL;
}

static struct df_thread *make_record(void)
{
    size_t size = (sizeof(struct df_thread) + RECORD_ALIGN - 1) & ~(size_t)(RECORD_ALIGN - 1);
    struct df_thread *thread = aligned_alloc(RECORD_ALIGN, size);

    if (!thread)
        return NULL;
    memset(thread, 0, sizeof(*thread));
    atomic_init(&thread->used, true);
    thread->index = atomic_fetch_add(&thread_count, 1);
    thread->next = atomic_load(&df_gate_threads);
    while (!atomic_compare_exchange_weak(&df_gate_threads, &thread->next, thread))
        ;
    return thread;
}

/* A failure is reported at every try: the next one may have more memory. */
static struct df_thread *first_call(void)
{
    struct df_thread *thread;

    pthread_once(&once, initialise);
    if (init_error != 0 || df_caller_ensure() < 0)
        return NULL;
    thread = claim_record();
    if (!thread)
        thread = make_record();
    if (!thread)
        return NULL;
    if (pthread_setspecific(exit_key, thread) != 0) {
        atomic_store_explicit(&thread->used, false, memory_order_release);
        return NULL;
    }
    df_gate_self = thread;
    return thread;
}

struct df_thread *df_gate_thread(void)
{
    return DF_LIKELY(df_gate_self) ? df_gate_self : first_call();
}

void df_gate_each_thread(void (*visit)(struct df_thread *, void *), void *arg)
{
    for (struct df_thread *t = atomic_load(&df_gate_threads); t; t = t->next)
        visit(t, arg);
}

void df_gate_count_passed(enum df_call_number number)
{
    struct df_thread *thread = df_gate_thread();

    if (thread)
        df_gate_add(&thread->passed[number], 1);
}

int df_gate_refuse(enum df_call_number number, int error)
{
    struct df_thread *thread = df_gate_thread();

    if (thread)
        df_gate_add(&thread->refused[number], 1);
    return error;
}

/* ---- entering and leaving ------------------------------------------------------------------ */

static void await_open(void)
{
    while (atomic_load(&df_gate.closed))
        syscall(SYS_futex, &df_gate.closed, FUTEX_WAIT_PRIVATE, 1, NULL, NULL, 0);
}

static void begin_passage(struct df_thread *thread)
{
    uint64_t passage = atomic_load_explicit(&thread->passage, memory_order_relaxed);

    for (;;) {
        DF_GATE_ANNOUNCE(&thread->passage, ++passage);
        if (!atomic_load_explicit(&df_gate.closed, memory_order_acquire))
            return;
        atomic_store_explicit(&thread->passage, ++passage, memory_order_release);
        await_open();
    }
}

/* A call within one that rests. */
static void disturb(struct df_thread *thread)
{
    thread->disturbed = true;
    DF_GATE_ANNOUNCE(&thread->rests, false);
}

struct df_thread *df_gate_enter_slowly(int *error)
{
    struct df_thread *thread = df_gate_thread();

    if (!thread) {
        *error = -ENOMEM;
        return NULL;
    }
    if (thread->depth == DF_GATE_DEPTH) {
        *error = -ELOOP;
        return NULL;
    }
    if (thread->depth == 0)
        begin_passage(thread);
    else if (atomic_load_explicit(&thread->rests, memory_order_relaxed))
        disturb(thread);
    thread->depth++;
    return thread;
}

/* Outside now: ends mounts that only this thread's last call kept. */
void df_gate_leave_slowly(struct df_thread *thread)
{
    thread->reap = false;
    df_mount_reap();
}

void df_gate_sleep(struct df_thread *thread)
{
    uint64_t passage = atomic_load_explicit(&thread->passage, memory_order_relaxed);

    if (thread->depth == 1)
        atomic_store_explicit(&thread->passage, passage + 1, memory_order_release);
}

void df_gate_awake(struct df_thread *thread)
{
    if (thread->depth == 1)
        begin_passage(thread);
}

/* ---- pins ---------------------------------------------------------------------------------- */

/* True if the calling thread pins the mount. */
static bool pins(const struct df_thread *thread, const struct df_mount *mount)
{
    for (unsigned i = 0; i < thread->depth; i++)
        if (atomic_load_explicit(&thread->levels[i].pin, memory_order_relaxed) == mount)
            return true;
    return false;
}

bool df_gate_pin(struct df_thread *thread, struct df_mount *mount, int id)
{
    bool pinned_outside = thread->depth > 1 && pins(thread, mount);

    DF_GATE_ANNOUNCE(&thread->levels[thread->depth - 1].pin, mount);
    if (DF_LIKELY(atomic_load_explicit(&mount->live, memory_order_acquire) == id))
        return true;
    if (pinned_outside && mount->id == id)
        return true;
    df_gate_unpin(thread);
    return false;
}

/* Whoever waits for the mount has set live to 0 before he looked at the pins, so either he saw
 * this pin gone or we see the 0. */
void df_gate_unpin(struct df_thread *thread)
{
    _Atomic(struct df_mount *) *pin = &thread->levels[thread->depth - 1].pin;
    struct df_mount *mount = atomic_load_explicit(pin, memory_order_relaxed);

    if (!mount)
        return;
    DF_GATE_ANNOUNCE(pin, NULL);
    df_gate_kept(thread, mount);
}

/* The same with a file whose last reference has gone meanwhile: it is an orphan, or nobody has
 * seen this use. */
void df_gate_unuse(struct df_thread *thread)
{
    _Atomic(struct df_file *) *use = &thread->levels[thread->depth - 1].use;
    struct df_file *file = atomic_load_explicit(use, memory_order_relaxed);

    if (!file)
        return;
    DF_GATE_ANNOUNCE(use, NULL);
    if (DF_UNLIKELY(atomic_load_explicit(&file->orphan, memory_order_acquire)))
        df_file_end_orphan(thread, file);
}

void df_gate_kept(struct df_thread *thread, struct df_mount *mount)
{
    if (DF_LIKELY(atomic_load_explicit(&mount->live, memory_order_relaxed) != 0))
        return;
    thread->reap = true;
    df_mount_notify();
}

bool df_gate_is_pinned(const struct df_mount *mount)
{
    for (struct df_thread *t = atomic_load(&df_gate_threads); t; t = t->next)
        for (unsigned i = 0; i < DF_GATE_DEPTH; i++)
            if (atomic_load(&t->levels[i].pin) == mount)
                return true;
    return false;
}

bool df_gate_is_used(const struct df_file *file)
{
    for (struct df_thread *t = atomic_load(&df_gate_threads); t; t = t->next)
        for (unsigned i = 0; i < DF_GATE_DEPTH; i++)
            if (atomic_load(&t->levels[i].use) == file)
                return true;
    return false;
}

/* ---- fork ---------------------------------------------------------------------------------- */

static bool others_inside(void)
{
    for (struct df_thread *t = atomic_load(&df_gate_threads); t; t = t->next)
        if (t != df_gate_self && (atomic_load(&t->passage) & 1))
            return true;
    return false;
}

/* By the clock: a pause takes as long as the system likes, several times what was asked for. */
void df_gate_close(int64_t patience)
{
    const int64_t end = df_clock() + patience;

    atomic_store(&df_gate.closed, 1);
    df_gate_barrier();
    while (others_inside() && df_clock() < end)
        df_gate_pause();
}

void df_gate_open(void)
{
    atomic_store(&df_gate.closed, 0);
    syscall(SYS_futex, &df_gate.closed, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
}

/* What a thread kept that was inside when its process was forked cannot be trusted: left alone. */
void df_gate_forget_others(void)
{
    struct df_thread *mine = df_gate_self;

    for (struct df_thread *t = atomic_load(&df_gate_threads); t; t = t->next) {
        if (t == mine || !atomic_load(&t->used))
            continue;
        if (atomic_load(&t->passage) & 1)
            t->fd_count = t->file_count = 0;
        give_back(t);
    }
    df_gate_self = mine;
    df_gate_forget_freeing();
    if (df_gate.asymmetric)
        df_gate.asymmetric = membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0;
}
