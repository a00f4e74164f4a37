/*
 * test_room.c - memory of the segment in huge pages: where Linux maps it, and that what lies there
 * is the same for everybody, with and without them.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cmocka.h>

#include "channel/map.h"
#include "channel/room.h"
#include "segment/frames.h"
#include "segment/segment.h"

#define SIZE   (3 * DF_HUGE_SIZE)
#define FRAMES (2 * DF_HUGE_SIZE)

static int make_memory(void)
{
    int memory = memfd_create("test_room", MFD_CLOEXEC);

    assert_true(memory >= 0);
    assert_int_equal(ftruncate(memory, SIZE), 0);
    return memory;
}

static char *mapped(int memory)
{
    long at = df_segment_map(memory, SIZE, 0);

    assert_true(at > 0);
    return (char *)at;
}

/* Bytes of the mapping that begins at `at` which this process has mapped as huge pages. */
static size_t huge_bytes(const char *at)
{
    FILE *smaps = fopen("/proc/self/smaps", "r");
    char line[512];
    bool here = false;
    size_t from, kib;

    assert_non_null(smaps);
    while (fgets(line, sizeof(line), smaps)) {
        if (sscanf(line, "%zx-", &from) == 1 && strchr(line, '-') && line[0] != 'S')
            here = from == (size_t)at;
        if (here && sscanf(line, "ShmemPmdMapped: %zu", &kib) == 1)
            break;
        kib = 0;
    }
    fclose(smaps);
    return kib << 10;
}

static void it_is_mapped_as_aligned_as_the_file(void **state)
{
    int memory = make_memory();
    char *one = mapped(memory), *other = mapped(memory);

    (void)state;
    assert_int_equal((uintptr_t)one % DF_HUGE_SIZE, 0);
    assert_int_equal((uintptr_t)other % DF_HUGE_SIZE, 0);
    one[SIZE - 1] = 'x';
    assert_int_equal(other[SIZE - 1], 'x');
    munmap(one, SIZE);
    munmap(other, SIZE);
    close(memory);
}

static void it_is_mapped_below_what_is_there_or_elsewhere(void **state)
{
    int memory = make_memory();
    char *top = mapped(memory), *free, *taken;

    (void)state;
    free = (char *)df_segment_map(memory, SIZE, (uintptr_t)top - SIZE);
    assert_ptr_equal(free, top - 2 * SIZE);
    taken = (char *)df_segment_map(memory, SIZE, (uintptr_t)top + SIZE);
    assert_ptr_not_equal(taken, top);
    assert_int_equal((uintptr_t)taken % DF_HUGE_SIZE, 0);
    munmap(top, SIZE);
    munmap(free, SIZE);
    munmap(taken, SIZE);
    close(memory);
}

static void it_is_an_error_that_there_is_nothing_to_map(void **state)
{
    (void)state;
    assert_int_equal(df_segment_map(-1, SIZE, 0), -EBADF);
}

static void one_touch_maps_a_huge_page(void **state)
{
    int memory = make_memory();
    char *one = mapped(memory), *other = mapped(memory);

    (void)state;
    one[DF_HUGE_SIZE + 4096] = 'x';
    if (!df_room_make_huge(one + DF_HUGE_SIZE, DF_HUGE_SIZE)) {
        print_message("Linux has no huge page for this\n");
        skip();
    }
    assert_int_equal(other[DF_HUGE_SIZE + 4096], 'x');
    assert_int_equal(huge_bytes(one), DF_HUGE_SIZE);
    assert_int_equal(huge_bytes(other), DF_HUGE_SIZE);
    munmap(one, SIZE);
    munmap(other, SIZE);
    close(memory);
}

static void where_they_are_refused_the_memory_is_whole(void **state)
{
    int memory = make_memory();
    char *one = mapped(memory);

    (void)state;
    one[4096] = 'x';
    assert_int_equal(prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0), 0);
    assert_false(df_room_make_huge(one, DF_HUGE_SIZE));
    assert_int_equal(prctl(PR_SET_THP_DISABLE, 0, 0, 0, 0), 0);
    assert_int_equal(one[4096], 'x');
    assert_int_equal(one[0], 0);
    munmap(one, SIZE);
    close(memory);
}

/* ---- memory that is short ----------------------------------------------------------------------
 */

static bool none_left;

int __real_fallocate(int fd, int mode, off_t offset, off_t size);
int __wrap_fallocate(int fd, int mode, off_t offset, off_t size);

int __wrap_fallocate(int fd, int mode, off_t offset, off_t size)
{
    if (!none_left)
        return __real_fallocate(fd, mode, offset, size);
    errno = ENOSPC;
    return -1;
}

static bool is_mapped(const char *name)
{
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[512];
    bool found = false;

    assert_non_null(maps);
    while (fgets(line, sizeof(line), maps))
        found |= strstr(line, name) != NULL;
    fclose(maps);
    return found;
}

static void a_segment_without_memory_leaves_nothing(void **state)
{
    struct df_own_segment own;

    (void)state;
    none_left = true;
    assert_int_equal(df_segment_create(&own, DF_CACHE_ENTRIES_LEAST, FRAMES), -ENOSPC);
    none_left = false;
    assert_int_equal(own.memory, -1);
    assert_false(is_mapped("/memfd:directfuse "));
}

/* ---- frames: all of them used, whichever pages they have --------------------------------------
 */

static void fill_and_look(void)
{
    struct df_own_segment own;
    struct df_cacher *cacher = calloc(1, sizeof(*cacher));
    struct df_framer *framer = calloc(1, sizeof(*framer));
    struct stat st = {.st_size = 0};
    const unsigned pages = 3 * FRAMES / DF_FRAME_SIZE;
    unsigned found = 0;
    char bytes[DF_FRAME_SIZE];
    uint16_t content;

    assert_int_equal(df_segment_create(&own, DF_CACHE_ENTRIES_LEAST, FRAMES), 0);
    df_cacher_init(cacher, own.segment);
    df_cacher_mount(cacher, 0);
    df_framer_init(framer, own.segment, cacher);
    content = df_framer_open(framer, 0, 1, 1, false);
    df_framer_believe(framer, 0, content, &st, UINT64_MAX, false);
    for (unsigned i = 0; i < pages; i++) {
        struct df_frames_ticket ticket = df_framer_ask(framer, 0, content);

        memset(bytes, (char)i, sizeof(bytes));
        memcpy(bytes, &i, sizeof(i));
        df_framer_keep(framer, &ticket, i, bytes, sizeof(bytes), false);
    }
    for (unsigned i = 0; i < pages; i++) {
        struct df_frame_view view;

        memset(bytes, (char)i, sizeof(bytes));
        memcpy(bytes, &i, sizeof(i));
        if (df_frame_page(framer->frames, content, 0, i, &view)) {
            assert_memory_equal(view.bytes, bytes, sizeof(bytes));
            found++;
        }
    }
    assert_int_equal(found, FRAMES / DF_FRAME_SIZE);
    assert_int_equal(framer->bytes.made, DF_FRAMES_BRIEF + FRAMES / DF_FRAME_SIZE);
    df_framer_free(framer);
    df_segment_end(&own);
    df_segment_free(&own);
    free(framer);
    free(cacher);
}

static void every_frame_has_bytes_of_its_own(void **state)
{
    (void)state;
    fill_and_look();
}

static void every_frame_has_bytes_of_its_own_in_small_pages(void **state)
{
    (void)state;
    assert_int_equal(prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0), 0);
    fill_and_look();
    assert_int_equal(prctl(PR_SET_THP_DISABLE, 0, 0, 0, 0), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_mapped_as_aligned_as_the_file),
        cmocka_unit_test(it_is_mapped_below_what_is_there_or_elsewhere),
        cmocka_unit_test(it_is_an_error_that_there_is_nothing_to_map),
        cmocka_unit_test(one_touch_maps_a_huge_page),
        cmocka_unit_test(where_they_are_refused_the_memory_is_whole),
        cmocka_unit_test(a_segment_without_memory_leaves_nothing),
        cmocka_unit_test(every_frame_has_bytes_of_its_own),
        cmocka_unit_test(every_frame_has_bytes_of_its_own_in_small_pages),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
