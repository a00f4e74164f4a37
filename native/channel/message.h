/*
 * message.h - what one call of an op looks like on its way to the server and back.
 *
 * One message is one call of an op of struct df_ops. Its number is the op's place in
 * core/ops.def; the numbers behind them are the channel's own. Both sides use the same named
 * members of df_arguments and df_results, and both make their tables from ops.def, so neither can
 * know an op, or an argument, that the other does not.
 */
#ifndef DF_CHANNEL_MESSAGE_H
#define DF_CHANNEL_MESSAGE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "core/ops.h"

enum df_message_op {
#define DF_OP(name) DF_MESSAGE_##name,
#include "core/ops.def"
#undef DF_OP
    DF_MESSAGE_OPS, /* how many ops there are: from here on it is the server's own business */
    /* A program watches the open file: result is the serial of its stand-in (watch/watch.h).
     * args.watch. As for the ops, its file is found first; for those behind it none is. */
    DF_MESSAGE_WATCH = DF_MESSAGE_OPS,
    /* Of an open file that an epoll instance watches, or of one that was rung for: args.epoll.
     * DF_EPOLL_ASK: 1 and out.epoll, or 0: it is not ready. As epoll_ctl(2) otherwise, and -ENOENT,
     * -EINVAL: the token was, or was never, one of these. */
    DF_MESSAGE_EPOLL,
    /* One more process has the file: it got a descriptor by SCM_RIGHTS. -EBADF: it is closed. */
    DF_MESSAGE_ADOPT,
    /* The client process has no descriptor of the file any more. */
    DF_MESSAGE_DROP,
    /* After execve, and in a child of many threads: the client has the files listed, and no others
     * (payload: handles). */
    DF_MESSAGE_KEEP,
    /* Before fork: result is the id of the child to be, which has the parent's files. args.fork. */
    DF_MESSAGE_FORK,
    /* The child of that id was not made. */
    DF_MESSAGE_UNFORK,
    /* Somebody was killed: what processes had that are gone is closed, unlocked and written back
     * when this is answered, and what they had begun to change is changed, unless a file system
     * takes very long for it. */
    DF_MESSAGE_BURY,
    /* What the client has stored in memory that shows the open file: it is written back, for a
     * client that has not the means. */
    DF_MESSAGE_WRITE_BACK,
    /* Of a mount: unmount it. args.unmount. */
    DF_MESSAGE_UNMOUNT,
    /* Whatever the server keeps of writes is handed over, of all its mounts. */
    DF_MESSAGE_SYNC,
    /* Nothing, there and back. */
    DF_MESSAGE_NOTHING,
    DF_MESSAGE_COUNT
};

/* A df_where: the name itself lies in df_area.names[i], `base` is a handle. */
struct df_message_where {
    uint64_t base; /* 0: the root of the mount */
    uint32_t len;  /* bytes of the name, < PATH_MAX */
    uint32_t flags;
};

/* On whose behalf: struct df_caller; groups lie in df_area.groups. */
struct df_message_caller {
    uint32_t uid, gid;
    uint32_t real_uid, real_gid;
    int32_t pid;
    uint32_t umask;
    uint32_t group_count;
    uint32_t rights;
    uint64_t lock_owner;
    int64_t size_limit;
};

/* ledger/epolls.h */
struct df_message_epoll {
    int32_t what; /* EPOLL_CTL_*, or one of the below */
    int32_t fd;
    uint64_t token; /* of the bell: when it is added, or asked for */
    uint64_t set;
    uint64_t data;
    uint32_t events;
};

enum { /* what, beside EPOLL_CTL_*. The file is the server's to find: files[0] is 0 */
       DF_EPOLL_ASK = 0,
       DF_EPOLL_HUNG = -1, /* 0 once the server has the bell's descriptor, or -EAGAIN */
};

/* What is neither a where nor bytes. `size` of an op that fills a buffer is the room for it; of one
 * that takes bytes, how many lie in the payload. */
union df_arguments {
    struct {
        struct df_setattr set;
        bool wants_stat;
    } setattr;
    struct {
        int32_t mask;
    } access;
    struct {
        uint64_t size;
    } readlink, listxattr, symlink, path;
    struct {
        uint64_t size; /* the attribute's name is in df_area.key */
        int32_t flags; /* setxattr */
    } getxattr, setxattr;
    struct {
        uint32_t mode;
        uint64_t rdev;
    } mknod, mkdir;
    struct {
        uint32_t flags;
    } rename;
    struct {
        int32_t flags;
        uint32_t mode;
    } open, tmpfile;
    struct {
        uint64_t owner;
        bool drop; /* then as DF_MESSAGE_DROP: a close is one trip */
    } flush;
    struct {
        uint64_t size;
        int64_t offset;
        uint64_t held; /* id of the content (frames.h) of which the client has found the bytes, but
                          no time in which they may be believed; 0: it has not */
        bool sent;     /* bytes are to be sent: what was kept of them has gone meanwhile */
    } read;
    struct {
        uint64_t size;
        int64_t offset;
        int32_t flags;   /* the file's, as the caller has them at this moment */
        uint8_t placing; /* enum df_placing */
    } write;
    struct {
        uint64_t count; /* of struct df_message_extent, at the start of the payload */
    } read_batch;
    struct {
        int64_t offset;
        int32_t whence;
    } lseek;
    struct {
        bool datasync;
    } fsync;
    struct {
        int64_t offset, length;
        int32_t mode;
    } fallocate, advise;
    struct {
        int64_t in, out;
        uint64_t size;
        uint32_t flags;
    } copy_file_range;
    struct {
        int64_t offset;
        uint64_t size; /* the second where: df_trip.called */
    } readdir;
    struct {
        uint64_t request;
        uint64_t argument; /* where the request has no size: the value itself */
    } ioctl;
    struct {
        int32_t events;
        uint64_t bell; /* token of who waits if nothing is ready (ledger/bells.h); 0: nobody */
    } poll;
    struct {
        struct df_lock lock;
    } lock;
    struct {
        int32_t operation;
        uint64_t owner;
    } flock;
    struct {
        uint64_t size;
        bool executed; /* by execve: what the client has not was closed, and its threads ended */
    } keep;
    struct {
        bool keeps; /* nobody will be it: it has the files while they are on their way to others */
        uint64_t socket; /* inode of the client's own, which its child has until it is born; 0: not
                            known */
    } fork;
    struct {
        uint32_t client;
    } unfork;
    struct {
        uint32_t events; /* of inotify(7) */
    } watch;
    struct df_message_epoll epoll;
    struct {
        bool lazy;
        bool alone; /* only if there is no other client */
    } unmount;
};

/* What an open file is; the same stands in its df_ofd. */
struct df_message_file {
    uint64_t handle;
    uint64_t ino;
    uint8_t kind;
    uint8_t traits;
};

union df_results {
    struct stat st;
    struct df_statx statx;
    struct statvfs statvfs;
    struct df_message_file file;
    struct df_lock lock;
    struct df_message_epoll epoll; /* events and data */
    int64_t offset;                /* write: where the bytes went */
    struct {
        uint64_t at;   /* where in the payload the bytes begin that were asked for */
        uint64_t kept; /* id of the content of which they are in frames, as they are now, and not
                          in the payload; 0: they are there */
    } read;
    struct {
        int64_t next;  /* where to go on */
        uint64_t used; /* bytes of records in the payload */
        bool ends;     /* nothing is behind them, and nobody else will say so */
    } readdir;
};

/* One piece of a batch, in the payload; the bytes of all follow the last, each rounded up to 8. */
struct df_message_extent {
    uint64_t handle;
    uint64_t size;
    int64_t offset;
    int64_t result;
};

/*
 * In lines of the processor's caches, of 64 bytes, for a trip costs as many as change hands one
 * after the other (docs/decisions/068). The first is the slot's own, which both sides read to learn
 * that the other is done: so the result of most ops comes with that. Then what each question writes
 * anew; then who asks, which is the same for most and is not written again; then what only some
 * replies have.
 */
struct df_message {
    uint32_t op;   /* df_message_op */
    int32_t mount; /* id; 0 where a handle or nothing is meant */
    uint64_t files[2];
    int64_t result; /* of the reply */

    struct df_message_where wheres[2];
    union df_arguments args;
    uint32_t links; /* df_call.links and second_links; in a reply that is DF_LEAVE: so far */
    uint32_t second_links;
    bool leave_second; /* of such a reply */

    _Alignas(32) struct df_message_caller caller;

    _Alignas(32) union df_results out; /* of the reply */
};

/* The client has something no more, whatever the answer: the message is not to be lost, though
 * nobody may wait for it. */
static inline bool df_message_lets_go(const struct df_message *m)
{
    return m->op == DF_MESSAGE_DROP || m->op == DF_MESSAGE_UNFORK ||
           (m->op == DF_MESSAGE_flush && m->args.flush.drop);
}

/* Those whose answer is an open file. */
static inline bool df_message_opens(const struct df_message *m)
{
    return m->op == DF_MESSAGE_open || m->op == DF_MESSAGE_tmpfile;
}

#endif
