/*
 * test_aside.c - a worker that leaves its client's processor: where it goes, what it may run on
 * afterwards, and when it does not go any more.
 */
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <unistd.h>

#include <cmocka.h>

#include "workers/aside.h"

/* A thread on one of the processors that it may use; SKIPs where there is only one. */
static uint32_t stand_on_the_first(cpu_set_t *all)
{
    cpu_set_t one;
    int cpu = 0;

    assert_int_equal(sched_getaffinity(0, sizeof(*all), all), 0);
    if (CPU_COUNT(all) < 2)
        skip();
    while (!CPU_ISSET(cpu, all))
        cpu++;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
    assert_int_equal(sched_setaffinity(0, sizeof(*all), all), 0);
    return (uint32_t)cpu;
}

static void it_may_run_where_it_might_before(void **state)
{
    struct df_aside aside = {0};
    cpu_set_t all, after;

    (void)state;
    assert_true(df_aside_step(&aside, stand_on_the_first(&all)));
    assert_int_equal(sched_getaffinity(0, sizeof(after), &after), 0);
    assert_true(CPU_EQUAL(&all, &after));
}

/* Once it is elsewhere the scheduler may take it back, so one of many tries has to do. */
static void it_goes_elsewhere(void **state)
{
    cpu_set_t all;
    bool away = false;

    (void)state;
    for (int i = 0; i < 100 && !away; i++) {
        uint32_t cpu = stand_on_the_first(&all);

        away = df_aside_step(&(struct df_aside){0}, cpu) && sched_getcpu() != (int)cpu;
    }
    assert_true(away);
}

/* How many waits pass before it is tried again, of which ten cost half as much as a move. */
static uint32_t waits_until_it_moves(struct df_aside *aside)
{
    cpu_set_t all;
    uint32_t cpu = stand_on_the_first(&all), waits = 0, late = aside->price / 40 + 1;

    for (; !df_aside_step(aside, cpu); waits++)
        df_aside_spend(aside, late);
    return waits;
}

static void it_stays_where_there_is_no_other(void **state)
{
    struct df_aside aside = {0};
    cpu_set_t all, one;
    uint32_t cpu = stand_on_the_first(&all);

    (void)state;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
    assert_false(df_aside_step(&aside, cpu));
    assert_int_equal(sched_setaffinity(0, sizeof(all), &all), 0);
    assert_false(df_aside_step(&aside, cpu));              /* that has been learnt */
    assert_in_range(waits_until_it_moves(&aside), 10, 20); /* and is tried again */
}

static void what_does_not_pay_is_done_less_and_less(void **state)
{
    struct df_aside aside = {0};
    uint32_t expected = 10;

    (void)state;
    assert_int_equal(waits_until_it_moves(&aside), 0);
    for (int i = 0; i < 4; i++) {
        assert_in_range(waits_until_it_moves(&aside), expected / 2, expected);
        df_aside_learn(&aside, false);
        expected *= 2;
    }
    df_aside_learn(&aside, true);
    assert_in_range(waits_until_it_moves(&aside), 5, 10);
}

/* Rows that end before the price has been paid, but are long enough for a cheaper move. */
static void it_regrets_a_move_that_it_did_not_make(void **state)
{
    struct df_aside aside = {0};

    (void)state;
    waits_until_it_moves(&aside);
    for (int i = 0; i < 5; i++)
        df_aside_learn(&aside, false);
    for (int i = 0; i < 10; i++) { /* of short rows it regrets none */
        df_aside_spend(&aside, aside.price / 2);
        df_aside_pause(&aside);
    }
    assert_int_equal(aside.failed, 5);
    for (int i = 0; i < 5; i++) {
        df_aside_spend(&aside, aside.price);
        df_aside_pause(&aside);
    }
    assert_int_equal(aside.failed, 0);
}

/* As it_goes_elsewhere(). */
static void it_goes_to_its_client(void **state)
{
    cpu_set_t all, after;
    bool there = false;

    (void)state;
    for (int i = 0; i < 100 && !there; i++) {
        uint32_t cpu = stand_on_the_first(&all);

        assert_true(df_aside_step(&(struct df_aside){0}, cpu));
        assert_true(df_aside_return(UINT32_MAX, cpu));
        there = sched_getcpu() == (int)cpu;
    }
    assert_true(there);
    assert_int_equal(sched_getaffinity(0, sizeof(after), &after), 0);
    assert_true(CPU_EQUAL(&all, &after));
}

/* What the switches cost is told by spend(), what a move does by the first one. */
static void it_moves_when_switches_have_cost_half_as_much(void **state)
{
    struct df_aside aside = {0};
    cpu_set_t all;
    uint32_t cpu = stand_on_the_first(&all), price;

    (void)state;
    assert_true(df_aside_step(&aside, cpu));
    price = aside.price;
    assert_int_not_equal(price, 0);
    cpu = stand_on_the_first(&all);
    assert_false(df_aside_step(&aside, cpu));
    df_aside_spend(&aside, price / 6);
    assert_false(df_aside_step(&aside, cpu));
    df_aside_pause(&aside);
    df_aside_spend(&aside, price / 6);
    assert_false(df_aside_step(&aside, cpu));
    df_aside_spend(&aside, price / 6);
    assert_true(df_aside_step(&aside, cpu));
}

static void it_goes_where_there_is_a_processor_and_it_is_not(void **state)
{
    cpu_set_t all;
    uint32_t cpu = stand_on_the_first(&all);

    (void)state;
    assert_false(df_aside_return(cpu, cpu));
    assert_false(df_aside_return(cpu, UINT32_MAX));
    if (!CPU_ISSET(CPU_SETSIZE - 1, &all))
        assert_false(df_aside_return(cpu, CPU_SETSIZE - 1));
}

static void it_never_gives_up_for_good(void **state)
{
    struct df_aside aside = {0};

    (void)state;
    waits_until_it_moves(&aside);
    for (int i = 0; i < 100; i++)
        df_aside_learn(&aside, false);
    assert_true(waits_until_it_moves(&aside) < 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_may_run_where_it_might_before),
        cmocka_unit_test(it_goes_elsewhere),
        cmocka_unit_test(it_stays_where_there_is_no_other),
        cmocka_unit_test(what_does_not_pay_is_done_less_and_less),
        cmocka_unit_test(it_never_gives_up_for_good),
        cmocka_unit_test(it_regrets_a_move_that_it_did_not_make),
        cmocka_unit_test(it_goes_to_its_client),
        cmocka_unit_test(it_moves_when_switches_have_cost_half_as_much),
        cmocka_unit_test(it_goes_where_there_is_a_processor_and_it_is_not),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
