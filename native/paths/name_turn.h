/*
 * name_turn.h - changes of the names in one directory come one after the other.
 *
 * The kernel holds a directory's i_rwsem while a file system makes, removes or moves a name in it,
 * and looks the name up under it; so no FUSE program sees two creates of one name, nor a rename
 * beside an unlink in the same directory, and it may rely on that (Documentation/filesystems/
 * locking.rst). The node lane has a lock in each directory's node. The path lane has no nodes, so
 * directories share locks, by the hash of their path. What does not change names takes none.
 *
 * Lock order: innermost of the path lane's, but for the shards of open_paths.h and the plugin. Who
 * has its turn waits for no open file and no rename. Each operation takes all it needs at once, in
 * the order of their numbers.
 */
#ifndef DF_PATHS_NAME_TURN_H
#define DF_PATHS_NAME_TURN_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "host/path_hash.h"

#define DF_NAME_TURNS 64
#define DF_NAME_TURN_MAX                                                                           \
    3 /* directories of one operation: a rename's two, and one that it replaces */

struct df_name_turns {
    struct {
        _Alignas(64) pthread_mutex_t lock;
        _Atomic uint32_t changes; /* turns that have ended; grows under lock */
    } of[DF_NAME_TURNS];
};

/* Taken, until df_name_turn_end(); no directories: nothing was taken. */
struct df_name_turn {
    uint8_t count;
    uint8_t numbers[DF_NAME_TURN_MAX]; /* ascending */
    bool wrote;                        /* the caller's own */
};

void df_name_turns_init(struct df_name_turns *turns);
void df_name_turns_destroy(struct df_name_turns *turns);

/* Waits for the turn of `count` directories, given by the hash of their paths. */
void df_name_turn_begin(struct df_name_turns *turns, struct df_name_turn *turn,
                        const struct df_path_hash *directories, int count);
void df_name_turn_end(struct df_name_turns *turns, struct df_name_turn *turn);

/* How often a directory has had its turn: what was seen of its names before is still so while this
 * has not changed. */
static inline uint32_t df_name_turn_changes(const struct df_name_turns *turns,
                                            struct df_path_hash directory)
{
    return atomic_load(&turns->of[directory.low % DF_NAME_TURNS].changes);
}

#endif
