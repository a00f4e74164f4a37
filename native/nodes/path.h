/*
 * path.h - the name of a node, by the entries that lead to it.
 */
#ifndef DF_NODES_PATH_H
#define DF_NODES_PATH_H

#include <sys/types.h>

#include "nodes/node.h"

/*
 * The path of a node from the root, without a NUL: of a file with several names, one of them. The
 * count of bytes; -ENOENT: it has no name, or none is kept; -ENAMETOOLONG: more than `size` bytes.
 * The caller holds the node, and no lock. Rare: looks at all entries.
 */
ssize_t df_node_path(struct df_nodes *nodes, const struct df_node *node, char *buf, size_t size);

#endif
