/*
 * open_paths.c - the table of open files' paths: entering, holding, claiming, leaving. Renames are
 * in open_paths_rename.c.
 */
#include "paths/open_paths.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "paths/open_paths_table.h"

void df_open_paths_init(struct df_open_paths *table, const struct df_path_seed *seed)
{
    memset(table, 0, sizeof(*table));
    table->seed = seed;
    for (int i = 0; i < DF_OPEN_PATHS_SHARDS; i++) {
        struct df_open_paths_shard *shard = &table->shards[i];
        pthread_mutex_init(&shard->lock, NULL);
        shard->chains = shard->first_chains;
        shard->chain_count = DF_OPEN_PATHS_CHAINS;
    }
    pthread_mutex_init(&table->rename_lock, NULL);
    pthread_mutex_init(&table->gate, NULL);
    pthread_cond_init(&table->gate_open, NULL);
    pthread_mutex_init(&table->displaced_lock, NULL);
    pthread_mutex_init(&table->kept_lock, NULL);
    pthread_mutex_init(&table->spare_lock, NULL);
}

static void free_path(struct df_open_path *node)
{
    if (node->path != node->inline_path)
        free(node->path);
    node->path = node->inline_path;
    node->room = sizeof(node->inline_path);
}

static void free_node(struct df_open_path *node)
{
    free_path(node);
    pthread_mutex_destroy(&node->data_lock);
    free(node);
}

static void free_nodes(struct df_open_path *node)
{
    struct df_open_path *next;

    for (; node; node = next) {
        next = node->next;
        free_node(node);
    }
}

void df_open_paths_destroy(struct df_open_paths *table)
{
    for (int i = 0; i < DF_OPEN_PATHS_SHARDS; i++) {
        struct df_open_paths_shard *shard = &table->shards[i];
        free_nodes(shard->free);
        if (shard->chains != shard->first_chains)
            free(shard->chains);
        pthread_mutex_destroy(&shard->lock);
    }
    free_nodes(atomic_load(&table->spare));
    pthread_mutex_destroy(&table->spare_lock);
    pthread_mutex_destroy(&table->rename_lock);
    pthread_mutex_destroy(&table->gate);
    pthread_cond_destroy(&table->gate_open);
    pthread_mutex_destroy(&table->displaced_lock);
    pthread_mutex_destroy(&table->kept_lock);
    df_numbers_destroy(&table->numbers);
}

uint32_t df_open_paths_count(struct df_open_paths *table)
{
    uint32_t count = 0;

    for (int i = 0; i < DF_OPEN_PATHS_SHARDS; i++)
        count += atomic_load(&table->shards[i].count);
    return count;
}

/* ---- inode numbers ---- */

static bool has_key(const struct df_open_path *node, struct df_path_hash key)
{
    return df_path_hash_equal(df_open_path_key(node), key);
}

ino_t df_open_paths_ino(struct df_open_paths *table, ino_t number, struct df_path_hash key)
{
    ino_t ino = number;

    if (atomic_load(&table->displaced_count) == 0)
        return ino;
    pthread_mutex_lock(&table->displaced_lock);
    for (struct df_open_path *node = table->displaced; node; node = node->next_displaced) {
        if (has_key(node, key)) {
            ino = node->ino;
            break;
        }
        if (node->ino == ino) /* an open file that has left this path still shows the number */
            ino = (ino * 0x9e3779b97f4a7c15) | 2;
    }
    pthread_mutex_unlock(&table->displaced_lock);
    return ino;
}

void df_open_paths_place_ino(struct df_open_paths *table, struct df_open_path *node, ino_t number)
{
    if (!table->gives_numbers)
        return;
    if (!atomic_load(&node->removed) && !df_open_path_is_hidden(node) && node->ino == number)
        return;
    pthread_mutex_lock(&table->displaced_lock);
    if (!node->displaced) {
        node->displaced = true;
        node->next_displaced = table->displaced;
        table->displaced = node;
        atomic_fetch_add(&table->displaced_count, 1);
    }
    pthread_mutex_unlock(&table->displaced_lock);
}

static void forget_ino(struct df_open_paths *table, struct df_open_path *node)
{
    if (!node->displaced)
        return;
    pthread_mutex_lock(&table->displaced_lock);
    struct df_open_path **link = &table->displaced;
    while (*link != node)
        link = &(*link)->next_displaced;
    *link = node->next_displaced;
    node->displaced = false;
    atomic_fetch_sub(&table->displaced_count, 1);
    pthread_mutex_unlock(&table->displaced_lock);
}

/* ---- chains (all under the shard's lock) ---- */

static struct df_open_path **chain_of(struct df_open_paths_shard *shard, struct df_path_hash key)
{
    return &shard->chains[(uint32_t)(key.high >> 32) & (shard->chain_count - 1)];
}

void df_open_paths_chain(struct df_open_paths_shard *shard, struct df_open_path *node,
                         struct df_path_hash key)
{
    struct df_open_path **chain = chain_of(shard, key);
    node->next = *chain;
    *chain = node;
    atomic_store(&shard->count, shard->count + 1); /* seen by a rename, or sees that rename */
}

void df_open_paths_unchain(struct df_open_paths_shard *shard, struct df_open_path *node)
{
    struct df_open_path **link = chain_of(shard, df_open_path_key(node));
    while (*link != node)
        link = &(*link)->next;
    *link = node->next;
    atomic_store_explicit(&shard->count, shard->count - 1, memory_order_relaxed);
}

/* Doubles the chains when they get long; without memory they just stay long. */
static void grow(struct df_open_paths_shard *shard)
{
    uint32_t old_count = shard->chain_count;
    struct df_open_path **old = shard->chains, **chains;

    if (shard->count < 2 * old_count)
        return;
    chains = calloc(2 * old_count, sizeof(struct df_open_path *));
    if (!chains)
        return;
    shard->chains = chains;
    shard->chain_count = 2 * old_count;
    shard->count = 0;
    for (uint32_t i = 0; i < old_count; i++) {
        for (struct df_open_path *node = old[i], *next; node; node = next) {
            next = node->next;
            df_open_paths_chain(shard, node, df_open_path_key(node));
        }
    }
    if (old != shard->first_chains)
        free(old);
}

static struct df_open_path *find(struct df_open_paths_shard *shard, const char *path, uint32_t len,
                                 struct df_path_hash key)
{
    for (struct df_open_path *node = *chain_of(shard, key); node; node = node->next) {
        if (!node->removed && has_key(node, key) && node->len == len &&
            memcmp(node->path, path, len) == 0)
            return node;
    }
    return NULL;
}

/* A node may end in another shard than it was made in: where a file of one name is renamed while
 * it is open, again and again, nobody but other shards has use for what that one gets. */
static void give_free(struct df_open_paths *table, struct df_open_paths_shard *shard,
                      struct df_open_path *node)
{
    if (shard->free_count < DF_OPEN_PATHS_FREE) {
        node->next = shard->free;
        shard->free = node;
        shard->free_count++;
        return;
    }
    pthread_mutex_lock(&table->spare_lock);
    node->next = atomic_load(&table->spare);
    atomic_store(&table->spare, node);
    pthread_mutex_unlock(&table->spare_lock);
}

static struct df_open_path *take_spare(struct df_open_paths *table)
{
    struct df_open_path *node;

    if (!atomic_load_explicit(&table->spare, memory_order_relaxed))
        return NULL;
    pthread_mutex_lock(&table->spare_lock);
    node = atomic_load(&table->spare);
    if (node)
        atomic_store(&table->spare, node->next);
    pthread_mutex_unlock(&table->spare_lock);
    return node;
}

static struct df_open_path *take_free(struct df_open_paths *table,
                                      struct df_open_paths_shard *shard)
{
    struct df_open_path *node = shard->free;

    if (!node)
        return take_spare(table);
    shard->free = node->next;
    shard->free_count--;
    return node;
}

static struct df_open_path *make_node(struct df_open_paths *table,
                                      struct df_open_paths_shard *shard)
{
    struct df_open_path *node = take_free(table, shard);

    if (node)
        return node;
    node = aligned_alloc(64, sizeof(*node)); /* two files share no cache line */
    if (!node)
        return NULL;
    memset(node, 0, sizeof(*node));
    pthread_mutex_init(&node->data_lock, NULL);
    free_path(node);
    return node;
}

/* More memory for the path; under the shard's lock, for find() reads paths under it. */
static void replace_path(struct df_open_path *node, char *path, uint32_t room)
{
    memcpy(path, node->path, node->len + 1);
    free_path(node);
    node->path = path;
    node->room = room;
}

void df_open_path_set(struct df_open_path *node, const char *path, uint32_t len,
                      struct df_path_hash key)
{
    uint32_t version = atomic_load_explicit(&node->version, memory_order_relaxed);

    atomic_store_explicit(&node->version, version + 1, memory_order_relaxed);
    atomic_store_explicit(&node->key_low, key.low, memory_order_release);
    atomic_store_explicit(&node->key_high, key.high, memory_order_release);
    atomic_store_explicit(&node->version, version + 2, memory_order_release);
    memmove(node->path, path, len);
    node->path[len] = '\0';
    node->len = len;
}

static _Atomic uint64_t serials; /* nodes that were ever entered */

static struct df_open_path *add(struct df_open_paths *table, struct df_open_paths_shard *shard,
                                const char *path, uint32_t len, struct df_path_hash key)
{
    struct df_open_path *node = make_node(table, shard);
    char *memory = NULL;

    if (node && len >= node->room)
        memory = malloc(len + 1);
    if (node && len >= node->room && !memory) {
        give_free(table, shard, node);
        node = NULL;
    }
    if (!node)
        return NULL;
    node->len = 0;
    if (memory)
        replace_path(node, memory, len + 1);
    atomic_store_explicit(&node->removed, false, memory_order_relaxed);
    atomic_store_explicit(&node->opens, 0, memory_order_relaxed);
    atomic_store_explicit(&node->shard, (uint32_t)(shard - table->shards), memory_order_relaxed);
    df_open_path_set(node, path, len, key);
    grow(shard);
    node->serial = atomic_fetch_add_explicit(&serials, 1, memory_order_relaxed) + 1;
    ino_t number = table->gives_numbers ? df_number_of(&table->numbers, path, len) : 0;
    node->ino = number ? df_open_paths_ino(table, number, key) : 0;
    df_open_paths_chain(shard, node, key);
    df_open_paths_place_ino(table, node, number);
    return node;
}

struct df_open_path *df_open_paths_get(struct df_open_paths *table, const char *path, uint32_t len,
                                       struct df_path_hash key)
{
    struct df_open_paths_shard *shard = df_open_paths_shard(table, key);

    pthread_mutex_lock(&shard->lock);
    struct df_open_path *node = find(shard, path, len, key);
    if (!node)
        node = add(table, shard, path, len, key);
    if (node)
        atomic_fetch_add(&node->refs, 1);
    pthread_mutex_unlock(&shard->lock);
    return node;
}

struct df_open_path *df_open_paths_find(struct df_open_paths *table, const char *path, uint32_t len,
                                        struct df_path_hash key)
{
    struct df_open_paths_shard *shard = df_open_paths_shard(table, key);

    pthread_mutex_lock(&shard->lock);
    struct df_open_path *node = find(shard, path, len, key);
    if (node)
        atomic_fetch_add(&node->refs, 1);
    pthread_mutex_unlock(&shard->lock);
    return node;
}

uint64_t df_open_paths_serial(struct df_open_paths *table, const char *path, uint32_t len,
                              struct df_path_hash key)
{
    struct df_open_paths_shard *shard = df_open_paths_shard(table, key);

    pthread_mutex_lock(&shard->lock);
    const struct df_open_path *node = find(shard, path, len, key);
    uint64_t serial = node ? node->serial : 0;
    pthread_mutex_unlock(&shard->lock);
    return serial;
}

/* The shard that has the node, locked. A rename may move the node while we wait. */
static struct df_open_paths_shard *lock_shard_of(struct df_open_paths *table,
                                                 const struct df_open_path *node)
{
    for (;;) {
        uint32_t index = atomic_load(&node->shard);
        pthread_mutex_lock(&table->shards[index].lock);
        if (atomic_load(&node->shard) == index)
            return &table->shards[index];
        pthread_mutex_unlock(&table->shards[index].lock);
    }
}

void df_open_paths_put(struct df_open_paths *table, struct df_open_path *node)
{
    uint32_t refs = atomic_load(&node->refs);

    while (refs > 1) {
        if (atomic_compare_exchange_weak(&node->refs, &refs, refs - 1))
            return;
    }
    struct df_open_paths_shard *shard = lock_shard_of(table, node);
    if (atomic_fetch_sub(&node->refs, 1) == 1) {
        forget_ino(table, node);
        df_open_paths_unchain(shard, node);
        free_path(node);
        give_free(table, shard, node);
    }
    pthread_mutex_unlock(&shard->lock);
}

/* ---- locks of a node ---- */

/* Under any lock of the node: it still is what a path leads to. */
static bool is_at(const struct df_open_path *node, struct df_path_hash key)
{
    return !node->removed && has_key(node, key);
}

void df_open_path_write(struct df_open_path *node)
{
    df_path_lock_write(&node->lock);
    atomic_store_explicit(&node->writer, df_on_stack_here(), memory_order_relaxed);
}

bool df_open_path_try_write(struct df_open_path *node)
{
    if (!df_path_lock_try_write(&node->lock))
        return false;
    atomic_store_explicit(&node->writer, df_on_stack_here(), memory_order_relaxed);
    return true;
}

void df_open_path_end_write(struct df_open_path *node)
{
    atomic_store_explicit(&node->writer, NULL, memory_order_relaxed);
    df_path_lock_end_write(&node->lock);
}

/* 0: it is held; 1: look for the node again; or -EDEADLK. */
static int hold_unless_renamed(struct df_open_paths *table, struct df_open_path *node,
                               const char *path, uint32_t len, enum df_path_waiter waiter,
                               const struct df_open_path *base)
{
    if (waiter == DF_PATH_INSIDE) {
        if (df_open_paths_in_rename(table, path, len) || df_open_path_is_mine(node))
            return -EDEADLK;
    } else if (df_open_paths_wait_rename(table, path, len, waiter == DF_PATH_ALONE, base)) {
        return 1;
    }
    df_open_path_hold(node, waiter == DF_PATH_ALONE);
    return 0;
}

int df_open_paths_enter(struct df_open_paths *table, const char *path, uint32_t len,
                        struct df_path_hash key, enum df_path_waiter waiter,
                        const struct df_open_path *base, struct df_open_path **out)
{
    for (;;) {
        struct df_open_path *node = df_open_paths_get(table, path, len, key);
        if (!node)
            return -ENOMEM;
        int result = hold_unless_renamed(table, node, path, len, waiter, base);
        if (result == 0 && is_at(node, key)) {
            *out = node;
            return 0;
        }
        if (result == 0)
            df_open_path_unhold(node);
        df_open_paths_put(table, node);
        if (result < 0)
            return result;
    }
}

bool df_open_path_begin_hide(struct df_open_path *node)
{
    uint32_t opens = atomic_load(&node->opens);

    do {
        if ((opens & ~DF_OPEN_PATH_HIDDEN) == 0)
            return false;
    } while (!atomic_compare_exchange_weak(&node->opens, &opens, opens | DF_OPEN_PATH_HIDDEN));
    return true;
}

void df_open_path_cancel_hide(struct df_open_path *node)
{
    atomic_fetch_and(&node->opens, ~DF_OPEN_PATH_HIDDEN);
}

static bool lock_to_claim(struct df_open_path *node, bool wait)
{
    if (!wait)
        return df_open_path_try_write(node);
    df_open_path_write(node);
    return true;
}

int df_open_paths_claim(struct df_open_paths *table, const char *path, uint32_t len,
                        struct df_path_hash key, bool wait, struct df_open_path **out)
{
    for (;;) {
        struct df_open_path *node = df_open_paths_get(table, path, len, key);
        if (!node)
            return -ENOMEM;
        bool renamed = wait && df_open_paths_wait_rename(table, path, len, true, NULL);
        if (!renamed && !lock_to_claim(node, wait)) {
            df_open_paths_put(table, node);
            return DF_PATH_BUSY;
        }
        if (!renamed && is_at(node, key)) {
            *out = node;
            return 0;
        }
        if (!renamed)
            df_open_path_end_write(node);
        df_open_paths_put(table, node);
    }
}

void df_open_path_mark_removed(struct df_open_path *node)
{
    atomic_store(&node->removed, true);
}

int df_open_path_reserve(struct df_open_paths *table, struct df_open_path *node, uint32_t len)
{
    if (len < node->room)
        return 0;
    char *path = malloc(len + 1);
    if (!path)
        return -ENOMEM;
    struct df_open_paths_shard *shard = lock_shard_of(table, node);
    replace_path(node, path, len + 1);
    pthread_mutex_unlock(&shard->lock);
    return 0;
}

void df_open_paths_release(struct df_open_paths *table, struct df_open_path *node)
{
    if (atomic_load(&table->keeps) && node->removed)
        df_open_paths_keep_no_more(table, node);
    if (table->gives_numbers && atomic_load(&node->refs) > 1) /* somebody has it open */
        df_open_paths_place_ino(table, node, df_number_of(&table->numbers, node->path, node->len));
    df_open_path_end_write(node);
    df_open_paths_put(table, node);
}
