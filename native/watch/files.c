/*
 * files.c - files of mounts that are open, for those who watch them or their directories.
 *
 * Each has its stand-in open, by its name in the stand-in of its directory and by its own, with the
 * access mode of its open(2). So the kernel knows by what name it was opened and what became of
 * that, tells of the close with the right event, and keeps IN_DELETE_SELF until then.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "watch/private.h"

/* ---- the table ------------------------------------------------------------------------------- */

static struct df_watch_file **place_of(struct df_watcher *watcher, uint64_t handle)
{
    struct df_watch_file **place = &watcher->files[df_handle_index(handle) % DF_WATCH_CHAINS];

    while (*place && (*place)->handle != handle)
        place = &(*place)->next;
    return place;
}

/* With neither of its descriptors. NULL: no memory. */
static struct df_watch_file *file_of(struct df_watcher *watcher, uint64_t handle, int mount,
                                     uint64_t ino)
{
    struct df_watch_file **place = place_of(watcher, handle);

    if (*place || !(*place = malloc(sizeof(**place))))
        return *place;
    **place = (struct df_watch_file){.handle = handle,
                                     .mount = mount,
                                     .ino = ino,
                                     .changes = UINT64_MAX,
                                     .named = -1,
                                     .own = -1};
    atomic_fetch_add(&watcher->opened, 1);
    return *place;
}

static void call(struct df_watch_file *file, const struct df_watch_spot *spot, uint64_t changes)
{
    file->directory = spot->directory;
    file->changes = changes;
    memcpy(file->name, spot->name, sizeof(file->name));
}

#define OF_FILES (IN_OPEN | IN_CLOSE | IN_MODIFY | IN_ACCESS | IN_ATTRIB)

/* ---- their stand-ins ------------------------------------------------------------------------- */

static int open_path(struct df_watcher *watcher, const char *path, int flags, bool directory)
{
    int fd = watcher->room == 0 ? -1 : df_stand_open(watcher->at, path, flags, directory);

    if (fd >= 0)
        watcher->room--;
    return fd;
}

static void shut(struct df_watcher *watcher, int *fd)
{
    if (*fd < 0)
        return;
    close(*fd);
    watcher->room++;
    *fd = -1;
}

static void open_named(struct df_watcher *watcher, struct df_watch_file *file, int flags,
                       bool directory)
{
    const struct df_watch *in = df_watch_find_directory(watcher, file->mount, file->directory);
    char path[DF_STAND_PATH];

    if (!in || !(in->events & OF_FILES) || file->named >= 0)
        return;
    df_stand_path(path, in->serial, file->name);
    df_stand_name(watcher->at, path, directory);
    file->named = open_path(watcher, path, flags, directory);
}

static void open_own(struct df_watcher *watcher, struct df_watch_file *file, int flags)
{
    const struct df_watch *watch = df_watch_find(watcher, file->mount, file->ino);
    char path[DF_STAND_PATH];

    if (!watch || file->own >= 0)
        return;
    df_stand_path(path, watch->serial, NULL);
    file->own = open_path(watcher, path, flags, watch->directory);
}

static void open_both(struct df_watcher *watcher, struct df_watch_file *file, int flags,
                      bool directory)
{
    open_named(watcher, file, flags, directory);
    open_own(watcher, file, flags);
}

/* ---- opened and closed ----------------------------------------------------------------------- */

/* Its close is waited for from now on, so that who closes a file finds the event there. */
static void tell_closes(struct df_watch_op *o, uint64_t handle)
{
    struct df_ofd *ofd = df_segment_ofd(o->files->segment, handle);

    if (ofd)
        __atomic_and_fetch(&ofd->traits, (uint8_t)~DF_FILE_NOFLUSH, __ATOMIC_RELAXED);
}

/* Whoever closed it meanwhile has not found it. */
static void see_closed(struct df_watch_op *o, uint64_t handle, bool tells)
{
    if (!df_segment_ofd(o->files->segment, handle))
        df_watch_closed(o->watcher, handle);
    else if (tells)
        tell_closes(o, handle);
}

static void make_name(struct df_watcher *watcher, int mount, const struct df_watch_spot *spot)
{
    char path[DF_STAND_PATH];

    if (df_watch_change(watcher, mount, spot, path))
        df_stand_made(watcher->at, path, false);
}

static bool is_watched(struct df_watcher *watcher, int mount, const struct df_watch_spot *spot)
{
    return df_watch_find_directory(watcher, mount, spot->directory) ||
           df_watch_find(watcher, mount, spot->ino);
}

void df_watch_opened(struct df_watch_op *o, const struct df_watch_spot *spot, bool made)
{
    struct df_watcher *watcher = o->watcher;
    int mount = o->call->mount->id, flags = o->message->args.open.flags;
    struct df_watch_file *file = NULL;

    pthread_mutex_lock(&watcher->lock);
    if (made)
        make_name(watcher, mount, spot);
    if (is_watched(watcher, mount, spot))
        file = file_of(watcher, o->opened, mount, spot->ino);
    if (file) {
        call(file, spot, watcher->changes);
        open_both(watcher, file, made ? flags & ~O_TRUNC : flags, S_ISDIR(spot->mode));
    }
    pthread_mutex_unlock(&watcher->lock);
    if (!file)
        return;
    see_closed(o, o->opened, true);
    o->closes_are_told = true;
}

void df_watch_closed(struct df_watcher *watcher, uint64_t handle)
{
    struct df_watch_file **place, *file;

    if (DF_LIKELY(atomic_load(&watcher->opened) == 0))
        return;
    pthread_mutex_lock(&watcher->lock);
    place = place_of(watcher, handle);
    file = *place;
    if (file) {
        *place = file->next;
        atomic_fetch_sub(&watcher->opened, 1);
        shut(watcher, &file->named);
        shut(watcher, &file->own);
    }
    pthread_mutex_unlock(&watcher->lock);
    free(file);
}

static uint32_t event_of(enum df_watch_kind kind)
{
    static const uint32_t events[] = {[DF_WATCH_ACCESS] = IN_ACCESS,
                                      [DF_WATCH_MODIFY] = IN_MODIFY,
                                      [DF_WATCH_ATTRIB] = IN_ATTRIB};

    return events[kind];
}

/* Where there was no descriptor for it, by its name: without its close, but not without its
 * changes. */
static bool touch_named(struct df_watcher *watcher, const struct df_watch_file *file,
                        enum df_watch_kind kind)
{
    const struct df_watch *in = df_watch_find_directory(watcher, file->mount, file->directory);
    char path[DF_STAND_PATH];

    if (!in || !(in->events & event_of(kind)))
        return in;
    if (file->named >= 0) {
        df_stand_touch_fd(file->named, kind);
    } else {
        df_stand_path(path, in->serial, file->name);
        df_stand_touch(watcher->at, path, kind);
    }
    return true;
}

static bool touch_own(struct df_watcher *watcher, const struct df_watch_file *file,
                      enum df_watch_kind kind)
{
    const struct df_watch *watch = df_watch_find(watcher, file->mount, file->ino);
    char path[DF_STAND_PATH];

    if (watch && !(watch->events & event_of(kind)))
        return true;
    if (file->own >= 0) {
        df_stand_touch_fd(file->own, kind);
    } else if (watch) {
        df_stand_path(path, watch->serial, NULL);
        df_stand_touch(watcher->at, path, kind);
    }
    return file->own >= 0 || watch;
}

bool df_watch_touch(struct df_watcher *watcher, uint64_t handle, enum df_watch_kind kind)
{
    const struct df_watch_file *file;
    bool watched = false;

    if (atomic_load(&watcher->opened) == 0)
        return false;
    pthread_mutex_lock(&watcher->lock);
    file = *place_of(watcher, handle);
    if (file) {
        watched = touch_named(watcher, file, kind);
        watched |= touch_own(watcher, file, kind);
    }
    pthread_mutex_unlock(&watcher->lock);
    return watched;
}

/* ---- those that were open before ------------------------------------------------------------- */

/* One open file of the mount, with a reference, and what stat shows as its number. */
struct found {
    uint64_t handle;
    struct df_file *file;
    struct stat st;
};

typedef void visit(struct df_watch_op *o, const struct found *found, const void *data);

static void visit_one(struct df_watch_op *o, uint64_t handle, visit *visit, const void *data)
{
    struct found found = {.handle = handle, .file = df_files_get(o->files, handle)};
    struct df_where itself = {.base = found.file, .name = ""};

    if (!found.file)
        return;
    if (!(atomic_load(&found.file->flags) & O_PATH) && df_watch_ask(o, &itself, &found.st))
        visit(o, &found, data);
    df_file_put(o->thread, found.file);
}

static void visit_all(struct df_watch_op *o, visit *visit, const void *data)
{
    uint64_t handles[64];
    uint32_t from = 0;
    size_t count;

    do {
        count = df_files_of_mount(o->files, o->call->mount->id, &from, handles, 64);
        for (size_t i = 0; i < count; i++)
            visit_one(o, handles[i], visit, data);
    } while (count > 0);
}

/* Where it lies is known, as far as that is wanted. *changes: as of when it will be. */
static bool is_known(struct df_watcher *watcher, uint64_t handle, uint64_t *changes)
{
    const struct df_watch_file *file;
    bool known;

    pthread_mutex_lock(&watcher->lock);
    file = *place_of(watcher, handle);
    *changes = watcher->changes;
    known = file && (file->named >= 0 || file->changes == *changes);
    pthread_mutex_unlock(&watcher->lock);
    return known;
}

/* Under the lock. spot: NULL if what is known holds. */
static bool adopt(struct df_watcher *watcher, int mount, const struct found *found,
                  const struct df_watch_spot *spot, uint64_t changes)
{
    struct df_watch_file *file = file_of(watcher, found->handle, mount, found->st.st_ino);
    const int flags = atomic_load(&found->file->flags) & O_ACCMODE;

    if (!file)
        return false;
    if (spot)
        call(file, spot, changes);
    open_both(watcher, file, flags, S_ISDIR(found->st.st_mode));
    return file->named >= 0 || file->own >= 0;
}

static void adopt_found(struct df_watch_op *o, const struct found *found, const void *data)
{
    struct df_watcher *watcher = o->watcher;
    const struct df_watch *watch = data;
    struct df_watch_spot spot;
    uint64_t changes = 0;
    bool asks = watch->directory && !is_known(watcher, found->handle, &changes), tells;

    if (!watch->directory && found->st.st_ino != watch->ino)
        return;
    if (asks)
        df_watch_spot_of(o, found->file, &spot);
    pthread_mutex_lock(&watcher->lock);
    tells = adopt(watcher, o->call->mount->id, found, asks ? &spot : NULL, changes);
    pthread_mutex_unlock(&watcher->lock);
    see_closed(o, found->handle, tells);
}

void df_watch_adopt(struct df_watch_op *o, const struct df_watch *watch)
{
    visit_all(o, adopt_found, watch);
}

/* ---- those that are moved -------------------------------------------------------------------- */

struct search {
    uint64_t ino;
    struct df_watch_movers *movers;
};

static void find_mover(struct df_watch_op *o, const struct found *found, const void *data)
{
    const struct search *search = data;
    struct df_watch_movers *movers = search->movers;

    (void)o;
    if (found->st.st_ino != search->ino || movers->count == DF_WATCH_MOVERS)
        return;
    movers->at[movers->count].handle = found->handle;
    movers->at[movers->count++].flags = atomic_load(&found->file->flags) & O_ACCMODE;
}

static bool comes_in(struct df_watch_op *o, const struct df_watch_spot *from,
                     const struct df_watch_spot *to)
{
    struct df_watcher *watcher = o->watcher;
    int mount = o->call->mount->id;
    bool in;

    pthread_mutex_lock(&watcher->lock);
    in = !df_watch_find_directory(watcher, mount, from->directory) &&
         df_watch_find_directory(watcher, mount, to->directory);
    pthread_mutex_unlock(&watcher->lock);
    return in;
}

void df_watch_find_movers(struct df_watch_op *o, const struct df_watch_spot spots[2],
                          struct df_watch_movers movers[2])
{
    for (unsigned i = 0; i < 2; i++) {
        struct search search = {spots[i].ino, &movers[i]};

        movers[i].count = 0;
        if (search.ino && comes_in(o, &spots[i], &spots[1 - i]))
            visit_all(o, find_mover, &search);
    }
}

void df_watch_move_in(struct df_watcher *watcher, int mount, const struct df_watch_movers *movers,
                      uint64_t ino, const struct df_watch_spot *to, const char *path)
{
    for (unsigned i = 0; i < movers->count; i++) {
        struct df_watch_file *file = file_of(watcher, movers->at[i].handle, mount, ino);

        if (!file || file->named >= 0)
            continue;
        call(file, to, watcher->changes);
        file->named = open_path(watcher, path, movers->at[i].flags, false);
    }
}

void df_watch_settle(struct df_watch_op *o, const struct df_watch_movers *movers)
{
    for (unsigned i = 0; i < movers->count; i++)
        see_closed(o, movers->at[i].handle, true);
}

static bool is_called(const struct df_watch_file *file, int mount, const struct df_watch_spot *spot)
{
    return file->mount == mount && file->ino == spot->ino && file->directory == spot->directory &&
           strcmp(file->name, spot->name) == 0;
}

void df_watch_move(struct df_watcher *watcher, int mount, const struct df_watch_spot *from,
                   const struct df_watch_spot *to)
{
    static const struct df_watch_spot nowhere;

    for (unsigned i = 0; i < DF_WATCH_CHAINS; i++)
        for (struct df_watch_file *file = watcher->files[i]; file; file = file->next) {
            if (!is_called(file, mount, from))
                continue;
            if (!to)
                shut(watcher, &file->named);
            call(file, to ? to : &nowhere, to ? watcher->changes : UINT64_MAX);
        }
}
