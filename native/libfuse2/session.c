/*
 * session.c - struct fuse_session: its channel, its end, its loops, its notifications; and sessions
 * of a program's own, which process messages themselves.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libfuse2/abi2.h"

/* ---- of the program's own ---------------------------------------------------------------------
 */

struct fuse2_session *fuse2_session_new(const struct fuse2_session_ops *ops, void *data)
{
    struct fuse2_session *se = calloc(1, sizeof(*se));
    if (!se) {
        fuse_log(FUSE_LOG_ERR, "fuse: failed to allocate session\n");
        return NULL;
    }
    se->own = *ops;
    se->custom = &se->own;
    se->userdata = data;
    return se;
}
EXPORT(fuse2_session_new, "fuse_session_new@@FUSE_2.4");

/* True if the session and its channel are ours, so that libdf3 can serve them; else says why not.
 */
static bool serves(const struct fuse2_session *se)
{
    if (!se->custom && se->chan && se->chan->mountpoint)
        return true;
    fuse_log(FUSE_LOG_ERR,
             "fuse: %s: messages of the kernel do not come here, so they cannot be %s the program "
             "itself\n",
             se->chan ? "a channel and a session that do not belong together" : "no channel",
             se->custom ? "processed by" : "brought by");
    return false;
}

/* ---- channel, state -------------------------------------------------------------------------- */

void fuse2_session_add_chan(struct fuse2_session *se, struct fuse2_chan *chan)
{
    se->chan = chan;
    chan->session = se;
}
EXPORT(fuse2_session_add_chan, "fuse_session_add_chan@@FUSE_2.4");

void fuse2_session_remove_chan(struct fuse2_chan *chan)
{
    if (chan->session)
        chan->session->chan = NULL;
    chan->session = NULL;
}
EXPORT(fuse2_session_remove_chan, "fuse_session_remove_chan@@FUSE_2.6");

struct fuse2_chan *fuse2_session_next_chan(struct fuse2_session *se, struct fuse2_chan *chan)
{
    return chan ? NULL : se->chan;
}
EXPORT(fuse2_session_next_chan, "fuse_session_next_chan@@FUSE_2.4");

void *fuse2_session_data(struct fuse2_session *se)
{
    return se->high ? (void *)se->high : se->userdata;
}
EXPORT(fuse2_session_data, "fuse_session_data@@FUSE_2.8");

void fuse2_session_exit(struct fuse2_session *se)
{
    if (se->custom && se->custom->exit)
        se->custom->exit(se->userdata, 1);
    se->exited = true;
    if (se->real)
        fuse_session_exit(se->real);
}
EXPORT(fuse2_session_exit, "fuse_session_exit@@FUSE_2.4");

int fuse2_session_exited(struct fuse2_session *se)
{
    if (se->custom && se->custom->exited)
        return se->custom->exited(se->userdata);
    return se->real ? fuse_session_exited(se->real) : se->exited;
}
EXPORT(fuse2_session_exited, "fuse_session_exited@@FUSE_2.4");

void fuse2_session_reset(struct fuse2_session *se)
{
    if (se->custom && se->custom->exit)
        se->custom->exit(se->userdata, 0);
    se->exited = false;
    if (se->real)
        fuse_session_reset(se->real);
}
EXPORT(fuse2_session_reset, "fuse_session_reset@@FUSE_2.4");

/* ---- loops ------------------------------------------------------------------------------------
 */

/* The program's own channel brings messages to its own session. */
static int pump(struct fuse2_session *se)
{
    size_t size = se->chan->size;
    char *buf = malloc(size > 0 ? size : 1);
    int count = buf ? 1 : -ENOMEM;
    while (count > 0 && !fuse2_session_exited(se)) {
        struct fuse2_chan *from = se->chan;
        count = fuse2_chan_recv(&from, buf, size);
        if (count > 0)
            se->custom->process(se->userdata, buf, (size_t)count, from);
        else if (count == -EINTR)
            count = 1;
    }
    free(buf);
    fuse2_session_reset(se);
    return count < 0 ? -1 : 0;
}

static int loop(struct fuse2_session *se, int (*serve)(struct fuse_session *real))
{
    if (fuse2_session_exited(se))
        return 0;
    if (se->custom && se->chan && !se->chan->mountpoint)
        return pump(se);
    if (!serves(se) || (!se->real && df2_lowlevel_start(se) != 0))
        return -1;
    return serve(se->real) == 0 ? 0 : -1;
}

static int serve_mt(struct fuse_session *real)
{
    return df3_session_loop_mt(real, NULL);
}

int fuse2_session_loop(struct fuse2_session *se)
{
    return loop(se, df3_session_loop);
}
EXPORT(fuse2_session_loop, "fuse_session_loop@@FUSE_2.4");

int fuse2_session_loop_mt(struct fuse2_session *se)
{
    return loop(se, serve_mt);
}
EXPORT(fuse2_session_loop_mt, "fuse_session_loop_mt@@FUSE_2.4");

/* A program with a loop of its own. What the session receives makes the program's descriptor of the
 * channel readable. */
int fuse2_session_receive_buf(struct fuse2_session *se, struct fuse_buf *buf,
                              struct fuse2_chan **chan)
{
    if ((*chan)->ops.receive || (*chan)->receive_24) {
        int count = fuse2_chan_recv(chan, buf->mem, buf->size);
        if (count > 0)
            buf->size = (size_t)count;
        return count;
    }
    if (!serves(se) || (!se->real && df2_lowlevel_start(se) != 0) ||
        df3_session_share_fd(se->real, se->chan->fd) != 0)
        return -EIO;
    return fuse_session_receive_buf(se->real, buf);
}
EXPORT(fuse2_session_receive_buf, "fuse_session_receive_buf@@FUSE_2.9");

void fuse2_session_process(struct fuse2_session *se, const char *data, size_t size,
                           struct fuse2_chan *chan)
{
    const struct fuse_buf buf = {.mem = (void *)data, .size = size};
    if (se->custom)
        se->custom->process(se->userdata, data, size, chan);
    else if (se->real)
        fuse_session_process_buf(se->real, &buf);
}
EXPORT(fuse2_session_process, "fuse_session_process@@FUSE_2.4");

void fuse2_session_process_buf(struct fuse2_session *se, const struct fuse_buf *buf,
                               struct fuse2_chan *chan)
{
    fuse2_session_process(se, buf->mem, buf->size, chan);
}
EXPORT(fuse2_session_process_buf, "fuse_session_process_buf@@FUSE_2.9");

void fuse2_session_destroy(struct fuse2_session *se)
{
    if (se->custom && se->custom->destroy)
        se->custom->destroy(se->userdata);
    if (se->chan)
        df2_chan_free(se->chan);
    if (se->real)
        fuse_session_destroy(se->real); /* calls the file system's destroy */
    fuse_opt_free_args(&se->options);
    free(se);
}
EXPORT(fuse2_session_destroy, "fuse_session_destroy@@FUSE_2.4");

/* Signal handlers are the host's. */
int fuse2_set_signal_handlers(struct fuse2_session *se)
{
    (void)se;
    return 0;
}
EXPORT(fuse2_set_signal_handlers, "fuse_set_signal_handlers@@FUSE_2.5");

void fuse2_remove_signal_handlers(struct fuse2_session *se)
{
    (void)se;
}
EXPORT(fuse2_remove_signal_handlers, "fuse_remove_signal_handlers@@FUSE_2.5");

/* ---- notifications go through a channel ------------------------------------------------- */

static struct fuse_session *session_of(struct fuse2_chan *chan)
{
    return chan && chan->session ? chan->session->real : NULL;
}

int fuse2_notify_inval_inode(struct fuse2_chan *chan, fuse_ino_t ino, off_t off, off_t len)
{
    struct fuse_session *se = session_of(chan);
    return se ? fuse_lowlevel_notify_inval_inode(se, ino, off, len) : -EINVAL;
}
EXPORT(fuse2_notify_inval_inode, "fuse_lowlevel_notify_inval_inode@@FUSE_2.8");

int fuse2_notify_inval_entry(struct fuse2_chan *chan, fuse_ino_t parent, const char *name,
                             size_t len)
{
    struct fuse_session *se = session_of(chan);
    return se ? fuse_lowlevel_notify_inval_entry(se, parent, name, len) : -EINVAL;
}
EXPORT(fuse2_notify_inval_entry, "fuse_lowlevel_notify_inval_entry@@FUSE_2.8");

int fuse2_notify_delete(struct fuse2_chan *chan, fuse_ino_t parent, fuse_ino_t child,
                        const char *name, size_t len)
{
    struct fuse_session *se = session_of(chan);
    return se ? fuse_lowlevel_notify_delete(se, parent, child, name, len) : -EINVAL;
}
EXPORT(fuse2_notify_delete, "fuse_lowlevel_notify_delete@@FUSE_2.9");

int fuse2_notify_store(struct fuse2_chan *chan, fuse_ino_t ino, off_t offset,
                       struct fuse_bufvec *buf, enum fuse_buf_copy_flags flags)
{
    struct fuse_session *se = session_of(chan);
    return se ? fuse_lowlevel_notify_store(se, ino, offset, buf, flags) : -EINVAL;
}
EXPORT(fuse2_notify_store, "fuse_lowlevel_notify_store@@FUSE_2.9");

int fuse2_notify_retrieve(struct fuse2_chan *chan, fuse_ino_t ino, size_t size, off_t offset,
                          void *cookie)
{
    struct fuse_session *se = session_of(chan);
    return se ? fuse_lowlevel_notify_retrieve(se, ino, size, offset, cookie) : -EINVAL;
}
EXPORT(fuse2_notify_retrieve, "fuse_lowlevel_notify_retrieve@@FUSE_2.9");
