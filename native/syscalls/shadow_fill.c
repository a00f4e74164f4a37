/*
 * shadow_fill.c - bringing bytes of a file of a mount into its data file.
 */
#include "syscalls/shadow_fill.h"

#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

/* Bytes read at a time; a piece of zeros stays a hole of the data file. */
#define PIECE     ((size_t)256 << 10)

#define KEPT_FREE ((uint64_t)1 << 20) /* bytes that placeholders and names need: files.h */

bool dfi_fill_has_room(long data, uint64_t size)
{
    struct statfs st;

    return dfi_kernel(__NR_fstatfs, data, &st) < 0 || st.f_blocks == 0 ||
           st.f_bavail * (uint64_t)st.f_bsize >= size + KEPT_FREE;
}

static bool is_zero(const char *bytes, size_t size)
{
    return bytes[0] == 0 && memcmp(bytes, bytes + 1, size - 1) == 0;
}

static long fill_piece(struct dfi_filling *f, off_t at, size_t size, bool zeros)
{
    struct iovec iov = {f->buffer, size};
    ssize_t got = df_trip_read(&f->trip, f->handle, &iov, 1, at);
    long ret;

    if (got <= 0 || (!zeros && is_zero(f->buffer, (size_t)got)))
        return got;
    ret = dfi_kernel(__NR_pwrite64, f->data, f->buffer, got, at);
    return ret < 0 ? ret : ret < got ? -ENOSPC : got;
}

static long fill_pieces(struct dfi_filling *f, off_t at, off_t end, bool zeros)
{
    long got = 1;

    while (got > 0 && at < end) {
        got = fill_piece(f, at, (off_t)PIECE < end - at ? PIECE : (size_t)(end - at), zeros);
        at += got > 0 ? got : 0;
    }
    return got < 0 ? got : 0;
}

long dfi_fill_range(struct dfi_filling *f, off_t at, off_t end)
{
    return fill_pieces(f, at, end, false);
}

long dfi_fill_again(struct dfi_filling *f, off_t at, off_t end)
{
    return fill_pieces(f, at, end, true);
}

/* Where data begins, at `from` or behind it; a file system that goes back would never come to an
 * end. -errno: -ENXIO where there is none. */
static off_t seek_data(struct dfi_filling *f, off_t from)
{
    off_t at = df_trip_lseek(&f->trip, f->handle, from, SEEK_DATA);

    return at >= 0 && at < from ? from : at;
}

/* One that knows no holes has one piece of data. */
long dfi_fill_all(struct dfi_filling *f, off_t size)
{
    off_t at = seek_data(f, 0);
    long ret = 0;

    while (ret == 0 && at >= 0 && at < size) {
        off_t hole = df_trip_lseek(&f->trip, f->handle, at, SEEK_HOLE);
        off_t end = hole > at && hole < size ? hole : size;

        ret = dfi_fill_range(f, at, end);
        at = end < size ? seek_data(f, end) : size;
    }
    return ret < 0 ? ret : at < 0 && at != -ENXIO ? at : 0;
}

long dfi_fill_begin(struct dfi_filling *f, struct dfi_files *files, uint64_t handle, long data)
{
    *f = (struct dfi_filling){
        {.link = &files->link, .caller = dfi_caller(files)}, handle, data, NULL};
    f->buffer = dfi_alloc(PIECE);
    return f->buffer ? 0 : -ENOMEM;
}

void dfi_fill_end(struct dfi_filling *f)
{
    dfi_free(f->buffer);
}
