/*
 * test_timeless.c - pages of a mount whose plugin allows no time (segment/frames.h): found by who
 * has asked, and seldom kept where nobody finds them.
 */
#include "frames_rig.h"

/* The file has that size and modification time, and no time. */
static void believe(struct rig *rig, uint16_t content, off_t size, time_t changed)
{
    struct stat st = {.st_size = size, .st_mtim.tv_sec = changed};

    df_framer_believe(&rig->framer, 0, content, &st, 0, false);
}

static bool is_there(struct rig *rig, uint16_t content, uint64_t confirmed, uint64_t page)
{
    struct df_frame_view view;

    return df_frame_page(rig->framer.frames, content, confirmed, page, &view);
}

static void what_the_plugin_gives_no_time_is_found_by_who_has_asked(void **state)
{
    struct rig *rig = *state;
    uint16_t c = df_framer_open(&rig->framer, 0, MOUNT, 1, true);
    struct df_frames_changing write = {.kind = DF_FRAMES_RANGE,
                                       .mount = MOUNT,
                                       .content = c,
                                       .body = 1,
                                       .offset = PAGE,
                                       .size = 1};
    char bytes[2 * PAGE] = "";
    struct df_frames_ticket ticket;
    uint64_t id;

    believe(rig, c, 2 * PAGE, 1);
    assert_true(df_framer_timeless(&rig->framer, 0));
    ticket = df_framer_ask(&rig->framer, 0, c);
    id = ticket.id;
    df_framer_keep(&rig->framer, &ticket, 0, bytes, sizeof(bytes), true);
    assert_false(is_there(rig, c, 0, 0));
    assert_true(is_there(rig, c, id, 0));
    assert_false(is_there(rig, c, id + 1, 0));
    assert_true(df_framer_confirms(&rig->framer, 0, c, id));
    df_framer_begin(&rig->framer, &write);
    assert_false(df_framer_confirms(&rig->framer, 0, c, id)); /* while it is being written */
    df_framer_end(&rig->framer, &write);
    assert_true(df_framer_confirms(&rig->framer, 0, c, id));
    assert_false(is_there(rig, c, id, 1));
    believe(rig, c, 2 * PAGE, 2);
    assert_false(df_framer_confirms(&rig->framer, 0, c, id));
    assert_false(is_there(rig, c, id, 0));
}

/* How many of `count` pieces are to be kept. */
static unsigned kept_pieces(struct rig *rig, const struct df_frames_ticket *ticket, unsigned count)
{
    const size_t size = 128 << 10;
    unsigned kept = 0;

    for (unsigned i = 0; i < count; i++)
        kept += df_framer_again(&rig->framer, ticket, (off_t)(i * size), size);
    return kept;
}

static void more_than_there_is_room_for_is_seldom_kept_where_none_of_it_is_found(void **state)
{
    struct rig *rig = *state;
    uint16_t c = df_framer_open(&rig->framer, 0, MOUNT, 1, true);
    const unsigned room = 8, count = room * DF_FRAMES_RARELY; /* pieces */
    struct df_frames_ticket ticket;

    assert_int_equal(rig->framer.frames->sets * DF_FRAME_WAYS * PAGE, room * (128 << 10));
    believe(rig, c, (off_t)count << 20, 1);
    ticket = df_framer_ask(&rig->framer, 0, c);
    assert_int_equal(kept_pieces(rig, &ticket, count), 0); /* the first time */
    assert_in_range(kept_pieces(rig, &ticket, count), room, room + count / DF_FRAMES_RARELY);
    assert_in_range(kept_pieces(rig, &ticket, count), 1, count / DF_FRAMES_RARELY);
    assert_true(df_framer_confirms(&rig->framer, 0, c, ticket.id));
    assert_int_equal(kept_pieces(rig, &ticket, room), room);
}

static void who_asks_behind_the_end_of_a_small_file_does_not_read_it_again(void **state)
{
    struct rig *rig = *state;
    uint16_t c = df_framer_open(&rig->framer, 0, MOUNT, 1, true);
    const size_t size = 128 << 10;
    const off_t end = 5000;
    struct df_frames_ticket ticket;

    believe(rig, c, end, 1);
    ticket = df_framer_ask(&rig->framer, 0, c);
    assert_false(df_framer_again(&rig->framer, &ticket, 0, size));
    assert_false(df_framer_again(&rig->framer, &ticket, end, size));
    assert_true(df_framer_again(&rig->framer, &ticket, 0, size));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_the_plugin_gives_no_time_is_found_by_who_has_asked),
        TEST(more_than_there_is_room_for_is_seldom_kept_where_none_of_it_is_found),
        TEST(who_asks_behind_the_end_of_a_small_file_does_not_read_it_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
