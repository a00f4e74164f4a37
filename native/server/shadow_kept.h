/*
 * shadow_kept.h - data files that are kept for the next who maps their file
 * (shadows/shadow_kept.h): how much is kept, and what must not be.
 */
#ifndef DF_SERVER_SHADOW_KEPT_H
#define DF_SERVER_SHADOW_KEPT_H

#include "channel/layout.h"

struct df_server;

/* Nobody has a file open any more of which so many bytes are in memory. Where too much is kept, the
 * least recently used goes. Under the lock of the run, of a server that has a shadow directory. */
void df_shadow_kept_closed(struct df_server *server, uint64_t bytes);

/* None of that file is kept. Who writes changes the data file before the mount: who was killed in
 * between has changed the one alone, and nothing else tells. Without the lock: who looks for the
 * name at this moment maps what he could have mapped before. */
void df_shadow_kept_forget(const struct df_server *server, const struct df_ofd *ofd);

#endif
