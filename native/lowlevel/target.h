/*
 * target.h - what operations by name have in common: the walk to an object or an entry.
 */
#ifndef DF_LOWLEVEL_TARGET_H
#define DF_LOWLEVEL_TARGET_H

#include "lowlevel/private.h"

/* The object of an operation by name. */
struct df_target {
    struct df_lowlevel *lane;
    struct df_call *call;
    struct df_node *node; /* requests may be sent about it */
    struct df_file *file; /* the open file, when that is the object; else NULL */
};

/*
 * An operation on one object: walks to it, calls act(), and does both a second time, asking about
 * every component, when the plugin says ESTALE. Returns what act returns, or the walk.
 */
ssize_t df_lowlevel_on_object(struct df_fs *fs, struct df_call *call, const struct df_where *where,
                              ssize_t (*act)(const struct df_target *target, void *arg), void *arg);

/* An entry to make or remove, in its directory, which is locked exclusively. */
struct df_place {
    struct df_lowlevel *lane;
    struct df_call *call;
    struct df_node *dir;
    struct df_node_name name;    /* NUL-terminated */
    struct df_node_entry *entry; /* present or absent; NULL: absent and not cached */
    struct df_node *node;        /* present: the node it leads to */
    uint32_t told;               /* as of struct df_node_search */
    bool disowned; /* what was made is no node of ours: its lookup is to be forgotten */
    struct df_node_drops drops;
};

void df_lowlevel_begin_place(struct df_place *place, struct df_lowlevel *lane,
                             struct df_call *call);

/* Looks up the last component of a walk whose directory is locked: fills the place. */
int df_lowlevel_look_up(struct df_place *place, const struct df_node_walk *walk, unsigned how);

/*
 * An operation on one entry: walks to its directory, locks that, looks the entry up (`how`: 0 or
 * DF_LOOKUP_FRESH) and calls act(); with ESTALE a second time as above.
 */
int df_lowlevel_on_entry(struct df_fs *fs, struct df_call *call, const struct df_where *where,
                         unsigned how, int (*act)(struct df_place *place, void *arg), void *arg);

/*
 * Enters what the plugin has made at the place: checks the answer (EIO unless it is a `type`),
 * counts the lookup, invalidates the directory's attributes. *node comes with a reference if
 * `hold`; else it is pinned by the entry as long as the lock is held. If this fails the caller
 * calls df_lowlevel_disown(), when whatever else was made is undone.
 */
int df_lowlevel_enter_made(struct df_place *place, const struct df_node_found *found, mode_t type,
                           bool hold, struct df_node **node);
void df_lowlevel_disown(const struct df_place *place, const struct df_node_found *found);

/* SETATTR, with no further checks; attr.c. */
int df_lowlevel_change(const struct df_target *target, const struct df_setattr *set,
                       struct stat *st);

/* Before a file is written to by other than root: takes its setuid and setgid bits, if the plugin
 * does not see to that; attr.c. */
int df_lowlevel_strip(const struct df_target *target);

#endif
