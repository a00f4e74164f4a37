/*
 * private.h - between watch.c (which objects are watched), stand.c (what is done to stand-ins),
 * look.c and tell.c (before and after an op), files.c (open files) and begin.c (the first watch of
 * an object).
 */
#ifndef DF_WATCH_PRIVATE_H
#define DF_WATCH_PRIVATE_H

#include <limits.h>
#include <sys/stat.h>

#include "core/mount.h"
#include "watch/watch.h"

/* A file that is open, and in a watched directory or watched itself. */
struct df_watch_file {
    uint64_t handle; /* of the channel; this to `ino` is fixed */
    int mount;
    uint64_t ino;
    uint64_t directory; /* in which it is called `name`, as of */
    uint64_t changes;   /* that count of the watcher's */
    int named;          /* descriptor of its name in the stand-in of its directory, or -1 */
    int own;            /* of its own stand-in, or -1 */
    struct df_watch_file *next;
    char name[NAME_MAX + 1];
};

/* ---- watch.c: under the lock, but for the stripes ---- */

static inline unsigned df_watch_hash(int mount, uint64_t ino)
{
    return (unsigned)((ino + (uint64_t)mount) * UINT64_C(0x9e3779b97f4a7c15) >> 32);
}

static inline unsigned df_watch_stripe(int mount, uint64_t ino)
{
    return df_watch_hash(mount, ino) % DF_WATCH_STRIPES;
}

/* NULL: it is not watched. */
struct df_watch *df_watch_find(struct df_watcher *watcher, int mount, uint64_t ino);

/* The same of a directory. */
struct df_watch *df_watch_find_directory(struct df_watcher *watcher, int mount, uint64_t ino);

/* A name there changes, and all that knows where it lies is out of date. False: nobody watches its
 * directory; else `path` is that of the name in the stand-in. */
bool df_watch_change(struct df_watcher *watcher, int mount, const struct df_watch_spot *spot,
                     char path[]);

/* With a stand-in, of a directory an empty one. NULL and *error. */
struct df_watch *df_watch_make(struct df_watcher *watcher, int mount, uint64_t ino, bool directory,
                               int *error);

/* The object is no more, or the mount: IN_DELETE_SELF, as soon as nobody has it open. Frees it. */
void df_watch_drop(struct df_watcher *watcher, struct df_watch *watch);

/* ---- stand.c: under the lock; in w/ ---- */

#define DF_STAND_PATH (NAME_MAX + 32)

/* The path of a name in a stand-in, or of the stand-in itself (name: NULL). */
void df_stand_path(char path[DF_STAND_PATH], uint64_t serial, const char *name);

/* Makes w/, if it is not there: a descriptor of it, or -errno. */
int df_stand_begin(const char *shadow);

/* What an earlier server has left there is nobody's any more. */
void df_stand_leave_all(const char *shadow);

/* A stand-in, which any program of the run may watch. 0 or -errno. */
int df_stand_make(int at, uint64_t serial, bool directory);

/* IN_DELETE_SELF; but of a directory that has names IN_MOVE_SELF, to `other`: they are not gone. */
void df_stand_remove(int at, uint64_t serial, bool directory, uint64_t other);

/* Nobody has watched the directory's yet: the names in it go. */
void df_stand_discard(int at, uint64_t serial);
void df_stand_move(int at, uint64_t from, uint64_t to);

/*
 * Names of a directory. Where the stand-in is behind the directory, as where something else than
 * our clients has changed that, it is brought up to it first: who watches hears of it late.
 */
int df_stand_name(int at, const char *path, bool directory); /* it is there; 0 or -errno */
void df_stand_made(int at, const char *path, bool directory);
void df_stand_removed(int at, const char *path, bool directory);

/* Of what comes from, or goes to, a directory that is not watched. */
#define DF_STAND_NOWHERE "s/x"

void df_stand_moved(int at, const char *from, bool directory, const char *to, bool exchange);
void df_stand_forget(int at, const char *path); /* whatever it is */

void df_stand_touch(int at, const char *path, enum df_watch_kind kind);
void df_stand_touch_name(int at, const char *path, bool directory, enum df_watch_kind kind);
void df_stand_touch_fd(int fd, enum df_watch_kind kind);

/* As open(2) with these flags of an object of that kind. A descriptor or -1. */
int df_stand_open(int at, const char *path, int flags, bool directory);

/* ---- look.c ---- */

/* getattr of the caller, beside the op of the message. */
bool df_watch_ask(struct df_watch_op *o, const struct df_where *where, struct stat *st);

/* Events of things in the mount that the op is about, which somebody waits for, or did. */
static inline uint32_t df_watch_events(const struct df_watch_op *o)
{
    return o->events ? atomic_load_explicit(o->events, memory_order_relaxed) : 0;
}

/* Of the name itself, whatever it leads to. False: its directory is not there. */
bool df_watch_spot_at(struct df_watch_op *o, const struct df_where *where,
                      struct df_watch_spot *spot);

/* By what the open file is called now. False: it has no name, but *spot has the object. */
bool df_watch_spot_of(struct df_watch_op *o, struct df_file *file, struct df_watch_spot *spot);

/* The object of a path, open for no more than this (df_file_put()); NULL: it cannot be had. */
struct df_file *df_watch_open_at(struct df_watch_op *o, const struct df_where *where, int flags);

/* The names of the first `count` spots' directories, as far as these are watched: look->held is 0
 * before, and after they are released. */
void df_watch_hold(struct df_watch_op *o, struct df_watch_look *look, unsigned count);
void df_watch_release(struct df_watch_op *o, struct df_watch_look *look);

/* ---- late.c ---- */

/* The names that the op is about are made in the stand-ins what they are in their directories, once
 * nobody changes these. */
void df_watch_compare(struct df_watch_op *o);

/* ---- tell.c ---- */

/* An open that has succeeded. */
void df_watch_tell_open(struct df_watch_op *o, struct df_watch_look *look);

/* ---- files.c ---- */

/* What the op has opened at that spot: IN_OPEN. `made`: and made. */
void df_watch_opened(struct df_watch_op *o, const struct df_watch_spot *spot, bool made);

/* Files of the mount that were opened before the object was watched; without events. `watch` may be
 * a copy. */
void df_watch_adopt(struct df_watch_op *o, const struct df_watch *watch);

#define DF_WATCH_MOVERS 64 /* more of one object make no events by their descriptors */

/* Files that are open, of an object that comes from a directory that is not watched to one that
 * is. */
struct df_watch_movers {
    unsigned count;
    struct {
        uint64_t handle;
        int flags;
    } at[DF_WATCH_MOVERS];
};

/* Of each of the two that a rename moves. */
void df_watch_find_movers(struct df_watch_op *o, const struct df_watch_spot spots[2],
                          struct df_watch_movers movers[2]);

/* Under the lock: they are to make events as `path`, which is where nobody watches yet, and will be
 * what `to` says. */
void df_watch_move_in(struct df_watcher *watcher, int mount, const struct df_watch_movers *movers,
                      uint64_t ino, const struct df_watch_spot *to, const char *path);

/* Behind it, without the lock. */
void df_watch_settle(struct df_watch_op *o, const struct df_watch_movers *movers);

/* Under the lock: open files that were called `from` are called `to`; NULL: and make no events by
 * that any more. */
void df_watch_move(struct df_watcher *watcher, int mount, const struct df_watch_spot *from,
                   const struct df_watch_spot *to);

#endif
