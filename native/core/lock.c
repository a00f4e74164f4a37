/*
 * lock.c - the locks of files whose file system keeps none: who does.
 */
#include "core/lock.h"

#include "core/call.h"
#include "core/lock_private.h"
#include "core/mount.h"
#include "core/placed.h"

static void release_own(struct df_file *file)
{
    df_lock_range_close(file, df_lock_file_owner(file));
    df_lock_flock_close(file);
}

static const struct df_lock_keeper own = {
    .range = df_lock_range_apply,
    .flock = df_lock_flock_apply,
    .close = df_lock_range_close,
    .release = release_own,
};

static const struct df_lock_keeper *keeper_of(const struct df_file *file)
{
    return df_placed(file) ? &df_placed_keeper : &own;
}

/* Its mount has locks, of whatever file. */
static bool any_lock(const struct df_file *file)
{
    const struct df_mount *mount = atomic_load_explicit(&file->mount, memory_order_relaxed);

    return atomic_load_explicit(&mount->lock_count, memory_order_relaxed) > 0;
}

uint64_t df_lock_file_owner(const struct df_file *file)
{
    return (uint64_t)(uintptr_t)file;
}

int df_lock_range(struct df_call *call, struct df_file *file, struct df_lock *lock)
{
    int ret = df_call_know_ino(call, file);

    return ret < 0 ? ret : keeper_of(file)->range(call, file, lock);
}

int df_lock_flock(struct df_call *call, struct df_file *file, int operation)
{
    int ret = df_call_know_ino(call, file);

    return ret < 0 ? ret : keeper_of(file)->flock(call, file, operation);
}

void df_lock_close(struct df_call *call, struct df_file *file, uint64_t owner)
{
    if (any_lock(file) && df_call_know_ino(call, file) >= 0)
        keeper_of(file)->close(file, owner);
}

void df_lock_release(struct df_file *file)
{
    if (any_lock(file))
        keeper_of(file)->release(file);
}

/* ---- fork ---------------------------------------------------------------------------------- */

void df_lock_lock_all(void)
{
    df_lock_table_lock_all();
    df_lock_range_lock_sleepers();
    df_placed_lock();
}

void df_lock_unlock_all(void)
{
    df_placed_unlock();
    df_lock_range_unlock_sleepers();
    df_lock_table_unlock_all();
}

void df_lock_after_fork(uint64_t parent_owner)
{
    df_placed_after_fork();
    df_lock_range_after_fork();
    df_lock_table_after_fork(df_lock_range_forget, parent_owner);
}
