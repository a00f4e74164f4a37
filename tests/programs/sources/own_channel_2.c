/*
 * own_channel_2.c - channels and sessions of a program's own, of FUSE 2: nothing is mounted. With
 * "cuse" as its argument: a character device. It says what happened, and how it ended.
 */
#ifndef FUSE_USE_VERSION
#define FUSE_USE_VERSION 26
#endif
#include <cuse_lowlevel.h>
#include <errno.h>
#include <fuse_lowlevel.h>
#include <stdio.h>
#include <string.h>

static int left = 3, processed, sent, ended;

static int receive(struct fuse_chan **chan, char *buf, size_t size)
{
    (void)chan;
    if (left == 2) { /* once */
        left = -2;
        return -EINTR;
    }
    if (left < 0)
        left = 2;
    if (left-- == 0)
        return 0;
    return snprintf(buf, size, "message %d", left + 1) + 1;
}

static int send_out(struct fuse_chan *chan, const struct iovec iov[], size_t count)
{
    (void)chan;
    (void)iov;
    sent += (int)count;
    return 0;
}

static void destroy_chan(struct fuse_chan *chan)
{
    printf("channel %d of %zu destroyed\n", fuse_chan_fd(chan), fuse_chan_bufsize(chan));
}

static void process(void *data, const char *buf, size_t size, struct fuse_chan *chan)
{
    struct iovec iov[2] = {{(void *)buf, size}, {(void *)buf, size}};
    printf("%s: %s (%zu)\n", (char *)data, buf, size);
    processed++;
    fuse_chan_send(chan, iov, 2);
}

static void destroy(void *data)
{
    printf("%s destroyed\n", (char *)data);
    ended++;
}

/* Not fuse_session_loop(), which crashes in libfuse 2.9 with a session like this. */
static int loop(struct fuse_session *se, struct fuse_chan *chan)
{
    char buf[64];
    int count = 0;
    while (!fuse_session_exited(se)) {
        struct fuse_chan *from = chan;
        count = fuse_chan_recv(&from, buf, sizeof(buf));
        if (count == -EINTR)
            continue;
        if (count <= 0)
            break;
        fuse_session_process(se, buf, (size_t)count, from);
    }
    return count;
}

static int pump(void)
{
    struct fuse_session_ops session_ops = {.process = process, .destroy = destroy};
    struct fuse_chan_ops chan_ops = {receive, send_out, destroy_chan};
    struct fuse_session *se = fuse_session_new(&session_ops, "session");
    struct fuse_chan *chan = fuse_chan_new(&chan_ops, -7, 64, "channel");
    if (!se || !chan)
        return 1;
    fuse_session_add_chan(se, chan);
    printf("%s %s %d\n", (char *)fuse_chan_data(chan), (char *)fuse_session_data(se),
           fuse_chan_session(chan) == se && fuse_session_next_chan(se, NULL) == chan);
    int result = loop(se, chan);
    fuse_session_exit(se);
    printf("loop %d, exited %d\n", result, fuse_session_exited(se));
    fuse_session_destroy(se);
    printf("processed %d, sent %d, ended %d\n", processed, sent, ended);
    return 3;
}

int main(int argc, char *argv[])
{
    const char *info[] = {"DEVNAME=df-no-such-device"};
    struct cuse_info device = {.dev_info_argc = 1, .dev_info_argv = info};
    struct cuse_lowlevel_ops ops = {.init = NULL};
    if (argc > 1 && strcmp(argv[1], "cuse") == 0)
        return cuse_lowlevel_main(1, argv, &device, &ops, NULL);
    return pump();
}
