/*
 * writeback.h - ops around the ops of a file system that asked for FUSE_CAP_WRITEBACK_CACHE: a
 * write is kept here and answered, and handed over later (docs/decisions/036).
 *
 * A file of which something is kept is *owned*: its size and its modification time are ours, and
 * each answer of getattr takes them from here. Whatever looks at the file's bytes or size in
 * another way than read and getattr of the open file has them handed over before it begins; what
 * changes them so is announced for the whole mount, and while it is under way writes go through.
 * fsync, each close and the last release hand over as well, so only open files are ever owned.
 *
 * Locks, outermost first: that of an inode (held while its bytes are handed over), the mount's
 * `lock`, `waking`. The host's own are taken below them.
 */
#ifndef DF_WRITEBACK_WRITEBACK_H
#define DF_WRITEBACK_WRITEBACK_H

#include <pthread.h>
#include <stdatomic.h>

#include "core/mount.h"
#include "core/ops.h"
#include "segment/cache.h"
#include "writeback/dirty.h"

/* What all mounts of a server may keep together. */
struct df_writeback_room {
    size_t limit; /* pages */
    _Atomic size_t used;
};

struct df_writeback;

/* Who makes one; all must outlive it. */
struct df_writeback_server {
    const struct df_mount *mount; /* with `id`: the mount */
    int id;
    struct df_cacher *cacher; /* told what handing over changes of what stat shows */
    unsigned index;           /* of the mount, for it */
    struct df_writeback_room *room;
    struct df_writeback *made; /* out; for df_writeback_free() when the mount has ended */
};

/* For df_mount_wrap(): arg is a df_writeback_server. NULL: no memory, or no thread. */
struct df_fs *df_writeback_wrap(struct df_fs *below, void *arg);

/* After the mount's end; NULL: nothing. */
void df_writeback_free(struct df_writeback *writeback);

/* Hands over all that is kept of the mount, as syncfs(2). Outside the gate. */
void df_writeback_sync(struct df_writeback *writeback);

/* Has a thread hand over all that is kept, soon: the plugin has notified. From anywhere, also out
 * of an op of the plugin's. */
void df_writeback_hurry(struct df_writeback *writeback);

#endif
