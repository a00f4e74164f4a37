/*
 * private.h - between writeback.c (what is kept, and how it is handed over) and the ops: data.c
 * (reading and writing), change.c (what goes by bytes or size another way) and ops.c (the rest, and
 * their table).
 */
#ifndef DF_WRITEBACK_PRIVATE_H
#define DF_WRITEBACK_PRIVATE_H

#include "core/call.h"
#include "writeback/writeback.h"

#define DF_INODE_BUCKETS 1024 /* a power of two */

struct df_inode;

/* An open file description. */
struct df_wfile {
    struct df_file *file;
    struct df_inode *inode;
    bool writes;           /* opened for writing */
    bool through;          /* direct_io, or no file that has pages */
    bool unflushed;        /* the plugin need not hear of a close */
    uint32_t seen;         /* errors of the inode that fsync has told by it; under its lock, as */
    uint32_t closed;       /* those that a close has told, or fsync */
    struct df_wfile *next; /* of the inode; under its lock */
};

/* An object that is open. */
struct df_inode {
    uint64_t body;         /* df_file.body; fixed */
    uint32_t refs;         /* under the mount's lock, as what follows */
    struct df_inode *next; /* in its bucket */
    struct df_inode *next_owned, *previous_owned;
    ino_t ino; /* as stat shows it; while owned */

    pthread_mutex_t lock; /* protects what follows */
    struct df_wfile *files;
    uint32_t errors; /* late writes that have failed, counted */
    uint32_t told;   /* of these, until fsync of some description last told one, */
    uint32_t closed; /* or a close */
    int error;       /* the last one's */
    struct df_dirty dirty;
    off_t size; /* while owned, as what follows */
    struct timespec modified;
    _Atomic bool owned; /* changed under both locks */
    int64_t since;      /* ns, CLOCK_MONOTONIC: owned; under the mount's lock */
};

struct df_writeback {
    struct df_fs fs;
    struct df_fs *below;
    struct df_ops table;
    struct df_writeback_server server;
    struct df_caller self; /* who hands over: nobody's own call, of no process */

    _Atomic uint32_t changing; /* changes under way that writes must not be kept beside */
    _Atomic uint64_t changed;  /* those that have ended */
    _Atomic uint64_t handed;   /* inodes that were handed over, counted before they are none's */
    _Atomic uint32_t owned;    /* inodes */

    pthread_mutex_t lock; /* of the tables */
    struct df_inode *buckets[DF_INODE_BUCKETS];
    struct df_inode *first_owned;

    pthread_t thread;
    pthread_mutex_t waking; /* protects these */
    pthread_cond_t wake;
    bool hurry, ending;
};

static inline struct df_writeback *df_writeback_of(struct df_fs *fs)
{
    return (struct df_writeback *)fs;
}

/* NULL: a file of which nothing can be kept. */
static inline struct df_wfile *df_wfile_of(const struct df_file *file)
{
    return file ? file->kept : NULL;
}

/* An op of the file system below, out of an op of `wb`. */
#define DF_BELOW(name, ...) df_call_result(call, wb->below->ops->name(wb->below, call, __VA_ARGS__))

/* ---- inodes ---- */

/* With a reference. NULL: no memory. */
struct df_inode *df_inode_get(struct df_writeback *wb, uint64_t body);
void df_inode_put(struct df_writeback *wb, struct df_inode *inode);

/* One that stat shows with that number and that has been owned since then or for longer, with a
 * reference, or NULL. */
struct df_inode *df_inode_owned(struct df_writeback *wb, ino_t ino, int64_t since);

/* Under its lock: something is kept of it from now on. */
void df_inode_own(struct df_writeback *wb, struct df_inode *inode, const struct stat *st);

/* Under its lock: what is kept was never answered for, and is forgotten. */
void df_inode_drop(struct df_writeback *wb, struct df_inode *inode);

/* Under its lock: all of it is the file system's again when this returns. Errors are counted. */
void df_inode_hand_over(struct df_writeback *wb, struct df_thread *thread, struct df_inode *inode);

/* The same, with the lock taken. */
void df_inode_clean(struct df_writeback *wb, struct df_thread *thread, struct df_inode *inode);

/* Under its lock: the error that this description has not told yet, or 0. */
int df_inode_error(struct df_wfile *wfile);

/* The same for a close, of a descriptor or by the end of a process, where nobody may listen: fsync
 * tells it all the same, as on Linux (fuse_flush() there, and its two ways to keep an error). */
int df_inode_error_at_close(struct df_wfile *wfile);

/* ---- announced changes: change.c ---- */

/* Writes of the mount go through from here on. What was kept before is handed over by who looks
 * for it after this. */
void df_writeback_begin_change(struct df_writeback *wb);
void df_writeback_end_change(struct df_writeback *wb);

/* Hands over the file of that name, if it is kept. */
void df_writeback_clean_named(struct df_writeback *wb, struct df_call *call,
                              const struct df_where *where);

/* ---- the ops, as core/ops.h has them ---- */

int df_writeback_getattr(struct df_fs *fs, struct df_call *call, const struct df_where *where,
                         struct stat *st);
int df_writeback_setattr(struct df_fs *fs, struct df_call *call, const struct df_where *where,
                         const struct df_setattr *set, struct stat *st);
int df_writeback_statx(struct df_fs *fs, struct df_call *call, const struct df_where *where,
                       struct df_statx *out);
off_t df_writeback_lseek(struct df_fs *fs, struct df_call *call, struct df_file *file, off_t offset,
                         int whence);
int df_writeback_fallocate(struct df_fs *fs, struct df_call *call, struct df_file *file, int mode,
                           off_t offset, off_t length);
ssize_t df_writeback_copy_file_range(struct df_fs *fs, struct df_call *call, struct df_file *in,
                                     off_t offset_in, struct df_file *out, off_t offset_out,
                                     size_t size, unsigned flags);
int df_writeback_ioctl(struct df_fs *fs, struct df_call *call, struct df_file *file,
                       unsigned long request, void *arg);

/* data.c */
ssize_t df_writeback_read(struct df_fs *fs, struct df_call *call, struct df_file *file,
                          const struct iovec *iov, int iovcnt, off_t offset);
int df_writeback_read_batch(struct df_fs *fs, struct df_call *call, struct df_extent *extents,
                            size_t count);
ssize_t df_writeback_write(struct df_fs *fs, struct df_call *call, struct df_file *file,
                           const struct iovec *iov, int iovcnt, off_t *offset);

extern const struct df_ops df_writeback_ops;

#endif
