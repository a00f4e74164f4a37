/*
 * extension.h - what requests that make a file carry behind their arguments (FUSE 7.36, 7.38).
 */
#ifndef HELPER_EXTENSION_H
#define HELPER_EXTENSION_H

#include "channel.h"

struct extension { /* as they are sent: one behind the other, in words of 8 bytes */
    struct fuse_secctx_header contexts;
    struct {
        struct protocol_extension header;
        uint32_t count, group;
    } groups;
};

/* Adds to CREATE, MKDIR, MKNOD or SYMLINK, whose node is the parent, what the server has asked for
 * in INIT; `room` is its place. 0, or an errno: the parent could not be looked at. */
int extension_add(struct channel *channel, fuse_req_t req, struct message *message,
                  struct extension *room);

#endif
