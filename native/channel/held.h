/*
 * held.h - which chunks of mapped files the processes of a run may touch: the file "held" of the
 * shadow directory, mapped by those that have such files (shadows/held.c).
 *
 * A chunk of a data file (shadows/shadow_chunks.c) may be given up when nobody holds it. An entry
 * comes and goes under the lock of its file's chunks, so who has that lock reads entries of this
 * file as they are; those of other files may change meanwhile, and mean nothing to him. A process
 * writes its own holder only. The server frees that of a process that is gone.
 */
#ifndef DF_CHANNEL_HELD_H
#define DF_CHANNEL_HELD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DF_HOLDERS    512
#define DF_HELD_MAX   16384 /* chunks of one process: the kernel needs two mappings for each */
#define DF_HELD_CHUNK ((uint64_t)512 << 10) /* bytes; the last one of a file may be shorter */

struct df_held {
    _Atomic uint64_t ino;
    _Atomic uint64_t key; /* df_held_key(); 0: none */
};

struct df_holder {
    _Alignas(4096) _Atomic uint32_t client; /* id; 0: free */
    _Atomic uint32_t used;                  /* more than the index of any entry it has had */
    struct df_held held[DF_HELD_MAX];
};

/* The file has as many as have been taken (DF_HELD_SIZE): it is to be a small one for a program
 * whose files may not be large (RLIMIT_FSIZE). */
struct df_holders {
    _Atomic uint32_t top; /* more than any index that was ever taken */
    struct df_holder list[DF_HOLDERS];
};

/* Bytes of a file of so many; the last one is of no use to anybody. */
#define DF_HELD_SIZE(count)                                                                        \
    (offsetof(struct df_holders, list) + (uint64_t)(count) * sizeof(struct df_holder))
_Static_assert(sizeof(struct df_holder) > offsetof(struct df_holder, held[DF_HELD_MAX]) &&
                   DF_HELD_SIZE(0) > sizeof(uint32_t),
               "padding ends both");

/* Of a mount's id and the number of a chunk; together with the inode number it names the chunk. */
static inline uint64_t df_held_key(int mount, uint64_t chunk)
{
    return UINT64_C(1) << 63 | ((uint64_t)(uint32_t)mount & 0xfffff) << 43 |
           (chunk & ((UINT64_C(1) << 43) - 1));
}

static inline uint64_t df_held_chunk(uint64_t key)
{
    return key & ((UINT64_C(1) << 43) - 1);
}

static inline bool df_held_has(const struct df_holder *holder, uint64_t ino, uint64_t key)
{
    uint32_t used = atomic_load(&holder->used);

    for (uint32_t i = 0; i < used && i < DF_HELD_MAX; i++)
        if (atomic_load_explicit(&holder->held[i].key, memory_order_acquire) == key &&
            atomic_load_explicit(&holder->held[i].ino, memory_order_relaxed) == ino)
            return true;
    return false;
}

/* The holder of a client, or NULL. */
static inline struct df_holder *df_held_of(struct df_holders *all, uint32_t client)
{
    uint32_t top = atomic_load(&all->top);

    for (uint32_t i = 0; client != 0 && i < top && i < DF_HOLDERS; i++)
        if (atomic_load(&all->list[i].client) == client)
            return &all->list[i];
    return NULL;
}

/* The client holds nothing any more: it is gone, or is another program. */
static inline void df_held_free(struct df_holder *holder)
{
    uint32_t used = atomic_load(&holder->used);

    for (uint32_t i = 0; i < used && i < DF_HELD_MAX; i++)
        atomic_store(&holder->held[i].key, 0);
    atomic_store(&holder->used, 0);
    atomic_store(&holder->client, 0);
}

#endif
