/*
 * calls_socket.h - what messages need of the names of unix sockets (calls_message.c).
 */
#ifndef DF_SYSCALLS_CALLS_SOCKET_H
#define DF_SYSCALLS_CALLS_SOCKET_H

#include <stdbool.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>

/* The address in the program's memory, to which its socket `fd` is to connect, or sends: if it is a
 * path in a mount, the one that the kernel knows, into *real and *len, and 0; -errno where that may
 * not be reached, ECONNREFUSED for what is no socket, and in *real a name of nothing: what else is
 * wrong with the call the kernel finds before it looks for a name. DF_NOT_OURS: it is the kernel's
 * as it stands, as for a send over a connection, which looks at no path. DFI_SOCKET_OUTSIDE: it is
 * the kernel's by the name in *real. */
long dfi_socket_find(unsigned long fd, bool sends, unsigned long address, unsigned long size,
                     struct sockaddr_un *real, socklen_t *len);

#define DFI_SOCKET_OUTSIDE 1

/* What a call gives that went to what was found so: a node that nobody has bound refuses. `ret`: of
 * the kernel, by *real. */
long dfi_socket_reached(long found, long ret);

/* An address that the kernel has given. A path may fill sun_path: it ends in a NUL behind that. */
union dfi_socket_name {
    struct sockaddr_storage any;
    struct sockaddr_un un;
};

/* If it is that of a mount's socket, the name it was bound to takes its place. */
bool dfi_socket_show(union dfi_socket_name *name, socklen_t *len);

#endif
