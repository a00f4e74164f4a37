/*
 * test_stretches.c - how many huge pages are made at a time (segment/stretches.h).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "segment/stretches.h"

#define PLENTY 1000

static uint32_t next(int64_t each, uint64_t there, uint64_t room)
{
    return df_stretches_next(&(struct df_stretches){.each = each}, there, room);
}

static void as_many_again_as_there_are(void **state)
{
    (void)state;
    assert_int_equal(next(0, 0, PLENTY), 1);
    assert_int_equal(next(0, 1, PLENTY), 1);
    assert_int_equal(next(0, 3, PLENTY), 3);
    assert_int_equal(next(0, 100, PLENTY), 4);
}

static void no_more_than_have_room(void **state)
{
    (void)state;
    assert_int_equal(next(0, 100, 2), 2);
    assert_int_equal(next(0, 0, 0), 0);
    assert_int_equal(next(5000000, 100, 0), 0);
}

static void where_they_take_long_one_at_a_time(void **state)
{
    (void)state;
    assert_int_equal(next(100000, 100, PLENTY), 4);
    assert_int_equal(next(400000, 100, PLENTY), 2);
    assert_int_equal(next(5000000, 100, PLENTY), 1);
}

static void what_one_took_is_learnt(void **state)
{
    struct df_stretches stretches = {0};
    int64_t begun = df_stretches_begin();

    (void)state;
    while (df_stretches_begin() < begun + 3000000)
        ;
    df_stretches_took(&stretches, begun, 2);
    assert_true(stretches.each >= 1500000);
    assert_int_equal(df_stretches_next(&stretches, 100, PLENTY), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_many_again_as_there_are),
        cmocka_unit_test(no_more_than_have_room),
        cmocka_unit_test(where_they_take_long_one_at_a_time),
        cmocka_unit_test(what_one_took_is_learnt),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
