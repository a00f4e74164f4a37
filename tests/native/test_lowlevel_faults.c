/*
 * test_lowlevel_faults.c - each request of a session fails in turn, with different errors, then
 * each allocation: nothing is lost, every lookup is forgotten, every open file released.
 *
 * Linked with --wrap for malloc and its kin.
 */
#include "allocations.h"
#include "requests_route.h"

/* ---- a session ---- */

static void use_file(const char *path, int flags)
{
    int fd = df_open(at(path), flags, 0644);
    struct stat st;
    char buf[100];

    if (fd < 0)
        return;
    (void)!df_pwrite(fd, "content", 7, 0);
    (void)!df_pread(fd, buf, sizeof(buf), 0);
    df_fstat(fd, &st);
    (void)!df_ftruncate(fd, 3);
    df_unlink(at("/dir/open"));
    df_fsync(fd);
    df_close(fd);
}

static void list(const char *path)
{
    int fd = df_open(at(path), O_RDONLY | O_DIRECTORY, 0);
    char buf[8192];

    if (fd < 0)
        return;
    while (df_getdents(fd, buf, sizeof(buf)) > 0)
        ;
    df_close(fd);
}

/* Names of more than 31 bytes have entries of their own. */
#define LONG "/a-name-that-is-too-long-for-the-entry-in-its-node"

static void session_of_calls(void)
{
    struct statvfs out;
    struct stat st;
    char buf[100];

    df_mkdir(at("/dir"), 0755);
    df_mkdir(at("/dir/sub"), 0755);
    use_file("/dir/file", O_RDWR | O_CREAT);
    use_file("/dir/file", O_RDWR | O_TRUNC);
    use_file("/dir/open", O_RDWR | O_CREAT | O_EXCL);
    use_file(LONG, O_RDWR | O_CREAT);
    df_link(at("/dir/file"), at("/dir/link"));
    df_symlink("dir", at("/symlink"));
    df_stat(at("/symlink/file"), &st);
    (void)!df_readlink(at("/symlink"), buf, sizeof(buf));
    df_stat(at("/none"), &st);
    df_rename(at("/dir/file"), at("/dir/sub/moved"));
    df_rename(at("/dir/link"), at("/dir/sub/moved")); /* two names of one file: both stay */
    df_renameat2(AT_FDCWD, at("/dir/sub"), AT_FDCWD, at(LONG), RENAME_EXCHANGE);
    df_rename(at("/dir"), at("/other"));
    list("");
    list("/other");
    df_stat(at("/other/link"), &st);
    df_chmod(at("/other/link"), 0600);
    (void)!df_truncate(at("/other/link"), 10);
    df_access(at("/other"), R_OK);
    df_statvfs(at("/other"), &out);
    df_unlink(at("/other/link"));
    df_unlink(at("/symlink"));
    df_rmdir(at("/other"));
}

static int run(int error, const char *options, double entry_timeout, double negative_timeout)
{
    int result;

    fs = traced_new();
    fs->entry_timeout = fs->attr_timeout = entry_timeout;
    fs->negative_timeout = negative_timeout;
    fs->quiet = true;
    mount_options(options);
    fs->fail_error = error;
    counting = true;
    session_of_calls();
    counting = false;
    fs->fail_after = 0;
    result = fs->requests;
    assert_int_equal(end_fs(NULL), 0);
    return result;
}

/* Each request in turn. */
static void sweep(int error, const char *options, double entry_timeout, double negative_timeout)
{
    int requests = run(0, options, entry_timeout, negative_timeout);

    assert_true(requests > 50);
    for (int n = 1; n <= requests + 10; n++) {
        fs = traced_new();
        fs->entry_timeout = fs->attr_timeout = entry_timeout;
        fs->negative_timeout = negative_timeout;
        fs->quiet = true;
        mount_options(options);
        fs->fail_error = error;
        fs->fail_after = n;
        session_of_calls();
        fs->fail_after = 0;
        assert_int_equal(end_fs(NULL), 0);
    }
}

static void any_request_may_fail(void **state)
{
    static const int errors[] = {EIO, ENOENT, ENOMEM, EINTR, ESTALE, ENOSYS, EACCES};

    (void)state;
    for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
        sweep(errors[i], "rw", 1e9, -1);
        sweep(errors[i], "rw", 0, -1);
        sweep(errors[i], "default_permissions", 1e9, 1e9);
    }
}

/* Each allocation in turn, those of the core and of the test's own mount left out. */
static void any_allocation_may_fail(void **state)
{
    long total;

    (void)state;
    for (int zero = 0; zero < 2; zero++) {
        fail_at = allocations = 0;
        run(0, "rw", zero ? 0 : 1e9, 1e9);
        total = allocations;
        assert_true(total > 10);
        for (long n = 1; n <= total + 5; n++) {
            fail_at = n;
            allocations = 0;
            run(0, "rw", zero ? 0 : 1e9, 1e9);
        }
    }
    fail_at = 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_request_may_fail),
        cmocka_unit_test(any_allocation_may_fail),
    };

    return cmocka_run_group_tests(tests, can_mount, end_mounts);
}
