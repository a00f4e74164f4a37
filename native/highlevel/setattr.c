/*
 * setattr.c - changing attributes: mode, owner, size, times, and the setuid and setgid that go with
 * them.
 */
#include <string.h>
#include <sys/stat.h>

#include "core/check.h"
#include "highlevel/walk.h"
#include "host/permission.h"

/* An object whose attributes are set: by path, by handle, or both. */
struct target {
    const char *path;
    struct fuse_file_info *fi;
    mode_t mode; /* its type, and permission bits if they were asked for */
    bool strips; /* nobody asked for the mode: it goes without setuid and setgid */
};

static int set_owner(const struct fuse_operations *ops, const struct target *target,
                     const struct df_setattr *set)
{
    if (!ops->chown)
        return -ENOSYS;
    return df_answer_error(ops->chown(target->path, set->valid & DF_SET_UID ? set->uid : (uid_t)-1,
                                      set->valid & DF_SET_GID ? set->gid : (gid_t)-1, target->fi));
}

static struct timespec time_to_set(const struct df_setattr *set, uint32_t valid, uint32_t now,
                                   const struct timespec *time)
{
    if (!(set->valid & valid))
        return (struct timespec){.tv_nsec = UTIME_OMIT};
    return set->valid & now ? (struct timespec){.tv_nsec = UTIME_NOW} : *time;
}

static int set_times(const struct fuse_operations *ops, const struct target *target,
                     const struct df_setattr *set)
{
    const struct timespec times[2] = {
        time_to_set(set, DF_SET_ATIME, DF_SET_ATIME_NOW, &set->atime),
        time_to_set(set, DF_SET_MTIME, DF_SET_MTIME_NOW, &set->mtime),
    };
    return ops->utimens ? df_answer_error(ops->utimens(target->path, times, target->fi)) : -ENOSYS;
}

/* In libfuse's order: mode, owner, size, times; the first that fails ends it. */
static int apply(const struct df_frame *frame, const struct target *target,
                 const struct df_setattr *set)
{
    const struct fuse_operations *ops = &frame->hl->ops;
    int result = 0;

    if (set->valid & DF_SET_MODE)
        result = ops->chmod ? df_answer_error(ops->chmod(
                                  target->path, (target->mode & S_IFMT) | set->mode, target->fi))
                            : -ENOSYS;
    if (target->strips)
        result = df_permission_stripped(frame->call, result);
    if (result == 0 && set->valid & (DF_SET_UID | DF_SET_GID))
        result = set_owner(ops, target, set);
    if (result == 0 && set->valid & DF_SET_SIZE)
        result = ops->truncate ? df_answer_error(ops->truncate(target->path, set->size, target->fi))
                               : -ENOSYS;
    if (result == 0 && set->valid & (DF_SET_ATIME | DF_SET_MTIME))
        result = set_times(ops, target, set);
    return result;
}

/* setuid and setgid go with a change of owner, also root's, and with a change of size. */
static bool takes_privileges(const struct df_frame *frame, mode_t mode,
                             const struct df_setattr *set)
{
    if (set->valid & (DF_SET_UID | DF_SET_GID) && !S_ISDIR(mode))
        return !(frame->hl->want & FUSE_CAP_HANDLE_KILLPRIV);
    return set->valid & DF_SET_SIZE && df_frame_strips(frame);
}

static void strip_privileges(mode_t mode, struct df_setattr *set)
{
    mode_t wanted = (set->valid & DF_SET_MODE ? set->mode : mode) & 07777;

    if (df_check_strip(wanted) == wanted)
        return;
    set->mode = df_check_strip(wanted);
    set->valid |= DF_SET_MODE;
}

static int check_type(mode_t mode, const struct df_setattr *set)
{
    if (set->valid & DF_SET_MODE && S_ISLNK(mode))
        return -EOPNOTSUPP;
    if (set->valid & DF_SET_SIZE && !S_ISREG(mode))
        return S_ISDIR(mode) ? -EISDIR : -EINVAL;
    return 0;
}

static int check_permission(const struct df_frame *frame, const struct stat *st, bool by_name,
                            struct df_setattr *set)
{
    int result = 0;

    if (df_permission_setattr_writes(frame->caller, st, by_name, set))
        result = df_permission_check(frame->caller, st, W_OK);
    return result ? result : df_permission_setattr(frame->caller, st, set);
}

/* May it be set, and what goes with it? Of `st` only the type is known unless
 * needs_attributes(). */
static int prepare(struct df_frame *frame, const struct stat *st, bool by_name,
                   struct df_setattr *set)
{
    int result = check_type(st->st_mode, set);

    if (result == 0 && df_frame_checks(frame))
        result = check_permission(frame, st, by_name, set);
    if (result == 0 && takes_privileges(frame, st->st_mode, set))
        strip_privileges(st->st_mode, set);
    return result;
}

static bool adds_mode(const struct df_setattr *given, const struct df_setattr *set)
{
    return set->valid & ~given->valid & DF_SET_MODE;
}

static bool needs_attributes(const struct df_frame *frame, const struct df_setattr *set)
{
    return df_frame_checks(frame) || takes_privileges(frame, S_IFREG, set);
}

static void leave(struct df_frame *frame, struct df_open_path *node)
{
    df_frame_unhold(frame, node);
    df_open_paths_put(&frame->hl->open_paths, node);
}

/* The node of the place's path, read-locked, with its data_lock. */
static int enter_data(struct df_frame *frame, const struct df_place *place,
                      struct df_open_path **node)
{
    int result = df_open_paths_enter(&frame->hl->open_paths, place->path, place->len, place->key,
                                     df_frame_waiter(frame), place->held, node);

    if (result)
        return result;
    frame->held++;
    result = df_frame_lock_data(frame, *node);
    if (result)
        leave(frame, *node);
    return result;
}

/* A change of size waits for writes, which wait for it (O_APPEND finds the end by getattr). */
static int apply_to_place(struct df_frame *frame, const struct df_place *place,
                          const struct df_setattr *set, bool strips)
{
    struct target target = {.path = place->path, .mode = place->entry.mode, .strips = strips};
    struct df_open_path *node = NULL;
    int result = 0;

    if (set->valid & DF_SET_SIZE)
        result = enter_data(frame, place, &node);
    if (result)
        return result;
    if (node && DF_UNLIKELY(frame->call->changes))
        df_changes_bytes(frame->call->changes, node->serial);
    result = df_place_result(frame, place, apply(frame, &target, set));
    df_entry_cache_forget_attributes(&frame->hl->cache, place->key);
    if (node) {
        df_frame_unlock_data(frame, node);
        leave(frame, node);
    }
    return result;
}

static int set_by_path(struct df_frame *frame, const struct df_where *where,
                       const struct df_setattr *given, struct stat *st)
{
    struct df_setattr set = *given;
    struct df_place place;

    int result =
        df_walk(frame, where, needs_attributes(frame, &set) ? DF_WALK_STAT : 0, &place, st);
    if (result == 0) {
        struct stat known = {.st_mode = place.entry.mode};
        result = prepare(frame, needs_attributes(frame, &set) ? place.st : &known, true, &set);
    }
    if (result == 0)
        result = apply_to_place(frame, &place, &set, adds_mode(given, &set));
    if (result == 0 && st)
        result = df_walk_find(frame, &place, true);
    df_walk_end(frame, &place);
    return result;
}

static int set_by_handle(struct df_frame *frame, struct df_file *file,
                         const struct df_setattr *given, struct stat *st)
{
    struct df_setattr set = *given;
    struct stat now = {.st_mode = S_IFREG};
    union df_file_info fi;
    int result = 0;

    bool resizes = set.valid == DF_SET_SIZE; /* the one that libfuse hands a handle to */
    if (needs_attributes(frame, &set))
        result = df_highlevel_stat_file(frame, file, &now);
    if (resizes && df_handle_is_mute(frame, file, result)) {
        now.st_mode = S_IFREG;
        result = 0;
    }
    if (result == 0)
        result = prepare(frame, &now, false, &set);
    if (result)
        return result;
    df_handle_info(frame, file, &fi);
    struct target target = {.fi = &fi.info, .mode = now.st_mode, .strips = adds_mode(given, &set)};
    struct df_open_path *node = df_handle_of(file)->node;
    bool by_path = frame->hl->needs_paths && set.valid & ~(unsigned)DF_SET_SIZE;
    target.path = df_handle_hold_to_set(frame, file, by_path);
    bool nullpath_ok = frame->hl->config.nullpath_ok && !by_path;
    result = df_frame_lock_data(frame, node);
    if (result == 0) {
        bool may = resizes ? !df_handle_lost(frame, target.path) : target.path || nullpath_ok;
        result = may ? apply(frame, &target, &set) : -ENOENT;
        df_frame_unlock_data(frame, node);
    }
    df_handle_unhold_to_set(frame, file, by_path);
    df_handle_changed(frame, file);
    return result == 0 && st ? df_highlevel_stat_file(frame, file, st) : result;
}

static int set_where(struct df_frame *frame, const struct df_where *where,
                     const struct df_setattr *set, struct stat *st)
{
    struct df_file *file = where->len == 0 ? where->base : NULL;

    if (file && file->kind == DF_KIND_REGULAR && df_handle_of(file)->bits & DF_HANDLE_PLUGIN)
        return set_by_handle(frame, file, set, st);
    return set_by_path(frame, where, set, st);
}

int df_highlevel_setattr(struct df_fs *fs, struct df_call *call, const struct df_where *where,
                         const struct df_setattr *set, struct stat *st)
{
    if (DF_UNLIKELY(call->changes))
        df_changes_bytes_begin(call->changes);
    return DF_IN_FRAME(fs, call, set_where(&frame, where, set, st));
}
