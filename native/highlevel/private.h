/*
 * private.h - what the files of the path lane share.
 *
 *   highlevel.c        life: new, init, destroy; the table of ops
 *   walk.c   from a df_where to a verified path
 *   look.c   what stands at a path: cache or plugin; permission
 *   ask.h    the plugin's getattr, inline
 *   attr.c   getattr, setattr, access, readlink, statfs
 *   xattr.c  extended attributes
 *   open.c   open, create, flush, release
 *   io.c     read, lseek, fsync; write.c: write, fallocate, copy_file_range
 *   file.c   what else an open file can do: locks, ioctl, poll
 *   name.c   making and removing names; rename.c: moving them
 *   dir.c    reading directories
 *
 * An op runs as: enter a frame (context, serial lock), walk, ask the plugin, tell the cache, leave.
 * Lock order: serial, then those of open_paths.h, then name_turn.h. The plugin runs under serial,
 * name_turn.h and whatever of open_paths.h says so.
 */
#ifndef DF_HIGHLEVEL_PRIVATE_H
#define DF_HIGHLEVEL_PRIVATE_H

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "core/call.h"
#include "core/clock.h"
#include "core/export.h"
#include "core/file.h"
#include "highlevel/highlevel.h"
#include "host/on_stack.h"
#include "paths/entry_cache.h"
#include "paths/name_turn.h"
#include "paths/open_paths.h"

#define DF_NAME_MAX    255         /* bytes in a component */
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
    bool plus;         /* readdir with attributes is worth asking for */
    bool checks_names; /* the plugin does, as Linux would: docs/decisions/014 */
    int (*getattr_at)(struct fuse_file_info *directory, const char *name,
                      struct stat *st); /* or NULL: likewise */
    bool asks_at_once; /* no cache would answer before getattr_at nor keep more, nobody waits */
    bool initialised;  /* ops->init has run, so ops->destroy is due */
    uint32_t fmask;    /* instead of config.umask for files, if not 0 */
    uint32_t dmask;    /* for directories */
    bool needs_paths;  /* chmod, chown and utimens get a path, whatever nullpath_ok says */

    const struct df_session *session;
    struct df_plugin *plugin;
    struct fuse *fuse;
    void *private_data;

    _Atomic uint32_t missing; /* DF_MISSING_* */
    _Atomic uint32_t hide_count;
    pthread_mutex_t serial_lock; /* around every op when `serial` */

    struct df_entry_cache cache;
    struct df_open_paths open_paths;
    struct df_name_turns turns;
};

static inline struct df_highlevel *df_highlevel_of(struct df_fs *fs)
{
    return (struct df_highlevel *)fs;
}

/* ---- frames ---- */

/* One op of ours on this thread: what fuse_get_context() shows, and what the op needs throughout.
 */
struct df_frame {
    struct df_on_stack stacked; /* first: df_frame_of() */
    struct fuse_context context;
    struct df_highlevel *hl;
    struct df_call *call;
    const struct df_caller *caller;
    uint64_t now;  /* ns of CLOCK_MONOTONIC_COARSE, read when first needed; else 0 */
    uint32_t held; /* nodes of open_paths.h that this thread has read-locked */
    bool writes;   /* it has some write-locked, or its turn in a directory (name_turn.h) */
    bool in_turn;  /* this op has its turn */
};

/* The attributes that are kept answer the call. */
static inline bool df_frame_believes(const struct df_frame *frame, const struct df_entry *entry)
{
    return entry->attributes || (DF_UNLIKELY(frame->call->of_content) && entry->lasting);
}

/* Only this lane keeps such records. NULL stays NULL. */
static inline struct df_frame *df_frame_of(struct df_on_stack *record)
{
    return (struct df_frame *)record;
}

static inline struct df_frame *df_frame_outside(const struct df_frame *frame)
{
    return df_frame_of(frame->stacked.outer);
}

static inline void df_frame_enter(struct df_frame *frame, struct df_highlevel *hl,
                                  struct df_call *call)
{
    const struct df_caller *caller = call->caller;
    const struct df_frame *outer;

    frame->context = (struct fuse_context){
        .fuse = hl->fuse,
        .uid = caller->uid,
        .gid = caller->gid,
        .pid = caller->pid,
        .private_data = hl->private_data,
        .umask = caller->umask,
    };
    frame->hl = hl;
    frame->call = call;
    frame->caller = caller;
    frame->now = 0;
    outer = df_frame_of(df_on_stack);
    frame->held = outer ? outer->held : 0;
    frame->writes = outer && outer->writes;
    frame->in_turn = false;
    if (DF_UNLIKELY(hl->serial))
        pthread_mutex_lock(&hl->serial_lock);
    df_on_stack_push(&frame->stacked);
}

static inline void df_frame_leave(struct df_frame *frame)
{
    df_on_stack_pop(&frame->stacked);
    if (DF_UNLIKELY(frame->hl->serial))
        pthread_mutex_unlock(&frame->hl->serial_lock);
}

static inline void df_frame_clock(struct df_frame *frame)
{
    if (!frame->now && frame->hl->caches)
        frame->now = (uint64_t)df_clock_coarse();
}

/* Read-locks a node's path, NULL when it is gone; passes by waiting writers when the thread holds
 * another already. */
static inline const char *df_frame_hold(struct df_frame *frame, struct df_open_path *node)
{
    return df_open_path_hold(node, frame->held++ == 0);
}

static inline void df_frame_unhold(struct df_frame *frame, struct df_open_path *node)
{
    frame->held--;
    df_open_path_unhold(node);
}

/* -EACCES for those whom the kernel keeps out of a mount without allow_other. */
static inline int df_frame_admit(const struct df_frame *frame)
{
    const struct df_highlevel *hl = frame->hl;
    const struct df_caller *caller = frame->caller;

    if (hl->everybody ||
        (caller->uid == hl->session->owner_uid && caller->gid == hl->session->owner_gid) ||
        (hl->root_too && caller->uid == 0))
        return 0;
    return -EACCES;
}

/* The mode bits are ours to check for this caller. */
static inline bool df_frame_checks(const struct df_frame *frame)
{
    return frame->hl->check && !frame->caller->capable;
}

/* Names need not be looked at before the plugin makes, removes or moves them for this caller. */
static inline bool df_frame_goes_unseen(const struct df_frame *frame)
{
    return frame->hl->checks_names && !df_frame_checks(frame);
}

static inline uint64_t df_frame_until(const struct df_frame *frame, uint64_t timeout)
{
    if (timeout == 0)
        return 0;
    return timeout == DF_ENTRY_FOREVER ? timeout : frame->now + timeout;
}

static inline bool df_highlevel_lacks(const struct df_highlevel *hl, uint32_t missing)
{
    return atomic_load_explicit(&hl->missing, memory_order_relaxed) & missing;
}

static inline void df_highlevel_miss(struct df_highlevel *hl, uint32_t missing)
{
    atomic_fetch_or_explicit(&hl->missing, missing, memory_order_relaxed);
}

/*
 * An op that walks, done once more after ESTALE with nothing believed, as the kernel's
 * retry_estale() does.
 */
#define DF_RETRY_STALE(hl, expression)                                                             \
    ({                                                                                             \
        __typeof__(expression) result_;                                                            \
        for (int try_ = 0;; try_++) {                                                              \
            result_ = (expression);                                                                \
            if (DF_LIKELY(result_ != -ESTALE) || try_ == 1)                                        \
                break;                                                                             \
            df_entry_cache_flush(&(hl)->cache);                                                    \
        }                                                                                          \
        result_;                                                                                   \
    })

/* A whole op that walks: `expression` in a frame of its own, which it calls `frame`. */
#define DF_IN_FRAME(fs, call, expression)                                                          \
    ({                                                                                             \
        struct df_frame frame;                                                                     \
        df_frame_enter(&frame, df_highlevel_of(fs), call);                                         \
        __auto_type outcome_ = DF_RETRY_STALE(frame.hl, expression);                               \
        df_frame_leave(&frame);                                                                    \
        outcome_;                                                                                  \
    })

/* A function that stands between a hot op and the plugin, and is no frame of its own: each frame
 * that is on the stack during a plugin's system call costs a mispredicted return where the kernel
 * guards its own returns (safe RET, RSB filling). */
#define DF_FLAT inline __attribute__((always_inline))

/* ---- open files: df_file.host[] ---- */

enum {
    DF_HANDLE_PLUGIN = 1 << 0,  /* the plugin's open, create or opendir has made it */
    DF_HANDLE_RELEASE = 1 << 1, /* release or releasedir is due: not after ENOSYS or with O_PATH */
    DF_HANDLE_COUNTED = 1 << 2, /* is in its node's `opens` */
    DF_HANDLE_PATH = 1 << 3,    /* O_PATH: names an object, no more */
    DF_HANDLE_FLOCKED = 1 << 4, /* flock(2) was handed to the plugin */
    DF_HANDLE_STRIPS = 1 << 5,  /* the first write takes setuid and setgid away */
};

/* Laid over the host words of a df_file; zero before open. */
struct df_handle {
    uint64_t fh; /* the plugin's */
    struct df_open_path *node;
    _Atomic uint32_t bits;      /* DF_HANDLE_*; the last two change while it is open */
    int32_t flags;              /* as the plugin saw them in open */
    _Atomic off_t vouched;      /* a size that getattr told since it was opened; 0: none yet */
    _Atomic(void *) attachment; /* struct df_dirstream or df_pollnode, made when needed */
};

_Static_assert(sizeof(struct df_handle) <= DF_FILE_HOST_WORDS * sizeof(uint64_t), "fits");

static inline struct df_handle *df_handle_of(struct df_file *file)
{
    return (struct df_handle *)file->host;
}

/* A program built with the longer structure may write all of it. */
union df_file_info {
    struct fuse_file_info info;
    char room[DF_FILE_INFO_4];
};

/* Status flags that fcntl(2) can change: the open file description has the present ones. */
#define DF_SETTABLE_FLAGS (O_APPEND | O_NONBLOCK | O_DIRECT | O_NOATIME | O_ASYNC)

/* A copy for one operation: what the plugin writes into it is forgotten. */
static inline void df_handle_info(const struct df_frame *frame, struct df_file *file,
                                  union df_file_info *fi)
{
    const struct df_handle *handle = df_handle_of(file);
    int flags = atomic_load_explicit(&file->flags, memory_order_relaxed);

    memset(fi, 0, sizeof(*fi));
    fi->info.flags = (handle->flags & ~DF_SETTABLE_FLAGS) | (flags & DF_SETTABLE_FLAGS);
    fi->info.fh = handle->fh;
    fi->info.lock_owner = frame->caller->lock_owner;
}

/* The path to tell the plugin beside a handle: NULL with nullpath_ok or when it is gone. Ended by
 * df_handle_unhold(). */
static inline const char *df_handle_hold(struct df_frame *frame, struct df_file *file)
{
    if (frame->hl->config.nullpath_ok)
        return NULL;
    return df_frame_hold(frame, df_handle_of(file)->node);
}

static inline void df_handle_unhold(struct df_frame *frame, struct df_file *file)
{
    if (!frame->hl->config.nullpath_ok)
        df_frame_unhold(frame, df_handle_of(file)->node);
}

/* A plugin that needs a path is not called without one, as after a removal with hard_remove. */
static inline bool df_handle_lost(const struct df_frame *frame, const char *path)
{
    return DF_UNLIKELY(!path) && !frame->hl->config.nullpath_ok;
}

/* The same for chmod, chown and utimens, which in FUSE 2 take no handle: then `by_path` is true. */
static inline const char *df_handle_hold_to_set(struct df_frame *frame, struct df_file *file,
                                                bool by_path)
{
    if (frame->hl->config.nullpath_ok && !by_path)
        return NULL;
    return df_frame_hold(frame, df_handle_of(file)->node);
}

static inline void df_handle_unhold_to_set(struct df_frame *frame, struct df_file *file,
                                           bool by_path)
{
    if (!frame->hl->config.nullpath_ok || by_path)
        df_frame_unhold(frame, df_handle_of(file)->node);
}

/* An open file has changed: its cached attributes are void. */
static inline void df_handle_changed(const struct df_frame *frame, struct df_file *file)
{
    if (frame->hl->attr_ns)
        df_entry_cache_forget_attributes(&frame->hl->cache,
                                         df_open_path_key(df_handle_of(file)->node));
}

/* It was read: its times are no longer known. On a mount that is read-only nobody changes them. */
static inline void df_highlevel_accessed(struct df_highlevel *hl, struct df_path_hash key)
{
    if (hl->attr_ns && !hl->session->readonly)
        df_entry_cache_accessed(&hl->cache, key);
}

/* ---- walking ---- */

enum {                          /* how to walk */
       DF_WALK_PARENT = 1 << 0, /* the last component is a name to make, remove or move: not looked
                                   at, not followed */
       DF_WALK_ABSENT = 1 << 1, /* that the object does not exist is an answer, not an error */
       DF_WALK_STAT = 1 << 2,   /* *place->st is wanted */
       DF_WALK_CREATE = 1 << 3, /* a trailing slash means EISDIR */
};

/* Where a name leads. */
struct df_place {
    const char *path; /* canonical; in `buf`, in the df_where, or its node's own */
    uint32_t len;
    uint32_t parent_len; /* of its directory's path, a prefix of `path`; 1: the root */
    bool special;        /* "/", ".." or an open file itself: no name that is made or removed, nor
                            looked up in its directory */
    struct df_path_hash key;
    uint32_t changes;          /* with DF_WALK_CREATE: of the directory, before the last look */
    uint64_t parent_expiry;    /* until when the parent is verified; 0: it is not */
    struct df_open_path *held; /* read-locked until df_walk_end() */
    struct df_file *directory; /* open, the object is in it and may be asked for by it; or NULL */
    uint32_t name_len;         /* then: of the path's last component */

    struct df_entry entry; /* kind PRESENT or ABSENT after a lookup, mode and ino */
    bool asked;            /* the plugin was asked in this walk, nothing came from the cache */
    struct stat *st;       /* attributes, with DF_WALK_STAT; &own or the caller's */
    struct stat own;
    char buf[PATH_MAX];
};

/*
 * Resolves `where`, verifying what is not verified yet. With an empty name the place is the open
 * file's path. Returns 0, a negative errno (those common to all ops, see ops.h), or DF_LEAVE; in
 * each case to be followed by df_walk_end().
 * st: where attributes go with DF_WALK_STAT; NULL: place->own.
 */
int df_walk(struct df_frame *frame, const struct df_where *where, unsigned how,
            struct df_place *place, struct stat *st);
void df_walk_end(struct df_frame *frame, struct df_place *place);

/* Releases the base already; the place's path stays. */
void df_walk_let_go(struct df_frame *frame, struct df_place *place);

/* Looks at the place's object: cache, or plugin. entry.kind becomes PRESENT or ABSENT. */
int df_walk_look(struct df_frame *frame, struct df_place *place, bool attributes);

/* What the cache knows of the place, unasked: entry.kind may stay UNKNOWN. */
static inline void df_walk_recall(struct df_frame *frame, struct df_place *place)
{
    place->asked = false;
    df_entry_cache_look(&frame->hl->cache, place->key, frame->now, &place->entry);
}

/* The attributes of the place's directory, believed for their time-out. */
int df_walk_stat_parent(struct df_frame *frame, const struct df_place *place, struct stat *st);

/* The place's object was just made, or changed altogether: looks again, past the cache. `fi`: its
 * handle, or NULL. -ENOENT when nothing is there. */
int df_walk_learn(struct df_frame *frame, struct df_place *place, struct fuse_file_info *fi);

/* Permission to do `mask` (R_OK ...) to the place's object: when modes are ours to check, or in any
 * case. Reads *place->st. */
int df_walk_may(struct df_frame *frame, struct df_place *place, int mask);
int df_walk_permit(struct df_frame *frame, struct df_place *place, int mask);

/* df_walk_may() for a directory on the way. */
int df_walk_may_directory(struct df_frame *frame, const char *path, uint32_t len, int mask);

/* Permission to make a name in the place's directory, likewise. */
int df_walk_may_create(struct df_frame *frame, const struct df_place *place);

/* Configured owner and mode in place of the plugin's. */
void df_highlevel_override(const struct df_frame *frame, struct stat *st);

/* The inode number of a path, without use_ino. */
static inline ino_t df_highlevel_ino(struct df_highlevel *hl, const char *path, uint32_t len,
                                     struct df_path_hash key)
{
    ino_t number = df_number_of(&hl->open_paths.numbers, path, len);
    return df_open_paths_ino(&hl->open_paths, number, key);
}

/* The plugin's answer as stat(2) reports it; -EIO when it makes no sense. `node`: of the open file
 * it was asked of, or NULL: of the path. */
static inline int df_highlevel_fix_stat(const struct df_frame *frame, struct df_open_path *node,
                                        const char *path, uint32_t len, struct df_path_hash key,
                                        struct stat *st)
{
    struct df_highlevel *hl = frame->hl;

    if (DF_UNLIKELY(!(st->st_mode & S_IFMT) || st->st_size < 0))
        return -EIO;
    if (!hl->config.use_ino)
        st->st_ino = node ? node->ino : df_highlevel_ino(hl, path, len, key);
    if (st->st_blksize == 0)
        st->st_blksize = 4096;
    if (DF_UNLIKELY(hl->overrides))
        df_highlevel_override(frame, st);
    return 0;
}

static inline struct df_path_hash df_place_parent_key(const struct df_frame *frame,
                                                      const struct df_place *place)
{
    return df_entry_cache_key(&frame->hl->cache, place->path, place->parent_len);
}

/* ---- whose turn it is ---- */

/* Not with one operation at a time in any case, nor for a plugin that checks names itself. */
static inline bool df_highlevel_takes_turns(const struct df_highlevel *hl)
{
    return !hl->serial && !hl->checks_names;
}

/* Waits until no other operation changes names, looks them up or lists them in the directory of
 * `place`, or in those with the given keys, until df_frame_turn_over(). Takes nothing where nobody
 * needs it: see above, and inside of another operation on the same mount. */
void df_frame_turn(struct df_frame *frame, struct df_name_turn *turn, const struct df_place *place);
void df_frame_turn_of(struct df_frame *frame, struct df_name_turn *turn,
                      const struct df_path_hash *directories, int count);

/* The same of one directory for a lookup or a listing: beside others of these if the plugin wants
 * that. */
void df_frame_turn_to_look(struct df_frame *frame, struct df_name_turn *turn,
                           struct df_path_hash directory);

void df_frame_turn_over(struct df_frame *frame, struct df_name_turn *turn);

/* Whether these take anything, for who would rather not make the keys. */
bool df_frame_takes_turns(const struct df_frame *frame);

#define DF_PATHS_STILL UINT64_MAX /* df_changes.mark; else how many renames had ended */

/* An op that changes names begins: in which directories is told to who wants to know
 * (core/changes.h). `still`: under rename_lock, so that paths stay where they are meanwhile. */
static inline void df_frame_tells(const struct df_frame *frame, bool still)
{
    struct df_changes *changes = frame->call->changes;

    if (DF_LIKELY(!changes))
        return;
    changes->listings = true;
    changes->mark = still ? DF_PATHS_STILL : atomic_load(&frame->hl->open_paths.renames);
}

/* This one's listing changes, too: it is removed, or moved. */
static inline void df_frame_tell_node(const struct df_frame *frame, const struct df_open_path *node)
{
    if (DF_UNLIKELY(frame->call->changes))
        df_changes_directory(frame->call->changes, node->serial);
}

/* A name was made or removed: entry and directory are not what they were. */
void df_place_changed(const struct df_frame *frame, const struct df_place *place);

/* The plugin has made the place's object, which was looked at (or recalled) before: its name is
 * believed until `expiry`, as the kernel believes the answer to MKDIR. ino 0: not known. */
void df_place_made(const struct df_frame *frame, const struct df_place *place, mode_t mode,
                   ino_t ino, uint64_t expiry);

/* Passes on a plugin's answer about the place; that it is gone is remembered. */
int df_place_result(const struct df_frame *frame, const struct df_place *place, int result);

/* The mode of an object that the caller makes. */
static inline mode_t df_frame_mode(const struct df_frame *frame, mode_t mode)
{
    return frame->hl->want & FUSE_CAP_DONT_MASK ? mode : mode & ~frame->caller->umask;
}

/* Takes setuid and setgid from what somebody else than root writes to or truncates, unless the
 * plugin does (FUSE_CAP_HANDLE_KILLPRIV). */
static inline bool df_frame_strips(const struct df_frame *frame)
{
    return !frame->caller->capable && !(frame->hl->want & FUSE_CAP_HANDLE_KILLPRIV);
}

/* Attributes of an open file through its handle. */
int df_highlevel_stat_file(struct df_frame *frame, struct df_file *file, struct stat *st);

/* The size of an open file that is believed for its time, without asking the plugin; a read that
 * has aged the file's times has not changed it. False: none is. */
bool df_highlevel_kept_size(struct df_frame *frame, struct df_file *file, off_t *size);

/* ---- the ops ---- */

int df_highlevel_getattr(struct df_fs *, struct df_call *, const struct df_where *, struct stat *);
int df_highlevel_statx(struct df_fs *, struct df_call *, const struct df_where *,
                       struct df_statx *);
int df_highlevel_setattr(struct df_fs *, struct df_call *, const struct df_where *,
                         const struct df_setattr *, struct stat *);
int df_highlevel_access(struct df_fs *, struct df_call *, const struct df_where *, int mask);
ssize_t df_highlevel_readlink(struct df_fs *, struct df_call *, const struct df_where *, char *,
                              size_t);
ssize_t df_highlevel_getxattr(struct df_fs *, struct df_call *, const struct df_where *,
                              const char *, void *, size_t);
ssize_t df_highlevel_listxattr(struct df_fs *, struct df_call *, const struct df_where *, char *,
                               size_t);
int df_highlevel_setxattr(struct df_fs *, struct df_call *, const struct df_where *, const char *,
                          const void *, size_t, int flags);
int df_highlevel_removexattr(struct df_fs *, struct df_call *, const struct df_where *,
                             const char *);
int df_highlevel_statfs(struct df_fs *, struct df_call *, const struct df_where *,
                        struct statvfs *);

int df_highlevel_mknod(struct df_fs *, struct df_call *, const struct df_where *, mode_t, dev_t);
int df_highlevel_mkdir(struct df_fs *, struct df_call *, const struct df_where *, mode_t);
int df_highlevel_symlink(struct df_fs *, struct df_call *, const char *, const struct df_where *);
int df_highlevel_unlink(struct df_fs *, struct df_call *, const struct df_where *);
int df_highlevel_rmdir(struct df_fs *, struct df_call *, const struct df_where *);
int df_highlevel_rename(struct df_fs *, struct df_call *, const struct df_where *,
                        const struct df_where *, unsigned flags);
int df_highlevel_link(struct df_fs *, struct df_call *, const struct df_where *,
                      const struct df_where *);

int df_highlevel_open(struct df_fs *, struct df_call *, const struct df_where *, struct df_file *,
                      int flags, mode_t);
ssize_t df_highlevel_path(struct df_fs *, struct df_call *, struct df_file *, char *, size_t);
int df_highlevel_tmpfile(struct df_fs *, struct df_call *, const struct df_where *,
                         struct df_file *, int flags, mode_t);
int df_highlevel_flush(struct df_fs *, struct df_call *, struct df_file *, uint64_t owner);
void df_highlevel_release(struct df_fs *, struct df_call *, struct df_file *);

ssize_t df_highlevel_read(struct df_fs *, struct df_call *, struct df_file *, const struct iovec *,
                          int, off_t);
ssize_t df_highlevel_write(struct df_fs *, struct df_call *, struct df_file *, const struct iovec *,
                           int, off_t *);
off_t df_highlevel_lseek(struct df_fs *, struct df_call *, struct df_file *, off_t, int whence);
int df_highlevel_fsync(struct df_fs *, struct df_call *, struct df_file *, bool datasync);
int df_highlevel_fallocate(struct df_fs *, struct df_call *, struct df_file *, int mode, off_t,
                           off_t);
ssize_t df_highlevel_copy_file_range(struct df_fs *, struct df_call *, struct df_file *, off_t,
                                     struct df_file *, off_t, size_t, unsigned flags);

int df_highlevel_readdir(struct df_fs *, struct df_call *, struct df_file *, off_t,
                         struct df_dirbuf *);
void df_highlevel_end_dirstream(struct df_file *);

int df_highlevel_ioctl(struct df_fs *, struct df_call *, struct df_file *, unsigned long request,
                       void *);
int df_highlevel_poll(struct df_fs *, struct df_call *, struct df_file *, int, struct df_wake *);
int df_highlevel_lock(struct df_fs *, struct df_call *, struct df_file *, struct df_lock *);
int df_highlevel_flock(struct df_fs *, struct df_call *, struct df_file *, int, uint64_t owner);

#endif
