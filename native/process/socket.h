/*
 * socket.h - a message with at most one descriptor through a unix socket.
 */
#ifndef DF_PROCESS_SOCKET_H
#define DF_PROCESS_SOCKET_H

#include <stdbool.h>
#include <stddef.h>

/* sendmsg(2) of `size` bytes, and of `fd` if it is not negative. `flags`: MSG_*; it never raises
 * SIGPIPE. False: the peer is gone, or (MSG_DONTWAIT) does not listen, or the kernel refuses. */
bool df_socket_tell(int socket, void *body, size_t size, int fd, int flags);

#endif
