/*
 * test_lowlevel_requests.c - which requests a call makes: exactly those that Linux makes. The same
 * source is built for a mount of the kernel, so that a wrong expectation is found out.
 *
 * Where the two differ the reason stands at the place: what the page cache answers, and requests
 * that Linux sends for its own security modules.
 */
#include "requests_route.h"

static struct stat st;

static void mount_it(void)
{
    mount_options("rw");
    df_stat(at(""),
            &st); /* the root's attributes, wherever the kernel has asked for them already */
    traced_log(fs, "");
}

static void stat_walks_once(void **state)
{
    uint64_t dir = traced_make(fs, 1, "dir", S_IFDIR | 0755);

    (void)state;
    traced_make(fs, dir, "file", S_IFREG | 0644);
    mount_it();
    assert_int_equal(df_stat(at("/dir/file"), &st), 0);
    asked("LOOKUP 1/dir, LOOKUP 2/file");
    assert_int_equal(st.st_ino, 3);
    assert_int_equal(df_stat(at("/dir/file"), &st), 0);
    asked("");
    assert_int_equal(df_stat(at("/dir"), &st), 0);
    asked("");
}

static void absent_names_are_asked_for_again(void **state)
{
    (void)state;
    mount_it();
    fails(df_stat(at("/none"), &st), ENOENT);
    asked("LOOKUP 1/none");
    fails(df_stat(at("/none"), &st), ENOENT);
    asked("LOOKUP 1/none");
}

static void absence_may_be_cached(void **state)
{
    (void)state;
    fs->negative_timeout = 100;
    mount_it();
    fails(df_stat(at("/none"), &st), ENOENT);
    asked("LOOKUP 1/none");
    fails(df_stat(at("/none"), &st), ENOENT);
    fails(df_stat(at("/none/below"), &st), ENOENT);
    asked("");
}

static void timeouts_of_zero_ask_each_time(void **state)
{
    uint64_t dir = traced_make(fs, 1, "dir", S_IFDIR | 0755);

    (void)state;
    traced_make(fs, dir, "file", S_IFREG | 0644);
    fs->entry_timeout = fs->attr_timeout = 0;
    mount_it();
    assert_int_equal(df_stat(at("/dir/file"), &st), 0);
    asked("LOOKUP 1/dir, LOOKUP 2/file, GETATTR 3");
    assert_int_equal(df_stat(at("/dir/file"), &st), 0);
    asked("LOOKUP 1/dir, LOOKUP 2/file, GETATTR 3");
}

static void attributes_expire_by_themselves(void **state)
{
    (void)state;
    traced_make(fs, 1, "file", S_IFREG | 0644);
    fs->attr_timeout = 0;
    mount_it();
    assert_int_equal(df_stat(at("/file"), &st), 0);
    asked("LOOKUP 1/file, GETATTR 2");
    assert_int_equal(df_stat(at("/file"), &st), 0);
    asked("GETATTR 2");
}

static void a_replaced_entry_is_asked_for_twice(void **state)
{
    (void)state;
    traced_make(fs, 1, "file", S_IFREG | 0644);
    fs->entry_timeout = 0;
    mount_it();
    assert_int_equal(df_stat(at("/file"), &st), 0);
    asked("LOOKUP 1/file");
    traced_drop(fs, 1, "file");
    traced_make(fs, 1, "file", S_IFREG | 0600);
    assert_int_equal(df_stat(at("/file"), &st), 0);
    assert_int_equal(st.st_ino, 3);
    asked("LOOKUP 1/file, LOOKUP 1/file");
    traced_drop(fs, 1, "file");
    fails(df_stat(at("/file"), &st), ENOENT);
    asked("LOOKUP 1/file, LOOKUP 1/file");
}

static void create_looks_first(void **state)
{
    int fd;

    (void)state;
    mount_it();
    fd = df_open(at("/new"), O_CREAT | O_RDWR, 0644);
    assert_true(fd >= 0);
    asked("LOOKUP 1/new, CREATE 1/new 100644");
    assert_int_equal(df_fstat(fd, &st), 0);
    asked("");
    assert_int_equal(df_close(fd), 0);
    asked("FLUSH 2, RELEASE 2");
    fd = df_open(at("/new"), O_CREAT | O_RDWR, 0644);
    asked("OPEN 2");
    assert_int_equal(df_close(fd), 0);
    asked("FLUSH 2, RELEASE 2");
    fails(df_open(at("/new"), O_CREAT | O_EXCL | O_RDWR, 0644), EEXIST);
    asked("LOOKUP 1/new");
}

static void create_trusts_a_cached_absence(void **state)
{
    int fd;

    (void)state;
    fs->negative_timeout = 100;
    mount_it();
    fails(df_stat(at("/new"), &st), ENOENT);
    asked("LOOKUP 1/new");
    fd = df_open(at("/new"), O_CREAT | O_WRONLY, 0600);
    asked("CREATE 1/new 100600");
    assert_int_equal(df_close(fd), 0);
    asked("FLUSH 2, RELEASE 2");
    fd = df_open(at("/other"), O_CREAT | O_EXCL | O_WRONLY, 0600);
    asked("LOOKUP 1/other, CREATE 1/other 100600");
    assert_int_equal(df_close(fd), 0);
    asked("FLUSH 3, RELEASE 3");
}

static void the_umask_is_applied(void **state)
{
    int fd;

    (void)state;
    mount_it();
    fd = df_open(at("/new"), O_CREAT | O_WRONLY, 0666);
    asked("LOOKUP 1/new, CREATE 1/new 100644");
    df_close(fd);
    asked("FLUSH 2, RELEASE 2");
    assert_int_equal(df_mkdir(at("/dir"), 0777), 0);
    asked("LOOKUP 1/dir, MKDIR 1/dir 755");
}

static void names_are_made_after_a_look(void **state)
{
    (void)state;
    fs->negative_timeout = 100;
    mount_it();
    fails(df_stat(at("/dir"), &st), ENOENT);
    asked("LOOKUP 1/dir");
    assert_int_equal(df_mkdir(at("/dir"), 0755), 0);
    asked("LOOKUP 1/dir, MKDIR 1/dir 755");
    fails(df_mkdir(at("/dir"), 0755), EEXIST);
    asked("LOOKUP 1/dir");
    assert_int_equal(df_symlink("dir", at("/link")), 0);
    asked("LOOKUP 1/link, SYMLINK 1/link dir");
    assert_int_equal(df_mknod(at("/fifo"), S_IFIFO | 0600, 0), 0);
    asked("LOOKUP 1/fifo, MKNOD 1/fifo 10600");
    assert_int_equal(df_stat(at("/dir"), &st), 0);
    assert_int_equal(df_lstat(at("/link"), &st), 0);
    assert_true(S_ISLNK(st.st_mode));
    assert_int_equal(df_lstat(at("/fifo"), &st), 0);
    asked("");
}

static void making_and_removing_changes_the_directory(void **state)
{
    (void)state;
    mount_it();
    assert_int_equal(df_mkdir(at("/dir"), 0755), 0);
    asked("LOOKUP 1/dir, MKDIR 1/dir 755");
    assert_int_equal(df_stat(at(""), &st), 0);
    asked("GETATTR 1");
    assert_int_equal(df_stat(at(""), &st), 0);
    asked("");
    assert_int_equal(df_rmdir(at("/dir")), 0);
    asked("RMDIR 1/dir");
    assert_int_equal(df_stat(at(""), &st), 0);
    asked("GETATTR 1");
    fails(df_stat(at("/dir"), &st), ENOENT);
    asked("LOOKUP 1/dir");
}

static void unlink_holds_the_victim(void **state)
{
    (void)state;
    traced_make(fs, 1, "file", S_IFREG | 0644);
    mount_it();
    assert_int_equal(df_unlink(at("/file")), 0);
    asked("LOOKUP 1/file, UNLINK 1/file");
    fails(df_unlink(at("/file")), ENOENT);
    asked("LOOKUP 1/file");
    fails(df_rmdir(at("/file")), ENOENT);
    asked("LOOKUP 1/file");
}

static void an_open_file_outlives_its_name(void **state)
{
    int fd;

    (void)state;
    traced_make(fs, 1, "file", S_IFREG | 0644);
    mount_it();
    fd = df_open(at("/file"), O_RDWR, 0);
    asked("LOOKUP 1/file, OPEN 2");
    assert_int_equal(df_unlink(at("/file")), 0);
    asked("UNLINK 1/file");
    assert_int_equal(df_fstat(fd, &st), 0);
    assert_int_equal(st.st_nlink, 0);
#ifdef KERNEL_ROUTE /* which does not tell the handle */
    asked("GETATTR 2");
#else
    asked("GETATTR 2 fh");
#endif
    assert_int_equal(df_close(fd), 0);
    asked("FLUSH 2, RELEASE 2");
}

static void types_are_checked_before_removal(void **state)
{
    (void)state;
    traced_make(fs, 1, "file", S_IFREG | 0644);
    traced_make(fs, 1, "dir", S_IFDIR | 0755);
    mount_it();
    fails(df_unlink(at("/dir")), EISDIR);
    fails(df_rmdir(at("/file")), ENOTDIR);
    fails(df_stat(at("/file/below"), &st), ENOTDIR);
    asked("LOOKUP 1/dir, LOOKUP 1/file");
}

static void rename_asks_about_both_names(void **state)
{
    (void)state;
    traced_make(fs, 1, "a", S_IFREG | 0644);
    traced_make(fs, 1, "b", S_IFREG | 0644);
    mount_it();
    assert_int_equal(df_rename(at("/a"), at("/c")), 0);
    asked("LOOKUP 1/a, LOOKUP 1/c, RENAME 1/a 1/c");
    assert_int_equal(df_stat(at("/c"), &st), 0);
    assert_int_equal(st.st_ino, 2);
    asked("GETATTR 2");
    assert_int_equal(df_rename(at("/c"), at("/b")), 0);
    asked("LOOKUP 1/b, RENAME 1/c 1/b");
    fails(df_stat(at("/c"), &st), ENOENT);
    asked("LOOKUP 1/c");
    assert_int_equal(df_stat(at("/b"), &st), 0);
    assert_int_equal(st.st_ino, 2);
    asked("GETATTR 2");
}

static void rename_looks_at_a_known_target_again(void **state)
{
    (void)state;
    traced_make(fs, 1, "a", S_IFREG | 0644);
    traced_make(fs, 1, "b", S_IFREG | 0644);
    mount_it();
    df_stat(at("/a"), &st);
    df_stat(at("/b"), &st);
    asked("LOOKUP 1/a, LOOKUP 1/b");
    assert_int_equal(df_rename(at("/a"), at("/b")), 0);
    asked("LOOKUP 1/b, RENAME 1/a 1/b");
}

static void rename_flags(void **state)
{
    (void)state;
    traced_make(fs, 1, "a", S_IFREG | 0644);
    traced_make(fs, 1, "b", S_IFREG | 0600);
    mount_it();
    fails(df_renameat2(AT_FDCWD, at("/a"), AT_FDCWD, at("/b"), RENAME_NOREPLACE), EEXIST);
    asked("LOOKUP 1/a, LOOKUP 1/b");
    fails(df_renameat2(AT_FDCWD, at("/a"), AT_FDCWD, at("/c"), RENAME_EXCHANGE), ENOENT);
    asked("LOOKUP 1/c");
    assert_int_equal(df_renameat2(AT_FDCWD, at("/a"), AT_FDCWD, at("/b"), RENAME_EXCHANGE), 0);
    asked("RENAME 1/a 1/b exchange");
    assert_int_equal(df_stat(at("/a"), &st), 0);
    assert_int_equal(st.st_ino, 3);
    assert_int_equal(df_stat(at("/b"), &st), 0);
    assert_int_equal(st.st_ino, 2);
    asked("GETATTR 3, GETATTR 2");
    assert_int_equal(df_renameat2(AT_FDCWD, at("/a"), AT_FDCWD, at("/c"), RENAME_NOREPLACE), 0);
    asked("LOOKUP 1/c, RENAME 1/a 1/c noreplace");
}

static void rename_to_itself_asks_for_nothing(void **state)
{
    (void)state;
    traced_make(fs, 1, "a", S_IFREG | 0644);
    mount_it();
    df_stat(at("/a"), &st);
    asked("LOOKUP 1/a");
    assert_int_equal(df_link(at("/a"), at("/b")), 0);
    asked("LOOKUP 1/b, LINK 2 1/b");
    assert_int_equal(df_rename(at("/a"), at("/b")), 0); /* two names of one file */
    asked("LOOKUP 1/b");
}

static void a_directory_does_not_move_into_itself(void **state)
{
    uint64_t dir = traced_make(fs, 1, "dir", S_IFDIR | 0755);

    (void)state;
    traced_make(fs, dir, "sub", S_IFDIR | 0755);
    mount_it();
    fails(df_rename(at("/dir"), at("/dir/sub/dir")), EINVAL);
    asked("LOOKUP 1/dir, LOOKUP 2/sub, LOOKUP 3/dir");
    fails(df_rename(at("/dir/sub"), at("/dir")), ENOTEMPTY);
    asked("LOOKUP 1/dir");
}

static void a_moved_directory_takes_its_entries_along(void **state)
{
    uint64_t a = traced_make(fs, 1, "a", S_IFDIR | 0755),
             b = traced_make(fs, 1, "b", S_IFDIR | 0755);
    uint64_t sub = traced_make(fs, a, "sub", S_IFDIR | 0755);

    (void)state;
    (void)b;
    traced_make(fs, sub, "file", S_IFREG | 0644);
    mount_it();
    assert_int_equal(df_stat(at("/a/sub/file"), &st), 0);
    asked("LOOKUP 1/a, LOOKUP 2/sub, LOOKUP 4/file");
    assert_int_equal(df_rename(at("/a/sub"), at("/b/moved")), 0);
    asked("LOOKUP 1/b, LOOKUP 3/moved, RENAME 2/sub 3/moved");
    assert_int_equal(df_stat(at("/b/moved/file"), &st), 0);
    asked("");
}

static void a_directory_that_was_elsewhere_is_back(void **state)
{
    uint64_t a = traced_make(fs, 1, "a", S_IFDIR | 0755),
             b = traced_make(fs, 1, "b", S_IFDIR | 0755);

    (void)state;
    traced_make(fs, a, "dir", S_IFDIR | 0755);
    fs->entry_timeout = 0;
    mount_it();
    assert_int_equal(df_stat(at("/a/dir"), &st), 0);
    traced_move(fs, a, "dir", b);
    assert_int_equal(df_stat(at("/b/dir"), &st), 0);
    traced_move(fs, b, "dir", a);
    assert_int_equal(df_stat(at("/a/dir"), &st), 0);
    fails(df_rename(at("/a"), at("/a/dir/a")), EINVAL);
}

static void a_number_that_means_another_directory_is_not_used(void **state)
{
    uint64_t dir = traced_make(fs, 1, "dir", S_IFDIR | 0755);
    int fd;

    (void)state;
    fs->entry_timeout = 0;
    mount_it();
    fd = df_open(at("/dir"), O_RDONLY | O_DIRECTORY, 0);
    fs->nodes[dir].generation++;
    assert_int_equal(df_stat(at("/dir"), &st), 0);
    asked("LOOKUP 1/dir, OPENDIR 2, LOOKUP 1/dir, LOOKUP 1/dir");
    fails(df_openat(fd, "file", O_RDWR | O_CREAT, 0644), EIO);
    fails(df_renameat2(fd, "a", fd, "b", 0), EIO);
    asked("");
    df_close(fd);
    asked("RELEASEDIR 2");
}

static void hard_links_share_a_node(void **state)
{
    (void)state;
    traced_make(fs, 1, "a", S_IFREG | 0644);
    mount_it();
    assert_int_equal(df_link(at("/a"), at("/b")), 0);
    asked("LOOKUP 1/a, LOOKUP 1/b, LINK 2 1/b");
    assert_int_equal(df_stat(at("/b"), &st), 0);
    assert_int_equal(st.st_nlink, 2);
    assert_int_equal(df_stat(at("/a"), &st), 0);
    assert_int_equal(st.st_nlink, 2);
    asked(""); /* LINK has told */
    assert_int_equal(df_unlink(at("/a")), 0);
    asked("UNLINK 1/a");
    assert_int_equal(df_stat(at("/b"), &st), 0);
    assert_int_equal(st.st_nlink, 1);
    asked("GETATTR 2");
}

static void symlinks_are_read_each_time(void **state)
{
    uint64_t dir = traced_make(fs, 1, "dir", S_IFDIR | 0755);
    uint64_t link = traced_make(fs, 1, "link", S_IFLNK | 0777);

    (void)state;
    traced_make(fs, dir, "file", S_IFREG | 0644);
    strcpy(fs->nodes[link].target, "dir");
    mount_it();
    assert_int_equal(df_stat(at("/link/file"), &st), 0);
    asked("LOOKUP 1/link, READLINK 3, LOOKUP 1/dir, LOOKUP 2/file");
    assert_int_equal(df_stat(at("/link/file"), &st), 0);
    asked("READLINK 3");
    assert_int_equal(df_lstat(at("/link"), &st), 0);
    asked("GETATTR 3"); /* its time of access has changed */
    assert_int_equal(df_stat(at("/link/../dir/file"), &st), 0);
    asked("READLINK 3");
}

static void kept_symlinks_are_read_once(void **state)
{
    uint64_t link = traced_make(fs, 1, "link", S_IFLNK | 0777);

    (void)state;
    traced_make(fs, 1, "dir", S_IFDIR | 0755);
    strcpy(fs->nodes[link].target, "dir");
    fs->want_on = FUSE_CAP_CACHE_SYMLINKS;
    mount_it();
    df_stat(at("/link"), &st);
    asked("LOOKUP 1/link, READLINK 2, LOOKUP 1/dir");
    df_stat(at("/link"), &st);
    asked("");
}

static void open_strips_its_flags(void **state)
{
    int fd;

    (void)state;
    traced_make(fs, 1, "file", S_IFREG | 0644);
    mount_it();
    fd = df_open(at("/file"), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0600);
    asked("LOOKUP 1/file, OPEN 2 trunc append");
    assert_int_equal(df_close(fd), 0);
    asked("FLUSH 2, RELEASE 2");
}

static void truncation_may_be_a_request_of_its_own(void **state)
{
    int fd;

    (void)state;
    traced_make(fs, 1, "file", S_IFREG | 0644);
    fs->want_off = FUSE_CAP_ATOMIC_O_TRUNC;
    mount_it();
    fd = df_open(at("/file"), O_WRONLY | O_TRUNC, 0);
    asked("LOOKUP 1/file, OPEN 2, SETATTR 2 size");
    assert_int_equal(df_close(fd), 0);
    asked("FLUSH 2, RELEASE 2");
    fs->fail_name = "SETATTR";
    fs->fail_error = EIO;
    fails(df_open(at("/file"), O_WRONLY | O_TRUNC, 0), EIO);
    asked("OPEN 2, SETATTR 2 size, RELEASE 2");
}

static void create_that_is_not_known_becomes_mknod(void **state)
{
    int fd;

    (void)state;
    fs->fail_name = "CREATE";
    fs->fail_error = ENOSYS;
    mount_it();
    fd = df_open(at("/a"), O_CREAT | O_RDWR | O_TRUNC, 0644);
    asked("LOOKUP 1/a, CREATE 1/a 100644, MKNOD 1/a 100644, OPEN 2 trunc");
    assert_int_equal(df_close(fd), 0);
    asked("FLUSH 2, RELEASE 2");
    fd = df_open(at("/b"), O_CREAT | O_RDWR, 0644);
    asked("LOOKUP 1/b, MKNOD 1/b 100644, OPEN 3");
    assert_int_equal(df_close(fd), 0);
    asked("FLUSH 3, RELEASE 3");
}

static void unknown_requests_are_not_repeated(void **state)
{
    int fd;

    (void)state;
    traced_make(fs, 1, "file", S_IFREG | 0644);
    mount_it();
    fd = df_open(at("/file"), O_RDWR, 0);
    asked("LOOKUP 1/file, OPEN 2");
    fs->fail_error = ENOSYS;
    fs->fail_name = "FSYNC";
    assert_int_equal(df_fsync(fd), 0);
    assert_int_equal(df_fsync(fd), 0);
    asked("FSYNC 2");
    fs->fail_name = "ACCESS";
    assert_int_equal(df_access(at("/file"), R_OK), 0);
    assert_int_equal(df_access(at("/file"), R_OK), 0);
    asked("ACCESS 2 4");
    fs->fail_name = "RENAME";
    fails(df_renameat2(AT_FDCWD, at("/file"), AT_FDCWD, at("/b"), RENAME_NOREPLACE), EINVAL);
    fails(df_renameat2(AT_FDCWD, at("/file"), AT_FDCWD, at("/b"), RENAME_NOREPLACE), EINVAL);
    asked("LOOKUP 1/b, RENAME 1/file 1/b noreplace, LOOKUP 1/b");
    fs->fail_name = "FLUSH";
    assert_int_equal(df_close(df_dup(fd)), 0);
    assert_int_equal(df_close(fd), 0);
    asked("FLUSH 2, RELEASE 2");
}

static void open_may_be_unknown(void **state)
{
    int fd;

    (void)state;
    traced_make(fs, 1, "file", S_IFREG | 0644);
    fs->fail_name = "OPEN";
    fs->fail_error = ENOSYS;
    mount_it();
    fd = df_open(at("/file"), O_RDONLY, 0);
    assert_true(fd >= 0);
    asked("LOOKUP 1/file, OPEN 2");
    fs->fail_name = "FLUSH"; /* which is about a handle this file does not have */
    assert_int_equal(df_close(fd), 0);
    asked("FLUSH 2");
    fd = df_open(at("/file"), O_RDONLY, 0);
    assert_int_equal(df_close(fd), 0);
    asked("");
    fs->errors = 0; /* FLUSH came without the handle */
}

static void every_close_flushes(void **state)
{
    int fd, copy;

    (void)state;
    traced_make(fs, 1, "file", S_IFREG | 0644);
    mount_it();
    fd = df_open(at("/file"), O_RDONLY, 0);
    copy = df_dup(fd);
    asked("LOOKUP 1/file, OPEN 2");
    df_close(fd);
    asked("FLUSH 2");
    df_close(copy);
    asked("FLUSH 2, RELEASE 2");
}

static void attributes_are_set(void **state)
{
    struct timespec times[2] = {{1, 0}, {2, 0}};
    int fd;

    (void)state;
    traced_make(fs, 1, "file", S_IFREG | 0644);
    mount_it();
    assert_int_equal(df_chmod(at("/file"), 0600), 0);
    asked("LOOKUP 1/file, SETATTR 2 mode");
    assert_int_equal(df_stat(at("/file"), &st), 0);
    assert_int_equal(st.st_mode, S_IFREG | 0600);
    assert_int_equal(df_truncate(at("/file"), 10), 0);
    asked("SETATTR 2 size");
    assert_int_equal(df_utimensat(AT_FDCWD, at("/file"), times, 0), 0);
    asked("SETATTR 2 atime mtime");
    fd = df_open(at("/file"), O_RDWR, 0);
    asked("OPEN 2");
    assert_int_equal(df_ftruncate(fd, 20), 0);
    asked("SETATTR 2 size fh");
    assert_int_equal(df_fstat(fd, &st), 0);
    assert_int_equal(st.st_size, 20);
    asked("");
    df_close(fd);
    asked("FLUSH 2, RELEASE 2");
}

static void reading_changes_the_time_of_access(void **state)
{
    char byte;
    int fd;

    (void)state;
    fs->open_flags = 1; /* direct_io: Linux asks as we do */
    traced_make(fs, 1, "file", S_IFREG | 0644);
    mount_it();
    fd = df_open(at("/file"), O_RDWR, 0);
    asked("LOOKUP 1/file, OPEN 2");
    assert_int_equal(df_pread(fd, &byte, 1, 0), 0);
    asked("READ 2 0+1");
    assert_int_equal(df_stat(at("/file"), &st), 0);
    asked("GETATTR 2");
    assert_int_equal(df_stat(at("/file"), &st), 0);
    asked("");
    df_close(fd);
    asked("FLUSH 2, RELEASE 2");
}

static void writing_changes_size_and_times(void **state)
{
    int fd;

    (void)state;
    fs->open_flags = 1;
    traced_make(fs, 1, "file", S_IFREG | 0644);
    mount_it();
    fd = df_open(at("/file"), O_RDWR, 0);
    asked("LOOKUP 1/file, OPEN 2");
    assert_int_equal(df_pwrite(fd, "abc", 3, 5), 3);
    asked("WRITE 2 5+3");
    assert_int_equal(df_stat(at("/file"), &st), 0);
    assert_int_equal(st.st_size, 8);
    asked("GETATTR 2");
    df_close(fd);
    asked("FLUSH 2, RELEASE 2");
}

static void appending_finds_the_end(void **state)
{
    int fd;

    (void)state;
    fs->open_flags = 1;
    traced_make(fs, 1, "file", S_IFREG | 0644);
    mount_it();
    fd = df_open(at("/file"), O_WRONLY | O_APPEND, 0);
    asked("LOOKUP 1/file, OPEN 2 append");
    assert_int_equal(df_write(fd, "abc", 3), 3);
    assert_int_equal(df_write(fd, "de", 2), 2);
    asked("WRITE 2 0+3, WRITE 2 3+2");
    df_close(fd);
    asked("FLUSH 2, RELEASE 2");
}

static void listing_asks_for_attributes_while_they_are_used(void **state)
{
    char buf[4096];
    int fd;

    (void)state;
    traced_make(fs, 1, "a", S_IFREG | 0644);
    traced_make(fs, 1, "b", S_IFREG | 0644);
    mount_it();
    fd = df_open(at(""), O_RDONLY | O_DIRECTORY, 0);
    asked("OPENDIR 1");
    assert_true(df_getdents(fd, buf, sizeof(buf)) > 0);
    asked("READDIRPLUS 1 0");
    assert_int_equal(df_getdents(fd, buf, sizeof(buf)), 0);
    asked("READDIR 1 2");
    assert_int_equal(df_stat(at("/a"), &st), 0);
    assert_int_equal(df_stat(at("/b"), &st), 0);
    asked(""); /* READDIRPLUS has told */
    assert_int_equal(df_getdents(fd, buf, sizeof(buf)), 0);
    asked("READDIRPLUS 1 2"); /* and was worth it */
    df_close(fd);
    asked("RELEASEDIR 1");
}

static void listing_may_be_plain(void **state)
{
    char buf[4096];
    int fd;

    (void)state;
    traced_make(fs, 1, "a", S_IFREG | 0644);
    fs->want_off = FUSE_CAP_READDIRPLUS | FUSE_CAP_READDIRPLUS_AUTO;
    mount_it();
    fd = df_open(at(""), O_RDONLY | O_DIRECTORY, 0);
    assert_true(df_getdents(fd, buf, sizeof(buf)) > 0);
    assert_int_equal(df_getdents(fd, buf, sizeof(buf)), 0);
    asked("OPENDIR 1, READDIR 1 0, READDIR 1 1");
    assert_int_equal(df_stat(at("/a"), &st), 0);
    asked("LOOKUP 1/a");
    df_close(fd);
    asked("RELEASEDIR 1");
}

static void statvfs_is_asked_each_time(void **state)
{
    struct statvfs out;

    (void)state;
    mount_it();
    assert_int_equal(df_statvfs(at(""), &out), 0);
    assert_int_equal(out.f_blocks, 1000);
    asked("STATFS 1");
}

static void access_is_asked_without_default_permissions(void **state)
{
    (void)state;
    traced_make(fs, 1, "file", S_IFREG | 0644);
    mount_it();
    assert_int_equal(df_access(at("/file"), R_OK | W_OK), 0);
    asked("LOOKUP 1/file, ACCESS 2 6");
    fs->fail_name = "ACCESS";
    fs->fail_error = EACCES;
    fails(df_access(at("/file"), W_OK), EACCES);
    asked("ACCESS 2 2");
}

static void access_is_answered_with_default_permissions(void **state)
{
    (void)state;
    traced_make(fs, 1, "file", S_IFREG | 0644);
    mount_options("default_permissions");
    df_stat(at(""), &st);
    traced_log(fs, "");
    assert_int_equal(df_access(at("/file"), R_OK | W_OK), 0);
    asked("LOOKUP 1/file");
    fails(df_access(at("/file"), X_OK), EACCES);
    asked("GETATTR 2"); /* a no is looked at again */
}

static void a_wrong_answer_is_an_error(void **state)
{
    uint64_t file = traced_make(fs, 1, "file", S_IFREG | 0644);

    (void)state;
    fs->attr_timeout = 0;
    mount_it();
    fs->nodes[file].st.st_mode = 0644; /* no type */
    fails(df_stat(at("/file"), &st), EIO);
    asked("LOOKUP 1/file");
    fs->nodes[file].st.st_mode = S_IFREG | 0644;
    assert_int_equal(df_stat(at("/file"), &st), 0);
    asked("LOOKUP 1/file, GETATTR 2");
    fs->nodes[file].st.st_mode = S_IFDIR | 0755; /* another type than before */
    fails(df_stat(at("/file"), &st), EIO);
    asked("GETATTR 2");
    fs->nodes[file].st.st_mode = S_IFREG | 0644;
    assert_int_equal(df_stat(at("/file"), &st), 0);
    asked("LOOKUP 1/file, GETATTR 2");
}

static void stale_handles_are_walked_to_again(void **state)
{
    (void)state;
    traced_make(fs, 1, "file", S_IFREG | 0644);
    mount_it();
    assert_int_equal(df_stat(at("/file"), &st), 0);
    asked("LOOKUP 1/file");
    fs->fail_name = "SETATTR";
    fs->fail_error = ESTALE;
    fails(df_chmod(at("/file"), 0600), ESTALE);
    asked("SETATTR 2 mode, LOOKUP 1/file, SETATTR 2 mode");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        test(stat_walks_once),
        test(absent_names_are_asked_for_again),
        test(absence_may_be_cached),
        test(timeouts_of_zero_ask_each_time),
        test(attributes_expire_by_themselves),
        test(a_replaced_entry_is_asked_for_twice),
        test(create_looks_first),
        test(create_trusts_a_cached_absence),
        test(the_umask_is_applied),
        test(names_are_made_after_a_look),
        test(making_and_removing_changes_the_directory),
        test(unlink_holds_the_victim),
        test(an_open_file_outlives_its_name),
        test(types_are_checked_before_removal),
        test(rename_asks_about_both_names),
        test(rename_looks_at_a_known_target_again),
        test(rename_flags),
        test(rename_to_itself_asks_for_nothing),
        test(a_directory_does_not_move_into_itself),
        test(a_moved_directory_takes_its_entries_along),
        test(a_directory_that_was_elsewhere_is_back),
        test(a_number_that_means_another_directory_is_not_used),
        test(hard_links_share_a_node),
        test(symlinks_are_read_each_time),
        test(kept_symlinks_are_read_once),
        test(open_strips_its_flags),
        test(truncation_may_be_a_request_of_its_own),
        test(create_that_is_not_known_becomes_mknod),
        test(unknown_requests_are_not_repeated),
        test(open_may_be_unknown),
        test(every_close_flushes),
        test(attributes_are_set),
        test(reading_changes_the_time_of_access),
        test(writing_changes_size_and_times),
        test(appending_finds_the_end),
        test(listing_asks_for_attributes_while_they_are_used),
        test(listing_may_be_plain),
        test(statvfs_is_asked_each_time),
        test(access_is_asked_without_default_permissions),
        test(access_is_answered_with_default_permissions),
        test(a_wrong_answer_is_an_error),
        test(stale_handles_are_walked_to_again),
    };

    umask(022);
    return cmocka_run_group_tests(tests, can_mount, end_mounts);
}
