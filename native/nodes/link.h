/*
 * link.h - targets of symlinks, kept with their nodes when the plugin allowed it
 * (FUSE_CAP_CACHE_SYMLINKS). Like the kernel's, a kept target is valid until the plugin says
 * otherwise.
 */
#ifndef DF_NODES_LINK_H
#define DF_NODES_LINK_H

#include <sys/types.h>

#include "nodes/node.h"

/*
 * The target in buf, at most size bytes, not NUL-terminated: kept or asked for. `node` is
 * referenced. Returns the count of bytes, or what the plugin says.
 */
ssize_t df_node_link_read(struct df_nodes *nodes, struct df_call *call, struct df_node *node,
                          char *buf, size_t size);

/* The target has changed. Inside the gate. */
void df_node_link_forget(struct df_node *node);

/* The node is going away. */
void df_node_link_free(struct df_node *node);

#endif
