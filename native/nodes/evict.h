/*
 * evict.h - keeps the number of entries bounded.
 */
#ifndef DF_NODES_EVICT_H
#define DF_NODES_EVICT_H

#include "nodes/node.h"

/* Drops some entries that have not been used lately. Called at the end of a call, with no lock held
 * and no bare pointer in use, when df_nodes.crowded says so. */
void df_node_evict(struct df_nodes *nodes);

#endif
