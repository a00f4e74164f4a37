/*
 * files.c - the table of nodes that are open, and the handles of open files; see files.h.
 */
#include "files.h"

#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "channel.h"

/* ---- time ------------------------------------------------------------------------------------ */

static uint64_t now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC_COARSE, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static uint64_t expiry_of(uint64_t valid, uint32_t valid_ns)
{
    uint64_t begin = now();

    return valid >= (UINT64_MAX - begin) / 1000000000u - 1 ? UINT64_MAX
                                                           : begin + valid * 1000000000u + valid_ns;
}

bool files_holds(const struct file *file)
{
    uint64_t expiry = atomic_load(&file->told.expiry);

    return expiry == UINT64_MAX || now() < expiry;
}

/* ---- the tables; under their lock --------------------------------------------------------------
 */

/* Many servers' numbers are addresses: their low bits are all the same. */
static unsigned place_of(uint64_t node, unsigned places)
{
    return (unsigned)((node * UINT64_C(0x9e3779b97f4a7c15)) >> 40) % places;
}

static struct file **link_of(struct files *files, uint64_t node)
{
    struct file **link = &files->chain[place_of(node, FILES_CHAINS)];

    while (*link && (*link)->told.node != node)
        link = &(*link)->next;
    return link;
}

static struct told *recent_of(struct files *files, uint64_t node)
{
    return &files->recent[place_of(node, FILES_RECENT)];
}

static void copy_told(struct told *to, const struct told *from)
{
    to->node = from->node;
    to->mtime = from->mtime;
    to->mtime_ns = from->mtime_ns;
    atomic_store(&to->size, atomic_load(&from->size));
    atomic_store(&to->expiry, atomic_load(&from->expiry));
}

static struct file *get(struct files *files, uint64_t node)
{
    struct file **link = link_of(files, node);

    if (!*link && (*link = calloc(1, sizeof(**link)))) {
        if (recent_of(files, node)->node == node)
            copy_told(&(*link)->told, recent_of(files, node));
        (*link)->told.node = node;
    }
    if (*link)
        (*link)->handles++;
    return *link;
}

static void put(struct files *files, struct file *file)
{
    struct file **link = link_of(files, file->told.node);

    if (--file->handles > 0)
        return;
    copy_told(recent_of(files, file->told.node), &file->told);
    *link = file->next;
    free(file);
}

/* As fuse_change_attributes() of the kernel: another size, or, where the server wants that, another
 * modification time. What was never heard of differs from nothing. */
static void compare(const struct channel *channel, struct file *file, const struct fuse_attr *attr)
{
    const struct told *told = &file->told;
    bool known = atomic_load(&told->expiry) != 0;
    bool size = atomic_load(&told->size) != attr->size;
    bool mtime = told->mtime != attr->mtime || told->mtime_ns != attr->mtimensec;

    if (known && (size || (mtime && channel->flags & FUSE_AUTO_INVAL_DATA)))
        atomic_fetch_add(&file->changes, 1);
}

static void tell(struct told *told, uint64_t node, const struct fuse_attr *attr, uint64_t expiry)
{
    told->node = node;
    told->mtime = attr->mtime;
    told->mtime_ns = attr->mtimensec;
    atomic_store(&told->size, attr->size);
    atomic_store(&told->expiry, expiry);
}

/* ---- what is told ---------------------------------------------------------------------------- */

/* Attributes that were known are expired, as by fuse_invalidate_attr(): not unknown. */
void files_changed(struct channel *channel, uint64_t node)
{
    struct files *files = &channel->files;

    pthread_mutex_lock(&files->lock);
    struct file *file = *link_of(files, node);
    files->clock++;
    if (recent_of(files, node)->node == node)
        recent_of(files, node)->node = 0;
    if (file) {
        file->changed = files->clock;
        atomic_fetch_add(&file->changes, 1);
        if (atomic_load(&file->told.expiry) != 0)
            atomic_store(&file->told.expiry, 1);
    }
    pthread_mutex_unlock(&files->lock);
}

uint64_t files_clock(struct channel *channel)
{
    pthread_mutex_lock(&channel->files.lock);
    uint64_t clock = channel->files.clock;
    pthread_mutex_unlock(&channel->files.lock);
    return clock;
}

void files_told(struct channel *channel, uint64_t node, const struct fuse_attr *attr,
                uint64_t valid, uint32_t valid_ns, uint64_t clock)
{
    struct files *files = &channel->files;

    pthread_mutex_lock(&files->lock);
    struct file *file = *link_of(files, node);
    if (file && file->changed <= clock) {
        compare(channel, file, attr);
        tell(&file->told, node, attr, expiry_of(valid, valid_ns));
    } else if (!file && files->clock == clock) {
        tell(recent_of(files, node), node, attr, expiry_of(valid, valid_ns));
    }
    pthread_mutex_unlock(&files->lock);
}

_Static_assert(sizeof(struct fuse_direntplus) == offsetof(struct fuse_direntplus, dirent.name),
               "the name begins where the struct ends");

void files_told_many(struct channel *channel, const char *body, size_t size, uint64_t clock)
{
    struct fuse_direntplus one;

    for (size_t used; size >= sizeof(one); body += used, size -= used) {
        memcpy(&one, body, sizeof(one));
        used = FUSE_DIRENT_ALIGN(sizeof(one) + one.dirent.namelen);
        if (used > size)
            return;
        if (one.entry_out.nodeid)
            files_told(channel, one.entry_out.nodeid, &one.entry_out.attr, one.entry_out.attr_valid,
                       one.entry_out.attr_valid_nsec, clock);
    }
}

/* ---- handles --------------------------------------------------------------------------------- */

struct handle *handle_new(void)
{
    struct handle *handle = calloc(1, sizeof(*handle));

    if (handle)
        ahead_init(&handle->ahead);
    return handle;
}

void handle_free(struct channel *channel, struct handle *handle)
{
    if (handle->file) {
        pthread_mutex_lock(&channel->files.lock);
        put(&channel->files, handle->file);
        pthread_mutex_unlock(&channel->files.lock);
    }
    ahead_free(channel, &handle->ahead);
    free(handle);
}

/* The bytes may be others from here on; attributes hold. */
static void disbelieve(struct channel *channel, uint64_t node)
{
    pthread_mutex_lock(&channel->files.lock);
    struct file *file = *link_of(&channel->files, node);
    if (file)
        atomic_fetch_add(&file->changes, 1);
    pthread_mutex_unlock(&channel->files.lock);
}

void handle_opened(struct channel *channel, struct handle *handle, uint64_t node, int flags,
                   const struct fuse_open_out *out)
{
    const uint32_t unread = FOPEN_DIRECT_IO | FOPEN_NONSEEKABLE | FOPEN_STREAM;

    handle->fh = out->fh;
    handle->opened = true;
    if (node && !(out->open_flags & FOPEN_KEEP_CACHE))
        disbelieve(channel, node);
    if (!node || out->open_flags & unread || flags & O_DIRECT || (flags & O_ACCMODE) == O_WRONLY)
        return;
    pthread_mutex_lock(&channel->files.lock);
    handle->file = get(&channel->files, node);
    pthread_mutex_unlock(&channel->files.lock);
}
