/*
 * place.c - after the plugin has answered: what the cache has to forget or may keep of a place, and
 * which listings have changed.
 */
#include "highlevel/ask.h"

/* A directory that is open nowhere has no listing that somebody keeps, and none that is opened from
 * now on has one from before. Where a rename came between, the path that the plugin was told may
 * have been another directory's. */
static DF_COLD void tell_directory(const struct df_frame *frame, const struct df_place *place)
{
    struct df_open_paths *table = &frame->hl->open_paths;
    struct df_changes *changes = frame->call->changes;
    struct df_path_hash key = df_place_parent_key(frame, place);
    uint64_t serial = df_open_paths_serial(table, place->path, place->parent_len, key);

    if (serial != 0)
        df_changes_directory(changes, serial);
    if (changes->mark != DF_PATHS_STILL &&
        (atomic_load(&table->renaming) || atomic_load(&table->renames) != changes->mark))
        changes->listings = false;
}

void df_place_changed(const struct df_frame *frame, const struct df_place *place)
{
    struct df_entry_cache *cache = &frame->hl->cache;

    if (DF_UNLIKELY(frame->call->changes))
        tell_directory(frame, place);
    if (!frame->hl->remembers)
        return;
    df_entry_cache_forget(cache, place->key);
    df_entry_cache_forget_attributes(cache,
                                     df_entry_cache_key(cache, place->path, place->parent_len));
}

/* What the ticket is from stands between the look and the operation; whoever removes the name
 * meanwhile makes it void. Of a name that was known to be absent something must be kept. */
void df_place_made(const struct df_frame *frame, const struct df_place *place, mode_t mode,
                   ino_t ino, uint64_t expiry)
{
    struct df_entry_cache *cache = &frame->hl->cache;
    const struct stat st = {.st_mode = mode, .st_ino = ino};
    struct df_entry now;

    if (DF_UNLIKELY(frame->call->changes))
        tell_directory(frame, place);
    if (!frame->hl->remembers)
        return;
    df_entry_cache_forget_attributes(cache,
                                     df_entry_cache_key(cache, place->path, place->parent_len));
    if (S_ISDIR(mode))
        expiry = df_ask_earlier(expiry, place->parent_expiry);
    df_entry_cache_store(cache, place->key, place->entry.ticket, &st, expiry, 0);
    df_entry_cache_look(cache, place->key, frame->now, &now);
    /* What is there after a store that was refused is of the object that had the name before. */
    if (now.kind != DF_ENTRY_PRESENT || now.attributes || now.ino != ino)
        df_entry_cache_forget(cache, place->key);
}

int df_place_result(const struct df_frame *frame, const struct df_place *place, int result)
{
    if (DF_UNLIKELY(result == -ENOENT)) {
        df_entry_cache_forget(&frame->hl->cache, place->key);
        df_open_paths_forget(&frame->hl->open_paths, place->path, place->len, place->key);
    }
    return result;
}
