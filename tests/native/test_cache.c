/*
 * test_cache.c - the cache in the segment: when an answer is kept, how long it is believed, and
 * that nobody ever reads half of one.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "channel/sys.h"
#include "core/clock.h"
#include "server/cache.h"
#include "server/segment.h"

struct rig {
    struct df_own_segment own;
    struct df_cacher cacher;
    struct df_caller caller;
};

static int set_up(void **state)
{
    struct rig *rig = calloc(1, sizeof(*rig));

    assert_int_equal(df_segment_create(&rig->own, sizeof(struct df_cache), 0), 0);
    df_cacher_init(&rig->cacher, rig->own.segment);
    df_cacher_mount(&rig->cacher, 0);
    *state = rig;
    return 0;
}

static int tear_down(void **state)
{
    struct rig *rig = *state;

    df_cacher_free(&rig->cacher);
    df_segment_end(&rig->own);
    df_segment_free(&rig->own);
    free(rig);
    return 0;
}

static struct df_cache_key key_of(struct rig *rig, const char *name, uint32_t flags)
{
    struct df_trip_where where = {.name = name, .len = (uint32_t)strlen(name), .flags = flags};
    struct df_cache_key key;

    df_cache_key(rig->cacher.cache, 1, &rig->caller, &where, 0, &key);
    return key;
}

static void keep(struct rig *rig, const char *name, int result, ino_t ino, uint64_t valid_ns)
{
    struct stat st = {.st_ino = ino, .st_size = 7};
    struct df_cache_key key = key_of(rig, name, 0);

    df_cacher_keep(&rig->cacher, 0, df_cacher_ask(&rig->cacher, 0), &key, result, &st, valid_ns);
}

static bool ask(struct rig *rig, const char *name, uint32_t flags, int *result, struct stat *st)
{
    struct df_link link = {.segment = rig->own.segment};
    struct df_trip trip = {.link = &link, .caller = &rig->caller, .mount = 1};
    struct df_trip_where where = {.name = name, .len = (uint32_t)strlen(name), .flags = flags};

    return df_cache_read(&trip, &where, 0, result, st);
}

static bool known(struct rig *rig, const char *name)
{
    struct stat st;
    int result;

    return ask(rig, name, 0, &result, &st) &&
           (result == -ENOENT || (result == 0 && st.st_size == 7));
}

static void change(struct rig *rig, enum df_cache_change kind, uint64_t ino)
{
    df_cacher_begin(&rig->cacher, 0, kind);
    df_cacher_end(&rig->cacher, 0, kind, ino);
}

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

static void it_is_bounded_and_replaces(void **state)
{
    struct rig *rig = *state;
    unsigned found = 0;
    char name[32];

    for (int i = 0; i < 100000; i++) {
        snprintf(name, sizeof(name), "/file-%d", i);
        keep(rig, name, 0, (ino_t)i, UINT64_MAX);
    }
    assert_true(known(rig, name)); /* the newest */
    for (int i = 0; i < 100000; i++) {
        snprintf(name, sizeof(name), "/file-%d", i);
        found += known(rig, name);
    }
    assert_in_range(found, DF_CACHE_ENTRIES / 2, DF_CACHE_ENTRIES);
}

/* ---- where they lie ---------------------------------------------------------------------------
 */

#define FEW 300

static void keep_few(struct rig *rig, char kind)
{
    char name[32];

    for (int i = 0; i < FEW; i++) {
        snprintf(name, sizeof(name), "/%c-%d", kind, i);
        keep(rig, name, 0, (ino_t)i + 1, UINT64_MAX);
    }
}

/* Answers that are known, each with the attributes of its own file. */
static unsigned count_few(struct rig *rig, char kind)
{
    unsigned found = 0;

    for (int i = 0; i < FEW; i++) {
        struct stat st;
        char name[32];
        int result;

        snprintf(name, sizeof(name), "/%c-%d", kind, i);
        found += ask(rig, name, 0, &result, &st) && result == 0 && st.st_ino == (ino_t)i + 1;
    }
    return found;
}

/* Entries that stand for some answer, of the first `count` and of all. */
static unsigned count_entries(struct rig *rig, unsigned count)
{
    unsigned found = 0;

    for (unsigned i = 0; i < count; i++)
        found += rig->cacher.cache->entries[i].hash[0] != 0;
    return found;
}

static void few_answers_lie_together(void **state)
{
    struct rig *rig = *state;

    keep_few(rig, 'a');
    assert_int_equal(count_few(rig, 'a'), FEW);
    assert_int_equal(count_entries(rig, FEW), FEW);
    keep_few(rig, 'a'); /* each in its own place */
    assert_int_equal(rig->cacher.entries.used, FEW);
}

static void a_server_that_begins_again_goes_on_behind_them(void **state)
{
    struct rig *rig = *state;

    keep_few(rig, 'a');
    df_cacher_free(&rig->cacher);
    df_cacher_init(&rig->cacher, rig->own.segment);
    df_cacher_mount(&rig->cacher, 0);
    assert_int_equal(count_few(rig, 'a'), 0);
    keep_few(rig, 'a');
    keep_few(rig, 'b');
    assert_int_equal(count_few(rig, 'a'), FEW);
    assert_int_equal(count_few(rig, 'b'), FEW);
    assert_int_equal(count_entries(rig, 2 * FEW), 2 * FEW);
    assert_int_equal(rig->cacher.entries.used, 2 * FEW);
}

/* A client may write to the table; nothing outside of it is looked at, by it or by the server. */
static void what_is_scribbled_there_is_not_believed(void **state)
{
    struct rig *rig = *state;

    keep_few(rig, 'a');
    for (unsigned i = 0; i < DF_CACHE_ENTRIES; i++)
        rig->cacher.cache->ways[i / DF_CACHE_WAYS][i % DF_CACHE_WAYS] |= 0xffff;
    assert_int_equal(count_few(rig, 'a'), 0);
    keep_few(rig, 'b');
    df_cacher_free(&rig->cacher);
    df_cacher_init(&rig->cacher, rig->own.segment);
    df_cacher_mount(&rig->cacher, 0);
    keep_few(rig, 'b');
}

static void where_there_is_no_memory_answers_give_way(void **state)
{
    struct rig *rig = *state;

    keep_few(rig, 'a');
    rig->cacher.entries.made = rig->cacher.entries.used;
    rig->cacher.entries.failed =
        df_clock_coarse() + INT64_C(3600000000000); /* no attempt meanwhile */
    keep_few(rig, 'b');
    assert_int_equal(rig->cacher.entries.used, FEW);
    assert_in_range(count_few(rig, 'b'), 1, FEW);
}

struct keeping {
    struct rig *rig;
    char kind;
};

static void *keep_often(void *argument)
{
    struct keeping *keeping = argument;

    for (int i = 0; i < 20; i++)
        keep_few(keeping->rig, keeping->kind);
    return NULL;
}

static void two_that_keep_at_once_share_no_entry(void **state)
{
    struct keeping keeping[] = {{*state, 'a'}, {*state, 'b'}};
    struct rig *rig = *state;
    pthread_t threads[2];

    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, keep_often, &keeping[i]);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(count_few(rig, 'a'), FEW);
    assert_int_equal(count_few(rig, 'b'), FEW);
    assert_int_equal(count_entries(rig, 2 * FEW), 2 * FEW);
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
        TEST(it_is_bounded_and_replaces),
        TEST(few_answers_lie_together),
        TEST(a_server_that_begins_again_goes_on_behind_them),
        TEST(what_is_scribbled_there_is_not_believed),
        TEST(where_there_is_no_memory_answers_give_way),
        TEST(two_that_keep_at_once_share_no_entry),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
