/*
 * xattr.c - extended attributes. libfuse hands them over by path alone, so an open file
 * is held under its current one.
 */
#include <string.h>
#include <sys/xattr.h>

#include "highlevel/walk.h"
#include "host/acl.h"
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

/* Walks to the object and sees that the attribute may be read (no name: their list). Who has no
 * such op is not supported, but what is wrong with path or name comes first, as in the kernel. */
static ssize_t reach(struct df_frame *frame, const struct df_where *where, const char *name,
                     bool supported, struct df_place *place)
{
    ssize_t result = df_walk(frame, where, 0, place, NULL);

    if (result == 0 && name)
        result = may(frame, place, name, false);
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
    ssize_t result = reach(frame, where, name, supported, &place);
    if (result == 0)
        result = answer(
            frame, &place, DF_MISSING_GETXATTR,
            df_xattr_answer(hl->ops.getxattr(place.path, name, room_for(value, size), size), size));
    if (size > 0 && df_acl_is_name(name))
        result = df_acl_get(value, result);
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
    ssize_t result = reach(frame, where, NULL, supported, &place);
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

struct attribute {
    const char *name;
    const void *value;
    size_t size;
    int flags;
};

/* ---- writing: the ctime changes ---- */

static int put(struct df_frame *frame, const struct df_place *place,
               const struct attribute *attribute)
{
    struct df_highlevel *hl = frame->hl;
    int result;

    if (!hl->ops.setxattr || df_highlevel_lacks(hl, DF_MISSING_SETXATTR))
        return -EOPNOTSUPP;
    result = hl->ops.setxattr(place->path, attribute->name, attribute->value, attribute->size,
                              attribute->flags);
    result = (int)answer(frame, place, DF_MISSING_SETXATTR, df_answer_error(result));
    df_entry_cache_forget_attributes(&hl->cache, place->key);
    return result;
}

static int take_away(struct df_frame *frame, const struct df_place *place, const char *name)
{
    struct df_highlevel *hl = frame->hl;
    int result;

    if (!hl->ops.removexattr || df_highlevel_lacks(hl, DF_MISSING_REMOVEXATTR))
        return -EOPNOTSUPP;
    result = df_answer_error(hl->ops.removexattr(place->path, name));
    result = (int)answer(frame, place, DF_MISSING_REMOVEXATTR, result);
    df_entry_cache_forget_attributes(&hl->cache, place->key);
    return result;
}

/* An access control list; without bytes it is taken away. */
static int set_acl(struct df_frame *frame, const struct df_place *place,
                   const struct attribute *attribute, int refused)
{
    struct attribute list = *attribute;
    int result = df_acl_set(list.name, place->entry.mode, refused, list.value, list.size);

    list.flags = 0;
    if (result == 0)
        return put(frame, place, &list);
    if (result == DF_ACL_ABSENT)
        result = take_away(frame, place, list.name);
    return result == DF_ACL_NEVER || result == -ENODATA ? 0 : result;
}

static int change_there(struct df_frame *frame, struct df_place *place,
                        const struct attribute *attribute, bool removes)
{
    int refused = may(frame, place, attribute->name, true);

    if (df_acl_is_name(attribute->name))
        return set_acl(frame, place, attribute, refused);
    if (refused)
        return refused;
    return removes ? take_away(frame, place, attribute->name) : put(frame, place, attribute);
}

static int change(struct df_frame *frame, const struct df_where *where,
                  const struct attribute *attribute, bool removes)
{
    struct df_place place;
    int result = df_walk(frame, where, 0, &place, NULL);

    if (result == 0)
        result = change_there(frame, &place, attribute, removes);
    df_walk_end(frame, &place);
    return result;
}

int df_highlevel_setxattr(struct df_fs *fs, struct df_call *call, const struct df_where *where,
                          const char *name, const void *value, size_t size, int flags)
{
    const struct attribute attribute = {name, value, size, flags};

    return DF_IN_FRAME(fs, call, change(&frame, where, &attribute, false));
}

int df_highlevel_removexattr(struct df_fs *fs, struct df_call *call, const struct df_where *where,
                             const char *name)
{
    const struct attribute attribute = {.name = name};

    return DF_IN_FRAME(fs, call, change(&frame, where, &attribute, true));
}
