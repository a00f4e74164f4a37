/*
 * shadow_fill.c - bringing bytes of a file of a mount into its data file.
 */
#include "shadows/shadow_fill.h"

#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "channel/sys.h"

#define LARGE     ((off_t)16 << 20)   /* bytes */
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

/* What is asked for at a time, where it goes, and what comes behind it. */
struct piece {
    struct dfi_filling *f;
    off_t at, end;
    size_t size;
    bool zeros;                 /* are written, too */
    struct df_trip_early asked; /* slot NULL: it has not been asked for */
};

static struct piece piece_at(const struct piece *of, off_t at)
{
    struct piece p = *of;

    p.at = at;
    p.size = (off_t)DFI_FILL_PIECE < p.end - at ? DFI_FILL_PIECE : (size_t)(p.end - at);
    p.asked.slot = NULL;
    if (p.size > 0)
        df_trip_read_ask(&p.f->trip, p.f->handle, p.size, at, &p.asked);
    return p;
}

static char *place(const struct piece *p)
{
    return p->f->memory + (p->at - p->f->from);
}

/* How many were written, which are all; or -errno. */
static ssize_t write_bytes(const struct piece *p, const void *bytes, size_t size)
{
    long ret;

    if (!p->zeros && is_zero(bytes, size))
        return (ssize_t)size;
    if (p->f->data < 0) {
        ret = df_channel_user_copy(place(p), bytes, size);
        return ret < 0 ? ret : (ssize_t)size;
    }
    ret = dfi_kernel(__NR_pwrite64, p->f->data, bytes, size, p->at);
    return ret < 0 ? ret : (size_t)ret < size ? -ENOSPC : ret;
}

/* The server has the next piece to read while these are written: one at a time, for with two it
 * would use a thread for each, and so all processors. */
static ssize_t take_bytes(void *with, const void *bytes, size_t size)
{
    struct piece *p = with, next = piece_at(p, p->at + (off_t)size);
    ssize_t ret = write_bytes(p, bytes, size);

    *p = next;
    return ret;
}

/* It had been asked for, or has to be now. *p is the next one then. What has come; 0: the end. */
static ssize_t fill_piece(struct piece *p)
{
    struct dfi_filling *f = p->f;
    struct iovec iov = {f->data < 0 ? place(p) : f->buffer, p->size};
    const struct df_trip_early asked = p->asked;
    ssize_t got;

    p->asked.slot = NULL;
    got = asked.slot ? df_trip_read_use(&f->trip, &asked, take_bytes, p) : 0;
    if (got != 0)
        return got;
    got = df_trip_read(&f->trip, f->handle, &iov, 1, p->at);
    if (got > 0 && f->data >= 0)
        got = write_bytes(p, f->buffer, (size_t)got);
    if (got > 0)
        *p = piece_at(p, p->at + got);
    return got;
}

/* How far it came; or -errno. */
static off_t fill_pieces(struct dfi_filling *f, off_t at, off_t end, bool zeros)
{
    const struct piece all = {.f = f, .end = end, .zeros = zeros};
    struct piece p = piece_at(&all, at);
    ssize_t got = 1;

    while (got > 0 && p.size > 0)
        got = fill_piece(&p);
    if (got < 0 && p.asked.slot) /* the next one */
        df_trip_read_take(&f->trip, &p.asked, NULL);
    return got < 0 ? got : p.at;
}

long dfi_fill_range(struct dfi_filling *f, off_t at, off_t end)
{
    off_t ret = fill_pieces(f, at, end, false);

    return ret < 0 ? ret : 0;
}

long dfi_fill_again(struct dfi_filling *f, off_t at, off_t end)
{
    off_t ret = fill_pieces(f, at, end, true);

    return ret < 0 ? ret : 0;
}

/* Where data begins, at `from` or behind it; -ENXIO: there is none. From a file system that goes
 * back, which would never come to an end, or that cannot tell, all is read. */
static off_t seek_data(struct dfi_filling *f, off_t from)
{
    off_t at = df_trip_lseek(&f->trip, f->handle, from, SEEK_DATA);

    return at >= from || at == -ENXIO ? at : from;
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
    return ret < 0 ? ret : 0;
}

long dfi_fill_begin(struct dfi_filling *f, struct dfi_files *files, uint64_t handle, long data)
{
    *f = (struct dfi_filling){.trip = dfi_trip_of(files), .handle = handle, .data = data};
    f->buffer = dfi_alloc(DFI_FILL_PIECE);
    return f->buffer ? 0 : -ENOMEM;
}

void dfi_fill_end(struct dfi_filling *f)
{
    dfi_free(f->buffer);
}

long dfi_fill_memory(struct dfi_files *files, uint64_t handle, char *memory, off_t at, off_t end)
{
    struct dfi_filling f = {
        .trip = dfi_trip_of(files), .handle = handle, .data = -1, .memory = memory, .from = at};
    off_t ret = fill_pieces(&f, at, end, false);

    return ret < 0 ? ret : ret - at;
}

/* Where holes are is asked of a large file only: of others it costs more than reading them. */
long dfi_fill_file(struct dfi_files *files, uint64_t handle, long fd, off_t size)
{
    struct dfi_filling filling;
    long ret;

    if (size > files->caller.size_limit) /* of the copy, too: it would be SIGXFSZ */
        return -EFBIG;
    ret = dfi_kernel(__NR_ftruncate, fd, size);
    if (ret == 0)
        ret = dfi_fill_begin(&filling, files, handle, fd);
    if (ret < 0)
        return ret;
    ret = size > LARGE ? dfi_fill_all(&filling, size) : dfi_fill_range(&filling, 0, size);
    dfi_fill_end(&filling);
    return ret;
}
