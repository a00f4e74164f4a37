/*
 * test_count.c - the counting wrapper: what it counts, over threads, and that it changes nothing.
 */
#include <directfuse.h>
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "core/mount.h"
#include "ramfs.h"
#include "wrap/count.h"

#define POINT "/df-test-count"

static struct ramfs_probe probe;
static struct df_counters *counters;
static int mount_id;

static struct df_fs *wrap(struct df_fs *below, void *arg)
{
    return df_count_wrap(below, arg);
}

static void attach(bool timing)
{
    struct df_mount_spec spec = {.point = POINT};
    struct df_mount *mount;

    memset(&probe, 0, sizeof(probe));
    assert_int_equal(df_mount_attach(&spec, ramfs_new(&probe), &mount), 0);
    mount_id = mount->id;
    counters = df_count_new(timing);
    assert_non_null(counters);
    assert_int_equal(df_mount_wrap(mount_id, wrap, counters), 0);
}

static void detach(void)
{
    assert_int_equal(df_unmount(mount_id, 0), 0);
    assert_int_equal(probe.destroyed, 1);
    assert_int_equal(probe.nodes, 0);
    df_count_drop(counters);
}

static struct df_op_total total(enum df_op_number op)
{
    struct df_op_total totals[DF_OP_COUNT];

    df_count_sum(counters, totals);
    return totals[op];
}

static void counts_calls_errors_and_bytes(void **state)
{
    struct df_read reads[2];
    char buf[16];
    struct stat st;
    int fd;

    (void)state;
    attach(false);
    fd = df_open(POINT "/f", O_CREAT | O_RDWR, 0644);
    assert_true(fd >= 0);
    assert_int_equal(df_pwrite(fd, "0123456789", 10, 0), 10);
    assert_int_equal(df_pread(fd, buf, 4, 0), 4);
    assert_int_equal(df_pread(fd, buf, 16, 8), 2);
    for (int i = 0; i < 2; i++)
        reads[i] = (struct df_read){.fd = fd, .buf = buf, .size = 3};
    assert_int_equal(df_read_batch(reads, 2), 0);
    assert_int_equal(df_stat(POINT "/none", &st), -1);
    assert_int_equal(df_fstat(fd, &st), 0);
    assert_int_equal(df_symlink("/etc", POINT "/l"), 0);
    assert_int_equal(df_stat(POINT "/l", &st), 0); /* leaves the mount: no error */
    assert_int_equal(df_close(fd), 0);
    assert_int_equal(total(DF_OP_open).calls, 1);
    assert_int_equal(total(DF_OP_write).bytes, 10);
    assert_int_equal(total(DF_OP_read).calls, 2);
    assert_int_equal(total(DF_OP_read).bytes, 6);
    assert_int_equal(total(DF_OP_read_batch).calls, 1);
    assert_int_equal(total(DF_OP_read_batch).bytes, 6);
    assert_int_equal(total(DF_OP_getattr).calls, 3);
    assert_int_equal(total(DF_OP_getattr).errors, 1);
    assert_int_equal(total(DF_OP_flush).calls, 1);
    assert_int_equal(total(DF_OP_release).calls, 1);
    assert_int_equal(total(DF_OP_getattr).nanoseconds, 0);
    detach();
}

static void measures_time_when_asked(void **state)
{
    struct stat st;

    (void)state;
    attach(true);
    for (int i = 0; i < 100; i++)
        assert_int_equal(df_stat(POINT, &st), 0);
    assert_in_range(total(DF_OP_getattr).nanoseconds, 100, 10000000000);
    detach();
}

static void *stat_many(void *arg)
{
    struct stat st;

    for (int i = 0; i < 1000; i++)
        if (df_stat(POINT, &st) < 0)
            return arg;
    return NULL;
}

static void sums_over_threads(void **state)
{
    pthread_t threads[8];
    void *failed;

    (void)state;
    attach(false);
    for (int i = 0; i < 8; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, stat_many, &threads), 0);
    for (int i = 0; i < 8; i++) {
        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
    assert_int_equal(total(DF_OP_getattr).calls, 8000);
    detach();
}

static void knows_its_names(void **state)
{
    (void)state;
    assert_string_equal(df_count_op_name(DF_OP_getattr), "getattr");
    assert_string_equal(df_count_op_name(DF_OP_destroy), "destroy");
    assert_null(df_count_op_name(DF_OP_COUNT));
    assert_int_equal(df_stats(mount_id, NULL, 0), -1); /* not made by df_mount() */
    assert_int_equal(errno, EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_calls_errors_and_bytes),
        cmocka_unit_test(measures_time_when_asked),
        cmocka_unit_test(sums_over_threads),
        cmocka_unit_test(knows_its_names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
