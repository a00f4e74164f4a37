/*
 * node.c - what the tree of nodes asks of a plugin, as requests: LOOKUP, READLINK, FORGET, GETATTR.
 */
#include <string.h>
#include <unistd.h>

#include "lowlevel/request.h"

/* ---- LOOKUP, READLINK ---------------------------------------------------------------------- */

static int ask_lookup(struct df_nodes *nodes, struct df_call *call, struct df_node *dir,
                      const char *name, struct df_node_found *found)
{
    struct df_lowlevel *lane = df_lowlevel_of_nodes(nodes);
    struct fuse_req req;

    if (!lane->ops.lookup)
        return -ENOSYS;
    df_request_begin(&req, lane, call, DF_TAKES_ENTRY);
    req.found = found;
    return (int)DF_REQUEST(&req, lookup, dir->id, name);
}

static ssize_t ask_readlink(struct df_nodes *nodes, struct df_call *call, struct df_node *node,
                            char *buf, size_t size)
{
    struct df_lowlevel *lane = df_lowlevel_of_nodes(nodes);
    struct iovec iov = {buf, size};
    struct fuse_req req;

    if (!lane->ops.readlink)
        return -ENOSYS;
    df_request_begin(&req, lane, call, DF_TAKES_LINK);
    req.iov = &iov;
    req.room = 0; /* a target is more than plain data: reply.c */
    return DF_REQUEST(&req, readlink, node->id);
}

/* ---- FORGET -------------------------------------------------------------------------------- */

/* On nobody's behalf, as in the kernel: who caused it is not known. */
static void begin_forget(struct fuse_req *req, struct df_lowlevel *lane)
{
    static const struct df_caller nobody;
    const struct df_call call = {.caller = &nobody};

    df_request_begin(req, lane, &call, DF_TAKES_NONE);
    req->caller = NULL;
}

static void send_forget(struct df_lowlevel *lane, const struct df_node_forget *forget)
{
    struct fuse_req req;

    begin_forget(&req, lane);
    DF_REQUEST(&req, forget, forget->id, forget->count);
}

static void send_forget_multi(struct df_lowlevel *lane, const struct df_node_forget *list,
                              size_t count)
{
    struct fuse_forget_data copy[DF_NODE_FORGETS];
    struct fuse_req req;

    _Static_assert(sizeof(copy[0]) == sizeof(list[0]) &&
                       offsetof(struct fuse_forget_data, nlookup) ==
                           offsetof(struct df_node_forget, count),
                   "a df_node_forget is a fuse_forget_data");
    memcpy(copy, list, count * sizeof(copy[0]));
    begin_forget(&req, lane);
    DF_REQUEST(&req, forget_multi, count, copy);
}

static void ask_forget(struct df_nodes *nodes, const struct df_node_forget *list, size_t count)
{
    struct df_lowlevel *lane = df_lowlevel_of_nodes(nodes);

    if (lane->ops.forget_multi && (count > 1 || !lane->ops.forget))
        send_forget_multi(lane, list, count);
    else if (lane->ops.forget)
        for (size_t i = 0; i < count; i++)
            send_forget(lane, &list[i]);
}

/* ---- GETATTR ------------------------------------------------------------------------------- */

static int send_getattr(struct df_lowlevel *lane, struct df_call *call, struct df_node *node,
                        struct df_file *file, struct df_attr_reply *reply)
{
    union df_file_info info;
    struct fuse_file_info *fi = NULL;
    struct fuse_req req;

    if (!lane->ops.getattr)
        return -ENOSYS;
    if (file && S_ISREG(node->type) && df_lowlevel_file_has(file, DF_FILE_HAS_HANDLE))
        fi = df_lowlevel_handle(&info, file);
    df_request_begin(&req, lane, call, DF_TAKES_ATTR);
    req.attr = reply;
    return (int)DF_REQUEST(&req, getattr, node->id, fi);
}

int df_lowlevel_ask_attr(struct df_lowlevel *lane, struct df_call *call, struct df_node *node,
                         struct df_file *file, struct stat *st)
{
    uint32_t changes = df_node_attr_changes(node);
    struct df_attr_reply reply;
    int result;

    if (df_node_has(node, DF_NODE_BAD))
        return -EIO;
    result = send_getattr(lane, call, node, file, &reply);
    df_node_given(&lane->nodes.shortest, result == 0 ? reply.timeout : 1e9);
    if (result == 0)
        result = df_node_attr_store(node, &reply.st, df_node_expiry(reply.timeout), changes);
    if (result == 0)
        *st = reply.st;
    return result;
}

int df_lowlevel_attr(struct df_lowlevel *lane, struct df_call *call, struct df_node *node,
                     struct df_file *file, uint32_t need, struct stat *st)
{
    struct df_node_clock clock = {0};

    if (df_node_attr_read(node, need, &clock, st))
        return 0;
    return df_lowlevel_ask_attr(lane, call, node, file, st);
}

/* ---- the source -------------------------------------------------------------------------- */

/* It has what every operation waits for: its own lock, or ours of a plugin without one. */
static bool delays(struct df_nodes *nodes)
{
    const struct df_lowlevel *lane = df_lowlevel_of_nodes(nodes);
    const struct df_session *session = lane->session;

    return df_serial_is_mine(&lane->serial_lock) ||
           (session && session->is_my_turn && session->is_my_turn(session->turn));
}

const struct df_node_source df_lowlevel_source = {
    .lookup = ask_lookup,
    .readlink = ask_readlink,
    .forget = ask_forget,
    .delays = delays,
};

const struct df_node_source df_lowlevel_guarded_source = {
    .lookup = ask_lookup,
    .readlink = ask_readlink,
    .forget = ask_forget,
    .search = df_lowlevel_permit_search,
    .delays = delays,
};
