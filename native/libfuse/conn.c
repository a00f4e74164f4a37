/*
 * conn.c - command line options that override what a file system's init() finds in struct
 * fuse_conn_info: fuse_parse_conn_info_opts() and fuse_apply_conn_info_opts().
 */
#include <stddef.h>
#include <stdlib.h>

#include "libfuse/abi.h"

/* A flag of fuse_conn_info.want that an option asks for or away; libfuse's order, later wins. */
enum capability_choice {
    ASYNC_READ,
    SYNC_READ,
    ATOMIC_O_TRUNC,
    NO_POSIX_LOCK,
    NO_FLOCK,
    SPLICE_WRITE,
    NO_SPLICE_WRITE,
    SPLICE_MOVE,
    NO_SPLICE_MOVE,
    SPLICE_READ,
    NO_SPLICE_READ,
    AUTO_INVAL_DATA,
    NO_AUTO_INVAL_DATA,
    NO_READDIRPLUS,
    READDIRPLUS_AUTO_OFF,
    ASYNC_DIO,
    NO_ASYNC_DIO,
    WRITEBACK_CACHE,
    NO_WRITEBACK_CACHE,
    CHOICE_COUNT,
};

static const struct {
    unsigned capability; /* FUSE_CAP_* */
    bool want;
} choices[CHOICE_COUNT] = {
    [ASYNC_READ] = {FUSE_CAP_ASYNC_READ, true},
    [SYNC_READ] = {FUSE_CAP_ASYNC_READ, false},
    [ATOMIC_O_TRUNC] = {FUSE_CAP_ATOMIC_O_TRUNC, true},
    [NO_POSIX_LOCK] = {FUSE_CAP_POSIX_LOCKS, false},
    [NO_FLOCK] = {FUSE_CAP_FLOCK_LOCKS, false},
    [SPLICE_WRITE] = {FUSE_CAP_SPLICE_WRITE, true},
    [NO_SPLICE_WRITE] = {FUSE_CAP_SPLICE_WRITE, false},
    [SPLICE_MOVE] = {FUSE_CAP_SPLICE_MOVE, true},
    [NO_SPLICE_MOVE] = {FUSE_CAP_SPLICE_MOVE, false},
    [SPLICE_READ] = {FUSE_CAP_SPLICE_READ, true},
    [NO_SPLICE_READ] = {FUSE_CAP_SPLICE_READ, false},
    [AUTO_INVAL_DATA] = {FUSE_CAP_AUTO_INVAL_DATA, true},
    [NO_AUTO_INVAL_DATA] = {FUSE_CAP_AUTO_INVAL_DATA, false},
    [NO_READDIRPLUS] = {FUSE_CAP_READDIRPLUS, false},
    [READDIRPLUS_AUTO_OFF] = {FUSE_CAP_READDIRPLUS_AUTO, false},
    [ASYNC_DIO] = {FUSE_CAP_ASYNC_DIO, true},
    [NO_ASYNC_DIO] = {FUSE_CAP_ASYNC_DIO, false},
    [WRITEBACK_CACHE] = {FUSE_CAP_WRITEBACK_CACHE, true},
    [NO_WRITEBACK_CACHE] = {FUSE_CAP_WRITEBACK_CACHE, false},
};

struct limit {
    unsigned value;
    int given;
};

struct fuse_conn_info_opts {
    int chosen[CHOICE_COUNT];
    struct limit max_write;
    struct limit max_readahead;
    struct limit max_background;
    struct limit congestion_threshold;
    struct limit time_gran;
};

#define CHOOSE(template, choice, value)                                                            \
    {template, offsetof(struct fuse_conn_info_opts, chosen[choice]), value}
#define LIMIT(name)                                                                                \
    {#name "=%u", offsetof(struct fuse_conn_info_opts, name.value), 0},                            \
        {#name "=", offsetof(struct fuse_conn_info_opts, name.given), 1}

static const struct fuse_opt conn_opts[] = {
    LIMIT(max_write),
    LIMIT(max_readahead),
    LIMIT(max_background),
    LIMIT(congestion_threshold),
    LIMIT(time_gran),
    CHOOSE("async_read", ASYNC_READ, 1),
    CHOOSE("sync_read", SYNC_READ, 1),
    CHOOSE("atomic_o_trunc", ATOMIC_O_TRUNC, 1),
    CHOOSE("no_remote_lock", NO_POSIX_LOCK, 1),
    CHOOSE("no_remote_lock", NO_FLOCK, 1),
    CHOOSE("no_remote_posix_lock", NO_POSIX_LOCK, 1),
    CHOOSE("no_remote_flock", NO_FLOCK, 1),
    CHOOSE("splice_write", SPLICE_WRITE, 1),
    CHOOSE("no_splice_write", NO_SPLICE_WRITE, 1),
    CHOOSE("splice_move", SPLICE_MOVE, 1),
    CHOOSE("no_splice_move", NO_SPLICE_MOVE, 1),
    CHOOSE("splice_read", SPLICE_READ, 1),
    CHOOSE("no_splice_read", NO_SPLICE_READ, 1),
    CHOOSE("auto_inval_data", AUTO_INVAL_DATA, 1),
    CHOOSE("no_auto_inval_data", NO_AUTO_INVAL_DATA, 1),
    CHOOSE("readdirplus=no", NO_READDIRPLUS, 1),
    CHOOSE("readdirplus=yes", NO_READDIRPLUS, 0),
    CHOOSE("readdirplus=yes", READDIRPLUS_AUTO_OFF, 1),
    CHOOSE("readdirplus=auto", NO_READDIRPLUS, 0),
    CHOOSE("readdirplus=auto", READDIRPLUS_AUTO_OFF, 0),
    CHOOSE("async_dio", ASYNC_DIO, 1),
    CHOOSE("no_async_dio", NO_ASYNC_DIO, 1),
    CHOOSE("writeback_cache", WRITEBACK_CACHE, 1),
    CHOOSE("no_writeback_cache", NO_WRITEBACK_CACHE, 1),
    FUSE_OPT_END,
};

struct fuse_conn_info_opts *fuse_parse_conn_info_opts(struct fuse_args *args)
{
    struct fuse_conn_info_opts *opts = calloc(1, sizeof(*opts));
    if (!opts) {
        df_abi_no_memory();
        return NULL;
    }
    if (fuse_opt_parse(args, opts, conn_opts, NULL) == -1) {
        free(opts);
        return NULL;
    }
    return opts;
}

static void apply_limit(const struct limit *limit, unsigned *field)
{
    if (limit->given)
        *field = limit->value;
}

void fuse_apply_conn_info_opts(struct fuse_conn_info_opts *opts, struct fuse_conn_info *conn)
{
    apply_limit(&opts->max_write, &conn->max_write);
    apply_limit(&opts->max_readahead, &conn->max_readahead);
    apply_limit(&opts->max_background, &conn->max_background);
    apply_limit(&opts->congestion_threshold, &conn->congestion_threshold);
    apply_limit(&opts->time_gran, &conn->time_gran);
    for (int i = 0; i < CHOICE_COUNT; i++) {
        if (!opts->chosen[i])
            continue;
        if (choices[i].want)
            conn->want |= choices[i].capability;
        else
            conn->want &= ~choices[i].capability;
    }
}
