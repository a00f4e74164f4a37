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
 *   df_plugin_stop(): detach -> fs->ops->destroy -> df_plugin_serve returns, main returns
 */
#ifndef DF_HOST_PLUGIN_H
#define DF_HOST_PLUGIN_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "core/ops.h"

struct df_plugin;

/* What the plugin's command line said about its mount; filled by the ABI library's parser. */
struct df_session {
    const char *mountpoint;   /* absolute, as the plugin asked for it */
    const char *fsname;       /* -o fsname=, subtype=; may be NULL */
    const char *subtype;
    bool readonly;            /* -o ro */
    bool serial;              /* single-threaded loop or -s: one op at a time */
    bool allow_other;         /* else only the owner enters (EACCES) */
    bool allow_root;
    bool default_permissions; /* the host checks mode bits */
    uid_t owner_uid;          /* who mounted */
    gid_t owner_gid;
    unsigned max_read;        /* bytes; 0: no limit */
    unsigned max_write;
};

/* ---- for the owner of mounts (api/mount.c) ---- */

/*
 * Loads the shared object `library`, runs its main(argc, argv) and returns when its mount is
 * attached. `message` receives (truncated to size, NUL-terminated) what the plugin said through
 * fuse_log and our own words: why it failed, and the remedy.
 * Returns 0 and *out, or -errno: ENOENT, ENOEXEC (no FUSE program, or one that cannot be loaded
 * safely), EBUSY (mountpoint in use), EINVAL, EIO (main returned before mounting; its status is in
 * the message).
 */
int df_plugin_start(const char *library, int argc, char *const argv[], struct df_plugin **out,
                    char *message, size_t size);

/* Unmounts: -EBUSY while files are open, unless lazy. Waits for main and stores its status. */
int df_plugin_stop(struct df_plugin *plugin, bool lazy, int *status);

struct df_mount *df_plugin_mount_of(struct df_plugin *plugin);

/* ---- for the ABI library, on the plugin's thread ---- */

/* The plugin whose thread this is; NULL on foreign threads (sessions remember theirs). */
struct df_plugin *df_plugin_self(void);

/* Keeps a line of the plugin's or of ours for `message` and the mount's log. */
void df_plugin_log(struct df_plugin *plugin, const char *line);

/* The loop: attaches fs at session->mountpoint and sleeps until the mount is gone.
 * Returns 0, or -errno when it could not be attached. */
int df_plugin_serve(struct df_plugin *plugin, const struct df_session *session, struct df_fs *fs);

/* The plugin wants to end by itself (fuse_exit, fuse_session_exit, fuse_session_unmount): detaches
 * lazily; safe from any thread and from inside an op. */
void df_plugin_exit(struct df_plugin *plugin);

#endif
