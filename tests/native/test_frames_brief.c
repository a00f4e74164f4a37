/*
 * test_frames_brief.c - what is kept for a moment: when it gives way, and what stays.
 */
#include "frames_pages.h"

#define RING DF_FRAMES_BRIEF

/* So many frames that none of the few that are used gives way to another. */
static int set_up_wide(void **state)
{
    return set_up_for(state, 16 * FRAMES);
}

static void keep_briefly(struct rig *rig, uint32_t content, char byte, size_t size)
{
    struct df_frames_ticket ticket = ask(rig, content);
    char bytes[4 * PAGE];

    memset(bytes, byte, sizeof(bytes));
    df_framer_keep_briefly(&rig->framer, &ticket, bytes, size, true);
}

/* Of bodies from `first` on, a page and an end each. */
static void keep_many_briefly(struct rig *rig, uint64_t first, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        keep_briefly(rig, open_body(rig, first + i, true), (char)('a' + i % 26), PAGE + 100);
}

static void what_is_kept_briefly_gives_way_when_the_ring_comes_round(void **state)
{
    struct rig *rig = *state;
    uint32_t brief = open_body(rig, 1, true), own = open_body(rig, 2, true);

    keep(rig, own, 0, 'o', PAGE, false);
    keep_briefly(rig, brief, 'b', PAGE + 5);
    keep_many_briefly(rig, 10, RING / 2 - 1);
    assert_int_equal(known(rig, brief, 0, 'b'), PAGE);
    assert_int_equal(known(rig, brief, 1, 'b'), 5);
    keep_many_briefly(rig, 10 + RING / 2, 2);
    assert_int_equal(known(rig, brief, 0, 'b'), UNKNOWN);
    assert_int_equal(known(rig, brief, 1, 'b'), UNKNOWN);
    assert_int_equal(known(rig, own, 0, 'o'), PAGE);
    assert_int_equal(rig->framer.bytes.used, RING + 1);
}

static void what_is_kept_again_gets_bytes_of_its_own(void **state)
{
    struct rig *rig = *state;
    uint32_t c = open_body(rig, 1, true);

    keep_briefly(rig, c, 'a', PAGE);
    keep(rig, c, 0, 'b', PAGE, false);
    keep_many_briefly(rig, 10, RING);
    assert_int_equal(known(rig, c, 0, 'b'), PAGE);
    keep_briefly(rig, c, 'c', PAGE); /* they stay its own */
    keep_many_briefly(rig, 10 + RING, RING);
    assert_int_equal(known(rig, c, 0, 'c'), PAGE);
    assert_int_equal(rig->framer.bytes.used, RING + 1);
}

static void a_server_that_is_started_again_goes_on_with_the_ring(void **state)
{
    struct rig *rig = *state;
    uint32_t c;

    keep_many_briefly(rig, 1, RING / 4);
    keep(rig, open_body(rig, 1, true), 0, 'o', PAGE, false);
    df_framer_free(&rig->framer);
    memset(&rig->framer, 0, sizeof(rig->framer));
    atomic_store(&rig->own.segment->starts, 2);
    df_framer_init(&rig->framer, rig->own.segment, &rig->cacher);
    c = open_body(rig, 1, true);
    keep(rig, c, 0, 'a', PAGE, false);
    keep_many_briefly(rig, 10, 2 * RING);
    assert_int_equal(known(rig, c, 0, 'a'), PAGE);
    for (unsigned i = 2 * RING - RING / 4; i < 2 * RING; i++)
        assert_int_equal(known(rig, open_body(rig, 10 + i, true), 0, (char)('a' + i % 26)), PAGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define WIDE(name) cmocka_unit_test_setup_teardown(name, set_up_wide, tear_down)
        WIDE(what_is_kept_briefly_gives_way_when_the_ring_comes_round),
        WIDE(what_is_kept_again_gets_bytes_of_its_own),
        WIDE(a_server_that_is_started_again_goes_on_with_the_ring),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
