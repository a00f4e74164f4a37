/*
 * restore.h - opens the files of a server that has died again, in the one that follows it.
 */
#ifndef DF_SERVER_RESTORE_H
#define DF_SERVER_RESTORE_H

#include "server/server_private.h"

/* After df_files_take(), with the mounts served, before anybody asks for anything. A file that
 * cannot be opened again stays lost: its calls end in ESTALE. */
void df_restore_files(struct df_server *server);

#endif
