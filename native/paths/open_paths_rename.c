/*
 * open_paths_rename.c - what a rename does to open files: locks both paths and everything open
 * below them, and gives them their new paths.
 *
 * Opening below a path under rename must wait too, though no node exists yet that could be locked.
 * So the prefixes are published first and the table is searched afterwards; who opens enters its
 * node first and looks for prefixes afterwards. One of the two sees the other.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "paths/open_paths_table.h"

static bool is_below(const char *path, uint32_t len, const char *top, uint32_t top_len)
{
    return len > top_len && path[top_len] == '/' && memcmp(path, top, top_len) == 0;
}

/* ---- the gate ---- */

static void publish(struct df_rename *rename)
{
    struct df_open_paths *table = rename->table;

    pthread_mutex_lock(&table->gate);
    table->below[0].path = rename->from;
    table->below[0].len = rename->from_len;
    table->below[1].path = rename->to;
    table->below[1].len = rename->to_len;
    atomic_store(&table->renaming, true);
    pthread_mutex_unlock(&table->gate);
}

static void unpublish(struct df_open_paths *table)
{
    pthread_mutex_lock(&table->gate);
    atomic_fetch_add(&table->renames, 1);
    atomic_store(&table->renaming, false);
    pthread_cond_broadcast(&table->gate_open);
    pthread_mutex_unlock(&table->gate);
}

static bool is_at_or_below(const char *path, uint32_t len, const char *top, uint32_t top_len)
{
    return (len == top_len && memcmp(path, top, len) == 0) || is_below(path, len, top, top_len);
}

/* Under the gate's lock. */
static bool is_gated(const struct df_open_paths *table, const char *path, uint32_t len)
{
    return atomic_load(&table->renaming) &&
           (is_at_or_below(path, len, table->below[0].path, table->below[0].len) ||
            is_at_or_below(path, len, table->below[1].path, table->below[1].len));
}

bool df_open_paths_in_rename(struct df_open_paths *table, const char *path, uint32_t len)
{
    if (!atomic_load(&table->renaming))
        return false;
    pthread_mutex_lock(&table->gate);
    bool gated = is_gated(table, path, len);
    pthread_mutex_unlock(&table->gate);
    return gated;
}

bool df_open_paths_wait_rename(struct df_open_paths *table, const char *path, uint32_t len,
                               bool alone, const struct df_open_path *base)
{
    bool waited = false;

    if (!atomic_load(&table->renaming) || (!alone && !base))
        return false;
    pthread_mutex_lock(&table->gate);
    /* A rename of the base itself, or above it, has to wait for its holder. */
    if (alone || !is_gated(table, base->path, base->len)) {
        while (is_gated(table, path, len)) {
            pthread_cond_wait(&table->gate_open, &table->gate);
            waited = true;
        }
    }
    pthread_mutex_unlock(&table->gate);
    return waited;
}

/* ---- what is concerned ---- */

static void free_nodes(struct df_rename *rename)
{
    if (rename->nodes != rename->first)
        free(rename->nodes);
}

static bool grow(struct df_rename *rename)
{
    size_t size = rename->room * sizeof(rename->nodes[0]);
    struct df_open_path **nodes = malloc(4 * size);

    if (!nodes)
        return false;
    memcpy(nodes, rename->nodes, size);
    free_nodes(rename);
    rename->nodes = nodes;
    rename->room *= 4;
    return true;
}

static int append(struct df_rename *rename, struct df_open_path *node)
{
    if (rename->count == rename->room && !grow(rename))
        return -ENOMEM;
    rename->nodes[rename->count++] = node;
    return 0;
}

static void put_all(struct df_rename *rename)
{
    while (rename->count)
        df_open_paths_put(rename->table, rename->nodes[--rename->count]);
}

static bool is_concerned(const struct df_rename *rename, const struct df_open_path *node)
{
    return !node->removed && (is_below(node->path, node->len, rename->from, rename->from_len) ||
                              is_below(node->path, node->len, rename->to, rename->to_len));
}

/* Every node below the two paths, referenced. */
static int collect_shard(struct df_rename *rename, struct df_open_paths_shard *shard)
{
    int result = 0;

    pthread_mutex_lock(&shard->lock);
    for (uint32_t i = 0; i < shard->chain_count && result == 0; i++) {
        for (struct df_open_path *node = shard->chains[i]; node && result == 0; node = node->next) {
            if (!is_concerned(rename, node))
                continue;
            result = append(rename, node);
            if (result == 0)
                atomic_fetch_add(&node->refs, 1);
        }
    }
    pthread_mutex_unlock(&shard->lock);
    return result;
}

static int collect(struct df_rename *rename)
{
    struct df_open_paths *table = rename->table;
    const char *paths[2] = {rename->from, rename->to};
    uint32_t lens[2] = {rename->from_len, rename->to_len};
    int result = 0;

    for (int i = 0; i < 2 && result == 0; i++) {
        struct df_open_path *node = df_open_paths_get(table, paths[i], lens[i],
                                                      df_path_hash(table->seed, paths[i], lens[i]));
        result = node ? append(rename, node) : -ENOMEM;
        if (result && node)
            df_open_paths_put(table, node);
    }
    if (result || df_open_paths_count(table) <= 2)
        return result;
    for (int i = 0; i < DF_OPEN_PATHS_SHARDS && result == 0; i++) {
        if (atomic_load(&table->shards[i].count))
            result = collect_shard(rename, &table->shards[i]);
    }
    return result;
}

/* ---- locking ---- */

static void unlock_all(struct df_rename *rename, uint32_t from, uint32_t to)
{
    for (uint32_t i = from; i < to; i++)
        df_open_path_end_write(rename->nodes[i]);
}

/* Write-locks all nodes, waiting for one at a time with no other in hand. */
static void lock_all(struct df_rename *rename)
{
    uint32_t first = 0, i = 0;

    while (i < rename->count) {
        df_open_path_write(rename->nodes[first]);
        for (i = 0; i < rename->count; i++) {
            if (i != first && !df_open_path_try_write(rename->nodes[i]))
                break;
        }
        if (i < rename->count) {
            unlock_all(rename, 0, i);
            if (first > i)
                unlock_all(rename, first, first + 1);
            first = i;
        }
    }
}

static int try_all(struct df_rename *rename)
{
    for (uint32_t i = 0; i < rename->count; i++) {
        if (!df_open_path_try_write(rename->nodes[i])) {
            unlock_all(rename, 0, i);
            return DF_PATH_BUSY;
        }
    }
    return 0;
}

static int lock_or_try_all(struct df_rename *rename, bool wait)
{
    if (!wait)
        return try_all(rename);
    lock_all(rename);
    return 0;
}

static bool is_called(const struct df_open_path *node, const char *path, uint32_t len)
{
    return !node->removed && node->len == len && memcmp(node->path, path, len) == 0;
}

static void mark(struct df_rename *rename, bool in_rename)
{
    for (uint32_t i = 0; i < rename->count; i++)
        rename->nodes[i]->in_rename = in_rename;
}

static bool shard_has_new(const struct df_rename *rename, struct df_open_paths_shard *shard)
{
    bool found = false;

    pthread_mutex_lock(&shard->lock);
    for (uint32_t i = 0; i < shard->chain_count && !found; i++) {
        for (struct df_open_path *node = shard->chains[i]; node && !found; node = node->next)
            found = is_concerned(rename, node) && !node->in_rename;
    }
    pthread_mutex_unlock(&shard->lock);
    return found;
}

/* Whoever held a directory below passed the gate, and may have opened something there since the
 * table was searched. Now that all directories are ours nobody can any more. */
static bool has_new(struct df_rename *rename)
{
    bool found = false;

    if (df_open_paths_count(rename->table) == rename->count)
        return false;
    mark(rename, true);
    for (int i = 0; i < DF_OPEN_PATHS_SHARDS && !found; i++) {
        if (atomic_load(&rename->table->shards[i].count))
            found = shard_has_new(rename, &rename->table->shards[i]);
    }
    mark(rename, false);
    return found;
}

static int reserve_all(struct df_rename *rename)
{
    uint32_t longest = rename->from_len > rename->to_len ? rename->from_len : rename->to_len;
    int result = 0;

    for (uint32_t i = 0; i < rename->count && result == 0; i++)
        result =
            df_open_path_reserve(rename->table, rename->nodes[i], rename->nodes[i]->len + longest);
    return result;
}

/* Open files keep the numbers they have: who shows another than its path is listed, before all is
 * forgotten and, if it was opened meanwhile, afterwards. */
static void list_open_files(struct df_open_paths *table)
{
    static const struct df_numbers none;

    for (int i = 0; i < DF_OPEN_PATHS_SHARDS; i++) {
        struct df_open_paths_shard *shard = &table->shards[i];
        pthread_mutex_lock(&shard->lock);
        for (uint32_t j = 0; j < shard->chain_count; j++)
            for (struct df_open_path *node = shard->chains[j]; node; node = node->next)
                df_open_paths_place_ino(table, node, df_number_of(&none, node->path, node->len));
        pthread_mutex_unlock(&shard->lock);
    }
}

static int reserve_numbers(struct df_open_paths *table)
{
    int result = table->gives_numbers ? df_numbers_reserve(&table->numbers) : 0;

    if (result != -ENOSPC)
        return result;
    list_open_files(table);
    df_numbers_forget(&table->numbers);
    list_open_files(table);
    return 0;
}

int df_open_paths_rename_begin(struct df_open_paths *table, struct df_rename *rename,
                               const char *from, uint32_t from_len, const char *to, uint32_t to_len,
                               bool wait)
{
    *rename = (struct df_rename){
        .table = table, .from = from, .to = to, .from_len = from_len, .to_len = to_len};
    rename->nodes = rename->first;
    rename->room = sizeof(rename->first) / sizeof(rename->first[0]);
    int result = reserve_numbers(table);
    if (result)
        return result;
    publish(rename);
    for (;;) {
        result = collect(rename);
        if (result == 0)
            result = lock_or_try_all(rename, wait);
        if (result == 0) {
            /* Either may have been removed, or hidden, while we waited for it. */
            bool same = is_called(rename->nodes[0], from, from_len) &&
                        is_called(rename->nodes[1], to, to_len) && !has_new(rename);
            if (same)
                result = reserve_all(rename);
            if (same && result == 0)
                return 0;
            unlock_all(rename, 0, rename->count);
        }
        put_all(rename);
        if (result) {
            unpublish(table);
            free_nodes(rename);
            return result;
        }
    }
}

void df_open_paths_rename_end(struct df_rename *rename)
{
    for (uint32_t i = 0; i < rename->count; i++)
        df_open_paths_release(rename->table, rename->nodes[i]);
    unpublish(rename->table);
    free_nodes(rename);
}

/* ---- new paths ---- */

static void lock_shards(struct df_open_paths_shard *a, struct df_open_paths_shard *b)
{
    pthread_mutex_lock(a < b ? &a->lock : &b->lock);
    if (a != b)
        pthread_mutex_lock(a < b ? &b->lock : &a->lock);
}

void df_open_paths_move(struct df_open_paths *table, struct df_open_path *node, const char *path,
                        uint32_t len)
{
    struct df_path_hash key = df_path_hash(table->seed, path, len);
    struct df_open_paths_shard *from = &table->shards[atomic_load(&node->shard)];
    struct df_open_paths_shard *to = df_open_paths_shard(table, key);

    lock_shards(from, to);
    df_open_paths_unchain(from, node);
    df_open_path_set(node, path, len, key);
    atomic_store(&node->shard, (uint32_t)(to - table->shards));
    df_open_paths_chain(to, node, key);
    pthread_mutex_unlock(&from->lock);
    if (from != to)
        pthread_mutex_unlock(&to->lock);
}

/* Exchanges the first top_len bytes of a node's path for `top`. A path that would get too long
 * stays: no call could name it, and the kernel answers ENAMETOOLONG for it as well. */
static void move_prefix(struct df_rename *rename, struct df_open_path *node, uint32_t top_len,
                        const char *top, uint32_t new_len)
{
    char path[PATH_MAX];
    uint32_t rest = node->len - top_len;

    if (new_len + rest >= sizeof(path))
        return;
    memcpy(path, top, new_len);
    memcpy(path + new_len, node->path + top_len, rest);
    df_open_paths_move(rename->table, node, path, new_len + rest);
}

static bool is_node_in(const struct df_open_path *node, const char *top, uint32_t len)
{
    return !node->removed && is_at_or_below(node->path, node->len, top, len);
}

/* Nothing is open at either path, or below: their nodes were entered for this rename. Who comes for
 * one from now on waits for it, and finds one that is as good as new, with the path's number. */
static bool is_unopened(const struct df_rename *rename)
{
    return rename->count == 2 && atomic_load(&rename->nodes[0]->refs) == 1 &&
           atomic_load(&rename->nodes[1]->refs) == 1;
}

static void exchange_numbers(struct df_rename *rename, bool unopened)
{
    struct df_open_path *from = rename->nodes[0], *to = rename->nodes[1];
    ino_t number = from->ino;

    if (!rename->table->gives_numbers)
        return;
    df_numbers_exchange(&rename->table->numbers, rename->from, rename->from_len, rename->to,
                        rename->to_len);
    if (unopened) {
        from->ino = to->ino;
        to->ino = number;
    }
}

void df_open_paths_renamed(struct df_rename *rename)
{
    bool unopened = is_unopened(rename);

    exchange_numbers(rename, unopened);
    if (unopened)
        return;
    for (uint32_t i = 0; i < rename->count; i++) {
        if (is_node_in(rename->nodes[i], rename->to, rename->to_len))
            df_open_path_mark_removed(rename->nodes[i]);
    }
    for (uint32_t i = 0; i < rename->count; i++) {
        if (is_node_in(rename->nodes[i], rename->from, rename->from_len))
            move_prefix(rename, rename->nodes[i], rename->from_len, rename->to, rename->to_len);
    }
}

void df_open_paths_exchanged(struct df_rename *rename)
{
    bool unopened = is_unopened(rename);

    exchange_numbers(rename, unopened);
    if (unopened)
        return;
    for (uint32_t i = 0; i < rename->count; i++) {
        struct df_open_path *node = rename->nodes[i];
        if (is_node_in(node, rename->from, rename->from_len))
            move_prefix(rename, node, rename->from_len, rename->to, rename->to_len);
        else if (is_node_in(node, rename->to, rename->to_len))
            move_prefix(rename, node, rename->to_len, rename->from, rename->from_len);
    }
}
