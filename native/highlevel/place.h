/*
 * place.h - where a name leads, as a walk finds it, and what the cache is told after an operation
 * there.
 */
#ifndef DF_HIGHLEVEL_PLACE_H
#define DF_HIGHLEVEL_PLACE_H

#include "highlevel/handle.h"

/* Where a name leads. */
struct df_place {
    const char *path; /* canonical; in `buf`, in the df_where, or its node's own */
    uint32_t len;
    uint32_t parent_len; /* of its directory's path, a prefix of `path`; 1: the root */
    bool special;        /* "/", ".." or an open file itself: no name that is made or removed, nor
                            looked up in its directory */
    struct df_path_hash key;
    uint32_t changes;          /* with DF_WALK_CREATE: of the directory, before the last look */
    uint32_t removed;          /* likewise: directories, before the walk; for who creates */
    uint64_t parent_expiry;    /* until when the parent is verified; 0: it is not */
    struct df_open_path *held; /* read-locked until df_walk_end() */
    struct df_file *directory; /* open, the object is in it and may be asked for by it; or NULL */
    uint32_t name_len;         /* then: of the path's last component */

    struct df_entry entry; /* kind PRESENT or ABSENT after a lookup, mode and ino */
    bool asked;            /* the plugin was asked in this walk, nothing came from the cache */
    struct stat *st;       /* attributes, with DF_WALK_STAT; &own or the caller's */
    struct stat own;
    char buf[PATH_MAX];
};
static inline struct df_path_hash df_place_parent_key(const struct df_frame *frame,
                                                      const struct df_place *place)
{
    return df_entry_cache_key(&frame->hl->cache, place->path, place->parent_len);
}

/* A name was made or removed: entry and directory are not what they were. */
void df_place_changed(const struct df_frame *frame, const struct df_place *place);

/* The plugin has made the place's object, which was looked at (or recalled) before: its name is
 * believed until `expiry`, as the kernel believes the answer to MKDIR. ino 0: not known. */
void df_place_made(const struct df_frame *frame, const struct df_place *place, mode_t mode,
                   ino_t ino, uint64_t expiry);

/* Passes on a plugin's answer about the place; that it is gone is remembered. */
int df_place_result(const struct df_frame *frame, const struct df_place *place, int result);

#endif
