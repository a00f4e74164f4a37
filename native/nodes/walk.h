/*
 * walk.h - a whole name: from a df_where to a node, or to a directory and a last component.
 *
 * walk_warm.c is the way that the cache knows, walk.c goes step by step, walk_object.c to an
 * object.
 *
 * The rules are those of path_resolution(7): every component but the last must be a directory the
 * caller may search, symlinks in between are followed, at most 40 in one call, relative ones
 * inside, absolute ones and ".." above the root through df_call_leave*(). Errors are found in the
 * order of the components.
 */
#ifndef DF_NODES_WALK_H
#define DF_NODES_WALK_H

#include "core/call.h"
#include "core/file.h"
#include "nodes/attr.h"
#include "nodes/cache.h"
#include "nodes/held.h"

#define DF_NODE_FILE_WORD 0 /* of df_file.host[]: the node, referenced by the file */

static inline struct df_node *df_node_of_file(const struct df_file *file)
{
    return (struct df_node *)(uintptr_t)file->host[DF_NODE_FILE_WORD];
}

/* ---- the warm walk: nothing is asked, nothing is locked, nothing is referenced ---- */

#define DF_NODE_COLD 1 /* result: walk as one must */

/* 0 and a node that is readable until the call ends; an error that is certain; or DF_NODE_COLD. */
int df_node_walk_warm(struct df_nodes *nodes, struct df_call *call, const struct df_where *where,
                      struct df_node_clock *clock, struct df_node **out);

/* ---- the walk ---- */

/* A node that requests may be sent about: by a reference of the call, or of the open file. */
struct df_node_spot {
    struct df_node *node;
    bool held; /* a reference of the call */
};

/* The object that `where` names. `revalidate`: ask about every component, known or not. */
int df_node_walk_object(struct df_nodes *nodes, struct df_call *call, const struct df_where *where,
                        bool revalidate, struct df_node_spot *spot);

static inline void df_node_walk_done(struct df_nodes *nodes, struct df_node_spot *spot)
{
    if (spot->held)
        df_node_put(nodes, spot->node);
}

enum df_node_end { /* what a name ends with */
                   DF_END_NAME,
                   DF_END_DOT, /* only from the target of a symlink */
                   DF_END_DOTDOT,
                   DF_END_ROOT, /* nothing: the root of the mount, or the open file itself */
};

/* A walk to the last component. */
struct df_node_walk {
    struct df_nodes *nodes;
    struct df_call *call;
    const struct df_where *where;
    bool revalidate;
    bool must_be_dir;         /* slashes behind the last component */
    enum df_node_end kind;    /* of the last component */
    struct df_node *dir;      /* where it stands; not referenced: df_node_walk_lock() */
    struct df_node_held held; /* its lock, while the walk has that */
    struct df_node_name last; /* the last component, if it is a name; NUL-terminated */
    struct df_node_clock clock;
    const char *at; /* what remains of the name, up to end */
    const char *end;
    uint32_t links;      /* followed by now, with those of df_call.links */
    unsigned tries;      /* times it began again */
    char text[PATH_MAX]; /* a symlink's target and what remains behind it, at the end */
};

/* Walks to the directory that holds the last component, and parses that. */
int df_node_walk_parent(struct df_node_walk *walk, struct df_nodes *nodes, struct df_call *call,
                        const struct df_where *where, bool revalidate);

/* What the cache says for certain about the last component: 0 and a node (readable until the call
 * ends), -ENOENT, or DF_NODE_COLD. */
int df_node_walk_peek(struct df_node_walk *walk, struct df_node **node);

/* From the last component to the object, through symlinks. 0 and a node that is readable until the
 * call ends; an error; or DF_NODE_COLD: df_node_walk_again(). */
int df_node_walk_last(struct df_node_walk *walk, struct df_node **node);

/* The last component turned out to be this symlink, which the caller holds, and is followed: goes
 * on to the directory and last component that it leads to. */
int df_node_walk_follow(struct df_node_walk *walk, struct df_node *link);

/* Begins again: the directory was found dead. -ESTALE when that happens too often. */
int df_node_walk_again(struct df_node_walk *walk);

/* The directory of the walk, referenced and locked exclusively. Returns 0, or the error of a
 * directory that may not be used, or -EDEADLK where this thread has it locked, or DF_NODE_COLD for
 * one that is being forgotten: df_node_walk_again(). Then it is neither. */
int df_node_walk_lock(struct df_node_walk *walk);
void df_node_walk_unlock(struct df_node_walk *walk);

#endif
