/*
 * served.c - the mounts that a server serves, by their ids.
 */
#include "server/server_private.h"

unsigned df_server_index(struct df_server *server, int id)
{
    for (unsigned i = 0; i < server->mount_count; i++)
        if (server->mounts[i].id == id)
            return i;
    return DF_MOUNT_COUNT;
}

struct df_served *df_server_mount(struct df_server *server, int id)
{
    for (unsigned i = 0; i < server->mount_count; i++)
        if (server->mounts[i].id == id)
            return &server->mounts[i];
    return NULL;
}

uint64_t df_server_calls(const struct df_server *server)
{
    uint64_t sum = 0;

    for (unsigned i = 0; i < server->mount_count; i++)
        sum += server->options->calls(server->mounts[i].counted);
    return sum;
}
