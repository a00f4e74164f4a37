/*
 * test_entry_cache.c - the table of verified paths: expiry, tickets that go stale, forgetting, and
 * threads that look, store and forget at once.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "paths/entry_cache.h"

static struct df_entry_cache cache;
static struct df_entry entry;
static struct stat st;

static const struct stat file = {
    .st_ino = 77,
    .st_mode = S_IFREG | 0640,
    .st_nlink = 3,
    .st_uid = 1000,
    .st_gid = 1001,
    .st_rdev = 5,
    .st_size = 1LL << 40,
    .st_blksize = 4096,
    .st_blocks = 8,
    .st_atim = {-1, 999999999},
    .st_mtim = {1LL << 33, 1},
    .st_ctim = {3, 2},
};

static int setup(void **state)
{
    (void)state;
    return df_entry_cache_init(&cache);
}

static int teardown(void **state)
{
    (void)state;
    df_entry_cache_destroy(&cache);
    return 0;
}

static struct df_path_hash key(const char *path)
{
    return df_entry_cache_key(&cache, path, strlen(path));
}

static enum df_entry_kind look(const char *path, uint64_t now)
{
    df_entry_cache_look(&cache, key(path), now, &entry);
    return entry.kind;
}

static void keep(const char *path, uint64_t expiry, uint64_t attributes)
{
    look(path, 0);
    df_entry_cache_store(&cache, key(path), entry.ticket, &file, expiry, attributes);
}

static void different_paths_have_different_keys(void **state)
{
    (void)state;
    char path[40] = "/";
    struct df_path_hash last = key(path);

    for (size_t len = 2; len < sizeof(path) - 1; len++) { /* across every tail of the hash */
        path[len - 1] = 'a';
        struct df_path_hash next = key(path);
        assert_false(df_path_hash_equal(last, next));
        last = next;
        for (size_t i = 1; i < len; i++) {
            path[i] ^= 1;
            assert_false(df_path_hash_equal(last, key(path)));
            path[i] ^= 1;
        }
    }
}

static void what_was_stored_is_found_until_it_expires(void **state)
{
    (void)state;
    assert_int_equal(look("/a", 5), DF_ENTRY_UNKNOWN);
    keep("/a", 100, 50);
    assert_int_equal(look("/a", 49), DF_ENTRY_PRESENT);
    assert_true(entry.attributes);
    assert_int_equal(entry.ino, 77);
    assert_int_equal(entry.expiry, 100);
    assert_true(df_entry_cache_stat(&cache, key("/a"), &entry, &st));
    assert_memory_equal(&st, &file, sizeof(st));
    assert_int_equal(look("/a", 50), DF_ENTRY_PRESENT);
    assert_false(entry.attributes);
    assert_int_equal(look("/a", 100), DF_ENTRY_UNKNOWN);
    keep("/a", 0, 50); /* attributes may outlive the entry: an open file has no use for names */
    assert_int_equal(look("/a", 10), DF_ENTRY_UNKNOWN);
    assert_true(entry.attributes);
}

static void absence_is_known_too(void **state)
{
    (void)state;
    look("/none", 0);
    df_entry_cache_store_absent(&cache, key("/none"), entry.ticket, 10);
    assert_int_equal(look("/none", 9), DF_ENTRY_ABSENT);
    assert_false(entry.attributes);
    assert_int_equal(look("/none", 10), DF_ENTRY_UNKNOWN);
}

static void an_answer_older_than_a_change_is_not_stored(void **state)
{
    (void)state;
    look("/a", 0);
    struct df_entry_ticket ticket = entry.ticket;

    df_entry_cache_forget(&cache, key("/a")); /* nothing was there, still: a change */
    df_entry_cache_store(&cache, key("/a"), ticket, &file, 100, 100);
    assert_int_equal(look("/a", 0), DF_ENTRY_UNKNOWN);

    look("/a", 0);
    ticket = entry.ticket;
    df_entry_cache_forget_attributes(&cache, key("/a"));
    df_entry_cache_store(&cache, key("/a"), ticket, &file, 100, 100);
    assert_int_equal(look("/a", 0), DF_ENTRY_UNKNOWN);

    look("/a", 0);
    ticket = entry.ticket;
    df_entry_cache_flush(&cache);
    df_entry_cache_store(&cache, key("/a"), ticket, &file, 100, 100);
    assert_int_equal(look("/a", 0), DF_ENTRY_UNKNOWN);
}

static void forgetting_is_exact(void **state)
{
    (void)state;
    keep("/a", 100, 100);
    keep("/b", 100, 100);
    df_entry_cache_forget_attributes(&cache, key("/a"));
    assert_int_equal(look("/a", 0), DF_ENTRY_PRESENT);
    assert_false(entry.attributes);
    assert_true(df_entry_cache_forget(&cache, key("/a")));
    assert_false(df_entry_cache_forget(&cache, key("/a")));
    assert_int_equal(look("/a", 0), DF_ENTRY_UNKNOWN);
    assert_int_equal(look("/b", 0), DF_ENTRY_PRESENT);
    assert_true(entry.attributes);
    df_entry_cache_flush(&cache);
    assert_int_equal(look("/b", 0), DF_ENTRY_UNKNOWN);
}

static void what_is_read_keeps_what_is_not_a_time(void **state)
{
    (void)state;
    keep("/a", 100, 100);
    df_entry_cache_accessed(&cache, key("/b"));
    look("/a", 0);
    assert_true(entry.attributes);
    df_entry_cache_accessed(&cache, key("/a"));
    assert_int_equal(look("/a", 0), DF_ENTRY_PRESENT);
    assert_false(entry.attributes);
    assert_true(entry.lasting);
    assert_true(df_entry_cache_stat(&cache, key("/a"), &entry, &st));
    assert_int_equal(st.st_mode, file.st_mode);
    look("/a", 100);
    assert_false(entry.lasting);

    look("/a", 0);
    df_entry_cache_store(&cache, key("/a"), entry.ticket, &file, 100, 100);
    look("/a", 0);
    assert_true(entry.attributes);
    df_entry_cache_accessed(&cache, key("/a"));
    df_entry_cache_forget_attributes(&cache, key("/a"));
    look("/a", 0);
    assert_false(entry.lasting);
}

static void two_paths_of_one_slot_take_turns(void **state)
{
    (void)state;
    struct df_path_hash a = key("/a"), b = a;

    b.high ^= 1; /* another path that falls into the same slot */
    keep("/a", 100, 100);
    df_entry_cache_look(&cache, b, 0, &entry);
    assert_int_equal(entry.kind, DF_ENTRY_UNKNOWN);
    assert_false(df_entry_cache_forget(&cache, b)); /* not its own: "/a" stays */
    assert_int_equal(look("/a", 0), DF_ENTRY_PRESENT);
    df_entry_cache_look(&cache, b, 0, &entry);
    df_entry_cache_store(&cache, b, entry.ticket, &file, 100, 100);
    assert_int_equal(look("/a", 0), DF_ENTRY_UNKNOWN);
    df_entry_cache_look(&cache, b, 0, &entry);
    assert_int_equal(entry.kind, DF_ENTRY_PRESENT);
}

static void paths_that_come_one_after_the_other_lie_together(void **state)
{
    (void)state;
    enum { PAGE = 4096, PATHS = 1000 };
    static unsigned char resident[DF_ENTRY_PLACES * 130 / PAGE + 1];
    char *end = (char *)(cache.places + DF_ENTRY_PLACES), path[16];
    size_t size = (size_t)(end - (char *)cache.slots), pages = 0;

    madvise(cache.slots, size, MADV_NOHUGEPAGE);
    for (int i = 0; i < PATHS; i++) {
        snprintf(path, sizeof(path), "/%d", i);
        keep(path, 100, 100);
    }
    assert_int_equal(mincore(cache.slots, size, resident), 0);
    for (size_t i = 0; i < sizeof(resident); i++)
        pages += resident[i] & 1;
    assert_in_range(pages, PATHS * 128 / PAGE, PATHS * 128 / PAGE + 40);
}

static void when_all_slots_are_given_out_places_share_them(void **state)
{
    (void)state;
    keep("/a", 100, 100);
    atomic_store(&cache.given, DF_ENTRY_SLOTS); /* the next is that of "/a" */
    assert_int_equal(look("/b", 0), DF_ENTRY_UNKNOWN);
    assert_int_equal(look("/a", 0), DF_ENTRY_PRESENT);
    keep("/b", 100, 100);
    assert_int_equal(look("/b", 0), DF_ENTRY_PRESENT);
    assert_int_equal(look("/a", 0), DF_ENTRY_UNKNOWN);
}

static void a_listing_notices_what_is_forgotten_meanwhile(void **state)
{
    (void)state;
    df_entry_cache_forget(&cache, key("/x"));
    uint32_t listing = df_entry_cache_list_begin(&cache);
    assert_true(df_entry_cache_listed(&cache, listing));
    df_entry_cache_forget_attributes(&cache, key("/x"));
    assert_false(df_entry_cache_listed(&cache, listing));
    df_entry_cache_list_end(&cache);
    uint32_t after = atomic_load(&cache.changes);
    df_entry_cache_forget(&cache, key("/x")); /* with no listing nobody counts */
    assert_int_equal(atomic_load(&cache.changes), after);
}

/* ---- threads ---- */

#define LOOKS 50000

/* Every attribute that is stored says the same number in several places. */
static void *store_and_check(void *arg)
{
    unsigned seed = (unsigned)(uintptr_t)arg;
    struct df_entry found;
    struct stat known;

    for (int i = 0; i < LOOKS; i++) {
        uint64_t n = (uint64_t)rand_r(&seed) + 1;
        struct df_path_hash slot = {.low = n % 3, .high = n % 5};
        df_entry_cache_look(&cache, slot, 1, &found);
        if (found.attributes && df_entry_cache_stat(&cache, slot, &found, &known) &&
            ((uint64_t)known.st_size != known.st_ino || known.st_ctim.tv_sec != known.st_size ||
             known.st_ino % 5 != slot.high || known.st_ino % 3 != slot.low))
            return "torn";
        struct stat told = {
            .st_mode = S_IFREG, .st_ino = n, .st_size = (off_t)n, .st_ctim.tv_sec = (time_t)n};
        df_entry_cache_store(&cache, slot, found.ticket, &told, 100, 100);
        if (i % 7 == 0)
            df_entry_cache_forget_attributes(&cache, slot);
        if (i % 11 == 0)
            df_entry_cache_forget(&cache, slot);
        if (i % 101 == 0)
            df_entry_cache_flush(&cache);
    }
    return NULL;
}

static void threads_never_see_half_an_entry(void **state)
{
    (void)state;
    pthread_t threads[3];
    void *result;

    for (uintptr_t i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, store_and_check, (void *)(i + 1));
    for (int i = 0; i < 3; i++) {
        pthread_join(threads[i], &result);
        assert_null(result);
    }
}

/* A value that only grows; whoever forgets after each step never looks back further than it. */
static _Atomic uint64_t truth;

static void *change_and_forget(void *arg)
{
    (void)arg;
    for (int i = 0; i < LOOKS; i++) {
        atomic_fetch_add(&truth, 1);
        df_entry_cache_forget(&cache, key("/value"));
    }
    return NULL;
}

static void *ask_and_store(void *arg)
{
    struct df_entry found;
    struct stat known;

    (void)arg;
    for (int i = 0; i < LOOKS; i++) {
        uint64_t before = atomic_load(&truth);
        df_entry_cache_look(&cache, key("/value"), 1, &found);
        if (found.attributes && df_entry_cache_stat(&cache, key("/value"), &found, &known)) {
            if ((uint64_t)known.st_size + 1 < before) /* the last step may not be forgotten yet */
                return "stale";
            continue;
        }
        struct stat told = {.st_mode = S_IFREG, .st_size = (off_t)atomic_load(&truth)};
        df_entry_cache_store(&cache, key("/value"), found.ticket, &told, 100, 100);
    }
    return NULL;
}

static void nothing_stale_survives_a_forget(void **state)
{
    (void)state;
    pthread_t changer, asker[2];
    void *result;

    pthread_create(&changer, NULL, change_and_forget, NULL);
    for (int i = 0; i < 2; i++)
        pthread_create(&asker[i], NULL, ask_and_store, NULL);
    pthread_join(changer, NULL);
    for (int i = 0; i < 2; i++) {
        pthread_join(asker[i], &result);
        assert_null(result);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(different_paths_have_different_keys),
        TEST(what_was_stored_is_found_until_it_expires),
        TEST(absence_is_known_too),
        TEST(an_answer_older_than_a_change_is_not_stored),
        TEST(forgetting_is_exact),
        TEST(what_is_read_keeps_what_is_not_a_time),
        TEST(two_paths_of_one_slot_take_turns),
        TEST(paths_that_come_one_after_the_other_lie_together),
        TEST(when_all_slots_are_given_out_places_share_them),
        TEST(a_listing_notices_what_is_forgotten_meanwhile),
        TEST(threads_never_see_half_an_entry),
        TEST(nothing_stale_survives_a_forget),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
