/*
 * abi2.h - libfuse.so.2's structures as its programs have them, and how the translation to our
 * libfuse 3 ABI is laid out.
 *
 * libdf2.so.2 is a translator: everything is done by libdf3.so.3, behind functions that convert
 * arguments. C functions are called fuse2_<name> here (so that libfuse 3's headers, with which we
 * call, can be used) and exported as <name> in libfuse.so.2's symbol versions (EXPORT below).
 *
 *   operations.c  struct fuse_operations of FUSE 2 behind those of FUSE 3; old.c: what those of 1.x
 *                 to 2.5 had otherwise; info.c: file info and negotiation there and back
 *   stack.c       struct fuse_fs: layers and modules
 *   lowlevel.c    struct fuse_lowlevel_ops, and its replies
 *   high.c        struct fuse: new, loop, destroy, main, setup
 *   channel.c     struct fuse_chan; session.c: struct fuse_session
 *   options.c     what FUSE 2 takes from the command line and FUSE 3 does not; cmdline.c: -f, -s
 *   forward.c     what has not changed; versions.map: the version nodes
 *   compat.c      entry points of 1.x to 2.5
 */
#ifndef DF_LIBFUSE2_ABI2_H
#define DF_LIBFUSE2_ABI2_H

#include <stdbool.h>
#include <sys/uio.h>
#include <utime.h>

#include "libfuse2/real.h"

/* Exports a function under a name and version of libfuse.so.2. Default versions have "@@"; "name@"
 * is a name without a version, of binaries from before 2.2. */
#define EXPORT(function, name) __asm__(".symver " #function "," name)

/* Exports it under one more. A symbol has one version, so the function gets a second symbol. */
#define EXPORT_ALSO(function, second, name)                                                        \
    extern __typeof__(function) second __attribute__((alias(#function)));                          \
    EXPORT(second, name)

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
    int (*statfs)(const char *, struct statvfs *); /* otherwise before 2.5: old.c */
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

/* Which struct fuse_operations a program has. */
enum fuse2_generation {
    FUSE_1X = 11, /* file handles are unknown; statfs has no path */
    FUSE_21 = 21, /* the same, with struct statfs and more operations */
    FUSE_22 = 22, /* the handle is fh_old */
    FUSE_25 = 25, /* statfs asks for "/" */
    FUSE_26 = 26, /* init() has an argument; to 2.9 */
};

/* A channel of the program's own. */
struct fuse2_chan;
struct fuse2_chan_ops {
    int (*receive)(struct fuse2_chan **chan, char *buf, size_t size);
    int (*send)(struct fuse2_chan *chan, const struct iovec iov[], size_t count);
    void (*destroy)(struct fuse2_chan *chan);
};

/* struct fuse_chan: a mountpoint and its options, until a session takes them. In FUSE 2 the mount
 * comes before the file system; in FUSE 3, and in fact here, it comes after. Or the program's own.
 */
struct fuse2_chan {
    char *mountpoint;         /* NULL: the program's own */
    struct fuse_args options; /* program name, then -o options for the mount */
    struct fuse2_session *session;
    int fd; /* what fuse_chan_fd() shows: df3_session_share_fd(); or the program's */
    struct fuse2_chan_ops ops;                                          /* of the program */
    int (*receive_24)(struct fuse2_chan *chan, char *buf, size_t size); /* instead of ops.receive */
    size_t size; /* bytes of its largest message */
    void *data;
};

/* A session of the program's own, made by fuse_session_new(). */
struct fuse2_session_ops {
    void (*process)(void *data, const char *buf, size_t size, struct fuse2_chan *chan);
    void (*exit)(void *data, int value);
    int (*exited)(void *data);
    void (*destroy)(void *data);
};

/* Options of the connection, for what FUSE 3 leaves to init(). */
struct fuse2_conn_opts {
    unsigned max_write, max_readahead, max_background, congestion_threshold; /* 0: not given */
    int sync_read, atomic_o_trunc, no_posix_lock, no_flock, big_writes;
    int splice_write, splice_move, splice_read, no_splice_write, no_splice_move, no_splice_read;
};

/* struct fuse_session. */
struct fuse2_session {
    struct fuse_session *_Atomic real; /* NULL in a low-level session until its loop begins */
    struct fuse2_chan *chan;
    struct fuse2_lowlevel_ops ops; /* of a low-level session */
    void *userdata;
    struct fuse_args options;               /* of a low-level session: for fuse_session_new() */
    struct fuse2_conn_opts conn;            /* likewise */
    struct fuse2 *high;                     /* the struct fuse it belongs to; NULL: low-level */
    const struct fuse2_session_ops *custom; /* points to `own`, or NULL */
    struct fuse2_session_ops own;
    _Atomic bool exited; /* fuse_session_exit(), from any thread */
};

/* What stands behind a struct fuse_fs, which is libdf3's own: a program's operations. It is the
 * layer's user data for libdf3, and what the context has as private_data there. */
struct fuse2_layer {
    struct fuse2_operations ops;
    enum fuse2_generation generation;
    void *private_data; /* user data, then what init returned */
    struct fuse2 *fuse; /* the file system whose lowest layer this is, which owns it; NULL: a
                           module's, which goes with its destroy */
    bool initialised;
};

/* struct fuse. */
struct fuse2 {
    struct fuse2_layer layer;
    struct fuse *real;
    struct fuse2_session session;
    struct { /* options that FUSE 3 has in struct fuse_config */
        int hard_remove, use_ino, readdir_ino, direct_io, intr, intr_signal, nopath;
    } config;
    struct fuse2_conn_opts conn;
};

/* ---- between the files ------------------------------------------------------------------ */

/* info.c: file info there and back. The handle is in both members, fh and fh_old. */
struct fuse2_file_info df2_info_in(const struct fuse_file_info *fi);
struct fuse_file_info df2_info_3(const struct fuse2_file_info *info);
/* info.c: what open, create and opendir have set; the handle may be in fh_old. */
void df2_info_out(struct fuse_file_info *fi, const struct fuse2_file_info *from, bool old);

/* info.c: negotiation there and back, by FUSE 2's rules: an operation must be wanted to be called,
 * and options decide what is wanted. */
struct fuse2_conn_info df2_conn_in(const struct fuse_conn_info *conn,
                                   const struct fuse2_conn_opts *opts, bool posix_lock, bool flock);
void df2_conn_out(struct fuse_conn_info *conn, const struct fuse2_conn_info *from);
/* The same between init() of one layer and that of the next, which continues the negotiation. */
struct fuse2_conn_info df2_conn_show(const struct fuse_conn_info *conn);

/* operations.c: FUSE 3's operations for what the layer's program has. */
struct fuse_operations df2_translate(const struct fuse2_layer *layer);
/* operations.c: the layer whose operation runs on this thread. */
struct fuse2_layer *df2_layer_here(void);
/* operations.c: a FUSE 2 filler's arguments for FUSE 3's. */
struct fuse2_filler {
    fuse_fill_dir_t fill;
    void *buf;
};
/* operations.c: of getdir: a type as in struct dirent, no offsets. */
int df2_fill_typed(void *data, const char *name, int type, ino_t ino);

/* old.c: replaces in *ops what the generation has otherwise. */
void df2_translate_old(struct fuse_operations *ops, enum fuse2_generation generation,
                       const struct fuse2_operations *from);
/* old.c: FUSE 3's answer to statfs. */
struct statfs;
struct statvfs df2_statvfs_of(const struct statfs *st);

/* stack.c: init() of a layer; what libdf3 negotiates with, for fuse_fs_init() inside. */
void df2_layer_init(struct fuse2_layer *layer, struct fuse_conn_info *conn,
                    struct fuse_config *config);
/* stack.c: true if the program knows that a path may be NULL. */
bool df2_layer_takes_null(const struct fuse2_layer *layer);
/* stack.c: and if an operation on a handle can do without. */
bool df2_layer_bears_null(const struct fuse2_layer *layer);
/* stack.c: destroy() of a layer. */
void df2_layer_destroy(void *layer);

/* lowlevel.c: makes se->real and mounts it on its channel. 0 or -1. */
int df2_lowlevel_start(struct fuse2_session *se);

/* options.c: moves the mount's options from args to `mount`. 0 or -1. */
int df2_take_mount_options(struct fuse_args *args, struct fuse_args *mount);
/* options.c: takes FUSE 2's own options of fuse_new() out of args. 0 or -1. */
int df2_take_high_options(struct fuse_args *args, struct fuse2 *f);
/* options.c: the same for fuse_lowlevel_new(). */
int df2_take_conn_options(struct fuse_args *args, struct fuse2_conn_opts *opts);
/* options.c: `first`, then the options of `more` behind its program name, on the heap. 0 or -1. */
int df2_join(struct fuse_args *out, const struct fuse_args *first, const struct fuse_args *more);
/* options.c: "allow_other,ro", a list of options instead of arguments; NULL is none. On the heap.
 * 0 or -1. */
int df2_arguments_of(const char *options, struct fuse_args *args);

/* high.c. `op_size` is in bytes; args may be NULL. */
struct fuse2 *df2_new(struct fuse2_chan *chan, struct fuse_args *args, const void *op,
                      size_t op_size, void *user_data, enum fuse2_generation generation);
struct fuse2 *df2_setup(int argc, char *argv[], const void *op, size_t op_size, char **mountpoint,
                        int *multithreaded, struct fuse2_chan **chan, void *user_data,
                        enum fuse2_generation generation);
int df2_main(int argc, char *argv[], const void *op, size_t op_size, void *user_data,
             enum fuse2_generation generation);
void fuse2_teardown(struct fuse2 *f, char *mountpoint);

/* cmdline.c */
int fuse2_parse_cmdline(struct fuse_args *args, char **mountpoint, int *multithreaded,
                        int *foreground);

/* channel.c */
struct fuse2_chan *df2_chan_new(const char *mountpoint, struct fuse_args *args);
void df2_chan_free(struct fuse2_chan *chan);
struct fuse2_chan *df2_chan_of_fd(int fd);
/* Ends the mount that is made, or is to be made, at `mountpoint`. */
void df2_chan_end(const char *mountpoint);
void fuse2_unmount(const char *mountpoint, struct fuse2_chan *chan);
int fuse2_chan_recv(struct fuse2_chan **chan, char *buf, size_t size);

/* session.c */
int fuse2_session_loop(struct fuse2_session *se);
int fuse2_session_loop_mt(struct fuse2_session *se);
int fuse2_session_receive_buf(struct fuse2_session *se, struct fuse_buf *buf,
                              struct fuse2_chan **chan);
void fuse2_session_remove_chan(struct fuse2_chan *chan);
void fuse2_session_exit(struct fuse2_session *se);
int fuse2_session_exited(struct fuse2_session *se);

#endif
