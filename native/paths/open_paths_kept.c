/*
 * open_paths_kept.c - nodes of files that are closed: what is known of a file's bytes is known by
 * its node's serial, and so outlives the last close, as in the kernel.
 *
 * A kept node is referenced like an open file's: renames move it and what is below it, a removal
 * marks it. Their number is bounded, for a rename looks at all. Who gives way: the next that was
 * not closed again since it was looked at last.
 */
#include "paths/open_paths_table.h"

/* Under kept_lock: an entry to use, and whose it was. */
static struct df_open_path *take_entry(struct df_open_paths *table, uint32_t *entry)
{
    struct df_open_path *was;

    for (;;) {
        *entry = table->kept_hand++ % DF_OPEN_PATHS_KEPT;
        was = table->kept[*entry];
        if (!was || !was->kept_again)
            break;
        was->kept_again = false;
    }
    if (was)
        was->kept = 0;
    return was;
}

void df_open_paths_keep(struct df_open_paths *table, struct df_open_path *node)
{
    struct df_open_path *gives_way;
    uint32_t entry;

    if (atomic_load(&node->removed) || df_open_path_is_hidden(node)) {
        df_open_paths_put(table, node);
        return;
    }
    pthread_mutex_lock(&table->kept_lock);
    if (node->kept) {
        node->kept_again = true;
        gives_way = node;
    } else {
        gives_way = take_entry(table, &entry);
        table->kept[entry] = node;
        node->kept = entry + 1;
        node->kept_again = false;
    }
    pthread_mutex_unlock(&table->kept_lock);
    if (gives_way)
        df_open_paths_put(table, gives_way);
    /* Who removed it may have looked for it here too early. */
    if (gives_way != node && atomic_load(&node->removed))
        df_open_paths_keep_no_more(table, node);
}

void df_open_paths_keep_no_more(struct df_open_paths *table, struct df_open_path *node)
{
    bool kept = false;

    pthread_mutex_lock(&table->kept_lock);
    if (node->kept && table->kept[node->kept - 1] == node) {
        table->kept[node->kept - 1] = NULL;
        node->kept = 0;
        kept = true;
    }
    pthread_mutex_unlock(&table->kept_lock);
    if (kept)
        df_open_paths_put(table, node);
}

void df_open_paths_forget(struct df_open_paths *table, const char *path, uint32_t len,
                          struct df_path_hash key)
{
    struct df_open_path *node = NULL;

    if (atomic_load(&table->keeps))
        node = df_open_paths_find(table, path, len, key);
    if (!node)
        return;
    df_open_paths_keep_no_more(table, node);
    df_open_paths_put(table, node);
}

void df_open_paths_forget_all(struct df_open_paths *table)
{
    for (uint32_t i = 0; i < DF_OPEN_PATHS_KEPT; i++)
        if (table->kept[i])
            df_open_paths_keep_no_more(table, table->kept[i]);
}
