/*
 * test_core_calls.c - opening, data, attributes, mappings, through the C door on a RAM file system:
 * what the core itself adds (checks in Linux's order, positions, identity, st_dev).
 */
#include <directfuse.h>
#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cmocka.h>

#include "calls_fixture.h"

/* ---- opening ---- */

static void opens_and_closes(void **state)
{
    int fd;

    (void)state;
    assert_fails(df_open(POINT "/f", O_RDONLY, 0), ENOENT);
    fd = make_file(POINT "/f", "hello");
    assert_reads(fd, 0, "hello");
    assert_int_equal(df_close(fd), 0);
    assert_fails(df_close(fd), EBADF);
    assert_int_equal(close(fd), -1); /* the kernel knows no such number */
    assert_int_equal(probe.flushed, 1);
    assert_fails(df_open(POINT "/f", O_CREAT | O_EXCL | O_RDWR, 0644), EEXIST);
    assert_fails(df_open(POINT "/f", O_DIRECTORY, 0), ENOTDIR);
    assert_fails(df_open(POINT, O_RDWR, 0), EISDIR);
    assert_fails(df_open(POINT "/new", O_CREAT | O_DIRECTORY | O_RDWR, 0644), EINVAL);
    assert_fails(df_open(POINT, O_TMPFILE | O_RDWR, 0644), EOPNOTSUPP);
    assert_fails(df_open(POINT "/new/", O_CREAT | O_RDWR, 0644), EISDIR);
    assert_fails(df_open(POINT "/none/new/", O_CREAT | O_RDWR, 0644), ENOENT);
    assert_fails(df_open(POINT, O_CREAT | O_EXCL, 0644), EEXIST);
    assert_fails(df_open(POINT, O_CREAT, 0644), EISDIR);
    assert_fails(df_open("", O_RDONLY, 0), ENOENT);
    assert_fails(df_open(NULL, O_RDONLY, 0), EFAULT);
}

static void path_descriptor_allows_little(void **state)
{
    char buf[8];
    struct stat st;
    int fd, copy;

    (void)state;
    make_closed(POINT "/f", "hello");
    fd = df_open(POINT "/f", O_PATH | O_RDWR, 0);
    assert_true(fd >= 0);
    assert_fails(df_read(fd, buf, 1), EBADF);
    assert_fails(df_fchmod(fd, 0600), EBADF);
    assert_fails(df_ioctl(fd, FIONREAD, buf), EBADF);
    assert_int_equal(df_fstat(fd, &st), 0);
    assert_int_equal(st.st_size, 5);
    copy = df_dup(fd);
    assert_true(copy >= 0);
    assert_int_equal(df_close(copy), 0);
    assert_int_equal(df_close(fd), 0);
    assert_int_equal(probe.flushed, 1); /* that of make_closed alone */
}

static void descriptors_share_a_file(void **state)
{
    char buf[8] = "";
    int fd, copy, far = DF_FD_BASE + 5000;

    (void)state;
    fd = make_file(POINT "/f", "abcdef");
    copy = df_dup(fd);
    assert_int_equal(df_lseek(copy, 2, SEEK_SET), 2);
    assert_int_equal(df_read(fd, buf, 2), 2);
    assert_string_equal(buf, "cd");
    assert_int_equal(df_lseek(copy, 0, SEEK_CUR), 4);
    assert_int_equal(df_close(fd), 0);
    assert_int_equal(df_read(copy, buf, 2), 2);
    assert_string_equal(buf, "ef");
    assert_int_equal(df_dup2(copy, far), far);
    assert_int_equal(df_dup2(copy, copy), copy);
    assert_fails(df_dup2(fd, fd), EBADF);
    assert_fails(df_dup3(copy, copy, 0), EINVAL);
    assert_fails(df_dup3(copy, far, O_APPEND), EINVAL);
    assert_fails(df_dup2(copy, 1), EXDEV);
    assert_fails(df_dup2(1, copy), EXDEV);
    assert_int_equal(df_fcntl(copy, F_DUPFD, far), far + 1);
    assert_int_equal(df_fcntl(far, F_GETFD, 0), 0);
    assert_int_equal(df_fcntl(far, F_SETFD, FD_CLOEXEC), 0);
    assert_int_equal(df_fcntl(far, F_GETFD, 0), FD_CLOEXEC);
    assert_int_equal(df_dup3(copy, far, 0), far);
    assert_int_equal(df_fcntl(far, F_GETFD, 0), 0);
    assert_int_equal(probe.released, 0);
    assert_int_equal(df_close(copy), 0);
    assert_int_equal(df_close(far), 0);
    assert_int_equal(df_close(far + 1), 0);
    assert_int_equal(probe.released, 1);
}

static void flags_of_the_file_change(void **state)
{
    int fd;

    (void)state;
    fd = df_open(POINT "/f", O_CREAT | O_RDWR | O_CLOEXEC | O_TRUNC | O_EXCL, 0600);
    assert_int_equal(df_fcntl(fd, F_GETFL, 0) & ~0100000, O_RDWR);
    assert_int_equal(df_fcntl(fd, F_GETFD, 0), FD_CLOEXEC);
    assert_int_equal(df_fcntl(fd, F_SETFL, O_APPEND | O_WRONLY), 0);
    assert_int_equal(df_fcntl(fd, F_GETFL, 0) & ~0100000, O_RDWR | O_APPEND);
    assert_int_equal(df_write(fd, "ab", 2), 2);
    assert_int_equal(df_lseek(fd, 0, SEEK_SET), 0);
    assert_int_equal(df_write(fd, "cd", 2), 2);
    assert_int_equal(df_lseek(fd, 0, SEEK_CUR), 4);
    assert_reads(fd, 0, "abcd");
    assert_fails(df_fcntl(fd, F_GETPIPE_SZ, 0), EINVAL);
    assert_fails(df_fcntl(fd, F_DUPFD, -1), EINVAL);
    assert_int_equal(df_close(fd), 0);
}

/* ---- data ---- */

static void reads_and_writes(void **state)
{
    char a[4] = "", b[4] = "";
    struct iovec iov[2] = {{a, 3}, {b, 3}};
    int fd;

    (void)state;
    fd = make_file(POINT "/f", "0123456789");
    assert_int_equal(df_preadv(fd, iov, 2, 2), 6);
    assert_string_equal(a, "234");
    assert_string_equal(b, "567");
    assert_int_equal(df_pwritev(fd, iov, 2, 0), 6);
    assert_reads(fd, 0, "2345676789");
    assert_int_equal(df_lseek(fd, 8, SEEK_SET), 8);
    assert_int_equal(df_readv(fd, iov, 2), 2);
    assert_int_equal(df_readv(fd, iov, 2), 0);
    assert_int_equal(df_writev(fd, iov, 1), 3);
    assert_int_equal(df_lseek(fd, 0, SEEK_CUR), 13);
    assert_int_equal(df_pwrite(fd, "X", 1, 20), 1);
    assert_int_equal(df_lseek(fd, 0, SEEK_END), 21);
    assert_int_equal(df_read(fd, a, 0), 0);
    assert_int_equal(df_close(fd), 0);
}

static void refuses_bad_arguments(void **state)
{
    char buf[8];
    struct iovec many[IOV_MAX + 1] = {{buf, 1}};
    struct iovec negative[2] = {{buf, 1}, {buf, (size_t)-1}};
    int fd, dir, wr;

    (void)state;
    fd = make_file(POINT "/f", "hello");
    dir = df_open(POINT, O_RDONLY, 0);
    wr = df_open(POINT "/f", O_WRONLY, 0);
    assert_fails(df_pread(fd, buf, 1, -1), EINVAL);
    assert_fails(df_pwrite(fd, buf, 1, -1), EINVAL);
    assert_fails(df_pread(fd, buf, (size_t)-1, 0), EINVAL);
    assert_fails(df_pread(fd, buf, 2, INT64_MAX), EINVAL);
    assert_fails(df_readv(fd, many, IOV_MAX + 1), EINVAL);
    assert_fails(df_readv(fd, many, -1), EINVAL);
    assert_fails(df_readv(fd, negative, 2), EINVAL);
    assert_int_equal(df_readv(fd, many, 0), 0);
    assert_fails(df_read(wr, buf, 1), EBADF);
    assert_fails(df_read(dir, buf, 1), EISDIR);
    assert_fails(df_write(dir, buf, 1), EBADF);
    assert_fails(df_lseek(fd, -1, SEEK_SET), EINVAL);
    assert_fails(df_lseek(fd, INT64_MAX, SEEK_END), EINVAL);
    assert_fails(df_lseek(fd, 0, 17), EINVAL);
    assert_fails(df_lseek(fd, 5, SEEK_DATA), ENXIO);
    assert_int_equal(df_lseek(fd, 2, SEEK_DATA), 2);
    assert_int_equal(df_lseek(fd, 2, SEEK_HOLE), 5);
    assert_fails(df_ftruncate(fd, -1), EINVAL);
    assert_fails(df_ftruncate(dir, 0), EINVAL);
    assert_fails(df_fallocate(fd, 0, 0, 0), EINVAL);
    assert_fails(df_fallocate(fd, 0, -1, 5), EINVAL);
    assert_fails(df_fallocate(fd, 0x1000, 0, 5), EOPNOTSUPP);
    assert_fails(df_fallocate(dir, 0, 0, 5), EBADF);
    assert_fails(df_fadvise(fd, 0, -1, POSIX_FADV_NORMAL), EINVAL);
    assert_fails(df_fadvise(fd, 0, 0, 99), EINVAL);
    assert_fails(df_read(DF_FD_BASE + 99999, buf, 1), EBADF);
    assert_fails(df_read(INT_MAX, buf, 1), EBADF);
    assert_int_equal(df_close(wr), 0);
    assert_int_equal(df_close(dir), 0);
    assert_int_equal(df_close(fd), 0);
}

static void reads_a_batch(void **state)
{
    char buf[5][8] = {"", "", "", "", ""};
    FILE *real = tmpfile();
    struct df_read reads[5];
    int fd;

    (void)state;
    assert_int_equal(pwrite(fileno(real), "real", 4, 0), 4);
    fd = make_file(POINT "/f", "0123456789");
    for (int i = 0; i < 5; i++)
        reads[i] = (struct df_read){.fd = fd, .buf = buf[i], .size = 3, .offset = i};
    reads[1].fd = fileno(real);
    reads[2].fd = DF_FD_BASE + 99999;
    reads[3].offset = -1;
    assert_int_equal(df_read_batch(reads, 5), 0);
    assert_int_equal(reads[0].result, 3);
    assert_string_equal(buf[0], "012");
    assert_int_equal(reads[1].result, 3);
    assert_string_equal(buf[1], "eal");
    assert_int_equal(reads[2].result, -EBADF);
    assert_int_equal(reads[3].result, -EINVAL);
    assert_string_equal(buf[4], "456");
    assert_int_equal(df_read_batch(NULL, 0), 0);
    assert_fails(df_read_batch(reads, (size_t)1 << 30), EINVAL);
    fclose(real);
    assert_int_equal(df_close(fd), 0);
}

static void copies_a_range(void **state)
{
    off_t from = 2, to = 1;
    int a, b, append;

    (void)state;
    a = make_file(POINT "/a", "0123456789");
    b = make_file(POINT "/b", "abc");
    append = df_open(POINT "/b", O_WRONLY | O_APPEND, 0);
    assert_int_equal(df_copy_file_range(a, &from, b, &to, 100, 0), 8);
    assert_int_equal(from, 10);
    assert_int_equal(to, 9);
    assert_reads(b, 0, "a23456789");
    assert_int_equal(df_lseek(a, 0, SEEK_SET), 0);
    assert_int_equal(df_lseek(b, 0, SEEK_END), 9);
    assert_int_equal(df_copy_file_range(a, NULL, b, NULL, 3, 0), 3);
    assert_reads(b, 8, "9012");
    assert_int_equal(df_lseek(a, 0, SEEK_CUR), 3);
    assert_fails(df_copy_file_range(a, NULL, append, NULL, 3, 0), EBADF);
    assert_fails(df_copy_file_range(a, NULL, b, NULL, 3, 1), EINVAL);
    assert_fails(df_copy_file_range(a, NULL, 1, NULL, 3, 0), EXDEV);
    from = 0;
    to = 2;
    assert_fails(df_copy_file_range(a, &from, a, &to, 3, 0), EINVAL);
    assert_int_equal(df_close(append), 0);
    assert_int_equal(df_close(a), 0);
    assert_int_equal(df_close(b), 0);
}

static void respects_the_size_limit(void **state)
{
    struct rlimit old, small = {8, RLIM_INFINITY};
    int fd, append;

    (void)state;
    fd = make_file(POINT "/f", "0123");
    append = df_open(POINT "/f", O_WRONLY | O_APPEND, 0);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    small.rlim_max = old.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    assert_int_equal(df_identity_refresh(), 0);
    assert_int_equal(df_pwrite(fd, "abcdef", 6, 5), 3);
    assert_fails(df_pwrite(fd, "x", 1, 8), EFBIG);
    assert_fails(df_write(append, "x", 1), EFBIG);
    assert_fails(df_ftruncate(fd, 9), EFBIG);
    assert_fails(df_truncate(POINT "/f", 9), EFBIG);
    assert_fails(df_fallocate(fd, 0, 0, 9), EFBIG);
    assert_int_equal(df_ftruncate(fd, 6), 0);
    assert_int_equal(df_write(append, "xyz", 3), 2);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    assert_int_equal(df_identity_refresh(), 0);
    assert_int_equal(df_close(append), 0);
    assert_int_equal(df_close(fd), 0);
}

/* ---- attributes ---- */

static void shows_attributes(void **state)
{
    struct stat st, root;
    struct statx stx;
    struct statvfs vfs;
    int fd;

    (void)state;
    fd = make_file(POINT "/f", "hello");
    assert_int_equal(df_stat(POINT, &root), 0);
    assert_int_equal(df_stat(POINT "/f", &st), 0);
    assert_int_equal(st.st_size, 5);
    assert_int_equal(st.st_dev, root.st_dev);
    assert_int_equal(df_fstat(fd, &st), 0);
    assert_int_equal(st.st_dev, root.st_dev);
    assert_int_equal(df_statx(AT_FDCWD, POINT "/f", 0, STATX_BASIC_STATS, &stx), 0);
    assert_int_equal(stx.stx_size, 5);
    assert_int_equal(df_statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &stx), 0);
    assert_int_equal(stx.stx_ino, st.st_ino);
    assert_fails(df_statx(fd, "", AT_EMPTY_PATH, STATX__RESERVED, &stx), EINVAL);
    assert_fails(df_fstatat(AT_FDCWD, POINT, &st, 0x40000000), EINVAL);
    assert_fails(df_fstatat(fd, "", &st, 0), ENOENT);
    assert_int_equal(df_access(POINT "/f", R_OK | W_OK), 0);
    assert_fails(df_access(POINT "/f", 8), EINVAL);
    assert_fails(df_faccessat(AT_FDCWD, POINT "/f", R_OK, 0x1), EINVAL);
    assert_int_equal(df_statvfs(POINT, &vfs), 0);
    assert_int_equal(vfs.f_namemax, 255);
    assert_int_equal(df_fstatvfs(fd, &vfs), 0);
    assert_int_equal(df_close(fd), 0);
}

static uint64_t statx_attributes(int dirfd, const char *path)
{
    struct statx stx;

    assert_int_equal(df_statx(dirfd, path, AT_EMPTY_PATH, STATX_BASIC_STATS, &stx), 0);
    assert_int_equal(stx.stx_attributes_mask, STATX_ATTR_MOUNT_ROOT);
    return stx.stx_attributes;
}

static void statx_tells_the_root_of_a_mount(void **state)
{
    int fd;

    (void)state;
    assert_int_equal(df_close(make_file(POINT "/f", "hello")), 0);
    assert_int_equal(df_mkdir(POINT "/d", 0755), 0);
    fd = df_open(POINT, O_RDONLY, 0);
    assert_int_equal(statx_attributes(fd, "d"), 0);
    assert_int_equal(statx_attributes(fd, "f"), 0);
    assert_int_equal(statx_attributes(fd, ""), STATX_ATTR_MOUNT_ROOT);
    assert_int_equal(statx_attributes(fd, "d/.."), STATX_ATTR_MOUNT_ROOT);
    assert_int_equal(statx_attributes(AT_FDCWD, POINT), STATX_ATTR_MOUNT_ROOT);
    assert_int_equal(df_close(fd), 0);
}

/* As the system calls of Linux; the paths are wrong as well, by a descriptor of a file. */
static void flags_are_refused_before_paths(void **state)
{
    const int fd = make_file(POINT "/f", "hello"), unknown = 1 << 20;
    const struct timespec times[2] = {{1, 2}, {3, 4}};
    struct statx stx;
    struct stat st;
    char buf[8];

    (void)state;
    assert_fails(df_fstatat(fd, "x", &st, unknown), EINVAL);
    assert_fails(df_statx(fd, "x", unknown, STATX_BASIC_STATS, &stx), EINVAL);
    assert_fails(df_faccessat(fd, "x", 0, unknown), EINVAL);
    assert_fails(df_faccessat(fd, "x", 8, 0), EINVAL);
    assert_fails(df_fchmodat(fd, "x", 0644, unknown), EINVAL);
    assert_fails(df_fchownat(fd, "x", 1, 1, unknown), EINVAL);
    assert_fails(df_utimensat(fd, "x", times, unknown), EINVAL);
    assert_fails(df_unlinkat(fd, "x", unknown), EINVAL);
    assert_fails(df_readlinkat(fd, "x", buf, 0), EINVAL);
    assert_fails(df_openat(fd, "x", O_TMPFILE | O_RDONLY, 0644), EINVAL);
    assert_fails(df_truncate(POINT "/f/x", -1), EINVAL);
    assert_fails(df_linkat(fd, "x", fd, NULL, unknown), EINVAL);
    assert_fails(df_renameat2(fd, NULL, fd, "x", 1 << 10), EINVAL);
    assert_fails(df_getxattr(POINT "/f/x", "", buf, 8), ERANGE);
    assert_fails(df_setxattr("", "user.x", buf, 1 << 20, 0), E2BIG);
    assert_int_equal(df_close(fd), 0);
}

/* The way of the first path comes before a second one that is none. */
static void a_second_path_is_taken_after_the_way_of_the_first(void **state)
{
    (void)state;
    make_closed(POINT "/f", "hello");
    assert_fails(df_linkat(AT_FDCWD, POINT "/none", AT_FDCWD, NULL, 0), ENOENT);
    assert_fails(df_linkat(AT_FDCWD, POINT "/f", AT_FDCWD, NULL, 0), EFAULT);
    assert_fails(df_linkat(AT_FDCWD, "/none", AT_FDCWD, NULL, 0), ENOENT);
    assert_fails(df_renameat2(AT_FDCWD, POINT "/f/x", AT_FDCWD, NULL, 0), ENOTDIR);
    assert_fails(df_renameat2(AT_FDCWD, POINT "/x", AT_FDCWD, NULL, 0), EFAULT);
    assert_fails(df_renameat2(AT_FDCWD, NULL, AT_FDCWD, "", 0), EFAULT);
}

/* vfs_utimes() of Linux: once the file is found. */
static void times_are_refused_after_the_path(void **state)
{
    const struct timespec bad[2] = {{0, 2000000000}, {0, 0}};
    const int fd = make_file(POINT "/f", "hello"), path = df_open(POINT "/f", O_PATH, 0);

    (void)state;
    assert_fails(df_utimensat(AT_FDCWD, POINT "/f", bad, 0), EINVAL);
    assert_fails(df_utimensat(AT_FDCWD, POINT "/none", bad, 0), ENOENT);
    assert_fails(df_utimensat(AT_FDCWD, "", bad, 0), ENOENT);
    assert_fails(df_utimensat(fd, "x", bad, 0), ENOTDIR);
    assert_fails(df_utimensat(fd, "x", bad, 1 << 20), EINVAL);
    assert_fails(df_futimens(path, bad), EBADF);
    assert_int_equal(df_close(path), 0);
    assert_int_equal(df_close(fd), 0);
}

static void sets_attributes(void **state)
{
    struct timespec bad[2] = {{0, 2000000000}, {0, 0}},
                    omit[2] = {{0, UTIME_OMIT}, {0, UTIME_OMIT}};
    struct timespec times[2] = {{1, 2}, {3, 4}};
    struct stat st;
    int fd;

    (void)state;
    fd = make_file(POINT "/f", "hello");
    assert_int_equal(df_chmod(POINT "/f", 0640), 0);
    assert_int_equal(df_fchmod(fd, 0100604), 0);
    assert_int_equal(df_fstat(fd, &st), 0);
    assert_int_equal(st.st_mode, S_IFREG | 0604);
    assert_int_equal(df_chown(POINT "/f", 42, (gid_t)-1), 0);
    assert_int_equal(df_fstat(fd, &st), 0);
    assert_int_equal(st.st_uid, 42);
    assert_int_equal(df_chown(POINT "/f", (uid_t)-1, (gid_t)-1), 0);
    assert_fails(df_chown(POINT "/none", (uid_t)-1, (gid_t)-1), ENOENT);
    assert_fails(df_utimensat(AT_FDCWD, POINT "/f", bad, 0), EINVAL);
    assert_fails(df_futimens(fd, bad), EINVAL);
    assert_int_equal(df_utimensat(AT_FDCWD, POINT "/none", omit, 0), 0);
    assert_int_equal(df_futimens(fd, times), 0);
    assert_int_equal(df_fstat(fd, &st), 0);
    assert_int_equal(st.st_mtim.tv_sec, 3);
    assert_int_equal(st.st_mtim.tv_nsec, 4);
    assert_int_equal(df_truncate(POINT "/f", 2), 0);
    assert_int_equal(df_ftruncate(fd, 3), 0);
    assert_int_equal(df_lseek(fd, 0, SEEK_END), 3);
    assert_fails(df_truncate(POINT "/f", -1), EINVAL);
    assert_fails(df_truncate(POINT, 0), EISDIR);
    assert_int_equal(df_symlink("f", POINT "/l"), 0);
    assert_fails(df_fchmodat(AT_FDCWD, POINT "/l", 0600, AT_SYMLINK_NOFOLLOW), EOPNOTSUPP);
    assert_int_equal(df_fchmodat(AT_FDCWD, POINT "/f", 0600, AT_SYMLINK_NOFOLLOW), 0);
    assert_int_equal(df_close(fd), 0);
}

static void checks_xattr_arguments(void **state)
{
    char name[300], value[8];

    (void)state;
    make_closed(POINT "/f", "");
    memset(name, 'n', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    assert_fails(df_getxattr(POINT "/f", name, value, 8), ERANGE);
    assert_fails(df_getxattr(POINT "/f", "", value, 8), ERANGE);
    assert_fails(df_getxattr(POINT "/f", "user.a", value, 8), EOPNOTSUPP);
    assert_fails(df_setxattr(POINT "/f", "user.a", value, 1 << 20, 0), E2BIG);
    assert_fails(df_setxattr(POINT "/f", "user.a", value, 1, 64), EINVAL);
    assert_fails(df_setxattr(POINT "/f", "user.a", value, 1, XATTR_CREATE), EOPNOTSUPP);
    assert_int_equal(df_symlink("f", POINT "/l"), 0);
    assert_fails(df_lsetxattr(POINT "/l", "user.a", value, 1, 0), EPERM);
    assert_fails(df_lremovexattr(POINT "/l", "user.a"), EPERM);
    assert_fails(df_llistxattr(POINT "/l", value, 1), EOPNOTSUPP);
    assert_fails(df_setxattr(POINT "/none", "user.a", value, 1, 0), ENOENT);
}

/* ---- identity ---- */

static void reads_the_identity_again(void **state)
{
    struct stat st;
    mode_t old = umask(077);

    (void)state;
    assert_int_equal(df_identity_refresh(), 0); /* umask(2) was called behind our back */
    assert_int_equal(df_mkdir(POINT "/a", 0777), 0);
    assert_int_equal(df_stat(POINT "/a", &st), 0);
    assert_int_equal(st.st_mode, S_IFDIR | 0700);
    assert_int_equal(df_umask(0), 077); /* both at once */
    assert_int_equal(df_mkdir(POINT "/b", 0777), 0);
    assert_int_equal(df_stat(POINT "/b", &st), 0);
    assert_int_equal(st.st_mode, S_IFDIR | 0777);
    assert_int_equal(umask(old), 0);
    assert_int_equal(df_identity_refresh(), 0);
}

static void an_outsider_makes_no_setgid_file(void **state)
{
    gid_t groups[] = {0};
    struct df_identity outsider = {.uid = 1000, .gid = 1000, .groups = groups};
    struct stat st;

    (void)state;
    assert_int_equal(df_mkdir(POINT "/d", 0777), 0);
    assert_int_equal(df_chmod(POINT "/d", 02777), 0); /* group 0 */
    assert_int_equal(df_identity_set(&outsider), 0);
    assert_int_equal(df_mknod(POINT "/d/a", S_IFREG | 02755, 0), 0);
    assert_int_equal(df_close(df_open(POINT "/d/b", O_CREAT | O_WRONLY, 02755)), 0);
    assert_int_equal(df_close(df_open(POINT "/c", O_CREAT | O_WRONLY, 02755)), 0);
    outsider.group_count = 1;
    assert_int_equal(df_identity_set(&outsider), 0);
    assert_int_equal(df_mknod(POINT "/d/e", S_IFREG | 02755, 0), 0);
    assert_int_equal(df_identity_set(NULL), 0);
    assert_int_equal(df_stat(POINT "/d/a", &st), 0);
    assert_int_equal(st.st_mode & 07777, 0755);
    assert_int_equal(df_stat(POINT "/d/b", &st), 0);
    assert_int_equal(st.st_mode & 07777, 0755);
    assert_int_equal(df_stat(POINT "/c", &st), 0);
    assert_int_equal(st.st_mode & 07777, 02755); /* the directory is not setgid */
    assert_int_equal(df_stat(POINT "/d/e", &st), 0);
    assert_int_equal(st.st_mode & 07777, 02755); /* a member may */
}

/* ---- memory ---- */

static void lends_bytes(void **state)
{
    void *p = NULL;
    int fd;

    (void)state;
    fd = make_file(POINT "/f", "0123456789");
    assert_int_equal(df_mmap(&p, 10, PROT_READ, MAP_SHARED, fd, 0), 0);
    assert_int_equal(probe.borrowed, 1);
    assert_memory_equal(p, "0123456789", 10);
    assert_int_equal(df_close(fd), 0);
    assert_fails(df_unmount(mount_id, 0), EBUSY);
    assert_fails(df_munmap((char *)p + 1, 3), EINVAL);
    assert_int_equal(df_munmap(p, 10), 0);
    assert_int_equal(probe.borrowed, 0);
}

static void writes_changes_back(void **state)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *p = NULL;
    int fd;

    (void)state;
    fd = make_file(POINT "/f", "0123456789");
    assert_int_equal(df_mmap((void **)&p, 10, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), 0);
    assert_memory_equal(p, "0123456789\0\0", 12);
    p[3] = 'X';
    assert_int_equal(df_pwrite(fd, "YZ", 2, 8), 2); /* not touched by the mapping: stays */
    assert_int_equal(df_msync(p, 10, MS_SYNC), 0);
    assert_reads(fd, 0, "012X4567YZ");
    p[4] = 'W';
    p[page - 1] = 'n'; /* behind the end: never written */
    assert_int_equal(df_munmap(p, 10), 0);
    assert_reads(fd, 0, "012XW567YZ");
    p = NULL;
    assert_int_equal(df_mmap((void **)&p, page, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0), 0);
    p[0] = '!';
    assert_int_equal(df_munmap(p, page), 0);
    assert_reads(fd, 0, "012XW567YZ");
    assert_int_equal(df_close(fd), 0);
}

static char *mapped;

static int store_meanwhile(void)
{
    mapped[3] = 'Y';
    return 0;
}

static void a_store_while_changes_are_written_back_is_not_lost(void **state)
{
    int fd;

    (void)state;
    mapped = NULL;
    fd = make_file(POINT "/f", "0123456789");
    assert_int_equal(df_mmap((void **)&mapped, 10, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), 0);
    mapped[3] = 'X';
    probe.written = store_meanwhile;
    assert_int_equal(df_msync(mapped, 10, MS_SYNC), 0);
    probe.written = NULL;
    assert_reads(fd, 0, "012X456789");
    assert_int_equal(df_munmap(mapped, 10), 0);
    assert_reads(fd, 0, "012Y456789");
    assert_int_equal(df_close(fd), 0);
}

static void refuses_bad_mappings(void **state)
{
    void *p = NULL, *hint = &p;
    int fd, wr, dir;

    (void)state;
    fd = df_open(POINT "/f", O_CREAT | O_RDONLY, 0644);
    wr = df_open(POINT "/f", O_WRONLY, 0);
    dir = df_open(POINT, O_RDONLY, 0);
    assert_fails(df_mmap(&p, 0, PROT_READ, MAP_SHARED, fd, 0), EINVAL);
    assert_fails(df_mmap(&p, 1, PROT_READ, MAP_SHARED, fd, 1), EINVAL);
    assert_fails(df_mmap(&p, 1, PROT_READ, 0, fd, 0), EINVAL);
    assert_fails(df_mmap(&p, 1, PROT_READ, MAP_SHARED | MAP_FIXED, fd, 0), EINVAL);
    assert_fails(df_mmap(&hint, 1, PROT_READ, MAP_SHARED, fd, 0), EINVAL);
    assert_fails(df_mmap(&p, 1, PROT_WRITE, MAP_SHARED, fd, 0), EACCES);
    assert_fails(df_mmap(&p, 1, PROT_READ, MAP_PRIVATE, wr, 0), EACCES);
    assert_fails(df_mmap(&p, 1, PROT_READ, MAP_PRIVATE, dir, 0), ENODEV);
    assert_int_equal(df_close(fd), 0);
    assert_int_equal(df_close(wr), 0);
    assert_int_equal(df_close(dir), 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(opens_and_closes),
        TEST(path_descriptor_allows_little),
        TEST(descriptors_share_a_file),
        TEST(flags_of_the_file_change),
        TEST(reads_and_writes),
        TEST(refuses_bad_arguments),
        TEST(reads_a_batch),
        TEST(copies_a_range),
        TEST(respects_the_size_limit),
        TEST(shows_attributes),
        TEST(statx_tells_the_root_of_a_mount),
        TEST(flags_are_refused_before_paths),
        TEST(a_second_path_is_taken_after_the_way_of_the_first),
        TEST(times_are_refused_after_the_path),
        TEST(sets_attributes),
        TEST(checks_xattr_arguments),
        TEST(reads_the_identity_again),
        TEST(an_outsider_makes_no_setgid_file),
        TEST(lends_bytes),
        TEST(writes_changes_back),
        TEST(a_store_while_changes_are_written_back_is_not_lost),
        TEST(refuses_bad_mappings),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
