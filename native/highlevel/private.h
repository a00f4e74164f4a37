/*
 * private.h - what the files of the path lane share: the file system itself, and the ops.
 *
 *   highlevel.c  life: new, init, destroy; the table of ops
 *   frame.h      an op under way on this thread; frame.c: its turn in a directory
 *   handle.h     an open file
 *   place.h      where a name leads; place.c: what an operation there has changed
 *   walk.c       from a df_where to a verified path
 *   look.c       what stands at a path: cache or plugin; permission
 *   ask.h        the plugin's getattr, inline
 *   attr.c       getattr, statx, access, readlink, statfs; setattr.c: setattr
 *   xattr.c      extended attributes
 *   open.c       open what exists; create.c: what does not; close.c: flush, release
 *   io.c         read, lseek, fsync; write.c: write, fallocate, copy_file_range
 *   file.c       what else an open file can do: locks, ioctl, poll
 *   name.c       making and removing names; rename.c: moving them
 *   dir.c        reading directories
 *
 * An op runs as: enter a frame (context, serial lock), walk, ask the plugin, tell the cache, leave.
 * Lock order: serial, then those of open_paths.h, then name_turn.h. The plugin runs under serial,
 * name_turn.h and whatever of open_paths.h says so.
 */
#ifndef DF_HIGHLEVEL_PRIVATE_H
#define DF_HIGHLEVEL_PRIVATE_H

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "core/call.h"
#include "core/export.h"
#include "core/file.h"
#include "highlevel/highlevel.h"
#include "host/answer.h"
#include "host/serial.h"
#include "paths/entry_cache.h"
#include "paths/name_turn.h"
#include "paths/open_paths.h"

#define DF_REQUEST_MAX (1u << 20)  /* the kernel never asks for more at once (256 pages) */
#define DF_UNKNOWN_INO 0xffffffffu /* libfuse's FUSE_UNKNOWN_INO: "no number given" */

/* Operations that answered ENOSYS and are not asked again, as in the kernel's struct fuse_conn. */
enum {
    DF_MISSING_OPEN = 1 << 0,
    DF_MISSING_OPENDIR = 1 << 1,
    DF_MISSING_CREATE = 1 << 2,
    DF_MISSING_FLUSH = 1 << 3,
    DF_MISSING_FSYNC = 1 << 4,
    DF_MISSING_FSYNCDIR = 1 << 5,
    DF_MISSING_ACCESS = 1 << 6,
    DF_MISSING_LSEEK = 1 << 7,
    DF_MISSING_POLL = 1 << 8,
    DF_MISSING_FALLOCATE = 1 << 9,
    DF_MISSING_COPY = 1 << 10,
    DF_MISSING_GETXATTR = 1 << 11,
    DF_MISSING_LISTXATTR = 1 << 12,
    DF_MISSING_SETXATTR = 1 << 13,
    DF_MISSING_REMOVEXATTR = 1 << 14,
    DF_MISSING_STATX = 1 << 15,
};

/* All fields but the atomic ones and those with locks of their own are fixed after init. */
struct df_highlevel {
    struct df_fs fs; /* first */
    struct fuse_operations ops;
    df_highlevel_statx_op *statx; /* behind them in libfuse 3.18; NULL: missing */
    union {
        struct fuse_config config;
        char reserve[sizeof(struct fuse_config) + DF_HIGHLEVEL_CONFIG_RESERVE];
    };

    uint64_t entry_ns; /* time-outs, nanoseconds; DF_ENTRY_FOREVER: no end */
    uint64_t attr_ns;
    uint64_t negative_ns;
    uint32_t max_read; /* bytes in one operation */
    uint32_t max_write;
    uint32_t want;     /* FUSE_CAP_* agreed on */
    bool serial;       /* one operation at a time */
    bool check;        /* default_permissions */
    bool everybody;    /* allow_other */
    bool root_too;     /* allow_root */
    bool overrides;    /* the configuration overrides uid, gid or mode */
    bool caches;       /* some time-out is not 0 */
    bool remembers;    /* or it counts that a name was known, be it for no time */
    bool checks_names; /* the plugin does, as Linux would: docs/decisions/014 */
    int (*getattr_at)(struct fuse_file_info *directory, const char *name,
                      struct stat *st); /* or NULL: likewise */
    bool asks_at_once; /* no cache would answer before getattr_at nor keep more, nobody waits */
    bool initialised;  /* ops->init has run, so ops->destroy is due */
    uint32_t fmask;    /* instead of config.umask for files, if not 0 */
    uint32_t dmask;    /* for directories */
    bool needs_paths;  /* chmod, chown and utimens get a path, whatever nullpath_ok says */
    bool bears_null;   /* a file that has no path any more is told as NULL; with nullpath_ok, too */

    const struct df_session *session;
    struct df_plugin *plugin;
    struct fuse *fuse;
    void *private_data;

    _Atomic bool plus;             /* readdir with attributes is worth asking for */
    _Atomic bool plus_for_numbers; /* or will be, if without them a name has no number */
    _Atomic uint32_t missing;      /* DF_MISSING_* */
    _Atomic uint32_t hide_count;
    struct df_serial serial_lock; /* around every op when `serial` */

    struct df_entry_cache cache;
    struct df_open_paths open_paths;
    struct df_name_turns turns;
};

static inline struct df_highlevel *df_highlevel_of(struct df_fs *fs)
{
    return (struct df_highlevel *)fs;
}

static inline bool df_highlevel_lacks(const struct df_highlevel *hl, uint32_t missing)
{
    return atomic_load_explicit(&hl->missing, memory_order_relaxed) & missing;
}

static inline void df_highlevel_miss(struct df_highlevel *hl, uint32_t missing)
{
    atomic_fetch_or_explicit(&hl->missing, missing, memory_order_relaxed);
}

/* Not with one operation at a time in any case, nor for a plugin that checks names itself. */
static inline bool df_highlevel_takes_turns(const struct df_highlevel *hl)
{
    return !hl->serial && !hl->checks_names;
}

/* An object was read: its times are no longer known. On a mount that is read-only nobody changes
 * them. */
static inline void df_highlevel_accessed(struct df_highlevel *hl, struct df_path_hash key)
{
    if (hl->attr_ns && !hl->session->readonly)
        df_entry_cache_accessed(&hl->cache, key);
}

/* ---- the ops (core/ops.h), all but advise and borrow, which the core answers ---- */

#define DF_OP_CALL(type, name, parameters, arguments, bytes) type df_highlevel_##name parameters;
#include "core/ops_calls.def"
#undef DF_OP_CALL
void df_highlevel_release(struct df_fs *fs, struct df_call *call, struct df_file *file);

#endif
