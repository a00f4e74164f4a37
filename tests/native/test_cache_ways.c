/*
 * test_cache_ways.c - the cache in the segment: where answers lie, how many there is room for, and
 * which give way.
 */
#include <pthread.h>
#include <stdio.h>

#include "cache_rig.h"
#include "core/clock.h"

/* ---- where they lie ---------------------------------------------------------------------------
 */

#define FEW 300

static void keep_few(struct rig *rig, char kind)
{
    char name[32];

    for (int i = 0; i < FEW; i++) {
        snprintf(name, sizeof(name), "/%c-%d", kind, i);
        keep(rig, name, 0, (ino_t)i + 1, UINT64_MAX);
    }
}

/* Answers that are known, each with the attributes of its own file. */
static unsigned count_few(struct rig *rig, char kind)
{
    unsigned found = 0;

    for (int i = 0; i < FEW; i++) {
        struct stat st;
        char name[32];
        int result;

        snprintf(name, sizeof(name), "/%c-%d", kind, i);
        found += ask(rig, name, 0, &result, &st) && result == 0 && st.st_ino == (ino_t)i + 1;
    }
    return found;
}

/* Entries that stand for some answer, of the first `count` and of all. */
static unsigned count_entries(struct rig *rig, unsigned count)
{
    unsigned found = 0;

    for (unsigned i = 1; i <= count; i++)
        found += rig->cacher.cache->entries[i].hash[0] != 0;
    return found;
}

static void few_answers_lie_together(void **state)
{
    struct rig *rig = *state;

    keep_few(rig, 'a');
    assert_int_equal(count_few(rig, 'a'), FEW);
    assert_int_equal(count_entries(rig, FEW), FEW);
    keep_few(rig, 'a'); /* each in its own place */
    assert_int_equal(rig->cacher.ways.entries.used, FEW);
}

static void a_server_that_begins_again_goes_on_behind_them(void **state)
{
    struct rig *rig = *state;

    keep_few(rig, 'a');
    df_cacher_free(&rig->cacher);
    df_cacher_init(&rig->cacher, rig->own.segment);
    df_cacher_mount(&rig->cacher, 0);
    assert_int_equal(count_few(rig, 'a'), 0);
    keep_few(rig, 'a');
    keep_few(rig, 'b');
    assert_int_equal(count_few(rig, 'a'), FEW);
    assert_int_equal(count_few(rig, 'b'), FEW);
    assert_int_equal(count_entries(rig, 2 * FEW), 2 * FEW);
    assert_int_equal(rig->cacher.ways.entries.used, 2 * FEW);
}

/* A client may write to the table; nothing outside of it is looked at, by it or by the server. */
static void what_is_scribbled_there_is_not_believed(void **state)
{
    struct rig *rig = *state;

    keep_few(rig, 'a');
    for (uint32_t i = 0; i < DF_CACHE_SETS; i++)
        for (unsigned w = 0; w < DF_CACHE_WAYS; w++)
            df_cache_set_of(rig->cacher.cache, DF_CACHE_SETS - 1, i)->ways[w] |= UINT32_MAX;
    assert_int_equal(count_few(rig, 'a'), 0);
    keep_few(rig, 'b');
    df_cacher_free(&rig->cacher);
    rig->cacher.cache->last_set = UINT64_C(1) << 40;
    df_cacher_init(&rig->cacher, rig->own.segment);
    df_cacher_mount(&rig->cacher, 0);
    keep_few(rig, 'b');
}

static void where_there_is_no_memory_answers_give_way(void **state)
{
    struct rig *rig = *state;

    keep_few(rig, 'a');
    rig->cacher.ways.entries.made = rig->cacher.ways.entries.used;
    rig->cacher.ways.entries.failed =
        df_clock_coarse() + INT64_C(3600000000000); /* no attempt meanwhile */
    keep_few(rig, 'b');
    assert_int_equal(rig->cacher.ways.entries.used, FEW);
    assert_in_range(count_few(rig, 'b'), 1, FEW);
}

/* ---- many names -------------------------------------------------------------------------------
 */

#define MANY 200000

static int set_up_for_many(void **state)
{
    return set_up_with(state, UINT64_C(1) << 18);
}

static void keep_many(struct rig *rig, int first, int step)
{
    char name[32];

    for (int i = first; i < MANY; i += step) {
        snprintf(name, sizeof(name), "/m-%d", i);
        keep(rig, name, 0, (ino_t)i + 1, UINT64_MAX);
    }
}

static int count_many(struct rig *rig)
{
    char name[32];
    int found = 0;

    for (int i = 0; i < MANY; i++) {
        struct stat st;
        int result;

        snprintf(name, sizeof(name), "/m-%d", i);
        found += ask(rig, name, 0, &result, &st) && result == 0 && st.st_ino == (ino_t)i + 1;
    }
    return found;
}

static void it_is_bounded_and_replaces(void **state)
{
    struct rig *rig = *state;
    unsigned found = 0;
    char name[32];

    for (int i = 0; i < 100000; i++) {
        snprintf(name, sizeof(name), "/file-%d", i);
        keep(rig, name, 0, (ino_t)i, UINT64_MAX);
        assert_true(known(rig, name)); /* the newest */
    }
    for (int i = 0; i < 100000; i++) {
        snprintf(name, sizeof(name), "/file-%d", i);
        found += known(rig, name);
    }
    assert_in_range(found, DF_CACHE_ENTRIES_LEAST * 9 / 10, DF_CACHE_ENTRIES_LEAST - 1);
}

/* Some may have given way before the table was larger. */
static void as_many_are_kept_as_there_is_room_for(void **state)
{
    struct rig *rig = *state;

    keep_many(rig, 0, 1);
    assert_in_range(count_many(rig), MANY - MANY / 200, MANY);
    assert_true(rig->cacher.ways.entries.used <= MANY);
}

static void a_server_that_begins_again_has_the_large_table(void **state)
{
    struct rig *rig = *state;
    uint64_t last_set;
    uint32_t used;

    keep_many(rig, 0, 1);
    last_set = rig->cacher.ways.last_set;
    used = rig->cacher.ways.entries.used;
    df_cacher_free(&rig->cacher);
    df_cacher_init(&rig->cacher, rig->own.segment);
    df_cacher_mount(&rig->cacher, 0);
    assert_int_equal(rig->cacher.ways.last_set, last_set);
    assert_int_equal(rig->cacher.ways.entries.used, used);
    keep_many(rig, 0, 1);
    assert_in_range(count_many(rig), MANY - MANY / 200, MANY);
}

static void what_nobody_believes_gives_way_first(void **state)
{
    struct rig *rig = *state;

    for (int round = 0; round < 100; round++) {
        keep_few(rig, (char)('A' + round % 50)); /* FEW names that are new, or long forgotten */
        change(rig, DF_CACHE_NAMES, 0);
    }
    keep_few(rig, 'z');
    assert_int_equal(count_few(rig, 'z'), FEW);
    assert_int_equal(rig->cacher.ways.last_set, DF_CACHE_SETS - 1);
}

struct growing {
    struct rig *rig;
    int first;
};

static void *keep_some(void *argument)
{
    struct growing *growing = argument;

    keep_many(growing->rig, growing->first, 2);
    return NULL;
}

/* What two have put in while the table grew under both, and what a third finds meanwhile. */
static void it_grows_under_who_uses_it(void **state)
{
    struct growing growing[] = {{*state, 0}, {*state, 1}};
    struct rig *rig = *state;
    pthread_t threads[2];

    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, keep_some, &growing[i]);
    for (int i = 0; i < 5; i++)
        count_many(rig);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    assert_in_range(count_many(rig), MANY - MANY / 100, MANY);
}

struct keeping {
    struct rig *rig;
    char kind;
};

static void *keep_often(void *argument)
{
    struct keeping *keeping = argument;

    for (int i = 0; i < 20; i++)
        keep_few(keeping->rig, keeping->kind);
    return NULL;
}

static void two_that_keep_at_once_share_no_entry(void **state)
{
    struct keeping keeping[] = {{*state, 'a'}, {*state, 'b'}};
    struct rig *rig = *state;
    pthread_t threads[2];

    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, keep_often, &keeping[i]);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(count_few(rig, 'a'), FEW);
    assert_int_equal(count_few(rig, 'b'), FEW);
    assert_int_equal(count_entries(rig, 2 * FEW), 2 * FEW);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        TEST(it_is_bounded_and_replaces),
        TEST(few_answers_lie_together),
        TEST(a_server_that_begins_again_goes_on_behind_them),
        TEST(what_is_scribbled_there_is_not_believed),
        TEST(where_there_is_no_memory_answers_give_way),
        TEST(two_that_keep_at_once_share_no_entry),
        TEST(what_nobody_believes_gives_way_first),
#define LARGE(name) cmocka_unit_test_setup_teardown(name, set_up_for_many, tear_down)
        LARGE(as_many_are_kept_as_there_is_room_for),
        LARGE(a_server_that_begins_again_has_the_large_table),
        LARGE(it_grows_under_who_uses_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
