/*
 * passthrough.h - what the files of the passthrough file system share.
 *
 * A directory of the real file system, served through as it is. libfuse's high-level API and
 * nothing else: the same source mounts through the kernel and runs inside a process.
 */
#ifndef PASSTHROUGH_H
#define PASSTHROUGH_H

#define FUSE_USE_VERSION FUSE_MAKE_VERSION(3, 12)
#include <fuse.h>

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct passthrough {
    char *source; /* as on the command line, for messages; owned */
    int root;     /* descriptor of the source directory, O_PATH; paths are relative to it */
    uid_t uid;    /* whose rights the backing calls have */
    gid_t gid;
    mode_t umask;    /* of this process when it was mounted */
    bool for_others; /* root serves other users: what they make is given to them */
    bool flushes;    /* close(2) may fail late on the backing file system: ask at each flush */
    char proc[32];   /* "/proc/self/fd/<root>": for calls that have no *at form */
};

/* The file system of the operation that runs on this thread. */
static inline const struct passthrough *passthrough_here(void)
{
    return fuse_get_context()->private_data;
}

/* A path of the mount as one relative to the source directory. */
static inline const char *passthrough_relative(const char *path)
{
    return path[1] ? path + 1 : ".";
}

/* For directfuse, see passthrough.c: attributes of a name in an open directory. dir.c */
extern const unsigned directfuse_posix_names;
extern const unsigned directfuse_posix_copies;
extern const unsigned directfuse_main_moves;
int directfuse_getattr_at(struct fuse_file_info *directory, const char *name, struct stat *st);

/* The result of a system call as the operations return it. */
static inline int passthrough_result(long result)
{
    return result < 0 ? -errno : 0;
}

/* Whether what has failed with errno did so because there is no such system call here: the kernel
 * is older, or a container's seccomp(2) filter is, and says EPERM to what it does not know. errno
 * stays. names.c */
bool passthrough_lacks(long number);

/* The same object by a path for calls that take nothing else; false when it gets too long. */
bool passthrough_absolute(const struct passthrough *fs, const char *path, char out[PATH_MAX]);

/* chmod(2) of a path that must not be a link: one that has come up since is not followed where the
 * kernel can (6.6). names.c */
int passthrough_set_mode(const struct passthrough *fs, const char *path, mode_t mode);

/*
 * After an object was made with `mode`: gives it to the caller when root serves others, and makes
 * up for mode bits that our own umask has taken (names.c).
 */
int passthrough_adopt(const struct passthrough *fs, const char *path, mode_t mode);

/*
 * Before a file is written to or cut: setuid and setgid go, as the backing file system sees to for
 * whoever it takes us for. It takes root for root, also where root serves others. attr.c
 */
void passthrough_strip(const struct passthrough *fs, int fd);

/* Whether that may be to be done for who calls. */
bool passthrough_strips(const struct passthrough *fs);

/* The mode to make an object with, so that the caller's umask holds, and default ACLs where they
 * can (names.c). */
mode_t passthrough_mode(const struct passthrough *fs, mode_t mode);

/* ---- names.c ---- */
int passthrough_getattr(const char *path, struct stat *st, struct fuse_file_info *fi);
int passthrough_readlink(const char *path, char *buf, size_t size);
int passthrough_mknod(const char *path, mode_t mode, dev_t rdev);
int passthrough_mkdir(const char *path, mode_t mode);
int passthrough_symlink(const char *target, const char *path);
int passthrough_link(const char *from, const char *to);
int passthrough_unlink(const char *path);
int passthrough_rmdir(const char *path);
int passthrough_rename(const char *from, const char *to, unsigned flags);

/* ---- attr.c ---- */
int passthrough_access(const char *path, int mask);
int passthrough_chmod(const char *path, mode_t mode, struct fuse_file_info *fi);
int passthrough_chown(const char *path, uid_t uid, gid_t gid, struct fuse_file_info *fi);
int passthrough_truncate(const char *path, off_t size, struct fuse_file_info *fi);
int passthrough_utimens(const char *path, const struct timespec times[2],
                        struct fuse_file_info *fi);
int passthrough_statfs(const char *path, struct statvfs *out);
int passthrough_getxattr(const char *path, const char *name, char *value, size_t size);
int passthrough_setxattr(const char *path, const char *name, const char *value, size_t size,
                         int flags);
int passthrough_listxattr(const char *path, char *list, size_t size);
int passthrough_removexattr(const char *path, const char *name);

/* ---- file.c ---- */
int passthrough_create(const char *path, mode_t mode, struct fuse_file_info *fi);
int passthrough_open(const char *path, struct fuse_file_info *fi);
int passthrough_read(const char *path, char *buf, size_t size, off_t offset,
                     struct fuse_file_info *fi);
int passthrough_read_buf(const char *path, struct fuse_bufvec **out, size_t size, off_t offset,
                         struct fuse_file_info *fi);
int passthrough_write(const char *path, const char *buf, size_t size, off_t offset,
                      struct fuse_file_info *fi);
int passthrough_write_buf(const char *path, struct fuse_bufvec *buf, off_t offset,
                          struct fuse_file_info *fi);
int passthrough_flush(const char *path, struct fuse_file_info *fi);
int passthrough_release(const char *path, struct fuse_file_info *fi);
int passthrough_fsync(const char *path, int datasync, struct fuse_file_info *fi);
int passthrough_flock(const char *path, struct fuse_file_info *fi, int operation);
int passthrough_fallocate(const char *path, int mode, off_t offset, off_t length,
                          struct fuse_file_info *fi);
ssize_t passthrough_copy_file_range(const char *path_in, struct fuse_file_info *fi_in,
                                    off_t offset_in, const char *path_out,
                                    struct fuse_file_info *fi_out, off_t offset_out, size_t size,
                                    int flags);
off_t passthrough_lseek(const char *path, off_t offset, int whence, struct fuse_file_info *fi);

/* ---- dir.c ---- */
int passthrough_opendir(const char *path, struct fuse_file_info *fi);
int passthrough_readdir(const char *path, void *buf, fuse_fill_dir_t fill, off_t offset,
                        struct fuse_file_info *fi, enum fuse_readdir_flags flags);
int passthrough_releasedir(const char *path, struct fuse_file_info *fi);
int passthrough_fsyncdir(const char *path, int datasync, struct fuse_file_info *fi);

#endif
