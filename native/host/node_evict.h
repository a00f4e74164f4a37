/*
 * node_evict.h - keeps the number of entries bounded.
 */
#ifndef DF_HOST_NODE_EVICT_H
#define DF_HOST_NODE_EVICT_H

#include "host/node.h"

/* Drops some entries that have not been used lately. Called at the end of a call, with no lock held
 * and no bare pointer in use, when df_nodes.crowded says so. */
void df_node_evict(struct df_nodes *nodes);

#endif
