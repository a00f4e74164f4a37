/*
 * changes.h - what an op has changed of names and attributes, told by the host that has done it to
 * who keeps answers and listings for others (native/server): only the host knows where a name led.
 *
 * Told before the plugin is asked, so that an op that fails half-way has told as well; what it may
 * change, rather than what it has changed.
 */
#ifndef DF_CORE_CHANGES_H
#define DF_CORE_CHANGES_H

#include <stdbool.h>
#include <stdint.h>

#define DF_CHANGES_MAX 4 /* rename: two directories, and a directory in each */

struct df_changes {
    bool listings; /* `directories` are all whose names have changed; else any may be meant */
    bool answers;  /* `objects`, `made` and `moved` are all that getattr shows of it; else anything
                      may be */
    bool made;     /* a name is there that was not: */
    uint32_t name; /* df_changes_name() of it, and nothing is behind it; 0: any, and anything */
    bool moved;    /* paths through what has changed may lead elsewhere, or nowhere, or may be
                      searched by others: the same as !answers */
    bool bytes;    /* `body` is the only file whose bytes have changed, 0: there is none; else it
                      may be any */
    uint32_t directory_count, object_count;
    uint64_t directories[DF_CHANGES_MAX]; /* df_file.body */
    uint64_t objects[DF_CHANGES_MAX];     /* st_ino as getattr shows it */
    uint64_t body;                        /* df_file.body */
    uint64_t mark;                        /* the host's own, between begin and end */
};

/* What tells one name of a file system from most others, by a hash that its host has of it. */
static inline uint32_t df_changes_name(uint32_t hash)
{
    return hash != 0 ? hash : 1;
}

/* The name is there that was not; what is behind it is nothing, or told by `moved`. */
static inline void df_changes_made(struct df_changes *changes, uint32_t hash)
{
    changes->made = true;
    changes->name = df_changes_name(hash);
}

/* The names in a directory, or its "..". */
static inline void df_changes_directory(struct df_changes *changes, uint64_t body)
{
    if (changes->directory_count == DF_CHANGES_MAX)
        changes->listings = false;
    else
        changes->directories[changes->directory_count++] = body;
}

/* What getattr shows of an object, by any of its names; 0: its number is not known. */
static inline void df_changes_object(struct df_changes *changes, uint64_t ino)
{
    if (ino == 0 || changes->object_count == DF_CHANGES_MAX)
        changes->answers = false;
    else
        changes->objects[changes->object_count++] = ino;
}

/* An op that truncates by name begins: which file it is will be told. */
static inline void df_changes_bytes_begin(struct df_changes *changes)
{
    changes->bytes = true;
    changes->body = 0;
}

/* It is this one; a second one, of an op that begins anew, may be any. */
static inline void df_changes_bytes(struct df_changes *changes, uint64_t body)
{
    changes->bytes &= changes->body == 0 || changes->body == body;
    changes->body = body;
}

#endif
