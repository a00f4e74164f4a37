/*
 * process.h - a process that is a mount server, once it has mounted: main.c, and the Python
 * interpreter that serves Python file systems (directfuse/_python/server.py).
 */
#ifndef DF_SERVER_PROCESS_H
#define DF_SERVER_PROCESS_H

#include <stdbool.h>
#include <stddef.h>

#include "core/export.h"
#include "process/keeper.h"

/* Before it mounts: what only a server can do is offered to its file systems. others: a server of
 * somebody else's, a run for example, on whose standard error it is a guest. */
DF_PRIVATE_EXPORT void df_server_process_begin(bool others);

/* Before it mounts, too: reads how large the cache of its clients is to be, DIRECTFUSE_CACHE. 0; or
 * -EINVAL and words: that is no size. */
DF_PRIVATE_EXPORT int df_server_process_configure(char *message, size_t size);

/*
 * df_serve() for all mounts of this process, with the descriptors of its command line. Each mount
 * says at its end, to `report` (-1: nobody), what it has done: a line "mount MOUNTPOINT",
 * escaped as in /proc/mounts, then "NAME CALLS ERRORS BYTES" for each operation that was called, or
 * "ended" where it had ended by itself. kept: of a server that is started again, NULL: it is not
 * (process/keeper.h). Once for a process. 0 or -errno.
 */
DF_PRIVATE_EXPORT int df_server_process(int control, int listener, bool stay, int report,
                                        const struct df_kept *kept);

#endif
