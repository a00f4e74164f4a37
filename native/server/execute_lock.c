/*
 * execute_lock.c - the ops of locks, which may wait for others, and may find those of the dead.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>

#include "core/lock.h"
#include "server/server_private.h"

#define CALL DF_EXECUTE_CALL

/* Slots that can be used: where there is no memory for more, those that have theirs. */
static unsigned count_slots(struct df_segment *segment)
{
    unsigned made = 0;

    if (!atomic_load(&segment->full))
        return DF_SLOT_COUNT;
    for (unsigned i = 0; i < DF_SLOT_COUNT; i++)
        made += atomic_load(&df_segment_slots(segment)[i].made) > 0;
    return made;
}

/* Waiting is refused where it would leave too few slots for those who hold the locks. */
static bool may_wait(struct df_work *w, bool wait)
{
    return !wait || df_pool_sleeping(&w->server->pool) < count_slots(w->server->own.segment) / 2;
}

static struct df_shared_mount *shared_of(struct df_work *w)
{
    struct df_served *served = df_server_mount(w->server, w->call.mount->id);

    return served ? served->shared : NULL;
}

/* The file system keeps no locks of such files. Where there are placeholders, the kernel of the
 * clients does (core/placed.h): DF_NOT_OURS, and they are told once for all. Else the core does: 0.
 */
static int64_t leave_lock(struct df_work *w, bool flock)
{
    struct df_shared_mount *shared = shared_of(w);

    if (!w->server->options->shadow)
        return 0;
    if (shared)
        atomic_fetch_or(&shared->left, df_left_bit(w->files[0]->kind, flock));
    return DF_NOT_OURS;
}

static int64_t lock_range(struct df_work *w, struct df_lock *lock)
{
    struct df_shared_mount *shared = shared_of(w);
    int64_t ret = CALL(lock, w->files[0], lock);

    if (ret != DF_NOT_OURS || (ret = leave_lock(w, false)) != 0)
        return ret;
    if (shared)
        atomic_store(&shared->locked, 1);
    return df_lock_range(&w->call, w->files[0], lock);
}

/* What a process had that has ended is in nobody's way. */
static int64_t lock_range_of_the_living(struct df_work *w, struct df_lock *lock)
{
    const struct df_lock asked = *lock;
    int64_t ret = lock_range(w, lock);
    bool found = ret == 0 && lock->test && lock->type != F_UNLCK;

    if ((ret != -EAGAIN && !found) || !df_server_see_the_dead(w->server))
        return ret;
    *lock = asked;
    return lock_range(w, lock);
}

/* Its files were closed, and it unlocked, before this lock was got: nobody else would do it. By the
 * kernel they are closed when the call has ended. */
static void unlock_of_the_dead(struct df_work *w, const struct df_lock *lock)
{
    if (lock->test || lock->type == F_UNLCK || w->client == 0 ||
        df_files_client_is_there(&w->server->files, w->client))
        return;
    df_execute_flush(w->thread, w->files[0], w->caller.lock_owner);
}

static int64_t lock_file(struct df_work *w, int operation)
{
    int64_t ret = CALL(flock, w->files[0], operation, df_lock_file_owner(w->files[0]));

    if (ret != DF_NOT_OURS || (ret = leave_lock(w, true)) != 0)
        return ret;
    return df_lock_flock(&w->call, w->files[0], operation);
}

/* An end of the server is none of the client's signals. */
static int64_t end_sleep(struct df_work *w, int64_t ret)
{
    return !df_pool_sleep_end(&w->server->pool, w->slot) && ret == -EINTR ? -ENOTCONN : ret;
}

int64_t df_execute_lock(struct df_work *w)
{
    struct df_lock lock = w->message.args.lock.lock;
    bool sleeps = lock.wait && !lock.test;
    int64_t ret;

    if (!may_wait(w, sleeps))
        return -ENOLCK;
    if (sleeps && !df_pool_sleep_begin(&w->server->pool, w->slot))
        return -ENOTCONN;
    lock.owner = lock.pid == -1 ? df_lock_file_owner(w->files[0]) : w->caller.lock_owner;
    ret = lock_range_of_the_living(w, &lock);
    if (sleeps)
        ret = end_sleep(w, ret);
    if (ret == 0)
        unlock_of_the_dead(w, &lock);
    df_execute_out(w)->lock = lock;
    return ret;
}

int64_t df_execute_flock(struct df_work *w)
{
    int operation = w->message.args.flock.operation;
    bool sleeps = !(operation & (LOCK_NB | LOCK_UN));
    int64_t ret;

    if (!may_wait(w, sleeps))
        return -ENOLCK;
    if (sleeps && !df_pool_sleep_begin(&w->server->pool, w->slot))
        return -ENOTCONN;
    ret = lock_file(w, operation);
    if (ret == -EWOULDBLOCK && df_server_see_the_dead(w->server))
        ret = lock_file(w, operation);
    return sleeps ? end_sleep(w, ret) : ret;
}
