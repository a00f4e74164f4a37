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
#ifndef DF_WATCH_WATCH_H
#define DF_WATCH_WATCH_H

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "channel/message.h"
#include "core/call.h"
#include "core/export.h"
#include "core/ops.h"
#include "ledger/files.h"

#define DF_WATCH_STRIPES 64
#define DF_WATCH_CHAINS  1024 /* powers of two */

/* An object that is watched, or was: the kernel does not tell of the end. */
struct df_watch {
    int mount;       /* id; this to `directory` is fixed */
    uint64_t ino;    /* as stat shows it */
    bool directory;  /* it has names */
    uint64_t serial; /* the name of its stand-in */
    uint32_t events; /* that anybody has asked for so far */
    struct df_watch *next;
};

struct df_watch_file; /* private.h */

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

/* ---- an op ---- */

/* What those who watch need to know of it: told before it, and again behind it. */
struct df_watch_op {
    struct df_watcher *watcher;
    struct df_files *files;
    _Atomic uint32_t *events; /* that were ever asked for, of anything in its mount; NULL: it has
                                 none, or that is unmounted */
    struct df_thread *thread;
    struct df_fs *fs;
    struct df_call *call;
    const struct df_message *message;
    const struct df_where *wheres; /* two */
    struct df_file *file;          /* the message's first */
    uint64_t opened;               /* handle of the file that it has opened; 0: none */
    bool reads_are_told;           /* out, before it: those of the file that it opens */
    bool closes_are_told;          /* out, behind it: that of the file */
};

/* Where a name leads, or an open file lies. */
struct df_watch_spot {
    uint64_t directory; /* st_ino of the one that has the name; 0: not known */
    uint64_t ino;       /* of the object; 0: there is none */
    mode_t mode;
    nlink_t links;
    char name[NAME_MAX + 1];
};

struct df_watch_look {
    bool tells;    /* there is something to look at afterwards */
    bool missed;   /* nothing of the mount was watched */
    bool by_link;  /* the path ends in a link, "..", or nothing: the spot is yet to be found */
    unsigned held; /* of watcher->names: */
    unsigned stripes[2];
    unsigned unheld; /* bits, of spots in directories that nobody watched by then */
    struct df_watch_spot spots[2];
};

/* The op makes, removes or moves names. An open may make one, too. */
static inline bool df_watch_changes_names(uint32_t op)
{
    switch (op) {
    case DF_MESSAGE_mknod:
    case DF_MESSAGE_mkdir:
    case DF_MESSAGE_symlink:
    case DF_MESSAGE_unlink:
    case DF_MESSAGE_rmdir:
    case DF_MESSAGE_rename:
    case DF_MESSAGE_link:
        return true;
    default:
        return false;
    }
}

/* ---- around an op: look.c, tell.c ---- */

/* What it is about, while that still is as it was. Takes locks of `names`, which df_watch_after()
 * gives back. */
void df_watch_before(struct df_watch_op *o, struct df_watch_look *look);

/* It is done, with that result: events. */
void df_watch_after(struct df_watch_op *o, struct df_watch_look *look, int64_t result);

/* ---- late.c ---- */

/* An op that began when nothing of its mount was watched is done. */
void df_watch_late(struct df_watch_op *o, int64_t result);

/* ---- begin.c ---- */

/* The op itself, of a program that watches its file: the serial of the file's stand-in, or an error
 * as of inotify_add_watch(2). */
int64_t df_watch_begin(struct df_watch_op *o);

/* ---- open files: files.c ---- */

enum df_watch_kind { DF_WATCH_ACCESS, DF_WATCH_MODIFY, DF_WATCH_ATTRIB };

/* By an open file: IN_ACCESS and the like. False: nobody watches by which name it was opened, nor
 * the object. */
bool df_watch_touch(struct df_watcher *watcher, uint64_t handle, enum df_watch_kind kind);

/* Nobody has it open any more, and it is released. */
void df_watch_closed(struct df_watcher *watcher, uint64_t handle);

#endif
