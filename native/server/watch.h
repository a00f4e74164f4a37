/*
 * watch.h - inotify(7) of what lies in mounts (docs/decisions/141).
 *
 * A watch of a program is the kernel's, on a stand-in: a file or a directory on tmpfs, one for each
 * object that is watched. What an op has done in the mount is done to the stand-ins, behind the op
 * and before it is answered, and the kernel makes the event of it.
 *
 *   <shadow>/w/<serial>          of an object; one that is moved gets another serial
 *   <shadow>/w/<serial>/<name>   of a directory: each name in it is an empty file or directory
 *   <shadow>/w/s                 where names go to and come from that lie in no watched directory
 *
 * Two kinds of locks. `names` are taken first, and held while the file system works, as Linux holds
 * the lock of a directory: they keep the changes of a watched directory's names in order. `lock`
 * is taken last, for system calls on stand-ins at most; no file system is asked under it.
 */
#ifndef DF_SERVER_WATCH_H
#define DF_SERVER_WATCH_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/export.h"

#define DF_WATCH_STRIPES 64
#define DF_WATCH_CHAINS  1024 /* powers of two */

struct df_server;
struct df_work;

/* An object that is watched, or was: the kernel does not tell of the end. */
struct df_watch {
    int mount;       /* id; this to `directory` is fixed */
    uint64_t ino;    /* as stat shows it */
    bool directory;  /* it has names */
    uint64_t serial; /* the name of its stand-in */
    uint32_t events; /* that anybody has asked for so far */
    struct df_watch *next;
};

struct df_watch_file; /* watch_private.h */

struct df_watcher {
    const char *shadow;      /* fixed; NULL: no program could come by a stand-in */
    _Atomic uint32_t used;   /* 1 from the first watch on: before, nobody looks further */
    _Atomic uint32_t opened; /* counts `files`, for those who look without the lock */
    pthread_mutex_t names[DF_WATCH_STRIPES]; /* each protects the names in the stand-ins of the
                                                directories that fall to it: df_watch_stripe() */
    pthread_mutex_t lock;                    /* protects what follows, and what happens in w/ */
    int at;           /* w/, a descriptor of O_PATH, which makes no events; -1: it is not there */
    uint64_t last;    /* serial that was given out */
    uint64_t changes; /* of names, in mounts that are watched */
    unsigned room;    /* descriptors that may still be kept for `files` */
    struct df_watch *watches[DF_WATCH_CHAINS];    /* by mount and inode number */
    struct df_watch_file *files[DF_WATCH_CHAINS]; /* by handle */
};

/* shadow: NULL, or the directory of the runs; it has to outlive the watcher. What an earlier server
 * has left there ends: its watches would never hear of anything. */
void df_watch_init(struct df_watcher *watcher, const char *shadow);
void df_watch_free(struct df_watcher *watcher);

/* The mount is gone, and the watches of what was in it end. */
void df_watch_unmounted(struct df_watcher *watcher, int mount);

static inline bool df_watch_used(struct df_watcher *watcher)
{
    return DF_UNLIKELY(atomic_load_explicit(&watcher->used, memory_order_relaxed));
}

/* ---- around an op: watch_look.c, watch_tell.c ---- */

struct df_watch_look;

/* What the op of the message is about, while it still is as it was. Takes locks of `names`, which
 * df_watch_after() gives back. */
void df_watch_before(struct df_work *w, struct df_watch_look *look);

/* It is done, with that result: events. */
void df_watch_after(struct df_work *w, struct df_watch_look *look, int64_t result);

/* ---- watch_late.c ---- */

/* An op that began when nothing of its mount was watched is done. */
void df_watch_late(struct df_work *w, int64_t result);

/* ---- open files: watch_files.c ---- */

enum df_watch_kind { DF_WATCH_ACCESS, DF_WATCH_MODIFY, DF_WATCH_ATTRIB };

/* By an open file: IN_ACCESS and the like. False: nobody watches by which name it was opened, nor
 * the object. */
bool df_watch_touch(struct df_watcher *watcher, uint64_t handle, enum df_watch_kind kind);

/* Nobody has it open any more, and it is released. */
void df_watch_closed(struct df_watcher *watcher, uint64_t handle);

#endif
