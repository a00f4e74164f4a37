/*
 * execute_client.c - what clients say of themselves: that they fork, and which files they have.
 */
#include <errno.h>

#include "server/server_private.h"

int64_t df_execute_adopt(struct df_work *w)
{
    return df_files_adopt(&w->server->files, w->client, w->message.files[0]);
}

/* Threads that execve(2) has ended, in the middle of whatever they were at. */
static void leave_threads(struct df_work *w)
{
    df_execute_reap(w->server, w->client, w->slot);
    df_files_break(&w->server->files, w->client);
}

/* By execve(2), which flushes a file as close(2) does. */
static void close_at_exec(struct df_work *w, uint64_t handle)
{
    struct df_file *file = df_files_get(&w->server->files, handle);

    if (file) {
        df_execute_flush(w->thread, file, w->caller.lock_owner);
        df_file_put(w->thread, file);
    }
    df_execute_drop(w, handle);
}

/* Who has given up waiting for a close may have opened other files since. */
static bool is_awaited(const struct df_work *w)
{
    return df_slot_state(atomic_load(&w->slot->word)) == DF_SLOT_RUNNING;
}

/* One that a child has not: another thread of its parent opened it just before the fork. */
int64_t df_execute_keep_files(struct df_work *w)
{
    bool executed = w->message.args.keep.executed;
    size_t count =
        df_execute_at_most(w->message.args.keep.size, DF_PAYLOAD_SIZE) / sizeof(uint64_t);
    const uint64_t *kept = (const uint64_t *)w->area->payload;
    uint64_t others[64];
    size_t found;

    for (size_t i = 0; i < count; i++)
        df_files_adopt(&w->server->files, w->client, kept[i]);
    if (executed)
        leave_threads(w);
    while ((found = df_files_others(&w->server->files, w->client, kept, count, others, 64)) > 0 &&
           is_awaited(w))
        for (size_t i = 0; i < found; i++)
            executed ? close_at_exec(w, others[i]) : (void)df_execute_drop(w, others[i]);
    return 0;
}

int64_t df_execute_fork(struct df_work *w)
{
    struct df_files *files = &w->server->files;
    _Atomic uint64_t *announced = &w->slot->entered;
    uint32_t child = w->message.args.fork.keeps ? df_files_client_leave(files, w->client, announced)
                                                : df_files_client_fork(files, w->client, announced,
                                                                       w->message.args.fork.socket);

    return child ? (int64_t)child : -EAGAIN;
}

/* The end of one that was born is told by its socket; a close that hangs holds nobody up there. */
int64_t df_execute_unfork(struct df_work *w)
{
    uint32_t client = w->message.args.unfork.client;

    if (!df_files_client_is_born(&w->server->files, client))
        df_execute_gone(w->server, client);
    return 0;
}
