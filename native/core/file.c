/*
 * file.c - memory and references of open file descriptions.
 *
 * Files come in chunks that are never given back. A thread keeps a few free ones for itself, so
 * that open and close write to no cache line another thread writes to.
 */
#include "core/file.h"

#include <stdlib.h>
#include <string.h>

#include "core/call.h"
#include "core/caller.h"
#include "core/gate.h"
#include "core/lock.h"
#include "core/mount.h"

#define CHUNK_FILES 64
#define REFILL      (DF_STASH_MAX / 2)

/* Two threads' files share no cache line; low bits of the address are free for fd.c. */
union slot {
    struct df_file file;
    char pad[(sizeof(struct df_file) + 63) / 64 * 64];
};

struct chunk {
    _Alignas(64) union slot slots[CHUNK_FILES];
    struct chunk *next; /* fixed once published */
};

static _Atomic(struct chunk *) chunks; /* grows only */

static pthread_mutex_t free_lock = PTHREAD_MUTEX_INITIALIZER; /* protects free_files */
static struct df_file *free_files;                            /* linked by host[0] */

static pthread_mutex_t orphan_lock = PTHREAD_MUTEX_INITIALIZER; /* decides who ends an orphan */

static void push_free(struct df_file *file)
{
    file->host[0] = (uint64_t)(uintptr_t)free_files;
    free_files = file;
}

/* Under free_lock. */
static bool add_chunk(void)
{
    struct chunk *chunk = aligned_alloc(64, sizeof(*chunk));

    if (!chunk)
        return false;
    memset(chunk, 0, sizeof(*chunk));
    for (int i = CHUNK_FILES - 1; i >= 0; i--) {
        pthread_mutex_init(&chunk->slots[i].file.position_lock, NULL);
        push_free(&chunk->slots[i].file);
    }
    chunk->next = atomic_load(&chunks);
    atomic_store_explicit(&chunks, chunk, memory_order_release);
    return true;
}

static void refill(struct df_thread *thread)
{
    pthread_mutex_lock(&free_lock);
    while (thread->file_count < REFILL && (free_files || (!thread->file_count && add_chunk()))) {
        struct df_file *file = free_files;

        free_files = (struct df_file *)(uintptr_t)file->host[0];
        thread->files[thread->file_count++] = file;
    }
    pthread_mutex_unlock(&free_lock);
}

/* Gives back all but `keep`. */
static void spill(struct df_thread *thread, unsigned keep)
{
    pthread_mutex_lock(&free_lock);
    while (thread->file_count > keep)
        push_free(thread->files[--thread->file_count]);
    pthread_mutex_unlock(&free_lock);
}

static void free_file(struct df_thread *thread, struct df_file *file)
{
    if (DF_UNLIKELY(thread->file_count == DF_STASH_MAX))
        spill(thread, REFILL);
    thread->files[thread->file_count++] = file;
}

/* Once more than any value this memory had. A record whose index does not fit is nobody's: its
 * files count as shared from the start. */
static uint64_t next_bias(const struct df_file *file, const struct df_thread *thread)
{
    const uint64_t nobody = (UINT64_C(1) << DF_FILE_OPENER_BITS) - 1;
    uint64_t last = atomic_load_explicit(&file->bias, memory_order_relaxed);

    return (last | nobody) + 1 + (thread->index < nobody ? thread->index : nobody);
}

struct df_file *df_file_new(struct df_thread *thread, struct df_mount *mount, struct df_fs *fs,
                            int flags)
{
    struct df_file *file;

    if (DF_UNLIKELY(thread->file_count == 0)) {
        refill(thread);
        if (thread->file_count == 0)
            return NULL;
    }
    file = thread->files[--thread->file_count];
    atomic_store_explicit(&file->bias, next_bias(file, thread), memory_order_release);
    atomic_store_explicit(&file->flags, flags, memory_order_relaxed);
    file->kind = DF_KIND_REGULAR;
    file->traits = 0;
    file->counted = false;
    file->fs = fs;
    file->ino = 0;
    file->far = NULL;
    file->body = 0;
    file->kept = NULL;
    file->position = 0;
    memset(file->host, 0, sizeof(file->host));
    atomic_store_explicit(&file->mount, mount, memory_order_release);
    return file;
}

void df_file_opened(struct df_file *file)
{
    atomic_store_explicit(&file->refs, 1, memory_order_release);
}

void df_file_opened_counted(struct df_file *file)
{
    file->counted = true;
    df_file_opened(file);
}

/* The mount is told when it may be waiting for this file. */
static void forget_mount(struct df_thread *thread, struct df_file *file)
{
    struct df_mount *mount = atomic_load_explicit(&file->mount, memory_order_relaxed);

    atomic_store_explicit(&file->mount, NULL, memory_order_release);
    df_gate_light_barrier();
    df_gate_kept(thread, mount);
}

void df_file_discard(struct df_thread *thread, struct df_file *file)
{
    forget_mount(thread, file);
    free_file(thread, file);
}

/* ---- the end ------------------------------------------------------------------------------- */

/* In the order of the kernel's __fput(). */
static void finish(struct df_thread *thread, struct df_file *file)
{
    struct df_call call;

    df_lock_release(file);
    df_call_start(&call, thread, atomic_load_explicit(&file->mount, memory_order_relaxed));
    file->fs->ops->release(file->fs, &call, file);
    df_file_discard(thread, file);
}

/* Only a later bias of the same memory is greater: then the caller finds out that it lost a race.
 * The exchange is a full barrier: after it the caller looks whether the descriptor still leads
 * here, and who closes looks at `shared` after he has taken the descriptor away. */
void df_file_share(struct df_file *file, uint64_t bias)
{
    uint64_t shared = atomic_load(&file->shared);

    while (shared < bias && !atomic_compare_exchange_weak(&file->shared, &shared, bias))
        ;
}

static bool used_by(const struct df_thread *thread, const struct df_file *file)
{
    for (unsigned i = 0; i < thread->depth; i++)
        if (atomic_load_explicit(&thread->levels[i].use, memory_order_relaxed) == file)
            return true;
    return false;
}

static bool may_be_used(const struct df_thread *thread, struct df_file *file)
{
    uint64_t bias = atomic_load_explicit(&file->bias, memory_order_relaxed);

    return !((bias & ((1U << DF_FILE_OPENER_BITS) - 1)) == thread->index) ||
           atomic_load(&file->shared) == bias || used_by(thread, file);
}

void df_file_end(struct df_thread *thread, struct df_file *file)
{
    if (DF_LIKELY(file->counted || !may_be_used(thread, file))) {
        finish(thread, file);
        return;
    }
    atomic_store(&file->orphan, true);
    df_gate_barrier();
    df_file_end_orphan(thread, file);
}

/* The one who gave the last reference back and all who end a use come here; one of them finds the
 * file unused and takes it. */
void df_file_end_orphan(struct df_thread *thread, struct df_file *file)
{
    bool mine;

    pthread_mutex_lock(&orphan_lock);
    mine = atomic_load(&file->orphan) && !df_gate_is_used(file);
    if (mine)
        atomic_store(&file->orphan, false);
    pthread_mutex_unlock(&orphan_lock);
    if (mine)
        finish(thread, file);
}

unsigned df_file_count(const struct df_mount *mount)
{
    unsigned count = 0;

    for (struct chunk *c = atomic_load(&chunks); c; c = c->next)
        for (unsigned i = 0; i < CHUNK_FILES; i++)
            count += atomic_load(&c->slots[i].file.mount) == mount;
    return count;
}

void df_file_unstash(struct df_thread *thread)
{
    spill(thread, 0);
}

void df_file_lock(void)
{
    pthread_mutex_lock(&orphan_lock);
    pthread_mutex_lock(&free_lock);
}

void df_file_unlock(void)
{
    pthread_mutex_unlock(&free_lock);
    pthread_mutex_unlock(&orphan_lock);
}

void df_file_after_fork(void)
{
    for (struct chunk *c = atomic_load(&chunks); c; c = c->next)
        for (unsigned i = 0; i < CHUNK_FILES; i++)
            pthread_mutex_init(&c->slots[i].file.position_lock, NULL);
}
