/*
 * begin.c - an object is watched: it gets a stand-in, which is as the object is by then.
 *
 * The program watches the stand-in only when it has got the answer, so nothing here makes events
 * for it. A directory's is found by those who change names from the moment on that it is there,
 * and its names are held; so each name is either listed, or brought by who has changed it.
 */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "core/caller.h"
#include "watch/private.h"

#define LIST_SIZE 32768 /* bytes of records at a time */

/* ---- names of a directory -------------------------------------------------------------------- */

struct listing {
    struct df_watch_op *o;
    struct df_file *file;
    struct df_watch watch; /* a copy */
    char data[LIST_SIZE];
};

static bool is_directory(struct listing *l, const struct dirent64 *record)
{
    struct df_where where = {l->file, record->d_name, (uint32_t)strlen(record->d_name),
                             DF_WHERE_NOFOLLOW};
    struct stat st;

    if (record->d_type != DT_UNKNOWN)
        return record->d_type == DT_DIR;
    return df_watch_ask(l->o, &where, &st) && S_ISDIR(st.st_mode);
}

static int take_name(struct listing *l, const struct dirent64 *record)
{
    struct df_watcher *watcher = l->o->watcher;
    bool directory;
    char path[DF_STAND_PATH];
    int ret;

    if (strcmp(record->d_name, ".") == 0 || strcmp(record->d_name, "..") == 0 ||
        strlen(record->d_name) > NAME_MAX) /* a stand-in cannot have it */
        return 0;
    directory = is_directory(l, record);
    pthread_mutex_lock(&watcher->lock);
    df_stand_path(path, l->watch.serial, record->d_name);
    ret = df_stand_name(watcher->at, path, directory);
    pthread_mutex_unlock(&watcher->lock);
    return ret;
}

static int take_names(struct listing *l, const struct df_dirbuf *buf)
{
    int ret = 0;

    for (size_t at = 0; at < buf->used && ret == 0;) {
        const struct dirent64 *record = (const struct dirent64 *)(buf->data + at);

        ret = take_name(l, record);
        at += record->d_reclen;
    }
    return ret;
}

static int list(struct listing *l)
{
    struct df_watch_op *o = l->o;
    off_t position = 0;

    for (;;) {
        struct df_dirbuf buf = {.data = l->data, .size = sizeof(l->data)};
        struct df_call call;
        ssize_t ret;

        df_call_start(&call, o->thread, o->call->mount);
        ret = df_call_result(&call, o->fs->ops->readdir(o->fs, &call, l->file, position, &buf));
        if (ret < 0 || buf.used == 0)
            return (int)ret;
        if ((ret = take_names(l, &buf)) < 0)
            return (int)ret;
        position = buf.next;
    }
}

static int bring_names(struct df_watch_op *o, const struct df_watch *watch)
{
    const struct df_where itself = {.base = o->file, .name = ""};
    struct listing l = {.o = o, .watch = *watch};
    int ret;

    l.file = df_watch_open_at(o, &itself, O_RDONLY | O_DIRECTORY);
    if (!l.file)
        return -EACCES;
    ret = list(&l);
    df_file_put(o->thread, l.file);
    return ret;
}

/* ---- the object ------------------------------------------------------------------------------ */

/* Under the lock. *made: nobody watched it before. */
static int find_or_make(struct df_watch_op *o, const struct stat *st, struct df_watch *copy,
                        bool *made)
{
    struct df_watcher *watcher = o->watcher;
    int mount = o->call->mount->id, error = 0;
    struct df_watch *watch = df_watch_find(watcher, mount, st->st_ino);

    *made = !watch;
    if (!watch)
        watch = df_watch_make(watcher, mount, st->st_ino, S_ISDIR(st->st_mode), &error);
    if (!watch)
        return error;
    watch->events |= o->message->args.watch.events & IN_ALL_EVENTS;
    atomic_fetch_or(o->events, watch->events);
    *copy = *watch;
    return 0;
}

/* Nobody knows of it. */
static void drop(struct df_watcher *watcher, const struct df_watch *copy)
{
    struct df_watch *watch;

    pthread_mutex_lock(&watcher->lock);
    watch = df_watch_find(watcher, copy->mount, copy->ino);
    df_stand_discard(watcher->at, copy->serial);
    if (watch)
        df_watch_drop(watcher, watch);
    pthread_mutex_unlock(&watcher->lock);
}

/* Its names are held. */
static int64_t begin(struct df_watch_op *o, const struct stat *st)
{
    struct df_watcher *watcher = o->watcher;
    struct df_watch copy;
    bool made;
    int ret;

    pthread_mutex_lock(&watcher->lock);
    ret = find_or_make(o, st, &copy, &made);
    pthread_mutex_unlock(&watcher->lock);
    if (ret == 0 && made && copy.directory && (ret = bring_names(o, &copy)) < 0)
        drop(watcher, &copy);
    if (ret < 0)
        return ret;
    df_watch_adopt(o, &copy);
    return (int64_t)copy.serial;
}

static int may_watch(struct df_watch_op *o, struct stat *st)
{
    const struct df_where itself = {.base = o->file, .name = ""};
    int ret = df_call_result(o->call, o->fs->ops->access(o->fs, o->call, &itself, R_OK));

    if (ret == 0)
        ret = df_call_result(o->call, o->fs->ops->getattr(o->fs, o->call, &itself, st));
    return ret;
}

/* ENOSPC: as many watches as there may be. */
int64_t df_watch_begin(struct df_watch_op *o)
{
    struct df_watcher *watcher = o->watcher;
    struct stat st;
    unsigned stripe;
    int64_t ret = may_watch(o, &st);

    if (ret < 0)
        return ret;
    if (!(o->message->args.watch.events & IN_ALL_EVENTS))
        return -EINVAL;
    if (!watcher->shadow || !o->events || st.st_ino == 0)
        return -ENOSPC;
    stripe = df_watch_stripe(o->call->mount->id, st.st_ino);
    pthread_mutex_lock(&watcher->names[stripe]);
    ret = begin(o, &st);
    pthread_mutex_unlock(&watcher->names[stripe]);
    return ret < 0 && ret != -EACCES && ret != -ENOMEM ? -ENOSPC : ret;
}
