/*
 * control.h - the server's sockets: who joins, who is gone, when it is all over.
 */
#ifndef DF_SERVER_CONTROL_H
#define DF_SERVER_CONTROL_H

#include "server/server_private.h"

/* Runs until the server is to end. 0 or -errno: it could not begin. */
int df_control_run(struct df_server *server);

#endif
