/*
 * test_open_files.c - handles of open files: each is another one for as long as anybody may know
 * it, and each is a position that lseek(2) takes, which a placeholder has.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/file.h"
#include "server/files.h"
#include "server/segment.h"

#define MOUNT 1

struct rig {
    struct df_own_segment own;
    struct df_ledger *ledger;
    struct df_files files;
    struct df_file file;
    uint32_t client;
};

static int set_up(void **state)
{
    struct rig *rig = calloc(1, sizeof(*rig));

    assert_int_equal(df_segment_create(&rig->own, 0, 0), 0);
    rig->ledger = mmap(NULL, sizeof(*rig->ledger), PROT_READ | PROT_WRITE,
                       MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    assert_true(rig->ledger != MAP_FAILED);
    assert_int_equal(df_files_init(&rig->files, rig->own.segment, rig->ledger, false), 0);
    rig->client = df_files_client_new(&rig->files);
    assert_true(df_files_client_born(&rig->files, rig->client));
    *state = rig;
    return 0;
}

static int tear_down(void **state)
{
    struct rig *rig = *state;

    df_files_free(&rig->files);
    munmap(rig->ledger, sizeof(*rig->ledger));
    df_segment_end(&rig->own);
    df_segment_free(&rig->own);
    free(rig);
    return 0;
}

static uint64_t opened(struct rig *rig)
{
    _Atomic uint64_t announced;
    uint64_t handle = df_files_add(&rig->files, rig->client, &rig->file, MOUNT, 0, &announced);

    assert_int_not_equal(handle, 0);
    assert_int_equal(atomic_load(&announced), handle);
    return handle;
}

static uint64_t opened_and_closed(struct rig *rig)
{
    struct df_last_file last;
    uint64_t handle = opened(rig);

    assert_non_null(df_segment_ofd(rig->own.segment, handle));
    assert_int_equal(df_files_drop(&rig->files, rig->client, handle, &last), 0);
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

    rig->files.open[index].generation = INT32_MAX - 2;
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
