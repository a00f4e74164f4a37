/*
 * execute_watch.c - tells those who watch (watch/watch.h) what an op is about and what has come of
 * it.
 */
#include "server/server_private.h"

static struct df_watch_op op_of(struct df_work *w)
{
    struct df_server *server = w->server;
    bool mounted = w->index < DF_MOUNT_COUNT && w->call.mount;

    return (struct df_watch_op){.watcher = &server->watcher,
                                .files = &server->files,
                                .events = mounted ? &server->mounts[w->index].watched : NULL,
                                .thread = w->thread,
                                .fs = w->call.mount ? w->fs : NULL,
                                .call = &w->call,
                                .message = &w->message,
                                .wheres = w->wheres,
                                .file = w->files[0],
                                .opened = w->opened};
}

void df_execute_watch_before(struct df_work *w, struct df_watch_look *look)
{
    struct df_watch_op op = op_of(w);

    df_watch_before(&op, look);
    w->reads_are_told = op.reads_are_told;
}

void df_execute_watch_after(struct df_work *w, struct df_watch_look *look, int64_t result)
{
    struct df_watch_op op = op_of(w);

    if (look)
        df_watch_after(&op, look, result);
    else
        df_watch_late(&op, result);
    if (op.closes_are_told)
        df_execute_out(w)->file.traits &= (uint8_t)~DF_FILE_NOFLUSH;
}

int64_t df_execute_watch(struct df_work *w)
{
    struct df_watch_op op = op_of(w);

    return df_watch_begin(&op);
}
