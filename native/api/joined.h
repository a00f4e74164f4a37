/*
 * joined.h - a mount that lives in a mount server, as seen by one of its clients: the server is
 * started or found by name, joined, and its file system attached here as a df_remote.
 *
 * Forked children are clients of their own: they share the file system and its open files.
 */
#ifndef DF_API_JOINED_H
#define DF_API_JOINED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/export.h"

struct df_joined;
struct df_plugin_program;

/* What calls of this process through the channel have cost; a child counts on from its parent. */
struct df_joined_stats {
    uint64_t trips; /* messages sent to the server */
    uint64_t spun;  /* answered while the caller spun */
    uint64_t slept; /* for which the caller slept */
    uint64_t hits;  /* calls answered by the cache in shared memory, without a trip */
};

/*
 * Starts a server process that mounts the program (as df_plugin_start()), and joins it. It ends
 * with its last client; with `restart` it is started again when it dies (process/keeper.h). Returns
 * 0 and the id of the mount here, or -errno; message then says why.
 */
int df_joined_start(const struct df_plugin_program *program, bool restart, struct df_joined **out,
                    int *mount_id, char *message, size_t size);

/* Starts it only: a socket to it, for df_joined_meet(), or -errno. Until it has mounted, closing
 * that ends it. */
int df_joined_launch(const struct df_plugin_program *program, bool restart, char *message,
                     size_t size);

/* The same for a server that the caller has started: `socket`, which stays the caller's, leads to
 * it. Waits until it says that it is ready. */
int df_joined_meet(int socket, struct df_joined **out, int *mount_id, char *message, size_t size);

/* Joins the server of that name (`directfuse serve --name`), for which it waits so many seconds
 * until it has mounted; 0: any. point: the mountpoint of the file system that is meant, NULL: its
 * only one. The same results; -ENOENT: there is no such server, or nothing of it at that point;
 * -EINVAL: it has several; -ETIMEDOUT; -EINTR. */
int df_joined_find(const char *name, const char *point, unsigned seconds, struct df_joined **out,
                   int *mount_id, char *message, size_t size);

/*
 * Ends the mount here; in the process that started the server, also there: for everybody, but with
 * `alone` only if nobody else is a client. On success `joined` is gone. 0, -EBUSY: files are open,
 * here or in another process, -ETIMEDOUT: it takes longer than the patience (a second at least).
 * *hung: the server had to end without its file system, which did not let go of calls.
 */
int df_joined_leave(struct df_joined *joined, bool lazy, bool alone, bool *hung);

/* How long a call may take before it ends with ETIMEDOUT; what it asked for may still happen. ns,
 * < 0: for ever. Waiting for locks is not limited. From the process that started the server it is
 * also for how long the server waits for its file system when it is to end, and the limit of those
 * that join later. */
void df_joined_set_patience(struct df_joined *joined, int64_t patience);

/* Who hears of servers that are gone, or do not answer: once of each, by the mount's id here and
 * one line of words, in the thread and inside the call that found out. NULL: nobody. */
void df_joined_listen(void (*listener)(int mount, const char *words));

void df_joined_stats(const struct df_joined *joined, struct df_joined_stats *stats);

/* What the server of that name has mounted, when it has: mountpoints, a NUL behind each, as many as
 * have room. Their number, or -errno; message then says why. */
DF_PRIVATE_EXPORT int df_joined_points(const char *name, char *points, size_t room, char *message,
                                       size_t size);

#define DF_SOCKET_PATH_SIZE 108 /* bytes: sockaddr_un.sun_path, unix(7) */

/* Where the server of that name listens: $XDG_RUNTIME_DIR/directfuse/<name>.socket, the directory
 * made if `make`; without that variable /tmp/directfuse-<uid>/<name>.socket. 0, -EINVAL (not a
 * name), -ENAMETOOLONG; with the path: -ENOENT (no directory) and others of mkdir(2) and lstat(2),
 * -EACCES (a directory that is not ours alone). */
DF_PRIVATE_EXPORT int df_joined_socket_path(const char *name, bool make,
                                            char path[DF_SOCKET_PATH_SIZE]);

#endif
