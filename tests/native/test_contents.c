/*
 * test_contents.c - of which files and directories something is known: how many, and which give
 * way.
 */
#include "frames_pages.h"

static void numbers_of_closed_files_are_used_again(void **state)
{
    struct rig *rig = *state;
    uint32_t first = open_body(rig, 1, true);

    keep(rig, first, 0, 'a', PAGE, false);
    for (uint64_t body = 2; body < 3 * DF_CONTENT_LEAST; body++) {
        uint32_t c = open_body(rig, body, true);

        assert_int_not_equal(c, 0);
        df_framer_close(&rig->framer, c);
    }
    assert_int_equal(known(rig, first, 0, 'a'), PAGE); /* it is open */
    for (uint64_t body = 2; body <= DF_CONTENT_LEAST - 1; body++)
        assert_int_not_equal(open_body(rig, body, true), 0);
    assert_int_equal(open_body(rig, DF_CONTENT_LEAST, true), 0); /* all are open */
    write_to(rig, 0, DF_CONTENT_LEAST, 0, 1);
    assert_int_equal(known(rig, first, 0, 'a'), PAGE);
}

/* As files that are read once by way of it. */
static void a_directory_that_is_opened_again_outlives_files_that_are_not(void **state)
{
    struct rig *rig = *state;
    uint32_t directory = df_framer_open_unlisted(&rig->framer, 0, MOUNT, 1);
    uint64_t id = df_content_number(rig->framer.frames, directory)->id;

    df_framer_close(&rig->framer, directory);
    for (uint64_t body = 2; body < 3 * DF_CONTENT_LEAST; body++) {
        df_framer_close(&rig->framer, open_body(rig, body, true));
        if (body % 1000 == 0)
            df_framer_close(&rig->framer, df_framer_open_unlisted(&rig->framer, 0, MOUNT, 1));
    }
    assert_int_equal(df_framer_open_unlisted(&rig->framer, 0, MOUNT, 1), directory);
    assert_int_equal(df_content_number(rig->framer.frames, directory)->id, id);
}

#define MANY 65536 /* pages, and files that have one */

static int set_up_for_many(void **state)
{
    return set_up_for(state, (size_t)MANY * PAGE);
}

static void as_many_files_are_known_as_there_are_pages(void **state)
{
    struct rig *rig = *state;

    for (uint64_t body = 1; body < MANY; body++) {
        uint32_t c = open_body(rig, body, true);

        keep(rig, c, 0, (char)('a' + body % 20), 1, true);
        df_framer_close(&rig->framer, c);
    }
    for (uint64_t body = 1; body < MANY; body += 1000) {
        uint32_t c = open_body(rig, body, true);

        assert_int_equal(c, body); /* it has kept its number: nothing has taken it */
        df_framer_close(&rig->framer, c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        TEST(numbers_of_closed_files_are_used_again),
        TEST(a_directory_that_is_opened_again_outlives_files_that_are_not),
        cmocka_unit_test_setup_teardown(as_many_files_are_known_as_there_are_pages, set_up_for_many,
                                        tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
