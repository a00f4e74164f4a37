/*
 * kept.c - the server's half of being kept: tells the keeper what must outlive it.
 */
#include "process/keeper.h"
#include "process/keeper_message.h"
#include "process/socket.h"

static void tell(const struct df_kept *kept, struct df_keeper_message body, int fd)
{
    if (kept && kept->socket >= 0) /* a keeper that is gone keeps nothing */
        df_socket_tell(kept->socket, &body, sizeof(body), fd, 0);
}

void df_kept_memory(const struct df_kept *kept, int memory)
{
    tell(kept, (struct df_keeper_message){.kind = DF_KEEPER_MEMORY}, memory);
}

void df_kept_client(const struct df_kept *kept, uint32_t client, int fd)
{
    tell(kept, (struct df_keeper_message){.kind = DF_KEEPER_CLIENT, .client = client}, fd);
}
