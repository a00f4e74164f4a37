/*
 * shadow_map.c - files that are mapped shared: their bytes are those of their shadow file.
 *
 * Once some program of the job has mapped a file shared, and as long as anybody has it open, every
 * open file description of it is marked: reads come from the shadow file, writes and changes of
 * size go to both. So all programs see what others store in memory, at once.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "intercept/shadow.h"

/* ---- marks ----------------------------------------------------------------------------------- */

static void mark(struct df_ofd *ofd)
{
    __atomic_fetch_or(&ofd->door[0], DFI_SHADOW_MAPPED, __ATOMIC_ACQ_REL);
}

static bool same_file(const struct df_ofd *a, const struct df_ofd *b)
{
    return atomic_load(&a->handle) != 0 && a->mount == b->mount && a->ino == b->ino;
}

/* Marks all that are open of the file. Whoever opens it from now on sees shared->mapped, and looks.
 */
static void mark_all(struct dfi_files *files, struct df_ofd *ofd)
{
    struct df_ofd *all = df_segment_ofds(files->link.segment);
    uint32_t top;

    mark(ofd);
    atomic_fetch_add(&files->shared->mapped, 1);
    top = atomic_load(&files->shared->top);
    for (uint32_t i = 0; i < top && i < DF_OFD_COUNT; i++)
        if (same_file(&all[i], ofd))
            mark(&all[i]);
}

void dfi_shadow_opened(struct dfi_files *files, uint64_t handle)
{
    struct df_ofd *all = df_segment_ofds(files->link.segment), *ofd = dfi_ofd(files, handle);
    uint32_t top;

    if (!ofd)
        return;
    __atomic_store_n(&ofd->door[0], 0, __ATOMIC_RELEASE);
    if (atomic_load(&files->shared->mapped) == 0)
        return;
    top = atomic_load(&files->shared->top);
    for (uint32_t i = 0; i < top && i < DF_OFD_COUNT; i++)
        if (&all[i] != ofd && same_file(&all[i], ofd) &&
            __atomic_load_n(&all[i].door[0], __ATOMIC_ACQUIRE) & DFI_SHADOW_MAPPED) {
            mark(ofd);
            return;
        }
}

/* ---- the first mapping ----------------------------------------------------------------------- */

/* Bytes read at a time; a piece of zeros stays a hole of the shadow file. */
#define PIECE ((size_t)256 << 10)

static bool is_zero(const char *bytes, size_t size)
{
    return bytes[0] == 0 && memcmp(bytes, bytes + 1, size - 1) == 0;
}

static long fill_piece(struct df_trip *trip, uint64_t handle, int shadow, char *buffer, off_t at,
                       size_t size)
{
    struct iovec iov = {buffer, size};
    ssize_t got = df_trip_read(trip, handle, &iov, 1, at);
    long ret;

    if (got <= 0 || is_zero(buffer, (size_t)got))
        return got;
    ret = dfi_kernel(__NR_pwrite64, shadow, buffer, got, at);
    return ret < 0 ? ret : got;
}

/* What the file system says is data. One that knows no holes has one piece of it. */
static long fill(struct df_trip *trip, uint64_t handle, int shadow, char *buffer, off_t size)
{
    off_t at = df_trip_lseek(trip, handle, 0, SEEK_DATA);
    long ret = 1;

    while (ret > 0 && at >= 0 && at < size) {
        off_t hole = df_trip_lseek(trip, handle, at, SEEK_HOLE);
        off_t end = hole > at && hole < size ? hole : size;

        while (ret > 0 && at < end) {
            ret = fill_piece(trip, handle, shadow, buffer, at,
                             (off_t)PIECE < end - at ? PIECE : (size_t)(end - at));
            at += ret > 0 ? ret : 0;
        }
        if (ret > 0)
            at = end < size ? df_trip_lseek(trip, handle, end, SEEK_DATA) : size;
    }
    return ret < 0 ? ret : at < 0 && at != -ENXIO ? at : 0;
}

/* Under the lock of the job. A shadow directory without room is no memory. */
static long populate(struct dfi_files *files, uint64_t handle, int shadow)
{
    struct df_trip trip = {.link = &files->link, .caller = &files->caller};
    struct df_trip_where where = {.base = handle, .name = ""};
    struct stat st;
    long ret = df_trip_getattr(&trip, &where, &st);
    char *buffer;

    if (ret < 0)
        return ret;
    ret = dfi_kernel(__NR_ftruncate, shadow, 0);
    if (ret == 0)
        ret = dfi_kernel(__NR_ftruncate, shadow, st.st_size);
    if (ret < 0 || st.st_size == 0)
        return ret;
    if (!(buffer = dfi_alloc(PIECE)))
        return -ENOMEM;
    ret = fill(&trip, handle, shadow, buffer, st.st_size);
    dfi_free(buffer);
    if (ret < 0)
        dfi_kernel(__NR_ftruncate, shadow, 0);
    return ret == -ENOSPC ? -ENOMEM : ret;
}

/* The placeholder, if it can be written to; else a descriptor that is closed again, with which the
 * process loses its record locks on this file: fcntl(2). */
static long populate_by(struct dfi_files *files, uint64_t handle, const struct df_ofd *ofd, int fd)
{
    char name[DFI_SHADOW_NAME_MAX];
    long shadow, ret;

    if ((atomic_load(&ofd->flags) & O_ACCMODE) == O_RDWR)
        return populate(files, handle, fd);
    dfi_shadow_name(files, 'f', (uint32_t)ofd->mount, ofd->ino, name);
    shadow = dfi_kernel(__NR_open, name, O_RDWR | O_CLOEXEC, 0);
    if (shadow < 0)
        return shadow;
    ret = populate(files, handle, (int)shadow);
    dfi_kernel(__NR_close, shadow);
    return ret;
}

static long map_under_lock(struct dfi_files *files, uint64_t handle, struct df_ofd *ofd, int fd)
{
    long ret;

    if (__atomic_load_n(&ofd->door[0], __ATOMIC_ACQUIRE) & DFI_SHADOW_MAPPED)
        return 0;
    ret = populate_by(files, handle, ofd, fd);
    if (ret == 0)
        mark_all(files, ofd);
    return ret;
}

long dfi_shadow_map(struct dfi_files *files, uint64_t handle, int fd)
{
    struct df_ofd *ofd = dfi_ofd(files, handle);
    char path[DFI_SHADOW_NAME_MAX];
    long lock, ret;

    if (!ofd)
        return -EBADF;
    strcpy(mempcpy(path, files->shadow, files->shadow_len), "/shared");
    lock = dfi_kernel(__NR_open, path, O_RDONLY | O_CLOEXEC, 0);
    if (lock < 0)
        return lock;
    ret = dfi_kernel(__NR_flock, lock, LOCK_EX);
    if (ret == 0)
        ret = map_under_lock(files, handle, ofd, fd);
    dfi_kernel(__NR_close, lock);
    return ret;
}

/* ---- data -------------------------------------------------------------------------------------
 */

ssize_t dfi_shadow_read(struct df_file *file, const struct iovec *iov, int iovcnt, off_t offset)
{
    return dfi_kernel(__NR_preadv, file->host[DFI_HOST_FD], iov, iovcnt, offset, 0);
}

/* By the placeholder itself: closing another descriptor of the shadow file would take the locks of
 * the process with it, fcntl(2). */
void dfi_shadow_write(struct df_file *file, const struct iovec *iov, int iovcnt, off_t offset,
                      ssize_t size)
{
    for (int i = 0; i < iovcnt && size > 0; i++) {
        size_t run = (ssize_t)iov[i].iov_len < size ? iov[i].iov_len : (size_t)size;

        dfi_kernel(__NR_pwrite64, file->host[DFI_HOST_FD], iov[i].iov_base, run, offset);
        offset += (off_t)run;
        size -= (ssize_t)run;
    }
}

void dfi_shadow_resize(struct df_file *file, off_t size, bool shrink)
{
    struct stat st;

    if (dfi_kernel(__NR_fstat, file->host[DFI_HOST_FD], &st) == 0 && (shrink || size > st.st_size))
        dfi_kernel(__NR_ftruncate, file->host[DFI_HOST_FD], size);
}
