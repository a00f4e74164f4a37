/*
 * test_distance.c - how far clients are away (workers/distance.h), and copies past the caches.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "channel/past.h"
#include "channel/sys.h"
#include "workers/distance.h"

#define NEAR 150 /* ticks */
#define FAR  600

static struct df_segment segment;

static bool is_far_after(struct df_distance *distance, uint32_t ticks, unsigned looks)
{
    for (unsigned i = 0; i < looks; i++)
        df_distance_learn(distance, &segment, ticks);
    return df_past_pays(&segment, DF_PAST_MIN);
}

static void what_is_measured_again_and_again_is_believed(void **state)
{
    struct df_distance distance = {0};

    (void)state;
    assert_false(df_past_pays(&segment, DF_PAST_MIN));
    assert_false(is_far_after(&distance, NEAR, 20));
    assert_false(is_far_after(&distance, FAR, 1));
    assert_true(is_far_after(&distance, FAR, 20));
    assert_false(df_past_pays(&segment, DF_PAST_MIN - 1));
    assert_true(is_far_after(&distance, NEAR, 1));
    assert_false(is_far_after(&distance, NEAR, 20));
}

/* One of the two did not run, or the other had not begun to look. */
static void what_cannot_be_a_distance_is_left_out(void **state)
{
    struct df_distance distance = {0};

    (void)state;
    assert_false(is_far_after(&distance, NEAR, 20));
    assert_false(is_far_after(&distance, 100000, 100));
    assert_false(is_far_after(&distance, (uint32_t)-50, 100));
}

static void one_look_of_many_measures(void **state)
{
    struct df_distance distance = {0};
    unsigned due = 0;

    (void)state;
    for (unsigned i = 0; i < 160; i++)
        due += df_distance_is_due(&distance);
    assert_int_equal(due, 10);
}

static void bytes_that_go_past_the_caches_are_the_same_bytes(void **state)
{
    char *from = malloc(400), *to = aligned_alloc(64, 512);

    (void)state;
    for (int i = 0; i < 400; i++)
        from[i] = (char)(i + 1);
    for (size_t size = 0; size < 390; size++)
        for (size_t skip = 0; skip < 9; skip++) {
            memset(to, 0, 512);
            df_sys_copy_past(to, from + skip, size);
            assert_memory_equal(to, from + skip, size);
            assert_int_equal(to[size], 0);
        }
    free(from);
    free(to);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_measured_again_and_again_is_believed),
        cmocka_unit_test(what_cannot_be_a_distance_is_left_out),
        cmocka_unit_test(one_look_of_many_measures),
        cmocka_unit_test(bytes_that_go_past_the_caches_are_the_same_bytes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
