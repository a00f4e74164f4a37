/*
 * keeper.h - restart=on-failure: a small process that starts the server again when it dies.
 *
 * The keeper loads no file system, so what crashes is not it. It holds what must outlive a server:
 * the segment, the ledger (ledger/files.h), and a copy of the server's end of each client's
 * socket. Each server is a fork of it, and inherits them. Clients notice nothing but that a call
 * takes longer: the segment is the same, and what they had asked for lies in it.
 *
 * Only mounts that cannot be written are kept: what the file system had in memory dies with it.
 */
#ifndef DF_PROCESS_KEEPER_H
#define DF_PROCESS_KEEPER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/export.h"

/* What a server has of the one before it. */
struct df_kept_client {
    uint32_t client;
    int fd; /* the server's end of its socket */
};

struct df_kept {
    int socket; /* to the keeper, who is told what is to be kept; -1: there is none */
    int ledger; /* memfd, of sizeof(struct df_ledger) */
    int memory; /* the segment's memfd; -1: this is the first server */
    const struct df_kept_client *clients;
    size_t count;
};

/* Runs `serve` in a child, again and again, until it returns 0 or has failed too often. `said`: its
 * name in the lines on standard error that tell of it, NULL: there are none; the last of them goes
 * to the descriptor `report` instead, if there is one (-1: none), as "given up". Returns an exit
 * status. Call it with SIGTERM and SIGINT blocked, single-threaded. */
int df_keep(int (*serve)(const struct df_kept *kept, void *arg), void *arg, const char *said,
            int report);

/* ---- for the server ---- */

/* The segment is made. */
DF_PRIVATE_EXPORT void df_kept_memory(const struct df_kept *kept, int memory);

/* A client has a socket, or none any more (fd -1). */
DF_PRIVATE_EXPORT void df_kept_client(const struct df_kept *kept, uint32_t client, int fd);

#endif
