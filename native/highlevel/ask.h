/*
 * ask.h - the plugin's getattr of a place, and what the cache makes of its answer.
 * Inline: the op that asks is then the last function above the plugin's (docs/decisions/013).
 */
#ifndef DF_HIGHLEVEL_ASK_H
#define DF_HIGHLEVEL_ASK_H

#include "highlevel/walk.h"

static inline uint64_t df_ask_earlier(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Keeps what the plugin said of the place. */
static inline void df_ask_store(struct df_frame *frame, struct df_place *place,
                                const struct stat *st)
{
    struct df_highlevel *hl = frame->hl;
    struct df_entry *entry = &place->entry;
    bool same = entry->kind == DF_ENTRY_PRESENT && entry->mode == st->st_mode;
    bool first = entry->mode == 0 && hl->remembers;

    if (!same) /* else the entry lives on as long as it did: attributes do not prolong it */
        entry->expiry = df_frame_until(frame, hl->entry_ns);
    if (!same && S_ISDIR(st->st_mode))
        entry->expiry = df_ask_earlier(entry->expiry, place->parent_expiry);
    if (hl->attr_ns || first || (!same && entry->expiry))
        df_entry_cache_store(&hl->cache, place->key, entry->ticket, st, entry->expiry,
                             df_frame_until(frame, hl->attr_ns));
}

static inline int df_ask_not_there(struct df_frame *frame, struct df_place *place)
{
    struct df_highlevel *hl = frame->hl;

    if (hl->negative_ns)
        df_entry_cache_store_absent(&hl->cache, place->key, place->entry.ticket,
                                    df_frame_until(frame, hl->negative_ns));
    else if (place->entry.mode != 0)
        df_entry_cache_forget(&hl->cache, place->key);
    place->entry.kind = DF_ENTRY_ABSENT;
    return 0;
}

/* A name that is replaced while its file is open is gone for a moment (the file is hidden first);
 * who saw that, while a rename was under way or has come to its end, looks again. */
DF_COLD bool df_ask_replaced(struct df_frame *frame, const struct df_place *place,
                             uint32_t renames);

/* By the open directory that the name is in, if the plugin can (docs/decisions/014). */
static DF_FLAT int df_ask_getattr(struct df_frame *frame, const struct df_place *place,
                                  struct fuse_file_info *fi)
{
    struct df_highlevel *hl = frame->hl;
    union df_file_info directory;

    if (!place->directory || fi)
        return df_answer_error(hl->ops.getattr(place->path, place->st, fi));
    df_handle_info(frame, place->directory, &directory);
    return df_answer_error(
        hl->getattr_at(&directory.info, place->path + place->len - place->name_len, place->st));
}

/* A name of which nothing was known: what the kernel sends LOOKUP for with the directory locked.
 * What it knew till the time-out it sends for without, as for attributes (docs/decisions/027). */
static inline bool df_ask_is_lookup(const struct df_frame *frame, const struct df_place *place,
                                    const struct fuse_file_info *fi)
{
    return place->entry.mode == 0 && !fi && !place->special && df_highlevel_takes_turns(frame->hl);
}

static DF_FLAT int df_ask_plugin(struct df_frame *frame, const struct df_place *place,
                                 struct fuse_file_info *fi)
{
    struct df_name_turn turn;

    if (DF_LIKELY(!df_ask_is_lookup(frame, place, fi)))
        return df_ask_getattr(frame, place, fi);
    df_frame_turn_to_look(frame, &turn, df_place_parent_key(frame, place));
    int result = df_ask_getattr(frame, place, fi);
    df_frame_turn_over(frame, &turn);
    return result;
}

/* `fi`: the object's handle, or NULL. entry: as the cache was looked at before; its kind becomes
 * PRESENT or ABSENT. */
static DF_FLAT int df_ask(struct df_frame *frame, struct df_place *place, struct fuse_file_info *fi)
{
    struct df_highlevel *hl = frame->hl;
    struct stat *st = place->st;
    uint32_t renames;
    int result;

    if (DF_UNLIKELY(!hl->ops.getattr))
        return -ENOSYS;
    do {
        renames = atomic_load(&hl->open_paths.renames);
        memset(st, 0, sizeof(*st));
        result = df_ask_plugin(frame, place, fi);
    } while (DF_UNLIKELY(result == -ENOENT) && df_ask_replaced(frame, place, renames));
    place->asked = true;
    if (DF_UNLIKELY(result == -ENOENT))
        return df_ask_not_there(frame, place);
    if (DF_LIKELY(result == 0))
        result = df_highlevel_fix_stat(frame, NULL, place->path, place->len, place->key, st);
    if (DF_UNLIKELY(result)) {
        df_entry_cache_forget(&hl->cache, place->key);
        return result;
    }
    df_ask_store(frame, place, st);
    place->entry.kind = DF_ENTRY_PRESENT;
    place->entry.mode = st->st_mode;
    place->entry.ino = st->st_ino;
    return 0;
}

#endif
