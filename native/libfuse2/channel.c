/*
 * channel.c - struct fuse_chan and struct fuse_session: the mount that comes first, the session
 * that takes it, its loops and its end.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "libfuse2/abi2.h"

/* ---- channels --------------------------------------------------------------------------- */

/* Programs built against 2.5 and before know a mount by its descriptor alone. */
enum { CHANNEL_MAX = 64 };
static pthread_mutex_t channels_lock = PTHREAD_MUTEX_INITIALIZER; /* protects `channels` */
static struct fuse2_chan *channels[CHANNEL_MAX];

static int replace(struct fuse2_chan *from, struct fuse2_chan *to)
{
    int result = -1;
    pthread_mutex_lock(&channels_lock);
    for (int i = 0; i < CHANNEL_MAX && result; i++) {
        if (channels[i] == from) {
            channels[i] = to;
            result = 0;
        }
    }
    pthread_mutex_unlock(&channels_lock);
    return result;
}

struct fuse2_chan *df2_chan_of_fd(int fd)
{
    struct fuse2_chan *found = NULL;
    pthread_mutex_lock(&channels_lock);
    for (int i = 0; i < CHANNEL_MAX && !found; i++)
        if (channels[i] && channels[i]->fd == fd)
            found = channels[i];
    pthread_mutex_unlock(&channels_lock);
    return found;
}

struct fuse2_chan *df2_chan_new(const char *mountpoint, struct fuse_args *args)
{
    struct fuse2_chan *chan = calloc(1, sizeof(*chan));
    if (!chan)
        return NULL;
    chan->options = (struct fuse_args)FUSE_ARGS_INIT(0, NULL);
    chan->fd = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);
    chan->mountpoint = mountpoint ? strdup(mountpoint) : NULL;
    const char *program = args && args->argc > 0 ? args->argv[0] : "fuse";
    if (chan->fd < 0 || !chan->mountpoint || fuse_opt_add_arg(&chan->options, program) == -1 ||
        (args && df2_take_mount_options(args, &chan->options) == -1) || replace(NULL, chan) != 0) {
        df2_chan_free(chan);
        return NULL;
    }
    return chan;
}

void df2_chan_free(struct fuse2_chan *chan)
{
    replace(chan, NULL);
    if (chan->session)
        chan->session->chan = NULL;
    if (chan->fd >= 0)
        close(chan->fd);
    fuse_opt_free_args(&chan->options);
    free(chan->mountpoint);
    free(chan);
}

struct fuse2_chan *fuse2_mount(const char *mountpoint, struct fuse_args *args)
{
    return df2_chan_new(mountpoint, args);
}
EXPORT(fuse2_mount, "fuse_mount@@FUSE_2.6");

/* Also called by a thread that wants to end the loop of another. */
void fuse2_unmount(const char *mountpoint, struct fuse2_chan *chan)
{
    (void)mountpoint;
    if (!chan)
        return;
    if (chan->session && chan->session->real)
        fuse_session_unmount(chan->session->real);
    df2_chan_free(chan);
}
EXPORT(fuse2_unmount, "fuse_unmount@@FUSE_2.6");

void fuse2_chan_destroy(struct fuse2_chan *chan)
{
    df2_chan_free(chan);
}
EXPORT(fuse2_chan_destroy, "fuse_chan_destroy@@FUSE_2.4");

int fuse2_chan_fd(struct fuse2_chan *chan)
{
    return chan->fd;
}
EXPORT(fuse2_chan_fd, "fuse_chan_fd@@FUSE_2.4");

/* A buffer of this size is always enough, for nothing is ever read into it. */
size_t fuse2_chan_bufsize(struct fuse2_chan *chan)
{
    (void)chan;
    return 0x21000; /* bytes; as libfuse 2.9: 128 KiB and a page for the header */
}
EXPORT(fuse2_chan_bufsize, "fuse_chan_bufsize@@FUSE_2.4");

void *fuse2_chan_data(struct fuse2_chan *chan)
{
    (void)chan;
    return NULL;
}
EXPORT(fuse2_chan_data, "fuse_chan_data@@FUSE_2.4");

struct fuse2_session *fuse2_chan_session(struct fuse2_chan *chan)
{
    return chan->session;
}
EXPORT(fuse2_chan_session, "fuse_chan_session@@FUSE_2.4");

/* ---- sessions --------------------------------------------------------------------------- */

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
    se->exited = true;
    if (se->real)
        fuse_session_exit(se->real);
}
EXPORT(fuse2_session_exit, "fuse_session_exit@@FUSE_2.4");

int fuse2_session_exited(struct fuse2_session *se)
{
    return se->real ? fuse_session_exited(se->real) : se->exited;
}
EXPORT(fuse2_session_exited, "fuse_session_exited@@FUSE_2.4");

void fuse2_session_reset(struct fuse2_session *se)
{
    se->exited = false;
    if (se->real)
        fuse_session_reset(se->real);
}
EXPORT(fuse2_session_reset, "fuse_session_reset@@FUSE_2.4");

int fuse2_session_loop(struct fuse2_session *se)
{
    if (se->exited)
        return 0;
    if (!se->real && df2_lowlevel_start(se) != 0)
        return -1;
    return fuse_session_loop(se->real) == 0 ? 0 : -1;
}
EXPORT(fuse2_session_loop, "fuse_session_loop@@FUSE_2.4");

int fuse2_session_loop_mt(struct fuse2_session *se)
{
    if (se->exited)
        return 0;
    if (!se->real && df2_lowlevel_start(se) != 0)
        return -1;
    return df3_session_loop_mt(se->real, NULL) == 0 ? 0 : -1;
}
EXPORT(fuse2_session_loop_mt, "fuse_session_loop_mt@@FUSE_2.4");

/* A program with a loop of its own: receiving serves the mount until it has ended. */
int fuse2_session_receive_buf(struct fuse2_session *se, struct fuse_buf *buf,
                              struct fuse2_chan **chan)
{
    (void)chan;
    if (!se->real && df2_lowlevel_start(se) != 0)
        return -EIO;
    return fuse_session_receive_buf(se->real, buf);
}
EXPORT(fuse2_session_receive_buf, "fuse_session_receive_buf@@FUSE_2.9");

int fuse2_chan_recv(struct fuse2_chan **chan, char *data, size_t size)
{
    (void)data;
    (void)size;
    struct fuse_buf none = {0};
    return fuse2_session_receive_buf((*chan)->session, &none, chan);
}
EXPORT(fuse2_chan_recv, "fuse_chan_recv@@FUSE_2.6");

/* There is never a request to process: receiving has done it. */
void fuse2_session_process(struct fuse2_session *se, const char *data, size_t size,
                           struct fuse2_chan *chan)
{
    (void)se;
    (void)data;
    (void)size;
    (void)chan;
}
EXPORT(fuse2_session_process, "fuse_session_process@@FUSE_2.4");

void fuse2_session_process_buf(struct fuse2_session *se, const struct fuse_buf *buf,
                               struct fuse2_chan *chan)
{
    (void)se;
    (void)buf;
    (void)chan;
}
EXPORT(fuse2_session_process_buf, "fuse_session_process_buf@@FUSE_2.9");

void fuse2_session_destroy(struct fuse2_session *se)
{
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
