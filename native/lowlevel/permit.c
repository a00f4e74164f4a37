/*
 * permit.c - what default_permissions leaves to us: mode bits, and the access control lists of a
 * file system that asks for them.
 */
#include <unistd.h>

#include "core/caller.h"
#include "host/acl.h"
#include "host/permission.h"
#include "lowlevel/request.h"

/* The list of a file, asked for on behalf of the caller, as the kernel does. */
static int ask_acl(struct df_lowlevel *lane, struct df_call *call, struct df_node *node,
                   const struct stat *st, int mask)
{
    uint32_t changes = df_node_attr_changes(node);
    char list[DF_ACL_SIZE];
    ssize_t answer = df_lowlevel_ask_xattr(lane, call, node, DF_ACL_ACCESS, list, sizeof(list));
    int result = df_acl_check(call->caller, st, list, answer, mask);

    if (result == DF_ACL_ABSENT)
        df_node_attr_without_acl(node, changes);
    return result;
}

/* As fuse_permission(): when what we believe says no, new attributes and a new list decide. */
static int ask_permission(struct df_lowlevel *lane, struct df_call *call, struct df_node *node,
                          int mask)
{
    struct stat st;
    int result = df_lowlevel_ask_attr(lane, call, node, NULL, &st);

    if (result < 0)
        return result;
    if (lane->fs.acls && df_caller_is_for_acl(call->caller, &st)) {
        result = ask_acl(lane, call, node, &st, mask);
        if (result != DF_ACL_ABSENT)
            return result;
    }
    return df_permission_check(call->caller, &st, mask);
}

static bool granted(const struct df_lowlevel *lane, const struct df_call *call,
                    const struct df_node *node, int mask)
{
    struct df_node_clock clock = {0};
    struct stat st;

    return df_node_attr_read(node, DF_ATTR_OWNER, &clock, &st) &&
           df_permission_check(call->caller, &st, mask) == 0 &&
           !(lane->fs.acls && df_caller_is_for_acl(call->caller, &st) &&
             df_node_attr_is_stale(node, DF_ATTR_NO_ACL));
}

int df_lowlevel_permit(struct df_lowlevel *lane, struct df_call *call, struct df_node *node,
                       int mask)
{
    bool override = call->caller->capable && (!(mask & X_OK) || df_node_is_dir(node));

    if (!lane->default_permissions || override || granted(lane, call, node, mask))
        return 0;
    return ask_permission(lane, call, node, mask);
}

int df_lowlevel_permit_remove(struct df_lowlevel *lane, struct df_call *call, struct df_node *dir,
                              struct df_node *victim)
{
    struct stat dir_st, victim_st;
    int result;

    if (!lane->default_permissions || call->caller->capable)
        return 0;
    result = df_lowlevel_permit(lane, call, dir, W_OK | X_OK);
    if (result == 0)
        result = df_lowlevel_attr(lane, call, dir, NULL, DF_ATTR_OWNER, &dir_st);
    if (result == 0)
        result = df_lowlevel_attr(lane, call, victim, NULL, DF_ATTR_OWNER, &victim_st);
    return result < 0 ? result : df_permission_sticky(call->caller, &dir_st, &victim_st);
}

/* A bare pointer: to ask, it must be held. One that is being forgotten is walked to anew. */
int df_lowlevel_permit_search(struct df_nodes *nodes, struct df_call *call, struct df_node *dir)
{
    struct df_lowlevel *lane = df_lowlevel_of_nodes(nodes);
    int result;

    if (call->caller->capable || granted(lane, call, dir, X_OK))
        return 0;
    if (!df_node_try_hold(dir))
        return DF_NODE_COLD;
    result = ask_permission(lane, call, dir, X_OK);
    df_node_put(nodes, dir);
    return result;
}
