/*
 * plugin.h - one running FUSE program: its main() on a thread of its own, from loading to the
 * value that main returns. What the libfuse ABI library (native/libfuse) and the public
 * df_mount() meet; the core knows nothing of it.
 *
 *   df_plugin_start()                 the plugin's thread
 *     load the object, start thread --> main(argc, argv)
 *     wait                               fuse_session_new, fuse_session_mount ...
 *                                        fuse_session_loop -> df_plugin_serve(fs)
 *     <- mounted                             attaches the mount, sleeps until it is gone
 *   df_plugin_stop(): detach -> df_plugin_serve returns -> the file system's destroy, main returns
 *
 * A main that states that it moves (docs/decisions/015) does not sleep: it leaves its thread, which
 * ends, and goes on when it is stopped, on the thread that stops it.
 *
 * One plugin is one mount. Lock order: a plugin's lock, the list of plugins, a plugin's log; none
 * is held while code of the plugin or of the core runs, except while main's thread is created.
 */
#ifndef DF_LOADER_PLUGIN_H
#define DF_LOADER_PLUGIN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "core/export.h"
#include "core/ops.h"

struct df_guest;
struct df_mount;
struct df_plugin;
struct df_turns;

/* What the plugin has said about its mount: most of it by its command line, which the ABI library
 * parses. */
struct df_session {
    const char *mountpoint; /* absolute, as the plugin asked for it */
    const char *fsname;     /* -o fsname=, subtype=; may be NULL */
    const char *subtype;
    bool readonly;          /* -o ro */
    bool serial;            /* single-threaded loop or -s: one op at a time */
    struct df_turns *turns; /* when its own event loop says so; NULL: at any time */
    bool allow_other;       /* else only the owner enters (EACCES) */
    bool allow_root;
    bool default_permissions; /* the host checks mode bits */
    uid_t owner_uid;          /* who mounted */
    gid_t owner_gid;
    unsigned max_read; /* bytes; 0: no limit */
    unsigned max_write;

    /* Of one that runs one operation at a time by a lock of its own: the calling thread has that,
     * and all others wait for it. NULL: there is none, or nothing is known of it. */
    bool (*is_my_turn)(void *turn);
    void *turn;
};

/* ---- for the owner of mounts (api/mount.c) ---- */

/* A main of this process. */
typedef int (*df_plugin_function)(int argc, char *argv[], void *data);

/* What is to be started. */
struct df_plugin_program {
    const char *library; /* its main() is called; or NULL: run(argc, argv, data) of this process, */
    df_plugin_function run; /* which must not end the process or the thread */
    void *data;
    int argc;
    char *const *argv; /* copied; without a library argv[0] is for messages */
    unsigned seconds;  /* to wait at the most until it has mounted; 0: without a limit */
};

/*
 * Loads a private copy of the program's shared object, runs its main(argc, argv) on a thread of its
 * own and returns when its mount is attached. `message` receives (truncated to size,
 * NUL-terminated) what the plugin said through fuse_log and our own words: why it failed, and the
 * remedy. Returns 0 and *out, or -errno:
 *
 *   ENOENT, EACCES      and others of open(2): the file
 *   ENOEXEC             no FUSE program, or one that cannot be loaded safely; found out before
 *                       anything of it runs, but for what only the dynamic linker can tell
 *   EBUSY, ENOTDIR      and others of df_mount_attach(): its mountpoint
 *   EIO                 main returned before it mounted anything (also for --help: then the help
 *                       is in the message)
 *   ETIMEDOUT           main is left to itself, and refused what it would mount
 *   ENOMEM, EAGAIN      memory, threads
 */
DF_PRIVATE_EXPORT int df_plugin_start(const struct df_plugin_program *program,
                                      struct df_plugin **out, char *message, size_t size);

/*
 * Unmounts, waits until main has returned, stores its status and frees the plugin.
 * Lazy, while files are open or calls run: leaves the table of mounts at once and stores -1; the
 * plugin ends by itself with the last of them. In a child of fork(2) main's thread does not exist:
 * nothing is waited for, and the status is 0. flags: DF_DETACH_*.
 * Returns 0; -EBUSY: files are open (also when the plugin has ended its mount itself), or called
 * from inside one of the mount's own calls (then not even lazily main could be waited for);
 * -EDEADLK: called by main itself. On an error nothing has changed.
 */
DF_PRIVATE_EXPORT int df_plugin_stop(struct df_plugin *plugin, unsigned flags, int *status);

/* Who hears that a plugin which is mounted answers no more: its mount's number, and one line of
 * words. Called where it was found out: in the middle of a call. NULL: nobody. */
DF_PRIVATE_EXPORT void df_plugin_listen(void (*listener)(int mount, const char *words));

/* Its mount; NULL once that has ended. */
DF_PRIVATE_EXPORT struct df_mount *df_plugin_mount_of(struct df_plugin *plugin);

/* ---- for the ABI library ---- */

/* The plugin whose thread this is; NULL on foreign threads (sessions remember theirs). */
DF_PRIVATE_EXPORT struct df_plugin *df_plugin_self(void);

/* From here on this thread is the plugin's (NULL: nobody's). Returns whose it was. */
DF_PRIVATE_EXPORT struct df_plugin *df_plugin_become(struct df_plugin *plugin);

/* The plugin whose code `address` is in; NULL if none. Any thread. */
DF_PRIVATE_EXPORT struct df_plugin *df_plugin_of_code(const void *address);

/* What the plugin exports beside libfuse's API (docs/decisions/014): that it checks names itself;
 * that its copy_file_range copies what there is; its getattr by an open directory, or NULL. */
bool df_plugin_checks_names(const struct df_plugin *plugin);
bool df_plugin_shortens(const struct df_plugin *plugin);
void *df_plugin_getattr_at(const struct df_plugin *plugin);

/* True if code of the plugin may run after its main has returned: it makes threads, or installs
 * handlers. What such code may still name must stay valid until the process ends. */
DF_PRIVATE_EXPORT bool df_plugin_lingers(const struct df_plugin *plugin);

/* Words that the ABI library keeps for each plugin; zero at first. */
enum df_plugin_word {
    DF_PLUGIN_LOG_FUNCTION, /* what fuse_set_log_func() was given */
    DF_PLUGIN_MODULES,      /* what fuse_register_module() was given */
    DF_PLUGIN_WORDS,
};
DF_PRIVATE_EXPORT _Atomic(void *) *df_plugin_word(struct df_plugin *plugin,
                                                  enum df_plugin_word word);

/* Keeps a line (or several) of the plugin's or of ours for `message` and the mount's log. The
 * newest DF_PLUGIN_LOG_SIZE bytes are kept. Any thread. */
enum { DF_PLUGIN_LOG_SIZE = 16 * 1024 };
DF_PRIVATE_EXPORT void df_plugin_log(struct df_plugin *plugin, const char *line);

/* The same for every plugin that runs; false when there has never been one in this process. */
DF_PRIVATE_EXPORT bool df_plugin_log_all(const char *line);

/* The plugin becomes a daemon, which stands in the root directory; or it was told to stay in the
 * foreground, and what it says is meant to be seen. There libfuse 3 takes it to the root, too, and
 * libfuse 2 leaves it where it is. Its main's thread, before it mounts. */
DF_PRIVATE_EXPORT void df_plugin_daemonize(struct df_plugin *plugin, bool foreground);

/*
 * A plugin that is mounted answers no more, though nobody has unmounted it: `how` says why, for the
 * listener (df_plugin_listen) and the log. Only the first time, and while it is mounted, is the
 * listener called. Any thread, from inside an op.
 */
DF_PRIVATE_EXPORT void df_plugin_died(struct df_plugin *plugin, const char *how);

/* The same for a program that has called exit or abort (status: as of df_program_run) `where` its
 * host goes on without it. */
void df_plugin_ended_itself(struct df_plugin *plugin, int status, const char *where);

/* It has, so nothing of it is to run any more, where it is not on its way already. */
DF_PRIVATE_EXPORT bool df_plugin_is_over(const struct df_plugin *plugin);

/*
 * The loop: attaches fs at session->mountpoint and sleeps until the mount is gone: its files
 * closed, its calls over. fs stays the caller's: fs->ops->destroy is not called, so the program
 * ends its file system itself, after its loop, as it does with libfuse: on its own thread, or, if
 * its main moves, on that of who ends the mount. Any of
 * the plugin's threads; one at a time. Returns 0, or -errno when it could not be attached.
 */
DF_PRIVATE_EXPORT int df_plugin_serve(struct df_plugin *plugin, const struct df_session *session,
                                      struct df_fs *fs);

/* The same for a loop of the program's own, which is main's and which session->turns wait for: on a
 * thread of ours. The turns end with the mount, or at once if it cannot be attached. 0, -EAGAIN,
 * -ENOMEM. */
DF_PRIVATE_EXPORT int df_plugin_serve_aside(struct df_plugin *plugin,
                                            const struct df_session *session, struct df_fs *fs);

/* Main has left that loop: ends the mount, if it lives, and gives turns until its last file is
 * closed. */
DF_PRIVATE_EXPORT void df_plugin_serve_out(struct df_plugin *plugin);

/* The plugin wants to end by itself (fuse_exit, fuse_session_exit, fuse_session_unmount): its mount
 * is detached lazily, this one or, if it does not serve yet, the next. Any thread, from inside an
 * op, from a signal handler. */
DF_PRIVATE_EXPORT void df_plugin_exit(struct df_plugin *plugin);

/* A thread that the plugin made has come to its end, or its main (see df_guest.users). */
void df_plugin_put(struct df_plugin *plugin);

/* The guest of the plugin whose code `address` is in; NULL if none. Any thread. */
struct df_guest *df_plugin_guest_of_code(const void *address);

/* Takes a wish to end back that no df_plugin_serve() has met yet. */
DF_PRIVATE_EXPORT void df_plugin_stay(struct df_plugin *plugin);

#endif
