/*
 * unmount.c - unmounting: when a client asks for it, with the last file, at the server's end.
 */
#include <errno.h>
#include <sched.h>

#include "core/clock.h"
#include "server/server_private.h"

#define BUSY_NS INT64_C(1000000000) /* that a mount is tried again which nobody has open */

/* Calls that are in the mount are waited for. */
static int unmount_patiently(struct df_server *server, int id)
{
    int ret;

    atomic_store(&server->patience.unmounting, id);
    ret = server->options->unmount(id);
    atomic_store(&server->patience.unmounting, 0);
    return ret;
}

/* A mount that is to end, and calls that a patience ends, are waited for. Who asks for an unmount
 * otherwise is told of calls that do not end, as by umount(2). */
static bool may_wait(const struct df_server *server, const struct df_served *served, int64_t begun)
{
    return served->ending || df_patience_of(server) > 0 || df_clock() - begun < BUSY_NS;
}

/* Under server->lock. A worker may still hold a reference on a file that no client has. */
static int unmount_idle(struct df_server *server, struct df_served *served)
{
    int64_t begun = df_clock();
    int ret;

    df_patience_begin(server);
    while ((ret = unmount_patiently(server, served->id)) == -EBUSY &&
           !df_files_any(&server->files, served->id) && may_wait(server, served, begun))
        sched_yield();
    df_patience_end(server);
    return ret;
}

/* Under server->lock. */
static int unmount(struct df_server *server, struct df_served *served)
{
    struct df_segment *segment = server->own.segment;
    int ret;

    if (df_files_any(&server->files, served->id))
        return -EBUSY;
    atomic_store(&served->shared->live, 0);
    ret = unmount_idle(server, served);
    if (ret < 0 && ret != -EINVAL) { /* EINVAL: it has ended by itself */
        if (!served->ending)         /* else it has gone from the table for good */
            atomic_store(&served->shared->live, served->id);
        return ret;
    }
    df_watch_unmounted(&server->watcher, served->id);
    served->id = 0;
    atomic_fetch_add(&segment->mounts_changed, 1);
    atomic_fetch_sub(&server->live_count, 1);
    df_server_tell_news(server);
    return 0;
}

static int try_unmount(struct df_server *server, int id, bool lazy)
{
    struct df_served *served;
    int ret = 0;

    pthread_mutex_lock(&server->lock);
    served = df_server_mount(server, id);
    if (!served || id == 0 || served->ending)
        ret = -EINVAL;
    else if (!lazy)
        ret = unmount(server, served);
    if (ret == 0 && lazy) {
        served->ending = true;
        atomic_fetch_add(&server->ending_count, 1);
        atomic_store(&served->shared->live, 0);
        df_server_tell_news(server);
    }
    pthread_mutex_unlock(&server->lock);
    return ret;
}

int df_server_unmount(struct df_server *server, int id, bool lazy)
{
    int ret = try_unmount(server, id, lazy);

    if (ret != -EBUSY || !df_files_any(&server->files, id))
        return ret;
    df_server_see_the_closed(server);
    return try_unmount(server, id, lazy);
}

void df_server_closed(struct df_server *server)
{
    if (atomic_load(&server->ending_count) > 0)
        df_server_tell_news(server);
}

void df_server_end_unused(struct df_server *server)
{
    pthread_mutex_lock(&server->lock);
    for (unsigned i = 0; i < server->mount_count; i++)
        if (server->mounts[i].ending && server->mounts[i].id != 0 &&
            unmount(server, &server->mounts[i]) == 0)
            atomic_fetch_sub(&server->ending_count, 1);
    pthread_mutex_unlock(&server->lock);
}

/* However long calls take that are in it still. */
static void unmount_at_end(struct df_server *server, int id)
{
    while (unmount_patiently(server, id) == -EBUSY && !df_mount_has_files(id))
        ;
}

void df_server_unmount_at_end(struct df_server *server)
{
    for (unsigned i = server->mount_count; i-- > 0;)
        if (server->mounts[i].id != 0)
            unmount_at_end(server, server->mounts[i].id);
}
