/*
 * files.c - which client process has which file open.
 */
#include "server/files.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "channel/ofd.h"
#include "core/gate.h"

#define BIRTH_NS        INT64_C(60000000000) /* between fork and the child's first word */
#define ORPHAN_BIRTH_NS INT64_C(5000000000)  /* when the parent is gone */
#define SET_SIZE        (DF_OFD_COUNT / 8)

static int64_t now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

int df_files_init(struct df_files *files, struct df_segment *segment)
{
    memset(files, 0, sizeof(*files));
    files->segment = segment;
    files->open = calloc(DF_OFD_COUNT, sizeof(*files->open)); /* untouched pages cost nothing */
    if (!files->open)
        return -ENOMEM;
    pthread_mutex_init(&files->lock, NULL);
    files->first_free = 1;
    return 0;
}

void df_files_free(struct df_files *files)
{
    for (unsigned i = 0; i < DF_CLIENT_MAX; i++)
        free(files->clients[i].files);
    free(files->open);
    pthread_mutex_destroy(&files->lock);
}

/* ---- clients --------------------------------------------------------------------------------- */

/* Under the lock. NULL: no such client. */
static struct df_client *find(struct df_files *files, uint32_t id)
{
    struct df_client *client = &files->clients[id % DF_CLIENT_MAX];

    return id != 0 && client->id == id ? client : NULL;
}

/* Under the lock. Generations are never 0, so neither is an id. */
static struct df_client *add_client(struct df_files *files)
{
    const uint32_t generations = (UINT32_C(1) << DF_CLIENT_BITS) / DF_CLIENT_MAX;

    for (uint32_t i = 0; i < DF_CLIENT_MAX; i++) {
        struct df_client *client = &files->clients[i];

        if (client->id != 0)
            continue;
        client->generation = client->generation % (generations - 1) + 1;
        client->id = client->generation * DF_CLIENT_MAX + i;
        client->parent = 0;
        client->count = 0;
        files->client_count++;
        return client;
    }
    return NULL;
}

/* Under the lock. Frees the entry; the set is the caller's. */
static uint64_t *remove_client(struct df_files *files, struct df_client *client)
{
    uint64_t *had = client->files;

    client->files = NULL;
    client->id = 0;
    files->client_count--;
    return had;
}

uint32_t df_files_client_new(struct df_files *files)
{
    struct df_client *client;
    uint32_t id;

    pthread_mutex_lock(&files->lock);
    client = add_client(files);
    id = client ? client->id : 0;
    pthread_mutex_unlock(&files->lock);
    return id;
}

/* Under the lock. */
static bool has(const struct df_client *client, uint32_t index)
{
    return client->files && client->files[index / 64] >> index % 64 & 1;
}

/* Under the lock. False: no memory. */
static bool give(struct df_files *files, struct df_client *client, uint32_t index)
{
    if (has(client, index))
        return true;
    if (!client->files && !(client->files = calloc(1, SET_SIZE)))
        return false;
    client->files[index / 64] |= UINT64_C(1) << index % 64;
    client->count++;
    files->open[index].clients++;
    return true;
}

/* Under the lock. */
static bool copy_set(struct df_files *files, const struct df_client *from, struct df_client *to)
{
    if (from->count == 0)
        return true;
    to->files = malloc(SET_SIZE);
    if (!to->files)
        return false;
    memcpy(to->files, from->files, SET_SIZE);
    to->count = from->count;
    for (uint32_t i = 0; i < DF_OFD_COUNT / 64; i++)
        for (uint64_t bits = to->files[i]; bits != 0; bits &= bits - 1)
            files->open[i * 64 + (uint32_t)__builtin_ctzll(bits)].clients++;
    return true;
}

/* Under the lock. */
static uint32_t fork_client(struct df_files *files, uint32_t parent)
{
    struct df_client *from = find(files, parent);
    struct df_client *to = from ? add_client(files) : NULL;

    if (!to)
        return 0;
    if (!copy_set(files, from, to)) {
        remove_client(files, to);
        return 0;
    }
    to->parent = parent;
    to->expected = now() + BIRTH_NS;
    return to->id;
}

uint32_t df_files_client_fork(struct df_files *files, uint32_t parent)
{
    uint32_t id;

    pthread_mutex_lock(&files->lock);
    id = fork_client(files, parent);
    pthread_mutex_unlock(&files->lock);
    return id;
}

bool df_files_client_born(struct df_files *files, uint32_t id)
{
    struct df_client *client;

    pthread_mutex_lock(&files->lock);
    client = find(files, id);
    if (client)
        client->parent = 0;
    pthread_mutex_unlock(&files->lock);
    return client != NULL;
}

/* Under the lock. Children whose birth nobody has seen yet: they come soon, or never. */
static void hurry_children(struct df_files *files, uint32_t parent)
{
    int64_t limit = now() + ORPHAN_BIRTH_NS;

    for (uint32_t i = 0; i < DF_CLIENT_MAX; i++) {
        struct df_client *client = &files->clients[i];

        if (client->id != 0 && client->parent == parent && client->expected > limit)
            client->expected = limit;
    }
}

bool df_files_client_gone(struct df_files *files, uint32_t id, uint64_t **had)
{
    struct df_client *client;

    *had = NULL;
    pthread_mutex_lock(&files->lock);
    client = find(files, id);
    if (client) {
        *had = remove_client(files, client);
        hurry_children(files, id);
    }
    pthread_mutex_unlock(&files->lock);
    return client != NULL;
}

uint32_t df_files_client_overdue(struct df_files *files, int64_t time)
{
    uint32_t id = 0;

    pthread_mutex_lock(&files->lock);
    for (uint32_t i = 0; i < DF_CLIENT_MAX && id == 0; i++) {
        struct df_client *client = &files->clients[i];

        if (client->id != 0 && client->parent != 0 && client->expected < time)
            id = client->id;
    }
    pthread_mutex_unlock(&files->lock);
    return id;
}

uint32_t df_files_client_count(struct df_files *files)
{
    uint32_t count;

    pthread_mutex_lock(&files->lock);
    count = files->client_count;
    pthread_mutex_unlock(&files->lock);
    return count;
}

/* ---- files ----------------------------------------------------------------------------------- */

static struct df_ofd *ofd_at(struct df_files *files, uint32_t index)
{
    return &df_segment_ofds(files->segment)[index];
}

/* Under the lock. 0: there are too many. A list of those that were used; behind it, those never. */
static uint32_t take_index(struct df_files *files)
{
    uint32_t index = files->first_free;

    if (index >= DF_OFD_COUNT)
        return 0;
    files->first_free = files->open[index].next_free ? files->open[index].next_free : index + 1;
    return index;
}

static void fill_ofd(struct df_ofd *ofd, uint64_t handle, struct df_file *file, int mount)
{
    atomic_store_explicit(&ofd->flags, (uint32_t)atomic_load(&file->flags), memory_order_relaxed);
    ofd->mount = mount;
    ofd->kind = file->kind;
    ofd->traits = file->traits;
    ofd->ino = file->ino;
    ofd->position = 0;
    ofd->door[0] = ofd->door[1] = 0;
    atomic_store_explicit(&ofd->position_lock, 0, memory_order_relaxed);
    atomic_store(&ofd->handle, handle);
}

/* Under the lock. */
static uint64_t add_file(struct df_files *files, struct df_client *client, struct df_file *file,
                         int mount)
{
    uint32_t index = take_index(files);
    struct df_open_file *entry = &files->open[index];
    uint64_t handle;

    if (index == 0)
        return 0;
    entry->generation++;
    entry->clients = 0;
    atomic_store(&entry->st_ino, 0);
    if (!give(files, client, index)) {
        entry->next_free = files->first_free;
        files->first_free = index;
        return 0;
    }
    handle = (uint64_t)entry->generation << 32 | index;
    atomic_store(&entry->file, file);
    fill_ofd(ofd_at(files, index), handle, file, mount);
    files->count++;
    return handle;
}

uint64_t df_files_add(struct df_files *files, uint32_t client, struct df_file *file, int mount)
{
    struct df_client *owner;
    uint64_t handle = 0;

    pthread_mutex_lock(&files->lock);
    owner = find(files, client);
    if (owner)
        handle = add_file(files, owner, file, mount);
    pthread_mutex_unlock(&files->lock);
    return handle;
}

/* The handle is read again when the reference is there: the entry may have got another file. */
struct df_file *df_files_get(struct df_files *files, uint64_t handle)
{
    struct df_ofd *ofd = df_segment_ofd(files->segment, handle);
    struct df_file *file;

    if (!ofd)
        return NULL;
    file = atomic_load(&files->open[df_handle_index(handle)].file);
    if (!file || !df_file_hold(file))
        return NULL;
    if (atomic_load(&ofd->handle) == handle)
        return file;
    df_file_put(df_gate_self, file);
    return NULL;
}

/* Under the lock: the index of a handle that is open, or 0. */
static uint32_t index_of(struct df_files *files, uint64_t handle)
{
    return df_segment_ofd(files->segment, handle) ? df_handle_index(handle) : 0;
}

int df_files_adopt(struct df_files *files, uint32_t client, uint64_t handle)
{
    struct df_client *owner;
    uint32_t index;
    int ret = -EBADF;

    pthread_mutex_lock(&files->lock);
    owner = find(files, client);
    index = index_of(files, handle);
    if (owner && index != 0)
        ret = give(files, owner, index) ? 0 : -ENOMEM;
    pthread_mutex_unlock(&files->lock);
    return ret;
}

/* Under the lock: one client less. */
static struct df_file *take_from(struct df_files *files, uint32_t index)
{
    struct df_open_file *entry = &files->open[index];
    struct df_file *file;

    if (--entry->clients > 0)
        return NULL;
    atomic_store(&ofd_at(files, index)->handle, 0);
    file = atomic_exchange(&entry->file, NULL);
    entry->next_free = files->first_free;
    files->first_free = index;
    files->count--;
    return file;
}

int df_files_drop(struct df_files *files, uint32_t client, uint64_t handle, struct df_file **last)
{
    struct df_client *owner;
    uint32_t index;
    int ret = -EBADF;

    *last = NULL;
    pthread_mutex_lock(&files->lock);
    owner = find(files, client);
    index = index_of(files, handle);
    if (owner && index != 0 && has(owner, index)) {
        owner->files[index / 64] &= ~(UINT64_C(1) << index % 64);
        owner->count--;
        *last = take_from(files, index);
        ret = 0;
    }
    pthread_mutex_unlock(&files->lock);
    return ret;
}

void df_files_drop_gone(struct df_files *files, uint32_t index, struct df_file **last)
{
    pthread_mutex_lock(&files->lock);
    *last = take_from(files, index);
    pthread_mutex_unlock(&files->lock);
}

static bool is_listed(uint64_t handle, const uint64_t list[], size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (list[i] == handle)
            return true;
    return false;
}

size_t df_files_others(struct df_files *files, uint32_t client, const uint64_t kept[], size_t count,
                       uint64_t others[], size_t room)
{
    struct df_client *owner;
    size_t found = 0;

    pthread_mutex_lock(&files->lock);
    owner = find(files, client);
    for (uint32_t i = 1; owner && owner->count > 0 && i < DF_OFD_COUNT && found < room; i++) {
        uint64_t handle;

        if (!has(owner, i))
            continue;
        handle = atomic_load(&ofd_at(files, i)->handle);
        if (!is_listed(handle, kept, count))
            others[found++] = handle;
    }
    pthread_mutex_unlock(&files->lock);
    return found;
}

_Atomic uint64_t *df_files_st_ino(struct df_files *files, uint64_t handle)
{
    return &files->open[df_handle_index(handle) % DF_OFD_COUNT].st_ino;
}

bool df_files_any(struct df_files *files, int mount)
{
    bool any = false;

    pthread_mutex_lock(&files->lock);
    for (uint32_t i = 1, left = files->count; left > 0 && i < DF_OFD_COUNT && !any; i++) {
        if (!atomic_load(&files->open[i].file))
            continue;
        left--;
        any = ofd_at(files, i)->mount == mount;
    }
    pthread_mutex_unlock(&files->lock);
    return any;
}
