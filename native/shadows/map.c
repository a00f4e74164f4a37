/*
 * map.c - the list of a process's mappings of files of mounts, and writing shared ones back.
 */
#include "shadows/map.h"

#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/fd.h"
#include "intercept/brief.h"
#include "shadows/map_copies.h"
#include "shadows/shadow.h"

#define PAGE  4096
#define CHUNK ((size_t)256 << 10) /* compared at a time */

void dfi_maps_lock(struct dfi_files *files)
{
    dfi_lock(&files->maps_lock);
}

void dfi_maps_unlock(struct dfi_files *files)
{
    dfi_unlock(&files->maps_lock);
}

void dfi_maps_free(struct dfi_maps *maps)
{
    dfi_free(maps);
}

/* ---- the list -------------------------------------------------------------------------------- */

/* Under the lock. */
static long grow(struct dfi_files *files)
{
    struct dfi_maps *old = files->maps, *new;
    size_t room = old ? old->room * 2 : 16;

    if (old && old->count < old->room)
        return 0;
    new = dfi_alloc(sizeof(*new) + room * sizeof(new->list[0]));
    if (!new)
        return -ENOMEM;
    if (old)
        memcpy(new, old, sizeof(*old) + old->count * sizeof(old->list[0]));
    new->room = room;
    files->maps = new;
    dfi_free(old);
    return 0;
}

/* Takes over one use of the file. Under the lock. */
static long append(struct dfi_files *files, const struct dfi_mapping *mapping)
{
    long ret = grow(files);

    if (ret < 0)
        return ret;
    files->maps->list[files->maps->count++] = *mapping;
    dfi_process()->late += mapping->late;
    return 0;
}

long dfi_maps_add(struct dfi_files *files, const struct dfi_mapping *mapping)
{
    long ret;

    dfi_maps_lock(files);
    ret = append(files, mapping);
    dfi_maps_unlock(files);
    return ret;
}

/* Whoever writes back for a process that was killed sees it by the open file description. */
static void mark_stored(struct dfi_files *files, struct dfi_mapping *m)
{
    struct df_ofd *ofd = dfi_ofd(files, m->handle);

    m->stored = true;
    if (ofd)
        __atomic_fetch_or(&ofd->marks, DF_OFD_STORED, __ATOMIC_ACQ_REL);
}

void dfi_maps_store(struct dfi_files *files, uintptr_t start, uintptr_t end)
{
    dfi_maps_lock(files);
    for (size_t i = 0; files->maps && i < files->maps->count; i++) {
        struct dfi_mapping *m = &files->maps->list[i];

        if (m->start < end && m->end > start && dfi_maps_may_write(files, m))
            mark_stored(files, m);
    }
    dfi_maps_unlock(files);
}

/* The i-th mapping of the range, cut to it; false: there is none behind. Under the lock. */
static bool part(const struct dfi_files *files, size_t i, uintptr_t start, uintptr_t end,
                 struct dfi_mapping *out)
{
    const struct dfi_mapping *m = &files->maps->list[i];

    if (m->end <= start || m->start >= end)
        return false;
    *out = *m;
    if (out->start < start) {
        out->offset += (off_t)(start - out->start);
        out->start = start;
    }
    if (out->end > end)
        out->end = end;
    return true;
}

/* The i-th mapping ends at the address; what is behind becomes another. Under the lock. */
static long split(struct dfi_files *files, size_t i, uintptr_t at)
{
    struct dfi_mapping behind = files->maps->list[i];
    long ret;

    behind.offset += (off_t)(at - behind.start);
    behind.start = at;
    ret = append(files, &behind);
    if (ret < 0)
        return ret;
    dfi_fd_hold(files, behind.handle);
    files->maps->list[i].end = at;
    return 0;
}

long dfi_maps_split(struct dfi_files *files, uintptr_t at)
{
    for (size_t i = 0; i < files->maps->count; i++)
        if (files->maps->list[i].start < at && files->maps->list[i].end > at)
            return split(files, i, at);
    return 0;
}

/* Takes [start, end) out of the i-th mapping. Under the lock. True: the whole of it is gone. */
static bool take_out(struct dfi_files *files, size_t i, uintptr_t start, uintptr_t end)
{
    struct dfi_mapping *m;

    files->maps->brought_end = 0;
    if (files->maps->list[i].start < start && files->maps->list[i].end > end)
        split(files, i, end); /* without memory for two, what is behind is forgotten */
    m = &files->maps->list[i];
    if (m->start < start) {
        m->end = start;
        return false;
    }
    if (m->end > end) {
        m->offset += (off_t)(end - m->start);
        m->start = end;
        return false;
    }
    dfi_process()->late -= m->late;
    *m = files->maps->list[--files->maps->count];
    return true;
}

/* ---- writing back ---------------------------------------------------------------------------- */

static long write_range(struct df_trip *trip, uint64_t handle, const char *bytes, size_t size,
                        off_t offset)
{
    struct df_ofd *ofd = df_segment_ofd(trip->link->segment, handle);
    int flags = ofd ? (int)atomic_load(&ofd->flags) : 0;
    struct iovec iov = {(void *)bytes, size};
    ssize_t ret = df_trip_write(trip, handle, flags, DF_PLACED_THERE, &iov, 1, &offset);

    return ret < 0 ? ret : 0;
}

/* Writing back: what the data file has is compared with what the mount has. It is read by its
 * descriptor, for the program may have taken the right to read its memory away since it stored. */
struct back {
    struct df_trip trip;
    uint64_t handle;
    long data, lock;  /* descriptors; lock -1: it is held */
    char *now, *then; /* CHUNK bytes each */
};

static long back_begin(struct back *back, struct dfi_files *files, uint64_t handle, long data,
                       long lock)
{
    *back = (struct back){.trip = {.link = &files->link, .caller = dfi_caller(files)},
                          .handle = handle,
                          .data = data,
                          .lock = lock,
                          .now = dfi_alloc(2 * CHUNK)};
    if (!back->now)
        return -ENOMEM;
    back->then = back->now + CHUNK;
    return 0;
}

static void back_end(const struct back *back)
{
    dfi_free(back->now);
}

/* The runs of pages that differ. */
static long write_changed(struct back *back, size_t size, off_t offset)
{
    const char *now = back->now, *then = back->then;
    size_t from = 0;
    long ret = 0;

    while (from < size && ret == 0) {
        size_t end = from, step;

        while (end < size && (step = size - end < PAGE ? size - end : PAGE) > 0 &&
               memcmp(now + end, then + end, step) != 0)
            end += step;
        if (end > from)
            ret = write_range(&back->trip, back->handle, now + from, end - from,
                              offset + (off_t)from);
        from = end > from ? end : from + PAGE;
    }
    return ret;
}

/* A file does not grow by being mapped. > 0: so many bytes are the same now; 0: the end. */
static long compare_piece(struct back *back, size_t size, off_t at)
{
    struct df_trip trip = back->trip;
    long ret, got = dfi_kernel(__NR_pread64, back->data, back->now, size, at);
    struct iovec iov = {back->then, got > 0 ? (size_t)got : 0};

    got = got > 0 ? df_trip_read(&trip, back->handle, &iov, 1, at) : got;
    ret = got > 0 ? write_changed(back, (size_t)got, at) : 0;
    return ret < 0 ? ret : got;
}

/* Nobody changes the file by a call meanwhile: it would have its old bytes or size again. Others
 * come in between the pieces. */
static long back_piece(struct back *back, size_t size, off_t at)
{
    long got;

    dfi_shadow_lock(back->lock, LOCK_EX);
    got = compare_piece(back, size, at);
    dfi_shadow_lock(back->lock, LOCK_UN);
    return got;
}

/* By whole CHUNKs of the file: what is brought together is compared together. */
static long back_range(struct back *back, off_t at, off_t end)
{
    long got = 1;

    for (; got > 0 && at < end; at += got) {
        off_t next = at - at % (off_t)CHUNK + (off_t)CHUNK;

        got = back_piece(back, (size_t)((next < end ? next : end) - at), at);
    }
    return got < 0 ? got : 0;
}

/* Holes of the data file are what nobody has brought, or zeros in which nobody has stored:
 * databases map gigabytes of a file that may grow, and files of holes. */
static long back_data(struct back *back, off_t from, off_t end)
{
    off_t at = dfi_kernel(__NR_lseek, back->data, from, SEEK_DATA);
    long ret = 0;

    while (ret == 0 && at >= 0 && at < end) {
        off_t hole = dfi_kernel(__NR_lseek, back->data, at, SEEK_HOLE);

        ret = back_range(back, at, hole > at && hole < end ? hole : end);
        at = hole > at ? dfi_kernel(__NR_lseek, back->data, hole, SEEK_DATA) : end;
    }
    return ret;
}

static off_t chunk_at(uint64_t chunk)
{
    return (off_t)(chunk * DF_HELD_CHUNK);
}

/* What was stored since it was brought. The lock of the chunks is held. */
long dfi_maps_write_chunk(struct dfi_files *files, const struct dfi_mapping *m, long data,
                          uint64_t chunk)
{
    struct back back;
    long ret = back_begin(&back, files, m->handle, data, -1);

    if (ret == 0)
        ret = back_range(&back, chunk_at(chunk), chunk_at(chunk + 1));
    back_end(&back);
    return ret;
}

bool dfi_maps_may_write(const struct dfi_files *files, const struct dfi_mapping *m)
{
    const struct df_ofd *ofd = dfi_ofd(files, m->handle);

    return m->shared && ofd && (atomic_load(&ofd->flags) & O_ACCMODE) == O_RDWR;
}

/* Chunks that are not held were written back when they were given up, or never touched. */
static long write_held(struct dfi_files *files, const struct dfi_mapping *m, struct back *back)
{
    long ret = 0, one;

    for (uint32_t i = 0, count = dfi_held_count(files); i < count; i++) {
        const struct df_held *held = dfi_held_at(files, i);
        uint64_t chunk = held ? df_held_chunk(held->key) : 0;

        if (!held || !dfi_maps_shows(files, m, held->ino, held->key))
            continue;
        one = back_range(back, chunk_at(chunk), chunk_at(chunk + 1));
        ret = ret == 0 ? one : ret;
    }
    return ret;
}

/* A program that has used up its memory or its descriptors still loses nothing. */
static long write_by_server(struct dfi_files *files, const struct dfi_mapping *m)
{
    struct df_trip trip = {.link = &files->link, .caller = dfi_caller(files)};

    return df_trip_write_back(&trip, m->handle);
}

static long write_by(struct dfi_files *files, const struct dfi_mapping *m, long data, long lock)
{
    struct back back;
    long ret;

    if (data < 0 || lock < 0 || back_begin(&back, files, m->handle, data, lock) < 0)
        return write_by_server(files, m);
    if (m->late && !files->hold.untold)
        ret = write_held(files, m, &back);
    else
        ret = back_data(&back, m->offset, m->offset + (off_t)(m->end - m->start));
    back_end(&back);
    return ret;
}

static long write_mapping(struct dfi_files *files, const struct dfi_mapping *m)
{
    const struct df_ofd *ofd = dfi_ofd(files, m->handle);
    long ret, data, list = -1;

    if (!dfi_maps_may_have_stored(files, m))
        return 0;
    data = dfi_shadow_data(files, ofd, O_RDONLY);
    if (m->late)
        list = dfi_shadow_beside(files, ofd->mount, ofd->ino, DFI_SHADOW_CHUNKS, O_RDONLY);
    ret = write_by(files, m, data, m->late ? list : data);
    dfi_brief_close(list);
    dfi_brief_close(data);
    return ret;
}

/* What was written back may be kept by the server still. */
static long sync_mapping(struct dfi_files *files, const struct dfi_mapping *m)
{
    struct df_trip trip = {.link = &files->link, .caller = dfi_caller(files)};

    return m->shared ? df_trip_fsync(&trip, m->handle, true) : 0;
}

static bool shows_file(const struct dfi_files *files, const struct dfi_mapping *m,
                       const struct df_ofd *file)
{
    const struct df_ofd *ofd = dfi_ofd(files, m->handle);

    return ofd && dfi_same_file(ofd, file) != 0;
}

/* Of that file; NULL: of any. */
static long write_parts(struct dfi_files *files, uintptr_t start, uintptr_t end,
                        const struct df_ofd *file, bool sync)
{
    struct dfi_mapping m;
    long ret = 0, one;

    if (!dfi_maps_are_there(files))
        return 0;
    dfi_maps_lock(files);
    for (size_t i = 0; i < files->maps->count; i++)
        if (part(files, i, start, end, &m) && (!file || shows_file(files, &m, file))) {
            one = write_mapping(files, &m);
            if (one == 0 && sync)
                one = sync_mapping(files, &m);
            if (one < 0 && ret == 0)
                ret = one;
        }
    dfi_maps_unlock(files);
    return ret;
}

long dfi_maps_write_back(struct dfi_files *files, uintptr_t start, uintptr_t end, bool sync)
{
    return write_parts(files, start, end, NULL, sync);
}

/* Its memory before the rest, which hands over all that the server keeps. */
long dfi_maps_sync_file(struct dfi_files *files, int fd, int (*sync)(int fd))
{
    const struct df_ofd *file = dfi_ofd(files, dfi_file_of(files, fd - DF_FD_BASE));
    long written = file ? write_parts(files, 0, UINTPTR_MAX, file, false) : 0;
    long ret = sync(fd);

    return ret == 0 ? written : ret;
}

void dfi_maps_sync(struct dfi_files *files)
{
    dfi_maps_write_back(files, 0, UINTPTR_MAX, false);
}

/* Under the lock. */
static void forget(struct dfi_files *files, uintptr_t start, uintptr_t end)
{
    struct dfi_mapping m;

    for (size_t i = files->maps->count; i-- > 0;)
        if (part(files, i, start, end, &m) && take_out(files, i, start, end))
            dfi_fd_drop(files, m.handle, false);
    if (files->hold.count > 0)
        dfi_maps_let_go(files);
}

void dfi_maps_cut(struct dfi_files *files, uintptr_t start, uintptr_t end)
{
    if (!dfi_maps_are_there(files))
        return;
    dfi_maps_lock(files);
    forget(files, start, end);
    dfi_maps_unlock(files);
}

bool dfi_maps_any(struct dfi_files *files, uintptr_t start, uintptr_t end)
{
    struct dfi_mapping m;
    bool any = false;

    if (!dfi_maps_are_there(files))
        return false;
    dfi_maps_lock(files);
    for (size_t i = 0; !any && i < files->maps->count; i++)
        any = part(files, i, start, end, &m);
    dfi_maps_unlock(files);
    return any;
}

/* Under one lock: what is free may be mapped by another thread at once, which is not forgotten. */
long dfi_maps_replace(struct dfi_files *files, long nr, const unsigned long a[6], uintptr_t start,
                      uintptr_t end)
{
    long ret;

    dfi_maps_write_back(files, start, end, false);
    dfi_maps_lock(files);
    ret = dfi_kernel(nr, a[0], a[1], a[2], a[3], a[4], a[5]);
    if (ret >= 0 && files->maps)
        forget(files, start, end);
    if (ret >= 0 && !files->lender)
        dfi_copies_forget(files, start, end);
    dfi_maps_unlock(files);
    if (ret >= 0 && files->lender)
        dfi_copies_cut(files, start, end);
    return ret;
}

/* One mapping, or the last of several, has grown. Under the lock. */
static void move(struct dfi_mapping *m, uintptr_t from, size_t old, uintptr_t to, size_t size)
{
    uintptr_t end = m->end == from + old ? from + size : m->end;

    m->start += to - from;
    m->end = end + (to - from);
}

/* Nothing is written back: at the former place may lie what another thread has mapped by now. */
void dfi_maps_move(struct dfi_files *files, uintptr_t from, size_t old, uintptr_t to, size_t size)
{
    if (!dfi_maps_are_there(files))
        return;
    dfi_maps_lock(files);
    if (size < old)
        forget(files, from + size, from + old);
    old = size < old ? size : old;
    if (dfi_maps_split(files, from) < 0 || dfi_maps_split(files, from + old) < 0)
        forget(files, from, from + old);
    for (size_t i = 0; i < files->maps->count; i++) {
        struct dfi_mapping *m = &files->maps->list[i];

        if (m->start >= from && m->end <= from + old)
            move(m, from, old, to, size);
    }
    files->maps->brought_end = 0;
    dfi_maps_unlock(files);
}

/* Its memory is as accessible as what it was made of, where that has been brought. Under the lock.
 * Without memory for the list it is not known, as what is behind a hole. */
static void note_again(struct dfi_files *files, const struct dfi_mapping *m)
{
    if (m->late)
        dfi_kernel(__NR_mprotect, m->start, m->end - m->start, PROT_NONE);
    if (append(files, m) == 0)
        dfi_fd_hold(files, m->handle);
}

void dfi_maps_repeat(struct dfi_files *files, uintptr_t from, size_t old, uintptr_t to, size_t size)
{
    uintptr_t end = from + (old > 0 ? old : 1);
    struct dfi_mapping m;

    if (!dfi_maps_are_there(files))
        return;
    dfi_maps_lock(files);
    for (size_t i = 0, count = files->maps->count; i < count; i++)
        if (part(files, i, from, end, &m)) {
            m.end = old > 0 ? m.end - from + to : to + size;
            m.start = m.start - from + to;
            note_again(files, &m);
        }
    dfi_maps_unlock(files);
}

/* The mapping of which the kernel takes the file: that of the first page. Under the lock. */
static bool find_first(const struct dfi_files *files, uintptr_t start, uintptr_t end,
                       struct dfi_mapping *out)
{
    for (size_t i = 0; i < files->maps->count; i++)
        if (part(files, i, start, start + 1, out)) {
            out->end = end;
            return true;
        }
    return false;
}

/* The range shows the file from that offset on; used once more before it is used once less. Without
 * memory for the list it is not known. Under the lock. */
static void note_turned(struct dfi_files *files, const struct dfi_mapping *turned)
{
    dfi_fd_hold(files, turned->handle);
    forget(files, turned->start, turned->end);
    if (append(files, turned) < 0)
        dfi_fd_drop(files, turned->handle, false);
}

long dfi_maps_turn(struct dfi_files *files, const unsigned long a[6], uintptr_t start,
                   uintptr_t end)
{
    struct dfi_mapping m;
    long ret;

    dfi_maps_write_back(files, start, end, false);
    dfi_maps_unready(files, start, end);
    dfi_maps_lock(files);
    ret = dfi_kernel(__NR_remap_file_pages, a[0], a[1], a[2], a[3], a[4]);
    if (ret == 0 && find_first(files, start, end, &m)) {
        m.offset = (off_t)(a[3] * PAGE);
        note_turned(files, &m);
    } else if (ret == 0) {
        forget(files, start, end);
    }
    dfi_maps_unlock(files);
    return ret;
}
