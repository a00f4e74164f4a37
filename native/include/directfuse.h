/*
 * directfuse.h - FUSE file systems as plugins of this process, called like POSIX.
 *
 *     char why[512];
 *     int id = df_mount(NULL, 2, (char *[]){"memfs", "/mem", NULL}, 0, why, sizeof(why));
 *     int fd = df_open("/mem/hello", O_CREAT | O_RDWR, 0644);
 *     df_pwrite(fd, "hello", 5, 0);
 *     df_close(fd);
 *     df_unmount(id, 0);
 *
 * Every df_<call> has the arguments, result and errors of the Linux call of that name: -1 and errno
 * on failure, and the manual page is its documentation. What is said here is only what differs.
 * A path below a mountpoint, or a descriptor that df_open() gave out, is served by the plugin in
 * the calling thread; every other path and descriptor goes to the kernel. One name works for both.
 *
 * Descriptors of files in a mount are numbers from 1 << 30 up. They are valid in df_* calls of this
 * process alone: the kernel, exec'ed programs and other libraries answer EBADF.
 *
 * All functions are thread-safe; none may be called from a signal handler. After fork(2) the child
 * has its own copy of every inline mount and open file. Where a call cannot be served its errno
 * says so; docs/compat.md lists the differences from Linux.
 *
 * Sizes and offsets are bytes; counts are elements. To use df_statx() define _GNU_SOURCE, or
 * include a header that defines struct statx.
 */
#ifndef DIRECTFUSE_H
#define DIRECTFUSE_H

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DF_PUBLIC __attribute__((visibility("default")))

struct statx;
struct timespec; /* which strict C does not have from <time.h> */

/* ---- mounts ------------------------------------------------------------------------------- */

enum {                            /* df_mount() */
       DF_MOUNT_TIMING = 1 << 0,  /* df_stats() also measures time (about 50 ns an operation) */
       DF_MOUNT_NOSTATS = 1 << 1, /* do not count operations */
       DF_MOUNT_SERVER = 1 << 2,  /* mount in a process of its own: see below */
       DF_MOUNT_RESTART = 1 << 3  /* with DF_MOUNT_SERVER: start the server again when it dies */
};

enum {                           /* df_unmount() */
       DF_UNMOUNT_LAZY = 1 << 0, /* paths do not lead there any more at once; the program ends
                                    with the last open file */
       DF_UNMOUNT_LEAVE = 1 << 1 /* at the end of the process: a mount in a server stays there if
                                    other processes use it */
};

/* In the flags of df_mount(): how long the program may take until it is mounted, 1 to 65535
 * seconds. Without it there is no limit. */
#define DF_MOUNT_SECONDS(seconds) ((unsigned)(seconds) << 16)

/*
 * Loads a FUSE program and mounts its file system in this process.
 *
 *   library  the shared object that holds the program; NULL: argv[0] names it: a path when it has
 *            a slash, else <argv[0]>.so in the directory "backends" beside this library
 *   argc     number of words in argv; a NULL pointer follows them
 *   argv     the command line of the program as one would type it in a shell; the program parses
 *            it, and finds the mountpoint in it. The mountpoint need not exist
 *   flags    DF_MOUNT_*, DF_MOUNT_SECONDS()
 *   message  receives the program's own words and ours when it fails (NUL-terminated, at most size
 *            bytes); may be NULL
 *
 * With DF_MOUNT_SERVER the program runs in a mount server, a process that ends with its last
 * client. Processes forked from now on share the file system and its open files; if the program
 * crashes, calls fail with ENOTCONN. An argv of "@name" joins the server that `directfuse serve
 * --name name` has started; if that has several file systems, "@name", "mountpoint" one of them.
 *
 * Returns the number of the mount (> 0), or -1 and errno: ENOENT (no such library, server, or file
 * system of a server), ENOEXEC (no FUSE program, or one that cannot be loaded safely), EBUSY
 * (something is mounted there), ENOTDIR, EINVAL (also: the server has several file systems, and
 * none was named), EIO (the program ended before it mounted), ETIMEDOUT (the program is left
 * behind, and what it would mount later is refused), ENOMEM; EINTR, of "@name" only: a signal came
 * while its server had not mounted yet.
 *
 * What is still mounted when the process ends by exit(3) or by returning from main is unmounted
 * then, so that programs that write at their end (fuse-zip) have written; not at _exit(2) or a
 * signal, and not in a child of fork(2), whose mounts are its parent's.
 */
DF_PUBLIC int df_mount(const char *library, int argc, char *const argv[], unsigned flags,
                       char *message, size_t size);

/*
 * The same for a file system in this process: run(argc, argv, data) is called on a thread of its
 * own, in place of a program's main(). It makes a FUSE session with the libfuse of this library
 * (`pkg-config directfuse-plugin`) and runs its loop, which returns at the unmount. It must return,
 * not exit. argv[0] names it in messages; argv is copied. Returns as df_mount() does.
 */
DF_PUBLIC int df_mount_function(int (*run)(int argc, char *argv[], void *data), void *data,
                                int argc, char *const argv[], unsigned flags, char *message,
                                size_t size);

/*
 * Unmounts: waits for calls that are under way, for five seconds, then the program ends.
 *
 *   mount  what df_mount() returned
 *   flags  DF_UNMOUNT_*
 *
 * A mount in a server ends for all its clients when the process that mounted it unmounts it; other
 * processes only leave. Returns 0, or -1 and errno: EINVAL (no such mount), EBUSY (files are open,
 * or calls are under way still; the mount goes on).
 * If a call time-out is set (df_set_call_timeout()), ETIMEDOUT after that time, at least a second:
 * when it was calls of the file system that did not end, its server has ended without it, and the
 * mount is gone; when the file system was ending itself, it goes on with that, and the mount is
 * still there.
 */
DF_PUBLIC int df_unmount(int mount, unsigned flags);

struct df_mount_info {
    int id;
    unsigned read_only;    /* 0 or 1 */
    dev_t dev;             /* st_dev of its files */
    char fsname[64];       /* what is mounted, as the program says; may be cut short */
    char subtype[64];      /* kind of file system, likewise */
    char mountpoint[4096]; /* absolute, without symlinks */
};

/* Fills at most `count` entries (list may be NULL with 0). Returns the number of mounts. */
DF_PUBLIC int df_mounts(struct df_mount_info *list, size_t count);

struct df_op_stats {
    const char *name; /* "getattr", "read" ...; static */
    uint64_t calls;
    uint64_t errors;
    uint64_t bytes;       /* moved by the operation */
    uint64_t nanoseconds; /* spent in the plugin; 0 without DF_MOUNT_TIMING */
};

/* Operations of a mount since it was mounted; at most `count` entries. Returns the number of
 * operations there are, or -1 and errno EINVAL (no such mount, or DF_MOUNT_NOSTATS). */
DF_PUBLIC int df_stats(int mount, struct df_op_stats *stats, size_t count);

struct df_trip_stats {
    uint64_t trips; /* messages to the mount server and back */
    uint64_t spun;  /* of these, answered before the caller went to sleep */
    uint64_t slept;
    uint64_t hits; /* calls answered from shared memory, without a trip */
};

/* What the calls of this process into a mount with DF_MOUNT_SERVER have cost. Returns 0, or -1 and
 * errno EINVAL: no such mount, or it is inline. */
DF_PUBLIC int df_trip_stats(int mount, struct df_trip_stats *stats);

/* How long a call of this process into a mount with DF_MOUNT_SERVER may take, in milliseconds;
 * after that it fails with ETIMEDOUT, though what it asked for may still happen. 0: no limit.
 * Waiting for locks is not limited. Set by the process that mounted, it also limits unmounting, and
 * the calls of processes that join later. Returns 0, or -1 and errno EINVAL: no such mount, or it
 * is inline. */
DF_PUBLIC int df_set_call_timeout(int mount, unsigned milliseconds);

/* Sets the function that is told when a mount server of this process ends or does not answer in
 * time, when an inline file system has ended itself in the middle of a call, or when the program of
 * a helper has ended. It is called once for each mount, with one line of text, by the thread that
 * has found out and inside of its call: it must not call this library, nor take a lock that a
 * caller of this library may hold. NULL, as at first: nobody is told. */
DF_PUBLIC void df_set_listener(void (*listener)(int mount, const char *words));

struct df_call_stats {
    const char *name; /* "openat" ...; static */
    uint64_t passed;  /* handed to the kernel: not ours */
    uint64_t refused; /* answered with an error by us: see docs/compat.md */
};

/* Calls of this process that reached no plugin. Returns the number of calls there are. */
DF_PUBLIC int df_call_stats(struct df_call_stats *stats, size_t count);

/* ---- identity ----------------------------------------------------------------------------- */

/* umask(2) for this process and for files made in mounts. Returns the former mask. A program that
 * calls umask(2) itself calls df_identity_refresh() afterwards. */
DF_PUBLIC mode_t df_umask(mode_t mask);

/* Reads user, groups, capability, umask and RLIMIT_FSIZE of the process again, which the library
 * reads only once and after fork(2). Returns 0, or -1 and errno. */
DF_PUBLIC int df_identity_refresh(void);

struct df_identity {
    uid_t uid; /* file system ids */
    gid_t gid;
    mode_t umask;
    int privileged;     /* 1: permission checks are overridden, as root's are */
    size_t group_count; /* supplementary groups */
    const gid_t *groups;
};

/* Sets the identity in which the calling thread makes calls into mounts; the kernel's idea of the
 * thread does not change. NULL: the process's own again. *identity and its groups are copied.
 * Returns 0, or -1 and errno ENOMEM. */
DF_PUBLIC int df_identity_set(const struct df_identity *identity);

/* ---- opening: open(2), close(2), dup(2), fcntl(2) ------------------------------------------- */

DF_PUBLIC int df_open(const char *path, int flags, mode_t mode);
DF_PUBLIC int df_creat(const char *path, mode_t mode);
DF_PUBLIC int df_openat(int dirfd, const char *path, int flags, mode_t mode);
DF_PUBLIC int df_close(int fd);
DF_PUBLIC int df_dup(int fd);
/* EXDEV when one descriptor is virtual and the other real. newfd of df_dup2/3 may be any virtual
 * number. */
DF_PUBLIC int df_dup2(int fd, int newfd);
DF_PUBLIC int df_dup3(int fd, int newfd, int flags);
/* arg is always given: an int, or a pointer cast to long. */
DF_PUBLIC int df_fcntl(int fd, int command, long arg);

/* ---- data: read(2), pread(2), readv(2), lseek(2), copy_file_range(2), fsync(2) ... ---------- */

/* A write past RLIMIT_FSIZE fails with EFBIG; no SIGXFSZ is sent. */
DF_PUBLIC ssize_t df_read(int fd, void *buf, size_t size);
DF_PUBLIC ssize_t df_write(int fd, const void *buf, size_t size);
DF_PUBLIC ssize_t df_pread(int fd, void *buf, size_t size, off_t offset);
DF_PUBLIC ssize_t df_pwrite(int fd, const void *buf, size_t size, off_t offset);
DF_PUBLIC ssize_t df_readv(int fd, const struct iovec *iov, int iovcnt);
DF_PUBLIC ssize_t df_writev(int fd, const struct iovec *iov, int iovcnt);
DF_PUBLIC ssize_t df_preadv(int fd, const struct iovec *iov, int iovcnt, off_t offset);
DF_PUBLIC ssize_t df_pwritev(int fd, const struct iovec *iov, int iovcnt, off_t offset);
DF_PUBLIC off_t df_lseek(int fd, off_t offset, int whence);

/* One piece of a batch. */
struct df_read {
    int fd;
    void *buf;
    size_t size;
    off_t offset;
    ssize_t result; /* out: bytes read, or a negative error number */
};

/*
 * Many reads in one call, from any descriptors, real ones too; a plugin that can overlaps them.
 * Returns 0 and fills every result, or -1 and errno EINVAL (count > 1 << 20), ENOMEM.
 */
DF_PUBLIC int df_read_batch(struct df_read *reads, size_t count);

DF_PUBLIC ssize_t df_copy_file_range(int fd_in, off_t *off_in, int fd_out, off_t *off_out,
                                     size_t size, unsigned flags);
DF_PUBLIC int df_fsync(int fd);
DF_PUBLIC int df_fdatasync(int fd);
DF_PUBLIC int df_ftruncate(int fd, off_t size);
DF_PUBLIC int df_fallocate(int fd, int mode, off_t offset, off_t length);
/* posix_fadvise(2), but with the error in errno. */
DF_PUBLIC int df_fadvise(int fd, off_t offset, off_t length, int advice);
DF_PUBLIC int df_ioctl(int fd, unsigned long request, void *arg);

/* ---- attributes: stat(2), statx(2), access(2), chmod(2), chown(2), utimensat(2) ... --------- */

DF_PUBLIC int df_stat(const char *path, struct stat *st);
DF_PUBLIC int df_lstat(const char *path, struct stat *st);
DF_PUBLIC int df_fstatat(int dirfd, const char *path, struct stat *st, int flags);
DF_PUBLIC int df_fstat(int fd, struct stat *st);
DF_PUBLIC int df_statx(int dirfd, const char *path, int flags, unsigned mask, struct statx *stx);
DF_PUBLIC int df_access(const char *path, int mode);
DF_PUBLIC int df_faccessat(int dirfd, const char *path, int mode, int flags);
DF_PUBLIC int df_chmod(const char *path, mode_t mode);
DF_PUBLIC int df_fchmodat(int dirfd, const char *path, mode_t mode, int flags);
DF_PUBLIC int df_fchmod(int fd, mode_t mode);
DF_PUBLIC int df_chown(const char *path, uid_t uid, gid_t gid);
DF_PUBLIC int df_lchown(const char *path, uid_t uid, gid_t gid);
DF_PUBLIC int df_fchownat(int dirfd, const char *path, uid_t uid, gid_t gid, int flags);
DF_PUBLIC int df_fchown(int fd, uid_t uid, gid_t gid);
DF_PUBLIC int df_utimensat(int dirfd, const char *path, const struct timespec *times, int flags);
DF_PUBLIC int df_futimens(int fd, const struct timespec *times);
DF_PUBLIC int df_truncate(const char *path, off_t size);
DF_PUBLIC int df_statvfs(const char *path, struct statvfs *out);
DF_PUBLIC int df_fstatvfs(int fd, struct statvfs *out);

/* ---- extended attributes: xattr(7) ---------------------------------------------------------- */

DF_PUBLIC ssize_t df_getxattr(const char *path, const char *name, void *value, size_t size);
DF_PUBLIC ssize_t df_lgetxattr(const char *path, const char *name, void *value, size_t size);
DF_PUBLIC ssize_t df_fgetxattr(int fd, const char *name, void *value, size_t size);
DF_PUBLIC int df_setxattr(const char *path, const char *name, const void *value, size_t size,
                          int flags);
DF_PUBLIC int df_lsetxattr(const char *path, const char *name, const void *value, size_t size,
                           int flags);
DF_PUBLIC int df_fsetxattr(int fd, const char *name, const void *value, size_t size, int flags);
DF_PUBLIC ssize_t df_listxattr(const char *path, char *list, size_t size);
DF_PUBLIC ssize_t df_llistxattr(const char *path, char *list, size_t size);
DF_PUBLIC ssize_t df_flistxattr(int fd, char *list, size_t size);
DF_PUBLIC int df_removexattr(const char *path, const char *name);
DF_PUBLIC int df_lremovexattr(const char *path, const char *name);
DF_PUBLIC int df_fremovexattr(int fd, const char *name);

/* ---- names: mkdir(2), unlink(2), rename(2), link(2), symlink(2), readlink(2) ---------------- */

DF_PUBLIC int df_mkdir(const char *path, mode_t mode);
DF_PUBLIC int df_mkdirat(int dirfd, const char *path, mode_t mode);
DF_PUBLIC int df_mknod(const char *path, mode_t mode, dev_t rdev);
DF_PUBLIC int df_mknodat(int dirfd, const char *path, mode_t mode, dev_t rdev);
DF_PUBLIC int df_unlink(const char *path);
DF_PUBLIC int df_rmdir(const char *path);
DF_PUBLIC int df_unlinkat(int dirfd, const char *path, int flags);
DF_PUBLIC int df_rename(const char *from, const char *to);
DF_PUBLIC int df_renameat(int from_dirfd, const char *from, int to_dirfd, const char *to);
DF_PUBLIC int df_renameat2(int from_dirfd, const char *from, int to_dirfd, const char *to,
                           unsigned flags);
DF_PUBLIC int df_link(const char *from, const char *to);
DF_PUBLIC int df_linkat(int from_dirfd, const char *from, int to_dirfd, const char *to, int flags);
DF_PUBLIC int df_symlink(const char *target, const char *path);
DF_PUBLIC int df_symlinkat(const char *target, int dirfd, const char *path);
DF_PUBLIC ssize_t df_readlink(const char *path, char *buf, size_t size);
DF_PUBLIC ssize_t df_readlinkat(int dirfd, const char *path, char *buf, size_t size);

/* ---- directories: getdents64(2), opendir(3), readdir(3) ------------------------------------- */

DF_PUBLIC ssize_t df_getdents(int fd, void *buf, size_t size);

typedef struct df_dir df_dir; /* as DIR: one thread at a time */

DF_PUBLIC df_dir *df_opendir(const char *path);
/* Takes over fd on success. */
DF_PUBLIC df_dir *df_fdopendir(int fd);
/* The entry is valid until the next call for this directory. NULL at the end (errno unchanged) or
 * on an error. */
DF_PUBLIC struct dirent *df_readdir(df_dir *dir);
DF_PUBLIC long df_telldir(df_dir *dir);
DF_PUBLIC void df_seekdir(df_dir *dir, long position);
DF_PUBLIC void df_rewinddir(df_dir *dir);
DF_PUBLIC int df_dirfd(df_dir *dir);
DF_PUBLIC int df_closedir(df_dir *dir);

/* ---- locks and readiness: flock(2), poll(2) ------------------------------------------------- */

DF_PUBLIC int df_flock(int fd, int operation);
/* Virtual descriptors only in one call, or real ones only: else EINVAL. */
DF_PUBLIC int df_poll(struct pollfd *fds, nfds_t count, int timeout);

/* ---- memory: mmap(2) ------------------------------------------------------------------------ */

/*
 * Memory with the bytes of a file. *address receives the start (in: must be NULL for a virtual
 * descriptor; MAP_FIXED is EINVAL). Returns 0, or -1 and errno.
 *
 * A read-only mapping may be lent by the plugin, without a copy; then it is not aligned to pages.
 * Otherwise it is a copy, filled at once, zero behind the end of the file. A shared writable
 * mapping is written back (what was changed, by the byte) by df_msync() and df_munmap(); it is not
 * coherent with other mappings or with write(2) in between, and not written back by exit(3).
 */
DF_PUBLIC int df_mmap(void **address, size_t length, int prot, int flags, int fd, off_t offset);
DF_PUBLIC int df_msync(void *address, size_t length, int flags);
/* Only whole mappings, by the address and length df_mmap() was given. EINTR: the file system was
 * interrupted while it was written back, and it is still mapped; call again. */
DF_PUBLIC int df_munmap(void *address, size_t length);

#ifdef __cplusplus
}
#endif

#endif
