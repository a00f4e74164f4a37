/*
 * shadow_map.c - files that are mapped: their bytes are those of a data file in the shadow
 * directory.
 *
 * Once some program of the job has mapped a file, and as long as anybody has it open, every open
 * file description of it is marked: reads come from the data file, writes and changes of size go to
 * both. So all programs see what others store in memory, at once.
 *
 * A small file is copied as a whole when it is first mapped. A large one is copied by chunks, each
 * when it is first needed (dfi_shadow_ready): a file beside its data has a byte for each chunk,
 * under the lock (flock(2)) of that file. What is not there nobody has seen, so nobody can have
 * changed it in memory.
 *
 * The data file is another than the placeholder, so it may be opened and closed at will: closing a
 * descriptor of the placeholder would take the record locks of the process with it, fcntl(2).
 */
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "intercept/shadow.h"

/* ---- marks ----------------------------------------------------------------------------------- */

static void mark(struct df_ofd *ofd, uint64_t marks)
{
    __atomic_fetch_or(&ofd->door[0], marks, __ATOMIC_ACQ_REL);
}

static uint64_t marks_of(const struct df_ofd *ofd)
{
    return __atomic_load_n(&ofd->door[0], __ATOMIC_ACQUIRE);
}

static bool same_file(const struct df_ofd *a, const struct df_ofd *b)
{
    return atomic_load(&a->handle) != 0 && a->mount == b->mount && a->ino == b->ino;
}

/* Marks all that are open of the file. Whoever opens it from now on sees shared->mapped, and looks.
 */
static void mark_all(struct dfi_files *files, struct df_ofd *ofd, uint64_t marks)
{
    struct df_ofd *all = df_segment_ofds(files->link.segment);
    uint32_t top;

    mark(ofd, marks);
    atomic_fetch_add(&files->shared->mapped, 1);
    top = atomic_load(&files->shared->top);
    for (uint32_t i = 0; i < top && i < DF_OFD_COUNT; i++)
        if (same_file(&all[i], ofd))
            mark(&all[i], marks);
}

static void take_marks(struct dfi_files *files, struct df_ofd *ofd)
{
    struct df_ofd *all = df_segment_ofds(files->link.segment);
    uint32_t top;

    if (atomic_load(&files->shared->mapped) == 0)
        return;
    top = atomic_load(&files->shared->top);
    for (uint32_t i = 0; i < top && i < DF_OFD_COUNT; i++)
        if (&all[i] != ofd && same_file(&all[i], ofd) && marks_of(&all[i]) & DFI_SHADOW_MAPPED) {
            mark(ofd, marks_of(&all[i]));
            return;
        }
}

void dfi_shadow_opened(struct dfi_files *files, uint64_t handle, bool emptied)
{
    struct df_ofd *ofd = dfi_ofd(files, handle);
    long data;

    if (!ofd)
        return;
    __atomic_store_n(&ofd->door[0], 0, __ATOMIC_RELEASE);
    take_marks(files, ofd);
    if (!emptied || !(marks_of(ofd) & DFI_SHADOW_MAPPED))
        return;
    data = dfi_shadow_data(files, ofd, O_RDWR | O_TRUNC);
    if (data >= 0)
        dfi_kernel(__NR_close, data);
}

/* ---- the data file --------------------------------------------------------------------------- */

#define DATA   'd'
#define CHUNKS 'b' /* a byte for each chunk of the data: not 0 when it is there */

static long open_beside(const struct dfi_files *files, const struct df_ofd *ofd, char letter,
                        int flags)
{
    char name[DFI_SHADOW_NAME_MAX];
    long fd;

    dfi_shadow_name(files, letter, (uint32_t)ofd->mount, ofd->ino, name);
    fd = dfi_kernel(__NR_open, name, flags | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (fd >= 0 && flags & O_CREAT)
        dfi_kernel(__NR_fchmod, fd, 0666); /* programs under other ids of the job */
    return fd;
}

long dfi_shadow_data(const struct dfi_files *files, const struct df_ofd *ofd, int flags)
{
    return open_beside(files, ofd, DATA, flags);
}

/* ---- filling --------------------------------------------------------------------------------- */

/* Bytes read at a time; a piece of zeros stays a hole of the data file. */
#define PIECE ((size_t)256 << 10)

struct filling {
    struct df_trip trip;
    uint64_t handle;
    long data;    /* descriptor */
    char *buffer; /* [PIECE] */
};

#define KEPT_FREE ((uint64_t)1 << 20) /* bytes that placeholders and names need: files.h */

/* A tmpfs that is full ends programs that touch what is not there yet: ours too. */
static bool has_room(long data, uint64_t size)
{
    struct statfs st;

    return dfi_kernel(__NR_fstatfs, data, &st) < 0 || st.f_blocks == 0 ||
           st.f_bavail * (uint64_t)st.f_bsize >= size + KEPT_FREE;
}

static bool is_zero(const char *bytes, size_t size)
{
    return bytes[0] == 0 && memcmp(bytes, bytes + 1, size - 1) == 0;
}

static long fill_piece(struct filling *f, off_t at, size_t size)
{
    struct iovec iov = {f->buffer, size};
    ssize_t got = df_trip_read(&f->trip, f->handle, &iov, 1, at);
    long ret;

    if (got <= 0 || is_zero(f->buffer, (size_t)got))
        return got;
    ret = dfi_kernel(__NR_pwrite64, f->data, f->buffer, got, at);
    return ret < 0 ? ret : got;
}

/* To `end`, or to the end of the file. 0 or -errno. */
static long fill_range(struct filling *f, off_t at, off_t end)
{
    long got = 1;

    while (got > 0 && at < end) {
        got = fill_piece(f, at, (off_t)PIECE < end - at ? PIECE : (size_t)(end - at));
        at += got > 0 ? got : 0;
    }
    return got < 0 ? got : 0;
}

/* What the file system says is data. One that knows no holes has one piece of it. */
static long fill_all(struct filling *f, off_t size)
{
    off_t at = df_trip_lseek(&f->trip, f->handle, 0, SEEK_DATA);
    long ret = 0;

    while (ret == 0 && at >= 0 && at < size) {
        off_t hole = df_trip_lseek(&f->trip, f->handle, at, SEEK_HOLE);
        off_t end = hole > at && hole < size ? hole : size;

        ret = fill_range(f, at, end);
        at = end < size ? df_trip_lseek(&f->trip, f->handle, end, SEEK_DATA) : size;
    }
    return ret < 0 ? ret : at < 0 && at != -ENXIO ? at : 0;
}

static long begin_filling(struct filling *f, struct dfi_files *files, uint64_t handle, long data)
{
    *f = (struct filling){{.link = &files->link, .caller = &files->caller}, handle, data, NULL};
    f->buffer = dfi_alloc(PIECE);
    return f->buffer ? 0 : -ENOMEM;
}

/* ---- by chunks ------------------------------------------------------------------------------- */

static long fill_chunk(struct filling *f, long chunks, uint64_t chunk)
{
    char there = 0;
    long ret = dfi_kernel(__NR_pread64, chunks, &there, 1, chunk);

    if (ret < 0 || there)
        return ret < 0 ? ret : 0;
    if (!has_room(f->data, DFI_SHADOW_CHUNK))
        return -ENOSPC;
    ret = fill_range(f, (off_t)(chunk * DFI_SHADOW_CHUNK), (off_t)((chunk + 1) * DFI_SHADOW_CHUNK));
    there = 1;
    if (ret == 0)
        ret = dfi_kernel(__NR_pwrite64, chunks, &there, 1, chunk);
    return ret < 0 ? ret : 0;
}

/* Under the lock of the chunks. */
static long fill_chunks(struct dfi_files *files, uint64_t handle, const struct df_ofd *ofd,
                        long chunks, uint64_t first, uint64_t last)
{
    long ret, data = dfi_shadow_data(files, ofd, O_RDWR);
    struct filling f;

    if (data < 0)
        return data;
    ret = begin_filling(&f, files, handle, data);
    for (uint64_t i = first; i <= last && ret == 0; i++)
        ret = fill_chunk(&f, chunks, i);
    dfi_free(f.buffer);
    dfi_kernel(__NR_close, data);
    return ret;
}

long dfi_shadow_ready(struct dfi_files *files, uint64_t handle, off_t offset, size_t size)
{
    const struct df_ofd *ofd = dfi_ofd(files, handle);
    long chunks, ret;

    if (!ofd)
        return -EBADF;
    if (!(marks_of(ofd) & DFI_SHADOW_CHUNKED) || size == 0)
        return 0;
    chunks = open_beside(files, ofd, CHUNKS, O_RDWR);
    if (chunks < 0)
        return chunks;
    ret = dfi_kernel(__NR_flock, chunks, LOCK_EX);
    if (ret == 0)
        ret = fill_chunks(files, handle, ofd, chunks, (uint64_t)offset / DFI_SHADOW_CHUNK,
                          ((uint64_t)offset + size - 1) / DFI_SHADOW_CHUNK);
    dfi_kernel(__NR_close, chunks);
    return ret;
}

/* ---- the first mapping ----------------------------------------------------------------------- */

/* Empty, and as long as the file. A shadow directory without room is no memory. */
static long make_beside(struct dfi_files *files, const struct df_ofd *ofd, char letter, off_t size)
{
    long ret, fd = open_beside(files, ofd, letter, O_RDWR | O_CREAT | O_TRUNC);

    if (fd < 0)
        return fd;
    ret = dfi_kernel(__NR_ftruncate, fd, size);
    if (ret == 0)
        return fd;
    dfi_kernel(__NR_close, fd);
    return ret;
}

static long copy_whole(struct dfi_files *files, uint64_t handle, long data, off_t size)
{
    struct filling f;
    long ret = begin_filling(&f, files, handle, data);

    if (ret == 0 && !has_room(data, (uint64_t)size))
        ret = -ENOSPC;
    if (ret == 0)
        ret = fill_all(&f, size);
    dfi_free(f.buffer);
    if (ret < 0)
        dfi_kernel(__NR_ftruncate, data, 0);
    return ret;
}

/* Under the lock of the job. *marks: how the bytes are there. */
static long populate(struct dfi_files *files, uint64_t handle, const struct df_ofd *ofd,
                     uint64_t *marks)
{
    struct df_trip trip = {.link = &files->link, .caller = &files->caller};
    struct df_trip_where where = {.base = handle, .name = ""};
    struct stat st;
    long ret = df_trip_getattr(&trip, &where, &st), data, chunks;

    if (ret < 0)
        return ret;
    data = make_beside(files, ofd, DATA, st.st_size);
    if (data < 0)
        return data;
    *marks = DFI_SHADOW_MAPPED;
    if (st.st_size > DFI_SHADOW_WHOLE) {
        *marks |= DFI_SHADOW_CHUNKED;
        chunks = make_beside(files, ofd, CHUNKS, st.st_size / DFI_SHADOW_CHUNK + 1);
        ret = chunks < 0 ? chunks : dfi_kernel(__NR_close, chunks);
    } else if (st.st_size > 0) {
        ret = copy_whole(files, handle, data, st.st_size);
    }
    dfi_kernel(__NR_close, data);
    return ret == -ENOSPC ? -ENOMEM : ret;
}

static long map_under_lock(struct dfi_files *files, uint64_t handle, struct df_ofd *ofd)
{
    uint64_t marks;
    long ret;

    if (marks_of(ofd) & DFI_SHADOW_MAPPED)
        return 0;
    ret = populate(files, handle, ofd, &marks);
    if (ret == 0)
        mark_all(files, ofd, marks);
    return ret;
}

long dfi_shadow_map(struct dfi_files *files, uint64_t handle)
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
        ret = map_under_lock(files, handle, ofd);
    dfi_kernel(__NR_close, lock);
    return ret;
}

/* ---- data ------------------------------------------------------------------------------------ */

static long open_of(struct df_file *file, int flags)
{
    return dfi_shadow_data(dfi_record_now()->files, (const struct df_ofd *)file->host[DFI_HOST_OFD],
                           flags);
}

static size_t size_of(const struct iovec *iov, int iovcnt)
{
    size_t size = 0;

    for (int i = 0; i < iovcnt; i++)
        size += iov[i].iov_len;
    return size;
}

static long ready(struct df_file *file, off_t offset, size_t size)
{
    return dfi_shadow_ready(dfi_record_now()->files, file->host[DFI_HOST_HANDLE], offset, size);
}

ssize_t dfi_shadow_read(struct df_file *file, const struct iovec *iov, int iovcnt, off_t offset)
{
    long ret = ready(file, offset, size_of(iov, iovcnt));
    long data = ret < 0 ? -EIO : open_of(file, O_RDONLY);

    if (data < 0)
        return -EIO;
    ret = dfi_kernel(__NR_preadv, data, iov, iovcnt, offset, 0);
    dfi_kernel(__NR_close, data);
    return ret;
}

/* A chunk that cannot be had is not mapped: then the mount alone has it. */
void dfi_shadow_write(struct df_file *file, const struct iovec *iov, int iovcnt, off_t offset,
                      ssize_t size)
{
    size_t all = size_of(iov, iovcnt);
    long data;

    if (ready(file, offset, size < (ssize_t)all ? (size_t)size : all) < 0)
        return;
    data = open_of(file, O_RDWR);
    for (int i = 0; data >= 0 && i < iovcnt && size > 0; i++) {
        size_t run = (ssize_t)iov[i].iov_len < size ? iov[i].iov_len : (size_t)size;

        dfi_kernel(__NR_pwrite64, data, iov[i].iov_base, run, offset);
        offset += (off_t)run;
        size -= (ssize_t)run;
    }
    if (data >= 0)
        dfi_kernel(__NR_close, data);
}

void dfi_shadow_resize(struct df_file *file, off_t size, bool shrink)
{
    long data = open_of(file, O_RDWR);
    struct stat st;

    if (data < 0)
        return;
    if (dfi_kernel(__NR_fstat, data, &st) == 0 && (shrink || size > st.st_size))
        dfi_kernel(__NR_ftruncate, data, size);
    dfi_kernel(__NR_close, data);
}

void dfi_shadow_allocate(struct df_file *file, int mode, off_t offset, off_t length)
{
    long data = ready(file, offset, (size_t)length) < 0 ? -EIO : open_of(file, O_RDWR);

    if (data < 0)
        return;
    dfi_kernel(__NR_fallocate, data, mode, offset, length);
    dfi_kernel(__NR_close, data);
}
