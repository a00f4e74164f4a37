/*
 * abi2.h - libfuse.so.2's structures as its programs have them, and how the translation to our
 * libfuse 3 ABI is laid out.
 *
 * libdf2.so.2 is a translator: everything is done by libdf3.so.3, behind functions that convert
 * arguments. C functions are called fuse2_<name> here (so that libfuse 3's headers, with which we
 * call, can be used) and exported as <name> in libfuse.so.2's symbol versions (EXPORT below).
 *
 *   operations.c  struct fuse_operations of FUSE 2 behind those of FUSE 3
 *   lowlevel.c    struct fuse_lowlevel_ops likewise; reply.c: its replies
 *   high.c        struct fuse: new, loop, destroy, main, setup
 *   channel.c     struct fuse_chan and struct fuse_session
 *   options.c     what FUSE 2 takes from the command line and FUSE 3 does not
 *   forward.c     what has not changed; versions.map: the symbols
 */
#ifndef DF_LIBFUSE2_ABI2_H
#define DF_LIBFUSE2_ABI2_H

#include <stdbool.h>
#include <utime.h>

#include "libfuse2/real.h"

/* Exports a function under a name and version of libfuse.so.2. Default versions have "@@". */
#define EXPORT(function, name) __asm__(".symver " #function "," name)

/* ---- structures of FUSE 2.9 ------------------------------------------------------------- */

struct fuse2_file_info {
    int flags;
    unsigned long fh_old; /* the handle of programs built against 2.2 */
    int writepage;
    unsigned direct_io : 1;
    unsigned keep_cache : 1;
    unsigned flush : 1;
    unsigned nonseekable : 1;
    unsigned flock_release : 1;
    unsigned padding : 27;
    uint64_t fh;
    uint64_t lock_owner;
};

struct fuse2_conn_info {
    unsigned proto_major;
    unsigned proto_minor;
    unsigned async_read;
    unsigned max_write;
    unsigned max_readahead;
    unsigned capable;
    unsigned want;
    unsigned max_background;
    unsigned congestion_threshold;
    unsigned reserved[23];
};

/* Capability bits 0 to 11 mean the same in both versions but bit 5, which FUSE 3 has always on. */
enum { FUSE2_CAP_MASK = 0xfff, FUSE2_CAP_BIG_WRITES = 1 << 5 };

typedef int (*fuse2_fill_dir_t)(void *buf, const char *name, const struct stat *st, off_t off);
typedef int (*fuse2_dirfil_t)(void *handle, const char *name, int type, ino_t ino);

struct fuse2_operations {
    int (*getattr)(const char *, struct stat *);
    int (*readlink)(const char *, char *, size_t);
    int (*getdir)(const char *, void *, fuse2_dirfil_t);
    int (*mknod)(const char *, mode_t, dev_t);
    int (*mkdir)(const char *, mode_t);
    int (*unlink)(const char *);
    int (*rmdir)(const char *);
    int (*symlink)(const char *, const char *);
    int (*rename)(const char *, const char *);
    int (*link)(const char *, const char *);
    int (*chmod)(const char *, mode_t);
    int (*chown)(const char *, uid_t, gid_t);
    int (*truncate)(const char *, off_t);
    int (*utime)(const char *, struct utimbuf *);
    int (*open)(const char *, struct fuse2_file_info *);
    int (*read)(const char *, char *, size_t, off_t, struct fuse2_file_info *);
    int (*write)(const char *, const char *, size_t, off_t, struct fuse2_file_info *);
    int (*statfs)(const char *, void *); /* struct statvfs; struct statfs before 2.5 */
    int (*flush)(const char *, struct fuse2_file_info *);
    int (*release)(const char *, struct fuse2_file_info *);
    int (*fsync)(const char *, int, struct fuse2_file_info *);
    int (*setxattr)(const char *, const char *, const char *, size_t, int);
    int (*getxattr)(const char *, const char *, char *, size_t);
    int (*listxattr)(const char *, char *, size_t);
    int (*removexattr)(const char *, const char *);
    int (*opendir)(const char *, struct fuse2_file_info *);
    int (*readdir)(const char *, void *, fuse2_fill_dir_t, off_t, struct fuse2_file_info *);
    int (*releasedir)(const char *, struct fuse2_file_info *);
    int (*fsyncdir)(const char *, int, struct fuse2_file_info *);
    void *(*init)(struct fuse2_conn_info *); /* no argument before 2.6 */
    void (*destroy)(void *);
    int (*access)(const char *, int);
    int (*create)(const char *, mode_t, struct fuse2_file_info *);
    int (*ftruncate)(const char *, off_t, struct fuse2_file_info *);
    int (*fgetattr)(const char *, struct stat *, struct fuse2_file_info *);
    int (*lock)(const char *, struct fuse2_file_info *, int, struct flock *);
    int (*utimens)(const char *, const struct timespec[2]);
    int (*bmap)(const char *, size_t, uint64_t *);
    unsigned flag_nullpath_ok : 1;
    unsigned flag_nopath : 1;
    unsigned flag_utime_omit_ok : 1;
    unsigned flag_reserved : 29;
    int (*ioctl)(const char *, int, void *, struct fuse2_file_info *, unsigned, void *);
    int (*poll)(const char *, struct fuse2_file_info *, struct fuse_pollhandle *, unsigned *);
    int (*write_buf)(const char *, struct fuse_bufvec *, off_t, struct fuse2_file_info *);
    int (*read_buf)(const char *, struct fuse_bufvec **, size_t, off_t, struct fuse2_file_info *);
    int (*flock)(const char *, struct fuse2_file_info *, int);
    int (*fallocate)(const char *, int, off_t, off_t, struct fuse2_file_info *);
};

struct fuse2_lowlevel_ops {
    void (*init)(void *, struct fuse2_conn_info *);
    void (*destroy)(void *);
    void (*lookup)(fuse_req_t, fuse_ino_t, const char *);
    void (*forget)(fuse_req_t, fuse_ino_t, unsigned long);
    void (*getattr)(fuse_req_t, fuse_ino_t, struct fuse2_file_info *);
    void (*setattr)(fuse_req_t, fuse_ino_t, struct stat *, int, struct fuse2_file_info *);
    void (*readlink)(fuse_req_t, fuse_ino_t);
    void (*mknod)(fuse_req_t, fuse_ino_t, const char *, mode_t, dev_t);
    void (*mkdir)(fuse_req_t, fuse_ino_t, const char *, mode_t);
    void (*unlink)(fuse_req_t, fuse_ino_t, const char *);
    void (*rmdir)(fuse_req_t, fuse_ino_t, const char *);
    void (*symlink)(fuse_req_t, const char *, fuse_ino_t, const char *);
    void (*rename)(fuse_req_t, fuse_ino_t, const char *, fuse_ino_t, const char *);
    void (*link)(fuse_req_t, fuse_ino_t, fuse_ino_t, const char *);
    void (*open)(fuse_req_t, fuse_ino_t, struct fuse2_file_info *);
    void (*read)(fuse_req_t, fuse_ino_t, size_t, off_t, struct fuse2_file_info *);
    void (*write)(fuse_req_t, fuse_ino_t, const char *, size_t, off_t, struct fuse2_file_info *);
    void (*flush)(fuse_req_t, fuse_ino_t, struct fuse2_file_info *);
    void (*release)(fuse_req_t, fuse_ino_t, struct fuse2_file_info *);
    void (*fsync)(fuse_req_t, fuse_ino_t, int, struct fuse2_file_info *);
    void (*opendir)(fuse_req_t, fuse_ino_t, struct fuse2_file_info *);
    void (*readdir)(fuse_req_t, fuse_ino_t, size_t, off_t, struct fuse2_file_info *);
    void (*releasedir)(fuse_req_t, fuse_ino_t, struct fuse2_file_info *);
    void (*fsyncdir)(fuse_req_t, fuse_ino_t, int, struct fuse2_file_info *);
    void (*statfs)(fuse_req_t, fuse_ino_t);
    void (*setxattr)(fuse_req_t, fuse_ino_t, const char *, const char *, size_t, int);
    void (*getxattr)(fuse_req_t, fuse_ino_t, const char *, size_t);
    void (*listxattr)(fuse_req_t, fuse_ino_t, size_t);
    void (*removexattr)(fuse_req_t, fuse_ino_t, const char *);
    void (*access)(fuse_req_t, fuse_ino_t, int);
    void (*create)(fuse_req_t, fuse_ino_t, const char *, mode_t, struct fuse2_file_info *);
    void (*getlk)(fuse_req_t, fuse_ino_t, struct fuse2_file_info *, struct flock *);
    void (*setlk)(fuse_req_t, fuse_ino_t, struct fuse2_file_info *, struct flock *, int);
    void (*bmap)(fuse_req_t, fuse_ino_t, size_t, uint64_t);
    void (*ioctl)(fuse_req_t, fuse_ino_t, int, void *, struct fuse2_file_info *, unsigned,
                  const void *, size_t, size_t);
    void (*poll)(fuse_req_t, fuse_ino_t, struct fuse2_file_info *, struct fuse_pollhandle *);
    void (*write_buf)(fuse_req_t, fuse_ino_t, struct fuse_bufvec *, off_t,
                      struct fuse2_file_info *);
    void (*retrieve_reply)(fuse_req_t, void *, fuse_ino_t, off_t, struct fuse_bufvec *);
    void (*forget_multi)(fuse_req_t, size_t, struct fuse_forget_data *);
    void (*flock)(fuse_req_t, fuse_ino_t, struct fuse2_file_info *, int);
    void (*fallocate)(fuse_req_t, fuse_ino_t, int, off_t, off_t, struct fuse2_file_info *);
};

/* ---- objects behind FUSE 2's opaque types ----------------------------------------------- */

/* struct fuse_chan: a mountpoint and its options, until a session takes them. In FUSE 2 the mount
 * comes before the file system; in FUSE 3, and in fact here, it comes after. */
struct fuse2_chan {
    char *mountpoint;
    struct fuse_args options; /* program name, then -o options for the mount */
    struct fuse2_session *session;
    int fd; /* what fuse_chan_fd() shows: always readable, see fuse_session_fd() */
};

/* struct fuse_session. */
struct fuse2_session {
    struct fuse_session *real; /* NULL in a low-level session until its loop begins */
    struct fuse2_chan *chan;
    struct fuse2_lowlevel_ops ops; /* of a low-level session */
    void *userdata;
    struct fuse_args options; /* of a low-level session: for fuse_session_new() */
    struct fuse2 *high;       /* the struct fuse it belongs to; NULL: low-level */
    bool exited;              /* fuse_session_exit() before there is a real one */
};

/* struct fuse. It is the FUSE 3 file system's user data and its private_data. */
struct fuse2 {
    struct fuse *real;
    struct fuse2_session session;
    struct fuse2_operations ops;
    struct fuse_operations translated; /* what libdf3 calls */
    bool old_handles;                  /* built against 2.2: fh_old is the handle, statfs differs */
    void *private_data;                /* user data, then what init returned */
    struct {                           /* options that FUSE 3 has in struct fuse_config */
        int hard_remove, use_ino, readdir_ino, direct_io, intr, intr_signal, nopath;
    } config;
};

/* ---- between the files ------------------------------------------------------------------ */

/* operations.c: fills f->translated for what f->ops has. */
void df2_translate(struct fuse2 *f);

/* operations.c: file info there and back; `old` as fuse2.old_handles. */
struct fuse2_file_info df2_info_in(const struct fuse_file_info *fi);
void df2_info_out(struct fuse_file_info *fi, const struct fuse2_file_info *from, bool old);

/* operations.c: negotiation there and back. */
struct fuse2_conn_info df2_conn_in(const struct fuse_conn_info *conn);
void df2_conn_out(struct fuse_conn_info *conn, const struct fuse2_conn_info *from);

/* lowlevel.c: makes se->real and mounts it on its channel. 0 or -1. */
int df2_lowlevel_start(struct fuse2_session *se);

/* options.c: moves the mount's options from args to `mount`. 0 or -1. */
int df2_take_mount_options(struct fuse_args *args, struct fuse_args *mount);
/* options.c: takes FUSE 2's own options of fuse_new() out of args. 0 or -1. */
int df2_take_high_options(struct fuse_args *args, struct fuse2 *f);
/* options.c: `first`, then the options of `more` behind its program name, on the heap. 0 or -1. */
int df2_join(struct fuse_args *out, const struct fuse_args *first, const struct fuse_args *more);

/* channel.c */
struct fuse2_chan *df2_chan_new(const char *mountpoint, struct fuse_args *args);
void df2_chan_free(struct fuse2_chan *chan);
struct fuse2_chan *df2_chan_of_fd(int fd);
void fuse2_unmount(const char *mountpoint, struct fuse2_chan *chan);
int fuse2_session_loop(struct fuse2_session *se);
int fuse2_session_loop_mt(struct fuse2_session *se);
void fuse2_session_exit(struct fuse2_session *se);
int fuse2_session_exited(struct fuse2_session *se);

#endif
