/*
 * server.h - a mount server: the mounts of this process, served to the processes of one job.
 *
 *     control*.c  sockets: who joins, who is gone
 *     ended.c     what those who are gone had: until it is closed
 *     unmount.c   mounts that end, alone or with the server
 *     execute*.c  one message: the op on the hosted df_fs, in the client's name
 *
 * What these need lies in rooms of its own: watch/, writeback/, workers/, process/, ledger/,
 * segment/.
 */
#ifndef DF_SERVER_SERVER_H
#define DF_SERVER_SERVER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/export.h"
#include "process/keeper.h"

struct df_serve_options {
    int control;        /* connected SOCK_SEQPACKET socket of who started it, which is told when it
                           is ready (DF_JOIN_READY); -1: none */
    int listener;       /* listening SOCK_SEQPACKET socket, of a named server; -1: none */
    int report;         /* where a crash is told (process/crash.h); -1: nowhere */
    bool stay;          /* go on when the last client has gone */
    size_t cache_size;  /* bytes of files and listings that clients may find in memory; 0: none */
    const char *shadow; /* directory of the runs that it serves (mapped.c); NULL: none */
    /* Unmounts for good, flushing: as df_unmount(mount, 0). 0 or -errno. */
    int (*unmount)(int mount);
    /* How many calls its file system has had so far; 0: it is unmounted. */
    uint64_t (*calls)(int mount);
    int64_t patience;           /* ns that a call may take; 0: any */
    const struct df_kept *kept; /* process/keeper.h; NULL: nobody starts it again */
};

/*
 * Serves every mount that this process has now, until all are unmounted by a client, the last
 * client has gone, or SIGTERM or SIGINT comes; then unmounts what is left. Call it with these
 * signals blocked in all threads. 0 or -errno: it could not begin.
 */
DF_PRIVATE_EXPORT int df_serve(const struct df_serve_options *options);

/* A file system of the process has ended, and its ops fail: who waits for its files is to see it.
 * Any thread. */
DF_PRIVATE_EXPORT void df_serve_died(void);

#endif
