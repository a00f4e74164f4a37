/*
 * extension.c - security contexts and the supplementary group of a new file; see extension.h.
 */
#include "extension.h"

#include <stddef.h>

_Static_assert(sizeof(struct extension) == 24 && offsetof(struct extension, groups) == 8,
               "no padding");

/* A group, not that of its file system ids, that the caller is in. */
static bool has_group(fuse_req_t req, gid_t wanted)
{
    gid_t groups[256];
    int count = fuse_req_getgroups(req, 256, groups);

    for (int i = 0; i < count && i < 256; i++)
        if (groups[i] == wanted)
            return true;
    return false;
}

static bool has_groups(fuse_req_t req)
{
    gid_t group;

    return fuse_req_getgroups(req, 1, &group) > 0;
}

static int ask_group(struct channel *channel, fuse_req_t req, uint64_t node, gid_t *group)
{
    struct fuse_getattr_in in = {0};
    struct message message = {.opcode = FUSE_GETATTR, .node = node, .count = 2};
    struct fuse_attr_out out;

    message.part[1] = (struct iovec){&in, sizeof(in)};
    int error = channel_ask(channel, req, &message, &out, sizeof(out));
    if (!error)
        *group = out.attr.gid;
    return error;
}

/* The parent's group, if that is why the caller may make something there. What it is now: asked
 * for, as nothing here keeps attributes. */
static int add_group(struct channel *channel, fuse_req_t req, const struct message *message,
                     struct extension *room, size_t *size)
{
    gid_t group = 0;

    if (!(channel->flags & PROTOCOL_CREATE_SUPP_GROUP) || !has_groups(req))
        return 0;
    int error = ask_group(channel, req, message->node, &group);
    if (error || group == fuse_req_ctx(req)->gid || !has_group(req, group))
        return error;
    room->groups.header.size = sizeof(room->groups);
    room->groups.header.type = PROTOCOL_EXT_GROUPS;
    room->groups.count = 1;
    room->groups.group = group;
    *size += sizeof(room->groups);
    return 0;
}

int extension_add(struct channel *channel, fuse_req_t req, struct message *message,
                  struct extension *room)
{
    bool contexts = channel->flags & FUSE_SECURITY_CTX;
    size_t size = 0;

    if (contexts) { /* no security module is asked: a list of none, as from a kernel without one */
        room->contexts = (struct fuse_secctx_header){.size = sizeof(room->contexts)};
        size += sizeof(room->contexts);
    }
    int error = add_group(channel, req, message, room, &size);
    if (error || size == 0)
        return error;
    void *begin = contexts ? (void *)&room->contexts : (void *)&room->groups;
    message->part[message->count++] = (struct iovec){begin, size};
    message->extension_words = (uint16_t)(size / 8);
    return 0;
}
