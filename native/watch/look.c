/*
 * look.c - what an op is about, looked at before it is carried out: which directory has the
 * name, and what it leads to. Asked of the file system, as the caller; only where something of the
 * mount is watched.
 */
#include <errno.h>
#include <string.h>
#include <sys/inotify.h>

#include "core/caller.h"
#include "watch/private.h"

#define AS_IT_IS(where) (((where)->flags & DF_WHERE_DOTDOT) | DF_WHERE_NOFOLLOW)

/* ---- questions ------------------------------------------------------------------------------- */

static int64_t ask(struct df_watch_op *o, const struct df_where *where, struct stat *st)
{
    struct df_call call;

    df_call_start(&call, o->thread, o->call->mount);
    call.links = o->call->links;
    return df_call_result(&call, o->fs->ops->getattr(o->fs, &call, where, st));
}

bool df_watch_ask(struct df_watch_op *o, const struct df_where *where, struct stat *st)
{
    return ask(o, where, st) == 0;
}

struct df_file *df_watch_open_at(struct df_watch_op *o, const struct df_where *where, int flags)
{
    struct df_file *file = df_file_new(o->thread, o->call->mount, o->fs, flags);
    struct df_call call;

    if (!file)
        return NULL;
    df_call_start(&call, o->thread, o->call->mount);
    if (df_call_result(&call, o->fs->ops->open(o->fs, &call, where, file, flags, 0)) != 0) {
        df_file_discard(o->thread, file);
        return NULL;
    }
    df_file_opened_counted(file);
    return file;
}

/* ---- directory and name ---------------------------------------------------------------------- */

/* The path without its last component, which *name is; in `text`. False: there is none, or it is
 * "..". */
static bool split(const struct df_where *where, char text[PATH_MAX], struct df_where *directory,
                  char name[NAME_MAX + 1])
{
    const char *slash = memrchr(where->name, '/', where->len);
    const char *last = slash ? slash + 1 : where->name;
    size_t len = (size_t)(where->name + where->len - last), before = (size_t)(last - where->name);

    if (len == 0 || len > NAME_MAX || strcmp(last, "..") == 0)
        return false;
    memcpy(name, last, len + 1);
    if (before > 1) /* but the root's own */
        before--;
    memcpy(text, where->name, before);
    text[before] = '\0';
    *directory =
        (struct df_where){where->base, text, (uint32_t)before, where->flags & DF_WHERE_DOTDOT};
    return true;
}

/* "a" has the slash behind nothing: its directory is the start. */
static bool find_directory(struct df_watch_op *o, const struct df_where *where,
                           struct df_watch_spot *spot)
{
    struct df_where directory;
    char text[PATH_MAX];
    struct stat st;

    if (!split(where, text, &directory, spot->name) || !df_watch_ask(o, &directory, &st))
        return false;
    spot->directory = st.st_ino;
    return true;
}

static void set_object(struct df_watch_spot *spot, const struct stat *st)
{
    spot->ino = st->st_ino;
    spot->mode = st->st_mode;
    spot->links = st->st_nlink;
}

static void find_object(struct df_watch_op *o, const struct df_where *where, unsigned flags,
                        struct df_watch_spot *spot)
{
    struct df_where object = *where;
    struct stat st;

    object.flags = flags;
    if (df_watch_ask(o, &object, &st))
        set_object(spot, &st);
}

bool df_watch_spot_at(struct df_watch_op *o, const struct df_where *where,
                      struct df_watch_spot *spot)
{
    *spot = (struct df_watch_spot){.directory = 0};
    if (!find_directory(o, where, spot))
        return false;
    find_object(o, where, AS_IT_IS(where), spot);
    return true;
}

bool df_watch_spot_of(struct df_watch_op *o, struct df_file *file, struct df_watch_spot *spot)
{
    struct df_where itself = {.base = file, .name = ""}, where = {.flags = DF_WHERE_NOFOLLOW};
    struct df_call call;
    char path[PATH_MAX];
    struct stat st;
    ssize_t len;

    *spot = (struct df_watch_spot){.directory = 0};
    if (df_watch_ask(o, &itself, &st))
        set_object(spot, &st);
    df_call_start(&call, o->thread, o->call->mount);
    len = df_call_result(&call, o->fs->ops->path(o->fs, &call, file, path, sizeof(path) - 1));
    if (len <= 0 || len >= PATH_MAX)
        return false;
    path[len] = '\0';
    where.name = path;
    where.len = (uint32_t)len;
    return find_directory(o, &where, spot);
}

/* ---- locks ----------------------------------------------------------------------------------- */

static bool is_watched(struct df_watcher *watcher, int mount, uint64_t ino)
{
    bool found;

    pthread_mutex_lock(&watcher->lock);
    found = df_watch_find_directory(watcher, mount, ino);
    pthread_mutex_unlock(&watcher->lock);
    return found;
}

/* In the order of their stripes. */
void df_watch_hold(struct df_watch_op *o, struct df_watch_look *look, unsigned count)
{
    struct df_watcher *watcher = o->watcher;
    int mount = o->call->mount->id;

    for (unsigned i = 0; i < count; i++) {
        if (look->spots[i].directory && is_watched(watcher, mount, look->spots[i].directory))
            look->stripes[look->held++] = df_watch_stripe(mount, look->spots[i].directory);
        else
            look->unheld |= 1U << i;
    }
    if (look->held == 2 && look->stripes[0] == look->stripes[1])
        look->held = 1;
    if (look->held == 2 && look->stripes[0] > look->stripes[1]) {
        unsigned first = look->stripes[1];

        look->stripes[1] = look->stripes[0];
        look->stripes[0] = first;
    }
    for (unsigned i = 0; i < look->held; i++)
        pthread_mutex_lock(&watcher->names[look->stripes[i]]);
}

void df_watch_release(struct df_watch_op *o, struct df_watch_look *look)
{
    while (look->held > 0)
        pthread_mutex_unlock(&o->watcher->names[look->stripes[--look->held]]);
}

/* ---- ops ------------------------------------------------------------------------------------- */

/* Of names that are made, removed or moved. link's first is any object. */
static void look_names(struct df_watch_op *o, struct df_watch_look *look)
{
    const uint32_t op = o->message->op;
    const unsigned count = op == DF_MESSAGE_rename || op == DF_MESSAGE_link ? 2 : 1;

    for (unsigned i = 0; i < count; i++)
        if (op != DF_MESSAGE_link || i == 1)
            look->tells |= find_directory(o, &o->wheres[i], &look->spots[i]);
    if (!look->tells)
        return;
    df_watch_hold(o, look, count);
    for (unsigned i = 0; i < count; i++)
        if (op == DF_MESSAGE_link && i == 0)
            find_object(o, &o->wheres[0], o->wheres[0].flags, &look->spots[0]);
        else
            find_object(o, &o->wheres[i], AS_IT_IS(&o->wheres[i]), &look->spots[i]);
}

/* Of an object: opened, or given other attributes. */
static void look_object(struct df_watch_op *o, struct df_watch_look *look, bool makes)
{
    const struct df_where *where = &o->wheres[0];
    struct df_watch_spot *spot = &look->spots[0];

    look->tells = true;
    look->by_link = !find_directory(o, where, spot);
    if (look->by_link)
        return;
    if (makes)
        df_watch_hold(o, look, 1);
    find_object(o, where, AS_IT_IS(where), spot);
    look->by_link = spot->ino && S_ISLNK(spot->mode) && !(where->flags & DF_WHERE_NOFOLLOW);
}

static uint32_t asked_for(struct df_watcher *watcher, int mount, uint64_t ino)
{
    const struct df_watch *watch = df_watch_find(watcher, mount, ino);

    return watch ? watch->events : 0;
}

/* Whether reads of what is being opened are told: then they have to come here, each of them. */
static void look_reads(struct df_watch_op *o, const struct df_watch_look *look)
{
    struct df_watcher *watcher = o->watcher;
    int mount = o->call->mount->id;
    uint32_t events;

    if (!(df_watch_events(o) & IN_ACCESS))
        return;
    pthread_mutex_lock(&watcher->lock);
    events = asked_for(watcher, mount, look->spots[0].directory) |
             asked_for(watcher, mount, look->spots[0].ino);
    pthread_mutex_unlock(&watcher->lock);
    o->reads_are_told = look->by_link || events & IN_ACCESS;
}

static bool is_by_file(const struct df_watch_op *o)
{
    return df_where_is_itself(&o->wheres[0]);
}

void df_watch_before(struct df_watch_op *o, struct df_watch_look *look)
{
    *look = (struct df_watch_look){.missed = !df_watch_events(o)};
    if (look->missed)
        return;
    if (df_watch_changes_names(o->message->op)) {
        look_names(o, look);
        return;
    }
    switch (o->message->op) {
    case DF_MESSAGE_open:
        if (o->message->args.open.flags & O_PATH)
            break;
        look_object(o, look, o->message->args.open.flags & O_CREAT);
        look_reads(o, look);
        break;
    case DF_MESSAGE_setattr:
    case DF_MESSAGE_setxattr:
    case DF_MESSAGE_removexattr:
        if (is_by_file(o))
            look->tells = look->by_link = true;
        else
            look_object(o, look, false);
        break;
    case DF_MESSAGE_read:
    case DF_MESSAGE_readdir:
        look->tells = df_watch_events(o) & IN_ACCESS;
        break;
    case DF_MESSAGE_write:
    case DF_MESSAGE_fallocate:
    case DF_MESSAGE_copy_file_range:
        look->tells = true;
        break;
    }
}
