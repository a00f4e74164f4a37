/*
 * changes.c - tells who keeps answers and listings for others what an op changes.
 *
 * Objects are told by the number that getattr shows; a plugin that gives a node another number is
 * reported when it does (nodes/attr.c).
 */
#include "lowlevel/changes.h"

static void tell_object(struct df_changes *changes, const struct df_node *node)
{
    struct stat st;

    df_node_attr_last(node, &st);
    df_changes_object(changes, st.st_ino);
}

/* Paths may lead through it. */
static bool leads_on(const struct df_node *node)
{
    return df_node_is_dir(node) || S_ISLNK(node->type);
}

void df_lowlevel_tell_names(struct df_changes *changes, const struct df_node *dir)
{
    df_changes_directory(changes, dir->serial);
    tell_object(changes, dir);
}

/* Behind a link there may be names that were absent, and in a directory that a plugin fills. */
void df_lowlevel_tell_made(struct df_changes *changes, const struct df_node *dir,
                           const struct df_node_name *name, mode_t type)
{
    df_lowlevel_tell_names(changes, dir);
    df_changes_made(changes, name->hash);
    if (S_ISDIR(type) || S_ISLNK(type))
        changes->name = 0;
}

/* A directory that is removed while it is open lists nothing any more; the ".." of one that moves
 * is another. */
void df_lowlevel_tell_lost(struct df_changes *changes, const struct df_node *node)
{
    if (df_node_is_dir(node))
        df_changes_directory(changes, node->serial);
    changes->moved |= leads_on(node);
    tell_object(changes, node);
}

void df_lowlevel_tell_bytes(struct df_changes *changes, const struct df_node *node)
{
    df_changes_bytes(changes, node->serial);
}

void df_lowlevel_tell_attr(struct df_changes *changes, const struct df_node *node, bool access)
{
    changes->moved |= access && df_node_is_dir(node);
    tell_object(changes, node);
}
