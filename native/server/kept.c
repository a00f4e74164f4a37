/*
 * kept.c - the server's half of being kept: tells the keeper what must outlive it.
 */
#include <string.h>
#include <sys/socket.h>

#include "server/keeper.h"
#include "server/keeper_message.h"

static void tell(const struct df_kept *kept, struct df_keeper_message body, int fd)
{
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof(int))];
    } control = {
        {.cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS}};
    struct iovec iov = {&body, sizeof(body)};
    struct msghdr header = {.msg_iov = &iov, .msg_iovlen = 1};

    if (!kept || kept->socket < 0)
        return;
    if (fd >= 0) {
        memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
        header.msg_control = &control;
        header.msg_controllen = sizeof(control);
    }
    sendmsg(kept->socket, &header, MSG_NOSIGNAL); /* a keeper that is gone keeps nothing */
}

void df_kept_memory(const struct df_kept *kept, int memory)
{
    tell(kept, (struct df_keeper_message){.kind = DF_KEEPER_MEMORY}, memory);
}

void df_kept_client(const struct df_kept *kept, uint32_t client, int fd)
{
    tell(kept, (struct df_keeper_message){.kind = DF_KEEPER_CLIENT, .client = client}, fd);
}
