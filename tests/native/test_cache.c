/*
 * test_cache.c - the cache in the segment: when an answer is kept, how long it is believed, and
 * that nobody ever reads half of one.
 */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <time.h>

#include "cache_rig.h"
#include "channel/sys.h"

/* ---- what is asked
 * ------------------------------------------------------------------------------- */

static void an_answer_is_for_its_question(void **state)
{
    struct rig *rig = *state;
    struct stat st;
    int result;

    keep(rig, "/a/name", 0, 5, UINT64_MAX);
    assert_true(known(rig, "/a/name"));
    assert_false(known(rig, "/a/nam"));
    assert_false(known(rig, "/a/name2"));
    assert_false(ask(rig, "/a/name", DF_WHERE_NOFOLLOW, &result, &st));
}

static void what_is_open_is_found_by_its_handle(void **state)
{
    enum { HANDLE = 1 << 16 | 3 };
    struct rig *rig = *state;
    struct df_ofd *ofd = &df_segment_ofds(rig->own.segment)[3];
    struct df_trip_where itself = {.base = HANDLE, .name = ""};
    struct stat st = {.st_ino = 5, .st_size = 7}, found;
    struct df_cache_key key;

    ofd->mount = 1;
    atomic_store(&ofd->handle, HANDLE);
    df_cache_key(rig->cacher.cache, 1, &rig->caller, &itself, 0, &key);
    assert_false(df_cache_read_open(rig->own.segment, ofd, HANDLE, 0, &found));
    df_cacher_keep(&rig->cacher, 0, df_cacher_ask(&rig->cacher, 0), &key, 0, &st, UINT64_MAX);
    assert_true(df_cache_read_open(rig->own.segment, ofd, HANDLE, 0, &found));
    assert_int_equal(found.st_size, 7);
    assert_false(df_cache_read_open(rig->own.segment, ofd, HANDLE + 1, 0, &found));
    df_cacher_keep(&rig->cacher, 0, df_cacher_ask(&rig->cacher, 0), &key, -ENOENT, &st, UINT64_MAX);
    assert_false(df_cache_read_open(rig->own.segment, ofd, HANDLE, 0, &found));
}

/* What kept the answer to a question with `kept` knows of one with `asked`. */
static bool answers(struct rig *rig, uint32_t kept, uint32_t asked, int result)
{
    struct df_cache_key key = key_of(rig, "/one", kept);
    struct stat st = {.st_ino = 5};
    int found;

    change(rig, DF_CACHE_NAMES, 0); /* nothing is left of what was kept before */
    df_cacher_keep(&rig->cacher, 0, df_cacher_ask(&rig->cacher, 0), &key, result, &st, UINT64_MAX);
    return ask(rig, "/one", asked, &found, &st) && found == result;
}

static void what_lstat_was_told_is_true_for_stat(void **state)
{
    const uint32_t lstat = DF_WHERE_NOFOLLOW;

    for (int result = 0; result >= -ENOENT; result -= ENOENT) {
        assert_true(answers(*state, lstat, 0, result));
        assert_true(answers(*state, lstat, lstat, result));
        assert_true(answers(*state, 0, 0, result));
        assert_false(answers(*state, 0, lstat, result)); /* a link may have been followed */
    }
}

/* Whether what is found is a directory is looked at by who asks: df_trip_known(). */
static void a_slash_asks_for_the_name_and_follows_links(void **state)
{
    const uint32_t lstat = DF_WHERE_NOFOLLOW, dot = DF_WHERE_DIRECTORY | DF_WHERE_DOT;

    for (int result = 0; result >= -ENOENT; result -= ENOENT) {
        assert_true(answers(*state, lstat, dot, result));
        assert_true(answers(*state, 0, dot | lstat, result));
        assert_true(answers(*state, DF_WHERE_DIRECTORY, dot, result));
        assert_true(answers(*state, dot | lstat, 0, result));
        assert_false(answers(*state, dot | lstat, lstat, result));
        assert_false(answers(*state, DF_WHERE_DOTDOT, 0, result));
    }
}

static void an_answer_is_for_who_asked(void **state)
{
    struct rig *rig = *state;
    gid_t group = 4;

    keep(rig, "/x", 0, 5, UINT64_MAX);
    rig->caller.uid = 1;
    assert_false(known(rig, "/x"));
    rig->caller.uid = 0;
    rig->caller.groups = &group;
    rig->caller.group_count = 1;
    assert_false(known(rig, "/x"));
}

static void that_there_is_none_is_an_answer(void **state)
{
    struct rig *rig = *state;

    keep(rig, "/none", -ENOENT, 0, UINT64_MAX);
    assert_true(known(rig, "/none"));
    change(rig, DF_CACHE_NAMES, 0);
    assert_false(known(rig, "/none"));
}

/* ---- what is told of a change of names ------------------------------------------------------- */

static const ino_t directory = 3, file = 5, other = 6;

/* An entry of a directory, an object that is in another one, a name that is nowhere. */
static void keep_three(struct rig *rig)
{
    keep(rig, "/d", 0, directory, UINT64_MAX);
    keep(rig, "/d/f", 0, file, UINT64_MAX);
    keep(rig, "/e/g", 0, other, UINT64_MAX);
    keep(rig, "/none", -ENOENT, 0, UINT64_MAX);
    assert_true(known(rig, "/d") && known(rig, "/d/f") && known(rig, "/e/g") &&
                known(rig, "/none"));
}

static uint64_t listings(struct rig *rig)
{
    return rig->cacher.cache->mounts[0].listings;
}

/* Told: the directory, and a file in it. */
static void change_told(struct rig *rig, struct df_changes changes)
{
    changes.answers = true;
    df_changes_directory(&changes, 11);
    df_changes_object(&changes, directory);
    df_changes_object(&changes, file);
    df_cacher_begin(&rig->cacher, 0, DF_CACHE_NAMES);
    df_cacher_end_told(&rig->cacher, 0, &changes);
}

static void a_name_that_is_removed_ends_the_answers_about_it(void **state)
{
    struct rig *rig = *state;
    uint64_t before = listings(rig);

    keep_three(rig);
    change_told(rig, (struct df_changes){.listings = true});
    assert_false(known(rig, "/d") || known(rig, "/d/f"));
    assert_true(known(rig, "/e/g"));
    assert_true(known(rig, "/none"));
    assert_int_equal(listings(rig), before);
}

static void a_name_that_is_made_ends_what_was_absent(void **state)
{
    struct rig *rig = *state;

    keep_three(rig);
    change_told(rig, (struct df_changes){.listings = true, .made = true});
    assert_false(known(rig, "/none"));
    assert_true(known(rig, "/e/g"));
}

static void keep_absent(struct rig *rig, const char *path, uint32_t name)
{
    struct df_cache_key key = key_of(rig, path, 0);
    struct df_cacher_ticket ticket = df_cacher_ask(&rig->cacher, 0);
    struct stat none = {0};

    ticket.absent = name;
    df_cacher_keep(&rig->cacher, 0, ticket, &key, -ENOENT, &none, UINT64_MAX);
}

/* Of another stripe than 7. */
enum { ONE = 7, OTHER = 8 };

static void a_file_that_is_made_ends_that_its_name_was_absent(void **state)
{
    struct rig *rig = *state;

    keep_absent(rig, "/one", ONE);
    keep_absent(rig, "/other", OTHER);
    keep_absent(rig, "/way/one", 0);
    change_told(rig, (struct df_changes){.listings = true, .made = true, .name = ONE});
    assert_false(known(rig, "/one") || known(rig, "/way/one"));
    assert_true(known(rig, "/other"));
    change_told(rig, (struct df_changes){.listings = true, .made = true});
    assert_false(known(rig, "/other"));
}

static void a_path_that_leads_elsewhere_ends_all_answers(void **state)
{
    struct rig *rig = *state;
    uint64_t before = listings(rig);

    keep_three(rig);
    change_told(rig, (struct df_changes){.listings = true, .moved = true});
    assert_false(known(rig, "/e/g") || known(rig, "/none"));
    assert_int_equal(listings(rig), before);
}

static void what_is_not_told_ends_all(void **state)
{
    struct rig *rig = *state;
    uint64_t before = listings(rig);
    struct df_changes changes = {.answers = true, .listings = true};

    keep_three(rig);
    change_told(rig, (struct df_changes){.listings = false});
    assert_true(listings(rig) > before);
    assert_true(known(rig, "/e/g"));
    df_changes_object(&changes, 0); /* whose number nobody knows */
    assert_false(changes.answers);
    for (int i = 0; i <= DF_CHANGES_MAX; i++)
        df_changes_directory(&changes, 1);
    assert_false(changes.listings);
    before = listings(rig);
    change(rig, DF_CACHE_FILE, 0);
    assert_int_equal(listings(rig), before); /* it has no names in it */
    df_cacher_forget(&rig->cacher);
    assert_true(listings(rig) > before);
}

static void an_answer_that_a_told_change_met_is_not_kept(void **state)
{
    struct rig *rig = *state;
    struct df_cache_key key = key_of(rig, "/e/g", 0);
    struct stat st = {.st_ino = other, .st_size = 7};
    struct df_cacher_ticket ticket = df_cacher_ask(&rig->cacher, 0);
    struct df_cacher_ticket names = df_cacher_ask_names(&rig->cacher, 0);

    change_told(rig, (struct df_changes){.listings = true});
    df_cacher_keep(&rig->cacher, 0, ticket, &key, 0, &st, UINT64_MAX);
    assert_false(known(rig, "/e/g"));
    assert_false(df_cacher_same_names(&rig->cacher, 0, names));
    names = df_cacher_ask_names(&rig->cacher, 0);
    assert_true(df_cacher_same_names(&rig->cacher, 0, names));
}

/* ---- how long
 * ------------------------------------------------------------------------------------ */

static void a_change_of_one_file_ends_its_answers(void **state)
{
    struct rig *rig = *state;

    keep(rig, "/f", 0, 5, UINT64_MAX);
    keep(rig, "/g", 0, 6, UINT64_MAX);
    change(rig, DF_CACHE_FILE, 5);
    assert_false(known(rig, "/f"));
    assert_true(known(rig, "/g"));
}

static void a_change_of_names_ends_all(void **state)
{
    struct rig *rig = *state;

    keep(rig, "/f", 0, 5, UINT64_MAX);
    change(rig, DF_CACHE_NAMES, 0);
    assert_false(known(rig, "/f"));
    keep(rig, "/f", 0, 5, UINT64_MAX);
    change(rig, DF_CACHE_FILE, 0); /* of a file that is not known */
    assert_false(known(rig, "/f"));
    keep(rig, "/f", 0, 5, UINT64_MAX);
    df_cacher_forget(&rig->cacher);
    assert_false(known(rig, "/f"));
}

static void an_answer_that_a_change_met_is_not_kept(void **state)
{
    struct rig *rig = *state;
    struct df_cache_key key = key_of(rig, "/f", 0);
    struct stat st = {.st_ino = 5, .st_size = 7};
    struct df_cacher_ticket ticket = df_cacher_ask(&rig->cacher, 0);

    change(rig, DF_CACHE_FILE, 5); /* began and ended meanwhile */
    df_cacher_keep(&rig->cacher, 0, ticket, &key, 0, &st, UINT64_MAX);
    assert_false(known(rig, "/f"));
    ticket = df_cacher_ask(&rig->cacher, 0);
    df_cacher_begin(&rig->cacher, 0, DF_CACHE_FILE); /* began meanwhile */
    df_cacher_keep(&rig->cacher, 0, ticket, &key, 0, &st, UINT64_MAX);
    assert_false(known(rig, "/f"));
    ticket = df_cacher_ask(&rig->cacher, 0); /* was under way before */
    df_cacher_end(&rig->cacher, 0, DF_CACHE_FILE, 5);
    df_cacher_keep(&rig->cacher, 0, ticket, &key, 0, &st, UINT64_MAX);
    assert_false(known(rig, "/f"));
}

static void belief_ends_with_the_time_the_plugin_gave(void **state)
{
    struct rig *rig = *state;
    struct timespec begin, now;

    keep(rig, "/f", 0, 5, 0);
    assert_false(known(rig, "/f"));
    clock_gettime(CLOCK_MONOTONIC, &begin);
    do { /* the clocks are compared over ten milliseconds before a time can be told */
        keep(rig, "/f", 0, 5, 20000000);
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while (!known(rig, "/f") && now.tv_sec - begin.tv_sec < 5);
    assert_true(known(rig, "/f"));
    while (known(rig, "/f") && now.tv_sec - begin.tv_sec < 5)
        clock_gettime(CLOCK_MONOTONIC, &now);
    assert_false(known(rig, "/f"));
}

/* ---- many at once
 * -------------------------------------------------------------------------------- */

struct race {
    struct rig *rig;
    _Atomic bool over;
    _Atomic unsigned torn, hits;
};

/* Every word of an answer is the same number. */
static void *answer_all(void *argument)
{
    struct race *race = argument;
    struct df_cache_key key = key_of(race->rig, "/same", 0);

    for (int64_t i = 1; i < 20000; i++) {
        struct stat st;
        int64_t words[sizeof(st) / 8];

        for (size_t w = 0; w < sizeof(words) / 8; w++)
            words[w] = i;
        memcpy(&st, words, sizeof(words));
        df_cacher_keep(&race->rig->cacher, 0, df_cacher_ask(&race->rig->cacher, 0), &key, 0, &st,
                       UINT64_MAX);
    }
    atomic_store(&race->over, true);
    return NULL;
}

static void *read_all(void *argument)
{
    struct race *race = argument;

    while (!atomic_load(&race->over)) {
        int64_t words[sizeof(struct stat) / 8];
        struct stat st;
        int result;

        if (!ask(race->rig, "/same", 0, &result, &st) || result != 0)
            continue;
        atomic_fetch_add(&race->hits, 1);
        memcpy(words, &st, sizeof(words));
        for (size_t w = 1; w < sizeof(words) / 8; w++)
            if (words[w] != words[0])
                atomic_fetch_add(&race->torn, 1);
    }
    return NULL;
}

static void no_answer_is_read_in_half(void **state)
{
    struct race race = {.rig = *state};
    pthread_t writers[2], readers[2];

    keep(race.rig, "/same", -ENOENT, 0, UINT64_MAX);
    for (int i = 0; i < 2; i++) {
        pthread_create(&readers[i], NULL, read_all, &race);
        pthread_create(&writers[i], NULL, answer_all, &race);
    }
    for (int i = 0; i < 2; i++) {
        pthread_join(writers[i], NULL);
        pthread_join(readers[i], NULL);
    }
    assert_int_equal(race.torn, 0);
}

/* A directory that one thread changes, file by file, while others answer ahead for all of it, as
 * after a listing (server/ahead.c). */
#define FILES 16

struct changing {
    struct rig *rig;
    _Atomic off_t sizes[FILES]; /* what the host knows of each */
    _Atomic bool over;
};

struct file_name {
    char text[16];
};

static struct file_name name_of_file(unsigned i)
{
    struct file_name name;

    snprintf(name.text, sizeof(name.text), "/d/%u", i);
    return name;
}

static void *answer_ahead(void *argument)
{
    struct changing *changing = argument;
    struct df_cacher *cacher = &changing->rig->cacher;

    while (!atomic_load(&changing->over))
        for (unsigned i = 0; i < FILES; i++) {
            struct df_cache_key key =
                key_of(changing->rig, name_of_file(i).text, DF_WHERE_NOFOLLOW);
            struct df_cacher_ticket ticket = df_cacher_ask(cacher, 0);
            struct stat st = {.st_ino = 100 + i, .st_size = atomic_load(&changing->sizes[i])};

            sched_yield(); /* what is known now may be kept much later */
            df_cacher_keep(cacher, 0, ticket, &key, 0, &st, UINT64_MAX);
        }
    return NULL;
}

/* Of one file, or of what a told change of owners and modes does to it. */
static void change_size(struct changing *changing, unsigned i, off_t size)
{
    struct df_changes told = {.listings = true, .answers = true};
    struct df_cacher *cacher = &changing->rig->cacher;
    enum df_cache_change kind = size % 2 ? DF_CACHE_FILE : DF_CACHE_NAMES;

    df_cacher_begin(cacher, 0, kind);
    atomic_store(&changing->sizes[i], size);
    df_changes_object(&told, 100 + i);
    if (kind == DF_CACHE_FILE)
        df_cacher_end(cacher, 0, kind, 100 + i);
    else
        df_cacher_end_told(cacher, 0, &told);
}

static void nobody_is_answered_what_was_before_a_change(void **state)
{
    struct changing changing = {.rig = *state};
    unsigned stale = 0, found = 0;
    pthread_t threads[2];

    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, answer_ahead, &changing);
    for (off_t size = 1; size < 3000 || (found == 0 && size < 3000000); size++)
        for (unsigned i = 0; i < FILES; i++) {
            struct file_name name = name_of_file(i);
            struct stat st;
            int result;

            if (ask(changing.rig, name.text, DF_WHERE_NOFOLLOW, &result, &st)) {
                found++;
                stale += st.st_size != size - 1;
            }
            change_size(&changing, i, size);
            if (ask(changing.rig, name.text, DF_WHERE_NOFOLLOW, &result, &st))
                stale += st.st_size != size;
        }
    atomic_store(&changing.over, true);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(stale, 0);
    assert_true(found > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        TEST(an_answer_is_for_its_question),
        TEST(what_is_open_is_found_by_its_handle),
        TEST(what_lstat_was_told_is_true_for_stat),
        TEST(a_slash_asks_for_the_name_and_follows_links),
        TEST(an_answer_is_for_who_asked),
        TEST(that_there_is_none_is_an_answer),
        TEST(a_name_that_is_removed_ends_the_answers_about_it),
        TEST(a_name_that_is_made_ends_what_was_absent),
        TEST(a_file_that_is_made_ends_that_its_name_was_absent),
        TEST(a_path_that_leads_elsewhere_ends_all_answers),
        TEST(what_is_not_told_ends_all),
        TEST(an_answer_that_a_told_change_met_is_not_kept),
        TEST(a_change_of_one_file_ends_its_answers),
        TEST(a_change_of_names_ends_all),
        TEST(an_answer_that_a_change_met_is_not_kept),
        TEST(belief_ends_with_the_time_the_plugin_gave),
        TEST(no_answer_is_read_in_half),
        TEST(nobody_is_answered_what_was_before_a_change),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
