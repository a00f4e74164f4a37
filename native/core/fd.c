/*
 * fd.c - the table of virtual descriptors.
 *
 * A slot is one word:
 *     file | CLOEXEC?   open
 *     RESERVED          taken by an open(2) that is still under way
 *     0                 free
 * LISTED may stand beside any of them: the index is in a list of free ones (a thread's stash or the
 * common one). dup3(2) can take a free index out of the middle, so an index taken from a list is
 * checked, and LISTED keeps one from being listed twice.
 */
#include "core/fd.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

#include "core/gate.h"

#define CLOEXEC   UINT64_C(1)
#define LISTED    UINT64_C(2)
#define RESERVED  UINT64_C(4)
#define FILE_MASK (~UINT64_C(63))

#define REFILL    (DF_STASH_MAX / 2) /* eight slots: one cache line */

/* Zero pages until touched. */
static _Atomic uint64_t slots[DF_FD_MAX] __attribute__((aligned(64)));

static pthread_mutex_t free_lock = PTHREAD_MUTEX_INITIALIZER; /* protects what follows */
static uint32_t free_fds[DF_FD_MAX];
static uint32_t free_count;
static uint32_t untouched; /* indexes from here on have never been listed */

static inline struct df_file *file_of(uint64_t slot)
{
    return (struct df_file *)(uintptr_t)(slot & FILE_MASK);
}

static inline uint64_t slot_of(struct df_file *file, bool cloexec)
{
    return (uint64_t)(uintptr_t)file | (cloexec ? CLOEXEC : 0);
}

/* NULL when fd is out of range. */
static inline _Atomic uint64_t *slot_at(int fd)
{
    unsigned index = (unsigned)fd - DF_FD_BASE;

    return DF_LIKELY(index < DF_FD_MAX) ? &slots[index] : NULL;
}

/*
 * Use, barrier, validate. The slot and the bias are looked at after the use is announced (and, for
 * a thread new to the file, after the file is marked as shared): if both are as before, this is the
 * file that was found, and whoever takes its last reference away will see the use.
 */
struct df_file *df_fd_use(struct df_thread *thread, int fd)
{
    _Atomic uint64_t *at = slot_at(fd);
    struct df_file *file;
    uint64_t bias;

    if (!at)
        return NULL;
    while ((file = file_of(atomic_load_explicit(at, memory_order_acquire)))) {
        df_gate_use(thread, file);
        bias = atomic_load_explicit(&file->bias, memory_order_acquire);
        if (DF_UNLIKELY(!df_file_is_known(file, bias, thread->index)))
            df_file_share(file, bias);
        if (DF_LIKELY(file_of(atomic_load(at)) == file &&
                      atomic_load_explicit(&file->bias, memory_order_relaxed) == bias))
            break;
        df_gate_unuse(thread);
    }
    return file;
}

struct df_file *df_fd_get(struct df_thread *thread, int fd)
{
    _Atomic uint64_t *at = slot_at(fd);
    struct df_file *file;

    if (!at)
        return NULL;
    while ((file = file_of(atomic_load_explicit(at, memory_order_acquire)))) {
        if (!df_file_hold(file))
            continue; /* just closed: the slot has changed */
        if (file_of(atomic_load(at)) == file)
            break;
        df_file_put(thread, file);
    }
    return file;
}

/* ---- free indexes -------------------------------------------------------------------------- */

/* Under free_lock: the next run of indexes nobody has used, one cache line of slots. */
static void list_untouched(struct df_thread *thread)
{
    for (unsigned i = 0; i < REFILL && untouched < DF_FD_MAX; i++) {
        uint64_t expected = 0;

        /* One that dup3(2) has taken is listed when it is closed. */
        if (atomic_compare_exchange_strong(&slots[untouched], &expected, LISTED))
            thread->fds[thread->fd_count++] = untouched;
        untouched++;
    }
}

static void refill(struct df_thread *thread)
{
    pthread_mutex_lock(&free_lock);
    while (thread->fd_count < REFILL && free_count > 0)
        thread->fds[thread->fd_count++] = free_fds[--free_count];
    while (thread->fd_count == 0 && untouched < DF_FD_MAX)
        list_untouched(thread);
    pthread_mutex_unlock(&free_lock);
}

static void spill(struct df_thread *thread, unsigned keep)
{
    pthread_mutex_lock(&free_lock);
    while (thread->fd_count > keep)
        free_fds[free_count++] = thread->fds[--thread->fd_count];
    pthread_mutex_unlock(&free_lock);
}

static void push_free(struct df_thread *thread, uint32_t index)
{
    if (DF_UNLIKELY(thread->fd_count == DF_STASH_MAX))
        spill(thread, REFILL);
    thread->fds[thread->fd_count++] = index;
}

int df_fd_reserve(struct df_thread *thread)
{
    for (;;) {
        uint64_t expected = LISTED;
        uint32_t index;

        if (DF_UNLIKELY(thread->fd_count == 0)) {
            refill(thread);
            if (thread->fd_count == 0)
                return -EMFILE;
        }
        index = thread->fds[--thread->fd_count];
        if (DF_LIKELY(atomic_compare_exchange_strong(&slots[index], &expected, RESERVED)))
            return DF_FD_BASE + (int)index;
        atomic_fetch_and(&slots[index], ~LISTED); /* dup3(2) was here; off the list now */
    }
}

void df_fd_install(int fd, struct df_file *file, bool cloexec)
{
    atomic_store_explicit(slot_at(fd), slot_of(file, cloexec), memory_order_release);
}

void df_fd_give_back(struct df_thread *thread, int fd)
{
    atomic_store_explicit(slot_at(fd), LISTED, memory_order_release);
    push_free(thread, (uint32_t)(fd - DF_FD_BASE));
}

/* ---- by number ----------------------------------------------------------------------------- */

int df_fd_install_from(struct df_file *file, int least, bool cloexec)
{
    if (!slot_at(least))
        return -EINVAL;
    for (int fd = least; fd < DF_FD_BASE + DF_FD_MAX; fd++) {
        _Atomic uint64_t *at = slot_at(fd);
        uint64_t old = atomic_load_explicit(at, memory_order_relaxed);

        while ((old & ~LISTED) == 0)
            if (atomic_compare_exchange_weak(at, &old, slot_of(file, cloexec) | (old & LISTED)))
                return fd;
    }
    return -EMFILE;
}

int df_fd_replace(int fd, struct df_file *file, bool cloexec, struct df_file **old_file)
{
    _Atomic uint64_t *at = slot_at(fd);
    uint64_t old;

    if (!at)
        return -EBADF;
    old = atomic_load(at);
    do {
        if (old & RESERVED)
            return -EBUSY;
    } while (!atomic_compare_exchange_weak(at, &old, slot_of(file, cloexec) | (old & LISTED)));
    *old_file = file_of(old);
    return fd;
}

struct df_file *df_fd_take(struct df_thread *thread, int fd)
{
    _Atomic uint64_t *at = slot_at(fd);
    uint64_t old;

    if (!at)
        return NULL;
    old = atomic_load_explicit(at, memory_order_relaxed);
    do {
        if (!file_of(old))
            return NULL;
    } while (!atomic_compare_exchange_weak(at, &old, LISTED));
    if (DF_LIKELY(!(old & LISTED)))
        push_free(thread, (uint32_t)(fd - DF_FD_BASE));
    return file_of(old);
}

int df_fd_cloexec(int fd)
{
    _Atomic uint64_t *at = slot_at(fd);
    uint64_t slot = at ? atomic_load(at) : 0;

    return file_of(slot) ? (int)(slot & CLOEXEC) : -EBADF;
}

int df_fd_set_cloexec(int fd, bool cloexec)
{
    _Atomic uint64_t *at = slot_at(fd);
    uint64_t old = at ? atomic_load(at) : 0;

    do {
        if (!file_of(old))
            return -EBADF;
    } while (!atomic_compare_exchange_weak(at, &old, cloexec ? old | CLOEXEC : old & ~CLOEXEC));
    return 0;
}

unsigned df_fd_count(void)
{
    unsigned count = 0;

    for (unsigned i = 0; i < DF_FD_MAX; i++)
        count += file_of(atomic_load_explicit(&slots[i], memory_order_relaxed)) != NULL;
    return count;
}

void df_fd_unstash(struct df_thread *thread)
{
    spill(thread, 0);
}

void df_fd_lock(void)
{
    pthread_mutex_lock(&free_lock);
}

void df_fd_unlock(void)
{
    pthread_mutex_unlock(&free_lock);
}
