/*
 * keeper_message.h - what a server says to its keeper; descriptors come with it (SCM_RIGHTS).
 */
#ifndef DF_PROCESS_KEEPER_MESSAGE_H
#define DF_PROCESS_KEEPER_MESSAGE_H

#include <stdint.h>

enum df_keeper_kind {
    DF_KEEPER_MEMORY, /* with the segment's memfd: everything is mounted */
    DF_KEEPER_CLIENT, /* with the client's socket; without: it is gone */
};

struct df_keeper_message {
    uint32_t kind; /* df_keeper_kind */
    uint32_t client;
};

#endif
