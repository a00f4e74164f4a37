/*
 * lookup.h - entries that must be asked for: LOOKUP, revalidation, and what to do with a node
 * that an answer brings. The directory is locked (node.h).
 */
#ifndef DF_NODES_LOOKUP_H
#define DF_NODES_LOOKUP_H

#include "nodes/attr.h"
#include "nodes/cache.h"

enum {                             /* how */
       DF_LOOKUP_SHARED = 1 << 0,  /* the lock is held shared */
       DF_LOOKUP_FRESH = 1 << 1,   /* ask even if the entry is valid: LOOKUP_EXCL, LOOKUP_REVAL */
       DF_LOOKUP_REPLACE = 1 << 2, /* second try after DF_LOOKUP_AGAIN: the entry was asked about */
       DF_LOOKUP_ABSENT = 1 << 3,  /* an absent name is about to be made: it needs no entry */
       DF_LOOKUP_MAKE = DF_LOOKUP_FRESH | DF_LOOKUP_ABSENT,
};

/* Result: an entry must go; come again with the lock held exclusively. */
#define DF_LOOKUP_AGAIN 2

/* A name of a locked directory, and the entry as far as it is known. */
struct df_node_search {
    struct df_nodes *nodes;
    struct df_node *dir;
    const struct df_node_name *name; /* NUL-terminated */
    struct df_node_drops *drops;     /* gets what the caller drops when the lock is released */
    struct df_node_entry *entry;     /* present or absent; NULL: absent, and not cached */
    uint32_t told; /* df_node_told() before the plugin was asked; df_node_lookup() sets it */
};

/*
 * Finds the entry in the cache, or by asking; search->entry is an output. An entry is good for this
 * call even if it has expired already. Returns 0, DF_LOOKUP_AGAIN (only if shared) or a negative
 * errno: -ENOMEM, -EIO for a reply that cannot be, -ELOOP for a directory inside itself, -ESTALE
 * for one that is elsewhere for us and cannot be moved now, else what the plugin says.
 */
int df_node_lookup(struct df_node_search *search, struct df_call *call, unsigned how);

/*
 * Enters a node that an answer brought, in the exclusively locked directory. search->entry: the
 * absent entry that df_node_lookup() gave, or NULL: it is made. `is_new` as from df_node_get().
 * entry_timeout: seconds. Takes over the reference. Returns 0, or -ENOMEM, -ELOOP or -ESTALE: the
 * reference goes to `drops`.
 */
int df_node_lookup_enter(struct df_node_search *search, struct df_node *node, bool is_new,
                         double entry_timeout);

/* Enters what READDIRPLUS told of an entry; the lock is held shared or exclusively. `asked`: as for
 * df_node_get(). What cannot be entered is forgotten again. */
void df_node_lookup_learn(struct df_node_search *search, const struct df_node_found *found,
                          uint64_t asked);

/* True if `node` is `dir` or a directory above it. */
bool df_node_lookup_is_above(struct df_nodes *nodes, const struct df_node *node,
                             const struct df_node *dir);

/* A rename has moved the directory to another parent, with both locked. The old one's reference
 * goes to `drops`. */
void df_node_lookup_move(struct df_nodes *nodes, struct df_node *node, struct df_node *parent,
                         struct df_node_drops *drops);

#endif
