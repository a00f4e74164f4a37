/*
 * name_turn.h - changes of the names in one directory come one after the other, and nobody looks a
 * name up or lists the directory meanwhile.
 *
 * The kernel holds a directory's i_rwsem exclusively while a file system makes, removes or moves a
 * name in it, and shared while it looks one up that it knows nothing of, or lists it
 * (Documentation/filesystems/locking.rst); and unless a FUSE program asked for
 * FUSE_CAP_PARALLEL_DIROPS, lookups and listings of one directory come one after the other, too
 * (fuse_lock_inode() in fs/fuse/inode.c). So no FUSE program sees two creates of one name, a rename
 * beside an unlink or a listing beside a create in the same directory, and it may rely on that. The
 * node lane has a lock in each directory's node. The path lane has no nodes, so directories share
 * locks, by the hash of their path.
 *
 * Lock order: innermost of the path lane's, but for the shards of open_paths.h and the plugin. Who
 * has its turn waits for no open file and no rename. Each operation takes all it needs at once, in
 * the order of their numbers.
 */
#ifndef DF_PATHS_NAME_TURN_H
#define DF_PATHS_NAME_TURN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/path_hash.h"
#include "paths/lock.h"

#define DF_NAME_TURNS    256 /* many: two directories that share one wait for each other's plugin */
#define DF_NAME_TURN_MAX 3   /* of one operation: a rename's two, and one that it replaces */

/* All zeros: nobody has a turn. */
struct df_name_turns {
    struct {
        _Alignas(16) struct df_path_lock lock;
        _Atomic uint32_t changes; /* turns to change names that have ended; grows under lock */
    } of[DF_NAME_TURNS];
    _Atomic uint32_t removed; /* directories, by now, each in its own turn */
};

/* Whose turn it is to do what. */
enum df_name_turn_kind {
    DF_NAME_TURN_CHANGE, /* alone, and counted in `changes` */
    DF_NAME_TURN_LOOK,   /* alone */
    DF_NAME_TURN_SHARE,  /* beside others that share; of one directory only */
};

/* Taken, until df_name_turn_end(); no directories: nothing was taken. */
struct df_name_turn {
    uint8_t kind; /* enum df_name_turn_kind */
    uint8_t count;
    uint8_t numbers[DF_NAME_TURN_MAX]; /* ascending */
    bool wrote;                        /* the caller's own */
};

/* Waits for the turn of `count` directories, given by the hash of their paths. */
void df_name_turn_begin(struct df_name_turns *turns, struct df_name_turn *turn,
                        enum df_name_turn_kind kind, const struct df_path_hash *directories,
                        int count);
void df_name_turn_end(struct df_name_turns *turns, struct df_name_turn *turn);

/* How often the names of a directory had their turn to change: what was seen of them before is
 * still so while this has not changed. */
static inline uint32_t df_name_turn_changes(const struct df_name_turns *turns,
                                            struct df_path_hash directory)
{
    return atomic_load(&turns->of[directory.low % DF_NAME_TURNS].changes);
}

/* How many directories have been removed. One that was there before is there in its turn if this
 * has not changed. */
static inline uint32_t df_name_turn_removed(const struct df_name_turns *turns)
{
    return atomic_load_explicit(&turns->removed, memory_order_acquire);
}

/* A directory that has its turn is removed. */
static inline void df_name_turn_remove(struct df_name_turns *turns)
{
    atomic_fetch_add(&turns->removed, 1);
}

#endif
