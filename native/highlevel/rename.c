/*
 * rename.c - moving names: rename, exchange, and hiding what is open.
 */
#include "highlevel/rename.h"

#include <stdio.h>
#include <string.h>

#include "host/permission.h"

/* ---- hiding ---- */

#define HIDDEN_NAME_LEN 32 /* ".fuse_hidden" and two numbers of eight digits, with room */
#define HIDE_TRIES      10

/* A path beside `path` that the plugin knows nothing of. */
static int hidden_path(struct df_highlevel *hl, const char *path, uint32_t len, char *hidden)
{
    uint32_t dir_len = (uint32_t)((const char *)memrchr(path, '/', len) - path);
    uint32_t hash = (uint32_t)df_entry_cache_key(&hl->cache, path, len).low;
    struct stat st;

    if (dir_len + HIDDEN_NAME_LEN >= PATH_MAX)
        return -ENAMETOOLONG;
    if (!hl->ops.getattr)
        return -ENOSYS;
    memcpy(hidden, path, dir_len);
    for (int i = 0; i < HIDE_TRIES; i++) {
        uint32_t count = atomic_fetch_add(&hl->hide_count, 1) + 1;
        snprintf(hidden + dir_len, HIDDEN_NAME_LEN, "/.fuse_hidden%08x%08x", hash, count);
        memset(&st, 0, sizeof(st));
        int result = df_answer_error(hl->ops.getattr(hidden, &st, NULL));
        if (result == -ENOENT)
            return 0;
        if (result)
            return -EBUSY;
    }
    return -EBUSY;
}

int df_highlevel_hide(struct df_frame *frame, struct df_open_path *node, const char *path,
                      uint32_t len)
{
    struct df_highlevel *hl = frame->hl;
    char hidden[PATH_MAX];

    int result = hidden_path(hl, path, len, hidden);
    uint32_t hidden_len = result ? 0 : (uint32_t)strlen(hidden);
    if (result == 0)
        result = df_open_path_reserve(&hl->open_paths, node, hidden_len);
    if (result == 0)
        result = hl->ops.rename ? df_answer_error(hl->ops.rename(path, hidden, 0)) : -ENOSYS;
    if (result) {
        df_open_path_cancel_hide(node);
        return result;
    }
    df_open_paths_move(&hl->open_paths, node, hidden, hidden_len);
    df_entry_cache_forget(&hl->cache, df_open_path_key(node));
    return 0;
}

/* ---- rename ---- */

/* Everything about one rename. */
struct move {
    struct df_place from, to;
    const struct df_where *from_where, *to_where;
    unsigned flags;
};

static int walk_both(struct df_frame *frame, struct move *move)
{
    int result = df_walk(frame, move->from_where, DF_WALK_PARENT, &move->from, NULL);

    if (result == 0) {
        df_call_begin_second(frame->call);
        result = df_walk(frame, move->to_where, DF_WALK_PARENT, &move->to, NULL);
        result = (int)df_call_end_second(frame->call, result);
    }
    if (result == 0 && (move->from.special || move->to.special))
        result = -EBUSY;
    return result;
}

static bool is_below(const struct df_place *place, const struct df_place *top)
{
    return place->len > top->len && place->path[top->len] == '/' &&
           memcmp(place->path, top->path, top->len) == 0;
}

/* What the two names lead to. */
static int look_at_both(struct df_frame *frame, struct move *move)
{
    bool attributes = df_frame_checks(frame);
    int result = df_walk_find(frame, &move->from, attributes);

    return result ? result : df_walk_look(frame, &move->to, attributes);
}

/* Which of the two is wrong, in the order of do_renameat2() and vfs_rename(). */
static int check_types(const struct move *move)
{
    bool from_dir = S_ISDIR(move->from.entry.mode), to_dir = S_ISDIR(move->to.entry.mode);
    bool replaces = move->to.entry.kind == DF_ENTRY_PRESENT;
    bool exchange = move->flags & RENAME_EXCHANGE;

    if (move->flags & RENAME_NOREPLACE && replaces)
        return -EEXIST;
    if (exchange && !replaces)
        return -ENOENT;
    if (!from_dir && move->from_where->flags & DF_WHERE_DIRECTORY)
        return -ENOTDIR;
    if (move->to_where->flags & DF_WHERE_DIRECTORY && !(exchange ? to_dir : from_dir))
        return -ENOTDIR;
    if (is_below(&move->to, &move->from))
        return -EINVAL;
    if (is_below(&move->from, &move->to))
        return exchange ? -EINVAL : -ENOTEMPTY;
    if (!replaces || exchange)
        return 0;
    return from_dir == to_dir ? 0 : from_dir ? -ENOTDIR : -EISDIR;
}

static int may_move_one(struct df_frame *frame, struct df_place *place, bool replaced)
{
    struct stat parent;
    int result = df_walk_stat_parent(frame, place, &parent);

    if (result == 0)
        result = df_permission_check(frame->caller, &parent, W_OK | X_OK);
    if (result == 0 && replaced)
        result = df_permission_sticky(frame->caller, &parent, place->st);
    return result;
}

/* A directory that moves to another parent has its ".." changed: that takes the right to write it,
 * too. */
static int may_move(struct df_frame *frame, struct move *move)
{
    bool replaces = move->to.entry.kind == DF_ENTRY_PRESENT;
    bool same_parent = move->from.parent_len == move->to.parent_len &&
                       memcmp(move->from.path, move->to.path, move->from.parent_len) == 0;
    int result = 0;

    if (!df_frame_checks(frame))
        return 0;
    result = may_move_one(frame, &move->from, true);
    if (result == 0)
        result = may_move_one(frame, &move->to, replaces);
    if (result == 0 && !same_parent && S_ISDIR(move->from.entry.mode))
        result = df_walk_may(frame, &move->from, W_OK);
    if (result == 0 && !same_parent && move->flags & RENAME_EXCHANGE &&
        S_ISDIR(move->to.entry.mode))
        result = df_walk_may(frame, &move->to, W_OK);
    return result;
}

/* What the cache knew of the two, and of everything below a directory, is no longer so. A file that
 * was moved is believed as long as under its old name. */
static void moved(struct df_frame *frame, const struct move *move, const struct df_rename *rename,
                  int result)
{
    const struct df_entry *entry = &move->from.entry;
    bool exchange = move->flags & RENAME_EXCHANGE;
    bool directory = S_ISDIR(entry->mode) || (exchange && S_ISDIR(move->to.entry.mode));

    for (int i = 0; directory && i < 2; i++) /* their "..", or all that one had listed */
        df_frame_tell_node(frame, rename->nodes[i]);
    if (directory)
        df_entry_cache_flush(&frame->hl->cache);
    df_place_changed(frame, &move->from);
    if (result == 0 && !exchange && !directory)
        df_place_made(frame, &move->to, entry->mode, entry->ino, entry->expiry);
    else
        df_place_changed(frame, &move->to);
}

/* What they are decides, and is known afterwards. */
static int check_both(struct df_frame *frame, struct move *move)
{
    int result = look_at_both(frame, move);

    if (result == 0)
        result = check_types(move);
    return result ? result : may_move(frame, move);
}

/* The plugin checks by itself; whether a directory moves is all that has to be known here. A file
 * that is replaced while open is to be hidden first. */
static bool goes_unseen(const struct df_frame *frame, const struct move *move,
                        const struct df_open_path *target)
{
    return df_frame_goes_unseen(frame) && move->flags == 0 &&
           !((move->from_where->flags | move->to_where->flags) & DF_WHERE_DIRECTORY) &&
           atomic_load(&target->opens) == 0;
}

static int recall_both(struct df_frame *frame, struct move *move)
{
    df_walk_recall(frame, &move->to);
    return df_walk_find(frame, &move->from, false);
}

/* Both nodes and all below are locked: their types stand still. */
static int rename_locked(struct df_frame *frame, struct move *move, struct df_rename *rename)
{
    struct df_highlevel *hl = frame->hl;
    struct df_open_path *target = rename->nodes[1];
    bool exchange = move->flags & RENAME_EXCHANGE;
    int result =
        goes_unseen(frame, move, target) ? recall_both(frame, move) : check_both(frame, move);

    if (result)
        return result;
    if (!exchange && !hl->config.hard_remove && df_open_path_begin_hide(target))
        result = df_highlevel_hide(frame, target, move->to.path, move->to.len);
    if (result == 0)
        result = hl->ops.rename
                     ? df_answer_error(hl->ops.rename(move->from.path, move->to.path, move->flags))
                     : -ENOSYS;
    if (result == 0 && exchange)
        df_open_paths_exchanged(rename);
    else if (result == 0)
        df_open_paths_renamed(rename);
    moved(frame, move, rename, result);
    return result == -ENOSYS && move->flags ? -EINVAL : result; /* as RENAME2 */
}

/* In the turn of both directories, and of one that is replaced: nothing is made in it meanwhile. */
static int rename_in_turn(struct df_frame *frame, struct move *move, struct df_rename *rename)
{
    if (!df_frame_takes_turns(frame))
        return rename_locked(frame, move, rename);
    struct df_path_hash directories[] = {
        df_place_parent_key(frame, &move->from),
        df_place_parent_key(frame, &move->to),
        move->to.key,
    };
    struct df_name_turn turn;

    df_frame_turn_of(frame, &turn, directories, 3);
    int result = rename_locked(frame, move, rename);
    df_frame_turn_over(frame, &turn);
    return result;
}

static bool is_same(const struct move *move)
{
    return move->from.len == move->to.len &&
           memcmp(move->from.path, move->to.path, move->from.len) == 0;
}

/* Under rename_lock, so the directories of both names stay where they are. */
static int rename_names(struct df_frame *frame, struct move *move)
{
    struct df_rename rename;

    int result = walk_both(frame, move);
    df_walk_let_go(frame, &move->to); /* a writer holds no other node */
    df_walk_let_go(frame, &move->from);
    if (result)
        return result;
    if (is_same(move) || is_below(&move->to, &move->from) || is_below(&move->from, &move->to)) {
        result = look_at_both(frame, move);
        return result ? result : check_types(move); /* nothing to do, or EINVAL, ENOTEMPTY */
    }
    result =
        df_open_paths_rename_begin(&frame->hl->open_paths, &rename, move->from.path, move->from.len,
                                   move->to.path, move->to.len, df_frame_may_wait(frame));
    if (result)
        return result == DF_PATH_BUSY ? -EDEADLK : result;
    frame->writes = true;
    result = rename_in_turn(frame, move, &rename);
    df_open_paths_rename_end(&rename);
    frame->writes = false;
    return result;
}

static int rename_where(struct df_frame *frame, const struct df_where *from,
                        const struct df_where *to, unsigned flags)
{
    struct move move;

    move.from_where = from;
    move.to_where = to;
    move.flags = flags;
    move.from.held = move.to.held = NULL;
    return rename_names(frame, &move);
}

int df_highlevel_rename(struct df_fs *fs, struct df_call *call, const struct df_where *from,
                        const struct df_where *to, unsigned flags)
{
    struct df_highlevel *hl = df_highlevel_of(fs);
    struct df_frame frame;

    df_frame_enter(&frame, hl, call);
    int result = df_frame_lock_renames(&frame);
    if (result == 0) {
        df_frame_tells(&frame, true);
        result = DF_RETRY_STALE(hl, rename_where(&frame, from, to, flags));
        df_frame_unlock_renames(&frame);
    }
    df_frame_leave(&frame);
    return result;
}
