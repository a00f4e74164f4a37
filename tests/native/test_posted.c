/*
 * test_posted.c - messages that nobody waits for, between a mount server and its clients: closes,
 * and what comes behind them.
 */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "channel_rig.h"

static void what_is_posted_is_not_overtaken(void **state)
{
    struct rig *rig = *state;

    for (uint64_t handle = 1; handle < 500; handle++) {
        df_trip_drop_soon(&rig->trip, handle);
        if (handle % 2)
            df_link_settle(&rig->link);
        else
            assert_int_equal(df_trip_fsync(&rig->trip, handle, false), 0);
        assert_int_equal(atomic_load(&rig->dropped), handle);
        assert_int_equal(busy_slots(rig), 0);
    }
}

static void *post_and_ask(void *argument)
{
    struct rig *rig = argument;
    struct df_trip trip = rig->trip;
    intptr_t wrong = 0;

    for (int i = 0; i < 500; i++) {
        df_trip_drop_soon(&trip, 1);
        wrong += df_trip_fsync(&trip, 1, false) != 0;
    }
    return (void *)wrong;
}

static void threads_post_at_once(void **state)
{
    struct rig *rig = *state;
    pthread_t threads[4];
    void *wrong;

    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, post_and_ask, rig);
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], &wrong);
        assert_null(wrong);
    }
    df_link_settle(&rig->link);
    assert_int_equal(busy_slots(rig), 0);
}

/* ---- behind a close that takes long -----------------------------------------------------------
 */

static void await_free(struct rig *rig)
{
    while (busy_slots(rig) > 0)
        sched_yield();
}

/* A question that is behind what was posted, and said so; its index. */
static unsigned await_follower(struct rig *rig)
{
    struct df_slot *slots = df_segment_slots(rig->own.segment);

    for (unsigned i = 0;; i = (i + 1) % DF_SLOT_COUNT) {
        if (i == 0)
            sched_yield();
        if (df_slot_state(atomic_load(&slots[i].word)) == DF_SLOT_BEHIND &&
            atomic_load(&slots[i ^ 1].word) & DF_SLOT_FOLLOWED)
            return i;
    }
}

static void *sync_held(void *argument)
{
    struct rig *rig = argument;
    struct df_trip trip = rig->trip;

    return (void *)(intptr_t)df_trip_fsync(&trip, HELD, false);
}

static void post_held(struct rig *rig)
{
    df_trip_drop_soon(&rig->trip, HELD);
    await_entered(rig, 1);
}

/* It is nobody else's to begin. */
static void a_question_lies_behind_what_was_posted(void **state)
{
    struct rig *rig = *state;
    struct df_segment *segment = rig->own.segment;
    pthread_t thread;
    void *result;

    post_held(rig);
    pthread_create(&thread, NULL, sync_held, rig);
    await_follower(rig);
    assert_int_equal(atomic_load(&segment->pending[0]) | atomic_load(&segment->pending[1]), 0);
    assert_int_equal(atomic_load(&rig->synced), 0);
    open_gate(rig);
    pthread_join(thread, &result);
    assert_null(result);
    assert_int_equal(atomic_load(&rig->link.posted) & UINT8_MAX, 0);
    assert_int_equal(busy_slots(rig), 0);
}

/* One is behind it, the others wait until it is done. */
static void several_wait_for_what_was_posted(void **state)
{
    struct rig *rig = *state;
    pthread_t threads[4];
    void *result;

    post_held(rig);
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, sync_held, rig);
    await_follower(rig);
    assert_int_equal(atomic_load(&rig->synced), 0);
    open_gate(rig);
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], &result);
        assert_null(result);
    }
    assert_int_equal(busy_slots(rig), 0);
}

/* The order is given up, the question is not: it has a patience of its own. */
static void a_question_goes_ahead_of_what_takes_too_long(void **state)
{
    struct rig *rig = *state;

    post_held(rig);
    rig->link.patience = 100000000;
    assert_int_equal(df_trip_fsync(&rig->trip, HELD, false), -EBUSY);
    assert_int_equal(busy_slots(rig), 1);
    assert_int_equal(df_trip_nothing(&rig->trip), 0); /* without a wait */
    open_gate(rig);
    await_free(rig);
    assert_int_equal(atomic_load(&rig->dropped), HELD);
}

/* A RELEASE, which Linux makes nobody wait for. */
static void a_question_goes_ahead_of_what_hangs(void **state)
{
    struct rig *rig = *state;

    post_held(rig);
    assert_true(rig->link.patience < 0);
    assert_int_equal(df_trip_fsync(&rig->trip, HELD, false), -EBUSY);
    assert_int_equal(busy_slots(rig), 1);
    open_gate(rig);
    await_free(rig);
}

static void the_end_waits_briefly_for_what_hangs(void **state)
{
    struct rig *rig = *state;

    post_held(rig);
    df_link_settle(&rig->link);
    assert_int_equal(busy_slots(rig), 1);
    open_gate(rig);
    await_free(rig);
}

/* Whose client is killed there: taken away as by the reaper, and not begun. Who comes behind the
 * same close later is. */
static void what_is_taken_away_behind_a_close_is_not_begun(void **state)
{
    struct rig *rig = *state;
    struct df_slot *slot;
    pthread_t thread;
    pid_t client;
    void *result;

    post_held(rig);
    client = fork();
    if (client == 0) {
        sync_held(rig);
        _exit(1);
    }
    slot = &df_segment_slots(rig->own.segment)[await_follower(rig)];
    kill(client, SIGKILL);
    waitpid(client, NULL, 0);
    df_link_release(rig->own.segment, slot);
    pthread_create(&thread, NULL, sync_held, rig);
    assert_ptr_equal(&df_segment_slots(rig->own.segment)[await_follower(rig)], slot);
    open_gate(rig);
    pthread_join(thread, &result);
    assert_null(result);
    assert_int_equal(atomic_load(&rig->synced), 1);
    assert_int_equal(busy_slots(rig), 0);
}

static void a_close_that_nobody_is_behind_any_more_is_done(void **state)
{
    struct rig *rig = *state;
    pid_t client;

    post_held(rig);
    client = fork();
    if (client == 0) {
        sync_held(rig);
        _exit(1);
    }
    await_follower(rig);
    kill(client, SIGKILL);
    waitpid(client, NULL, 0);
    df_link_release(rig->own.segment, &df_segment_slots(rig->own.segment)[await_follower(rig)]);
    open_gate(rig);
    await_free(rig);
    assert_int_equal(atomic_load(&rig->synced), 0);
    assert_int_equal(df_trip_fsync(&rig->trip, HELD, false), 0);
}

static void a_second_close_waits_for_the_first(void **state)
{
    struct rig *rig = *state;
    pthread_t thread;
    void *result;

    post_held(rig);
    pthread_create(&thread, NULL, sync_held, rig);
    await_follower(rig);
    open_gate(rig);
    df_trip_drop_soon(&rig->trip, 5);
    pthread_join(thread, &result);
    df_link_settle(&rig->link);
    assert_int_equal(atomic_load(&rig->dropped), 5);
    assert_int_equal(busy_slots(rig), 0);
}

/* ---- without a slot ---------------------------------------------------------------------------
 */

static void a_close_that_found_no_slot_goes_with_the_next_call(void **state)
{
    struct rig *rig = *state;
    struct df_trip_where where = named("/a");
    struct stat st;

    fill_slots(rig, df_slot_word(2, DF_SLOT_RUNNING));
    rig->link.patience = 1;
    assert_int_equal(df_trip_drop(&rig->trip, 42), -ETIMEDOUT);
    assert_int_equal(df_trip_flush(&rig->trip, 43, 7, true), -ETIMEDOUT);
    assert_int_equal(df_trip_flush(&rig->trip, 44, 7, false), -ETIMEDOUT); /* closes nothing */
    rig->link.patience = -1;
    fill_slots(rig, DF_SLOT_FREE);
    for (int i = 0; i < 3; i++)
        assert_int_equal(df_trip_getattr(&rig->trip, &where, &st), 0);
    df_link_settle(&rig->link);
    assert_int_equal(atomic_load(&rig->dropped), 42);
    assert_int_equal(atomic_load(&rig->flushed), 43);
    assert_int_equal(atomic_load(&rig->link.owes), 0);
    assert_int_equal(busy_slots(rig), 0);
}

static void a_close_is_done_though_nobody_waits_for_it(void **state)
{
    struct rig *rig = *state;

    df_pool_stop(&rig->pool); /* nobody takes anything */
    rig->link.patience = 100000000;
    assert_int_equal(df_trip_drop(&rig->trip, 42), -ETIMEDOUT);
    assert_int_equal(busy_slots(rig), 1);
    assert_int_equal(df_pool_start(&rig->pool, rig->own.segment, serve, NULL, rig), 0);
    while (busy_slots(rig) > 0)
        sched_yield();
    assert_int_equal(atomic_load(&rig->dropped), 42);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        TEST(what_is_posted_is_not_overtaken),
        TEST(threads_post_at_once),
        TEST(a_question_lies_behind_what_was_posted),
        TEST(several_wait_for_what_was_posted),
        TEST(a_question_goes_ahead_of_what_takes_too_long),
        TEST(a_question_goes_ahead_of_what_hangs),
        TEST(the_end_waits_briefly_for_what_hangs),
        TEST(what_is_taken_away_behind_a_close_is_not_begun),
        TEST(a_close_that_nobody_is_behind_any_more_is_done),
        TEST(a_second_close_waits_for_the_first),
        TEST(a_close_that_found_no_slot_goes_with_the_next_call),
        TEST(a_close_is_done_though_nobody_waits_for_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
