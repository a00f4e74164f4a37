/*
 * channel.c - struct fuse_chan: the mount that comes first, known by its descriptor to programs of
 * before 2.6; and channels of a program's own, over which it moves messages itself.
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

/* For a program that ends its mount by the mountpoint alone, from any thread. */
void df2_chan_end(const char *mountpoint)
{
    pthread_mutex_lock(&channels_lock);
    for (int i = 0; i < CHANNEL_MAX; i++) {
        const struct fuse2_chan *chan = channels[i];
        if (chan && strcmp(chan->mountpoint, mountpoint) == 0 && chan->session &&
            chan->session->real)
            fuse_session_unmount(chan->session->real);
    }
    pthread_mutex_unlock(&channels_lock);
}

/* 128 KiB: the largest request of the kernel to libfuse 2, and so the largest that its programs
 * have met. The option is given first; a later one of the program's wins. */
#define LARGEST_READ "-omax_read=131072"

/* The program's name, our options, those of the mount in args. */
static int collect_options(struct fuse2_chan *chan, struct fuse_args *args)
{
    const char *program = args && args->argc > 0 ? args->argv[0] : "fuse";
    if (fuse_opt_add_arg(&chan->options, program) == -1 ||
        fuse_opt_add_arg(&chan->options, LARGEST_READ) == -1)
        return -1;
    return args ? df2_take_mount_options(args, &chan->options) : 0;
}

struct fuse2_chan *df2_chan_new(const char *mountpoint, struct fuse_args *args)
{
    if (!mountpoint) {
        fuse_log(FUSE_LOG_ERR, "fuse: missing mountpoint parameter\n");
        return NULL;
    }
    struct fuse2_chan *chan = calloc(1, sizeof(*chan));
    if (!chan)
        return NULL;
    chan->options = (struct fuse_args)FUSE_ARGS_INIT(0, NULL);
    chan->size = 0x21000; /* as libfuse 2.9: 128 KiB and a page for the header */
    chan->fd = eventfd(1, EFD_CLOEXEC | EFD_SEMAPHORE);
    chan->mountpoint = strdup(mountpoint);
    if (chan->fd >= 0 && chan->mountpoint && collect_options(chan, args) == 0 &&
        replace(NULL, chan) == 0)
        return chan;
    df2_chan_free(chan);
    return NULL;
}

void df2_chan_free(struct fuse2_chan *chan)
{
    fuse2_session_remove_chan(chan);
    if (chan->mountpoint) {
        replace(chan, NULL);
        if (chan->fd >= 0)
            close(chan->fd);
    }
    if (chan->ops.destroy)
        chan->ops.destroy(chan);
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
    if (!mountpoint || !chan)
        return;
    if (chan->session && chan->session->real)
        fuse_session_unmount(chan->session->real);
    df2_chan_free(chan);
}
EXPORT(fuse2_unmount, "fuse_unmount@@FUSE_2.6");

/* The channel of a descriptor that fuse_mount() of 2.5 and before has returned. */
struct fuse2_chan *fuse2_kern_chan_new(int fd)
{
    struct fuse2_chan *chan = df2_chan_of_fd(fd);
    if (!chan)
        fuse_log(FUSE_LOG_ERR,
                 "fuse: descriptor %d is not one of fuse_mount(): a mount made by somebody else "
                 "could not be answered inside this process\n",
                 fd);
    return chan;
}
EXPORT(fuse2_kern_chan_new, "fuse_kern_chan_new@@FUSE_2.4");

/* ---- channels of the program's own ---------------------------------------------------------- */

static struct fuse2_chan *new_custom(int fd, size_t size, void *data)
{
    struct fuse2_chan *chan = calloc(1, sizeof(*chan));
    if (!chan) {
        fuse_log(FUSE_LOG_ERR, "fuse: failed to allocate channel\n");
        return NULL;
    }
    chan->options = (struct fuse_args)FUSE_ARGS_INIT(0, NULL);
    chan->fd = fd;
    chan->size = size;
    chan->data = data;
    return chan;
}

struct fuse2_chan *fuse2_chan_new(const struct fuse2_chan_ops *ops, int fd, size_t size, void *data)
{
    struct fuse2_chan *chan = new_custom(fd, size, data);
    if (chan)
        chan->ops = *ops;
    return chan;
}
EXPORT(fuse2_chan_new, "fuse_chan_new@@FUSE_2.6");

struct chan_ops_24 {
    int (*receive)(struct fuse2_chan *chan, char *buf, size_t size);
    int (*send)(struct fuse2_chan *chan, const struct iovec iov[], size_t count);
    void (*destroy)(struct fuse2_chan *chan);
};

struct fuse2_chan *fuse2_chan_new_24(const struct chan_ops_24 *ops, int fd, size_t size, void *data)
{
    struct fuse2_chan *chan = new_custom(fd, size, data);
    if (chan) {
        chan->receive_24 = ops->receive;
        chan->ops.send = ops->send;
        chan->ops.destroy = ops->destroy;
    }
    return chan;
}
EXPORT(fuse2_chan_new_24, "fuse_chan_new@FUSE_2.4");
EXPORT_ALSO(fuse2_chan_new_24, fuse2_chan_new_compat24, "fuse_chan_new_compat24@@FUSE_2.6");

void fuse2_chan_destroy(struct fuse2_chan *chan)
{
    df2_chan_free(chan);
}
EXPORT(fuse2_chan_destroy, "fuse_chan_destroy@@FUSE_2.4");

/* ---- what they are, and what goes over them -------------------------------------------------- */

int fuse2_chan_fd(struct fuse2_chan *chan)
{
    return chan->fd;
}
EXPORT(fuse2_chan_fd, "fuse_chan_fd@@FUSE_2.4");

size_t fuse2_chan_bufsize(struct fuse2_chan *chan)
{
    return chan->size;
}
EXPORT(fuse2_chan_bufsize, "fuse_chan_bufsize@@FUSE_2.4");

void *fuse2_chan_data(struct fuse2_chan *chan)
{
    return chan->data;
}
EXPORT(fuse2_chan_data, "fuse_chan_data@@FUSE_2.4");

struct fuse2_session *fuse2_chan_session(struct fuse2_chan *chan)
{
    return chan->session;
}
EXPORT(fuse2_chan_session, "fuse_chan_session@@FUSE_2.4");

int fuse2_chan_recv(struct fuse2_chan **chan, char *buf, size_t size)
{
    struct fuse2_chan *from = *chan;
    struct fuse_buf into = {.mem = buf, .size = size};
    if (from->receive_24)
        return from->receive_24(from, buf, size);
    if (from->ops.receive)
        return from->ops.receive(chan, buf, size);
    return from->session ? fuse2_session_receive_buf(from->session, &into, chan) : -EINVAL;
}
EXPORT(fuse2_chan_recv, "fuse_chan_recv@@FUSE_2.6");

/* Before 2.6: 0 is "nothing came, try again". */
int fuse2_chan_receive(struct fuse2_chan *chan, char *buf, size_t size)
{
    int result = fuse2_chan_recv(&chan, buf, size);
    if (result >= 0)
        return result;
    return result == -EINTR || result == -EAGAIN ? 0 : -1;
}
EXPORT(fuse2_chan_receive, "fuse_chan_receive@@FUSE_2.4");

/* Nobody waits for an answer over a mount, which the kernel says in these words. */
int fuse2_chan_send(struct fuse2_chan *chan, const struct iovec iov[], size_t count)
{
    return chan->ops.send ? chan->ops.send(chan, iov, count) : -ENOENT;
}
EXPORT(fuse2_chan_send, "fuse_chan_send@@FUSE_2.4");
