/*
 * test_writeback.c - writes that are kept: by many threads at once against everything that has them
 * handed over; under thread sanitizer this is where the locks of writeback.h are put to the test.
 */
#include <directfuse.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/fd.h"
#include "core/mount.h"
#include "ramfs.h"
#include "segment/segment.h"
#include "writeback/writeback.h"

#define POINT "/df-test-writeback"
#define PAGE  4096
#ifdef DF_TSAN
#define ROUNDS 200
#else
#define ROUNDS 2000
#endif

struct rig {
    struct ramfs_probe probe;
    struct df_own_segment own;
    struct df_cacher cacher;
    struct df_writeback_room room;
    struct df_writeback_server server;
    struct df_mount *mount;
};

static int set_up(void **state)
{
    struct rig *rig = calloc(1, sizeof(*rig));
    const struct df_mount_spec spec = {.point = POINT};

    assert_int_equal(df_segment_create(&rig->own, DF_CACHE_ENTRIES_LEAST, 1 << 20), 0);
    df_cacher_init(&rig->cacher, rig->own.segment);
    df_cacher_mount(&rig->cacher, 0);
    assert_int_equal(df_mount_attach(&spec, ramfs_new(&rig->probe), &rig->mount), 0);
    rig->room.limit = 64;
    rig->server = (struct df_writeback_server){
        .mount = rig->mount, .id = rig->mount->id, .cacher = &rig->cacher, .room = &rig->room};
    assert_int_equal(df_mount_wrap(rig->mount->id, df_writeback_wrap, &rig->server), 0);
    *state = rig;
    return 0;
}

static int tear_down(void **state)
{
    struct rig *rig = *state;

    assert_int_equal(df_mount_detach(rig->server.id, 0), 0);
    assert_int_equal(rig->room.used, 0);
    assert_int_equal(rig->probe.nodes, 0);
    df_writeback_free(rig->server.made);
    df_segment_end(&rig->own);
    df_segment_free(&rig->own);
    free(rig);
    return 0;
}

static int open_file(const char *name, int flags)
{
    char path[64] = POINT "/";
    int fd;

    strcat(path, name);
    fd = df_open(path, flags | O_CREAT, 0644);
    assert_true(fd >= 0);
    return fd;
}

/* ---- one thread ---- */

static void a_write_is_kept_until_it_is_asked_for(void **state)
{
    struct rig *rig = *state;
    int fd = open_file("a", O_RDWR);
    char bytes[3 * PAGE];

    assert_int_equal(df_pwrite(fd, "abc", 3, PAGE - 1), 3);
    assert_int_equal(rig->room.used, 2);
    assert_int_equal(df_pread(fd, bytes, sizeof(bytes), PAGE - 2), 4);
    assert_memory_equal(bytes, "\0abc", 4);
    assert_int_equal(df_fsync(fd), 0);
    assert_int_equal(rig->room.used, 0);
    assert_int_equal(df_pread(fd, bytes, sizeof(bytes), PAGE - 2), 4);
    assert_memory_equal(bytes, "\0abc", 4);
    df_close(fd);
}

static void a_page_with_a_gap_is_handed_over_first(void **state)
{
    struct rig *rig = *state;
    int fd = open_file("a", O_RDWR);
    char bytes[200];

    assert_int_equal(df_pwrite(fd, "one", 3, 0), 3);
    assert_int_equal(df_pwrite(fd, "two", 3, 100), 3);
    assert_int_equal(rig->room.used, 1);
    assert_int_equal(df_pread(fd, bytes, sizeof(bytes), 0), 103);
    assert_memory_equal(bytes, "one", 4);
    assert_memory_equal(bytes + 100, "two", 3);
    df_close(fd);
}

static void what_there_is_no_room_for_goes_through(void **state)
{
    struct rig *rig = *state;
    int one = open_file("a", O_RDWR), two = open_file("b", O_RDWR);
    char *bytes = calloc(64, PAGE);

    assert_int_equal(df_pwrite(one, bytes, 60 * PAGE, 0), 60 * PAGE);
    assert_int_equal(df_pwrite(two, bytes, 5 * PAGE, 0), 5 * PAGE);
    assert_int_equal(rig->room.used, 60);
    assert_int_equal(df_pwrite(one, bytes, 5 * PAGE, 60 * PAGE), 5 * PAGE);
    assert_int_equal(rig->room.used, 5); /* its own were handed over for it */
    free(bytes);
    df_close(one);
    df_close(two);
}

static void syncing_hands_all_over(void **state)
{
    struct rig *rig = *state;
    int one = open_file("a", O_RDWR), two = open_file("b", O_RDWR);

    df_pwrite(one, "x", 1, 0);
    df_pwrite(two, "x", 1, 0);
    assert_int_equal(rig->room.used, 2);
    df_writeback_sync(rig->server.made);
    assert_int_equal(rig->room.used, 0);
    df_close(one);
    df_close(two);
}

/* The thread is woken; that it ends is waited for by unmounting. */
static void a_notification_has_it_handed_over(void **state)
{
    struct rig *rig = *state;
    int fd = open_file("a", O_RDWR);

    df_pwrite(fd, "x", 1, 0);
    df_writeback_hurry(rig->server.made);
    while (rig->room.used > 0)
        sched_yield();
    df_close(fd);
}

static int no_space(void)
{
    return -ENOSPC;
}

/* errseq_sample() of Linux: whoever opens the file before anybody has heard of it hears of it. */
static void an_error_that_nobody_was_told_of_is_told_to_who_opens_the_file_later(void **state)
{
    struct rig *rig = *state;
    int fd = open_file("a", O_RDWR), next, last;

    assert_int_equal(df_pwrite(fd, "abc", 3, 0), 3);
    rig->probe.written = no_space;
    df_writeback_sync(rig->server.made);
    rig->probe.written = NULL;
    next = open_file("a", O_RDONLY);
    assert_int_equal(df_fsync(next), -1);
    assert_int_equal(errno, ENOSPC);
    assert_int_equal(df_fsync(next), 0);
    last = open_file("a", O_RDONLY);
    assert_int_equal(df_fsync(last), 0);
    assert_int_equal(df_fsync(fd), -1);
    assert_int_equal(errno, ENOSPC);
    assert_int_equal(df_close(fd), 0);
    assert_int_equal(df_close(next), 0);
    assert_int_equal(df_close(last), 0);
}

/* ---- many ---- */

static struct rig *shared;
static _Atomic int left; /* writers */

/* Each appends its own records; all of them must be there in the end, whole. */
static void *append(void *arg)
{
    char record[16];
    int fd = open_file("log", O_WRONLY | O_APPEND);

    memset(record, (int)(intptr_t)arg, sizeof(record));
    for (int i = 0; i < ROUNDS; i++)
        assert_int_equal(df_write(fd, record, sizeof(record)), sizeof(record));
    df_close(fd);
    left--;
    return NULL;
}

static void *disturb(void *arg)
{
    int fd = open_file("log", O_RDWR), truncated = open_file("other", O_RDWR);
    char bytes[64];
    struct stat st;
    off_t size = 0;

    (void)arg;
    while (left > 0) {
        df_writeback_sync(shared->server.made);
        df_pwrite(truncated, "x", 1, 5000);
        assert_int_equal(df_truncate(POINT "/other", 10), 0);
        assert_int_equal(df_fstat(truncated, &st), 0);
        assert_int_equal(st.st_size, 10);
        assert_int_equal(df_stat(POINT "/log", &st), 0);
        assert_true(st.st_size >= size); /* it never shrinks */
        size = st.st_size;
        assert_int_equal(df_fstat(fd, &st), 0);
        assert_true(st.st_size >= size);
        size = st.st_size;
        assert_true(df_pread(fd, bytes, sizeof(bytes), size) >= 0);
        if (size >= 16) {
            assert_int_equal(df_pread(fd, bytes, 16, size - 16), 16);
            assert_true(bytes[0] != 0);
        }
        df_chmod(POINT "/log", 0600);
        df_fsync(fd);
        df_writeback_hurry(shared->server.made);
    }
    df_close(fd);
    df_close(truncated);
    return NULL;
}

#define WRITERS 3

static void appends_of_many_are_all_there(void **state)
{
    pthread_t threads[WRITERS + 1];
    int fd, counts[WRITERS + 1] = {0};
    char record[16];

    shared = *state;
    left = WRITERS;
    for (intptr_t i = 0; i < WRITERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, append, (void *)(i + 1)), 0);
    assert_int_equal(pthread_create(&threads[WRITERS], NULL, disturb, NULL), 0);
    for (int i = 0; i <= WRITERS; i++)
        pthread_join(threads[i], NULL);
    fd = open_file("log", O_RDONLY);
    while (df_read(fd, record, sizeof(record)) == sizeof(record)) {
        assert_in_range(record[0], 1, WRITERS);
        for (size_t i = 1; i < sizeof(record); i++)
            assert_int_equal(record[i], record[0]);
        counts[(int)record[0]]++;
    }
    for (int i = 1; i <= WRITERS; i++)
        assert_int_equal(counts[i], ROUNDS);
    df_close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_write_is_kept_until_it_is_asked_for, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_page_with_a_gap_is_handed_over_first, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_there_is_no_room_for_goes_through, set_up, tear_down),
        cmocka_unit_test_setup_teardown(syncing_hands_all_over, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_notification_has_it_handed_over, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            an_error_that_nobody_was_told_of_is_told_to_who_opens_the_file_later, set_up,
            tear_down),
        cmocka_unit_test_setup_teardown(appends_of_many_are_all_there, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
