/*
 * walk_warm.h - what a walk step by step takes from the warm one.
 */
#ifndef DF_NODES_WALK_WARM_H
#define DF_NODES_WALK_WARM_H

#include <string.h>

#include "nodes/walk.h"

/* Bytes up to the next slash; eight at a time where that does not read past the end. */
static inline size_t df_node_component_len(const char *at, size_t left)
{
    size_t len = 0;

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    for (; left - len >= 8; len += 8) {
        const uint64_t ones = UINT64_C(0x0101010101010101);
        uint64_t word, zero;

        memcpy(&word, at + len, 8);
        word ^= ones * '/';
        zero = (word - ones) & ~word & (ones << 7);
        if (zero)
            return len + ((size_t)__builtin_ctzll(zero) >> 3);
    }
#endif
    while (len < left && at[len] != '/')
        len++;
    return len;
}

/* True: the cache knows the way to the last component, and the walk is there. */
bool df_node_walk_known(struct df_node_walk *walk);

/* df_node_walk_peek() of any name where the walk stands. */
int df_node_walk_peek_at(struct df_node_walk *walk, const struct df_node_name *name,
                         struct df_node **node);

#endif
