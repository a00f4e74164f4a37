/*
 * files.c - which client process has which file open.
 */
#include "server/files.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "channel/ofd.h"
#include "channel/room.h"
#include "core/clock.h"
#include "core/gate.h"

#define BIRTH_NS        INT64_C(60000000000) /* between fork and the child's first word */
#define ORPHAN_BIRTH_NS INT64_C(5000000000)  /* when the parent is gone */
#define SET_SIZE        (DF_SET_WORDS * sizeof(uint64_t))

/* ---- sets ------------------------------------------------------------------------------------ */

/* The client's place for a set: empty when nobody has it. */
static uint64_t *set_of(struct df_files *files, const struct df_client *client)
{
    return files->ledger->sets[client - files->clients];
}

/* Zeroes again, and no memory. */
static void empty_set(uint64_t *set)
{
    if (set)
        madvise(set, SET_SIZE, MADV_REMOVE);
}

int df_files_init(struct df_files *files, struct df_segment *segment, struct df_ledger *ledger,
                  bool noted)
{
    memset(files, 0, sizeof(*files));
    files->segment = segment;
    files->ledger = ledger;
    files->noted = noted;
    files->open = calloc(DF_OFD_COUNT, sizeof(*files->open)); /* untouched pages cost nothing */
    files->inodes = calloc(DF_OFD_COUNT, sizeof(*files->inodes));
    if (!files->open || !files->inodes) {
        free(files->open);
        free(files->inodes);
        return -ENOMEM;
    }
    pthread_mutex_init(&files->lock, NULL);
    files->first_free = files->first_number = 1;
    return 0;
}

void df_files_free(struct df_files *files)
{
    free(files->open);
    free(files->inodes);
    pthread_mutex_destroy(&files->lock);
}

/* ---- clients --------------------------------------------------------------------------------- */

/* Under the lock. NULL: no such client. */
static struct df_client *find(struct df_files *files, uint32_t id)
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
        client->count = 0;
        files->client_count++;
        write_down(files, client);
        return client;
    }
    return NULL;
}

/* Under the lock. The entry is free when its set is, which is the caller's. */
static uint64_t *remove_client(struct df_files *files, struct df_client *client)
{
    uint64_t *had = client->files;

    client->id = 0;
    files->client_count--;
    write_down(files, client);
    return had;
}

uint32_t df_files_client_new(struct df_files *files)
{
    struct df_client *client;
    uint32_t id;

    pthread_mutex_lock(&files->lock);
    client = add_client(files);
    id = client ? client->id : 0;
    if (client) {
        client->parent = id;
        write_down(files, client);
    }
    pthread_mutex_unlock(&files->lock);
    return id;
}

/* Under the lock. */
static bool has(const struct df_client *client, uint32_t index)
{
    return client->files && client->files[index / 64] >> index % 64 & 1;
}

/* Under the lock. */
static void give(struct df_files *files, struct df_client *client, uint32_t index)
{
    if (has(client, index))
        return;
    client->files = set_of(files, client);
    client->files[index / 64] |= UINT64_C(1) << index % 64;
    client->count++;
    files->open[index].clients++;
}

/* Under the lock. */
static void copy_set(struct df_files *files, const struct df_client *from, struct df_client *to)
{
    if (from->count == 0)
        return;
    to->files = set_of(files, to);
    memcpy(to->files, from->files, SET_SIZE);
    to->count = from->count;
    for (uint32_t i = 0; i < DF_OFD_COUNT / 64; i++)
        for (uint64_t bits = to->files[i]; bits != 0; bits &= bits - 1)
            files->open[i * 64 + (uint32_t)__builtin_ctzll(bits)].clients++;
}

/* Under the lock. */
static uint32_t fork_client(struct df_files *files, uint32_t parent, _Atomic uint64_t *announced)
{
    struct df_client *from = find(files, parent);
    struct df_client *to = from ? add_client(files) : NULL;

    if (!to)
        return 0;
    atomic_store(announced, to->id); /* until it is unborn, the next server takes it for dead */
    copy_set(files, from, to);
    to->parent = parent;
    to->expected = df_clock() + BIRTH_NS;
    write_down(files, to);
    return to->id;
}

uint32_t df_files_client_fork(struct df_files *files, uint32_t parent, _Atomic uint64_t *announced)
{
    uint32_t id;

    pthread_mutex_lock(&files->lock);
    id = fork_client(files, parent, announced);
    pthread_mutex_unlock(&files->lock);
    return id;
}

bool df_files_client_born(struct df_files *files, uint32_t id)
{
    struct df_client *client;

    pthread_mutex_lock(&files->lock);
    client = find(files, id);
    if (client) {
        client->parent = 0;
        write_down(files, client);
    }
    pthread_mutex_unlock(&files->lock);
    return client != NULL;
}

/* Under the lock. Children whose birth nobody has seen yet: they come soon, or never. */
static void hurry_children(struct df_files *files, uint32_t parent)
{
    int64_t limit = df_clock() + ORPHAN_BIRTH_NS;

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

void df_files_free_set(struct df_files *files, uint64_t *had)
{
    pthread_mutex_lock(&files->lock);
    empty_set(had);
    if (had)
        files->clients[(had - files->ledger->sets[0]) / DF_SET_WORDS].files = NULL;
    pthread_mutex_unlock(&files->lock);
}

bool df_files_client_is_born(struct df_files *files, uint32_t id)
{
    const struct df_client *client;
    bool born;

    pthread_mutex_lock(&files->lock);
    client = find(files, id);
    born = client && client->parent == 0;
    pthread_mutex_unlock(&files->lock);
    return born;
}

bool df_files_client_is_new(struct df_files *files, uint32_t id)
{
    const struct df_client *client;
    bool is_new;

    pthread_mutex_lock(&files->lock);
    client = find(files, id);
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

#define MADE_TOGETHER 512 /* entries */

/* Under the lock: the entry that take_index() would give has memory. */
static bool has_room(struct df_files *files)
{
    if (files->first_free < files->made)
        return true;
    if (files->made >= DF_OFD_COUNT || !df_room_make(files->segment, ofd_at(files, files->made),
                                                     MADE_TOGETHER * sizeof(struct df_ofd)))
        return false;
    files->made += MADE_TOGETHER;
    return true;
}

static uint32_t *chain_of(struct df_files *files, int mount, uint64_t ino)
{
    uint64_t hash = (ino + (uint64_t)mount) * UINT64_C(0x9e3779b97f4a7c15);

    return &files->chains[hash >> 32 & (DF_INODE_CHAINS - 1)];
}

/* Under the lock. There are never more numbers in use than descriptions. */
static uint32_t take_number(struct df_files *files, int mount, uint64_t ino)
{
    uint32_t *chain = chain_of(files, mount, ino), number;
    struct df_open_inode *inode;

    for (number = *chain; number != 0; number = files->inodes[number].next) {
        inode = &files->inodes[number];
        if (inode->mount == mount && inode->ino == ino) {
            inode->count++;
            return number;
        }
    }
    number = files->first_number;
    inode = &files->inodes[number];
    files->first_number = inode->next ? inode->next : number + 1;
    *inode = (struct df_open_inode){mount, 1, ino, *chain};
    return *chain = number;
}

/* Under the lock. */
static void give_number_back(struct df_files *files, uint32_t number)
{
    struct df_open_inode *inode = &files->inodes[number];
    uint32_t *link = chain_of(files, inode->mount, inode->ino);

    if (number == 0 || --inode->count > 0)
        return;
    while (*link != number)
        link = &files->inodes[*link].next;
    *link = inode->next;
    inode->next = files->first_number;
    files->first_number = number;
}

static void fill_ofd(struct df_ofd *ofd, uint64_t handle, struct df_file *file, int mount,
                     uint16_t content)
{
    atomic_store_explicit(&ofd->flags, (uint32_t)atomic_load(&file->flags), memory_order_relaxed);
    ofd->mount = mount;
    ofd->kind = file->kind;
    ofd->traits = file->traits;
    ofd->ino = file->ino;
    atomic_store_explicit(&ofd->content, content, memory_order_relaxed);
    ofd->position = 0;
    ofd->door[0] = ofd->door[1] = 0;
    atomic_store_explicit(&ofd->random, 0, memory_order_relaxed);
    atomic_store_explicit(&ofd->begun, 0, memory_order_relaxed);
    atomic_store_explicit(&ofd->position_lock, 0, memory_order_relaxed);
    atomic_store(&ofd->handle, handle);
}

/* Under the lock. */
static uint64_t add_file(struct df_files *files, struct df_client *client, struct df_file *file,
                         int mount, uint16_t content, _Atomic uint64_t *announced)
{
    uint32_t index = has_room(files) ? take_index(files) : 0;
    struct df_open_file *entry = &files->open[index];
    uint64_t handle;

    if (index == 0)
        return 0;
    entry->generation++;
    files->ledger->files[index].generation = entry->generation;
    files->ledger->files[index].path_len = 0;
    if (index >= files->ledger->used)
        files->ledger->used = index + 1;
    entry->clients = 0;
    atomic_store(&entry->st_ino, 0);
    atomic_store_explicit(&entry->ahead_of, 0, memory_order_relaxed);
    atomic_store_explicit(&entry->ahead, 0, memory_order_relaxed);
    atomic_store_explicit(&entry->judged, false, memory_order_relaxed);
    handle = (uint64_t)entry->generation << 32 | index;
    atomic_store(announced, handle);
    atomic_store(&entry->file, file);
    entry->number = ofd_at(files, index)->number = take_number(files, mount, file->ino);
    fill_ofd(ofd_at(files, index), handle, file, mount, content);
    atomic_signal_fence(memory_order_seq_cst);
    give(files, client, index); /* last: without it the next server closes the file */
    files->count++;
    return handle;
}

uint64_t df_files_add(struct df_files *files, uint32_t client, struct df_file *file, int mount,
                      uint16_t content, _Atomic uint64_t *announced)
{
    struct df_client *owner;
    uint64_t handle = 0;

    pthread_mutex_lock(&files->lock);
    owner = find(files, client);
    if (owner)
        handle = add_file(files, owner, file, mount, content, announced);
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
        give(files, owner, index), ret = 0;
    pthread_mutex_unlock(&files->lock);
    return ret;
}

/* Under the lock: one client less. */
static struct df_last_file take_from(struct df_files *files, uint32_t index)
{
    struct df_open_file *entry = &files->open[index];
    struct df_ofd *ofd = ofd_at(files, index);
    struct df_last_file last = {.mount = ofd->mount, .ino = ofd->ino};

    if (--entry->clients > 0)
        return last;
    last.content = atomic_load_explicit(&ofd->content, memory_order_relaxed);
    last.mapped = __atomic_load_n(&ofd->door[0], __ATOMIC_ACQUIRE) & DF_OFD_MAPPED;
    last.judged = atomic_load_explicit(&entry->judged, memory_order_relaxed);
    last.read = atomic_load_explicit(&ofd->begun, memory_order_relaxed) != 0;
    if (!files->over)
        atomic_store(&ofd->handle, 0);
    give_number_back(files, entry->number);
    last.file = atomic_exchange(&entry->file, NULL);
    entry->next_free = files->first_free;
    files->first_free = index;
    files->count--;
    return last;
}

int df_files_drop(struct df_files *files, uint32_t client, uint64_t handle,
                  struct df_last_file *last)
{
    struct df_client *owner;
    uint32_t index;
    int ret = -EBADF;

    *last = (struct df_last_file){0};
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

void df_files_drop_gone(struct df_files *files, uint32_t index, struct df_last_file *last)
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

struct df_open_file *df_files_entry(struct df_files *files, uint64_t handle)
{
    return &files->open[df_handle_index(handle) % DF_OFD_COUNT];
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

/* ---- after a server has died ----------------------------------------------------------------- */

void df_files_note(struct df_files *files, uint64_t handle, uint64_t base, const char *name,
                   uint32_t len, uint32_t where_flags, int flags)
{
    struct df_ledger *ledger = files->ledger;
    uint32_t index = df_handle_index(handle), base_index = df_handle_index(base) % DF_OFD_COUNT;
    uint32_t base_len = base ? ledger->files[base_index].path_len : 0;
    char *path;

    if (!files->noted || (base && base_len == 0) || base_len + len + 2 > PATH_MAX)
        return;
    path = ledger->paths[index];
    memcpy(path, ledger->paths[base_index], base_len);
    if (len > 0 && name[0] != '/')
        path[base_len++] = '/';
    memcpy(path + base_len, name, len);
    path[base_len + len] = '\0';
    ledger->files[index].flags = flags;
    ledger->files[index].where_flags = where_flags;
    ledger->files[index].path_len = base_len + len;
}

void df_files_restore(struct df_files *files, uint32_t index, struct df_file *file)
{
    atomic_store(&files->open[index].file, file);
}

bool df_files_lost(struct df_files *files, uint64_t handle)
{
    return df_segment_ofd(files->segment, handle) &&
           !atomic_load(&files->open[df_handle_index(handle)].file);
}

/* Its set without what is closed by now. */
static void take_set(struct df_files *files, struct df_client *client, uint64_t *set)
{
    for (uint32_t i = 0; i < DF_SET_WORDS; i++)
        for (uint64_t bits = set[i]; bits != 0; bits &= bits - 1) {
            uint32_t index = i * 64 + (uint32_t)__builtin_ctzll(bits);

            if (atomic_load(&ofd_at(files, index)->handle) == 0) {
                set[i] &= ~(bits & -bits);
                continue;
            }
            client->files = set;
            client->count++;
            files->open[index].clients++;
        }
}

static void take_client(struct df_files *files, uint32_t i)
{
    struct df_ledger *ledger = files->ledger;
    struct df_client *client = &files->clients[i];

    client->generation = ledger->clients[i].generation;
    client->id = ledger->clients[i].id;
    client->parent = ledger->clients[i].parent;
    client->expected = df_clock() + BIRTH_NS;
    if (client->id == 0) {
        if (client->generation != 0)
            empty_set(ledger->sets[i]);
        return;
    }
    files->client_count++;
    take_set(files, client, ledger->sets[i]);
}

/* Placeholders in the programs are named by it. */
static void keep_number(struct df_files *files, uint32_t index)
{
    const struct df_ofd *ofd = ofd_at(files, index);
    uint32_t number = ofd->number, *chain = chain_of(files, ofd->mount, ofd->ino);

    if (number == 0 || number >= DF_OFD_COUNT)
        return;
    files->open[index].number = number;
    if (files->inodes[number].count++ > 0)
        return;
    files->inodes[number] = (struct df_open_inode){ofd->mount, 1, ofd->ino, *chain};
    *chain = number;
    if (number >= files->first_number)
        files->first_number = number + 1;
}

/* All are known: those between them are free. */
static void find_free_numbers(struct df_files *files)
{
    for (uint32_t number = files->first_number; number > 1;)
        if (files->inodes[--number].count == 0) {
            files->inodes[number].next = files->first_number;
            files->first_number = number;
        }
}

/* A file that nobody has any more is closed; free ones are listed, the lowest first. */
static void take_file(struct df_files *files, uint32_t index)
{
    struct df_open_file *entry = &files->open[index];

    entry->generation = files->ledger->files[index].generation;
    if (entry->clients > 0) {
        files->count++;
        keep_number(files, index);
        atomic_store(&ofd_at(files, index)->content, 0); /* its number was the last server's */
        return;
    }
    atomic_store(&ofd_at(files, index)->handle, 0);
    entry->next_free = files->first_free;
    files->first_free = index;
}

void df_files_take(struct df_files *files)
{
    for (uint32_t i = 0; i < DF_CLIENT_MAX; i++)
        take_client(files, i);
    files->first_free = files->ledger->used > 0 ? files->ledger->used : 1;
    files->made = (files->first_free + MADE_TOGETHER - 1) / MADE_TOGETHER * MADE_TOGETHER;
    for (uint32_t i = files->ledger->used; i > 1;)
        take_file(files, --i);
    find_free_numbers(files);
}
