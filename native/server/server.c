/*
 * server.c - the life of a mount server: what it serves, its beginning and its end.
 */
#include "server/server.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/pages.h"
#include "ledger/unanswered.h"
#include "process/crash.h"
#include "server/control.h"
#include "server/restore.h"
#include "server/server_private.h"

/* ---- mounts ---------------------------------------------------------------------------------- */

static void copy_text(char *to, size_t size, const char *from)
{
    snprintf(to, size, "%s", from ? from : "");
}

/* After one that has died. */
static bool is_again(const struct df_server *server)
{
    return server->options->kept && server->options->kept->memory >= 0;
}

/* For df_mount_each(): under the core's table lock. */
static bool serve_mount(const struct df_mount *mount, void *arg)
{
    struct df_server *server = arg;
    struct df_served *served = &server->mounts[server->mount_count];
    struct df_shared_mount *shared = &df_segment_mounts(server->own.segment)[server->mount_count];

    if (server->mount_count == DF_MOUNT_COUNT)
        return false;
    *served = (struct df_served){
        .id = mount->id, .counted = mount->id, .mount = (struct df_mount *)mount, .shared = shared};
    server->mount_count++;
    df_cacher_mount(&server->cacher, server->mount_count - 1);
    if (is_again(server)) /* what the segment says of it holds */
        return true;
    shared->flags = (mount->flags & DF_ATTACH_READONLY ? DF_SHARED_READONLY : 0) |
                    (mount->flags & DF_ATTACH_PERMITS ? DF_SHARED_PERMITS : 0) |
                    (mount->flags & DF_ATTACH_ACLS ? DF_SHARED_ACLS : 0) |
                    (mount->covers != 0 ? DF_SHARED_COVERS : 0);
    atomic_store(&shared->polls, atomic_load(&served->mount->fs)->polls);
    if (atomic_load(&shared->polls))
        atomic_store(&server->own.segment->polls, 1);
    shared->dev = mount->dev;
    shared->point_len = mount->point_len;
    copy_text(shared->point, sizeof(shared->point), mount->point);
    copy_text(shared->fsname, sizeof(shared->fsname), mount->fsname);
    copy_text(shared->subtype, sizeof(shared->subtype), mount->subtype);
    atomic_store(&shared->live, mount->id);
    atomic_store(&server->own.segment->mounts_used, server->mount_count);
    return true;
}

/* ---- life ------------------------------------------------------------------------------------ */

/* Clients may still be there (SIGTERM): they find the server gone, not its mounts and their files.
 * What a mount has hidden is not shown to programs that go on. */
static void end_clients(struct df_server *server)
{
    for (unsigned i = 0; i < DF_CLIENT_MAX; i++) {
        uint32_t id = server->files.clients[i].id; /* nobody else is left who changes it */

        if (id != 0)
            df_execute_gone(server, id);
    }
}

static void end(struct df_server *server)
{
    df_patience_begin(server);
    df_pool_stop(&server->pool);
    df_server_await_burials(server);
    server->files.over = true;
    end_clients(server);
    df_server_unmount_at_end(server);
    df_patience_free(server);
}

/* The one server of the process, for notifications of its plugins. */
static _Atomic(struct df_server *) listening;

void df_serve_died(void)
{
    struct df_server *server = atomic_load(&listening);

    if (server)
        df_bells_ring(&server->bells);
}

static void forget_cached(void)
{
    struct df_server *server = atomic_load(&listening);

    if (!server)
        return;
    df_cacher_forget(&server->cacher);
    df_framer_forget(&server->framer);
    for (unsigned i = 0; i < server->mount_count; i++)
        if (server->mounts[i].writeback.made)
            df_writeback_hurry(server->mounts[i].writeback.made);
}

/* What was unmounted before the death of the last server is so here, too. */
static void unmount_again(struct df_server *server)
{
    for (unsigned i = 0; i < server->mount_count; i++) {
        struct df_served *served = &server->mounts[i];

        if (atomic_load(&served->shared->live) != 0)
            continue;
        server->options->unmount(served->id);
        served->id = 0;
        atomic_fetch_sub(&server->live_count, 1);
    }
}

#define DIRTY_SHARE 5 /* of the memory for what clients find: the kernel's dirty_ratio is 20 % */

/* Before anybody listens, or writes. */
static int keep_writes(struct df_server *server)
{
    server->dirty.limit = server->options->cache_size / DIRTY_SHARE / DF_DIRTY_PAGE;
    for (unsigned i = 0; i < server->mount_count; i++) {
        struct df_served *served = &server->mounts[i];
        int error;

        if (!(served->mount->flags & DF_ATTACH_WRITEBACK))
            continue;
        served->writeback = (struct df_writeback_server){.mount = served->mount,
                                                         .id = served->id,
                                                         .cacher = &server->cacher,
                                                         .index = i,
                                                         .room = &server->dirty};
        error = df_mount_wrap(served->id, df_writeback_wrap, &served->writeback);
        if (error < 0)
            return error;
    }
    return 0;
}

static int begin_files(struct df_server *server)
{
    const struct df_kept *kept = server->options->kept;
    size_t size = kept ? sizeof(struct df_ledger) : offsetof(struct df_ledger, paths);
    struct df_ledger *ledger =
        mmap(NULL, size, PROT_READ | PROT_WRITE,
             MAP_SHARED | MAP_NORESERVE | (kept ? 0 : MAP_ANONYMOUS), kept ? kept->ledger : -1, 0);

    if (ledger == MAP_FAILED)
        return -errno;
    return df_files_init(&server->files, server->own.segment, ledger, kept != NULL);
}

#define ANSWER_SHARE 256 /* an answer for each so many bytes of files: 10^5 names by default */

/* A power of two. */
static uint64_t count_answers(uint64_t cache_size)
{
    uint64_t count = DF_CACHE_ENTRIES_LEAST;

    while (count < DF_CACHE_ENTRIES_MOST && 2 * count <= cache_size / ANSWER_SHARE)
        count *= 2;
    return count;
}

static int begin_segment(struct df_server *server)
{
    const size_t size = server->options->cache_size;
    int error;

    if (is_again(server))
        return df_segment_take(&server->own, server->options->kept->memory);
    error = df_segment_create(&server->own, count_answers(size), size);
    if (error < 0)
        return error;
    atomic_store(&server->own.segment->patience, server->options->patience);
    df_kept_memory(server->options->kept, server->own.memory);
    return 0;
}

static int begin(struct df_server *server)
{
    int error = begin_segment(server);

    if (error < 0)
        return error;
    server->news = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (server->news < 0)
        return -errno;
    if ((error = begin_files(server)) < 0)
        return error;
    df_watch_init(&server->watcher, server->options->shadow);
    df_bells_init(&server->bells);
    df_epolls_init(&server->epolls, server->own.segment);
    df_cacher_init(&server->cacher, server->own.segment);
    df_crash_watch(server->own.segment, server->options->report);
    df_framer_init(&server->framer, server->own.segment, &server->cacher);
    df_mount_each(serve_mount, server);
    if ((error = keep_writes(server)) < 0)
        return error;
    atomic_store(&listening, server);
    atomic_store(&df_call_listener, forget_cached);
    df_lend_by(server->framer.lent.pages ? &server->framer.lent.lender : NULL);
    atomic_store(&server->live_count, server->mount_count);
    if (is_again(server)) {
        unmount_again(server);
        df_unanswered_settle(&server->files);
        df_files_take(&server->files);
        df_restore_files(server);
        df_unanswered_submit(&server->files);
        if ((error = df_segment_resume(&server->own)) < 0)
            return error;
    }
    return df_pool_start(&server->pool, server->own.segment, df_execute, df_execute_unheard,
                         server);
}

/* What begin() has made stays when it fails: the process ends then. */
int df_serve(const struct df_serve_options *options)
{
    struct df_server *server = df_pages_new(sizeof(*server));
    int ret;

    if (!server)
        return -ENOMEM;
    server->options = options;
    atomic_init(&server->sockets, -1);
    pthread_mutex_init(&server->lock, NULL);
    df_patience_init(server);
    ret = begin(server);
    if (ret < 0)
        return ret;
    ret = df_control_run(server);
    end(server);
    atomic_store(&df_call_listener, NULL); /* all plugins have ended */
    atomic_store(&listening, NULL);
    df_lend_by(NULL);
    df_crash_watch(NULL, -1);
    df_watch_free(&server->watcher);
    df_segment_end(&server->own);
    df_segment_free(&server->own);
    df_files_free(&server->files);
    df_framer_free(&server->framer);
    df_cacher_free(&server->cacher);
    for (unsigned i = 0; i < server->mount_count; i++)
        df_writeback_free(server->mounts[i].writeback.made);
    close(server->news);
    pthread_mutex_destroy(&server->lock);
    df_pages_free(server, sizeof(*server));
    return ret;
}
