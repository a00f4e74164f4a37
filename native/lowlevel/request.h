/*
 * request.h - a request: begun, sent to the plugin, and ended when it has replied.
 */
#ifndef DF_LOWLEVEL_REQUEST_H
#define DF_LOWLEVEL_REQUEST_H

#include "core/gate.h"
#include "lowlevel/private.h"

enum { /* fuse_req.takes: kinds of reply that a request takes, beside an error */
       DF_TAKES_OK = 1 << 0, /* fuse_reply_err(req, 0) */
       DF_TAKES_NONE = 1 << 1,
       DF_TAKES_ENTRY = 1 << 2,
       DF_TAKES_CREATE = 1 << 3,
       DF_TAKES_ATTR = 1 << 4,
       DF_TAKES_OPEN = 1 << 5,
       DF_TAKES_WRITE = 1 << 6,
       DF_TAKES_DATA = 1 << 7,
       DF_TAKES_LINK = 1 << 8, /* data that are cut to the room there is */
       DF_TAKES_STATFS = 1 << 9,
       DF_TAKES_XATTR = 1 << 10,
       DF_TAKES_LOCK = 1 << 11,
       DF_TAKES_IOCTL = 1 << 12,
       DF_TAKES_POLL = 1 << 13,
       DF_TAKES_LSEEK = 1 << 14,
       DF_TAKES_STATX = 1 << 15,
       DF_TAKES_PLACE = 1 << 16, /* data, or where they are lent */
};

enum {
    DF_REQUEST_RUNNING,
    DF_REQUEST_REPLIED,
    DF_REQUEST_AWAITED,
    DF_REQUEST_DESERTED, /* no reply will come: host/turns.h */
}; /* fuse_req.state */

struct df_attr_reply {
    struct stat st;
    double timeout; /* seconds */
};

struct df_statx_reply {
    struct df_statx found;
    double timeout; /* seconds */
};

/* Lives on the stack of the thread that makes the call. `state` says whose it is: the plugin's
 * until it has replied. */
struct fuse_req {
    struct df_lowlevel *lane;
    const struct df_caller *caller; /* NULL: on nobody's behalf */
    const void *thread;             /* whose stack it is on; see df_request_here() */
    _Atomic uint32_t state;         /* futex */
    uint32_t takes;                 /* DF_TAKES_* */
    struct fuse_ctx ctx;
    ssize_t result; /* count, 0 or negative errno; written before state */
    union {         /* where the reply goes */
        struct df_node_found *found;
        struct df_attr_reply *attr;
        struct df_statx_reply *statx;
        struct statvfs *statfs;
        struct flock *lock;
        struct iovec *iov; /* data; used up by the reply */
    };
    int iovcnt;
    const char *lent;          /* DF_TAKES_PLACE: where the data lie, if they do */
    size_t room;               /* bytes of data that the request takes */
    struct fuse_file_info *fi; /* OPEN, CREATE */
    union {
        uint64_t untouched; /* 0: by signals */
        struct {
            struct df_node_lock interrupt_lock; /* protects the function, also while it runs */
            bool hears;               /* request.c is told of the caller's signals, and keeps: */
            _Atomic bool interrupted; /* there was one */
        };
    };
    fuse_interrupt_func_t interrupt_func;
    void *interrupt_data;
};

/* Not the thread's number but an address that only it has: no system call. */
extern _Thread_local char df_request_mark __attribute__((visibility("hidden")));

static inline const void *df_request_here(void)
{
    return &df_request_mark;
}

_Static_assert(offsetof(struct df_caller, gid) == offsetof(struct fuse_ctx, gid) &&
                   offsetof(struct df_caller, pid) == offsetof(struct fuse_ctx, pid) &&
                   offsetof(struct df_caller, umask) == offsetof(struct fuse_ctx, umask),
               "a caller begins like a fuse_ctx");

static inline void df_request_begin(struct fuse_req *req, struct df_lowlevel *lane,
                                    const struct df_call *call, uint32_t takes)
{
    req->lane = lane;
    req->caller = call->caller;
    req->thread = df_request_here();
    atomic_store_explicit(&req->state, DF_REQUEST_RUNNING, memory_order_relaxed);
    req->takes = takes;
    req->untouched = 0;
    req->interrupt_func = NULL;
    memcpy(&req->ctx, call->caller, sizeof(req->ctx));
}

/* Sleeps until there is a reply. */
void df_request_await(struct fuse_req *req);

/* Ends what df_req_interrupt_func() and its like have begun. */
void df_request_hear_no_more(struct fuse_req *req);

static inline ssize_t df_request_end(struct fuse_req *req)
{
    if (DF_UNLIKELY(atomic_load_explicit(&req->state, memory_order_acquire) != DF_REQUEST_REPLIED))
        df_request_await(req);
    if (DF_UNLIKELY(req->hears))
        df_request_hear_no_more(req);
    return req->result;
}

static inline void df_request_turn(struct df_lowlevel *lane)
{
    if (DF_UNLIKELY(lane->serial))
        df_serial_enter(&lane->serial_lock);
}

static inline void df_request_turn_over(struct df_lowlevel *lane)
{
    if (DF_UNLIKELY(lane->serial))
        df_serial_leave(&lane->serial_lock);
}

/* Sends a request that has begun and returns its result: DF_REQUEST(&req, unlink, id, name). */
#define DF_REQUEST(req, op, ...) DF_REQUEST_OF(req, ops.op, __VA_ARGS__)

/* The same on behalf of an open file, where it may wait for an event: df_gate_rest(). */
#define DF_REQUEST_AT_REST(call, req, op, ...)                                                     \
    (df_gate_rest((call)->thread), df_request_rise(call, DF_REQUEST(req, op, __VA_ARGS__)))

static inline ssize_t df_request_rise(const struct df_call *call, ssize_t result)
{
    df_gate_rise(call->thread);
    return result;
}

/* The same for an operation that `ops` has not: DF_REQUEST_OF(&req, later.statx, ...). */
#define DF_REQUEST_OF(req, op, ...)                                                                \
    (df_request_turn((req)->lane), (req)->lane->op((req), __VA_ARGS__),                            \
     df_request_turn_over((req)->lane), df_request_end(req))

#endif
