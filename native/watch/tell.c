/*
 * tell.c - what an op has done, done to the stand-ins. Each watch hears of it in the order
 * of Linux, whose versions differ in which of several watches they tell first.
 */
#include <stdio.h>
#include <string.h>

#include "watch/private.h"

/* One op that is told; under the lock. */
struct telling {
    struct df_watcher *watcher;
    int mount;
};

static struct df_watch *directory_of(const struct telling *t, const struct df_watch_spot *spot)
{
    return df_watch_find_directory(t->watcher, t->mount, spot->directory);
}

static void touch_itself(const struct telling *t, const struct df_watch *watch,
                         enum df_watch_kind kind)
{
    char path[DF_STAND_PATH];

    df_stand_path(path, watch->serial, NULL);
    df_stand_touch(t->watcher->at, path, kind);
}

/* ---- names ----------------------------------------------------------------------------------- */

static void made(const struct telling *t, const struct df_watch_spot *spot, bool directory)
{
    char path[DF_STAND_PATH];

    if (df_watch_change(t->watcher, t->mount, spot, path))
        df_stand_made(t->watcher->at, path, directory);
}

/* A name of the object is gone: IN_ATTRIB, for the count of its links, and after the last one
 * IN_DELETE_SELF. */
static void unlinked(const struct telling *t, const struct df_watch_spot *spot)
{
    struct df_watch *watch = df_watch_find(t->watcher, t->mount, spot->ino);

    if (watch && (watch->directory || spot->links <= 1))
        df_watch_drop(t->watcher, watch);
    else if (watch)
        touch_itself(t, watch, DF_WATCH_ATTRIB);
}

static void removed(const struct telling *t, const struct df_watch_spot *spot)
{
    char path[DF_STAND_PATH];

    unlinked(t, spot);
    if (df_watch_change(t->watcher, t->mount, spot, path))
        df_stand_removed(t->watcher->at, path, S_ISDIR(spot->mode));
}

/* By a rename: the links of a directory are counted then, too (vfs_rename() of Linux). */
static void replaced(const struct telling *t, const struct df_watch_spot *spot)
{
    const struct df_watch *watch = df_watch_find(t->watcher, t->mount, spot->ino);

    if (watch && watch->directory)
        touch_itself(t, watch, DF_WATCH_ATTRIB);
    unlinked(t, spot);
}

static void moved_itself(const struct telling *t, const struct df_watch_spot *spot)
{
    struct df_watch *watch = df_watch_find(t->watcher, t->mount, spot->ino);

    if (!watch)
        return;
    df_stand_move(t->watcher->at, watch->serial, t->watcher->last + 1);
    watch->serial = ++t->watcher->last;
}

static void name_of(const struct df_watch *in, const struct df_watch_spot *spot,
                    char path[DF_STAND_PATH])
{
    if (in)
        df_stand_path(path, in->serial, spot->name);
    else
        strcpy(path, DF_STAND_NOWHERE);
}

/* A name that comes from nowhere is made there first, of the kind that it has. */
static void move_names(const struct telling *t, const struct df_watch_spot spots[2], bool exchange,
                       const struct df_watch_movers movers[2])
{
    const struct df_watch *from = directory_of(t, &spots[0]), *to = directory_of(t, &spots[1]);
    int at = t->watcher->at;
    char old[DF_STAND_PATH], new[DF_STAND_PATH];

    name_of(from, &spots[0], old);
    name_of(to, &spots[1], new);
    df_stand_name(at, old, S_ISDIR(spots[0].mode));
    df_watch_move_in(t->watcher, t->mount, &movers[0], spots[0].ino, &spots[1], old);
    if (exchange) {
        df_stand_name(at, new, S_ISDIR(spots[1].mode));
        df_watch_move_in(t->watcher, t->mount, &movers[1], spots[1].ino, &spots[0], new);
    }
    df_stand_moved(at, old, S_ISDIR(spots[0].mode), new, exchange);
    if (from)
        df_watch_move(t->watcher, t->mount, &spots[0], to ? &spots[1] : NULL);
    if (to && exchange)
        df_watch_move(t->watcher, t->mount, &spots[1], from ? &spots[0] : NULL);
    df_stand_forget(at, DF_STAND_NOWHERE);
}

/* Two names of one object stay as they are. */
static void renamed(const struct telling *t, const struct df_watch_spot spots[2], unsigned flags,
                    const struct df_watch_movers movers[2])
{
    bool exchange = flags & RENAME_EXCHANGE;

    if (spots[0].ino == spots[1].ino || spots[0].ino == 0)
        return;
    t->watcher->changes++;
    if (directory_of(t, &spots[0]) || directory_of(t, &spots[1]))
        move_names(t, spots, exchange, movers);
    if (spots[1].ino && !exchange)
        replaced(t, &spots[1]);
    moved_itself(t, &spots[0]);
    if (exchange)
        moved_itself(t, &spots[1]);
}

static void linked(const struct telling *t, const struct df_watch_spot spots[2])
{
    const struct df_watch *watch = df_watch_find(t->watcher, t->mount, spots[0].ino);

    if (watch)
        touch_itself(t, watch, DF_WATCH_ATTRIB);
    made(t, &spots[1], false);
}

/* ---- objects --------------------------------------------------------------------------------- */

static void touched(const struct telling *t, const struct df_watch_spot *spot,
                    enum df_watch_kind kind)
{
    const struct df_watch *in = directory_of(t, spot);
    const struct df_watch *watch = df_watch_find(t->watcher, t->mount, spot->ino);
    char path[DF_STAND_PATH];

    if (in) {
        df_stand_path(path, in->serial, spot->name);
        df_stand_touch_name(t->watcher->at, path, S_ISDIR(spot->mode), kind);
    }
    if (watch)
        touch_itself(t, watch, kind);
}

/* fsnotify_change() of Linux: one event for all that is set. */
static enum df_watch_kind kind_of(const struct df_message *m)
{
    uint32_t set = m->op == DF_MESSAGE_setattr ? m->args.setattr.set.valid : DF_SET_MODE;

    if (set & DF_SET_SIZE)
        return DF_WATCH_MODIFY;
    if (set & (DF_SET_MODE | DF_SET_UID | DF_SET_GID))
        return DF_WATCH_ATTRIB;
    if ((set & (DF_SET_ATIME | DF_SET_MTIME)) == DF_SET_ATIME)
        return DF_WATCH_ACCESS;
    return (set & (DF_SET_ATIME | DF_SET_MTIME)) == DF_SET_MTIME ? DF_WATCH_MODIFY
                                                                 : DF_WATCH_ATTRIB;
}

/* ---- the op ---------------------------------------------------------------------------------- */

/* What a link, "..", or a descriptor leads to is asked for now: by its name where that is known. */
static void find_object(struct df_watch_op *o, struct df_watch_spot *spot)
{
    struct df_file *file = o->file;
    bool open = o->wheres[0].len == 0 && file;

    if (!open)
        file = df_watch_open_at(o, &o->wheres[0], O_PATH);
    if (file)
        df_watch_spot_of(o, file, spot);
    if (file && !open)
        df_file_put(o->thread, file);
}

static void tell_attributes(struct df_watch_op *o, struct df_watch_look *look)
{
    struct df_watcher *watcher = o->watcher;
    struct telling t = {watcher, o->call->mount->id};
    enum df_watch_kind kind = kind_of(o->message);

    if (look->by_link && o->wheres[0].len == 0 &&
        df_watch_touch(watcher, o->message->wheres[0].base, kind))
        return;
    if (look->by_link)
        find_object(o, &look->spots[0]);
    pthread_mutex_lock(&watcher->lock);
    touched(&t, &look->spots[0], kind);
    pthread_mutex_unlock(&watcher->lock);
}

static bool is_same(const struct df_watch_spot *a, const struct df_watch_spot *b)
{
    return a->directory == b->directory && strcmp(a->name, b->name) == 0;
}

/* A link has led to the name, so nobody has held the names beside it. By now it may be gone again,
 * which is told. */
static void make_by_link(struct df_watch_op *o, struct df_file *file, struct df_watch_look *look)
{
    struct df_watcher *watcher = o->watcher;
    struct df_watch_spot now;
    char path[DF_STAND_PATH];

    df_watch_hold(o, look, 1);
    if (look->held && df_watch_spot_of(o, file, &now) && is_same(&now, &look->spots[0])) {
        pthread_mutex_lock(&watcher->lock);
        if (df_watch_change(watcher, o->call->mount->id, &now, path))
            df_stand_name(watcher->at, path, false);
        pthread_mutex_unlock(&watcher->lock);
    }
    df_watch_release(o, look);
}

void df_watch_tell_open(struct df_watch_op *o, struct df_watch_look *look)
{
    struct df_file *file = df_files_get(o->files, o->opened);
    struct df_where itself = {.base = file, .name = ""};
    struct df_watch_spot *spot = &look->spots[0];
    bool made = !look->by_link && spot->ino == 0;
    struct stat st;

    if (!file) /* its client was killed */
        return;
    if (look->by_link && df_watch_spot_of(o, file, spot) && o->message->args.open.flags & O_CREAT)
        make_by_link(o, file, look);
    else if (made && df_watch_ask(o, &itself, &st)) {
        spot->ino = st.st_ino;
        spot->mode = st.st_mode;
    }
    df_file_put(o->thread, file);
    if (spot->ino)
        df_watch_opened(o, spot, made && o->message->args.open.flags & O_CREAT);
}

static void tell_names(struct df_watch_op *o, struct df_watch_look *look)
{
    struct df_watcher *watcher = o->watcher;
    const struct telling t = {watcher, o->call->mount->id};
    const uint32_t op = o->message->op;
    struct df_watch_movers movers[2];

    if (op == DF_MESSAGE_rename)
        df_watch_find_movers(o, look->spots, movers);
    pthread_mutex_lock(&watcher->lock);
    if (op == DF_MESSAGE_rename)
        renamed(&t, look->spots, o->message->args.rename.flags, movers);
    else if (op == DF_MESSAGE_link)
        linked(&t, look->spots);
    else if (op == DF_MESSAGE_unlink || op == DF_MESSAGE_rmdir)
        removed(&t, &look->spots[0]);
    else
        made(&t, &look->spots[0], op == DF_MESSAGE_mkdir);
    pthread_mutex_unlock(&watcher->lock);
    for (unsigned i = 0; op == DF_MESSAGE_rename && i < 2; i++)
        df_watch_settle(o, &movers[i]);
}

static void tell_file(struct df_watch_op *o, int64_t result)
{
    struct df_watcher *watcher = o->watcher;
    const struct df_message *m = o->message;

    if (m->op == DF_MESSAGE_readdir || (m->op == DF_MESSAGE_read && result > 0))
        df_watch_touch(watcher, m->files[0], DF_WATCH_ACCESS);
    if (m->op == DF_MESSAGE_fallocate || (m->op == DF_MESSAGE_write && result > 0))
        df_watch_touch(watcher, m->files[0], DF_WATCH_MODIFY);
    if (m->op == DF_MESSAGE_copy_file_range && result > 0) {
        df_watch_touch(watcher, m->files[0], DF_WATCH_ACCESS);
        df_watch_touch(watcher, m->files[1], DF_WATCH_MODIFY);
    }
}

static void tell(struct df_watch_op *o, struct df_watch_look *look, int64_t result)
{
    switch (o->message->op) {
    case DF_MESSAGE_read:
    case DF_MESSAGE_readdir:
    case DF_MESSAGE_write:
    case DF_MESSAGE_fallocate:
    case DF_MESSAGE_copy_file_range:
        tell_file(o, result);
        break;
    case DF_MESSAGE_open:
        df_watch_tell_open(o, look);
        break;
    case DF_MESSAGE_setattr:
    case DF_MESSAGE_setxattr:
    case DF_MESSAGE_removexattr:
        tell_attributes(o, look);
        break;
    default:
        tell_names(o, look);
    }
}

/* Somebody has begun to watch a directory whose names were not held. */
static bool is_watched_by_now(struct df_watch_op *o, const struct df_watch_look *look)
{
    struct df_watcher *watcher = o->watcher;
    bool found = false;

    pthread_mutex_lock(&watcher->lock);
    for (unsigned i = 0; i < 2; i++)
        if (look->unheld & 1U << i)
            found |= df_watch_find_directory(watcher, o->call->mount->id,
                                             look->spots[i].directory) != NULL;
    pthread_mutex_unlock(&watcher->lock);
    return found;
}

void df_watch_after(struct df_watch_op *o, struct df_watch_look *look, int64_t result)
{
    if (look->missed)
        df_watch_late(o, result);
    if (look->by_link) /* they are not those of the object */
        df_watch_release(o, look);
    if (look->tells && result >= 0)
        tell(o, look, result);
    df_watch_release(o, look);
    if (look->unheld && result >= 0 && is_watched_by_now(o, look))
        df_watch_compare(o);
}
