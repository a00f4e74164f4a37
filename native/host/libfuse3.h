/*
 * libfuse3.h - libfuse.h with headers of 3.17 and later: they are read under other names where they
 * differ, and what programs of libfuse3.so.3 have is declared here.
 *
 *   fuse_config              no_rofd_flush stands before ac_attr_timeout_set; shorter
 *   fuse_buf, fuse_bufvec    without mem_size
 *   fuse_operations,         end with lseek; with the structures above
 *   fuse_lowlevel_ops
 *   entry points             functions that are inline now, or take those structures
 */
#ifndef DF_HOST_LIBFUSE3_H
#define DF_HOST_LIBFUSE3_H

#define fuse_buf                          later_fuse_buf
#define fuse_bufvec                       later_fuse_bufvec
#define fuse_config                       later_fuse_config
#define fuse_lowlevel_ops                 later_fuse_lowlevel_ops
#define fuse_operations                   later_fuse_operations
#define _fuse_new_30                      later_fuse_new_30
#define _fuse_new_31                      later_fuse_new_31
#define fuse_buf_copy                     later_fuse_buf_copy
#define fuse_buf_size                     later_fuse_buf_size
#define fuse_fs_init                      later_fuse_fs_init
#define fuse_fs_new                       later_fuse_fs_new
#define fuse_fs_read_buf                  later_fuse_fs_read_buf
#define fuse_fs_write_buf                 later_fuse_fs_write_buf
#define fuse_lowlevel_notify_expire_entry later_fuse_lowlevel_notify_expire_entry
#define fuse_lowlevel_notify_store        later_fuse_lowlevel_notify_store
#define fuse_main_real                    later_fuse_main_real
#define fuse_main_real_versioned          later_fuse_main_real_versioned
#define fuse_reply_data                   later_fuse_reply_data
#define fuse_reply_statx                  later_fuse_reply_statx
#define fuse_session_custom_io            later_fuse_session_custom_io
#define fuse_session_new_versioned        later_fuse_session_new_versioned
#define fuse_session_process_buf          later_fuse_session_process_buf
#define fuse_session_receive_buf          later_fuse_session_receive_buf

#include <cuse_lowlevel.h>
#include <fuse.h>
#include <fuse_lowlevel.h>

#undef fuse_buf
#undef fuse_bufvec
#undef fuse_config
#undef fuse_lowlevel_ops
#undef fuse_operations
#undef _fuse_new_30
#undef _fuse_new_31
#undef fuse_buf_copy
#undef fuse_buf_size
#undef fuse_fs_init
#undef fuse_fs_new
#undef fuse_fs_read_buf
#undef fuse_fs_write_buf
#undef fuse_lowlevel_notify_expire_entry
#undef fuse_lowlevel_notify_store
#undef fuse_main_real
#undef fuse_main_real_versioned
#undef fuse_reply_data
#undef fuse_reply_statx
#undef fuse_session_custom_io
#undef fuse_session_new_versioned
#undef fuse_session_process_buf
#undef fuse_session_receive_buf

/* Macros, over functions that are there again below. */
#undef fuse_main
#undef fuse_new
#undef fuse_session_new
#undef cuse_lowlevel_main
#undef cuse_lowlevel_new
#undef cuse_lowlevel_setup
#undef FUSE_BUFVEC_INIT

/* ---- structures ------------------------------------------------------------------------------ */

struct fuse_config {
    int set_gid;
    unsigned gid;
    int set_uid;
    unsigned uid;
    int set_mode;
    unsigned umask;
    double entry_timeout;
    double negative_timeout;
    double attr_timeout;
    int intr;
    int intr_signal;
    int remember;
    int hard_remove;
    int use_ino;
    int readdir_ino;
    int direct_io;
    int kernel_cache;
    int auto_cache;
    int no_rofd_flush;
    int ac_attr_timeout_set;
    double ac_attr_timeout;
    int nullpath_ok;
    int show_help;
    char *modules;
    int debug;
};

struct fuse_buf {
    size_t size;
    enum fuse_buf_flags flags;
    void *mem;
    int fd;
    off_t pos;
};

struct fuse_bufvec {
    size_t count;
    size_t idx;
    size_t off;
    struct fuse_buf buf[1];
};

#define FUSE_BUFVEC_INIT(size)                                                                     \
    ((struct fuse_bufvec){1, 0, 0, {{(size), (enum fuse_buf_flags)0, NULL, -1, 0}}})

#define fuse_expire_flags fuse_notify_entry_flags

/* ---- tables of operations -------------------------------------------------------------------- */

#define SAME(op) __typeof__(((struct later_fuse_operations *)0)->op) op
struct fuse_operations {
    SAME(getattr);
    SAME(readlink);
    SAME(mknod);
    SAME(mkdir);
    SAME(unlink);
    SAME(rmdir);
    SAME(symlink);
    SAME(rename);
    SAME(link);
    SAME(chmod);
    SAME(chown);
    SAME(truncate);
    SAME(open);
    SAME(read);
    SAME(write);
    SAME(statfs);
    SAME(flush);
    SAME(release);
    SAME(fsync);
    SAME(setxattr);
    SAME(getxattr);
    SAME(listxattr);
    SAME(removexattr);
    SAME(opendir);
    SAME(readdir);
    SAME(releasedir);
    SAME(fsyncdir);
    void *(*init)(struct fuse_conn_info *conn, struct fuse_config *config);
    SAME(destroy);
    SAME(access);
    SAME(create);
    SAME(lock);
    SAME(utimens);
    SAME(bmap);
    SAME(ioctl);
    SAME(poll);
    int (*write_buf)(const char *path, struct fuse_bufvec *buf, off_t off,
                     struct fuse_file_info *fi);
    int (*read_buf)(const char *path, struct fuse_bufvec **bufp, size_t size, off_t off,
                    struct fuse_file_info *fi);
    SAME(flock);
    SAME(fallocate);
    SAME(copy_file_range);
    SAME(lseek);
};
#undef SAME

#define SAME(op) __typeof__(((struct later_fuse_lowlevel_ops *)0)->op) op
struct fuse_lowlevel_ops {
    SAME(init);
    SAME(destroy);
    SAME(lookup);
    SAME(forget);
    SAME(getattr);
    SAME(setattr);
    SAME(readlink);
    SAME(mknod);
    SAME(mkdir);
    SAME(unlink);
    SAME(rmdir);
    SAME(symlink);
    SAME(rename);
    SAME(link);
    SAME(open);
    SAME(read);
    SAME(write);
    SAME(flush);
    SAME(release);
    SAME(fsync);
    SAME(opendir);
    SAME(readdir);
    SAME(releasedir);
    SAME(fsyncdir);
    SAME(statfs);
    SAME(setxattr);
    SAME(getxattr);
    SAME(listxattr);
    SAME(removexattr);
    SAME(access);
    SAME(create);
    SAME(getlk);
    SAME(setlk);
    SAME(bmap);
    SAME(ioctl);
    SAME(poll);
    void (*write_buf)(fuse_req_t req, fuse_ino_t ino, struct fuse_bufvec *bufv, off_t off,
                      struct fuse_file_info *fi);
    void (*retrieve_reply)(fuse_req_t req, void *cookie, fuse_ino_t ino, off_t offset,
                           struct fuse_bufvec *bufv);
    SAME(forget_multi);
    SAME(flock);
    SAME(fallocate);
    SAME(readdirplus);
    SAME(copy_file_range);
    SAME(lseek);
};
#undef SAME

/* ---- entry points ---------------------------------------------------------------------------- */

struct fuse *fuse_new(struct fuse_args *args, const struct fuse_operations *op, size_t op_size,
                      void *user_data);
int fuse_main_real(int argc, char *argv[], const struct fuse_operations *op, size_t op_size,
                   void *user_data);
struct fuse_fs *fuse_fs_new(const struct fuse_operations *op, size_t op_size, void *private_data);
void fuse_fs_init(struct fuse_fs *fs, struct fuse_conn_info *conn, struct fuse_config *config);
int fuse_fs_read_buf(struct fuse_fs *fs, const char *path, struct fuse_bufvec **bufp, size_t size,
                     off_t off, struct fuse_file_info *fi);
int fuse_fs_write_buf(struct fuse_fs *fs, const char *path, struct fuse_bufvec *buf, off_t off,
                      struct fuse_file_info *fi);
size_t fuse_buf_size(const struct fuse_bufvec *bufv);
ssize_t fuse_buf_copy(struct fuse_bufvec *dst, struct fuse_bufvec *src,
                      enum fuse_buf_copy_flags flags);
struct fuse_session *fuse_session_new(struct fuse_args *args, const struct fuse_lowlevel_ops *op,
                                      size_t op_size, void *userdata);
int fuse_session_custom_io(struct fuse_session *se, const struct fuse_custom_io *io, int fd);
int fuse_session_receive_buf(struct fuse_session *se, struct fuse_buf *buf);
void fuse_session_process_buf(struct fuse_session *se, const struct fuse_buf *buf);
int fuse_reply_data(fuse_req_t req, struct fuse_bufvec *bufv, enum fuse_buf_copy_flags flags);
int fuse_lowlevel_notify_store(struct fuse_session *se, fuse_ino_t ino, off_t offset,
                               struct fuse_bufvec *bufv, enum fuse_buf_copy_flags flags);
int fuse_lowlevel_notify_expire_entry(struct fuse_session *se, fuse_ino_t parent, const char *name,
                                      size_t namelen, enum fuse_expire_flags flags);
#if FUSE_VERSION >= FUSE_MAKE_VERSION(3, 19)
struct fuse_session *cuse_lowlevel_new(struct fuse_args *args, const struct cuse_info *ci,
                                       const struct cuse_lowlevel_ops *clop, void *userdata);
struct fuse_session *cuse_lowlevel_setup(int argc, char *argv[], const struct cuse_info *ci,
                                         const struct cuse_lowlevel_ops *clop, int *multithreaded,
                                         void *userdata);
int cuse_lowlevel_main(int argc, char *argv[], const struct cuse_info *ci,
                       const struct cuse_lowlevel_ops *clop, void *userdata);
#endif

#endif
