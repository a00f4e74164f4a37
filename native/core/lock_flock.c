/*
 * lock_flock.c - flock(2) locks that the core itself keeps.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>

#include "core/lock_private.h"

/* The owner itself holds none now. */
static bool flock_conflicts(const struct df_locked *inode, int type)
{
    for (const struct df_held *h = inode->flocks; h; h = h->next)
        if (h->type == F_WRLCK || type == F_WRLCK)
            return true;
    return false;
}

/* Returns the owner's lock, out of the list; NULL: it has none. */
static struct df_held *take_flock(struct df_locked *inode, uint64_t owner)
{
    for (struct df_held **at = &inode->flocks; *at; at = &(*at)->next) {
        struct df_held *h = *at;

        if (h->owner == owner) {
            *at = h->next;
            return h;
        }
    }
    return NULL;
}

/* A change of type gives the old lock up first: flock(2), "not guaranteed to be atomic". */
static int set_flock(struct df_lock_shard *shard, struct df_thread *thread, struct df_file *file,
                     int type, bool wait, struct df_held **spare)
{
    uint64_t owner = df_lock_file_owner(file);
    struct df_locked *inode = df_lock_table_make(shard, file);
    struct df_held *mine = inode ? take_flock(inode, owner) : NULL;
    int ret = 0;

    if (mine) {
        df_lock_table_free(inode, mine);
        df_lock_table_wake(shard);
    }
    while (inode && flock_conflicts(inode, type)) {
        ret = wait ? df_lock_table_sleep(shard, thread) : -EWOULDBLOCK;
        if (ret < 0)
            return ret;
        inode = df_lock_table_make(shard, file);
    }
    if (!inode)
        return -ENOLCK;
    **spare = (struct df_held){.next = inode->flocks, .owner = owner, .type = (int16_t)type};
    inode->flocks = *spare;
    *spare = NULL;
    df_lock_table_count(inode);
    return 0;
}

static void unset_flock(struct df_lock_shard *shard, struct df_file *file)
{
    struct df_locked *inode = df_lock_table_find(shard, file);
    struct df_held *mine = inode ? take_flock(inode, df_lock_file_owner(file)) : NULL;

    if (!mine)
        return;
    df_lock_table_free(inode, mine);
    df_lock_table_drop(shard, inode);
    df_lock_table_wake(shard);
}

int df_lock_flock_apply(struct df_call *call, struct df_file *file, int operation)
{
    int type = (operation & ~LOCK_NB) == LOCK_EX ? F_WRLCK : F_RDLCK;
    struct df_lock_shard *shard = df_lock_table_shard(file);
    struct df_held *spare = NULL;
    int ret = 0;

    if ((operation & ~LOCK_NB) != LOCK_UN && !(spare = malloc(sizeof(*spare))))
        return -ENOLCK;
    pthread_mutex_lock(&shard->lock);
    if (spare)
        ret = set_flock(shard, call->thread, file, type, !(operation & LOCK_NB), &spare);
    else
        unset_flock(shard, file);
    pthread_mutex_unlock(&shard->lock);
    free(spare);
    return ret;
}

void df_lock_flock_close(struct df_file *file)
{
    struct df_lock_shard *shard = df_lock_table_shard(file);

    pthread_mutex_lock(&shard->lock);
    unset_flock(shard, file);
    pthread_mutex_unlock(&shard->lock);
}
