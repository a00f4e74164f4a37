/*
 * own_loop.c - a session whose program has a loop of its own: fuse_session_fd(), receive, process.
 *
 * Such a program waits for the descriptor and for whatever else concerns it, receives a request and
 * processes it. Requests come as calls of other threads here. What is received is a turn for one of
 * them, a message without a content; processing it is to wait until that operation is over
 * (host/turns.h). The first message stands for INIT: the mount begins when it is processed.
 */
#include <errno.h>
#include <linux/fuse.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host/turns.h"
#include "libfuse/abi.h"
#include "libfuse/translator.h"

/* What a program finds that looks into its buffer: the header of a request of no kind. */
static const struct fuse_in_header message = {.len = sizeof(message)};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* protects the making of `turns` */

static struct df_turns *turns_of(struct fuse_session *se, int fd)
{
    struct df_turns *turns;

    pthread_mutex_lock(&lock);
    if (!se->turns)
        se->turns = df_turns_new(fd);
    turns = se->turns;
    pthread_mutex_unlock(&lock);
    return turns;
}

int df3_session_share_fd(struct fuse_session *se, int fd)
{
    int own = se->turns ? -1 : dup(fd);

    if (!se->turns && own < 0)
        return -errno;
    if (!turns_of(se, own)) {
        close(own);
        return -ENOMEM;
    }
    return 0;
}

int fuse_session_fd(struct fuse_session *se)
{
    struct df_turns *turns = se->mounted ? turns_of(se, -1) : NULL;

    return turns ? df_turns_fd(turns) : -1;
}

/* ---- receiving ------------------------------------------------------------------------------- */

/* 0: the mount has ended, which the kernel says by ENODEV. */
static int receive(struct fuse_session *se, struct df_turns *turns, struct fuse_buf *buf)
{
    uint64_t count;

    if (read(df_turns_fd(turns), &count, sizeof(count)) < 0)
        return -errno;
    if (df_turns_ended(turns)) {
        atomic_store(&se->exited, true);
        return 0;
    }
    if (!buf->mem)
        buf->mem = malloc(sizeof(message));
    if (!buf->mem)
        return -ENOMEM;
    memcpy(buf->mem, &message, sizeof(message));
    buf->size = sizeof(message);
    buf->flags = 0;
    return (int)sizeof(message);
}

int fuse_session_receive_buf(struct fuse_session *se, struct fuse_buf *buf)
{
    struct df_turns *turns;

    buf->size = 0;
    if (fuse_session_exited(se))
        return 0;
    if (!se->mounted)
        return -EBADF; /* what reading libfuse's missing descriptor gives */
    turns = turns_of(se, -1);
    return turns ? receive(se, turns, buf) : -errno;
}

/* ---- processing ------------------------------------------------------------------------------ */

static void begin(struct fuse_session *se)
{
    int error;

    se->mount.serial = true;
    se->mount.turns = se->turns;
    error = df_abi_initialise(se);
    if (!error)
        error = df_plugin_serve_aside(se->plugin, &se->mount, se->fs);
    if (!error)
        return;
    atomic_store(&se->exited, true);
    df_turns_end(se->turns);
}

void fuse_session_process_buf(struct fuse_session *se, const struct fuse_buf *buf)
{
    if (buf->size == 0)
        return;
    if (buf->size != sizeof(message) || !se->turns) {
        fuse_log(FUSE_LOG_ERR,
                 "fuse: a request of %zu bytes came from somewhere else and cannot "
                 "be processed\n",
                 buf->size);
        return;
    }
    df_turns_take(se->turns);
    if (atomic_exchange(&se->begun, true))
        df_turns_give(se->turns);
    else
        begin(se);
}

void df_abi_own_loop_end(struct fuse_session *se)
{
    if (se->plugin && atomic_load(&se->begun))
        df_plugin_serve_out(se->plugin);
}
