/*
 * map.c - a sparse array of pointers: a radix tree with 64 children a node.
 *
 * An empty file needs no node, a file of one chunk neither; each level multiplies the reach by 64.
 * Addresses of nodes and values are multiples of 16, so a map keeps its height beside the address.
 * Every node says in a word of bits which children it has: that finds the next value and tells when
 * the node is empty.
 */
#include <errno.h>
#include <stdlib.h>

#include "store.h"

enum { BITS = 6, FANOUT = 1 << BITS, HEIGHT_MASK = 15 };

struct node {
    uint64_t present;
    void *children[FANOUT];
};

static inline void *root_of(const struct map *map)
{
    return (void *)(map->root & ~(uintptr_t)HEIGHT_MASK);
}

static inline unsigned height_of(const struct map *map)
{
    return map->root & HEIGHT_MASK;
}

static void set_root(struct map *map, void *root, unsigned height)
{
    assert(!((uintptr_t)root & HEIGHT_MASK) && height <= HEIGHT_MASK);
    map->root = (uintptr_t)root | height;
}

/* Can a tree of this height hold the key? */
static inline bool reaches(unsigned height, uint64_t key)
{
    return height * BITS >= 64 || key >> (height * BITS) == 0;
}

/* Index of the child on the way to key, in a node whose children have `height` levels. */
static inline unsigned child_index(uint64_t key, unsigned height)
{
    return (key >> (height * BITS)) % FANOUT;
}

void *map_get(const struct map *map, uint64_t key)
{
    unsigned height = height_of(map);
    void *at = root_of(map);

    if (!reaches(height, key))
        return NULL;
    while (at && height-- > 0)
        at = ((struct node *)at)->children[child_index(key, height)];
    return at;
}

/* Adds levels on top until the key fits. */
static int reach(struct map *map, uint64_t key)
{
    unsigned height = height_of(map);
    void *root = root_of(map);

    while (!reaches(height, key)) {
        if (root) {
            struct node *node = calloc(1, sizeof(*node));
            if (!node)
                return -ENOMEM;
            node->present = 1;
            node->children[0] = root;
            root = node;
        }
        set_root(map, root, ++height);
    }
    return 0;
}

static void set_child(struct node *node, unsigned index, void *child)
{
    node->children[index] = child;
    node->present |= UINT64_C(1) << index;
}

/*
 * On -ENOMEM nodes without a value may be left; map_erase() of the key removes them.
 */
int map_set(struct map *map, uint64_t key, void *value)
{
    int error = reach(map, key);
    if (error)
        return error;

    unsigned height = height_of(map);
    if (height == 0) {
        set_root(map, value, 0);
        return 0;
    }
    struct node *node = root_of(map);
    if (!node) {
        node = calloc(1, sizeof(*node));
        if (!node)
            return -ENOMEM;
        set_root(map, node, height);
    }
    while (--height > 0) {
        unsigned index = child_index(key, height);
        if (!node->children[index]) {
            void *child = calloc(1, sizeof(*node));
            if (!child)
                return -ENOMEM;
            set_child(node, index, child);
        }
        node = node->children[index];
    }
    set_child(node, child_index(key, 0), value);
    return 0;
}

/* The subtree without the key, NULL if nothing is left of it. */
static void *erase_below(void *at, unsigned height, uint64_t key)
{
    if (height == 0 || !at)
        return NULL;

    struct node *node = at;
    unsigned index = child_index(key, --height);
    node->children[index] = erase_below(node->children[index], height, key);
    if (!node->children[index])
        node->present &= ~(UINT64_C(1) << index);
    if (node->present)
        return node;
    free(node);
    return NULL;
}

void map_erase(struct map *map, uint64_t key)
{
    unsigned height = height_of(map);

    if (!reaches(height, key))
        return;
    void *root = erase_below(root_of(map), height, key);
    set_root(map, root, root ? height : 0);
}

/* The first value of the subtree at or behind *key, whose digits above `height` are the subtree's.
 */
static void *next_below(void *at, unsigned height, uint64_t *key)
{
    if (height == 0)
        return at;

    struct node *node = at;
    unsigned index = child_index(*key, --height);
    uint64_t left = node->present & ~UINT64_C(0) << index;
    for (; left; left &= left - 1) {
        unsigned found = (unsigned)__builtin_ctzll(left);
        if (found != index) { /* behind the path of *key: its first value is wanted */
            uint64_t above = *key >> (height * BITS);
            *key = (above - index + found) << (height * BITS);
            index = found;
        }
        void *value = next_below(node->children[found], height, key);
        if (value)
            return value;
    }
    return NULL;
}

void *map_next(const struct map *map, uint64_t *key)
{
    unsigned height = height_of(map);
    void *root = root_of(map);

    return root && reaches(height, *key) ? next_below(root, height, key) : NULL;
}
