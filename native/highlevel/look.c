/*
 * look.c - what stands at a path: from the entry cache or by the plugin's getattr, with
 * the permission to do something to it; and what the cache has to forget after a change.
 */
#include <string.h>

#include "highlevel/ask.h"
#include "host/permission.h"

void df_highlevel_override(const struct df_frame *frame, struct stat *st)
{
    const struct fuse_config *config = &frame->hl->config;

    if (config->set_mode) {
        uint32_t own = S_ISDIR(st->st_mode) ? frame->hl->dmask : frame->hl->fmask;
        st->st_mode = (st->st_mode & S_IFMT) | (0777 & ~(own ? own : config->umask));
    }
    if (config->set_uid)
        st->st_uid = config->uid;
    if (config->set_gid)
        st->st_gid = config->gid;
}

bool df_ask_replaced(struct df_frame *frame, const struct df_place *place, uint32_t renames)
{
    struct df_open_paths *table = &frame->hl->open_paths;

    if (frame->writes || frame->inside)
        return false;
    return df_open_paths_wait_rename(table, place->path, place->len, frame->held == 0,
                                     place->held) ||
           atomic_load(&table->renames) != renames;
}

int df_walk_look(struct df_frame *frame, struct df_place *place, bool attributes)
{
    struct df_entry_cache *cache = &frame->hl->cache;
    struct df_entry *entry = &place->entry;

    df_walk_recall(frame, place);
    if (entry->kind == DF_ENTRY_ABSENT)
        return 0;
    if (entry->kind == DF_ENTRY_PRESENT) {
        if (!attributes)
            return 0;
        if (df_frame_believes(frame, entry) &&
            df_entry_cache_stat(cache, place->key, entry, place->st))
            return 0;
    }
    return df_ask(frame, place, NULL);
}

int df_walk_learn(struct df_frame *frame, struct df_place *place, struct fuse_file_info *fi)
{
    df_place_changed(frame, place);
    df_entry_cache_look(&frame->hl->cache, place->key, frame->now, &place->entry);
    int result = df_ask(frame, place, fi);
    return result == 0 && place->entry.kind == DF_ENTRY_ABSENT ? -ENOENT : result;
}

/* ---- permission ---- */

int df_walk_may(struct df_frame *frame, struct df_place *place, int mask)
{
    return df_frame_checks(frame) ? df_walk_permit(frame, place, mask) : 0;
}

/* Of the attributes what decides about permission, the rest perhaps of before it was read. */
static int look_at_rights(struct df_frame *frame, struct df_place *place)
{
    struct df_entry *entry = &place->entry;

    df_walk_recall(frame, place);
    if (entry->kind == DF_ENTRY_PRESENT && entry->lasting &&
        df_entry_cache_stat(&frame->hl->cache, place->key, entry, place->st))
        return 0;
    return df_walk_look(frame, place, true);
}

/* Mode bits change behind cached attributes: what they refuse is asked once more, as
 * fuse_permission() does. */
int df_walk_permit(struct df_frame *frame, struct df_place *place, int mask)
{
    int result;

    for (;;) {
        result = look_at_rights(frame, place);
        if (result == 0 && place->entry.kind != DF_ENTRY_PRESENT)
            result = -ENOENT;
        if (result)
            return result;
        result = df_permission_check(frame->caller, place->st, mask);
        if (result == 0 || place->asked)
            return result;
        df_entry_cache_forget_attributes(&frame->hl->cache, place->key);
    }
}

/* A place for the first `len` bytes of a path: a directory on the way, or the parent. */
static void place_directory(struct df_frame *frame, struct df_place *dir, const char *path,
                            uint32_t len)
{
    memcpy(dir->buf, path, len);
    dir->buf[len] = '\0';
    dir->path = dir->buf;
    dir->held = NULL;
    dir->directory = NULL;
    dir->special = len == 1;
    dir->len = len;
    dir->st = &dir->own;
    dir->parent_expiry = 0;
    dir->key = df_entry_cache_key(&frame->hl->cache, dir->path, len);
}

int df_walk_may_directory(struct df_frame *frame, const char *path, uint32_t len, int mask)
{
    struct df_place dir;

    place_directory(frame, &dir, path, len);
    return df_walk_may(frame, &dir, mask);
}

int df_walk_may_create(struct df_frame *frame, const struct df_place *place)
{
    if (!df_frame_checks(frame))
        return 0;
    return df_walk_may_directory(frame, place->path, place->parent_len, W_OK | X_OK);
}

int df_walk_stat_parent(struct df_frame *frame, const struct df_place *place, struct stat *st)
{
    struct df_place dir;

    place_directory(frame, &dir, place->path, place->parent_len);
    dir.st = st;
    return df_walk_find(frame, &dir, true);
}
