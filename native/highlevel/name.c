/*
 * name.c - making and removing names: mknod, mkdir, symlink, link, unlink, rmdir.
 * Renaming, and hiding what is open, is in rename.c.
 */
#include <fcntl.h>
#include <string.h>

#include "highlevel/open.h"
#include "highlevel/rename.h"
#include "highlevel/walk.h"
#include "host/permission.h"

/* ---- making ---- */

/* As in filename_create(): what exists is EEXIST, whoever may not write gets EACCES only behind
 * that, and only directories are made under "name/". */
static int check_new(struct df_frame *frame, const struct df_where *where, bool directory,
                     struct df_place *place)
{
    int result = df_walk_look(frame, place, false);

    if (result == 0 && place->entry.kind == DF_ENTRY_PRESENT)
        result = -EEXIST;
    if (result == 0 && !directory && where->flags & DF_WHERE_DIRECTORY)
        result = -ENOENT;
    return result ? result : df_walk_may_create(frame, place);
}

/* A name that is to be made, in the turn of its directory. */
struct new_name {
    struct df_place place;
    struct df_name_turn turn;
};

static void leave_new(struct df_frame *frame, struct new_name *new)
{
    df_frame_turn_over(frame, &new->turn);
    df_walk_end(frame, &new->place);
}

/* DF_COME_AGAIN: a directory was removed meanwhile, perhaps this one; in a removed one the kernel
 * makes nothing. */
static int try_reach_new(struct df_frame *frame, const struct df_where *where, bool directory,
                         struct new_name *new)
{
    uint32_t removed = df_name_turn_removed(&frame->hl->turns);
    struct df_place *place = &new->place;

    new->turn.count = 0;
    df_frame_tells(frame, false);
    int result = df_walk(frame, where, DF_WALK_PARENT, place, NULL);
    if (result)
        return result;
    if (place->special)
        return -EEXIST;
    df_frame_turn(frame, &new->turn, place);
    if (new->turn.count && removed != df_name_turn_removed(&frame->hl->turns))
        return DF_COME_AGAIN;
    if (!df_frame_goes_unseen(frame) || (!directory && where->flags & DF_WHERE_DIRECTORY))
        return check_new(frame, where, directory, place);
    df_walk_recall(frame, place);
    return 0;
}

/* Walks to a name that must not exist yet. Ended by leave_new(). */
static int reach_new(struct df_frame *frame, const struct df_where *where, bool directory,
                     struct new_name *new)
{
    int result;

    while ((result = try_reach_new(frame, where, directory, new)) == DF_COME_AGAIN)
        leave_new(frame, new);
    return result;
}

/* After the operation: what is known of the name, if it has succeeded or not. */
static int made(struct df_frame *frame, const struct df_place *place, int result, mode_t mode,
                ino_t ino)
{
    bool known = result == -EEXIST && place->entry.kind == DF_ENTRY_PRESENT;

    if (result == 0) {
        df_place_made(frame, place, mode, ino, df_frame_until(frame, frame->hl->entry_ns));
        df_open_paths_forget(&frame->hl->open_paths, place->path, place->len, place->key);
    } else if (!known)
        df_place_changed(frame, place);
    return result;
}

/* libfuse makes regular files with create, which plugins do better than mknod, and releases them
 * at once. */
static int make_regular(struct df_highlevel *hl, const char *path, mode_t mode)
{
    union df_file_info fi;

    if (!hl->ops.create)
        return -ENOSYS;
    memset(&fi, 0, sizeof(fi));
    fi.info.flags = O_CREAT | O_EXCL | O_WRONLY;
    int result = df_answer_error(hl->ops.create(path, mode, &fi.info));
    if (result == 0 && hl->ops.release)
        hl->ops.release(path, &fi.info);
    return result;
}

static int make_node(struct df_highlevel *hl, const char *path, mode_t mode, dev_t rdev)
{
    int result = S_ISREG(mode) ? make_regular(hl, path, mode) : -ENOSYS;

    if (result == -ENOSYS && hl->ops.mknod)
        result = df_answer_error(hl->ops.mknod(path, mode, rdev));
    return result;
}

static int mknod_where(struct df_frame *frame, const struct df_where *where, mode_t mode,
                       dev_t rdev)
{
    struct new_name new;

    if (!(mode & S_IFMT))
        mode |= S_IFREG;
    int result = reach_new(frame, where, false, &new);
    if (result == 0) {
        result = make_node(frame->hl, new.place.path, df_frame_mode(frame, mode), rdev);
        made(frame, &new.place, result, mode, 0);
    }
    leave_new(frame, &new);
    return result;
}

int df_highlevel_mknod(struct df_fs *fs, struct df_call *call, const struct df_where *where,
                       mode_t mode, dev_t rdev)
{
    return DF_IN_FRAME(fs, call, mknod_where(&frame, where, mode, rdev));
}

static int mkdir_where(struct df_frame *frame, const struct df_where *where, mode_t mode)
{
    struct df_highlevel *hl = frame->hl;
    struct new_name new;

    int result = reach_new(frame, where, true, &new);
    if (result == 0) {
        mode = df_frame_mode(frame, mode & 01777);
        result = hl->ops.mkdir ? df_answer_error(hl->ops.mkdir(new.place.path, mode)) : -ENOSYS;
        made(frame, &new.place, result, S_IFDIR | mode, 0);
    }
    leave_new(frame, &new);
    return result;
}

int df_highlevel_mkdir(struct df_fs *fs, struct df_call *call, const struct df_where *where,
                       mode_t mode)
{
    return DF_IN_FRAME(fs, call, mkdir_where(&frame, where, mode));
}

static int symlink_where(struct df_frame *frame, const char *target, const struct df_where *where)
{
    struct df_highlevel *hl = frame->hl;
    struct new_name new;

    int result = reach_new(frame, where, false, &new);
    if (result == 0) {
        result =
            hl->ops.symlink ? df_answer_error(hl->ops.symlink(target, new.place.path)) : -ENOSYS;
        made(frame, &new.place, result, S_IFLNK | 0777, 0);
    }
    leave_new(frame, &new);
    return result;
}

int df_highlevel_symlink(struct df_fs *fs, struct df_call *call, const char *target,
                         const struct df_where *where)
{
    return DF_IN_FRAME(fs, call, symlink_where(&frame, target, where));
}

/* vfs_link() of the kernel: an open file whose last name is gone gets no new one. The name that it
 * is hidden by is among its links, and none that anybody has given it. */
static bool is_nameless(struct df_file *file, const struct df_place *from)
{
    return df_open_path_is_hidden(df_handle_of(file)->node) && from->st->st_nlink <= 1;
}

/* To read and write it, if mode bits are ours to check. */
static bool has_rights(const struct df_frame *frame, const struct stat *st)
{
    return !frame->hl->check || df_permission_check(frame->caller, st, R_OK | W_OK) == 0;
}

/* Whether what is there may have another name: no directory, and not all files of others. */
static int may_link(struct df_frame *frame, const struct df_where *what, struct df_place *from)
{
    bool itself = df_where_is_itself(what), capable = frame->caller->capable;
    int result = S_ISDIR(from->entry.mode) ? -EPERM : 0;

    if (result || (capable && !itself))
        return result;
    result = df_walk_find(frame, from, true);
    if (result == 0 && !capable)
        result = df_permission_link(frame->caller, from->st, has_rights(frame, from->st));
    return result == 0 && itself && is_nameless(what->base, from) ? -ENOENT : result;
}

static int link_places(struct df_frame *frame, const struct df_where *what,
                       const struct df_where *where, struct df_place *from)
{
    struct df_highlevel *hl = frame->hl;
    int allowed = may_link(frame, what, from);
    struct new_name new;

    df_call_begin_second(frame->call);
    int result = (int)df_call_end_second(frame->call, reach_new(frame, where, false, &new));
    if (result == 0 && allowed < 0) { /* what is wrong with the new name comes first */
        result = check_new(frame, where, false, &new.place);
        result = result ? result : allowed;
    }
    if (result == 0) {
        result = hl->ops.link ? df_answer_error(hl->ops.link(from->path, new.place.path)) : -ENOSYS;
        made(frame, &new.place, result, from->entry.mode, from->entry.ino);
        df_entry_cache_forget_attributes(&hl->cache, from->key); /* nlink, ctime */
    }
    leave_new(frame, &new);
    return result;
}

static int link_where(struct df_frame *frame, const struct df_where *from,
                      const struct df_where *to)
{
    struct df_place place;

    int result = df_walk(frame, from, 0, &place, NULL);
    if (result == 0)
        result = link_places(frame, from, to, &place);
    df_walk_end(frame, &place);
    return result;
}

int df_highlevel_link(struct df_fs *fs, struct df_call *call, const struct df_where *from,
                      const struct df_where *to)
{
    return DF_IN_FRAME(fs, call, link_where(&frame, from, to));
}

/* ---- removing ---- */

/* The object is known: may this caller remove it so? */
static int may_remove(struct df_frame *frame, const struct df_where *where, struct df_place *place,
                      bool directory)
{
    struct stat parent;
    int result = df_walk_find(frame, place, df_frame_checks(frame));

    if (result)
        return result;
    if (df_frame_checks(frame)) {
        result = df_walk_stat_parent(frame, place, &parent);
        if (result == 0)
            result = df_permission_check(frame->caller, &parent, W_OK | X_OK);
        if (result == 0)
            result = df_permission_sticky(frame->caller, &parent, place->st);
    }
    if (result == 0 && directory && !S_ISDIR(place->entry.mode))
        result = -ENOTDIR;
    if (result == 0 && !directory && S_ISDIR(place->entry.mode))
        result = -EISDIR;
    if (result == 0 && !directory && where->flags & DF_WHERE_DIRECTORY)
        result = -ENOTDIR;
    return result;
}

/* The plugin sees by itself what the object is, unless that is an open file, which is hidden. */
static bool goes_unseen(const struct df_frame *frame, const struct df_where *where,
                        const struct df_open_path *node, bool directory)
{
    return df_frame_goes_unseen(frame) && (directory || !(where->flags & DF_WHERE_DIRECTORY)) &&
           atomic_load(&node->opens) == 0;
}

/* Under the node's write lock: nobody opens the file now, nobody uses its path. */
static int remove_claimed(struct df_frame *frame, struct df_place *place, struct df_open_path *node,
                          bool directory)
{
    struct df_highlevel *hl = frame->hl;
    int (*op)(const char *) = directory ? hl->ops.rmdir : hl->ops.unlink;
    int result;

    if (!directory && !hl->config.hard_remove && df_open_path_begin_hide(node)) {
        result = df_highlevel_hide(frame, node, place->path, place->len);
    } else {
        result = op ? df_answer_error(op(place->path)) : -ENOSYS;
        if (result == 0)
            df_open_path_mark_removed(node);
    }
    if (directory && result == 0)
        df_name_turn_remove(&hl->turns);
    if (directory)
        df_frame_tell_node(frame, node);
    df_place_changed(frame, place);
    return result;
}

/* In the turn of its directory, and of its own if it is one: nothing is made in it meanwhile. */
static int remove_in_turn(struct df_frame *frame, const struct df_where *where,
                          struct df_place *place, struct df_open_path *node, bool directory)
{
    struct df_path_hash directories[] = {df_place_parent_key(frame, place), place->key};
    struct df_name_turn turn;
    int result = 0;

    df_frame_turn_of(frame, &turn, directories, directory ? 2 : 1);
    if (!goes_unseen(frame, where, node, directory))
        result = may_remove(frame, where, place, directory);
    if (result == 0)
        result = remove_claimed(frame, place, node, directory);
    df_frame_turn_over(frame, &turn);
    return result;
}

/* The root, or a name that ends in "..". */
static int refuse_special(const struct df_where *where, bool directory)
{
    if (!directory)
        return -EISDIR;
    return where->len == 1 && !where->base ? -EBUSY : -ENOTEMPTY;
}

/* With `let_go` the name's base is released first, so that its node, too, can be claimed. */
static int remove_once(struct df_frame *frame, const struct df_where *where, bool directory,
                       bool let_go)
{
    struct df_open_paths *table = &frame->hl->open_paths;
    struct df_open_path *node;
    struct df_place place;

    df_frame_tells(frame, false);
    int result = df_walk(frame, where, DF_WALK_PARENT, &place, NULL);
    if (result == 0 && place.special)
        result = refuse_special(where, directory);
    if (let_go)
        df_walk_let_go(frame, &place);
    if (result == 0)
        result = df_open_paths_claim(table, place.path, place.len, place.key,
                                     df_frame_may_wait(frame), &node);
    if (result == 0) {
        frame->writes = true;
        result = remove_in_turn(frame, where, &place, node, directory);
        df_open_paths_release(table, node);
        frame->writes = false;
    }
    df_walk_end(frame, &place);
    return result;
}

/* A name below an open directory that is in use itself, or is that directory ("../it"), cannot be
 * waited for with the directory held. It is let go then, under rename_lock: nobody moves it. */
static int remove_where(struct df_frame *frame, const struct df_where *where, bool directory)
{
    int result = remove_once(frame, where, directory, false);

    if (result != DF_PATH_BUSY)
        return result;
    if (frame->inside)
        return -EDEADLK;
    result = df_frame_lock_renames(frame);
    if (result)
        return result;
    result = remove_once(frame, where, directory, true);
    df_frame_unlock_renames(frame);
    return result;
}

int df_highlevel_unlink(struct df_fs *fs, struct df_call *call, const struct df_where *where)
{
    return DF_IN_FRAME(fs, call, remove_where(&frame, where, false));
}

int df_highlevel_rmdir(struct df_fs *fs, struct df_call *call, const struct df_where *where)
{
    return DF_IN_FRAME(fs, call, remove_where(&frame, where, true));
}
