/*
 * test_ahead.c - workers that are called before there is a question (channel/link.c): by whom, and
 * that none is lost however long the question takes to be written.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#include "channel/link.h"
#include "channel/spin.h"
#include "channel/sys.h"
#include "server/pool.h"
#include "server/segment.h"

#define SECOND   INT64_C(1000000000)
#define EXPECTED ((uint64_t)DF_SPIN_START << 6) /* ticks that a called worker waits */

struct rig {
    struct df_own_segment own;
    struct df_pool pool;
    struct df_link link;
};

static void serve(void *arg, struct df_slot *slot, struct df_area *area)
{
    (void)arg;
    (void)area;
    slot->message.result = 0;
}

static void begin_link(struct rig *rig, struct df_link *link, uint32_t client)
{
    assert_int_equal(df_link_init(link, rig->own.segment, rig->own.segment->size), 0);
    link->client = client;
}

static int set_up(void **state)
{
    struct rig *rig = calloc(1, sizeof(*rig));

    assert_int_equal(df_segment_create(&rig->own, 0, 0), 0);
    assert_int_equal(df_pool_start(&rig->pool, rig->own.segment, serve, NULL, rig), 0);
    begin_link(rig, &rig->link, 1);
    *state = rig;
    return 0;
}

static int tear_down(void **state)
{
    struct rig *rig = *state;

    df_pool_stop(&rig->pool);
    df_segment_end(&rig->own);
    df_segment_free(&rig->own);
    free(rig);
    return 0;
}

static void nap(int64_t nanoseconds)
{
    struct timespec time = {nanoseconds / SECOND, nanoseconds % SECOND};

    nanosleep(&time, NULL);
}

/* The two workers that every pool begins with. */
static void await_sleep(const struct rig *rig)
{
    while (__builtin_popcountll(atomic_load(&rig->own.segment->asleep[0])) < 2)
        nap(SECOND / 1000);
}

static bool was_heard(const struct rig *rig, struct df_called called)
{
    uint32_t heard = atomic_load(&rig->own.segment->doorbells[called.worker].heard);

    return (int32_t)(heard - called.ring) >= 0;
}

static struct df_called claim(struct df_link *link, struct df_slot **slot)
{
    struct df_called called;
    int error;

    *slot = df_link_claim(link, &called, &error);
    assert_non_null(*slot);
    return called;
}

static void ask(struct df_link *link, struct df_slot *slot, struct df_called called)
{
    slot->message.op = DF_MESSAGE_NOTHING;
    assert_int_equal(df_link_await(link, slot, SECOND, df_link_ask(link, slot, called)), 0);
    df_link_free(link, slot);
}

static void need_two_processors(const struct rig *rig)
{
    if (rig->own.segment->cpus < 2)
        skip();
}

/* ---- who calls ------------------------------------------------------------------------------- */

static void a_worker_that_sleeps_is_called_when_the_question_is_begun(void **state)
{
    struct rig *rig = *state;
    struct df_called called;
    struct df_slot *slot;

    need_two_processors(rig);
    await_sleep(rig);
    called = claim(&rig->link, &slot);
    assert_true(called.worker < 2);
    ask(&rig->link, slot, called);
}

static void who_was_called_and_sleeps_again_is_called_again(void **state)
{
    struct rig *rig = *state;
    struct df_called called;
    struct df_slot *slot;

    need_two_processors(rig);
    await_sleep(rig);
    called = claim(&rig->link, &slot);
    while (!was_heard(rig, called))
        nap(SECOND / 1000);
    await_sleep(rig);
    ask(&rig->link, slot, called);
    assert_true(atomic_load(&rig->own.segment->doorbells[called.worker].rings) > called.ring);
}

/* Where the test loses its processor, it is not soon any more. */
static void nobody_is_called_soon_after_an_answer(void **state)
{
    struct rig *rig = *state;
    struct df_called called = {.worker = 0};

    for (int i = 0; i < 1000 && called.worker != DF_WORKER_COUNT; i++) {
        struct df_slot *slot;

        await_sleep(rig);
        atomic_store(&rig->own.segment->alone_until, 0);
        atomic_store(&rig->link.answered, df_sys_ticks());
        called = claim(&rig->link, &slot);
        ask(&rig->link, slot, called);
    }
    assert_int_equal(called.worker, DF_WORKER_COUNT);
}

static void nobody_is_called_where_one_took_the_callers_processor(void **state)
{
    struct rig *rig = *state;
    struct df_slot *slot;

    await_sleep(rig);
    atomic_store(&rig->own.segment->alone_until, df_sys_ticks() + (UINT64_C(1) << 40));
    assert_int_equal(claim(&rig->link, &slot).worker, DF_WORKER_COUNT);
    ask(&rig->link, slot, DF_CALLED_NOBODY);
}

/* ---- none is lost ---------------------------------------------------------------------------- */

static void wait_ticks(uint64_t ticks)
{
    uint64_t begin = df_sys_ticks();

    while (df_sys_ticks() - begin < ticks)
        df_sys_relax();
}

#define ROUNDS 5000

/* Each time the question takes a little longer, from nothing to twice as long as it is expected:
 * all moments of a worker that wakes up, waits, and sleeps again. */
static void *ask_late(void *arg)
{
    struct df_link *link = arg;
    unsigned calls = 0;

    for (unsigned i = 0; i < ROUNDS; i++) {
        struct df_slot *slot;
        struct df_called called;

        wait_ticks(EXPECTED + i % 7 * EXPECTED);
        called = claim(link, &slot);
        calls += called.worker != DF_WORKER_COUNT;
        wait_ticks(EXPECTED * 2 * i / ROUNDS);
        ask(link, slot, called);
    }
    return (void *)(uintptr_t)calls;
}

static void no_question_is_lost_however_long_it_takes(void **state)
{
    struct rig *rig = *state;
    struct df_link links[2];
    pthread_t other;
    void *calls;

    need_two_processors(rig);
    for (uint32_t i = 0; i < 2; i++)
        begin_link(rig, &links[i], i + 1);
    assert_int_equal(pthread_create(&other, NULL, ask_late, &links[1]), 0);
    calls = ask_late(&links[0]);
    assert_true((uintptr_t)calls > 0);
    assert_int_equal(pthread_join(other, NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_worker_that_sleeps_is_called_when_the_question_is_begun,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(who_was_called_and_sleeps_again_is_called_again, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(nobody_is_called_soon_after_an_answer, set_up, tear_down),
        cmocka_unit_test_setup_teardown(nobody_is_called_where_one_took_the_callers_processor,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(no_question_is_lost_however_long_it_takes, set_up,
                                        tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
