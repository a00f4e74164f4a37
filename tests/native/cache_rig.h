/*
 * cache_rig.h - a segment with a cache of answers, and the server's half of it.
 */
#ifndef DF_TESTS_CACHE_RIG_H
#define DF_TESTS_CACHE_RIG_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "segment/cache.h"
#include "segment/segment.h"

struct rig {
    struct df_own_segment own;
    struct df_cacher cacher;
    struct df_caller caller;
};

static inline int set_up_with(void **state, uint64_t answers)
{
    struct rig *rig = calloc(1, sizeof(*rig));

    assert_int_equal(df_segment_create(&rig->own, answers, 0), 0);
    df_cacher_init(&rig->cacher, rig->own.segment);
    df_cacher_mount(&rig->cacher, 0);
    *state = rig;
    return 0;
}

static inline int set_up(void **state)
{
    return set_up_with(state, DF_CACHE_ENTRIES_LEAST);
}

static inline int tear_down(void **state)
{
    struct rig *rig = *state;

    df_cacher_free(&rig->cacher);
    df_segment_end(&rig->own);
    df_segment_free(&rig->own);
    free(rig);
    return 0;
}

static inline struct df_cache_key key_of(struct rig *rig, const char *name, uint32_t flags)
{
    struct df_trip_where where = {.name = name, .len = (uint32_t)strlen(name), .flags = flags};
    struct df_cache_key key;

    df_cache_key(rig->cacher.cache, 1, &rig->caller, &where, 0, &key);
    return key;
}

static inline void keep(struct rig *rig, const char *name, int result, ino_t ino, uint64_t valid_ns)
{
    struct stat st = {.st_ino = ino, .st_size = 7};
    struct df_cache_key key = key_of(rig, name, 0);

    df_cacher_keep(&rig->cacher, 0, df_cacher_ask(&rig->cacher, 0), &key, result, &st, valid_ns);
}

static inline bool ask(struct rig *rig, const char *name, uint32_t flags, int *result,
                       struct stat *st)
{
    struct df_link link = {.segment = rig->own.segment};
    struct df_trip trip = {.link = &link, .caller = &rig->caller, .mount = 1};
    struct df_trip_where where = {.name = name, .len = (uint32_t)strlen(name), .flags = flags};

    return df_cache_read(&trip, &where, 0, result, st);
}

static inline bool known(struct rig *rig, const char *name)
{
    struct stat st;
    int result;

    return ask(rig, name, 0, &result, &st) &&
           (result == -ENOENT || (result == 0 && st.st_size == 7));
}

static inline void change(struct rig *rig, enum df_cache_change kind, uint64_t ino)
{
    df_cacher_begin(&rig->cacher, 0, kind);
    df_cacher_end(&rig->cacher, 0, kind, ino);
}

#endif
