/*
 * served.h - starting a mount server, and joining one that the caller has started; for the Python
 * package, whose server may be an interpreter, and which waits for either in its own way.
 */
#ifndef DF_API_SERVED_H
#define DF_API_SERVED_H

#include <stddef.h>

#include "core/export.h"

/*
 * df_mount() with DF_MOUNT_SERVER, without waiting: a socket to the server, for df_mount_served().
 * Until it has mounted, closing that ends it.
 */
DF_PRIVATE_EXPORT int df_mount_launch(const char *library, int argc, char *const argv[],
                                      unsigned flags, char *message, size_t size);

/*
 * df_mount() for a server that is there: `socket`, which stays the caller's, is the other end of
 * the one that the server was given. Waits until it is ready; then this process counts as the one
 * that has started it, whose unmounting ends it. flags: DF_MOUNT_TIMING, DF_MOUNT_NOSTATS.
 */
DF_PRIVATE_EXPORT int df_mount_served(int socket, unsigned flags, char *message, size_t size);

#endif
