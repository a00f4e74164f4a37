/*
 * files_client.c - the client processes there are, and the set of open files that each has.
 */
#include <string.h>
#include <sys/mman.h>

#include "core/clock.h"
#include "ledger/files_private.h"

#define BIRTH_NS        INT64_C(60000000000) /* between fork and the child's first word */
#define ORPHAN_BIRTH_NS INT64_C(5000000000)  /* when the parent is gone, and it may still come */
#define SET_SIZE        (DF_SET_WORDS * sizeof(uint64_t))
#define SETS_KEPT       64 /* places whose sets keep their memory, once they have it */

/* ---- sets ------------------------------------------------------------------------------------ */

/* The client's place for a set: empty when nobody has it. */
static uint64_t *set_of(struct df_files *files, const struct df_client *client)
{
    return files->ledger->sets[client - files->clients];
}

/* Zeroes again, and no memory where the system takes it back. */
static void empty_set(uint64_t *set)
{
    if (set && madvise(set, SET_SIZE, MADV_REMOVE) < 0)
        memset(set, 0, SET_SIZE);
}

/* ---- clients --------------------------------------------------------------------------------- */

struct df_client *df_files_client_find(struct df_files *files, uint32_t id)
{
    struct df_client *client = &files->clients[id % DF_CLIENT_MAX];

    return id != 0 && client->id == id ? client : NULL;
}

/* Under the lock: what the ledger has of it. */
static void write_down(struct df_files *files, const struct df_client *client)
{
    struct df_ledger *ledger = files->ledger;
    size_t i = (size_t)(client - files->clients);

    ledger->clients[i].generation = client->generation;
    ledger->clients[i].parent = client->parent;
    ledger->clients[i].socket = client->socket;
    atomic_signal_fence(memory_order_seq_cst); /* the id last: with it, it is one */
    ledger->clients[i].id = client->id;
}

/* Under the lock. Generations are never 0, so neither is an id. */
static struct df_client *add_client(struct df_files *files)
{
    const uint32_t generations = (UINT32_C(1) << DF_CLIENT_BITS) / DF_CLIENT_MAX;

    for (uint32_t i = 0; i < DF_CLIENT_MAX; i++) {
        struct df_client *client = &files->clients[i];

        if (client->id != 0 || client->files) /* files: of one that is gone, being dropped */
            continue;
        client->generation = client->generation % (generations - 1) + 1;
        client->id = client->generation * DF_CLIENT_MAX + i;
        client->parent = 0;
        client->socket = 0;
        client->count = 0;
        client->nobody = false;
        files->client_count++;
        write_down(files, client);
        return client;
    }
    return NULL;
}

/* Under the lock. Its set is zeroes. The next one in this place, which most starts of programs are
 * (the first that is free is taken), finds its memory there. */
static void drop_empty_set(struct df_files *files, struct df_client *client)
{
    if (client - files->clients >= SETS_KEPT)
        empty_set(client->files);
    client->files = NULL;
}

/* Under the lock. The entry is free when its set is, which is the caller's. */
static uint64_t *remove_client(struct df_files *files, struct df_client *client)
{
    uint64_t *had;

    if (client->count == 0)
        drop_empty_set(files, client);
    had = client->files;
    client->id = 0;
    if (!client->nobody)
        files->client_count--;
    write_down(files, client);
    return had;
}

/* It was born of nobody: its parent is itself. `offered`: nobody is it yet. */
static uint32_t new_client(struct df_files *files, bool offered)
{
    struct df_client *client;
    uint32_t id;

    pthread_mutex_lock(&files->lock);
    client = add_client(files);
    id = client ? client->id : 0;
    if (client) {
        client->parent = id;
        if (offered) {
            client->expected = INT64_MAX;
            client->nobody = true;
            files->client_count--;
        }
        write_down(files, client);
    }
    pthread_mutex_unlock(&files->lock);
    return id;
}

uint32_t df_files_client_new(struct df_files *files)
{
    return new_client(files, false);
}

uint32_t df_files_client_offer(struct df_files *files)
{
    return new_client(files, true);
}

void df_files_client_give(struct df_files *files, struct df_client *client, uint32_t index)
{
    if (df_files_client_has(client, index))
        return;
    client->files = set_of(files, client);
    client->files[index / 64] |= UINT64_C(1) << index % 64;
    client->count++;
    files->open[index].clients++;
}

/* Whether it may be on its way to who has none of its descriptors yet. */
static bool is_sent(struct df_files *files, uint32_t index)
{
    return atomic_load_explicit(&df_files_ofd(files, index)->sent, memory_order_relaxed) != 0;
}

/* Under the lock. */
static void copy_set(struct df_files *files, const struct df_client *from, struct df_client *to,
                     bool only_sent)
{
    if (from->count == 0)
        return;
    for (uint32_t i = 0; i < DF_OFD_COUNT / 64; i++)
        for (uint64_t bits = from->files[i]; bits != 0; bits &= bits - 1) {
            uint32_t index = i * 64 + (uint32_t)__builtin_ctzll(bits);

            if (!only_sent || is_sent(files, index))
                df_files_client_give(files, to, index);
        }
}

/* Under the lock. */
static uint32_t fork_client(struct df_files *files, uint32_t parent, _Atomic uint64_t *announced,
                            bool keeps, uint64_t socket)
{
    struct df_client *from = df_files_client_find(files, parent);
    struct df_client *to = from ? add_client(files) : NULL;

    if (!to)
        return 0;
    atomic_store(announced, to->id); /* until it is unborn, the next server takes it for dead */
    copy_set(files, from, to, keeps);
    to->parent = parent;
    to->expected = df_clock() + BIRTH_NS;
    to->socket = socket;
    if (keeps) {
        to->nobody = true;
        files->client_count--;
    }
    write_down(files, to);
    if (keeps && to->count == 0) {
        remove_client(files, to);
        return 0;
    }
    return to->id;
}

uint32_t df_files_client_fork(struct df_files *files, uint32_t parent, _Atomic uint64_t *announced,
                              uint64_t socket)
{
    uint32_t id;

    pthread_mutex_lock(&files->lock);
    id = fork_client(files, parent, announced, false, socket);
    pthread_mutex_unlock(&files->lock);
    return id;
}

uint32_t df_files_client_leave(struct df_files *files, uint32_t parent, _Atomic uint64_t *announced)
{
    uint32_t id;

    pthread_mutex_lock(&files->lock);
    id = fork_client(files, parent, announced, true, 0);
    pthread_mutex_unlock(&files->lock);
    return id;
}

bool df_files_client_born(struct df_files *files, uint32_t id)
{
    struct df_client *client;

    pthread_mutex_lock(&files->lock);
    client = df_files_client_find(files, id);
    if (client) {
        client->parent = 0;
        if (client->nobody)
            files->client_count++;
        client->nobody = false;
        write_down(files, client);
    }
    pthread_mutex_unlock(&files->lock);
    return client != NULL;
}

/* Under the lock. Children whose birth nobody has seen yet. A child has its parent's socket until
 * it has said by it that it is born: when that socket has ended, no more will. Files that were sent
 * are kept for a while. */
static void give_up_children(struct df_files *files, uint32_t parent)
{
    bool strays = atomic_load(&files->segment->astray) > 0;
    int64_t limit = df_clock() + ORPHAN_BIRTH_NS;

    for (uint32_t i = 0; i < DF_CLIENT_MAX; i++) {
        struct df_client *client = &files->clients[i];

        if (client->id == 0 || client->parent != parent || client->expected <= limit)
            continue;
        client->expected = client->nobody || strays ? limit : 0;
        client->socket = 0;
        write_down(files, client);
    }
}

bool df_files_client_gone(struct df_files *files, uint32_t id, uint64_t **had)
{
    struct df_client *client;

    *had = NULL;
    pthread_mutex_lock(&files->lock);
    client = df_files_client_find(files, id);
    if (client) {
        *had = remove_client(files, client);
        give_up_children(files, id);
    }
    pthread_mutex_unlock(&files->lock);
    return client != NULL;
}

void df_files_free_set(struct df_files *files, uint64_t *had)
{
    pthread_mutex_lock(&files->lock);
    empty_set(had);
    if (had)
        files->clients[(had - files->ledger->sets[0]) / DF_SET_WORDS].files = NULL;
    pthread_mutex_unlock(&files->lock);
}

bool df_files_client_is_there(struct df_files *files, uint32_t id)
{
    bool there;

    pthread_mutex_lock(&files->lock);
    there = df_files_client_find(files, id) != NULL;
    pthread_mutex_unlock(&files->lock);
    return there;
}

bool df_files_client_is_born(struct df_files *files, uint32_t id)
{
    const struct df_client *client;
    bool born;

    pthread_mutex_lock(&files->lock);
    client = df_files_client_find(files, id);
    born = client && client->parent == 0;
    pthread_mutex_unlock(&files->lock);
    return born;
}

bool df_files_client_is_new(struct df_files *files, uint32_t id)
{
    const struct df_client *client;
    bool is_new;

    pthread_mutex_lock(&files->lock);
    client = df_files_client_find(files, id);
    is_new = client && client->parent == id;
    pthread_mutex_unlock(&files->lock);
    return is_new;
}

uint32_t df_files_client_next(struct df_files *files, uint32_t id)
{
    uint32_t next = 0;

    pthread_mutex_lock(&files->lock);
    for (uint32_t i = id ? id % DF_CLIENT_MAX + 1 : 0; i < DF_CLIENT_MAX && next == 0; i++)
        next = files->clients[i].id;
    pthread_mutex_unlock(&files->lock);
    return next;
}

uint32_t df_files_client_overdue(struct df_files *files, int64_t time, uint64_t *socket)
{
    uint32_t id = 0;

    pthread_mutex_lock(&files->lock);
    for (uint32_t i = 0; i < DF_CLIENT_MAX && id == 0; i++) {
        struct df_client *client = &files->clients[i];

        if (client->id != 0 && client->parent != 0 && client->expected < time) {
            id = client->id;
            *socket = client->socket;
        }
    }
    pthread_mutex_unlock(&files->lock);
    return id;
}

void df_files_client_await(struct df_files *files, uint32_t id)
{
    struct df_client *client;

    pthread_mutex_lock(&files->lock);
    client = df_files_client_find(files, id);
    if (client)
        client->expected = df_clock() + BIRTH_NS;
    pthread_mutex_unlock(&files->lock);
}

uint32_t df_files_client_count(struct df_files *files)
{
    uint32_t count;

    pthread_mutex_lock(&files->lock);
    count = files->client_count;
    pthread_mutex_unlock(&files->lock);
    return count;
}

/* ---- after a server has died ----------------------------------------------------------------- */

/* Its set without what is closed by now. */
static void take_set(struct df_files *files, struct df_client *client, uint64_t *set)
{
    for (uint32_t i = 0; i < DF_SET_WORDS; i++)
        for (uint64_t bits = set[i]; bits != 0; bits &= bits - 1) {
            uint32_t index = i * 64 + (uint32_t)__builtin_ctzll(bits);

            if (atomic_load(&df_files_ofd(files, index)->handle) == 0) {
                set[i] &= ~(bits & -bits);
                continue;
            }
            client->files = set;
            client->count++;
            files->open[index].clients++;
        }
}

void df_files_client_take(struct df_files *files, uint32_t place)
{
    struct df_ledger *ledger = files->ledger;
    struct df_client *client = &files->clients[place];

    client->generation = ledger->clients[place].generation;
    client->id = ledger->clients[place].id;
    client->parent = ledger->clients[place].parent;
    client->socket = ledger->clients[place].socket;
    client->expected = df_clock() + BIRTH_NS;
    if (client->id == 0) {
        if (client->generation != 0)
            empty_set(ledger->sets[place]);
        return;
    }
    files->client_count++;
    take_set(files, client, ledger->sets[place]);
}
