/*
 * files.c - the table of open files: which there are, and to whom each belongs.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "channel/ofd.h"
#include "channel/room.h"
#include "channel/sys.h"
#include "core/gate.h"
#include "ledger/files_private.h"

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

/* Under the lock: which entry the next file will have. */
static void expect(struct df_files *files)
{
    atomic_store_explicit(&files->expected, files->first_free, memory_order_relaxed);
}

void df_files_foresee(struct df_files *files)
{
    uint32_t index = atomic_load_explicit(&files->expected, memory_order_relaxed);
    const struct df_ofd *ofd = df_files_ofd(files, index % DF_OFD_COUNT);

    df_sys_fetch_to_write(ofd);
    df_sys_fetch_to_write(&ofd->position_lock); /* the clients' line, which is begun anew */
}

/* Under the lock. 0: there are too many. A list of those that were used; behind it, those never. */
static uint32_t take_index(struct df_files *files)
{
    uint32_t index = files->first_free;

    if (index >= DF_OFD_COUNT)
        return 0;
    files->first_free = files->open[index].next_free ? files->open[index].next_free : index + 1;
    expect(files);
    return index;
}

/* Under the lock: the entry that take_index() would give has memory. */
static bool has_room(struct df_files *files)
{
    if (files->first_free < files->made)
        return true;
    if (files->made >= DF_OFD_COUNT ||
        !df_room_make(files->segment, df_files_ofd(files, files->made),
                      DF_FILES_TOGETHER * sizeof(struct df_ofd)))
        return false;
    files->made += DF_FILES_TOGETHER;
    return true;
}

/* Before anybody can find a file there. */
static void use_index(struct df_files *files, uint32_t index)
{
    if (index < files->ledger->used)
        return;
    files->ledger->used = index + 1;
    atomic_store(&files->segment->files_used, index + 1);
}

static void fill_ofd(struct df_ofd *ofd, uint64_t handle, struct df_file *file, int mount,
                     uint32_t content)
{
    atomic_store_explicit(&ofd->flags, (uint32_t)atomic_load(&file->flags), memory_order_relaxed);
    ofd->mount = mount;
    ofd->kind = file->kind;
    ofd->traits = file->traits;
    ofd->ino = file->ino;
    atomic_store_explicit(&ofd->content, content, memory_order_relaxed);
    ofd->position = 0;
    ofd->marks = DF_OFD_UNMARKED(handle);
    ofd->placeholder = 0;
    atomic_store_explicit(&ofd->random, 0, memory_order_relaxed);
    atomic_store_explicit(&ofd->sent, 0, memory_order_relaxed);
    atomic_store_explicit(&ofd->begun, 0, memory_order_relaxed);
    atomic_store_explicit(&ofd->end, 0, memory_order_relaxed);
    atomic_store_explicit(&ofd->position_lock, 0, memory_order_relaxed);
    atomic_store(&ofd->handle, handle);
}

/* What its file is, whose descriptions are all marked (native/shadows/shadow_map.c). After it can
 * be found: who marks them meanwhile finds this one, or this finds what he has done. */
static void take_marks(struct df_files *files, uint32_t index)
{
    uint32_t older = files->open[index].older;
    uint64_t marks;

    if (older == 0)
        return;
    marks = __atomic_load_n(&df_files_ofd(files, older)->marks, __ATOMIC_SEQ_CST) & DF_OFD_OF_FILE;
    if (marks != 0)
        __atomic_fetch_or(&df_files_ofd(files, index)->marks, marks, __ATOMIC_ACQ_REL);
}

/* Under the lock. */
static uint64_t add_file(struct df_files *files, struct df_client *client, struct df_file *file,
                         int mount, uint32_t content, _Atomic uint64_t *announced)
{
    uint32_t index = has_room(files) ? take_index(files) : 0;
    struct df_open_file *entry = &files->open[index];
    uint64_t handle;

    if (index == 0)
        return 0;
    entry->generation = entry->generation % DF_GENERATION_MAX + 1;
    files->ledger->files[index].generation = entry->generation;
    files->ledger->files[index].path_len = 0;
    use_index(files, index);
    entry->clients = 0;
    entry->content = content;
    atomic_store(&entry->st_ino, 0);
    atomic_store_explicit(&entry->ahead_of, 0, memory_order_relaxed);
    atomic_store_explicit(&entry->ahead, 0, memory_order_relaxed);
    atomic_store_explicit(&entry->judged, false, memory_order_relaxed);
    atomic_store_explicit(&entry->scattered, false, memory_order_relaxed);
    handle = (uint64_t)entry->generation << 32 | index;
    atomic_store(announced, handle);
    atomic_store(&entry->file, file);
    df_files_ofd(files, index)->number = df_files_number_take(files, index, mount, file->ino);
    fill_ofd(df_files_ofd(files, index), handle, file, mount, content);
    take_marks(files, index);
    atomic_signal_fence(memory_order_seq_cst);
    df_files_client_give(files, client,
                         index); /* last: without it the next server closes the file */
    files->count++;
    return handle;
}

uint64_t df_files_add(struct df_files *files, uint32_t client, struct df_file *file, int mount,
                      uint32_t content, _Atomic uint64_t *announced)
{
    struct df_client *owner;
    uint64_t handle = 0;

    pthread_mutex_lock(&files->lock);
    owner = df_files_client_find(files, client);
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
    owner = df_files_client_find(files, client);
    index = index_of(files, handle);
    if (owner && index != 0)
        df_files_client_give(files, owner, index), ret = 0;
    pthread_mutex_unlock(&files->lock);
    return ret;
}

/* Under the lock: one client less. */
static struct df_last_file take_from(struct df_files *files, uint32_t index)
{
    struct df_open_file *entry = &files->open[index];
    struct df_ofd *ofd = df_files_ofd(files, index);
    struct df_last_file last = {
        .handle = atomic_load(&ofd->handle), .mount = ofd->mount, .ino = ofd->ino};

    if (--entry->clients > 0)
        return last;
    last.content = entry->content;
    last.mapped = /* or was about to be, by one that was killed */
        __atomic_load_n(&ofd->marks, __ATOMIC_ACQUIRE) & (DF_OFD_MAPPED | DF_OFD_FILLED);
    last.judged = atomic_load_explicit(&entry->judged, memory_order_relaxed);
    last.read =
        last.judged && atomic_load_explicit(&ofd->begun, memory_order_relaxed) == DF_OFD_BEGUN;
    last.locked = df_files_number_give_back(
        files, index, __atomic_load_n(&ofd->marks, __ATOMIC_ACQUIRE) & DF_OFD_LOCKED);
    if (!files->over)
        atomic_store(&ofd->handle, 0);
    if (entry->place)
        close(entry->place - 1);
    entry->place = 0;
    last.file = atomic_exchange(&entry->file, NULL);
    free(entry->called);
    entry->called = NULL;
    entry->next_free = files->first_free;
    files->first_free = index;
    expect(files);
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
    df_sys_fetch_to_write(df_files_ofd(files, df_handle_index(handle) % DF_OFD_COUNT));
    pthread_mutex_lock(&files->lock);
    owner = df_files_client_find(files, client);
    index = index_of(files, handle);
    if (owner && index != 0 && df_files_client_has(owner, index)) {
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

void df_files_break(struct df_files *files, uint32_t client)
{
    struct df_client *owner;

    pthread_mutex_lock(&files->lock);
    owner = df_files_client_find(files, client);
    for (uint32_t i = 0; owner && owner->files && i < DF_OFD_COUNT / 64; i++)
        for (uint64_t bits = owner->files[i]; bits != 0; bits &= bits - 1)
            df_ofd_break(df_files_ofd(files, i * 64 + (uint32_t)__builtin_ctzll(bits)), client);
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
    owner = df_files_client_find(files, client);
    for (uint32_t i = 1; owner && owner->count > 0 && i < DF_OFD_COUNT && found < room; i++) {
        uint64_t handle;

        if (!df_files_client_has(owner, i))
            continue;
        handle = atomic_load(&df_files_ofd(files, i)->handle);
        if (!is_listed(handle, kept, count))
            others[found++] = handle;
    }
    pthread_mutex_unlock(&files->lock);
    return found;
}

size_t df_files_of_mount(struct df_files *files, int mount, uint32_t *from, uint64_t handles[],
                         size_t room)
{
    size_t found = 0;

    pthread_mutex_lock(&files->lock);
    for (; *from < files->ledger->used && found < room; ++*from)
        if (atomic_load(&files->open[*from].file) && df_files_ofd(files, *from)->mount == mount)
            handles[found++] = atomic_load(&df_files_ofd(files, *from)->handle);
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
        any = df_files_ofd(files, i)->mount == mount;
    }
    pthread_mutex_unlock(&files->lock);
    return any;
}

/* ---- directories ----------------------------------------------------------------------------- */

void df_files_call(struct df_files *files, uint64_t handle, const char *path, size_t len)
{
    char *copy = strndup(path, len);
    uint32_t index;

    pthread_mutex_lock(&files->lock);
    index = index_of(files, handle);
    if (index != 0) { /* its client may be gone, and the file with it */
        free(files->open[index].called);
        files->open[index].called = copy;
        copy = NULL;
    }
    pthread_mutex_unlock(&files->lock);
    free(copy);
}

size_t df_files_called(struct df_files *files, uint64_t handle, char path[PATH_MAX])
{
    const char *called;
    size_t len = 0;
    uint32_t index;

    pthread_mutex_lock(&files->lock);
    index = index_of(files, handle);
    called = index != 0 ? files->open[index].called : NULL;
    if (called && (len = strnlen(called, PATH_MAX)) < PATH_MAX)
        memcpy(path, called, len + 1);
    pthread_mutex_unlock(&files->lock);
    return len < PATH_MAX ? len : 0;
}
