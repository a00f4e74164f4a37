/*
 * test_highlevel_file.c - the rest of the path lane's operations: extended attributes, access,
 * statfs, readlink, locks, ioctl, poll; and answers that no operation may give.
 */
#include <limits.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/statvfs.h>

#include "ram_rig.h"

static struct df_file file, other;
static struct rig_where where;

static ssize_t get(struct rig *rig, struct df_file *base, const char *path, const char *name,
                   void *value, size_t size)
{
    return rig->fs->ops->getxattr(rig->fs, rig_call(rig), rig_where(&where, base, path, 0), name,
                                  value, size);
}

static int set(struct rig *rig, struct df_file *base, const char *path, const char *name,
               const char *value)
{
    return rig->fs->ops->setxattr(rig->fs, rig_call(rig), rig_where(&where, base, path, 0), name,
                                  value, strlen(value), 0);
}

static void extended_attributes_by_path_and_by_file(void **state)
{
    (void)state;
    struct rig *rig = rig_default();
    char value[8];

    assert_int_equal(set(rig, NULL, "/dir/file", "user.x", "abc"), 0);
    assert_int_equal(get(rig, NULL, "/dir/file", "user.x", NULL, 0), 3); /* a probe */
    assert_int_equal(get(rig, NULL, "/dir/file", "user.x", value, 2), -ERANGE);
    assert_int_equal(get(rig, NULL, "/dir/file", "user.x", value, 8), 3);
    assert_memory_equal(value, "abc", 3);
    assert_int_equal(rig_open(rig, "/dir/file", O_RDONLY, 0, &file), 0);
    assert_int_equal(rig_rename(rig, "/dir/file", "/moved", 0), 0);
    assert_int_equal(get(rig, &file, "", "user.x", value, 8), 3);
    assert_string_equal(rig->ram.last_path, "/moved");
    assert_int_equal(
        rig->fs->ops->listxattr(rig->fs, rig_call(rig), rig_where(&where, &file, "", 0), value, 8),
        7);
    assert_int_equal(rig->fs->ops->removexattr(rig->fs, rig_call(rig),
                                               rig_where(&where, &file, "", 0), "user.x"),
                     0);
    assert_int_equal(get(rig, NULL, "/moved", "user.x", value, 8), -ENODATA);
    rig_close(rig, &file);
    rig_end(rig);
}

/* The plugin is named no place then, as by libfuse: ram takes one without room for too small. */
static void who_asks_for_a_size_may_name_a_place(void **state)
{
    (void)state;
    struct rig *rig = rig_default();
    char value[8];

    assert_int_equal(set(rig, NULL, "/dir/file", "user.x", "abc"), 0);
    assert_int_equal(get(rig, NULL, "/dir/file", "user.x", value, 0), 3);
    assert_int_equal(rig->fs->ops->listxattr(rig->fs, rig_call(rig),
                                             rig_where(&where, NULL, "/dir/file", 0), value, 0),
                     7);
    rig_end(rig);
}

static void missing_extended_attributes_are_not_asked_for_again(void **state)
{
    (void)state;
    struct rig *rig = rig_default();

    rig->ram.fail_error[RAM_GETXATTR] = rig->ram.fail_error[RAM_SETXATTR] = -ENOSYS;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(get(rig, NULL, "/dir/file", "user.x", NULL, 0), -EOPNOTSUPP);
        assert_int_equal(set(rig, NULL, "/dir/file", "user.x", "v"), -EOPNOTSUPP);
    }
    assert_int_equal(rig_count(rig, RAM_GETXATTR), 1);
    assert_int_equal(rig_count(rig, RAM_SETXATTR), 1);
    rig_end(rig);
}

static void name_spaces_of_attributes_have_their_rules(void **state)
{
    (void)state;
    struct rig *rig = rig_default();

    assert_int_equal(set(rig, NULL, "/fifo", "user.x", "v"), -EPERM);
    assert_int_equal(get(rig, NULL, "/fifo", "user.x", NULL, 0), -ENODATA);
    assert_int_equal(set(rig, NULL, "/dir/file", "trusted.x", "v"), 0);
    rig->caller = (struct df_caller){.uid = 1000};
    assert_int_equal(set(rig, NULL, "/dir/file", "trusted.x", "v"), -EPERM);
    assert_int_equal(get(rig, NULL, "/dir/file", "trusted.x", NULL, 0), -ENODATA);
    ram_find("/dir")->inode->st.st_mode |= S_ISVTX | 0777;
    df_highlevel_invalidate(rig->fs, "/dir");
    assert_int_equal(set(rig, NULL, "/dir", "user.x", "v"),
                     0); /* the bit is the plugin's to know */
    df_highlevel_of(rig->fs)->check = true;
    assert_int_equal(set(rig, NULL, "/dir", "user.x", "v"), -EPERM);
    rig_end(rig);
}

static int may(struct rig *rig, const char *path, int mask)
{
    return rig->fs->ops->access(rig->fs, rig_call(rig), rig_where(&where, NULL, path, 0), mask);
}

static void access_is_the_plugins_until_it_knows_nothing(void **state)
{
    (void)state;
    struct rig *rig = rig_default();

    rig->ram.fail_error[RAM_ACCESS] = -EACCES;
    assert_int_equal(may(rig, "/dir/file", W_OK), -EACCES);
    assert_int_equal(may(rig, "/none", F_OK), -ENOENT);
    rig->ram.fail_error[RAM_ACCESS] = -ENOSYS;
    rig_total(rig);
    for (int i = 0; i < 2; i++)
        assert_int_equal(may(rig, "/dir/file", W_OK), 0);
    assert_int_equal(rig_count(rig, RAM_ACCESS), 1);
    rig_end(rig);
}

static void access_is_ours_with_default_permissions(void **state)
{
    (void)state;
    struct rig *rig = rig_new();

    rig->session.default_permissions = true;
    assert_int_equal(rig_start(rig), 0);
    assert_int_equal(may(rig, "/dir/file", R_OK | W_OK), 0);
    assert_int_equal(may(rig, "/dir/file", X_OK), -EACCES); /* root, too */
    rig->caller = (struct df_caller){.uid = 1000};
    assert_int_equal(may(rig, "/dir/file", R_OK), 0);
    assert_int_equal(may(rig, "/dir/file", W_OK), -EACCES);
    assert_int_equal(rig_count(rig, RAM_ACCESS), 0);
    rig_end(rig);
}

static void links_are_read(void **state)
{
    (void)state;
    struct rig *rig = rig_default();
    ssize_t (*read)(struct df_fs *, struct df_call *, const struct df_where *, char *, size_t) =
        rig->fs->ops->readlink;
    char target[16];

    assert_int_equal(read(rig->fs, rig_call(rig),
                          rig_where(&where, NULL, "/dir/up", DF_WHERE_NOFOLLOW), target, 16),
                     11);
    assert_memory_equal(target, "../dir/file", 11);
    assert_int_equal(read(rig->fs, rig_call(rig),
                          rig_where(&where, NULL, "/dir/up", DF_WHERE_NOFOLLOW), target, 4),
                     4);
    assert_int_equal(
        read(rig->fs, rig_call(rig), rig_where(&where, NULL, "/dir", DF_WHERE_NOFOLLOW), target, 4),
        -EINVAL);
    assert_int_equal(rig_open(rig, "/link", O_PATH | O_NOFOLLOW, 0, &file), 0);
    assert_int_equal(read(rig->fs, rig_call(rig), rig_where(&where, &file, "", 0), target, 16), 3);
    rig_close(rig, &file);
    rig_end(rig);
}

static size_t link_size; /* of what long_readlink() says */

static int long_readlink(const char *path, char *buf, size_t size)
{
    (void)path;
    memset(buf, '/', size); /* a NUL behind it only if there is room */
    if (link_size < size)
        buf[link_size] = '\0';
    return 0;
}

/* The kernel reads a link into a page, and ends it with a NUL. */
static void a_link_that_fills_a_page_is_an_error(void **state)
{
    (void)state;
    struct rig *rig = rig_new();
    char target[2 * PATH_MAX];
    struct stat st;

    rig->ops.readlink = long_readlink;
    assert_int_equal(rig_start(rig), 0);
    for (link_size = PATH_MAX - 1; link_size < PATH_MAX + 2; link_size++) {
        bool fits = link_size < PATH_MAX;
        rig_where(&where, NULL, "/link", DF_WHERE_NOFOLLOW);
        assert_int_equal(
            rig->fs->ops->readlink(rig->fs, rig_call(rig), &where.where, target, sizeof(target)),
            fits ? PATH_MAX - 1 : -EIO);
        assert_int_equal(rig_stat(rig, "/link", &st), fits ? DF_LEAVE : -EIO);
    }
    rig_end(rig);
}

static void statfs_has_libfuses_default(void **state)
{
    (void)state;
    struct statvfs out;
    struct rig *rig = rig_default();

    assert_int_equal(
        rig->fs->ops->statfs(rig->fs, rig_call(rig), rig_where(&where, NULL, "/dir/file", 0), &out),
        0);
    assert_int_equal(out.f_blocks, 77);
    rig_end(rig);
    rig = rig_new();
    rig->ops.statfs = NULL;
    assert_int_equal(rig_start(rig), 0);
    assert_int_equal(
        rig->fs->ops->statfs(rig->fs, rig_call(rig), rig_where(&where, NULL, "/", 0), &out), 0);
    assert_int_equal(out.f_namemax, 255);
    assert_int_equal(out.f_bsize, 512);
    rig_end(rig);
}

static void locks_are_the_plugins_if_it_has_them(void **state)
{
    (void)state;
    struct rig *rig = rig_default();
    struct df_lock lock = {.owner = 99, .type = F_RDLCK, .start = 5, .end = INT64_MAX};

    assert_int_equal(rig_open(rig, "/dir/file", O_RDWR, 0, &file), 0);
    assert_int_equal(rig->fs->ops->lock(rig->fs, rig_call(rig), &file, &lock), 0);
    assert_int_equal(rig->ram.shown.lock_owner, 99);
    assert_int_equal(rig->ram.asked_lock.l_pid, 42);
    lock.test = true;
    assert_int_equal(rig->fs->ops->lock(rig->fs, rig_call(rig), &file, &lock), 0);
    assert_int_equal(lock.type, F_WRLCK);
    assert_int_equal(lock.start, 10);
    assert_int_equal(lock.end, 14);
    assert_int_equal(lock.pid, 99);
    assert_int_equal(rig->ram.asked_lock.l_pid, 0); /* a test is nobody's */
    rig->ram.conflict = (struct flock){.l_type = F_WRLCK, .l_start = INT64_MAX, .l_len = 2};
    assert_int_equal(rig->fs->ops->lock(rig->fs, rig_call(rig), &file, &lock), -EIO);
    assert_int_equal(rig->fs->ops->flock(rig->fs, rig_call(rig), &file, LOCK_EX, 5), 0);
    assert_int_equal(rig_open(rig, "/dir", O_RDONLY, 0, &other), 0);
    assert_int_equal(rig->fs->ops->flock(rig->fs, rig_call(rig), &other, LOCK_EX, 5), DF_NOT_OURS);
    rig_close(rig, &other);
    rig_total(rig);
    rig_close(rig, &file);
    assert_int_equal(rig_count(rig, RAM_LOCK), 1); /* a close takes the locks away */
    assert_true(rig->ram.shown.flock_release);
    assert_int_equal(rig->ram.shown.lock_owner, 5); /* flock's, by which the plugin knows it */
    assert_int_equal(rig_open(rig, "/dir/file", O_RDWR, 0, &file), 0);
    rig_close(rig, &file);
    assert_false(rig->ram.shown.flock_release);
    assert_int_equal(rig->ram.shown.lock_owner, 0);
    rig_end(rig);

    rig = rig_new();
    rig->drop = FUSE_CAP_POSIX_LOCKS | FUSE_CAP_FLOCK_LOCKS;
    assert_int_equal(rig_start(rig), 0);
    assert_int_equal(rig_open(rig, "/dir/file", O_RDWR, 0, &file), 0);
    assert_int_equal(rig->fs->ops->lock(rig->fs, rig_call(rig), &file, &lock), DF_NOT_OURS);
    assert_int_equal(rig->fs->ops->flock(rig->fs, rig_call(rig), &file, LOCK_EX, 5), DF_NOT_OURS);
    rig_close(rig, &file);
    assert_int_equal(rig_count(rig, RAM_LOCK), 0);
    rig_end(rig);
}

static void ioctl_works_on_a_copy(void **state)
{
    (void)state;
    struct rig *rig = rig_default();
    int number = 5;

    assert_int_equal(rig_open(rig, "/dir/file", O_RDWR, 0, &file), 0);
    assert_int_equal(rig->fs->ops->ioctl(rig->fs, rig_call(rig), &file, _IOW('x', 1, int), &number),
                     3);
    assert_int_equal(number, 5);
    assert_int_equal(
        rig->fs->ops->ioctl(rig->fs, rig_call(rig), &file, _IOWR('x', 1, int), &number), 3);
    assert_int_equal(number, 6);
    assert_int_equal(rig->fs->ops->ioctl(rig->fs, rig_call(rig), &file, _IO('x', 1), NULL), 3);
    assert_int_equal(rig->fs->ops->ioctl(rig->fs, rig_call(rig), &file, _IOW('x', 1, int), NULL),
                     -EFAULT);
    char big[1000] = {1};
    assert_int_equal(rig->fs->ops->ioctl(rig->fs, rig_call(rig), &file, _IOR('x', 1, big), big), 3);
    assert_int_equal(big[0], 1); /* started from zero */
    int flags[2] = {5, 5};       /* a long would be both */
    assert_int_equal(rig->fs->ops->ioctl(rig->fs, rig_call(rig), &file, _IOR('f', 1, long), flags),
                     3);
    assert_int_equal(flags[0], 1);
    assert_int_equal(flags[1], 5);
    rig->ram.fail_error[RAM_IOCTL] = -ENOSYS;
    assert_int_equal(rig->fs->ops->ioctl(rig->fs, rig_call(rig), &file, _IO('x', 1), NULL),
                     -ENOTTY);
    rig_close(rig, &file);
    rig_end(rig);
}

static void poll_asks_and_is_notified(void **state)
{
    (void)state;
    struct rig *rig = rig_default();

    assert_int_equal(rig_open(rig, "/dir/file", O_RDWR, 0, &file), 0);
    rig->ram.ready = POLLIN | POLLPRI;
    assert_int_equal(rig->fs->ops->poll(rig->fs, rig_call(rig), &file, POLLIN | POLLOUT, NULL),
                     POLLIN);
    assert_int_equal(rig->ram.shown.poll_events, POLLIN | POLLOUT);
    assert_null(rig->ram.poll_handle);
    rig->ram.fail_error[RAM_POLL] = -ENOSYS;
    rig_total(rig);
    for (int i = 0; i < 2; i++)
        assert_int_equal(rig->fs->ops->poll(rig->fs, rig_call(rig), &file, POLLIN, NULL), POLLIN);
    assert_int_equal(rig_count(rig, RAM_POLL), 1);
    assert_int_equal(rig_open(rig, "/dir", O_RDONLY, 0, &other), 0);
    assert_int_equal(rig->fs->ops->poll(rig->fs, rig_call(rig), &other, POLLIN, NULL), POLLIN);
    rig_close(rig, &other);
    rig_close(rig, &file);
    rig_end(rig);
}

/* One that every operation on a name or an open file returns. */
static void answer_with(struct rig *rig, int result)
{
    for (int op = 0; op < RAM_OPS; op++)
        rig->ram.fail_error[op] = result;
}

static void what_can_be_no_error_number_is_erange(void **state)
{
    (void)state;
    static const int answers[] = {EIO, DF_LEAVE, DF_PENDING, DF_NOT_OURS, -512, INT_MIN};
    struct rig *rig = rig_default();
    struct statvfs fs_stat;
    struct stat st;
    char buf[4];

    assert_int_equal(rig_open(rig, "/dir/file", O_RDWR, 0, &file), 0);
    for (size_t i = 0; i < sizeof(answers) / sizeof(*answers); i++) {
        answer_with(rig, answers[i]);
        assert_int_equal(rig_stat(rig, "/other", &st), -ERANGE);
        assert_int_equal(
            rig->fs->ops->statfs(rig->fs, rig_call(rig), rig_where(&where, NULL, "/", 0), &fs_stat),
            -ERANGE);
        if (answers[i] < 0) { /* else a count, and bytes that are not there are zeros or EIO */
            assert_int_equal(rig_pread(rig, &file, buf, sizeof(buf), 0), -ERANGE);
            assert_int_equal(rig_pwrite(rig, &file, "abcd", 4, 0), -ERANGE);
            assert_int_equal(get(rig, &file, "", "user.x", buf, sizeof(buf)), -ERANGE);
        }
        assert_int_equal(set(rig, &file, "", "user.x", "abc"), -ERANGE);
        rig->ram.fail_error[RAM_GETATTR] = 0; /* the walk succeeds */
        assert_int_equal(rig_mkdir(rig, "/made", 0700), -ERANGE);
        assert_int_equal(rig_unlink(rig, "/dir/file"), -ERANGE);
        assert_int_equal(rig_rename(rig, "/dir/file", "/moved", 0), -ERANGE);
        assert_int_equal(rig_open(rig, "/dir/file", O_RDONLY, 0, &other), -ERANGE);
    }
    answer_with(rig, -511); /* the last that the kernel takes */
    assert_int_equal(rig_stat(rig, "/other", &st), -511);
    answer_with(rig, 0);
    rig_close(rig, &file);
    rig_end(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(extended_attributes_by_path_and_by_file),
        cmocka_unit_test(who_asks_for_a_size_may_name_a_place),
        cmocka_unit_test(missing_extended_attributes_are_not_asked_for_again),
        cmocka_unit_test(name_spaces_of_attributes_have_their_rules),
        cmocka_unit_test(access_is_the_plugins_until_it_knows_nothing),
        cmocka_unit_test(access_is_ours_with_default_permissions),
        cmocka_unit_test(links_are_read),
        cmocka_unit_test(a_link_that_fills_a_page_is_an_error),
        cmocka_unit_test(statfs_has_libfuses_default),
        cmocka_unit_test(locks_are_the_plugins_if_it_has_them),
        cmocka_unit_test(ioctl_works_on_a_copy),
        cmocka_unit_test(poll_asks_and_is_notified),
        cmocka_unit_test(what_can_be_no_error_number_is_erange),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
