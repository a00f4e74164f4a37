/*
 * test_core_names.c - names, directories, read-only mounts and what is not ours, through the C door
 * on a RAM file system: what the core itself adds (routing, order of errors, EXDEV, EROFS).
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

/* ---- names ---- */

static void makes_entries(void **state)
{
    struct stat st;
    mode_t old = df_umask(027);

    (void)state;
    assert_int_equal(df_mkdir(POINT "/d/", 0777), 0);
    assert_int_equal(df_stat(POINT "/d", &st), 0);
    assert_int_equal(st.st_mode, S_IFDIR | 0750);
    assert_int_equal(df_umask(old), 027);
    assert_fails(df_mkdir(POINT "/d", 0777), EEXIST);
    assert_fails(df_mkdir(POINT "/d/.", 0777), EEXIST);
    assert_fails(df_mkdir(POINT "/d/..", 0777), EEXIST);
    assert_fails(df_mkdir(POINT, 0777), EEXIST);
    assert_fails(df_mkdir(POINT "/none/.", 0777), ENOENT);
    assert_fails(df_mkdir(POINT "/none/x", 0777), ENOENT);
    assert_fails(df_symlink("x", POINT "/l/"), ENOENT);
    assert_fails(df_symlink("x", POINT "/d/"), EEXIST);
    assert_fails(df_symlink("", POINT "/l"), ENOENT);
    assert_int_equal(df_mknod(POINT "/n", 0644, 0), 0);
    assert_int_equal(df_stat(POINT "/n", &st), 0);
    assert_true(S_ISREG(st.st_mode));
    assert_fails(df_mknod(POINT "/m", S_IFDIR | 0755, 0), EPERM);
    assert_fails(df_mknod(POINT "/m", S_IFMT, 0), EINVAL);
    assert_int_equal(df_link(POINT "/n", POINT "/m"), 0);
    assert_int_equal(df_stat(POINT "/m", &st), 0);
    assert_int_equal(st.st_nlink, 2);
    assert_fails(df_link(POINT "/n", POINT "/m"), EEXIST);
    assert_fails(df_link(POINT "/d", POINT "/e"), EPERM);
    assert_fails(df_link(POINT "/n", POINT "/x/"), ENOENT);
    assert_fails(df_link(POINT "/n", POINT "/d/.."), EEXIST);
    assert_fails(df_linkat(AT_FDCWD, POINT "/n", AT_FDCWD, POINT "/x", 1), EINVAL);
}

static void removes_entries(void **state)
{
    (void)state;
    assert_int_equal(df_mkdir(POINT "/d", 0777), 0);
    make_closed(POINT "/d/f", "");
    assert_fails(df_rmdir(POINT "/d"), ENOTEMPTY);
    assert_fails(df_rmdir(POINT "/d/."), EINVAL);
    assert_fails(df_rmdir(POINT "/d/.."), ENOTEMPTY);
    assert_fails(df_rmdir(POINT), EBUSY);
    assert_fails(df_rmdir(POINT "/d/f"), ENOTDIR);
    assert_fails(df_unlink(POINT), EISDIR);
    assert_fails(df_unlink(POINT "/d"), EISDIR);
    assert_fails(df_unlink(POINT "/d/"), EISDIR);
    assert_fails(df_unlink(POINT "/d/f/"), ENOTDIR);
    assert_fails(df_unlink(POINT "/none/"), ENOENT);
    assert_fails(df_unlinkat(AT_FDCWD, POINT "/d/f", 1), EINVAL);
    assert_int_equal(df_unlink(POINT "/d/f"), 0);
    assert_int_equal(df_rmdir(POINT "/d/"), 0);
}

static void renames(void **state)
{
    struct stat st;

    (void)state;
    assert_int_equal(df_mkdir(POINT "/d", 0777), 0);
    make_closed(POINT "/f", "text");
    assert_int_equal(df_rename(POINT "/f", POINT "/d/g"), 0);
    assert_int_equal(df_stat(POINT "/d/g", &st), 0);
    assert_fails(df_rename(POINT "/f", POINT "/h"), ENOENT);
    assert_fails(df_rename(POINT "/d/g/", POINT "/h"), ENOTDIR);
    assert_fails(df_rename(POINT "/d/g", POINT "/h/"), ENOTDIR);
    assert_int_equal(df_rename(POINT "/d/", POINT "/e/"), 0);
    assert_fails(df_rename(POINT "/e/.", POINT "/x"), EBUSY);
    assert_fails(df_rename(POINT, POINT "/x"), EBUSY);
    assert_fails(df_rename(POINT "/e", POINT "/."), EBUSY);
    assert_fails(df_renameat2(AT_FDCWD, POINT "/e", AT_FDCWD, POINT "/e/..", RENAME_NOREPLACE),
                 EEXIST);
    assert_fails(df_renameat2(AT_FDCWD, POINT "/e", AT_FDCWD, POINT "/x", 64), EINVAL);
    assert_fails(df_renameat2(AT_FDCWD, POINT "/e", AT_FDCWD, POINT "/x",
                              RENAME_NOREPLACE | RENAME_EXCHANGE),
                 EINVAL);
}

static void crosses_no_device(void **state)
{
    struct ramfs_probe other = {0};
    int id = attach(POINT "-two", 0, ramfs_new(&other));

    (void)state;
    make_closed(POINT "/f", "");
    make_closed(POINT "-two/f", "");
    assert_fails(df_rename(POINT "/f", POINT "-two/g"), EXDEV);
    assert_fails(df_rename(POINT "/f", "/tmp/df-test-g"), EXDEV);
    assert_fails(df_rename("/tmp/df-test-none", POINT "/g"), EXDEV);
    assert_fails(df_rename(POINT "/none/f", "/tmp/g"), ENOENT);
    assert_fails(df_rename("/tmp/none", POINT "/none/f"), ENOENT);
    assert_fails(df_link(POINT "/f", POINT "-two/g"), EXDEV);
    assert_fails(df_link(POINT "/f", POINT "-two/f"), EEXIST);
    assert_fails(df_link(POINT "/none", POINT "-two/f"), ENOENT);
    assert_int_equal(df_unmount(id, 0), 0);
    assert_int_equal(other.nodes, 0);
}

static void reads_links(void **state)
{
    char buf[16] = "";

    (void)state;
    assert_int_equal(df_symlink("target", POINT "/l"), 0);
    assert_int_equal(df_readlink(POINT "/l", buf, 16), 6);
    assert_string_equal(buf, "target");
    assert_int_equal(df_readlink(POINT "/l", buf, 3), 3);
    assert_fails(df_readlink(POINT "/l", buf, 0), EINVAL);
    assert_fails(df_readlink(POINT, buf, 16), EINVAL);
}

/* ---- directories ---- */

static void lists_a_directory(void **state)
{
    struct dirent *entry;
    df_dir *dir;
    char name[32];
    long at = -1;
    int count = 0;

    (void)state;
    for (int i = 0; i < 2000; i++) {
        snprintf(name, sizeof(name), POINT "/file-%d", i);
        make_closed(name, "");
    }
    dir = df_opendir(POINT);
    assert_non_null(dir);
    errno = 0;
    while ((entry = df_readdir(dir))) {
        if (strcmp(entry->d_name, "file-1500") == 0)
            at = df_telldir(dir);
        count++;
    }
    assert_int_equal(errno, 0);
    assert_int_equal(count, 2002);
    df_seekdir(dir, at);
    assert_string_equal(df_readdir(dir)->d_name, "file-1501");
    df_rewinddir(dir);
    assert_string_equal(df_readdir(dir)->d_name, ".");
    assert_true(df_dirfd(dir) >= DF_FD_BASE);
    assert_fails(df_getdents(df_dirfd(dir), name, 4), EINVAL);
    assert_int_equal(df_closedir(dir), 0);
    assert_null(df_opendir(POINT "/file-1"));
    assert_int_equal(errno, ENOTDIR);
}

/* ---- relative to a descriptor ---- */

static void works_relative_to_a_descriptor(void **state)
{
    struct stat st, same;
    int dir, fd;

    (void)state;
    assert_int_equal(df_mkdir(POINT "/d", 0777), 0);
    dir = df_open(POINT "/d", O_RDONLY | O_DIRECTORY, 0);
    fd = df_openat(dir, "f", O_CREAT | O_RDWR, 0600);
    assert_true(fd >= 0);
    assert_int_equal(df_fstatat(dir, "./f", &st, 0), 0);
    assert_int_equal(df_stat(POINT "/d/f", &same), 0);
    assert_int_equal(st.st_ino, same.st_ino);
    assert_int_equal(df_fstatat(dir, "..", &st, 0), 0);
    assert_int_equal(df_stat(POINT, &same), 0);
    assert_int_equal(st.st_ino, same.st_ino);
    assert_int_equal(df_fstatat(dir, ".", &st, 0), 0);
    assert_int_equal(df_fstatat(dir, "", &same, AT_EMPTY_PATH), 0);
    assert_int_equal(st.st_ino, same.st_ino);
    assert_int_equal(df_fstatat(dir, "../..", &st, 0), 0); /* the real root */
    assert_int_equal(stat("/", &same), 0);
    assert_int_equal(st.st_ino, same.st_ino);
    assert_int_equal(df_fstatat(dir, "/", &st, 0), 0);
    assert_int_equal(st.st_ino, same.st_ino);
    assert_fails(df_fstatat(fd, "x", &st, 0), ENOTDIR);
    assert_fails(df_mkdirat(dir, ".", 0777), EEXIST);
    assert_int_equal(df_renameat(dir, "f", dir, "../g"), 0);
    assert_int_equal(df_unlinkat(dir, "../g", 0), 0);
    assert_int_equal(df_close(fd), 0);
    assert_int_equal(df_close(dir), 0);
    assert_fails(df_fstatat(dir, "f", &st, 0), EBADF);
    assert_int_equal(df_fstatat(dir, POINT, &st, 0), 0); /* dirfd does not matter */
}

/* ---- read-only mounts ---- */

static int read_only_id;

static void make_read_only(struct ramfs_probe *p)
{
    struct df_fs *fs = ramfs_new(p);

    read_only_id = attach(POINT "-ro", 0, fs);
    make_closed(POINT "-ro/f", "text");
    assert_int_equal(df_mkdir(POINT "-ro/d", 0755), 0);
    assert_int_equal(df_symlink("f", POINT "-ro/l"), 0);
}

static bool set_read_only(const struct df_mount *mount, void *arg)
{
    (void)arg;
    if (mount->id == read_only_id)
        ((struct df_mount *)mount)->flags |= DF_ATTACH_READONLY;
    return true;
}

static void keeps_a_read_only_mount(void **state)
{
    struct ramfs_probe p = {0};
    struct statvfs vfs;
    int fd;

    (void)state;
    make_read_only(&p);
    df_mount_each(set_read_only, NULL);
    fd = df_open(POINT "-ro/f", O_RDONLY | O_CREAT, 0644);
    assert_true(fd >= 0);
    assert_reads(fd, 0, "text");
    assert_fails(df_fchmod(fd, 0600), EROFS);
    assert_int_equal(df_close(fd), 0);
    assert_fails(df_open(POINT "-ro/f", O_RDWR, 0), EROFS);
    assert_fails(df_open(POINT "-ro/l", O_WRONLY, 0), EROFS);
    assert_fails(df_open(POINT "-ro/l", O_WRONLY | O_NOFOLLOW, 0), ELOOP);
    assert_fails(df_open(POINT "-ro/f", O_RDONLY | O_TRUNC, 0), EROFS);
    assert_fails(df_open(POINT "-ro/f", O_CREAT | O_EXCL, 0), EEXIST);
    assert_fails(df_open(POINT "-ro/n", O_CREAT, 0644), EROFS);
    assert_fails(df_open(POINT "-ro/n", O_RDWR, 0644), ENOENT);
    assert_fails(df_open(POINT "-ro/x/n", O_CREAT, 0644), ENOENT);
    assert_fails(df_open(POINT "-ro/d", O_RDWR, 0), EISDIR);
    assert_fails(df_mkdir(POINT "-ro/d", 0755), EEXIST);
    assert_fails(df_mkdir(POINT "-ro/n", 0755), EROFS);
    assert_fails(df_mkdir(POINT "-ro/x/n", 0755), ENOENT);
    assert_fails(df_unlink(POINT "-ro/none"), EROFS);
    assert_fails(df_unlink(POINT "-ro/x/none"), ENOENT);
    assert_fails(df_rmdir(POINT "-ro/d"), EROFS);
    assert_fails(df_rename(POINT "-ro/f", POINT "-ro/g"), EROFS);
    assert_fails(df_link(POINT "-ro/f", POINT "-ro/g"), EROFS);
    assert_fails(df_link(POINT "-ro/f", POINT "-ro/d"), EEXIST);
    assert_fails(df_symlink("x", POINT "-ro/g"), EROFS);
    assert_fails(df_chmod(POINT "-ro/f", 0600), EROFS);
    assert_fails(df_chmod(POINT "-ro/none", 0600), ENOENT);
    assert_fails(df_truncate(POINT "-ro/d", 0), EISDIR);
    assert_fails(df_truncate(POINT "-ro/f", 0), EROFS);
    assert_fails(df_setxattr(POINT "-ro/f", "user.a", "x", 1, 0), EROFS);
    assert_fails(df_access(POINT "-ro/f", W_OK), EROFS);
    assert_int_equal(df_access(POINT "-ro/f", R_OK), 0);
    assert_int_equal(df_statvfs(POINT "-ro", &vfs), 0);
    assert_true(vfs.f_flag & ST_RDONLY);
    assert_int_equal(df_unmount(read_only_id, 0), 0);
}

/* ---- what is not ours ---- */

static void passes_to_the_kernel(void **state)
{
    char path[] = "/tmp/df-test-XXXXXX", link[64], buf[8] = "";
    struct df_call_stats before[100], after[100];
    struct stat st, real;
    int fd = mkstemp(path);

    (void)state;
    assert_true(df_call_stats(before, 100) < 100);
    assert_int_equal(df_write(fd, "real", 4), 4);
    assert_int_equal(df_pread(fd, buf, 8, 0), 4);
    assert_string_equal(buf, "real");
    assert_int_equal(df_stat(path, &st), 0);
    assert_int_equal(stat(path, &real), 0);
    assert_int_equal(st.st_ino, real.st_ino);
    assert_int_equal(st.st_dev, real.st_dev);
    df_call_stats(after, 100);
    for (int i = 0; i < 100; i++)
        if (strcmp(after[i].name, "fstatat") == 0) {
            assert_int_equal(after[i].passed, before[i].passed + 1);
            break;
        }
    /* A link from a mount to the real file system, and one from there into a mount. */
    assert_int_equal(df_symlink(path, POINT "/out"), 0);
    assert_int_equal(df_stat(POINT "/out", &st), 0);
    assert_int_equal(st.st_ino, real.st_ino);
    make_closed(POINT "/f", "inside");
    snprintf(link, sizeof(link), "%s-link", path);
    assert_int_equal(symlink(POINT, link), 0);
    strcat(link, "/f");
    assert_int_equal(df_stat(link, &st), 0);
    assert_int_equal(st.st_size, 6);
    *strrchr(link, '/') = '\0';
    assert_int_equal(unlink(link), 0);
    assert_int_equal(close(fd), 0);
    assert_int_equal(unlink(path), 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(makes_entries),
        TEST(removes_entries),
        TEST(renames),
        TEST(crosses_no_device),
        TEST(reads_links),
        TEST(lists_a_directory),
        TEST(works_relative_to_a_descriptor),
        TEST(keeps_a_read_only_mount),
        TEST(passes_to_the_kernel),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
