/*
 * socket.c - a message with at most one descriptor through a unix socket.
 */
#include "process/socket.h"

#include <string.h>
#include <sys/socket.h>

bool df_socket_tell(int socket, void *body, size_t size, int fd, int flags)
{
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof(int))];
    } control = {
        {.cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS}};
    struct iovec iov = {body, size};
    struct msghdr header = {.msg_iov = &iov, .msg_iovlen = 1};

    if (fd >= 0) {
        memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
        header.msg_control = &control;
        header.msg_controllen = sizeof(control);
    }
    return sendmsg(socket, &header, flags | MSG_NOSIGNAL) >= 0;
}
