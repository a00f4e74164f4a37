/*
 * test_open_files.c - handles of open files: each is another one for as long as anybody may know
 * it, and each is a position that lseek(2) takes, which a placeholder has.
 */
#include <sys/mman.h>
#include <unistd.h>

#include "files_rig.h"

static uint64_t opened(struct rig *rig)
{
    _Atomic uint64_t announced;
    uint64_t handle = df_files_add(rig->files, rig->client, &rig->file, MOUNT, 0, &announced);

    assert_int_not_equal(handle, 0);
    assert_int_equal(atomic_load(&announced), handle);
    return handle;
}

static uint64_t opened_and_closed(struct rig *rig)
{
    struct df_last_file last;
    uint64_t handle = opened(rig);

    assert_non_null(df_segment_ofd(rig->own.segment, handle));
    assert_int_equal(df_files_drop(rig->files, rig->client, handle, &last), 0);
    assert_null(df_segment_ofd(rig->own.segment, handle));
    return handle;
}

static void a_place_is_used_again_under_another_handle(void **state)
{
    struct rig *rig = *state;
    uint64_t first = opened_and_closed(rig), second = opened(rig);

    assert_int_equal(df_handle_index(second), df_handle_index(first));
    assert_int_not_equal(second, first);
}

/* A server of some weeks. */
static void handles_stay_positions_when_their_generations_begin_anew(void **state)
{
    struct rig *rig = *state;
    uint32_t index = df_handle_index(opened_and_closed(rig));
    uint64_t last = 0;
    int shadow = memfd_create("shadow", MFD_CLOEXEC); /* on tmpfs, as they are */

    rig->files->open[index].generation = INT32_MAX - 2;
    for (int i = 0; i < 4; i++) {
        uint64_t handle = opened_and_closed(rig);

        assert_int_equal(df_handle_index(handle), index);
        assert_int_not_equal(handle, last);
        assert_int_not_equal(handle >> 32, 0);
        assert_int_equal(lseek(shadow, (off_t)handle, SEEK_SET), handle);
        last = handle;
    }
    close(shadow);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_place_is_used_again_under_another_handle, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(handles_stay_positions_when_their_generations_begin_anew,
                                        set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
