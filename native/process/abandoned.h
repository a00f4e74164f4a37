/*
 * abandoned.h - a server that still mounts ends when whoever started it has gone, for what it would
 * mount is for nobody; and by SIGTERM and SIGINT, for nobody has joined it who could lose anything.
 * Once it serves, its control takes both (server/control.h).
 */
#ifndef DF_PROCESS_ABANDONED_H
#define DF_PROCESS_ABANDONED_H

#include "core/export.h"

/* Before it mounts, with its end of the control socket (-1: none), and with the signals blocked. It
 * ends together with the programs that its file systems have started: all of its process group.
 * Without a thread or descriptors for that it goes on. */
DF_PRIVATE_EXPORT void df_abandoned_watch(int control);

/* When it has mounted, or cannot. */
DF_PRIVATE_EXPORT void df_abandoned_over(void);

#endif
