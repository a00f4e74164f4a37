/*
 * test_posted.c - messages that nobody waits for, between a mount server and its clients: closes,
 * and what comes behind them.
 */
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
        TEST(a_close_that_found_no_slot_goes_with_the_next_call),
        TEST(a_close_is_done_though_nobody_waits_for_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
