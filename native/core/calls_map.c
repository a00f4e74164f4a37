/*
 * calls_map.c - mmap, msync, munmap: memory with a file's bytes.
 *
 * A mapping is a loan (the plugin's own resident bytes, for reading) or a copy. A shared writable
 * copy keeps a second, pristine one: what differs was changed, and only that is written back. So
 * a page that nobody touched never overwrites what others wrote meanwhile.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/calls.h"
#include "core/map.h"
#include "core/use.h"

#define PIECE 4096u /* bytes that are compared, and written back, together */

struct map {
    struct map *next;
    char *address;
    size_t length; /* as the caller gave it */
    size_t size;   /* bytes mapped: whole pages, or bytes lent */
    bool lent;
    bool busy;            /* being written back or ended; under maps_lock */
    char *pristine;       /* of a shared writable copy: `size` bytes; else NULL */
    struct df_file *file; /* with a reference */
    off_t offset;
};

static pthread_mutex_t maps_lock = PTHREAD_MUTEX_INITIALIZER; /* protects maps, not their memory */
static struct map *maps;
static pthread_cond_t idle = PTHREAD_COND_INITIALIZER; /* a map is no longer busy */
static _Atomic unsigned map_count; /* of maps; so that a foreign munmap costs one load */

void df_map_lock(void)
{
    pthread_mutex_lock(&maps_lock);
}

void df_map_unlock(void)
{
    pthread_mutex_unlock(&maps_lock);
}

static size_t whole_pages(size_t length)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);

    return (length + page - 1) & ~(page - 1);
}

/* ---- the list ------------------------------------------------------------------------------ */

static void add(struct map *map)
{
    pthread_mutex_lock(&maps_lock);
    map->next = maps;
    maps = map;
    atomic_fetch_add(&map_count, 1);
    pthread_mutex_unlock(&maps_lock);
}

/* Under maps_lock: the mapping that the address lies in. */
static struct map *find(const char *address)
{
    for (struct map *m = maps; m; m = m->next)
        if (address >= m->address && address < m->address + m->size)
            return m;
    return NULL;
}

/* The mapping around the address, for the caller alone. NULL: not ours. */
static struct map *get(const char *address)
{
    struct map *map;

    pthread_mutex_lock(&maps_lock);
    while ((map = find(address)) && map->busy)
        pthread_cond_wait(&idle, &maps_lock);
    if (map)
        map->busy = true;
    pthread_mutex_unlock(&maps_lock);
    return map;
}

static void put(struct map *map)
{
    pthread_mutex_lock(&maps_lock);
    map->busy = false;
    pthread_cond_broadcast(&idle);
    pthread_mutex_unlock(&maps_lock);
}

static void drop(struct map *map)
{
    struct map **at = &maps;

    pthread_mutex_lock(&maps_lock);
    while (*at != map)
        at = &(*at)->next;
    *at = map->next;
    atomic_fetch_sub(&map_count, 1);
    pthread_cond_broadcast(&idle);
    pthread_mutex_unlock(&maps_lock);
}

/* In the child: who kept a map busy is gone. */
void df_map_after_fork(void)
{
    for (struct map *m = maps; m; m = m->next)
        m->busy = false;
    pthread_cond_init(&idle, NULL);
}

/* ---- mapping ------------------------------------------------------------------------------- */

/* do_mmap() of the kernel, and what this one cannot do. */
static int check(const struct df_use *use, const void *address, size_t length, int prot, int flags,
                 off_t offset)
{
    int type = flags & MAP_TYPE;

    if (length == 0 || offset < 0 || (size_t)offset != whole_pages((size_t)offset))
        return -EINVAL;
    if (whole_pages(length) == 0)
        return -ENOMEM;
    if (address || (flags & (MAP_FIXED | MAP_FIXED_NOREPLACE)))
        return df_gate_refuse(DF_NR_mmap, -EINVAL);
    if (type != MAP_PRIVATE && type != MAP_SHARED && type != MAP_SHARED_VALIDATE)
        return -EINVAL;
    if (!df_use_readable(use))
        return -EACCES;
    if (type != MAP_PRIVATE && (prot & PROT_WRITE)) {
        if (!df_use_writable(use))
            return -EACCES;
        if (df_use_flags(use) & O_APPEND) /* could not be written back where it belongs */
            return df_gate_refuse(DF_NR_mmap, -EINVAL);
    }
    return use->file->kind == DF_KIND_REGULAR ? 0 : -ENODEV;
}

/* Lends the bytes if the plugin has them all in one piece. 0: mapped; 1: a copy is needed. */
static int lend(struct df_use *use, struct map *map)
{
    const void *bytes;
    ssize_t got =
        use->fs->ops->borrow(use->fs, &use->call, use->file, map->offset, map->length, &bytes);

    got = df_call_result(&use->call, got);
    if (got <= 0)
        return 1;
    if ((size_t)got < map->length) {
        use->fs->ops->unborrow(use->fs, &use->call, use->file, bytes, (size_t)got);
        return 1;
    }
    map->address = (char *)bytes;
    map->size = (size_t)got;
    map->lent = true;
    return 0;
}

/* Reads the file's bytes to the memory; what lies behind its end stays zero. */
static ssize_t fill(struct df_use *use, const struct map *map)
{
    size_t done = 0;
    ssize_t ret = 1;

    while (done < map->size && ret > 0) {
        struct iovec iov = {map->address + done, map->size - done};

        ret =
            use->fs->ops->read(use->fs, &use->call, use->file, &iov, 1, map->offset + (off_t)done);
        ret = df_call_result(&use->call, ret);
        if (ret > 0)
            done += (size_t)ret;
    }
    return ret < 0 ? ret : 0;
}

static char *new_pages(size_t size)
{
    char *pages = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    return pages == MAP_FAILED ? NULL : pages;
}

static void free_pages(char *pages, size_t size)
{
    if (pages)
        munmap(pages, size);
}

static int copy(struct df_use *use, struct map *map, int prot, bool write_back)
{
    ssize_t ret = -ENOMEM;

    map->size = whole_pages(map->length);
    map->address = new_pages(map->size);
    map->pristine = write_back ? new_pages(map->size) : NULL;
    if (map->address && (map->pristine || !write_back))
        ret = fill(use, map);
    if (ret == 0 && write_back)
        memcpy(map->pristine, map->address, map->size);
    if (ret == 0 && mprotect(map->address, map->size, prot) < 0)
        ret = -errno;
    if (ret < 0) {
        free_pages(map->address, map->size);
        free_pages(map->pristine, map->size);
    }
    return (int)ret;
}

static int make(struct df_use *use, struct map *map, int prot, int flags)
{
    bool write_back = (flags & MAP_TYPE) != MAP_PRIVATE && (prot & PROT_WRITE);
    int saved = errno, ret = 1;

    if (!(prot & (PROT_WRITE | PROT_EXEC)))
        ret = lend(use, map);
    if (ret == 1)
        ret = copy(use, map, prot, write_back);
    errno = saved;
    return ret;
}

/* The mapping has a reference of its own: the descriptor may be closed before it ends. */
static int add_map(struct df_use *use, void **address, size_t length, int prot, int flags,
                   off_t offset)
{
    struct map *map = calloc(1, sizeof(*map));
    int ret;

    if (!map)
        return -ENOMEM;
    *map = (struct map){.length = length, .offset = offset, .file = use->file};
    ret = df_file_hold(use->file) ? 0 : -EBADF; /* closed meanwhile */
    if (ret == 0 && (ret = make(use, map, prot, flags)) < 0)
        df_file_put(use->thread, use->file);
    if (ret < 0) {
        free(map);
        return ret;
    }
    *address = map->address;
    add(map);
    return 0;
}

int df_call_mmap(void **address, size_t length, int prot, int flags, int fd, off_t offset)
{
    struct df_use use;
    int ret;

    if (flags & MAP_ANONYMOUS)
        return DF_NOT_OURS;
    if ((ret = df_use_begin(&use, fd)) < 0)
        return ret;
    ret = check(&use, *address, length, prot, flags, offset);
    if (ret == 0)
        ret = add_map(&use, address, length, prot, flags, offset);
    return (int)df_use_end(&use, ret);
}

/* ---- writing back -------------------------------------------------------------------------- */

/* The pristine copy becomes what was written, which the memory may no longer be. */
static ssize_t write_range(struct df_call *call, struct map *map, size_t at, char *bytes,
                           size_t size)
{
    struct df_fs *fs = map->file->fs;

    while (size > 0) {
        struct iovec iov = {bytes, size};
        off_t offset = map->offset + (off_t)at;
        ssize_t ret = df_call_result(call, fs->ops->write(fs, call, map->file, &iov, 1, &offset));

        if (ret < 0)
            return ret;
        if (ret == 0)
            return -EIO;
        memcpy(map->pristine + at, bytes, (size_t)ret);
        at += (size_t)ret;
        bytes += ret;
        size -= (size_t)ret;
    }
    return 0;
}

/* From the first to the last changed byte. Other threads may store there all the time, so it is
 * done with a copy. */
static ssize_t write_piece(struct df_call *call, struct map *map, size_t at, size_t size)
{
    const char *then = map->pristine + at;
    char now[PIECE];
    size_t start = 0;

    if (memcmp(map->address + at, then, size) == 0)
        return 0;
    memcpy(now, map->address + at, size);
    while (start < size && now[start] == then[start])
        start++;
    while (size > start && now[size - 1] == then[size - 1])
        size--;
    return write_range(call, map, at + start, now + start, size - start);
}

/* Never grows the file: mmap(2), what is written behind its end is lost. */
static ssize_t write_back(struct df_thread *thread, struct map *map)
{
    struct df_where where = {.base = map->file, .name = ""};
    struct df_fs *fs = map->file->fs;
    size_t size = map->size;
    struct df_call call;
    struct stat st;
    ssize_t ret;

    if (!map->pristine)
        return 0;
    df_call_start(&call, thread, atomic_load(&map->file->mount));
    ret = df_call_result(&call, fs->ops->getattr(fs, &call, &where, &st));
    if (ret < 0)
        return ret;
    if (st.st_size <= map->offset)
        return 0;
    if ((off_t)size > st.st_size - map->offset)
        size = (size_t)(st.st_size - map->offset);
    for (size_t at = 0; at < size && ret == 0; at += PIECE)
        ret = write_piece(&call, map, at, size - at < PIECE ? size - at : PIECE);
    return ret;
}

/* ---- msync, munmap ------------------------------------------------------------------------- */

static bool valid_msync(int flags)
{
    return !(flags & ~(MS_ASYNC | MS_SYNC | MS_INVALIDATE)) &&
           (flags & (MS_ASYNC | MS_SYNC)) != (MS_ASYNC | MS_SYNC);
}

/* As msync(2) ends: what was written may be kept by somebody still. */
static int sync_file(struct df_thread *thread, struct df_file *file)
{
    struct df_call call;

    df_call_start(&call, thread, atomic_load(&file->mount));
    return (int)df_call_result(&call, file->fs->ops->fsync(file->fs, &call, file, true));
}

/* The whole mapping is written back, whatever part of it is asked for. */
int df_call_msync(void *address, size_t length, int flags)
{
    struct df_thread *thread;
    struct map *map;
    int ret = 0;

    (void)length;
    if (atomic_load(&map_count) == 0 || !(map = get(address)))
        return DF_NOT_OURS;
    thread = df_gate_enter(&ret);
    if (thread) {
        ret = valid_msync(flags) ? (int)write_back(thread, map) : -EINVAL;
        if (ret == 0 && flags & MS_SYNC)
            ret = sync_file(thread, map->file);
        df_gate_leave(thread);
    }
    put(map);
    return ret;
}

static void free_map(struct df_thread *thread, struct map *map)
{
    struct df_call call;

    if (map->lent) {
        df_call_start(&call, thread, atomic_load(&map->file->mount));
        map->file->fs->ops->unborrow(map->file->fs, &call, map->file, map->address, map->size);
    } else {
        free_pages(map->address, map->size);
        free_pages(map->pristine, map->size);
    }
    df_file_put(thread, map->file);
    free(map);
}

int df_call_munmap(void *address, size_t length)
{
    struct df_thread *thread;
    struct map *map;
    int ret = 0;

    if (atomic_load(&map_count) == 0 || !(map = get(address)))
        return DF_NOT_OURS;
    if (address != map->address || whole_pages(length) != whole_pages(map->length))
        ret = df_gate_refuse(DF_NR_munmap, -EINVAL);
    thread = ret == 0 ? df_gate_enter(&ret) : NULL;
    if (!thread) {
        put(map);
        return ret;
    }
    ret = (int)write_back(thread, map);
    if (ret == -EINTR) { /* what is left of it would be lost */
        put(map);
    } else {
        drop(map);
        free_map(thread, map);
    }
    df_gate_leave(thread);
    return ret;
}
