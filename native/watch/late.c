/*
 * late.c - ops that were under way when the first watch of their mount came: nobody has
 * looked what they were about. And those that were when the first watch of their directory came:
 * nobody has held its names.
 *
 * A directory's stand-in may have been made while such an op changed it. So the op's names are
 * compared with the directory: who adds a watch, then lists the directory and follows the events
 * misses nothing.
 */
#include "watch/private.h"

/* Under the lock. */
static void set_name(struct df_watcher *watcher, int mount, const struct df_watch_spot *spot)
{
    char path[DF_STAND_PATH];

    if (!df_watch_change(watcher, mount, spot, path))
        return;
    if (spot->ino)
        df_stand_name(watcher->at, path, S_ISDIR(spot->mode));
    else
        df_stand_forget(watcher->at, path);
}

/* Once more when nobody changes it any more. Who begins to watch behind this lists it as it is. */
static void compare(struct df_watch_op *o, const struct df_where *where)
{
    struct df_watcher *watcher = o->watcher;
    struct df_watch_look look = {.held = 0};
    struct df_watch_spot now;

    if (!df_watch_spot_at(o, where, &look.spots[0]))
        return;
    df_watch_hold(o, &look, 1);
    if (look.held && df_watch_spot_at(o, where, &now) && now.directory == look.spots[0].directory) {
        pthread_mutex_lock(&watcher->lock);
        set_name(watcher, o->call->mount->id, &now);
        pthread_mutex_unlock(&watcher->lock);
    }
    df_watch_release(o, &look);
}

void df_watch_compare(struct df_watch_op *o)
{
    compare(o, &o->wheres[0]);
    if (o->message->op == DF_MESSAGE_rename || o->message->op == DF_MESSAGE_link)
        compare(o, &o->wheres[1]);
}

/* Where a link, or "..", has led is asked of the file. */
static void compare_opened(struct df_watch_op *o)
{
    struct df_watch_look look = {.by_link = true};

    if (o->message->args.open.flags & O_PATH)
        return;
    if (o->message->args.open.flags & O_CREAT)
        df_watch_compare(o);
    df_watch_tell_open(o, &look);
}

void df_watch_late(struct df_watch_op *o, int64_t result)
{
    if (result < 0 || !df_watch_events(o))
        return;
    if (df_watch_changes_names(o->message->op))
        df_watch_compare(o);
    else if (o->message->op == DF_MESSAGE_open)
        compare_opened(o);
}
