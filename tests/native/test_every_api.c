/*
 * test_every_api.c - our libfuse ABI libraries below file systems of every API version, called from
 * several threads: what sanitizers are to see of them. The sources are those of tests/programs,
 * where their behaviour is compared with that of libfuse; here they are shared objects.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <directfuse.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define ROOT "/every-api"

/* Plugins that were built: those of FUSE 2 need libfuse-dev. */
static const char *const high[] = {
    "every_api-30", "every_api-312",
#ifdef WITH_FUSE2
    "every_api-11", "every_api-21",  "every_api-22",         "every_api-25",
    "every_api-26", "every_api-26n", "every_api-25-by_hand",
#endif
};
static const char *const low[] = {
    "every_low_api-312", "every_low_api-312-own_loop",
#ifdef WITH_FUSE2
    "every_low_api-24",  "every_low_api-25",
    "every_low_api-26",  "every_low_api-26-own_loop",
#endif
};

static int mount_plugin(const char *name, const char *options)
{
    char path[512], message[4096] = "";
    char *argv[] = {(char *)name, "-f", ROOT, NULL, NULL, NULL};
    int argc = 3;
    if (options) {
        argv[2] = "-o";
        argv[3] = (char *)options;
        argv[4] = ROOT;
        argc = 5;
    }
    snprintf(path, sizeof(path), PLUGINS "%s.so", name);
    int mount = df_mount(path, argc, argv, 0, message, sizeof(message));
    if (mount < 0)
        print_error("%s: %s\n", name, message);
    assert_true(mount >= 0);
    return mount;
}

static void assert_names(const char *path, const char *expected)
{
    char names[256] = "";
    df_dir *dir = df_opendir(path);
    assert_non_null(dir);
    for (struct dirent *entry = df_readdir(dir); entry; entry = df_readdir(dir))
        if (entry->d_name[0] != '.')
            strcat(strcat(names, entry->d_name), " ");
    assert_int_equal(df_closedir(dir), 0);
    assert_string_equal(names, expected);
}

/* ---- high-level -------------------------------------------------------------------------------
 */

static void change_names(void)
{
    struct stat st;
    char buf[4];
    int fd = df_open(ROOT "/new", O_CREAT | O_EXCL | O_RDWR, 0644);
    assert_true(fd >= 0);
    assert_int_equal(df_pwrite(fd, "abc", 3, 0), 3);
    assert_int_equal(df_rename(ROOT "/new", ROOT "/other"), 0);
    assert_int_equal(df_unlink(ROOT "/other"), 0);
    assert_int_equal(df_pread(fd, buf, sizeof(buf), 0), 3);
    assert_int_equal(df_fchmod(fd, 0600), 0);
    assert_int_equal(df_ftruncate(fd, 1), 0);
    assert_int_equal(df_fstat(fd, &st), 0);
    assert_int_equal(st.st_size, 1);
    assert_int_equal(df_close(fd), 0);
    assert_int_equal(df_stat(ROOT "/other", &st), -1);
    assert_int_equal(errno, ENOENT);
}

static void *change_file(void *unused)
{
    char buf[64];
    (void)unused;
    for (int i = 0; i < 50; i++) {
        int fd = df_open(ROOT "/file", O_RDWR, 0);
        assert_true(fd >= 0);
        assert_true(df_pwrite(fd, "0123456789", 10, 0) == 10);
        assert_true(df_pread(fd, buf, sizeof(buf), 0) >= 10);
        assert_int_equal(df_close(fd), 0);
    }
    return NULL;
}

static void run_threads(void *(*run)(void *))
{
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, run, NULL), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
}

static void test_high_level(void **state)
{
    struct timespec times[2] = {{5, 0}, {.tv_nsec = UTIME_OMIT}};
    struct statvfs space;
    (void)state;
    for (size_t i = 0; i < sizeof(high) / sizeof(high[0]); i++) {
        int mount = mount_plugin(high[i], strstr(high[i], "-1") || strstr(high[i], "-30")
                                              ? "modules=subdir,subdir=/"
                                              : NULL);
        assert_names(ROOT, "file ");
        assert_int_equal(df_statvfs(ROOT, &space), 0);
        assert_int_equal(space.f_blocks, 4242);
        change_names();
        assert_int_equal(df_utimensat(AT_FDCWD, ROOT "/file", times, 0), 0);
        assert_int_equal(df_truncate(ROOT "/file", 3), 0);
        /* It keeps a trace without a lock: one thread, or one operation at a time. */
        change_file(NULL);
        assert_int_equal(df_unmount(mount, 0), 0);
    }
}

#ifdef WITH_FUSE2
/* Many at a time: layers that keep nothing. */
static void *read_tree(void *unused)
{
    (void)unused;
    for (int i = 0; i < 50; i++) {
        char buf[8];
        int fd = df_open(ROOT "/SUB/FILE", O_RDONLY, 0);
        assert_true(fd >= 0);
        assert_int_equal(df_pread(fd, buf, sizeof(buf), 0), 6);
        assert_int_equal(df_close(fd), 0);
    }
    return NULL;
}
#endif

static void test_modules(void **state)
{
    (void)state;
#ifdef WITH_FUSE2
    static const char *const stacks[] = {
        "modules=loud",
        "modules=loud:loud",
        "modules=subdir:loud,subdir=/",
        "modules=loud:subdir,subdir=/",
    };
    char message[4096];
    for (size_t i = 0; i < sizeof(stacks) / sizeof(stacks[0]); i++) {
        int mount = mount_plugin("layers_2", stacks[i]);
        if (i == 0)
            read_tree(NULL);
        assert_names(ROOT "/SUB", "FILE ");
        assert_int_equal(df_unmount(mount, 0), 0);
    }
    /* What was stacked goes again when the next one is missing. */
    char *argv[] = {"layers_2", "-f", "-o", "modules=loud:subdir:none,subdir=/", ROOT, NULL};
    assert_int_equal(df_mount(PLUGINS "layers_2.so", 5, argv, 0, message, sizeof(message)), -1);
    assert_non_null(strstr(message, "none"));
#else
    skip();
#endif
}

/* ---- low-level --------------------------------------------------------------------------------
 */

static void test_low_level(void **state)
{
    struct stat st;
    (void)state;
    for (size_t i = 0; i < sizeof(low) / sizeof(low[0]); i++) {
        int mount = mount_plugin(low[i], NULL);
        assert_names(ROOT, "file ");
        run_threads(change_file);
        assert_int_equal(df_truncate(ROOT "/file", 9), 0);
        assert_int_equal(df_stat(ROOT "/file", &st), 0);
        assert_int_equal(st.st_size, 9);
        assert_int_equal(df_unmount(mount, 0), 0);
    }
}

/* ---- libfuse3.so.4 -----------------------------------------------------------------------------
 */

static void test_later(void **state)
{
    (void)state;
    int mount = mount_plugin(
        "later_high", "no_rofd_flush,ac_attr_timeout=7.5,fmask=137,dmask=027,io_uring,symfollow");
    char buf[64];
    int fd = df_open(ROOT "/file", O_RDWR, 0);
    assert_true(fd >= 0);
    assert_int_equal(df_pread(fd, buf, sizeof(buf), 0), 19);
    assert_int_equal(df_pwrite(fd, "ONE TWO", 7, 0), 7);
    assert_int_equal(df_close(fd), 0);
    assert_int_equal(df_access(ROOT, R_OK), 0);
    assert_names(ROOT, "");
    assert_int_equal(df_unmount(mount, 0), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_high_level),
        cmocka_unit_test(test_modules),
        cmocka_unit_test(test_low_level),
        cmocka_unit_test(test_later),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
