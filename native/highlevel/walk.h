/*
 * walk.h - from a df_where to a verified path (walk.c), and what stands there (look.c).
 */
#ifndef DF_HIGHLEVEL_WALK_H
#define DF_HIGHLEVEL_WALK_H

#include "highlevel/place.h"
#include "host/sane.h"

enum {                          /* how to walk */
       DF_WALK_PARENT = 1 << 0, /* the last component is a name to make, remove or move: not looked
                                   at, not followed */
       DF_WALK_ABSENT = 1 << 1, /* that the object does not exist is an answer, not an error */
       DF_WALK_STAT = 1 << 2,   /* *place->st is wanted */
       DF_WALK_CREATE = 1 << 3, /* a trailing slash means EISDIR */
};

/*
 * Resolves `where`, verifying what is not verified yet. With an empty name the place is the open
 * file's path. Returns 0, a negative errno (those common to all ops, see ops.h), or DF_LEAVE; in
 * each case to be followed by df_walk_end().
 * st: where attributes go with DF_WALK_STAT; NULL: place->own.
 */
int df_walk(struct df_frame *frame, const struct df_where *where, unsigned how,
            struct df_place *place, struct stat *st);
void df_walk_end(struct df_frame *frame, struct df_place *place);

/* Releases the base already; the place's path stays. */
void df_walk_let_go(struct df_frame *frame, struct df_place *place);

/* Looks at the place's object: cache, or plugin. entry.kind becomes PRESENT or ABSENT. */
int df_walk_look(struct df_frame *frame, struct df_place *place, bool attributes);

/* The same where something must be: -ENOENT when nothing is. */
static inline int df_walk_find(struct df_frame *frame, struct df_place *place, bool attributes)
{
    int result = df_walk_look(frame, place, attributes);
    return result == 0 && place->entry.kind == DF_ENTRY_ABSENT ? -ENOENT : result;
}

/* What the cache knows of the place, unasked: entry.kind may stay UNKNOWN. */
static inline void df_walk_recall(struct df_frame *frame, struct df_place *place)
{
    place->asked = false;
    df_entry_cache_look(&frame->hl->cache, place->key, frame->now, &place->entry);
}

/* The text of the symlink at the place, NUL-terminated: its length; -EIO where it does not fit into
 * a page of the kernel's, that is from PATH_MAX bytes on. */
ssize_t df_walk_read_link(struct df_frame *frame, const struct df_place *place,
                          char target[PATH_MAX + 1]);

/* The attributes of the place's directory, believed for their time-out. */
int df_walk_stat_parent(struct df_frame *frame, const struct df_place *place, struct stat *st);

/* The place's object was just made, or changed altogether: looks again, past the cache. `fi`: its
 * handle, or NULL. -ENOENT when nothing is there. */
int df_walk_learn(struct df_frame *frame, struct df_place *place, struct fuse_file_info *fi);

/* Permission to do `mask` (R_OK ...) to the place's object: when modes are ours to check, or in any
 * case. Reads *place->st. */
int df_walk_may(struct df_frame *frame, struct df_place *place, int mask);
int df_walk_permit(struct df_frame *frame, struct df_place *place, int mask);

/* df_walk_may() for a directory on the way. */
int df_walk_may_directory(struct df_frame *frame, const char *path, uint32_t len, int mask);

/* Permission to make a name in the place's directory, likewise. */
int df_walk_may_create(struct df_frame *frame, const struct df_place *place);

/* Configured owner and mode in place of the plugin's. */
void df_highlevel_override(const struct df_frame *frame, struct stat *st);

/* The inode number of a path, without use_ino. */
static inline ino_t df_highlevel_ino(struct df_highlevel *hl, const char *path, uint32_t len,
                                     struct df_path_hash key)
{
    ino_t number = df_number_of(&hl->open_paths.numbers, path, len);
    return df_open_paths_ino(&hl->open_paths, number, key);
}

/* The plugin's answer as stat(2) reports it; -EIO when it makes no sense. `node`: of the open file
 * it was asked of, or NULL: of the path. */
static inline int df_highlevel_fix_stat(const struct df_frame *frame, struct df_open_path *node,
                                        const char *path, uint32_t len, struct df_path_hash key,
                                        struct stat *st)
{
    struct df_highlevel *hl = frame->hl;

    if (DF_UNLIKELY(!df_sane(st)))
        return -EIO;
    if (!hl->config.use_ino)
        st->st_ino = node ? node->ino : df_highlevel_ino(hl, path, len, key);
    df_show(st);
    if (DF_UNLIKELY(hl->overrides))
        df_highlevel_override(frame, st);
    return 0;
}

#endif
