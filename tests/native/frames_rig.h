/*
 * frames_rig.h - a segment with room for a megabyte of pages, or more, and the server's halves of
 * its caches.
 */
#ifndef DF_TESTS_FRAMES_RIG_H
#define DF_TESTS_FRAMES_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "segment/frames.h"
#include "segment/segment.h"

#define FRAMES ((size_t)1 << 20) /* bytes */
#define PAGE   DF_FRAME_SIZE
#define MOUNT  7 /* id; its index is 0 */

struct rig {
    struct df_own_segment own;
    struct df_cacher cacher;
    struct df_framer framer;
};

static inline int set_up_for(void **state, size_t size)
{
    struct rig *rig = calloc(1, sizeof(*rig));

    assert_int_equal(df_segment_create(&rig->own, DF_CACHE_ENTRIES_LEAST, size), 0);
    df_cacher_init(&rig->cacher, rig->own.segment);
    df_cacher_mount(&rig->cacher, 0);
    df_framer_init(&rig->framer, rig->own.segment, &rig->cacher);
    *state = rig;
    return 0;
}

static inline int set_up(void **state)
{
    return set_up_for(state, FRAMES);
}

static inline int tear_down(void **state)
{
    struct rig *rig = *state;

    df_framer_free(&rig->framer);
    df_segment_end(&rig->own);
    df_segment_free(&rig->own);
    free(rig);
    return 0;
}

#endif
