/*
 * traced_tree.h - the small tree that traced.c serves. Part of traced.c, whose lock protects it.
 */
#ifndef TRACED_TREE_H
#define TRACED_TREE_H

/* ---- the tree; under the lock ---- */

static struct traced_node *node_of(struct traced *t, uint64_t number)
{
    if (number == 0 || number >= TRACED_NODES || !t->nodes[number].alive) {
        t->errors++;
        snprintf(t->error, sizeof(t->error), "node %ju is not known", (uintmax_t)number);
        return &t->nodes[0];
    }
    return &t->nodes[number];
}

/* The kernel makes no name in a directory that it has removed. */
static void check_there(struct traced *t, uint64_t parent, const char *name)
{
    if (node_of(t, parent)->st.st_nlink == 0) {
        t->errors++;
        snprintf(t->error, sizeof(t->error), "%s gets into a removed directory", name);
    }
}

static struct traced_entry *find(struct traced *t, uint64_t parent, const char *name)
{
    for (int i = 0; i < TRACED_ENTRIES; i++)
        if (t->entries[i].parent == parent && strcmp(t->entries[i].name, name) == 0)
            return &t->entries[i];
    return NULL;
}

static void add_entry(struct traced *t, uint64_t parent, const char *name, uint64_t child)
{
    for (int i = 0; i < TRACED_ENTRIES; i++) {
        if (t->entries[i].parent == 0) {
            t->entries[i].parent = parent;
            t->entries[i].child = child;
            snprintf(t->entries[i].name, sizeof(t->entries[i].name), "%s", name);
            return;
        }
    }
    abort();
}

static bool is_full(struct traced *t)
{
    bool node = t->next < TRACED_NODES, entry = false;

    for (int i = 2; i < TRACED_NODES && !node; i++)
        node = !t->nodes[i].alive;
    for (int i = 0; i < TRACED_ENTRIES && !entry; i++)
        entry = t->entries[i].parent == 0;
    return !node || !entry;
}

static bool has_children(struct traced *t, uint64_t dir)
{
    for (int i = 0; i < TRACED_ENTRIES; i++)
        if (t->entries[i].parent == dir)
            return true;
    return false;
}

static bool is_below(struct traced *t, uint64_t node, uint64_t dir)
{
    while (node != FUSE_ROOT_ID && node != dir) {
        uint64_t parent = 0;

        for (int i = 0; i < TRACED_ENTRIES && parent == 0; i++)
            if (t->entries[i].parent && t->entries[i].child == node)
                parent = t->entries[i].parent;
        if (parent == 0)
            return false;
        node = parent;
    }
    return node == dir;
}

static void bury_if_dead(struct traced *t, uint64_t number)
{
    struct traced_node *node = &t->nodes[number];

    if (number != FUSE_ROOT_ID && node->alive && node->st.st_nlink == 0 && node->lookups == 0)
        node->alive = false;
}

static uint64_t make(struct traced *t, uint64_t parent, const char *name, mode_t mode)
{
    uint64_t number = t->next++;
    struct traced_node *node;

    if (number >= TRACED_NODES) { /* numbers of dead nodes again, as another generation */
        for (number = 2; number < TRACED_NODES && t->nodes[number].alive; number++)
            ;
        if (number == TRACED_NODES)
            abort();
    }
    node = &t->nodes[number];
    *node = (struct traced_node){.alive = true, .generation = node->generation + 1};
    node->st.st_ino = number;
    node->st.st_mode = mode;
    node->st.st_nlink = S_ISDIR(mode) ? 2 : 1;
    node->st.st_uid = getuid();
    node->st.st_gid = getgid();
    clock_gettime(CLOCK_REALTIME, &node->st.st_mtim);
    if (parent)
        add_entry(t, parent, name, number);
    return number;
}

static void drop(struct traced *t, struct traced_entry *entry)
{
    uint64_t child = entry->child;

    entry->parent = 0;
    if (S_ISDIR(t->nodes[child].st.st_mode))
        t->nodes[child].st.st_nlink = 0;
    else
        t->nodes[child].st.st_nlink--;
    bury_if_dead(t, child);
}

#endif
