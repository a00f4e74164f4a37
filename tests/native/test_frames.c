/*
 * test_frames.c - pages and listings in the segment: when they are kept, what ends belief in them,
 * that what gives way is bounded, and that nobody ever reads half of one.
 */
#include <dirent.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "channel/sys.h"
#include "frames_pages.h"

/* ---- what is kept ---------------------------------------------------------------------------- */

static void the_first_bytes_are_there_before_anybody_waits_for_them(void **state)
{
    struct rig *rig = *state;

    assert_true(rig->framer.bytes.made > 0);
    assert_int_equal(rig->framer.bytes.used, DF_FRAMES_BRIEF); /* of the ring alone */
}

static void full_pages_and_the_end_are_kept(void **state)
{
    struct rig *rig = *state;
    uint32_t c = open_body(rig, 1, true);

    keep(rig, c, 0, 'a', 2 * PAGE + 100, true);
    assert_int_equal(known(rig, c, 0, 'a'), PAGE);
    assert_int_equal(known(rig, c, 1, 'a'), PAGE);
    assert_int_equal(known(rig, c, 2, 'a'), 100);
    assert_int_equal(known(rig, c, 3, 'a'), UNKNOWN);
    keep(rig, c, 8, 'b', PAGE + 100, false); /* not the end: it may go on behind */
    assert_int_equal(known(rig, c, 8, 'b'), PAGE);
    assert_int_equal(known(rig, c, 9, 'b'), UNKNOWN);
    keep(rig, c, 16, 'c', PAGE, true);
    assert_int_equal(known(rig, c, 17, 'c'), 0);
}

static void contents_are_apart(void **state)
{
    struct rig *rig = *state;
    uint32_t a = open_body(rig, 1, true), b = open_body(rig, 2, true);

    assert_int_not_equal(a, b);
    assert_int_equal(open_body(rig, 1, true), a);
    keep(rig, a, 0, 'a', PAGE, false);
    assert_int_equal(known(rig, b, 0, 'a'), UNKNOWN);
    assert_int_not_equal(df_framer_open(&rig->framer, 0, MOUNT + 1, 1, true), a);
}

#define LONG UINT64_C(100000000000) /* ns */

/* A time is told once the clocks have been compared for ten milliseconds. */
static void pages_are_believed_again_while_the_file_is_as_it_was(void **state)
{
    struct rig *rig = *state;
    uint32_t c = open_body(rig, 1, true);
    const struct timespec pause = {.tv_nsec = 15000000};

    nanosleep(&pause, NULL);
    believe(rig, c, PAGE, 1, LONG);
    keep(rig, c, 0, 'a', PAGE, false);
    assert_int_equal(known(rig, c, 0, 'a'), PAGE);
    believe(rig, c, PAGE, 1, 1); /* and that is over */
    assert_int_equal(known(rig, c, 0, 'a'), UNKNOWN);
    believe(rig, c, PAGE, 1, LONG);
    assert_int_equal(known(rig, c, 0, 'a'), PAGE);
    believe(rig, c, PAGE, 2, LONG); /* changed at another time */
    assert_int_equal(known(rig, c, 0, 'a'), UNKNOWN);
    keep(rig, c, 0, 'b', PAGE, false);
    assert_int_equal(known(rig, c, 0, 'b'), PAGE);
    believe(rig, c, 0, 2, LONG); /* of another size */
    assert_int_equal(known(rig, c, 0, 'b'), UNKNOWN);
}

/* ---- what ends belief ------------------------------------------------------------------------ */

static void a_write_takes_its_pages_and_the_end(void **state)
{
    struct rig *rig = *state;
    uint32_t c = open_body(rig, 1, true);

    keep(rig, c, 0, 'a', 3 * PAGE + 5, true);
    write_to(rig, c, 1, PAGE + 10, 20);
    assert_int_equal(known(rig, c, 0, 'a'), PAGE);
    assert_int_equal(known(rig, c, 1, 'a'), UNKNOWN);
    assert_int_equal(known(rig, c, 2, 'a'), PAGE);
    assert_int_equal(known(rig, c, 3, 'a'), UNKNOWN); /* the file may be longer now */
}

static void a_page_that_a_write_met_is_not_kept(void **state)
{
    struct rig *rig = *state;
    uint32_t c = open_body(rig, 1, true);
    struct df_frames_changing w = change(DF_FRAMES_RANGE, c, 1, 0, 10);
    struct df_frames_ticket ticket = ask(rig, c);

    write_to(rig, c, 1, 0, 10); /* began and ended meanwhile */
    keep_by(rig, &ticket, 0, 'a', PAGE, false);
    assert_int_equal(known(rig, c, 0, 'a'), UNKNOWN);
    ticket = ask(rig, c);
    df_framer_begin(&rig->framer, &w); /* began meanwhile */
    keep_by(rig, &ticket, 0, 'a', PAGE, false);
    assert_int_equal(known(rig, c, 0, 'a'), UNKNOWN);
    ticket = ask(rig, c); /* was under way before */
    assert_false(ticket.valid);
    df_framer_end(&rig->framer, &w);
    keep_by(rig, &ticket, 0, 'a', PAGE, false);
    assert_int_equal(known(rig, c, 0, 'a'), UNKNOWN);
}

static void a_change_of_the_whole_file_ends_all(void **state)
{
    struct rig *rig = *state;
    uint32_t c = open_body(rig, 1, true), other = open_body(rig, 2, true);
    struct df_frames_changing t = change(DF_FRAMES_FILE, c, 1, 0, 0);
    struct df_frames_ticket ticket = ask(rig, c);

    keep(rig, c, 0, 'a', PAGE, false);
    keep(rig, other, 0, 'b', PAGE, false);
    df_framer_begin(&rig->framer, &t);
    df_framer_end(&rig->framer, &t);
    assert_int_equal(known(rig, c, 0, 'a'), UNKNOWN);
    assert_int_equal(known(rig, other, 0, 'b'), PAGE);
    keep_by(rig, &ticket, 0, 'a', PAGE, false);
    assert_int_equal(known(rig, c, 0, 'a'), UNKNOWN);
}

/* By a name: which file it is nobody says. Or open with O_TRUNC: it is known afterwards. */
static void a_change_of_an_unknown_file_ends_what_it_may_be(void **state)
{
    struct rig *rig = *state;
    uint32_t a = open_body(rig, 1, true), b = open_body(rig, 2, true);
    struct df_frames_changing t = change(DF_FRAMES_FILE, 0, 0, 0, 0);

    keep(rig, a, 0, 'a', PAGE, false);
    keep(rig, b, 0, 'b', PAGE, false);
    df_framer_begin(&rig->framer, &t);
    assert_false(ask(rig, a).valid);
    t.body = 1;
    df_framer_end(&rig->framer, &t);
    assert_int_equal(known(rig, a, 0, 'a'), UNKNOWN);
    assert_int_equal(known(rig, b, 0, 'b'), PAGE);
    t.body = 0;
    t.known = true; /* that nothing is kept of it */
    df_framer_begin(&rig->framer, &t);
    df_framer_end(&rig->framer, &t);
    assert_int_equal(known(rig, b, 0, 'b'), PAGE);
    t.known = false;
    df_framer_begin(&rig->framer, &t);
    df_framer_end(&rig->framer, &t);
    assert_int_equal(known(rig, b, 0, 'b'), UNKNOWN);
    assert_true(ask(rig, b).valid);
}

/* Of a file that has another content by now, or none: a direct_io descriptor's. */
static void a_write_finds_the_file_by_its_body(void **state)
{
    struct rig *rig = *state;
    uint32_t c = open_body(rig, 1, true), other = open_body(rig, 2, true);

    keep(rig, c, 0, 'a', PAGE, false);
    write_to(rig, 0, 1, 0, 10);
    assert_int_equal(known(rig, c, 0, 'a'), UNKNOWN);
    keep(rig, c, 0, 'a', PAGE, false);
    write_to(rig, other, 1, 0, 10);
    assert_int_equal(known(rig, c, 0, 'a'), UNKNOWN);
    assert_true(ask(rig, c).valid && ask(rig, other).valid);
}

static void an_open_that_keeps_nothing_ends_all(void **state)
{
    struct rig *rig = *state;
    uint32_t c = open_body(rig, 1, true);

    keep(rig, c, 0, 'a', PAGE, false);
    assert_int_equal(open_body(rig, 1, true), c);
    assert_int_equal(known(rig, c, 0, 'a'), PAGE);
    assert_int_equal(open_body(rig, 1, false), c);
    assert_int_equal(known(rig, c, 0, 'a'), UNKNOWN);
}

/* As in the kernel: what a close leaves, the next open keeps or ends. */
static void pages_outlive_a_close_until_an_open_ends_them(void **state)
{
    struct rig *rig = *state;
    uint32_t c = open_body(rig, 1, true);

    keep(rig, c, 0, 'a', PAGE, false);
    df_framer_close(&rig->framer, c);
    assert_int_equal(open_body(rig, 1, true), c);
    assert_int_equal(known(rig, c, 0, 'a'), PAGE);
    df_framer_close(&rig->framer, c);
    assert_int_equal(open_body(rig, 1, false), c);
    assert_int_equal(known(rig, c, 0, 'a'), UNKNOWN);
    keep(rig, c, 0, 'b', PAGE, false);
    df_framer_close(&rig->framer, c);
    assert_int_equal(open_body(rig, 1, true), c);
    assert_int_equal(known(rig, c, 0, 'b'), PAGE);
}

static void where_no_open_keeps_anything_a_close_ends_all(void **state)
{
    struct rig *rig = *state;
    uint32_t c = open_body(rig, 1, false);

    keep(rig, c, 0, 'a', PAGE, false);
    df_framer_close(&rig->framer, c);
    assert_int_equal(open_body(rig, 2, false), c); /* its number is free */
    assert_int_equal(known(rig, c, 0, 'a'), UNKNOWN);
}

/* auto_cache: also of a file that the plugin vouches for without end. */
static void a_check_ends_what_has_another_time_or_size(void **state)
{
    struct rig *rig = *state;
    uint32_t c = open_body(rig, 1, true);
    struct stat st = {.st_size = PAGE, .st_mtim = {.tv_sec = 1}};

    df_framer_believe(&rig->framer, 0, c, &st, UINT64_MAX, true);
    keep(rig, c, 0, 'a', PAGE, false);
    df_framer_believe(&rig->framer, 0, c, &st, UINT64_MAX, true);
    assert_int_equal(known(rig, c, 0, 'a'), PAGE);
    st.st_mtim.tv_nsec = 1;
    df_framer_believe(&rig->framer, 0, c, &st, UINT64_MAX, false);
    assert_int_equal(known(rig, c, 0, 'a'), PAGE);
    st.st_mtim.tv_nsec = 2;
    df_framer_believe(&rig->framer, 0, c, &st, UINT64_MAX, true);
    assert_int_equal(known(rig, c, 0, 'a'), UNKNOWN);
}

/* Who opens the file while a write of one that has closed it is under way meets that write. */
static void a_content_stays_while_it_changes(void **state)
{
    struct rig *rig = *state;
    uint32_t c = open_body(rig, 1, false);
    struct df_frames_changing w = change(DF_FRAMES_RANGE, c, 1, 0, 10);

    df_framer_begin(&rig->framer, &w);
    df_framer_close(&rig->framer, c);
    assert_int_equal(open_body(rig, 1, false), c);
    assert_false(ask(rig, c).valid);
    df_framer_end(&rig->framer, &w);
    assert_true(ask(rig, c).valid);
}

static void a_notification_ends_all(void **state)
{
    struct rig *rig = *state;
    uint32_t c = open_body(rig, 1, true);

    keep(rig, c, 0, 'a', PAGE, false);
    df_framer_forget(&rig->framer);
    assert_int_equal(known(rig, c, 0, 'a'), UNKNOWN);
}

/* ---- listings -------------------------------------------------------------------------------- */

#define RECORD 24

/* Records whose positions are 1, 2, ... behind the first. */
static void make_records(char *to, unsigned count, uint64_t position)
{
    memset(to, 0, count * RECORD);
    for (unsigned i = 0; i < count; i++) {
        struct dirent64 *entry = (struct dirent64 *)(to + i * RECORD);

        entry->d_off = (off_t)(position + i + 1);
        entry->d_reclen = RECORD;
        snprintf(entry->d_name, 5, "%u", i % 1000);
    }
}

static void a_listing_is_found_piece_by_piece_in_its_era(void **state)
{
    struct rig *rig = *state;
    uint32_t c = open_body(rig, 1, true);
    struct df_frames_ticket ticket = ask(rig, c);
    struct df_frame_view view;
    const unsigned in_frame = PAGE / RECORD;
    char records[300 * RECORD];

    make_records(records, 300, 5);
    believe(rig, c, 0, 0, UINT64_MAX);
    df_framer_keep_list(&rig->framer, &ticket, 5, 1, records, sizeof(records));
    df_framer_keep_list(&rig->framer, &ticket, 305, 1, "", 0);
    assert_true(df_frame_listing(rig->framer.frames, c, 5, 1, &view));
    assert_int_equal(view.used, in_frame * RECORD);
    assert_int_equal(view.next, 5 + in_frame);
    assert_true(df_frame_listing(rig->framer.frames, c, view.next, 1, &view));
    assert_memory_equal(view.bytes, records + in_frame * RECORD, view.used);
    assert_int_equal(view.next, 305);
    assert_true(df_frame_listing(rig->framer.frames, c, 305, 1, &view));
    assert_int_equal(view.used, 0);
    assert_false(df_frame_listing(rig->framer.frames, c, 6, 1, &view));
    assert_false(df_frame_listing(rig->framer.frames, c, 5, 2, &view));
}

/* A name of PATH_MAX - 1 bytes: what comes before it is kept, and no end. */
static void a_record_that_is_larger_than_a_frame_is_not_kept(void **state)
{
    struct rig *rig = *state;
    uint32_t c = open_body(rig, 1, true);
    struct df_frames_ticket ticket = ask(rig, c);
    _Alignas(struct dirent64) char records[3 * PAGE] = {0};
    struct dirent64 *large = (struct dirent64 *)(records + 3 * RECORD);
    struct df_frame_view view;

    make_records(records, 3, 5);
    large->d_off = 9;
    large->d_reclen = PAGE + 24;
    believe(rig, c, 0, 0, UINT64_MAX);
    df_framer_keep_list(&rig->framer, &ticket, 5, 1, records, 3 * RECORD + PAGE + 24);
    assert_true(df_frame_listing(rig->framer.frames, c, 5, 1, &view));
    assert_int_equal(view.used, 3 * RECORD);
    assert_int_equal(view.next, 8);
    assert_false(df_frame_listing(rig->framer.frames, c, 8, 1, &view));
}

static bool listed(struct rig *rig, uint32_t content)
{
    struct df_frame_view view;

    return df_frame_listing(rig->framer.frames, content, 0, 1, &view);
}

static void list(struct rig *rig, uint32_t content)
{
    struct df_frames_ticket ticket;
    _Alignas(struct dirent64) char records[sizeof(struct dirent64)];

    make_records(records, 3, 0);
    df_framer_lists(&rig->framer, 0);
    believe(rig, content, 0, 0, UINT64_MAX);
    ticket = ask(rig, content);
    df_framer_keep_list(&rig->framer, &ticket, 0, 1, records, 3 * RECORD);
}

static void a_changed_name_ends_the_listing_of_its_directory_alone(void **state)
{
    struct rig *rig = *state;
    uint32_t a = open_body(rig, 1, true), b = open_body(rig, 2, true);

    list(rig, a);
    list(rig, b);
    df_framer_end_listing(&rig->framer, 0, MOUNT, 1);
    assert_false(listed(rig, a));
    assert_true(listed(rig, b));
    df_framer_end_listing(&rig->framer, 0, MOUNT, 3);     /* open nowhere */
    df_framer_end_listing(&rig->framer, 0, MOUNT + 1, 2); /* of another mount */
    assert_true(listed(rig, b));
    list(rig, a);
    assert_true(listed(rig, a));
}

static void a_listing_from_before_a_change_is_not_kept_after_it(void **state)
{
    struct rig *rig = *state;
    uint32_t a = open_body(rig, 1, true);
    struct df_frames_ticket ticket;
    _Alignas(struct dirent64) char records[sizeof(struct dirent64)];

    make_records(records, 1, 0);
    df_framer_lists(&rig->framer, 0);
    believe(rig, a, 0, 0, UINT64_MAX);
    ticket = ask(rig, a);
    df_framer_end_listing(&rig->framer, 0, MOUNT, 1);
    df_framer_keep_list(&rig->framer, &ticket, 0, 1, records, RECORD);
    assert_false(listed(rig, a));
}

/* ---- bounds ---------------------------------------------------------------------------------- */

static unsigned count_known(struct rig *rig, uint32_t content, unsigned pages)
{
    unsigned found = 0;

    for (unsigned i = 0; i < pages; i++)
        found += known(rig, content, i, 'a') == PAGE;
    return found;
}

static void it_is_bounded_and_the_dead_give_way_first(void **state)
{
    struct rig *rig = *state;
    uint32_t dead = open_body(rig, 1, false), c = open_body(rig, 2, false);
    const unsigned frames = FRAMES / PAGE;

    for (unsigned i = 0; i < 4 * frames; i++)
        keep(rig, dead, i, 'a', PAGE, false);
    assert_in_range(count_known(rig, dead, 4 * frames), frames / 2, frames);
    df_framer_close(&rig->framer, dead);
    for (unsigned i = 0; i < frames / 2; i++)
        keep(rig, c, i, 'a', PAGE, false);
    assert_in_range(count_known(rig, c, frames / 2), frames * 7 / 16, frames / 2);
    for (unsigned i = 0; i < frames; i++)
        assert_int_equal(known(rig, dead, i, 'a'), UNKNOWN);
}

static void a_server_that_is_started_again_gives_no_bytes_twice(void **state)
{
    struct rig *rig = *state;
    const unsigned frames = FRAMES / PAGE;
    unsigned hits = 0;
    uint32_t c = open_body(rig, 1, true);

    for (unsigned i = 0; i < frames / 2; i++)
        keep(rig, c, i, 'a', PAGE, false);
    df_framer_free(&rig->framer);
    memset(&rig->framer, 0, sizeof(rig->framer));
    atomic_store(&rig->own.segment->starts, 2);
    df_framer_init(&rig->framer, rig->own.segment, &rig->cacher);
    c = open_body(rig, 1, true);
    assert_int_equal(known(rig, c, 0, 'a'), UNKNOWN);
    for (unsigned i = 0; i < frames; i++)
        keep(rig, c, i, (char)('a' + i % 26), PAGE, false);
    for (unsigned i = 0; i < frames; i++)
        hits += known(rig, c, i, (char)('a' + i % 26)) == PAGE;
    assert_in_range(hits, frames / 2, frames);
}

/* More frames than the ring has bytes for. */
static int set_up_wide(void **state)
{
    return set_up_for(state, 16 * FRAMES);
}

/* ---- many at once ---------------------------------------------------------------------------- */

#define BODIES   4
#define PAGES    600 /* of all: more than there are frames */

#define FLEETING 80 /* bodies of some pages each: more than the ring has bytes for */

/* A file system of numbers: page p of body b is full of a version that writes count up. */
struct race {
    struct rig *rig;
    unsigned bodies, pages;
    uint32_t contents[FLEETING];
    pthread_mutex_t lock; /* of the versions */
    uint32_t begun[FLEETING], done[FLEETING];
    _Atomic bool over;
    _Atomic unsigned hits, wrong;
};

static uint32_t version_of(struct race *race, unsigned body, bool done)
{
    uint32_t version;

    pthread_mutex_lock(&race->lock);
    version = done ? race->done[body] : race->begun[body];
    pthread_mutex_unlock(&race->lock);
    return version;
}

/* Readers have had a processor meanwhile; or have had none for far too long. */
static bool is_on(struct race *race, unsigned rounds)
{
    return rounds < 30000 || (atomic_load(&race->hits) == 0 && rounds < 100000000);
}

/* As the server: asks, reads the plugin, keeps. */
static void *fill(void *argument)
{
    struct race *race = argument;
    uint32_t words[PAGE / 4];

    for (unsigned i = 0; is_on(race, i); i++) {
        unsigned body = i % race->bodies;
        struct df_frames_ticket ticket = ask(race->rig, race->contents[body]);
        uint32_t version = version_of(race, body, false);

        for (unsigned w = 0; w < PAGE / 4; w++)
            words[w] = version;
        df_framer_keep(&race->rig->framer, &ticket, i * 7 % PAGES, (const char *)words, PAGE,
                       false);
    }
    atomic_store(&race->over, true);
    return NULL;
}

/* Some of it for longer. */
static void *fill_briefly(void *argument)
{
    struct race *race = argument;
    uint32_t words[4 * PAGE / 4];

    for (unsigned i = 0; is_on(race, i); i++) {
        unsigned body = i * 7 % race->bodies;
        struct df_frames_ticket ticket = ask(race->rig, race->contents[body]);
        uint32_t version = version_of(race, body, false);

        for (unsigned w = 0; w < sizeof(words) / sizeof(words[0]); w++)
            words[w] = version;
        if (i % 50 == 0)
            df_framer_keep(&race->rig->framer, &ticket, 0, (const char *)words, PAGE, false);
        else
            df_framer_keep_briefly(&race->rig->framer, &ticket, (const char *)words, sizeof(words),
                                   false);
    }
    atomic_store(&race->over, true);
    return NULL;
}

static void *change_all(void *argument)
{
    struct race *race = argument;

    for (unsigned i = 0; !atomic_load(&race->over); i++) {
        unsigned body = i % race->bodies;
        struct df_frames_changing c =
            change(i % 3 ? DF_FRAMES_FILE : DF_FRAMES_RANGE, i % 7 ? race->contents[body] : 0,
                   body + 1, 0, (size_t)race->pages * PAGE);

        df_framer_begin(&race->rig->framer, &c);
        pthread_mutex_lock(&race->lock);
        race->begun[body]++;
        pthread_mutex_unlock(&race->lock);
        df_framer_end(&race->rig->framer, &c);
        pthread_mutex_lock(&race->lock);
        race->done[body] = race->begun[body];
        pthread_mutex_unlock(&race->lock);
        sched_yield();
    }
    return NULL;
}

/* What is read is whole, and not older than the last change that had ended before. */
static void *read_all(void *argument)
{
    struct race *race = argument;
    uint32_t words[PAGE / 4];

    for (unsigned i = 0; !atomic_load(&race->over); i++) {
        unsigned body = i % race->bodies;
        uint32_t oldest = version_of(race, body, true);
        struct df_frame_view view;

        if (!df_frame_page(race->rig->framer.frames, race->contents[body], 0, i * 11 % race->pages,
                           &view))
            continue;
        df_sys_copy_unsure(words, view.bytes, PAGE);
        if (!df_frame_same(&view))
            continue;
        atomic_fetch_add(&race->hits, 1);
        for (unsigned w = 1; w < PAGE / 4; w++)
            if (words[w] != words[0])
                atomic_fetch_add(&race->wrong, 1);
        if (words[0] < oldest)
            atomic_fetch_add(&race->wrong, 1);
    }
    return NULL;
}

static void run_race(struct race *race, void *(*filler)(void *))
{
    void *(*const parts[])(void *) = {filler, filler, change_all, read_all, read_all, read_all};
    pthread_t threads[6];

    pthread_mutex_init(&race->lock, NULL);
    for (unsigned b = 0; b < race->bodies; b++)
        race->contents[b] = open_body(race->rig, b + 1, true);
    for (int i = 0; i < 6; i++)
        pthread_create(&threads[i], NULL, parts[i], race);
    for (int i = 0; i < 6; i++)
        pthread_join(threads[i], NULL);
    pthread_mutex_destroy(&race->lock);
    assert_int_equal(race->wrong, 0);
    assert_true(race->hits > 0);
}

static void nobody_reads_half_a_page_or_an_old_one(void **state)
{
    struct race race = {.rig = *state, .bodies = BODIES, .pages = PAGES};

    run_race(&race, fill);
}

static void nobody_reads_what_the_ring_has_for_another(void **state)
{
    struct race race = {.rig = *state, .bodies = FLEETING, .pages = 4};

    run_race(&race, fill_briefly);
}

/* ---- listings of which names change ---------------------------------------------------------- */

/* A file system of one number in each directory, which a change of names counts up. */
struct list_race {
    struct rig *rig;
    uint32_t contents[BODIES];
    _Atomic uint32_t versions[BODIES], done[BODIES];
    _Atomic bool over;
    _Atomic unsigned hits, wrong;
};

/* Everybody has had a processor meanwhile; or has had none for far too long. */
static bool has_raced(struct list_race *race, unsigned rounds)
{
    return (rounds > 30000 && atomic_load(&race->hits) > 100 &&
            atomic_load(&race->done[0]) > 100) ||
           rounds > 100000000;
}

/* As df_execute_readdir(). */
static void *list_all(void *argument)
{
    struct list_race *race = argument;
    struct df_cacher *cacher = &race->rig->cacher;
    _Alignas(struct dirent64) char record[sizeof(struct dirent64)];

    for (unsigned i = 0; !has_raced(race, i) && !atomic_load(&race->over); i++) {
        unsigned body = i % BODIES;
        struct df_frames_ticket ticket;
        struct df_cacher_ticket names;

        df_framer_lists(&race->rig->framer, 0);
        ticket = ask(race->rig, race->contents[body]);
        names = df_cacher_ask_names(cacher, 0);
        make_records(record, 1, atomic_load(&race->versions[body]));
        if (names.valid && df_cacher_same_names(cacher, 0, names))
            df_framer_keep_list(&race->rig->framer, &ticket, 0, names.era, record, RECORD);
    }
    atomic_store(&race->over, true);
    return NULL;
}

/* As run_changing(); some changes are not told. */
static void *change_names(void *argument)
{
    struct list_race *race = argument;

    for (unsigned i = 0; !atomic_load(&race->over); i++) {
        struct df_changes told = {.listings = i % 5 != 0, .answers = true};
        unsigned body = i % BODIES;

        df_changes_directory(&told, body + 1);
        df_cacher_begin(&race->rig->cacher, 0, DF_CACHE_NAMES);
        atomic_fetch_add(&race->versions[body], 1);
        if (told.listings)
            df_framer_end_listing(&race->rig->framer, 0, MOUNT, body + 1);
        df_cacher_end_told(&race->rig->cacher, 0, &told);
        atomic_store(&race->done[body], atomic_load(&race->versions[body]));
        sched_yield();
    }
    return NULL;
}

static void *look_all(void *argument)
{
    struct list_race *race = argument;
    const struct df_cache *cache = race->rig->cacher.cache;

    for (unsigned i = 0; !atomic_load(&race->over); i++) {
        unsigned body = i % BODIES;
        uint32_t oldest = atomic_load(&race->done[body]);
        uint64_t era = atomic_load(&cache->mounts[0].listings);
        struct df_frame_view view;
        struct dirent64 record;

        if (!df_frame_listing(race->rig->framer.frames, race->contents[body], 0, era, &view))
            continue;
        df_sys_copy_unsure(&record, view.bytes, RECORD);
        if (!df_frame_same(&view))
            continue;
        atomic_fetch_add(&race->hits, 1);
        atomic_fetch_add(&race->wrong, (uint64_t)record.d_off < (uint64_t)oldest + 1);
    }
    return NULL;
}

/* There is one thread that changes: so what it has done is a version. */
static void nobody_reads_a_listing_from_before_a_change(void **state)
{
    struct list_race race = {.rig = *state};
    void *(*const parts[])(void *) = {list_all, list_all, change_names, look_all, look_all};
    pthread_t threads[5];

    for (unsigned b = 0; b < BODIES; b++) {
        race.contents[b] = open_body(race.rig, b + 1, true);
        believe(race.rig, race.contents[b], 0, 0, UINT64_MAX);
    }
    for (int i = 0; i < 5; i++)
        pthread_create(&threads[i], NULL, parts[i], &race);
    for (int i = 0; i < 5; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(race.wrong, 0);
    assert_true(race.hits > 100);
    assert_true(race.done[0] > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
#define WIDE(name) cmocka_unit_test_setup_teardown(name, set_up_wide, tear_down)
        TEST(the_first_bytes_are_there_before_anybody_waits_for_them),
        TEST(full_pages_and_the_end_are_kept),
        TEST(contents_are_apart),
        TEST(pages_are_believed_again_while_the_file_is_as_it_was),
        TEST(a_write_takes_its_pages_and_the_end),
        TEST(a_page_that_a_write_met_is_not_kept),
        TEST(a_change_of_the_whole_file_ends_all),
        TEST(a_change_of_an_unknown_file_ends_what_it_may_be),
        TEST(a_write_finds_the_file_by_its_body),
        TEST(an_open_that_keeps_nothing_ends_all),
        TEST(pages_outlive_a_close_until_an_open_ends_them),
        TEST(where_no_open_keeps_anything_a_close_ends_all),
        TEST(a_check_ends_what_has_another_time_or_size),
        TEST(a_content_stays_while_it_changes),
        TEST(a_notification_ends_all),
        TEST(a_listing_is_found_piece_by_piece_in_its_era),
        TEST(a_record_that_is_larger_than_a_frame_is_not_kept),
        TEST(a_changed_name_ends_the_listing_of_its_directory_alone),
        TEST(a_listing_from_before_a_change_is_not_kept_after_it),
        TEST(it_is_bounded_and_the_dead_give_way_first),
        TEST(a_server_that_is_started_again_gives_no_bytes_twice),
        TEST(nobody_reads_half_a_page_or_an_old_one),
        WIDE(nobody_reads_what_the_ring_has_for_another),
        TEST(nobody_reads_a_listing_from_before_a_change),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
