/*
 * pool.c - memory for whole chunks of large files.
 *
 * Chunks are cut from arenas of address space, so that a chunk's pages can be given back to the
 * system without splitting a mapping. A few free chunks stay warm: fresh memory costs a page fault,
 * and the kernel's zeroing, for every page.
 */
#include <stdlib.h>
#include <sys/mman.h>

#include "store.h"

enum {
    ARENA_CHUNKS = 32,
    WARM = 16, /* chunks: 32 MiB a pool */
};

#define ARENA ((size_t)ARENA_CHUNKS * CHUNK)

void pool_init(struct pool *pool, bool huge)
{
    *pool = (struct pool){.huge = huge};
}

void pool_free(struct pool *pool)
{
    for (size_t i = 0; i < pool->narenas; i++)
        munmap(pool->arenas[i], ARENA);
    free(pool->arenas);
    free(pool->warm);
    free(pool->cold);
}

/* Address space for an arena, aligned to CHUNK. NULL: none. */
static void *map_arena(bool huge)
{
    char *mem = mmap(NULL, ARENA + CHUNK, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mem == MAP_FAILED)
        return NULL;
    size_t before = -(uintptr_t)mem % CHUNK;
    if (before)
        munmap(mem, before);
    munmap(mem + before + ARENA, CHUNK - before);
    /* Advice: where huge pages are not to be had or not to be avoided, all works without. */
    madvise(mem + before, ARENA, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
    return mem + before;
}

/* Grows an array of pointers to `count`. False: no memory. */
static bool grow_array(void ***array, size_t count)
{
    void **grown = realloc(*array, count * sizeof(*grown));
    if (grown)
        *array = grown;
    return grown != NULL;
}

/* The pool's lock is held. The lists are made as long as they can ever become. */
static bool add_arena(struct pool *pool)
{
    size_t chunks = (pool->narenas + 1) * ARENA_CHUNKS;

    if (!grow_array(&pool->arenas, pool->narenas + 1) || !grow_array(&pool->cold, chunks) ||
        !grow_array(&pool->warm, WARM))
        return false;
    char *arena = map_arena(pool->huge);
    if (!arena)
        return false;
    pool->arenas[pool->narenas++] = arena;
    for (int i = ARENA_CHUNKS - 1; i >= 0; i--)
        pool->cold[pool->ncold++] = arena + (size_t)i * CHUNK;
    return true;
}

void *pool_take(struct pool *pool)
{
    void *mem = NULL;

    lock_write(&pool->lock);
    if (pool->nwarm)
        mem = pool->warm[--pool->nwarm];
    else if (pool->ncold || add_arena(pool))
        mem = pool->cold[--pool->ncold];
    lock_write_done(&pool->lock);
    return mem;
}

void pool_give(struct pool *pool, void *mem)
{
    lock_write(&pool->lock);
    bool keep = pool->nwarm < WARM;
    if (keep)
        pool->warm[pool->nwarm++] = mem;
    lock_write_done(&pool->lock);
    if (keep)
        return;

    madvise(mem, CHUNK, MADV_DONTNEED);
    lock_write(&pool->lock);
    pool->cold[pool->ncold++] = mem;
    lock_write_done(&pool->lock);
}
