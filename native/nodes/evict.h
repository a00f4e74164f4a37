/*
 * evict.h - keeps the number of entries bounded.
 */
#ifndef DF_NODES_EVICT_H
#define DF_NODES_EVICT_H

#include "nodes/node.h"

/* Drops some entries that have not been used lately. Called at the end of a call, with no lock held
 * and no bare pointer in use, when df_nodes.crowded says so. */
void df_node_evict(struct df_nodes *nodes);

/* Marks the nodes with these numbers: those that nobody uses are forgotten by the evictions to
 * come, of which the next call is the first, whatever room there is. NOTIFY_PRUNE: as the kernel
 * prunes, what is in use (open, or a directory with entries) stays. Inside the gate. */
void df_node_prune(struct df_nodes *nodes, const uint64_t ids[], uint32_t count);

#endif
