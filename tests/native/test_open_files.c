/*
 * test_open_files.c - handles of open files: each is another one for as long as anybody may know
 * it, and each is a position that lseek(2) takes, which a placeholder has.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "channel/ofd.h"
#include "files_rig.h"

#define ROUNDS 100000

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

static void *use_the_first_place(void *rig)
{
    for (int i = 0; i < ROUNDS; i++)
        opened_and_closed(rig);
    return NULL;
}

/* Whoever thinks that it is not removes what its programs have mapped. */
static void a_file_is_open_whatever_is_opened_and_closed_before_it(void **state)
{
    struct rig *rig = *state;
    uint64_t handle = opened(rig);
    struct df_last_file last;
    pthread_t thread;

    rig->file.ino = 8;
    opened(rig);
    rig->file.ino = 9;
    assert_int_equal(df_files_drop(rig->files, rig->client, handle, &last), 0);
    assert_false(df_files_is_open(rig->files, MOUNT, 7));
    pthread_create(&thread, NULL, use_the_first_place, rig);
    for (int i = 0; i < ROUNDS; i++)
        assert_true(df_files_is_open(rig->files, MOUNT, 8));
    pthread_join(thread, NULL);
    assert_false(df_files_is_open(rig->files, MOUNT, 9));
    assert_false(df_files_is_open(rig->files, MOUNT + 1, 8));
}

/* Its last description is another than the one that was locked. */
static void a_file_that_was_locked_leaves_its_number_to_none(void **state)
{
    struct rig *rig = *state;
    uint64_t first = opened(rig), second = opened(rig);
    struct df_ofd *ofd = df_segment_ofd(rig->own.segment, first);
    uint32_t number = ofd->number;
    struct df_last_file last;

    ofd->marks |= DF_OFD_LOCKED;
    assert_int_equal(df_files_drop(rig->files, rig->client, first, &last), 0);
    assert_int_equal(last.locked, 0);
    assert_int_equal(df_segment_ofd(rig->own.segment, second)->number, number);
    assert_int_equal(df_files_drop(rig->files, rig->client, second, &last), 0);
    assert_int_equal(last.locked, number);
    ofd = df_segment_ofd(rig->own.segment, opened(rig));
    assert_int_not_equal(ofd->number, number);
    assert_int_equal(ofd->number % DF_OFD_COUNT, number % DF_OFD_COUNT);
}

static struct df_ofd *ofd_of(struct rig *rig, uint64_t handle)
{
    return df_segment_ofd(rig->own.segment, handle);
}

static uint64_t marks_of(struct rig *rig, uint64_t handle)
{
    return ofd_of(rig, handle)->marks - DF_OFD_UNMARKED(handle);
}

static void closed(struct rig *rig, uint64_t handle)
{
    struct df_last_file last;

    assert_int_equal(df_files_drop(rig->files, rig->client, handle, &last), 0);
}

/* All descriptions of a file that is mapped are marked, whichever of them are closed meanwhile. */
static void a_file_that_is_opened_again_has_the_marks_of_its_others(void **state)
{
    struct rig *rig = *state;
    uint64_t first = opened(rig), second = opened(rig), third, fourth;

    ofd_of(rig, first)->marks |= DF_OFD_MAPPED | DF_OFD_STORED | DF_OFD_LOCKED;
    ofd_of(rig, second)->marks |= DF_OFD_MAPPED | DF_OFD_CHUNKED;
    third = opened(rig);
    assert_int_equal(marks_of(rig, third), DF_OFD_MAPPED | DF_OFD_CHUNKED);
    closed(rig, third);
    closed(rig, second);
    fourth = opened(rig);
    assert_int_equal(marks_of(rig, fourth), DF_OFD_MAPPED); /* of what is its own none */
    closed(rig, first);
    assert_int_equal(marks_of(rig, opened(rig)), DF_OFD_MAPPED);
}

static void another_file_has_no_marks(void **state)
{
    struct rig *rig = *state;
    uint64_t first = opened(rig);

    ofd_of(rig, first)->marks |= DF_OFD_MAPPED;
    rig->file.ino++;
    assert_int_equal(marks_of(rig, opened(rig)), 0);
    rig->file.ino--;
    closed(rig, first);
    assert_int_equal(marks_of(rig, opened(rig)), 0); /* the same, but nobody had it open */
}

/* Who maps a file found a description of it that was closed before he marked it. */
static void a_place_that_is_another_files_is_not_marked(void **state)
{
    struct rig *rig = *state;
    uint64_t first = opened(rig), second;
    struct df_ofd *place = ofd_of(rig, first);

    closed(rig, first);
    rig->file.ino++;
    second = opened(rig);
    assert_ptr_equal(ofd_of(rig, second), place);
    assert_int_equal(df_ofd_mark(place, first, DF_OFD_MAPPED, 0), DF_OFD_MAPPED);
    assert_int_equal(marks_of(rig, second), 0);
    assert_int_equal(df_ofd_mark(place, second, DF_OFD_MAPPED, 0), DF_OFD_UNMARKED(second));
    assert_int_equal(df_ofd_mark(place, first, 0, DF_OFD_MAPPED), 0);
    assert_int_equal(marks_of(rig, second), DF_OFD_MAPPED);
}

#define OPENERS 3

struct marking {
    struct rig *rig;
    uint64_t handles[OPENERS][200];
    _Atomic int number;
};

static void *open_many(void *argument)
{
    struct marking *marking = argument;
    int number = atomic_fetch_add(&marking->number, 1);

    for (size_t i = 0; i < 200; i++)
        marking->handles[number][i] = opened(marking->rig);
    return NULL;
}

/* As a program does that maps the file: native/shadows/shadow_map.c. */
static void mark_all(struct rig *rig, struct df_ofd *own)
{
    struct df_ofd *all = df_segment_ofds(rig->own.segment);
    bool more = true;

    __atomic_fetch_or(&own->marks, DF_OFD_MAPPED, __ATOMIC_SEQ_CST);
    while (more) {
        more = false;
        for (uint32_t i = 1; i < atomic_load(&rig->own.segment->files_used); i++) {
            uint64_t handle = atomic_load(&all[i].handle);

            if (handle != 0 && all[i].ino == own->ino)
                more |= !(df_ofd_mark(&all[i], handle, DF_OFD_MAPPED, 0) & DF_OFD_MAPPED);
        }
    }
}

static void files_that_are_opened_while_others_are_marked_are_marked(void **state)
{
    struct rig *rig = *state;
    struct marking *marking = calloc(1, sizeof(*marking));
    struct df_ofd *own = ofd_of(rig, opened(rig));
    pthread_t threads[OPENERS];

    marking->rig = rig;
    for (int i = 0; i < OPENERS; i++)
        pthread_create(&threads[i], NULL, open_many, marking);
    mark_all(rig, own);
    for (int i = 0; i < OPENERS; i++)
        pthread_join(threads[i], NULL);
    for (size_t i = 0; i < (size_t)OPENERS * 200; i++)
        assert_int_equal(marks_of(rig, marking->handles[i / 200][i % 200]), DF_OFD_MAPPED);
    free(marking);
}

static void the_name_of_a_placeholder_that_was_locked_is_removed(void **state)
{
    struct rig *rig = *state;
    char shadow[] = "/tmp/df-placed-XXXXXX", name[64];
    uint64_t handle = opened(rig);
    struct df_last_file last;
    int fd;

    assert_non_null(mkdtemp(shadow));
    assert_return_code(fd = df_files_place(rig->files, shadow, rig->client, handle), 0);
    close(fd);
    assert_int_equal(df_files_drop(rig->files, rig->client, handle, &last), 0);
    df_files_unplace(shadow, last.locked);
    snprintf(name, sizeof(name), "%s/f", shadow);
    assert_return_code(rmdir(name), errno); /* it is empty */
    assert_return_code(rmdir(shadow), errno);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_file_is_open_whatever_is_opened_and_closed_before_it,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_file_that_was_locked_leaves_its_number_to_none, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_place_is_used_again_under_another_handle, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(handles_stay_positions_when_their_generations_begin_anew,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_file_that_is_opened_again_has_the_marks_of_its_others,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(another_file_has_no_marks, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_place_that_is_another_files_is_not_marked, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(files_that_are_opened_while_others_are_marked_are_marked,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_name_of_a_placeholder_that_was_locked_is_removed,
                                        set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
