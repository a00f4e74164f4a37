/*
 * greet.c - FUSE_INIT: what is offered to the server, and what it wants.
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "channel.h"

#define OFFERED_MINOR 45    /* Linux 6.18 */
#define EPOCH_MINOR   44    /* NOTIFY_INC_EPOCH */
#define OLDEST_MINOR  8     /* that of Rust's libraries, if they are not asked for a later one */
#define HEADERS       4096u /* bytes; of a message beside its data, rounded up to a page */
#define READAHEAD     (128u * 1024u)
#define PAGE          4096u
#define INIT_NUMBER   2u
#define PAGES         32u /* of data in a message, unless MAX_PAGES says otherwise */

/*
 * What the node lane, or the kernel, can do for a server that libfuse can say. Not among it:
 * WRITEBACK_CACHE, where the server expects writes that a cache has gathered; SPLICE_*, io_uring
 * and PASSTHROUGH, which are ways around /dev/fuse; mapping, DAX and id-mapped mounts, which are
 * the kernel's; HANDLE_KILLPRIV_V2, whose checks the node lane does not leave to the server;
 * REQUEST_TIMEOUT: a mount's own time-out is its user's.
 */
#define OFFERED                                                                                    \
    (FUSE_ASYNC_READ | FUSE_POSIX_LOCKS | FUSE_ATOMIC_O_TRUNC | FUSE_EXPORT_SUPPORT |              \
     FUSE_BIG_WRITES | FUSE_DONT_MASK | FUSE_FLOCK_LOCKS | FUSE_HAS_IOCTL_DIR |                    \
     FUSE_AUTO_INVAL_DATA | FUSE_DO_READDIRPLUS | FUSE_READDIRPLUS_AUTO | FUSE_ASYNC_DIO |         \
     FUSE_NO_OPEN_SUPPORT | FUSE_PARALLEL_DIROPS | FUSE_HANDLE_KILLPRIV | FUSE_MAX_PAGES |         \
     FUSE_CACHE_SYMLINKS | FUSE_NO_OPENDIR_SUPPORT | FUSE_EXPLICIT_INVAL_DATA | FUSE_POSIX_ACL |   \
     FUSE_SETXATTR_EXT | FUSE_INIT_EXT | FUSE_SECURITY_CTX | PROTOCOL_CREATE_SUPP_GROUP |          \
     FUSE_HAS_EXPIRE_ONLY | PROTOCOL_NO_EXPORT_SUPPORT | PROTOCOL_HAS_RESEND)

static uint32_t page_floor(size_t size)
{
    return (uint32_t)(size - size % PAGE);
}

static uint32_t offered_minor(void)
{
    return fuse_lowlevel_notify_increment_epoch ? OFFERED_MINOR : EPOCH_MINOR - 1;
}

static int send_init(const struct channel *channel)
{
    struct {
        struct fuse_in_header header;
        struct fuse_init_in init;
    } out = {
        .header = {.len = sizeof(out), .opcode = FUSE_INIT, .unique = INIT_NUMBER},
        .init = {.major = FUSE_KERNEL_VERSION,
                 .minor = offered_minor(),
                 .max_readahead = READAHEAD,
                 .flags = (uint32_t)OFFERED,
                 .flags2 = (uint32_t)(OFFERED >> 32)},
    };

    return send(channel->fd, &out, sizeof(out), MSG_NOSIGNAL) < 0 ? errno : 0;
}

/* What comes first need not be the reply: to messages that are none, see channel.c. */
static bool is_reply(const struct channel *channel, ssize_t got)
{
    struct fuse_out_header header;

    if (got < (ssize_t)sizeof(header))
        return false;
    memcpy(&header, channel->buffer, sizeof(header));
    return header.unique == INIT_NUMBER && header.len == (size_t)got;
}

/* The reply into the buffer, and who sent it. */
static ssize_t receive_init(struct channel *channel, pid_t *server)
{
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof(struct ucred))];
    } credentials;
    struct iovec iov = {channel->buffer, channel->limit};
    struct msghdr message = {.msg_iov = &iov,
                             .msg_iovlen = 1,
                             .msg_control = &credentials,
                             .msg_controllen = sizeof(credentials)};
    ssize_t got;

    do
        got = recvmsg(channel->fd, &message, MSG_CMSG_CLOEXEC);
    while ((got < 0 && errno == EINTR) || (got == 0 && !channel_has_ended(channel)) ||
           (got > 0 && !is_reply(channel, got)));
    struct cmsghdr *header = got > 0 ? CMSG_FIRSTHDR(&message) : NULL;
    if (header && header->cmsg_type == SCM_CREDENTIALS) {
        struct ucred who;
        memcpy(&who, CMSG_DATA(header), sizeof(who));
        *server = who.pid;
    }
    return got;
}

/* Older servers leave the newest members out. */
static void obey(struct channel *channel, const struct fuse_init_out *init)
{
    uint32_t most = page_floor(channel->limit - HEADERS);
    uint32_t pages = init->flags & FUSE_MAX_PAGES && init->max_pages ? init->max_pages : PAGES;

    if (most > pages * PAGE)
        most = pages * PAGE;
    channel->minor = init->minor < offered_minor() ? init->minor : offered_minor();
    channel->flags = init->flags & OFFERED;
    if (init->flags & FUSE_INIT_EXT)
        channel->flags |= (uint64_t)init->flags2 << 32 & OFFERED;
    channel->max_write = init->max_write < PAGE ? PAGE : init->max_write;
    if (!(init->flags & FUSE_BIG_WRITES))
        channel->max_write = PAGE;
    if (channel->max_write > most)
        channel->max_write = most;
    channel->max_read = most;
    channel->max_readahead = init->max_readahead;
    uint64_t pieces = (uint64_t)AHEAD_PIECES * init->max_readahead;
    channel->most_ahead = pieces < channel->limit ? (size_t)pieces : channel->limit;
    channel->max_background = init->max_background;
    channel->congestion_threshold = init->congestion_threshold;
    channel->time_gran = init->time_gran;
}

static int judge(struct channel *channel, ssize_t got)
{
    struct fuse_out_header header;
    struct fuse_init_out init = {0};

    if (got < (ssize_t)(sizeof(header) + 8)) {
        fuse_log(FUSE_LOG_ERR, "helper: the server ended before it answered INIT\n");
        return -1;
    }
    memcpy(&header, channel->buffer, sizeof(header));
    size_t size = (size_t)got - sizeof(header);
    memcpy(&init, channel->buffer + sizeof(header), size < sizeof(init) ? size : sizeof(init));
    if (header.error) {
        fuse_log(FUSE_LOG_ERR, "helper: the server refuses INIT: %s\n", strerror(-header.error));
        return -1;
    }
    if (init.major != FUSE_KERNEL_VERSION || init.minor < OLDEST_MINOR) {
        fuse_log(FUSE_LOG_ERR,
                 "helper: the server speaks FUSE %u.%u; 7.%d or later is understood: mount it "
                 "through the kernel, with `directfuse mount`\n",
                 init.major, init.minor, OLDEST_MINOR);
        return -1;
    }
    obey(channel, &init);
    return 0;
}

int channel_greet(struct channel *channel, pid_t *server)
{
    int on = 1, off = 0;

    *server = 0;
    setsockopt(channel->fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on));
    int error = send_init(channel);
    if (error && error != EPIPE) {
        fuse_log(FUSE_LOG_ERR, "helper: cannot send INIT: %s\n", strerror(error));
        return -1;
    }
    ssize_t got = error ? 0 : receive_init(channel, server);
    setsockopt(channel->fd, SOL_SOCKET, SO_PASSCRED, &off, sizeof(off));
    return judge(channel, got);
}
