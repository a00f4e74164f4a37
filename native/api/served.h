/*
 * served.h - joining a mount server that the caller has started itself; for the Python package,
 * whose server is an interpreter.
 */
#ifndef DF_API_SERVED_H
#define DF_API_SERVED_H

#include <stddef.h>

#include "core/export.h"

/*
 * df_mount() for a server that is there: `socket`, which stays the caller's, is the other end of
 * the one that the server was given. Waits until it is ready; then this process counts as the one
 * that has started it, whose unmounting ends it. flags: DF_MOUNT_TIMING, DF_MOUNT_NOSTATS.
 */
DF_PRIVATE_EXPORT int df_mount_served(int socket, unsigned flags, char *message, size_t size);

#endif
