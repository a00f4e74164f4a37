/*
 * test_core_fd.c - the table of virtual descriptors and what keeps an open file.
 */
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/caller.h"
#include "core/calls.h"
#include "core/fd.h"
#include "core/gate.h"
#include "core/mount.h"
#include "ramfs.h"

static struct ramfs_probe probe;
static struct df_fs *fs;
static struct df_mount *mount;
static struct df_thread *self;

static int group_setup(void **state)
{
    struct df_mount_spec spec = {.point = "/df-test-fd"};

    (void)state;
    fs = ramfs_new(&probe);
    return fs ? df_mount_attach(&spec, fs, &mount) : -1;
}

static int group_teardown(void **state)
{
    (void)state;
    return df_mount_detach(mount->id, 0);
}

static int setup(void **state)
{
    int error = 0;

    (void)state;
    self = df_gate_enter(&error);
    return error;
}

static int teardown(void **state)
{
    (void)state;
    df_gate_leave(self);
    assert_int_equal(df_fd_count(), 0);
    assert_int_equal(df_file_count(mount), 0);
    assert_int_equal(probe.opened, probe.released);
    return 0;
}

/* An open file with one reference. */
static struct df_file *open_file(void)
{
    struct df_where root = {.name = "/", .len = 1};
    struct df_file *file = df_file_new(self, mount, fs, O_RDONLY);
    struct df_call call;

    assert_non_null(file);
    df_call_start(&call, self, mount);
    assert_int_equal(fs->ops->open(fs, &call, &root, file, O_RDONLY, 0), 0);
    df_file_opened(file);
    return file;
}

static int install(struct df_file *file)
{
    int fd = df_fd_reserve(self);

    assert_true(df_fd_ours(fd));
    df_fd_install(fd, file, false);
    return fd;
}

static void drop(int fd)
{
    struct df_file *file = df_fd_take(self, fd);

    assert_non_null(file);
    df_file_put(self, file);
}

/* ---- numbers ---- */

static void a_number_is_ours_or_not(void **state)
{
    (void)state;
    assert_false(df_fd_ours(-1));
    assert_false(df_fd_ours(AT_FDCWD));
    assert_false(df_fd_ours(DF_FD_BASE - 1));
    assert_true(df_fd_ours(DF_FD_BASE));
    assert_true(df_fd_ours(INT_MAX));
    assert_null(df_fd_get(self, INT_MAX));
    assert_null(df_fd_use(self, DF_FD_BASE));
    assert_null(df_fd_take(self, DF_FD_BASE + DF_FD_MAX));
    assert_int_equal(df_fd_cloexec(INT_MAX), -EBADF);
}

static void a_reserved_number_is_not_open(void **state)
{
    struct df_file *file = open_file(), *old;
    int fd = df_fd_reserve(self);

    (void)state;
    assert_null(df_fd_get(self, fd));
    assert_null(df_fd_take(self, fd));
    assert_int_equal(df_fd_set_cloexec(fd, true), -EBADF);
    assert_int_equal(df_fd_replace(fd, file, false, &old), -EBUSY);
    df_fd_give_back(self, fd);
    assert_int_equal(df_fd_reserve(self), fd); /* last in, first out */
    df_fd_install(fd, file, true);
    assert_int_equal(df_fd_cloexec(fd), 1);
    drop(fd);
}

/* dup3(2) takes a number that is in a list of free ones; the list finds out. */
static void a_number_taken_out_of_the_list_is_not_given_twice(void **state)
{
    struct df_file *file = open_file(), *old;
    int fd = df_fd_reserve(self), seen[40];

    (void)state;
    df_fd_give_back(self, fd);
    assert_true(df_file_hold(file));
    assert_int_equal(df_fd_replace(fd, file, false, &old), fd);
    assert_null(old);
    for (int i = 0; i < 40; i++) {
        seen[i] = df_fd_reserve(self);
        assert_int_not_equal(seen[i], fd);
        for (int j = 0; j < i; j++)
            assert_int_not_equal(seen[i], seen[j]);
    }
    drop(fd);
    for (int i = 0; i < 40; i++)
        df_fd_give_back(self, seen[i]);
    /* Closed, it is in the list once. */
    for (int i = 0; i < 40; i++) {
        seen[i] = df_fd_reserve(self);
        for (int j = 0; j < i; j++)
            assert_int_not_equal(seen[i], seen[j]);
    }
    for (int i = 0; i < 40; i++)
        df_fd_give_back(self, seen[i]);
    df_file_put(self, file);
}

static void the_lowest_number_from_a_bound(void **state)
{
    const int base = DF_FD_BASE + 70000;
    struct df_file *file = open_file();

    (void)state;
    for (int i = 0; i < 3; i++) {
        assert_true(df_file_hold(file));
        assert_int_equal(df_fd_install_from(file, base, false), base + i);
    }
    drop(base + 1);
    assert_true(df_file_hold(file));
    assert_int_equal(df_fd_install_from(file, base, true), base + 1);
    assert_int_equal(df_fd_cloexec(base + 1), 1);
    assert_int_equal(df_fd_install_from(file, DF_FD_BASE + DF_FD_MAX, false), -EINVAL);
    for (int i = 0; i < 3; i++)
        drop(base + i);
    df_file_put(self, file);
}

/* Every number can be given out, and comes back. */
static void the_table_fills_up(void **state)
{
    struct df_file *file = open_file();
    int *fds = malloc(DF_FD_MAX * sizeof(int)), count = 0, fd;

    (void)state;
    while ((fd = df_fd_reserve(self)) >= 0) {
        assert_true(df_file_hold(file));
        df_fd_install(fd, file, false);
        fds[count++] = fd;
    }
    assert_int_equal(fd, -EMFILE);
    assert_in_range(count, DF_FD_MAX - 3 * DF_STASH_MAX, DF_FD_MAX);
    assert_int_equal(df_fd_count(), count);
    assert_int_equal(df_fd_install_from(file, DF_FD_BASE + DF_FD_MAX - 100, false), -EMFILE);
    drop(fds[--count]);
    assert_int_equal(install(file), fds[count]);
    assert_true(df_file_hold(file));
    assert_non_null(df_fd_take(self, fds[count]));
    df_file_put(self, file);
    while (count > 0)
        drop(fds[--count]);
    df_file_put(self, file);
    free(fds);
}

/* ---- what keeps a file ---- */

static void a_reference_outlives_the_descriptor(void **state)
{
    int fd = install(open_file());
    struct df_file *file = df_fd_get(self, fd);

    (void)state;
    drop(fd);
    assert_int_equal(probe.opened - probe.released, 1);
    df_file_put(self, file);
    assert_int_equal(probe.opened, probe.released);
    assert_false(df_file_hold(file));
}

/* The descriptor is closed in a nested call of the thread that uses it. */
static void a_use_outlives_the_descriptor(void **state)
{
    int error, fd = install(open_file());
    struct df_file *file = df_fd_use(self, fd);

    (void)state;
    assert_ptr_equal(df_gate_enter(&error), self);
    drop(fd);
    df_gate_leave(self);
    assert_int_equal(probe.opened - probe.released, 1);
    assert_false(df_file_hold(file));
    df_gate_unuse(self);
    assert_int_equal(probe.opened, probe.released);
}

/* ---- between threads ---- */

struct meeting {
    pthread_barrier_t barrier;
    int fd;
};

static void *use_and_wait(void *arg)
{
    struct meeting *meeting = arg;
    int error;
    struct df_thread *thread = df_gate_enter(&error);

    if (!df_fd_use(thread, meeting->fd))
        return arg;
    pthread_barrier_wait(&meeting->barrier); /* used here, closed there */
    pthread_barrier_wait(&meeting->barrier);
    df_gate_leave(thread);
    return NULL;
}

static void the_last_user_releases(void **state)
{
    struct meeting meeting = {.fd = install(open_file())};
    pthread_t thread;
    void *failed;

    (void)state;
    pthread_barrier_init(&meeting.barrier, NULL, 2);
    pthread_create(&thread, NULL, use_and_wait, &meeting);
    pthread_barrier_wait(&meeting.barrier);
    drop(meeting.fd);
    assert_int_equal(probe.opened - probe.released, 1);
    assert_int_equal(df_file_count(mount), 1);
    pthread_barrier_wait(&meeting.barrier);
    pthread_join(thread, &failed);
    assert_null(failed);
    assert_int_equal(probe.opened, probe.released);
    pthread_barrier_destroy(&meeting.barrier);
}

static void *close_one(void *arg)
{
    (void)arg;
    return df_call_close(*(int *)arg) == 0 ? NULL : arg;
}

static void another_thread_may_close(void **state)
{
    int fd = install(open_file());
    pthread_t thread;
    void *failed;

    (void)state;
    pthread_create(&thread, NULL, close_one, &fd);
    pthread_join(thread, &failed);
    assert_null(failed);
    assert_int_equal(probe.opened, probe.released);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_number_is_ours_or_not),
        TEST(a_reserved_number_is_not_open),
        TEST(a_number_taken_out_of_the_list_is_not_given_twice),
        TEST(the_lowest_number_from_a_bound),
        TEST(the_table_fills_up),
        TEST(a_reference_outlives_the_descriptor),
        TEST(a_use_outlives_the_descriptor),
        TEST(the_last_user_releases),
        TEST(another_thread_may_close),
    };

    return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
