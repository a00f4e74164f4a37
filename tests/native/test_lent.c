/*
 * test_lent.c - memory that file systems have from the segment: who gets which, that frames show it
 * where it lies, and that nobody ever reads there what has become another's.
 */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "channel/map.h"
#include "channel/sys.h"
#include "frames_pages.h"

static char *take(struct rig *rig, size_t size)
{
    return rig->framer.lent.lender.take(&rig->framer.lent.lender, size);
}

static void give(struct rig *rig, char *memory)
{
    rig->framer.lent.lender.give(&rig->framer.lent.lender, memory);
}

static char *take_full_of(struct rig *rig, char byte, size_t size)
{
    char *memory = take(rig, size);

    assert_non_null(memory);
    memset(memory, byte, size);
    return memory;
}

static bool keep_lent(struct rig *rig, uint32_t content, uint64_t page, const char *bytes,
                      size_t size, bool end)
{
    struct df_frames_ticket ticket = ask(rig, content);

    return df_framer_keep_lent(&rig->framer, &ticket, page, bytes, size, end,
                               df_lent_now(&rig->framer.lent));
}

/* ---- memory ---------------------------------------------------------------------------------- */

static void blocks_are_whole_pages_and_apart(void **state)
{
    static const size_t sizes[] = {1, 4096, 4097, 20000, 65536, 1 << 20, (1 << 20) + 1, 2 << 20};
    enum { COUNT = sizeof(sizes) / sizeof(sizes[0]), ROUNDS = 40 };
    struct rig *rig = *state;
    char *memory[ROUNDS * COUNT];

    for (unsigned i = 0; i < ROUNDS * COUNT; i++) {
        size_t size = sizes[i % COUNT];

        memory[i] = take_full_of(rig, (char)i, size);
        assert_int_equal((uintptr_t)memory[i] % PAGE, 0);
        assert_in_range(memory[i] - rig->framer.lent.lender.begin, 0,
                        rig->framer.lent.lender.size - size);
    }
    for (unsigned i = 0; i < ROUNDS * COUNT; i++) {
        for (size_t at = 0; at < sizes[i % COUNT]; at++)
            if (memory[i][at] != (char)i)
                fail_msg("block %u has bytes of another at %zu", i, at);
        give(rig, memory[i]);
    }
}

static void what_is_given_back_becomes_one_again(void **state)
{
    enum { PAGES = DF_HUGE_SIZE / DF_FRAME_SIZE };
    struct rig *rig = *state;
    char *pages[PAGES], *first = take(rig, DF_HUGE_SIZE);

    give(rig, first);
    for (unsigned i = 0; i < PAGES; i++)
        pages[i] = take(rig, PAGE);
    for (unsigned i = 0; i < PAGES; i++)
        give(rig, pages[(i * 5 + 3) % PAGES]);
    assert_ptr_equal(take(rig, DF_HUGE_SIZE), first);
}

static void there_is_no_more_than_there_is(void **state)
{
    enum { ALL = DF_FRAMES_LENT / DF_HUGE_SIZE };
    struct rig *rig = *state;
    char **memory = calloc(ALL, sizeof(*memory));

    assert_null(take(rig, DF_HUGE_SIZE + 1));
    for (unsigned i = 0; i < ALL; i++)
        assert_non_null(memory[i] = take(rig, DF_HUGE_SIZE));
    assert_null(take(rig, 1));
    for (unsigned i = 0; i < ALL; i++)
        give(rig, memory[i]);
    df_lent_cool(&rig->framer.lent); /* all of it was needed just now */
    assert_int_equal(rig->framer.lent.spare, ALL);
    df_lent_cool(&rig->framer.lent);
    assert_in_range(rig->framer.lent.spare, 1, ALL / 8);
    for (unsigned i = 0; i < ALL; i++)
        memory[i] = take_full_of(rig, 'x', DF_HUGE_SIZE);
    assert_null(take(rig, 1));
    for (unsigned i = 0; i < ALL; i++)
        give(rig, memory[i]);
    free(memory);
}

/* ---- what frames show ------------------------------------------------------------------------ */

static void lent_bytes_are_found_where_they_lie(void **state)
{
    struct rig *rig = *state;
    uint32_t c = open_body(rig, 1, true);
    char *memory = take_full_of(rig, 'a', 3 * PAGE);
    struct df_frame_view view;

    assert_true(keep_lent(rig, c, 5, memory, 2 * PAGE + 100, true));
    assert_int_equal(known(rig, c, 5, 'a'), PAGE);
    assert_int_equal(known(rig, c, 6, 'a'), PAGE);
    assert_int_equal(known(rig, c, 7, 'a'), 100);
    assert_true(df_frame_page(rig->framer.frames, c, 0, 6, &view));
    assert_ptr_equal(view.bytes, memory + PAGE);
    assert_int_equal(rig->framer.bytes.used, DF_FRAMES_BRIEF); /* no byte was copied */
}

static void an_end_on_a_page_has_no_bytes(void **state)
{
    struct rig *rig = *state;
    uint32_t c = open_body(rig, 1, true);
    char *memory = take_full_of(rig, 'a', PAGE);

    assert_true(keep_lent(rig, c, 0, memory, PAGE, true));
    assert_int_equal(known(rig, c, 0, 'a'), PAGE);
    assert_int_equal(known(rig, c, 1, 'a'), 0);
}

static void bytes_that_begin_no_page_are_not_shown(void **state)
{
    struct rig *rig = *state;
    uint32_t c = open_body(rig, 1, true);

    assert_false(keep_lent(rig, c, 0, take_full_of(rig, 'a', 2 * PAGE) + 8, PAGE, false));
    assert_int_equal(known(rig, c, 0, 'a'), UNKNOWN);
}

static void giving_back_ends_belief(void **state)
{
    struct rig *rig = *state;
    uint32_t c = open_body(rig, 1, true);
    char *memory = take_full_of(rig, 'a', 2 * PAGE);
    struct df_frame_view view;

    assert_true(keep_lent(rig, c, 0, memory, 2 * PAGE, false));
    assert_true(df_frame_page(rig->framer.frames, c, 0, 1, &view));
    give(rig, memory);
    assert_false(df_frame_same(&view)); /* who is copying it */
    assert_int_equal(known(rig, c, 0, 'a'), UNKNOWN);
    assert_int_equal(known(rig, c, 1, 'a'), UNKNOWN);
}

static void what_was_given_back_meanwhile_is_not_shown(void **state)
{
    struct rig *rig = *state;
    uint32_t c = open_body(rig, 1, true);
    char *memory = take_full_of(rig, 'a', PAGE);
    struct df_frames_ticket ticket = ask(rig, c);
    uint64_t since = df_lent_now(&rig->framer.lent);

    give(rig, memory);
    assert_ptr_equal(take_full_of(rig, 'b', PAGE), memory); /* another's */
    assert_false(df_framer_keep_lent(&rig->framer, &ticket, 0, memory, PAGE, false, since));
    assert_int_equal(known(rig, c, 0, 'a'), UNKNOWN);
}

static unsigned count_known(struct rig *rig, uint32_t content, uint64_t pages, char byte)
{
    unsigned count = 0;

    for (uint64_t page = 0; page < pages; page++)
        count += known(rig, content, page, byte) == PAGE;
    return count;
}

/* A write of the page that was there may have passed the frame by while it was being filled. */
static void a_frame_that_could_not_be_filled_is_empty(void **state)
{
    struct rig *rig = *state;
    uint32_t c = open_body(rig, 1, true), other = open_body(rig, 2, true);
    char *memory = take_full_of(rig, 'a', PAGE);
    struct df_frames_ticket ticket = ask(rig, other);
    uint64_t since = df_lent_now(&rig->framer.lent);
    unsigned before;

    for (uint64_t page = 0; page < 16 * FRAMES / PAGE; page++) /* no frame is free */
        keep(rig, c, page, 'c', PAGE, false);
    before = count_known(rig, c, 16 * FRAMES / PAGE, 'c');
    assert_int_equal(before, FRAMES / PAGE);
    give(rig, memory);
    assert_false(df_framer_keep_lent(&rig->framer, &ticket, 0, memory, PAGE, false, since));
    assert_int_equal(count_known(rig, c, 16 * FRAMES / PAGE, 'c'), before - 1);
}

/* A content that got another id, say: the frame of the old one must not stay behind. */
static void a_page_is_shown_by_one_frame(void **state)
{
    struct rig *rig = *state;
    uint32_t c = open_body(rig, 1, true), other = open_body(rig, 2, true);
    char *memory = take_full_of(rig, 'a', PAGE);

    assert_true(keep_lent(rig, c, 0, memory, PAGE, false));
    assert_true(keep_lent(rig, other, 9, memory, PAGE, false));
    assert_int_equal(known(rig, c, 0, 'a'), UNKNOWN);
    assert_int_equal(known(rig, other, 9, 'a'), PAGE);
    give(rig, memory);
    assert_int_equal(known(rig, other, 9, 'a'), UNKNOWN);
}

/* One frame after the other way, and back: bytes that are its own stay so. */
static void frames_change_between_their_own_bytes_and_lent_ones(void **state)
{
    struct rig *rig = *state;
    uint32_t c = open_body(rig, 1, true);
    char *memory = take_full_of(rig, 'b', PAGE), copied[PAGE];
    struct df_frames_ticket ticket = ask(rig, c);

    memset(copied, 'c', sizeof(copied));
    for (unsigned i = 0; i < 100; i++) {
        keep(rig, c, 0, 'a', PAGE, false);
        assert_int_equal(known(rig, c, 0, 'a'), PAGE);
        assert_true(keep_lent(rig, c, 0, memory, PAGE, false));
        assert_int_equal(known(rig, c, 0, 'b'), PAGE);
        df_framer_keep_briefly(&rig->framer, &ticket, copied, PAGE, false);
        assert_int_equal(known(rig, c, 0, 'c'), PAGE);
        assert_true(keep_lent(rig, c, 0, memory, PAGE, false));
    }
    assert_int_equal(rig->framer.bytes.used, DF_FRAMES_BRIEF + 1);
    give(rig, memory);
    assert_int_equal(known(rig, c, 0, 'b'), UNKNOWN);
    for (unsigned i = 0; i < 2 * DF_FRAMES_BRIEF; i++) { /* the ring comes round */
        ticket = ask(rig, open_body(rig, 2 + i, true));
        df_framer_keep_briefly(&rig->framer, &ticket, copied, PAGE, false);
    }
    keep(rig, c, 0, 'd', PAGE, false);
    assert_int_equal(known(rig, c, 0, 'd'), PAGE);
}

/* ---- many at once ---------------------------------------------------------------------------- */

#define BODIES 6
#define ROUNDS 20000

/* A file system of files of one page. Each write puts a file's page elsewhere, as one that grows
 * does, and tells nobody of the page it leaves but the lender. */
struct race {
    struct rig *rig;
    uint32_t contents[BODIES];
    struct {
        pthread_mutex_t lock;
        char *memory;
    } files[BODIES];
    _Atomic bool over;
    _Atomic unsigned hits, wrong;
};

static void move(struct race *race, unsigned body)
{
    char *before, full[PAGE];

    memset(full, 'a' + (int)body, sizeof(full));
    pthread_mutex_lock(&race->files[body].lock);
    before = race->files[body].memory;
    race->files[body].memory = take(race->rig, PAGE);
    df_sys_copy_unsure(race->files[body].memory, full, PAGE);
    give(race->rig, before);
    pthread_mutex_unlock(&race->files[body].lock);
}

static void *move_all(void *argument)
{
    struct race *race = argument;

    for (unsigned i = 0; !atomic_load(&race->over); i++) {
        move(race, i % BODIES);
        sched_yield();
    }
    return NULL;
}

/* Readers have had a processor meanwhile; or have had none for far too long. */
static bool is_on(struct race *race, unsigned rounds)
{
    return rounds < ROUNDS || (atomic_load(&race->hits) == 0 && rounds < 100000000);
}

/* As the server: asks the file system, and shows what it says. */
static void *show_all(void *argument)
{
    struct race *race = argument;

    for (unsigned i = 0; is_on(race, i); i++) {
        unsigned body = i % BODIES;
        struct df_frames_ticket ticket = ask(race->rig, race->contents[body]);
        uint64_t since = df_lent_now(&race->rig->framer.lent);
        char *memory;

        pthread_mutex_lock(&race->files[body].lock);
        memory = race->files[body].memory;
        pthread_mutex_unlock(&race->files[body].lock);
        df_framer_keep_lent(&race->rig->framer, &ticket, 0, memory, PAGE, false, since);
    }
    atomic_store(&race->over, true);
    return NULL;
}

/* Every byte that counts is the file's own. */
static void *read_all(void *argument)
{
    struct race *race = argument;
    char bytes[PAGE];

    for (unsigned i = 0; !atomic_load(&race->over); i++) {
        unsigned body = i % BODIES;
        struct df_frame_view view;

        if (!df_frame_page(race->rig->framer.frames, race->contents[body], 0, 0, &view))
            continue;
        df_sys_copy_unsure(bytes, view.bytes, PAGE);
        if (!df_frame_same(&view))
            continue;
        atomic_fetch_add(&race->hits, 1);
        for (unsigned b = 0; b < PAGE; b++)
            if (bytes[b] != 'a' + (int)body)
                atomic_fetch_add(&race->wrong, 1);
    }
    return NULL;
}

static void nobody_reads_what_has_become_anothers(void **state)
{
    void *(*const parts[])(void *) = {show_all, show_all, move_all, move_all, read_all, read_all};
    struct race *race = calloc(1, sizeof(*race));
    pthread_t threads[6];

    race->rig = *state;
    for (unsigned i = 0; i < BODIES; i++) {
        pthread_mutex_init(&race->files[i].lock, NULL);
        race->contents[i] = open_body(race->rig, i + 1, true);
        race->files[i].memory = take_full_of(race->rig, (char)('a' + i), PAGE);
    }
    for (unsigned i = 0; i < 6; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, parts[i], race), 0);
    for (unsigned i = 0; i < 6; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(race->wrong, 0);
    assert_int_not_equal(race->hits, 0);
    for (unsigned i = 0; i < BODIES; i++) {
        give(race->rig, race->files[i].memory);
        pthread_mutex_destroy(&race->files[i].lock);
    }
    free(race);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(blocks_are_whole_pages_and_apart),
        TEST(what_is_given_back_becomes_one_again),
        TEST(there_is_no_more_than_there_is),
        TEST(lent_bytes_are_found_where_they_lie),
        TEST(an_end_on_a_page_has_no_bytes),
        TEST(bytes_that_begin_no_page_are_not_shown),
        TEST(giving_back_ends_belief),
        TEST(what_was_given_back_meanwhile_is_not_shown),
        TEST(a_frame_that_could_not_be_filled_is_empty),
        TEST(a_page_is_shown_by_one_frame),
        TEST(frames_change_between_their_own_bytes_and_lent_ones),
        TEST(nobody_reads_what_has_become_anothers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
