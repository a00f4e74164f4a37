/*
 * test_poll.c - df_poll() on a file whose file system says later that it is ready: through the
 * public API, the core, the path lane and libfuse's fuse_notify_poll().
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <directfuse.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

#define ROOT "/test-poll"

static int mount, bell, waiters;

static int setup(void **state)
{
    char message[1024] = "";
    char *argv[] = {"bell", "-f", ROOT, NULL};

    (void)state;
    mount = df_mount(PLUGINS "bell.so", 3, argv, 0, message, sizeof(message));
    if (mount < 0)
        print_error("%s\n", message);
    bell = df_open(ROOT "/bell", O_RDWR, 0);
    waiters = df_open(ROOT "/waiters", O_RDONLY, 0);
    return mount < 0 || bell < 0 || waiters < 0;
}

static int teardown(void **state)
{
    (void)state;
    df_close(waiters);
    df_close(bell);
    return df_unmount(mount, 0);
}

static void until_somebody_waits(void)
{
    char count = '0';

    while (count == '0') {
        sched_yield();
        assert_int_equal(df_pread(waiters, &count, 1, 0), 1);
    }
}

static void take_ring(void)
{
    char byte;

    assert_int_equal(df_read(bell, &byte, 1), 1);
}

struct waiter {
    pthread_t thread;
    struct pollfd fds[2];
    int result;
};

static void *wait_for_it(void *arg)
{
    struct waiter *w = arg;

    w->result = df_poll(w->fds, 2, -1);
    return NULL;
}

static void start(struct waiter *w, int other)
{
    *w = (struct waiter){.fds = {{other, POLLIN, 0}, {bell, POLLIN, 0}}};
    assert_int_equal(pthread_create(&w->thread, NULL, wait_for_it, w), 0);
    until_somebody_waits();
}

static void assert_woken(struct waiter *w)
{
    pthread_join(w->thread, NULL);
    assert_int_equal(w->result, 1);
    assert_int_equal(w->fds[0].revents, 0);
    assert_int_equal(w->fds[1].revents, POLLIN);
}

static void a_late_notification_wakes(void **state)
{
    struct waiter w;

    (void)state;
    for (int i = 0; i < 100; i++) {
        start(&w, -1);
        assert_int_equal(df_write(bell, i % 2 ? "later" : "now", i % 2 ? 5 : 3), i % 2 ? 5 : 3);
        assert_woken(&w);
        take_ring();
    }
}

/* The same file twice: of two handles the plugin keeps the last, and that is enough. */
static void a_descriptor_may_stand_twice(void **state)
{
    struct pollfd fds[2] = {{bell, POLLIN, 0}, {bell, POLLIN, 0}};
    struct waiter w;

    (void)state;
    start(&w, -1);
    assert_int_equal(df_poll(fds, 2, 1), 0); /* it takes the handle over, and its time runs out */
    assert_int_equal(df_write(bell, "now", 3), 3);
    assert_woken(&w);
    assert_int_equal(df_poll(fds, 2, -1), 2);
    take_ring();
}

static void a_ring_before_the_poll_is_seen(void **state)
{
    struct pollfd fds = {bell, POLLIN | POLLOUT, 0};

    (void)state;
    assert_int_equal(df_poll(&fds, 1, 0), 0);
    assert_int_equal(df_write(bell, "now", 3), 3);
    assert_int_equal(df_poll(&fds, 1, -1), 1);
    assert_int_equal(fds.revents, POLLIN);
    take_ring();
    assert_int_equal(df_poll(&fds, 1, 0), 0);
}

/* Closed by another thread: nobody will notify any more, and the descriptor is none. */
static void closing_the_file_wakes(void **state)
{
    struct waiter w;
    int other = df_open(ROOT "/bell", O_RDWR, 0);

    (void)state;
    w = (struct waiter){.fds = {{-1, POLLIN, 0}, {other, POLLIN, 0}}};
    assert_int_equal(pthread_create(&w.thread, NULL, wait_for_it, &w), 0);
    until_somebody_waits();
    assert_int_equal(df_close(other), 0);
    pthread_join(w.thread, NULL);
    assert_int_equal(w.result, 1);
    assert_int_equal(w.fds[1].revents, POLLNVAL);
}

static void polls_in_vain_leave_nothing_behind(void **state)
{
    struct pollfd fds = {bell, POLLIN, 0};
    size_t before = 0;

    (void)state;
    for (int i = 0; i < 210; i++) {
        if (i == 10)
            before = mallinfo2().uordblks;
        assert_int_equal(df_poll(&fds, 1, 1), 0);
    }
    assert_true(mallinfo2().uordblks < before + 1000);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_late_notification_wakes),          TEST(a_descriptor_may_stand_twice),
        TEST(a_ring_before_the_poll_is_seen),     TEST(closing_the_file_wakes),
        TEST(polls_in_vain_leave_nothing_behind),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
