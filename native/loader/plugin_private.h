/*
 * plugin_private.h - struct df_plugin, shared by plugin.c (its life), plugin_main.c (main's
 * thread), plugin_list.c (the plugins of this process) and plugin_mount.c (its mount).
 */
#ifndef DF_LOADER_PLUGIN_PRIVATE_H
#define DF_LOADER_PLUGIN_PRIVATE_H

#include <pthread.h>
#include <stdint.h>

#include "loader/fiber.h"
#include "loader/guest.h"
#include "loader/log.h"
#include "loader/object.h"
#include "loader/plugin.h"

enum { DF_PLUGIN_REASON_SIZE = 1024 }; /* bytes; one message of ours */

enum {                          /* df_plugin.wake */
       DF_WAKE_EXIT = 1 << 0,   /* the plugin wants its mount to end */
       DF_WAKE_GONE = 1 << 1,   /* the mount has ended */
       DF_WAKE_PARKED = 1 << 2, /* main waits for them without a thread: docs/decisions/015 */
};

enum df_plugin_phase { DF_PLUGIN_STARTING, DF_PLUGIN_MOUNTED, DF_PLUGIN_ENDED };

struct df_plugin {
    struct df_ops ops;              /* fs->ops while serving: the host's, with a destroy of ours */
    const struct df_ops *given_ops; /* the host's own table */
    struct df_plugin *next;         /* list of plugins; under list_lock of plugin_list.c */

    char *library;          /* fixed from here to `words` once main's thread runs */
    df_plugin_function run; /* in place of a library's main; NULL: the library's */
    void *run_data;
    int argc;
    char **argv;             /* main's to modify */
    pid_t pid;               /* the process that main's thread exists in */
    pthread_t thread;        /* main's, while it has one; under `lock` while it may be parked */
    char *stack;             /* main's: until main has returned and its thread has been joined */
    struct df_fiber fiber;   /* main, if it moves: what is on `stack` then */
    bool has_parked;         /* main's own: it does so once */
    struct df_object object; /* `map` is written under list_lock */
    struct df_guest guest;   /* what main takes for its process; as long as its code may run */
    _Atomic(void *) words[DF_PLUGIN_WORDS]; /* the ABI library's */

    _Atomic uint32_t wake; /* futex; DF_WAKE_* */

    _Atomic bool over;   /* it has ended itself in an op or on a thread of its own */
    _Atomic int over_by; /* with this status */

    pthread_mutex_t lock;   /* protects the next eight */
    pthread_cond_t changed; /* phase */
    enum df_plugin_phase phase;
    bool was_mounted;       /* it has served once */
    bool abandoned;         /* nobody waits for it any more: its own thread frees it */
    int mount_error;        /* why df_plugin_serve() could not attach; 0 or -errno */
    int mount_id;           /* 0: not serving */
    struct df_mount *mount; /* NULL: not serving */
    bool died;              /* as the listener was told */

    int load_error; /* main's thread until ENDED, then the joiner: 0 or -errno */
    int status;     /* the same: what main returned */

    _Atomic(struct df_aside *) aside; /* of a loop of the program's own; owned by who takes it */

    struct df_log log;
    bool foreground;    /* main's own: it was told to stay there */
    _Atomic bool heard; /* what it says is for who looks at the foreground, too */
};

/* Into the list of plugins whose main may run, from before its thread is made; and out of it. */
void df_plugin_enlist(struct df_plugin *plugin);
void df_plugin_delist(struct df_plugin *plugin);

/* Keeps one that has ended and lingers: it may still look at its arguments, log, or say that it
 * wants to end. */
void df_plugin_keep(struct df_plugin *plugin);

/* Says what code it has, to df_plugin_of_code() too. */
void df_plugin_set_object(struct df_plugin *plugin, const struct df_object *object);

/* Tells df_plugin_start() that there is a mount. -ETIMEDOUT: nobody waits for it any more. */
int df_plugin_mounted(struct df_plugin *plugin);

/* Main has returned. Its code is unloaded now, or with the last thread that it made, or never. */
void df_plugin_dispose(struct df_plugin *plugin);

/* ---- main's thread: plugin_main.c ---- */

/* Makes main's stack and the thread that loads the program and runs it. 0 or -errno. */
int df_plugin_main_start(struct df_plugin *plugin, pthread_t *thread);

/* Sees main to its end: where it is, or here if it was parked and has been taken. */
void df_plugin_main_finish(struct df_plugin *plugin, bool taken);

/* The thread has been joined. */
void df_plugin_main_free_stack(struct df_plugin *plugin);

/* True: main was parked, and is the caller's to finish, or to give back. */
bool df_plugin_main_take(struct df_plugin *plugin);

/* Main has left its thread: from now on who has something to say gives it another. */
void df_plugin_main_set_parked(struct df_plugin *plugin);

/* A thread of a plugin's. stack: of main's size, NULL: libc's. 0 or -errno. */
int df_plugin_main_thread(pthread_t *thread, void *stack, void *(*run)(void *), void *argument);

/* For main, which is about to sleep until its mount ends: gives its thread up, if it moves and has
 * not done so before. Returns on another thread, when there is something to do. */
void df_plugin_park(struct df_plugin *plugin);

/* Something has been said to a main that is parked: gives it a thread. Any thread. */
void df_plugin_unpark(struct df_plugin *plugin);

/* Detaches its mount, if it has one. 0 or -errno, as df_mount_detach(). */
int df_plugin_detach(struct df_plugin *plugin, unsigned flags);

/* True while files or calls keep a lazily detached mount: main returns only after them. */
bool df_plugin_is_kept(struct df_plugin *plugin);

#endif
