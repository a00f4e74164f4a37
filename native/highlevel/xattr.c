/*
 * xattr.c - extended attributes. libfuse hands them over by path alone, so an open file
 * is held under its current one.
 */
#include <string.h>
#include <sys/xattr.h>

#include "highlevel/walk.h"
#include "host/permission.h"
#include "host/xattr.h"

/* May the attribute `name` of the object be read or written? */
static int may(struct df_frame *frame, struct df_place *place, const char *name, bool write)
{
    bool by_mode = df_permission_xattr_by_mode(name);
    struct stat known = {.st_mode = place->entry.mode};
    int result = 0;

    /* The owner matters to nobody but a writer of ACLs, or in a directory: it may be sticky. */
    if (write && !frame->caller->capable && (S_ISDIR(known.st_mode) || !by_mode) &&
        df_permission_xattr_asks(frame->caller, name, write)) {
        result = df_walk_find(frame, place, true);
        known = place->own;
    }
    if (!frame->hl->check)
        known.st_mode &= ~(mode_t)S_ISVTX; /* no more than in the kernel's inode */
    if (result == 0)
        result = df_permission_xattr(frame->caller, &known, name, write);
    return result || !by_mode ? result : df_walk_may(frame, place, write ? W_OK : R_OK);
}

/* The plugin's answer: ENOSYS is remembered as in the kernel. */
static ssize_t answer(struct df_frame *frame, const struct df_place *place, uint32_t missing,
                      ssize_t result)
{
    if (result == -ENOSYS) {
        df_highlevel_miss(frame->hl, missing);
        return -EOPNOTSUPP;
    }
    return df_place_result(frame, place, (int)df_answer_count(result));
}

/* Walks to the object and sees that the attribute may be read or written (no name: any read). Who
 * has no such op is not supported, but what is wrong with path or name comes first, as in the
 * kernel. */
static ssize_t reach(struct df_frame *frame, const struct df_where *where, const char *name,
                     bool write, bool supported, struct df_place *place)
{
    ssize_t result = df_walk(frame, where, 0, place, NULL);

    if (result == 0 && name)
        result = may(frame, place, name, write);
    if (result == 0 && !supported)
        result = -EOPNOTSUPP;
    return result;
}

/* Where the answer goes. Who asks for its size alone may have named a place; libfuse names none,
 * and plugins tell by that (squashfuse). */
static void *room_for(void *answer, size_t size)
{
    return size > 0 ? answer : NULL;
}

static ssize_t get(struct df_frame *frame, const struct df_where *where, const char *name,
                   void *value, size_t size)
{
    struct df_highlevel *hl = frame->hl;
    struct df_place place;

    bool supported = hl->ops.getxattr && !df_highlevel_lacks(hl, DF_MISSING_GETXATTR);
    ssize_t result = reach(frame, where, name, false, supported, &place);
    if (result == 0)
        result = answer(
            frame, &place, DF_MISSING_GETXATTR,
            df_xattr_answer(hl->ops.getxattr(place.path, name, room_for(value, size), size), size));
    df_walk_end(frame, &place);
    return result;
}

ssize_t df_highlevel_getxattr(struct df_fs *fs, struct df_call *call, const struct df_where *where,
                              const char *name, void *value, size_t size)
{
    return DF_IN_FRAME(fs, call, get(&frame, where, name, value, size));
}

static ssize_t list(struct df_frame *frame, const struct df_where *where, char *names, size_t size)
{
    struct df_highlevel *hl = frame->hl;
    struct df_place place;

    bool supported = hl->ops.listxattr && !df_highlevel_lacks(hl, DF_MISSING_LISTXATTR);
    ssize_t result = reach(frame, where, NULL, false, supported, &place);
    if (result == 0)
        result =
            answer(frame, &place, DF_MISSING_LISTXATTR,
                   df_xattr_list_answer(hl->ops.listxattr(place.path, room_for(names, size), size),
                                        names, size));
    df_walk_end(frame, &place);
    return result;
}

ssize_t df_highlevel_listxattr(struct df_fs *fs, struct df_call *call, const struct df_where *where,
                               char *names, size_t size)
{
    return DF_IN_FRAME(fs, call, list(&frame, where, names, size));
}

static int set(struct df_frame *frame, const struct df_where *where, const char *name,
               const void *value, size_t size, int flags)
{
    struct df_highlevel *hl = frame->hl;
    struct df_place place;

    bool supported = hl->ops.setxattr && !df_highlevel_lacks(hl, DF_MISSING_SETXATTR);
    int result = (int)reach(frame, where, name, true, supported, &place);
    if (result == 0) {
        result =
            (int)answer(frame, &place, DF_MISSING_SETXATTR,
                        df_answer_error(hl->ops.setxattr(place.path, name, value, size, flags)));
        df_entry_cache_forget_attributes(&hl->cache, place.key); /* ctime */
    }
    df_walk_end(frame, &place);
    return result;
}

int df_highlevel_setxattr(struct df_fs *fs, struct df_call *call, const struct df_where *where,
                          const char *name, const void *value, size_t size, int flags)
{
    return DF_IN_FRAME(fs, call, set(&frame, where, name, value, size, flags));
}

static int forget(struct df_frame *frame, const struct df_where *where, const char *name)
{
    struct df_highlevel *hl = frame->hl;
    struct df_place place;

    bool supported = hl->ops.removexattr && !df_highlevel_lacks(hl, DF_MISSING_REMOVEXATTR);
    int result = (int)reach(frame, where, name, true, supported, &place);
    if (result == 0) {
        result = (int)answer(frame, &place, DF_MISSING_REMOVEXATTR,
                             df_answer_error(hl->ops.removexattr(place.path, name)));
        df_entry_cache_forget_attributes(&hl->cache, place.key);
    }
    df_walk_end(frame, &place);
    return result;
}

int df_highlevel_removexattr(struct df_fs *fs, struct df_call *call, const struct df_where *where,
                             const char *name)
{
    return DF_IN_FRAME(fs, call, forget(&frame, where, name));
}
