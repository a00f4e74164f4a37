/*
 * bell.c - a file system with one file, on libfuse's high-level API, for test_poll.c.
 *
 *   /bell      is ready to be read once it was rung; a read takes one ring ("1", then nothing)
 *   /waiters   how many poll handles it holds
 *
 * Whatever is written to /bell rings it; "later" is rung by another thread.
 */
#define FUSE_USE_VERSION 31
#include <errno.h>
#include <fuse.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* protects what follows */
static struct fuse_pollhandle *waiting;
static int waiters, rings;

static int bell_getattr(const char *path, struct stat *st, struct fuse_file_info *fi)
{
    (void)fi;
    *st = (struct stat){.st_mode = S_IFREG | 0666, .st_nlink = 1, .st_size = 1};
    if (strcmp(path, "/") == 0)
        st->st_mode = S_IFDIR | 0755;
    else if (strcmp(path, "/bell") != 0 && strcmp(path, "/waiters") != 0)
        return -ENOENT;
    return 0;
}

static int bell_open(const char *path, struct fuse_file_info *fi)
{
    fi->direct_io = 1;
    fi->fh = path[1] == 'b';
    return 0;
}

static int bell_read(const char *path, char *buf, size_t size, off_t offset,
                     struct fuse_file_info *fi)
{
    (void)path, (void)offset;
    int got = 0;
    pthread_mutex_lock(&lock);
    if (!fi->fh)
        got = snprintf(buf, size, "%d", waiters);
    else if (rings > 0 && size > 0)
        rings--, got = 1, buf[0] = '1';
    pthread_mutex_unlock(&lock);
    return got;
}

static void *ring(void *arg)
{
    pthread_mutex_lock(&lock);
    struct fuse_pollhandle *handle = waiting;
    rings++;
    waiting = NULL;
    waiters = 0;
    pthread_mutex_unlock(&lock);
    if (handle) {
        fuse_notify_poll(handle);
        fuse_pollhandle_destroy(handle);
    }
    return arg;
}

static int bell_write(const char *path, const char *buf, size_t size, off_t offset,
                      struct fuse_file_info *fi)
{
    pthread_t thread;
    (void)path, (void)offset, (void)fi;
    if (size < 5 || memcmp(buf, "later", 5) != 0)
        ring(NULL);
    else if (pthread_create(&thread, NULL, ring, NULL) == 0)
        pthread_detach(thread);
    else
        return -EAGAIN;
    return (int)size;
}

static int bell_poll(const char *path, struct fuse_file_info *fi, struct fuse_pollhandle *handle,
                     unsigned *events)
{
    struct fuse_pollhandle *old = NULL;
    (void)path, (void)fi;
    pthread_mutex_lock(&lock);
    *events = rings > 0 ? POLLIN : 0;
    if (handle) {
        old = waiting;
        waiting = handle;
        waiters = 1;
    }
    pthread_mutex_unlock(&lock);
    if (old)
        fuse_pollhandle_destroy(old);
    return 0;
}

static void bell_destroy(void *data)
{
    (void)data;
    if (waiting)
        fuse_pollhandle_destroy(waiting);
}

static const struct fuse_operations operations = {
    .getattr = bell_getattr,
    .open = bell_open,
    .read = bell_read,
    .write = bell_write,
    .poll = bell_poll,
    .destroy = bell_destroy,
};

int main(int argc, char *argv[])
{
    return fuse_main(argc, argv, &operations, NULL);
}
