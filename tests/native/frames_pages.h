/*
 * frames_pages.h - pages of one byte each: put in, and looked for as clients do.
 */
#ifndef DF_TESTS_FRAMES_PAGES_H
#define DF_TESTS_FRAMES_PAGES_H

#include <string.h>

#include "channel/sys.h"
#include "frames_rig.h"

#define UNKNOWN (-1)

static inline struct df_frames_ticket ask(struct rig *rig, uint16_t content)
{
    return df_framer_ask(&rig->framer, 0, content);
}

static inline void believe(struct rig *rig, uint16_t content, off_t size, time_t changed,
                           uint64_t valid_ns)
{
    struct stat st = {.st_size = size, .st_mtim.tv_sec = changed};

    df_framer_believe(&rig->framer, 0, content, &st, valid_ns, false);
}

static inline uint16_t open_body(struct rig *rig, uint64_t body, bool keep)
{
    uint16_t content = df_framer_open(&rig->framer, 0, MOUNT, body, keep);

    if (content)
        believe(rig, content, 0, 0, UINT64_MAX);
    return content;
}

static inline void keep_by(struct rig *rig, const struct df_frames_ticket *ticket, uint64_t page,
                           char byte, size_t size, bool end)
{
    char bytes[4 * PAGE];

    memset(bytes, byte, sizeof(bytes));
    df_framer_keep(&rig->framer, ticket, page, bytes, size, end);
}

static inline void keep(struct rig *rig, uint16_t content, uint64_t page, char byte, size_t size,
                        bool end)
{
    struct df_frames_ticket ticket = ask(rig, content);

    keep_by(rig, &ticket, page, byte, size, end);
}

/* How many bytes a page has, all of them `byte`; or UNKNOWN. */
static inline int known(struct rig *rig, uint16_t content, uint64_t page, char byte)
{
    struct df_frame_view view;
    char bytes[PAGE];

    if (!df_frame_page(rig->framer.frames, content, 0, page, &view))
        return UNKNOWN;
    df_sys_copy_unsure(bytes, view.bytes, view.used);
    if (!df_frame_same(&view))
        return UNKNOWN;
    for (size_t i = 0; i < view.used; i++)
        assert_int_equal(bytes[i], byte);
    return (int)view.used;
}

static inline struct df_frames_changing change(enum df_frames_change kind, uint32_t content,
                                               uint64_t body, off_t offset, size_t size)
{
    return (struct df_frames_changing){.kind = kind,
                                       .mount = MOUNT,
                                       .content = content,
                                       .body = body,
                                       .offset = offset,
                                       .size = size};
}

static inline void write_to(struct rig *rig, uint32_t content, uint64_t body, off_t offset,
                            size_t size)
{
    struct df_frames_changing c = change(DF_FRAMES_RANGE, content, body, offset, size);

    df_framer_begin(&rig->framer, &c);
    df_framer_end(&rig->framer, &c);
}

#endif
