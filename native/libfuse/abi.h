/*
 * abi.h - what the files of the libfuse ABI library share: the objects behind libfuse's opaque
 * types.
 *
 *   plugin      this library                              below
 *   main()      opt.c, cmdline.c, help.c                  -
 *   fuse_new    highlevel.c, stack.c, module*.c  ------>  highlevel/highlevel.h
 *   session_new session.c, mount_opts.c          ------>  lowlevel/lowlevel.h
 *   loop        loop.c                           ------>  loader/plugin.h: df_plugin_serve()
 *   in an op    reply.c, notify.c, buf.c         ------>  lowlevel/lowlevel.h
 *
 * A plugin's objects belong to the plugin's threads as libfuse's do: nothing here is locked but
 * what says so. All functions of one public header live in files named after what they do; the
 * symbol versions are in versions.map, and where one name has several meanings, in versions.c.
 */
#ifndef DF_LIBFUSE_ABI_H
#define DF_LIBFUSE_ABI_H

#include "host/libfuse.h"

/* Names of the ABI that the headers show to older (or newer) FUSE_USE_VERSIONs only. */
struct fuse *fuse_new_30(struct fuse_args *args, const struct fuse_operations *op, size_t op_size,
                         void *user_data);
struct fuse *fuse_new_31(struct fuse_args *args, const struct fuse_operations *op, size_t op_size,
                         void *user_data);
int fuse_loop_mt_31(struct fuse *f, int clone_fd);
int fuse_loop_mt_32(struct fuse *f, struct fuse_loop_config_v1 *config);
int fuse_loop_mt_312(struct fuse *f, struct fuse_loop_config *config);
int fuse_session_loop_mt_31(struct fuse_session *se, int clone_fd);
int fuse_session_loop_mt_32(struct fuse_session *se, struct fuse_loop_config_v1 *config);
int fuse_session_loop_mt_312(struct fuse_session *se, struct fuse_loop_config *config);
int fuse_parse_cmdline_30(struct fuse_args *args, struct fuse_cmdline_opts *opts);
int fuse_parse_cmdline_312(struct fuse_args *args, struct fuse_cmdline_opts *opts);
int fuse_set_fail_signal_handlers(struct fuse_session *se);
struct statx;
int fuse_reply_statx(fuse_req_t req, int flags, const struct statx *st, double attr_timeout);

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "highlevel/highlevel.h"
#include "loader/plugin.h"

struct df_fs;
struct df_turns;

/* What the mount options said beside what struct df_session carries. */
struct df_mount_words {
    char *fsname;
    char *subtype;
};

/* A session is one mount to be: made by fuse_session_new() or, inside, by fuse_new(). */
struct fuse_session {
    struct df_session mount;     /* what the host reads; fixed once serving */
    struct df_mount_words words; /* owns the strings that `mount` points to */
    char *mountpoint;            /* owned; what `mount` points to */
    bool mounted;                /* fuse_session_mount() was called, fuse_session_unmount() not */
    bool initialised;            /* the file system's init has run, so destroy is due */
    struct df_plugin *plugin;    /* whose code made it; NULL outside of any plugin */
    pthread_rwlock_t fs_lock;    /* `fs` against its end, for threads other than the loop's */
    struct df_fs *fs;            /* the host's adapter; owned. NULL when it has ended */
    struct fuse *fuse;           /* the high-level handle above; NULL in a low-level session */
    void *later;                 /* versions4.c's, owned: memory of a low-level session */
    _Atomic bool exited;         /* set from any thread: fuse_session_exit() */
    struct df_turns *turns;      /* of its program's own loop; owned. NULL until there is one */
    _Atomic bool begun;          /* that loop has begun to serve */
    int debug;                   /* -d, -o debug */
    struct fuse_session *next_kept; /* session.c */
};

/* One layer of a stack: the plugin's operations, or a module's above it. */
struct fuse_fs {
    struct fuse_operations ops;   /* zero where the layer was built against fewer */
    df_highlevel_statx_op *statx; /* behind them from libfuse 3.18 on; NULL: missing */
    void *user_data;
    struct fuse_fs *below;            /* the layer this one was pushed onto; NULL: the plugin's */
    void (*discard)(void *user_data); /* frees user_data when destroy never ran; may be NULL */
};

struct fuse {
    struct fuse_session *session; /* owned */
    struct fuse_fs *top;          /* the stack; owned */
    struct fuse_config config;    /* as the options said; the host has its own copy */
    void *above;                  /* translator.h: FUSE 2's handle; NULL in a FUSE 3 program */
    unsigned fmask, dmask;        /* of files and directories, before umask; 0: not given */
};

/* ---- log.c ---- */

/* Help and version texts: libfuse prints them to stdout; here they become the plugin's words. */
void df_abi_print(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The plugin that the code at `address` belongs to, or whose thread this is; NULL if none. */
struct df_plugin *df_abi_plugin(const void *address);

/* Says that memory is short; returns -1. */
int df_abi_no_memory(void);

/* ---- mount_opts.c ---- */

/* Takes libfuse's and the kernel's mount options out of args. Returns 0, or -1 after logging. */
int df_abi_parse_mount_opts(struct fuse_args *args, struct fuse_session *se);

/* ---- session.c ---- */

/* A session without a host adapter; options taken out of args, none may be left over. */
struct fuse_session *df_abi_session_new(struct fuse_args *args, struct df_plugin *plugin);

/* False: its memory stays, for the program may name the session, and what points to it, after its
 * end. Asked once: a thread of the program may end meanwhile. */
bool df_abi_session_free(struct fuse_session *se);

/*
 * The session's adapter for a thread that notifies; NULL when it has ended, else to be followed by
 * df_abi_session_leave(). A program's threads may go on after its main has destroyed the session:
 * with the kernel the end of the process stops them. So a session of such a program keeps its
 * memory.
 */
struct df_fs *df_abi_session_enter(struct fuse_session *se);
void df_abi_session_leave(struct fuse_session *se);

/* Takes the adapter out of the session, to end it; waits for threads that have entered. */
struct df_fs *df_abi_session_take(struct fuse_session *se);

/* fuse_session_new() for the plugin. */
struct fuse_session *df_abi_lowlevel_session(struct fuse_args *args,
                                             const struct fuse_lowlevel_ops *op, size_t op_size,
                                             void *userdata, struct df_plugin *plugin);

/* fuse_session_custom_io(): checks and refuses. */
int df_abi_custom_io(const struct fuse_custom_io *io, int fd);

/* ---- notify.c, buf.c: functions whose structures are others in libfuse3.so.4 ---- */

int df_abi_notify_store(struct fuse_session *se, fuse_ino_t ino, off_t offset,
                        struct fuse_bufvec *bufv, enum fuse_buf_copy_flags flags);
size_t df_abi_buf_size(const struct fuse_bufvec *bufv);
ssize_t df_abi_buf_copy(struct fuse_bufvec *dst, struct fuse_bufvec *src,
                        enum fuse_buf_copy_flags flags);

/* ---- cmdline.c ---- */

int df_abi_parse_cmdline(struct fuse_args *args, struct fuse_cmdline_opts *opts);

/* fuse_main_real() for the plugin. */
int df_abi_main(int argc, char *argv[], const struct fuse_operations *op, size_t op_size,
                void *user_data, struct df_plugin *plugin);

/* ---- highlevel.c ---- */

struct fuse *df_abi_fuse_new(struct fuse_args *args, const struct fuse_operations *op,
                             size_t op_size, void *user_data, struct df_plugin *plugin);

/* versions.c: the same, which prints the help itself and fails when args ask for it. */
struct fuse *df_abi_fuse_new_30(struct fuse_args *args, const struct fuse_operations *op,
                                size_t op_size, void *user_data, struct df_plugin *plugin);

/* ---- loop.c ---- */

/* Attaches the session's mount and sleeps until it has ended; 0 or what libfuse's loops return. */
int df_abi_loop(struct fuse_session *se, bool serial);

/* The same for a loop with threads; config may be NULL. -EINVAL when it was not made by
 * fuse_loop_cfg_create(). */
int df_abi_loop_mt(struct fuse_session *se, const struct fuse_loop_config *config);

/* FUSE_INIT, once in the life of a session. 0 or -errno. */
int df_abi_initialise(struct fuse_session *se);

/* ---- own_loop.c ---- */

/* The session is about to be destroyed: if its program has served it by a loop of its own, ends the
 * mount and serves it here until its last file is closed. */
void df_abi_own_loop_end(struct fuse_session *se);

/* ---- stack.c, module.c ---- */

/* fuse_fs_statx() of libfuse 3.18. */
int df_abi_fs_statx(struct fuse_fs *fs, const char *path, int flags, int mask, struct statx *stx,
                    struct fuse_file_info *fi);

/* fuse_fs_*() of the same names, with our own structures. */
struct fuse_fs *df_abi_fs_new(const struct fuse_operations *op, size_t op_size, void *user_data);
void df_abi_fs_init(struct fuse_fs *fs, struct fuse_conn_info *conn, struct fuse_config *config);
int df_abi_fs_read_buf(struct fuse_fs *fs, const char *path, struct fuse_bufvec **bufp, size_t size,
                       off_t off, struct fuse_file_info *fi);
int df_abi_fs_write_buf(struct fuse_fs *fs, const char *path, struct fuse_bufvec *buf, off_t off,
                        struct fuse_file_info *fi);

/* Frees a stack that was never initialised, so no destroy operation is due. */
void df_abi_stack_discard(struct fuse_fs *top);

/* Puts the module `name` on top of *top with its options from args. Returns 0, or -1 after
 * logging. */
int df_abi_push_module(struct fuse_fs **top, const char *name, struct fuse_args *args);

/* Prints the help of the built-in modules. */
void df_abi_modules_help(void);

/* ---- versions3.c or versions4.c: what differs between libfuse3.so.3 and libfuse3.so.4 ---- */

struct df_abi_version {
    int number;       /* fuse_version() */
    const char *name; /* fuse_pkgversion() */
    const char *help; /* options beside those of both */
};
extern const struct df_abi_version df_abi_version;

/* The layer of a program's operations, which are as its library version has them. */
struct fuse_fs *df_abi_layer_new(const struct fuse_operations *op, size_t op_size, void *user_data);

/* Makes a layer of the program's own above layers[0]; NULL when it cannot. */
typedef struct fuse_fs *df_abi_factory(struct fuse_args *args, struct fuse_fs *layers[]);
/* That of a module that the program has registered; NULL. */
df_abi_factory *df_abi_find_factory(const char *name);

/* Takes options that only one of the versions has out of args. 0 or -1. */
int df_abi_take_later_options(struct fuse_args *args, struct fuse *f);

#endif
