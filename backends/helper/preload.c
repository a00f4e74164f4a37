/*
 * preload.c - libdf-helper.so, loaded into a server with LD_PRELOAD: "/dev/fuse" opens the helper's
 * channel, mounting a FUSE type tells the helper where, and nothing is mounted.
 *
 * Everything else passes. A process whose environment names no helper is left alone.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <paths.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "control.h"

#define PUBLIC __attribute__((visibility("default")))

/* Linux gives FUSE_DEV_IOC_CLONE this number; older headers lack the name. */
#define CLONE_REQUEST 0x8004e500UL

static pthread_mutex_t channel_lock = PTHREAD_MUTEX_INITIALIZER;
static int channel = -1;             /* under channel_lock: what "/dev/fuse" was opened as first */
static _Atomic ino_t channel_number; /* the socket's, whatever descriptors it has; 0: none yet */

/* The C library's own function behind one of ours. */
#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

/* ---- the device ---------------------------------------------------------------------------- */

static bool is_seqpacket(int fd)
{
    int type = 0;
    socklen_t size = sizeof(type);

    int error = errno;
    bool is = getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_SEQPACKET;

    errno = error;
    return is;
}

static ino_t number_of_socket(int fd)
{
    struct stat status;

    return fstat(fd, &status) == 0 && S_ISSOCK(status.st_mode) ? status.st_ino : 0;
}

/* The helper hands its channel out once; a second open (one for each thread, say) is a copy.
 * If the server has closed it, its number may be another file's. */
static int open_channel(void)
{
    const struct control_message message = {.kind = CONTROL_OPEN, .way = CONTROL_PRELOAD};
    int error = 0, fd = -1;

    pthread_mutex_lock(&channel_lock);
    if (channel >= 0 && is_seqpacket(channel))
        fd = fcntl(channel, F_DUPFD_CLOEXEC, 0);
    if (fd < 0) {
        error = control_ask(&message, &fd);
        channel = fd;
        channel_number = fd >= 0 ? number_of_socket(fd) : 0;
    }
    pthread_mutex_unlock(&channel_lock);
    if (error)
        errno = error;
    return error ? -1 : fd;
}

static bool is_device(const char *path)
{
    return path && strcmp(path, "/dev/fuse") == 0 && getenv(CONTROL_VARIABLE);
}

static bool takes_mode(int flags)
{
    return flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE;
}

/* One of open(2)'s names: its parameters before the mode, and the same as arguments. */
#define OPEN(name, parameters, arguments)                                                          \
    PUBLIC int name(UNPACK parameters, ...)                                                        \
    {                                                                                              \
        mode_t mode = 0;                                                                           \
        if (is_device(path))                                                                       \
            return open_channel();                                                                 \
        if (takes_mode(flags)) {                                                                   \
            va_list rest;                                                                          \
            va_start(rest, flags);                                                                 \
            mode = va_arg(rest, mode_t);                                                           \
            va_end(rest);                                                                          \
        }                                                                                          \
        return NEXT(name)(UNPACK arguments, mode);                                                 \
    }
#define UNPACK(...) __VA_ARGS__

/* The names that fortified programs call. */
int __open_2(const char *path, int flags);
int __open64_2(const char *path, int flags);

#define OPEN_2(name)                                                                               \
    PUBLIC int name(const char *path, int flags)                                                   \
    {                                                                                              \
        return is_device(path) ? open_channel() : NEXT(name)(path, flags);                         \
    }

OPEN(open, (const char *path, int flags), (path, flags))
OPEN(open64, (const char *path, int flags), (path, flags))
OPEN(openat, (int dir, const char *path, int flags), (dir, path, flags))
OPEN(openat64, (int dir, const char *path, int flags), (dir, path, flags))
OPEN_2(__open_2)
OPEN_2(__open64_2)

static bool is_channel(int fd)
{
    pthread_mutex_lock(&channel_lock);
    bool known = channel >= 0;
    pthread_mutex_unlock(&channel_lock);
    return known && is_seqpacket(fd);
}

/* A clone of the device is a copy of the descriptor already. */
PUBLIC int ioctl(int fd, unsigned long request, ...)
{
    va_list rest;

    va_start(rest, request);
    void *argument = va_arg(rest, void *);
    va_end(rest);
    if (request == CLONE_REQUEST && is_channel(fd))
        return 0;
    return NEXT(ioctl)(fd, request, argument);
}

/* ---- the end of the channel ---------------------------------------------------------------- */

/* Whether `fd` is the channel, of which a call has just told the end. */
static bool has_ended(int fd)
{
    int error = errno;
    bool is = channel_number != 0 && number_of_socket(fd) == channel_number;

    errno = error;
    return is;
}

static bool is_reset(ssize_t got)
{
    return got < 0 && errno == ECONNRESET;
}

/* Of a read that gave `got`: ENODEV at the end of the channel, as from the device when it has been
 * unmounted. Of the end of a file no server knows that it is its own; it takes it for an error.
 * Behind a reset (a reply of its own was not read any more) there may be messages yet. */
static ssize_t unmounted(ssize_t got, int fd, void *buffer, size_t size)
{
    if (size == 0 || !(got == 0 || is_reset(got)) || !has_ended(fd))
        return got;
    if (got < 0)
        got = recv(fd, buffer, size, 0);
    if (got != 0)
        return got;
    errno = ENODEV;
    return -1;
}

PUBLIC ssize_t read(int fd, void *buffer, size_t size)
{
    static __typeof__(&read) next; /* each request comes by here */

    if (!next)
        next = NEXT(read);
    ssize_t got = next(fd, buffer, size);
    return got > 0 ? got : unmounted(got, fd, buffer, size);
}

/* ---- mounting ------------------------------------------------------------------------------ */

static bool is_fuse(const char *type)
{
    return type && (strcmp(type, "fuse") == 0 || strncmp(type, "fuse.", 5) == 0);
}

static void copy_text(char *to, size_t size, const char *from)
{
    snprintf(to, size, "%s", from ? from : "");
}

static int tell(enum control_kind kind, const char *target, const char *source, const char *type,
                const char *options)
{
    struct control_message message = {.kind = (uint8_t)kind, .way = CONTROL_PRELOAD};
    int fd = -1;

    copy_text(message.target, sizeof(message.target), target);
    copy_text(message.source, sizeof(message.source), source);
    copy_text(message.type, sizeof(message.type), type);
    copy_text(message.options, sizeof(message.options), options);
    int error = control_ask(&message, &fd);
    if (error)
        errno = error;
    return error ? -1 : 0;
}

PUBLIC int mount(const char *source, const char *target, const char *type, unsigned long flags,
                 const void *data)
{
    char options[4096];

    if (!is_fuse(type) || !getenv(CONTROL_VARIABLE))
        return NEXT(mount)(source, target, type, flags, data);
    snprintf(options, sizeof(options), "%s%s%s", flags & MS_RDONLY ? "ro" : "rw",
             data && *(const char *)data ? "," : "", data ? (const char *)data : "");
    return tell(CONTROL_MOUNT, target, source, type, options);
}

/* The server unmounts what it believes to have mounted. */
static bool unmounts_ours(const char *target)
{
    return getenv(CONTROL_VARIABLE) && tell(CONTROL_UNMOUNT, target, NULL, NULL, NULL) == 0;
}

PUBLIC int umount(const char *target)
{
    return unmounts_ours(target) ? 0 : NEXT(umount)(target);
}

PUBLIC int umount2(const char *target, int flags)
{
    return unmounts_ours(target) ? 0 : NEXT(umount2)(target, flags);
}

/* Many builds of libfuse leave mounting and unmounting by root to /bin/mount and /bin/umount, which
 * know nothing of us, unless the table of mounts that these keep lies where nobody can write. */
PUBLIC int access(const char *path, int mode)
{
    if (mode != W_OK || strcmp(path, _PATH_MOUNTED) != 0 || !getenv(CONTROL_VARIABLE))
        return faccessat(AT_FDCWD, path, mode, 0);
    errno = EROFS;
    return -1;
}

/* ---- replies that are too long ------------------------------------------------------------- */

/* Errors of a message that does not fit, or whose bytes are not all memory: libfuse sends what an
 * operation says it has put into a buffer, even if that is more than there was room for. Who begins
 * with a header alone can be looked at. */
static bool is_too_long(int error, const struct iovec *parts, int count)
{
    if (count < 1 || parts[0].iov_len < sizeof(struct fuse_out_header))
        return false;
    return error == EMSGSIZE || error == ENOBUFS ||
           (error == EFAULT && parts[0].iov_len == sizeof(struct fuse_out_header));
}

/* A reply of more bytes than a message can have is more than was asked for. The kernel would refuse
 * it with EINVAL and end the request with EIO; the socket refuses it and tells nobody. `sent`: what
 * the socket said. The channel may have come through fusermount, so it is known by its type and by
 * the header. */
static ssize_t judge(ssize_t sent, int fd, const struct iovec *parts, int count)
{
    struct fuse_out_header header;
    size_t size = 0;

    if (sent < 0 && (errno == EPIPE || errno == ECONNRESET) && has_ended(fd))
        errno = ENOENT; /* as from the device: nobody waits for it any more */
    if (sent >= 0 || !is_too_long(errno, parts, count) || !is_seqpacket(fd))
        return sent;
    for (int i = 0; i < count; i++)
        size += parts[i].iov_len;
    memcpy(&header, parts[0].iov_base, sizeof(header));
    if (header.len != size)
        return sent;
    header.len = sizeof(header);
    header.error = -EIO;
    if (header.unique != 0) /* no notification, which nobody waits for */
        send(fd, &header, sizeof(header), MSG_NOSIGNAL);
    errno = EINVAL;
    return -1;
}

PUBLIC ssize_t writev(int fd, const struct iovec *parts, int count)
{
    static __typeof__(&writev) next; /* each reply comes by here */

    if (!next)
        next = NEXT(writev);
    return judge(next(fd, parts, count), fd, parts, count);
}

PUBLIC ssize_t write(int fd, const void *data, size_t size)
{
    static __typeof__(&write) next;

    if (!next)
        next = NEXT(write);
    const struct iovec all = {(void *)(uintptr_t)data, size};
    return judge(next(fd, data, size), fd, &all, 1);
}

/* ---- splice(2): one message stays one message ---------------------------------------------- */

static ssize_t pipe_to_channel(int from, int to, size_t size)
{
    char *buffer = malloc(size);
    size_t used = 0;

    if (!buffer)
        return -1;
    while (used < size) {
        ssize_t got = read(from, buffer + used, size - used);
        if (got <= 0)
            break;
        used += (size_t)got;
    }
    ssize_t sent = send(to, buffer, used, MSG_NOSIGNAL);
    const struct iovec all = {buffer, used};
    sent = judge(sent, to, &all, 1);
    free(buffer);
    return sent;
}

static ssize_t channel_to_pipe(int from, int to, size_t size)
{
    char *buffer = malloc(size);

    if (!buffer)
        return -1;
    ssize_t got = unmounted(recv(from, buffer, size, 0), from, buffer, size);
    for (ssize_t used = 0; used < got;) {
        ssize_t put = write(to, buffer + used, (size_t)(got - used));
        if (put < 0) {
            got = -1;
            break;
        }
        used += put;
    }
    free(buffer);
    return got;
}

PUBLIC ssize_t splice(int from, off64_t *from_offset, int to, off64_t *to_offset, size_t size,
                      unsigned flags)
{
    if (!to_offset && is_channel(to))
        return pipe_to_channel(from, to, size);
    if (!from_offset && is_channel(from))
        return channel_to_pipe(from, to, size);
    return NEXT(splice)(from, from_offset, to, to_offset, size, flags);
}
