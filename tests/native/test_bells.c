/*
 * test_bells.c - descriptors by which the server wakes clients (ledger/bells.h), and what they are
 * for in epoll instances (ledger/epolls.h).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "channel/layout.h"
#include "core/ops.h"
#include "ledger/bells.h"
#include "ledger/epolls.h"

#define TEST(name) cmocka_unit_test(name)
#define EPOLLS_AT  ((sizeof(struct df_segment) + 4095) & ~4095UL)

static struct df_bells bells;

static int begin(void **state)
{
    (void)state;
    df_bells_init(&bells);
    return 0;
}

/* The end that is listened to. */
static int hang(uint64_t token, bool asked)
{
    int pair[2];

    assert_int_equal(pipe2(pair, O_NONBLOCK | O_CLOEXEC), 0);
    assert_true(df_bell_hang(&bells, token, pair[1], asked));
    return pair[0];
}

static short events_of(int fd)
{
    struct pollfd p = {fd, POLLIN, 0};

    assert_return_code(poll(&p, 1, 0), errno);
    return p.revents;
}

static void silence(int fd)
{
    char bytes[64];

    assert_true(read(fd, bytes, sizeof(bytes)) > 0);
    assert_int_equal(events_of(fd), 0);
}

static struct df_wake *wake_of(uint64_t token)
{
    struct df_wake *wake = df_bell_wake(&bells, token, false);

    assert_non_null(wake);
    return wake;
}

static void a_wake_rings(void **state)
{
    int fd = hang(1, false);
    struct df_wake *wake = wake_of(1);

    (void)state;
    assert_int_equal(events_of(fd), 0);
    df_wake(wake);
    assert_int_equal(events_of(fd), POLLIN);
    silence(fd);
    df_wake_drop(wake_of(1));
    assert_int_equal(events_of(fd), 0);
    df_bell_end(&bells, 1);
    assert_int_equal(events_of(fd), POLLHUP);
    close(fd);
}

/* Whoever has heard one ring asks for all files: of the wakes that it had given out before, none
 * rings again. */
static void a_ring_ends_the_round(void **state)
{
    int fd = hang(1, false);
    struct df_wake *first = wake_of(1), *second = wake_of(1), *third;

    (void)state;
    assert_false(df_wake_drop_over(second));
    df_wake(first);
    silence(fd);
    third = wake_of(1);
    assert_true(df_wake_drop_over(second));
    assert_false(df_wake_drop_over(third));
    df_wake(third);
    assert_int_equal(events_of(fd), POLLIN);
    df_bell_end(&bells, 1);
    close(fd);
}

/* The question may come before the descriptor, and the answer too. */
static void what_was_rung_before_it_hangs_is_heard(void **state)
{
    int fd;

    (void)state;
    df_wake(wake_of(1));
    fd = hang(1, false);
    assert_int_equal(events_of(fd), POLLIN);
    df_bell_end(&bells, 1);
    close(fd);
}

static void who_listens_no_more_is_not_rung(void **state)
{
    int fd = hang(1, false);
    struct df_wake *wake = wake_of(1), *late = wake_of(1);

    (void)state;
    df_bell_end(&bells, 1);
    assert_true(df_wake_drop_over(wake));
    df_wake(late);
    df_bell_end(&bells, 1); /* once more: nothing */
    df_bell_ring(&bells, 1);
    close(fd);
}

/* As a client that lies may send it: full, and made to wait. */
static void what_would_wait_is_not_rung(void **state)
{
    const uint64_t most = UINT64_MAX - 1;
    int fd = eventfd(0, EFD_CLOEXEC);

    (void)state;
    assert_int_equal(write(fd, &most, sizeof(most)), sizeof(most));
    assert_true(df_bell_hang(&bells, 5, fd, false));
    df_bell_ring(&bells, 5);
    assert_true(df_bell_hear(&bells, 5));
    df_bell_end(&bells, 5);
}

static void one_of_two_hears_a_ring(void **state)
{
    int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC), copy = dup(fd);

    (void)state;
    df_wake_drop(wake_of(7));
    assert_true(df_bell_hang(&bells, 7, fd, true));
    assert_true(df_bell_await(&bells, 7));
    assert_false(df_bell_hear(&bells, 7));
    df_bell_ring(&bells, 7);
    df_bells_ring(&bells);
    assert_int_equal(events_of(copy), POLLIN);
    assert_true(df_bell_hear(&bells, 7));
    assert_int_equal(events_of(copy), 0);
    assert_false(df_bell_hear(&bells, 7));
    df_bell_end(&bells, 7);
    close(copy);
}

static void what_nobody_asked_for_does_not_hang(void **state)
{
    int pair[2];

    (void)state;
    assert_int_equal(pipe(pair), 0);
    assert_false(df_bell_hang(&bells, 9, pair[1], true));
    assert_int_equal(events_of(pair[0]), POLLHUP);
    assert_false(df_bell_await(&bells, 9));
    close(pair[0]);
}

/* ---- epoll ---- */

static struct df_epolls epolls;
static struct df_segment *segment;

static int begin_epolls(void **state)
{
    (void)state;
    segment = aligned_alloc(4096, EPOLLS_AT + DF_EPOLL_COUNT * sizeof(struct df_shared_epoll));
    *segment = (struct df_segment){.epolls_at = EPOLLS_AT};
    for (unsigned i = 0; i < DF_EPOLL_COUNT; i++)
        df_segment_epolls(segment)[i] = (struct df_shared_epoll){0};
    df_epolls_init(&epolls, segment);
    return 0;
}

static int end_epolls(void **state)
{
    (void)state;
    while (df_epolls_remove_any(&epolls, 10) || df_epolls_remove_any(&epolls, 11))
        ;
    free(segment);
    return 0;
}

static void an_entry_is_of_a_file_a_number_and_an_instance(void **state)
{
    struct df_epoll one = {.token = 1, .handle = 10, .set = 5, .fd = 3, .events = EPOLLIN};
    struct df_epoll other = one, found;

    (void)state;
    assert_int_equal(df_epolls_add(&epolls, &one), 0);
    other.token = 2;
    assert_int_equal(df_epolls_add(&epolls, &other), -EEXIST);
    other.fd = 4;
    assert_int_equal(df_epolls_add(&epolls, &other), 0);
    other.set = 6;
    assert_int_equal(df_epolls_modify(&epolls, &other), -ENOENT);
    assert_int_equal(df_epolls_remove(&epolls, &other), 0);
    one.data = 77;
    assert_int_equal(df_epolls_modify(&epolls, &one), 0);
    assert_int_equal(df_epolls_find(&epolls, 1, &found), 0);
    assert_int_equal(found.data, 77);
    assert_int_equal(df_epolls_remove_any(&epolls, 10) + df_epolls_remove_any(&epolls, 10), 3);
    assert_int_equal(df_epolls_remove_any(&epolls, 10), 0);
    assert_int_equal(df_epolls_find(&epolls, 1, &found), -ENOENT);
    assert_int_equal(df_epolls_find(&epolls, 3, &found), -EINVAL);
}

static void once_is_once_until_it_is_modified(void **state)
{
    struct df_epoll one = {.token = 1, .handle = 10, .events = EPOLLIN | EPOLLONESHOT};
    const struct df_epoll other = {.token = 2, .handle = 10, .events = EPOLLIN | EPOLLONESHOT};

    (void)state;
    assert_int_equal(df_epolls_add(&epolls, &one), 0);
    assert_true(df_epolls_tell(&epolls, &one));
    assert_false(df_epolls_tell(&epolls, &one));
    assert_int_equal(df_epolls_modify(&epolls, &one), 0);
    assert_true(df_epolls_tell(&epolls, &one));
    assert_false(df_epolls_tell(&epolls, &other));
}

/* One was asked for and then modified: it was not told, so it is not off. */
static void what_was_modified_meanwhile_is_not_told_as_it_was(void **state)
{
    const struct df_epoll before = {
        .token = 1, .handle = 10, .events = EPOLLIN | EPOLLONESHOT, .data = 77};
    struct df_epoll now = before;

    (void)state;
    assert_int_equal(df_epolls_add(&epolls, &before), 0);
    now.events = EPOLLOUT | EPOLLONESHOT;
    assert_int_equal(df_epolls_modify(&epolls, &now), 0);
    assert_false(df_epolls_tell(&epolls, &before));
    assert_true(df_epolls_tell(&epolls, &now));
    now.data = 78;
    assert_int_equal(df_epolls_modify(&epolls, &now), 0);
    now.data = 77;
    assert_false(df_epolls_tell(&epolls, &now));
}

static void clients_find_what_was_watched(void **state)
{
    struct df_shared_epoll *shared = df_segment_epolls(segment);
    struct df_epoll one = {.token = 1, .handle = 10, .set = 5, .data = 77};
    struct df_epoll two = {.token = 2, .handle = 11, .set = 5, .data = 78};

    (void)state;
    assert_int_equal(df_epolls_add(&epolls, &one), 0);
    assert_int_equal(df_epolls_add(&epolls, &two), 0);
    assert_int_equal(shared[0].set, 5);
    assert_int_equal(shared[0].data, 77);
    assert_int_equal(shared[1].data, 78);
    one.data = 79;
    assert_int_equal(df_epolls_modify(&epolls, &one), 0);
    assert_int_equal(shared[0].data, 79);
    assert_int_equal(df_epolls_remove(&epolls, &one), 1);
    assert_int_equal(shared[0].set, 0);
    assert_int_equal(shared[1].set, 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_wake_rings),
        TEST(a_ring_ends_the_round),
        TEST(what_was_rung_before_it_hangs_is_heard),
        TEST(who_listens_no_more_is_not_rung),
        TEST(what_would_wait_is_not_rung),
        TEST(one_of_two_hears_a_ring),
        TEST(what_nobody_asked_for_does_not_hang),
    };
    const struct CMUnitTest of_epoll[] = {
        cmocka_unit_test_setup_teardown(an_entry_is_of_a_file_a_number_and_an_instance,
                                        begin_epolls, end_epolls),
        cmocka_unit_test_setup_teardown(once_is_once_until_it_is_modified, begin_epolls,
                                        end_epolls),
        cmocka_unit_test_setup_teardown(what_was_modified_meanwhile_is_not_told_as_it_was,
                                        begin_epolls, end_epolls),
        cmocka_unit_test_setup_teardown(clients_find_what_was_watched, begin_epolls, end_epolls),
    };

    return cmocka_run_group_tests(tests, begin, NULL) +
           cmocka_run_group_tests(of_epoll, NULL, NULL);
}
