/*
 * test_api.c - the mounting side of the C API, on a real plugin: df_mount, df_unmount, df_mounts,
 * df_stats, identity.
 */
#include <directfuse.h>
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/mount.h"

#define MEMFS DF_TEST_STAGE "/lib/backends/memfs.so"
#define POINT "/df-test-api"

static char message[512];

static int mount_memfs(const char *point, unsigned flags)
{
    char *argv[] = {"memfs", (char *)point, NULL};

    return df_mount(MEMFS, 2, argv, flags, message, sizeof(message));
}

#define assert_fails(expression, error)                                                            \
    do {                                                                                           \
        errno = 0;                                                                                 \
        assert_int_equal(expression, -1);                                                          \
        assert_int_equal(errno, error);                                                            \
    } while (0)

static uint64_t calls_of(int id, const char *op)
{
    struct df_op_stats stats[100];
    int count = df_stats(id, stats, 100);

    assert_in_range(count, 1, 99);
    for (int i = 0; i < count; i++)
        if (strcmp(stats[i].name, op) == 0)
            return stats[i].calls;
    fail();
    return 0;
}

static void mounts_a_plugin(void **state)
{
    struct df_mount_info infos[2];
    struct stat st;
    char text[16] = "";
    int id = mount_memfs(POINT, 0), fd;

    (void)state;
    assert_true(id > 0);
    assert_int_equal(df_mounts(NULL, 0), 1);
    assert_int_equal(df_mounts(infos, 2), 1);
    assert_int_equal(infos[0].id, id);
    assert_string_equal(infos[0].mountpoint, POINT);
    assert_int_equal(infos[0].read_only, 0);
    fd = df_open(POINT "/hello", O_CREAT | O_RDWR, 0640);
    assert_true(fd >= 0);
    assert_int_equal(df_write(fd, "hello", 5), 5);
    assert_int_equal(df_pread(fd, text, 16, 0), 5);
    assert_string_equal(text, "hello");
    assert_int_equal(df_stat(POINT "/hello", &st), 0);
    assert_int_equal(st.st_size, 5);
    assert_int_equal(st.st_dev, infos[0].dev);
    assert_int_equal(calls_of(id, "open"), 1);
    assert_int_equal(calls_of(id, "write"), 1);
    assert_fails(df_unmount(id, 0), EBUSY);
    assert_int_equal(df_close(fd), 0);
    assert_int_equal(df_unmount(id, 0), 0);
    assert_fails(df_unmount(id, 0), EINVAL);
    assert_fails(df_stats(id, NULL, 0), EINVAL);
    assert_fails(df_stat(POINT "/hello", &st), ENOENT);
}

static void unmounts_lazily(void **state)
{
    int id = mount_memfs(POINT, DF_MOUNT_NOSTATS), fd;

    (void)state;
    assert_true(id > 0);
    assert_fails(df_stats(id, NULL, 0), EINVAL);
    fd = df_open(POINT "/hello", O_CREAT | O_RDWR, 0640);
    assert_int_equal(df_unmount(id, DF_UNMOUNT_LAZY), 0);
    assert_int_equal(df_mounts(NULL, 0), 0);
    assert_int_equal(df_write(fd, "hello", 5), 5);
    assert_int_equal(df_close(fd), 0);
    df_mount_wait(id);
}

static void says_why_it_cannot_mount(void **state)
{
    char *empty[] = {"", NULL}, *none[] = {"/no/such/plugin.so", "/x", NULL};
    char *unknown[] = {"no-such-backend", "/x", NULL};
    int id = mount_memfs(POINT, 0);

    (void)state;
    assert_true(id > 0);
    assert_fails(mount_memfs(POINT, 0), EBUSY);
    assert_non_null(strstr(message, POINT));
    assert_fails(mount_memfs(POINT, 0x100), EINVAL);
    assert_non_null(strstr(message, "DF_MOUNT_"));
    assert_fails(df_mount(NULL, 0, empty, 0, message, sizeof(message)), EINVAL);
    assert_non_null(strstr(message, "first word"));
    assert_fails(df_mount(NULL, 0, empty, 0, NULL, 0), EINVAL);
    assert_fails(df_mount(NULL, 1, empty, 0, NULL, 0), EINVAL);
    assert_fails(df_mount(NULL, 2, none, 0, message, sizeof(message)), ENOENT);
    assert_fails(df_mount(NULL, 2, unknown, 0, message, sizeof(message)), ENOENT);
    assert_non_null(strstr(message, "no-such-backend is no built-in file system"));
    assert_non_null(strstr(message, "with a slash"));
    assert_fails(df_mount("/etc/passwd", 2, none, 0, message, sizeof(message)), ENOEXEC);
    assert_int_equal(df_unmount(id, 0), 0);
    assert_fails(df_unmount(12345, 0), EINVAL);
    assert_fails(df_unmount(id, 64), EINVAL);
}

static void makes_files_in_another_name(void **state)
{
    gid_t groups[] = {7, 8};
    struct df_identity other = {
        .uid = 1234, .gid = 4321, .umask = 077, .group_count = 2, .groups = groups};
    char *argv[] = {"memfs", POINT, "-o", "allow_other", NULL};
    int id = mount_memfs(POINT, 0);
    struct stat st;

    (void)state;
    assert_true(id > 0);
    assert_int_equal(df_identity_set(&other), 0);
    assert_fails(df_stat(POINT, &st), EACCES); /* only who mounted it enters: fuse(8) */
    assert_int_equal(df_identity_set(NULL), 0);
    assert_int_equal(df_unmount(id, 0), 0);

    id = df_mount(MEMFS, 4, argv, 0, message, sizeof(message));
    assert_true(id > 0);
    assert_int_equal(df_chmod(POINT, 0777), 0);
    assert_int_equal(df_identity_set(&other), 0);
    assert_int_equal(df_mkdir(POINT "/d", 0777), 0);
    assert_int_equal(df_identity_set(NULL), 0);
    assert_int_equal(df_stat(POINT "/d", &st), 0);
    assert_int_equal(st.st_uid, 1234);
    assert_int_equal(st.st_gid, 4321);
    assert_int_equal(st.st_mode & 07777, 0700);
    assert_int_equal(df_mkdir(POINT "/mine", 0777), 0);
    assert_int_equal(df_stat(POINT "/mine", &st), 0);
    assert_int_equal(st.st_uid, geteuid());
    assert_int_equal(df_unmount(id, 0), 0);
}

/* Fills the stack that this thread has been given, but for the last pages. */
static void *fill_stack(void *size)
{
    volatile char *block = __builtin_alloca((size_t)size);

    for (size_t i = 0; i < (size_t)size; i++)
        block[i] = 0;
    return NULL;
}

/* What main has in its frame is the plugin's for as long as it is mounted, also in a child, where
 * main's thread is no more and libc has stacks to give away. */
static void serves_a_child_that_makes_threads(void **state)
{
    struct stat st;
    int id, status;
    pid_t child;

    (void)state;
#ifdef __SANITIZE_THREAD__
    skip(); /* its children cannot make threads */
#endif
    id = mount_memfs(POINT, 0);
    assert_true(id > 0);
    assert_int_equal(df_mkdir(POINT "/d", 0755), 0);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        pthread_t threads[4];

        alarm(30);
        for (int i = 0; i < 4; i++)
            if (pthread_create(&threads[i], NULL, fill_stack, (void *)(size_t)(1 << 20)) != 0)
                _exit(2);
        for (int i = 0; i < 4; i++)
            pthread_join(threads[i], NULL);
        _exit(df_mkdir(POINT "/d/e", 0755) == 0 && df_stat(POINT "/d/e", &st) == 0 ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(df_unmount(id, 0), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mounts_a_plugin),
        cmocka_unit_test(unmounts_lazily),
        cmocka_unit_test(says_why_it_cannot_mount),
        cmocka_unit_test(makes_files_in_another_name),
        cmocka_unit_test(serves_a_child_that_makes_threads),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
