/*
 * abandoned.h - a server that still starts ends when whoever started it has gone: what it would
 * mount is for nobody. Once it serves, its control socket tells it so (control.h).
 */
#ifndef DF_SERVER_ABANDONED_H
#define DF_SERVER_ABANDONED_H

#include "core/export.h"

/* Before it mounts, with its end of the control socket. It ends together with the programs that its
 * file systems have started: all of its process group. Without a thread for that it goes on. */
DF_PRIVATE_EXPORT void df_abandoned_watch(int control);

/* When it has mounted, or cannot. */
DF_PRIVATE_EXPORT void df_abandoned_over(void);

#endif
