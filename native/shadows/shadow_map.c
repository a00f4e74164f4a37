/*
 * shadow_map.c - files that are mapped: their bytes are those of a data file in the shadow
 * directory.
 *
 * Once some program of the job has mapped a file, and as long as anybody has it open, every open
 * file description of it is marked (of one that is opened later the server sees to it): reads come
 * from the data file, writes and changes of size go to both. So all programs see what others store
 * in memory, at once.
 *
 * A small file is copied as a whole when it is first mapped. A large one is copied by chunks, each
 * when it is touched, and given up again where memory is short (shadow_chunks.c).
 *
 * The data file is another than the placeholder, so it may be opened and closed at will: closing a
 * descriptor of the placeholder would take the record locks of the process with it, fcntl(2).
 */
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "intercept/brief.h"
#include "shadows/shadow_chunks.h"
#include "shadows/shadow_fill.h"
#include "shadows/shadow_kept.h"

/* ---- marks ----------------------------------------------------------------------------------- */

static uint64_t marks_of(const struct df_ofd *ofd)
{
    return __atomic_load_n(&ofd->marks, __ATOMIC_ACQUIRE);
}

struct df_ofd *dfi_shadow_next(const struct dfi_files *files, const struct df_ofd *of,
                               struct dfi_shadow_look *look)
{
    struct df_ofd *all = df_segment_ofds(files->link.segment);
    uint32_t top = atomic_load(&files->link.segment->files_used);

    while (look->next < top && look->next < DF_OFD_COUNT) {
        struct df_ofd *at = &all[look->next++];

        look->handle = dfi_same_file(at, of);
        if (look->handle != 0)
            return at;
    }
    return NULL;
}

/* True if some were not marked yet. */
static bool mark_more(struct dfi_files *files, struct df_ofd *ofd, uint64_t marks)
{
    struct dfi_shadow_look look = {0};
    bool more = false;
    struct df_ofd *at;

    while ((at = dfi_shadow_next(files, ofd, &look)))
        more |= (df_ofd_mark(at, look.handle, marks, 0) & marks) != marks;
    return more;
}

/* Marks all that are open of the file. One that is opened meanwhile gets the marks of another one,
 * behind which this may not have come yet. So it is over when there was nothing more to mark. */
static void mark_all(struct dfi_files *files, struct df_ofd *ofd, uint64_t marks)
{
    __atomic_fetch_or(&ofd->marks, marks, __ATOMIC_SEQ_CST);
    atomic_fetch_add(&files->shared->mapped, 1);
    while (mark_more(files, ofd, marks))
        ;
}

/* One that is opened meanwhile may keep it: then each of its writes waits once more. */
static void unmark_all(struct dfi_files *files, struct df_ofd *ofd, uint64_t marks)
{
    struct dfi_shadow_look look = {0};
    struct df_ofd *at;

    while ((at = dfi_shadow_next(files, ofd, &look)))
        df_ofd_mark(at, look.handle, 0, marks);
}

/* ---- the data file --------------------------------------------------------------------------- */

long dfi_shadow_beside(const struct dfi_files *files, int mount, uint64_t ino, char letter,
                       int flags)
{
    char name[DFI_SHADOW_NAME_MAX];
    long fd;

    dfi_shadow_name(files, letter, (uint32_t)mount, ino, name);
    fd = dfi_brief_open(name, flags | O_NOFOLLOW);
    if (fd >= 0 && flags & O_CREAT)
        dfi_kernel(__NR_fchmod, fd, 0666); /* programs under other ids of the job */
    return fd;
}

long dfi_shadow_lock(long fd, int operation)
{
    long ret = 0;

    while (fd >= 0 && (ret = dfi_kernel(__NR_flock, fd, operation)) == -EINTR)
        ; /* no call of a program's ends so */
    return ret;
}

long dfi_shadow_data(const struct dfi_files *files, const struct df_ofd *ofd, int flags)
{
    return dfi_shadow_beside(files, ofd->mount, ofd->ino, DFI_SHADOW_DATA, flags);
}

/* ---- the first mapping ----------------------------------------------------------------------- */

/* Empty, and as long as the file. A shadow directory without room is no memory. */
static long make_beside(struct dfi_files *files, const struct df_ofd *ofd, char letter, off_t size)
{
    long ret, fd;

    if (size > files->caller.size_limit) /* of the data file, too: it would be SIGXFSZ */
        return -EFBIG;
    fd = dfi_shadow_beside(files, ofd->mount, ofd->ino, letter, O_RDWR | O_CREAT | O_TRUNC);
    if (fd < 0)
        return dfi_shadow_result(fd);
    ret = dfi_kernel(__NR_ftruncate, fd, size);
    if (ret == 0)
        return fd;
    dfi_brief_close(fd);
    return ret;
}

void dfi_shadow_forget(const struct dfi_files *files, const struct df_ofd *ofd)
{
    const char letters[] = {DFI_SHADOW_DATA, DFI_SHADOW_CHUNKS};
    char name[DFI_SHADOW_NAME_MAX];

    for (size_t i = 0; i < sizeof(letters); i++) {
        dfi_shadow_name(files, letters[i], (uint32_t)ofd->mount, ofd->ino, name);
        dfi_kernel(__NR_unlink, name);
    }
}

static bool has_room(const struct dfi_files *files, long data, off_t size)
{
    return dfi_fill_has_room(data, (uint64_t)size) ||
           (dfi_kept_drop(files) && dfi_fill_has_room(data, (uint64_t)size));
}

static long copy_whole(struct dfi_files *files, uint64_t handle, long data, off_t size)
{
    struct dfi_filling f;
    long ret = dfi_fill_begin(&f, files, handle, data);

    if (ret == 0 && !has_room(files, data, size))
        ret = -ENOSPC;
    if (ret == 0)
        ret = dfi_fill_all(&f, size);
    dfi_fill_end(&f);
    if (ret < 0)
        dfi_kernel(__NR_ftruncate, data, 0);
    return ret;
}

/* The bytes of a small file, the chunks of a large one. */
static long bring(struct dfi_files *files, uint64_t handle, const struct df_ofd *ofd, off_t size)
{
    long ret = 0, chunks, data = make_beside(files, ofd, DFI_SHADOW_DATA, size);

    if (data < 0)
        return data;
    if (size > DFI_SHADOW_WHOLE) {
        chunks = make_beside(files, ofd, DFI_SHADOW_CHUNKS, size / (off_t)DF_HELD_CHUNK + 1);
        dfi_brief_close(chunks);
        ret = chunks < 0 ? chunks : 0;
    } else if (size > 0) {
        ret = copy_whole(files, handle, data, size);
    }
    dfi_brief_close(data);
    return ret == -ENOSPC ? -ENOMEM : ret;
}

static long bring_new(struct dfi_files *files, uint64_t handle, const struct df_ofd *ofd,
                      const struct dfi_kept *kept, off_t size)
{
    long ret = bring(files, handle, ofd, size);

    if (ret == 0 && size > 0 && dfi_kept_holds(files, ofd, handle, kept))
        dfi_kept_leave(files, ofd, kept, size > DFI_SHADOW_WHOLE);
    return ret;
}

static void mark_size(struct dfi_files *files, struct df_ofd *ofd, off_t size)
{
    mark_all(files, ofd, DFI_SHADOW_MAPPED | (size > DFI_SHADOW_WHOLE ? DFI_SHADOW_CHUNKED : 0));
}

/* The data file of another time, if nobody has changed the file since: also not until all who have
 * it open write to both. */
static bool take_kept(struct dfi_files *files, uint64_t handle, struct df_ofd *ofd,
                      const struct dfi_kept *kept, off_t size)
{
    if (!dfi_kept_take(files, ofd, kept, size, size > DFI_SHADOW_WHOLE))
        return false;
    if (dfi_kept_holds(files, ofd, handle, kept))
        return true;
    dfi_shadow_forget(files, ofd);
    return false;
}

/* Under the lock of the job. */
static long map_under_lock(struct dfi_files *files, uint64_t handle, struct df_ofd *ofd)
{
    struct df_trip trip = {.link = &files->link, .caller = dfi_caller(files)};
    struct df_trip_where where = {.base = handle, .name = ""};
    struct dfi_kept kept = dfi_kept_now(files, ofd, handle);
    struct stat st;
    long ret;

    if (marks_of(ofd) & DFI_SHADOW_MAPPED)
        return 0;
    mark_all(files, ofd, DFI_SHADOW_FILLED); /* who has not seen it has written before this reads */
    dfi_shadow_forget(files, ofd);           /* its other name, if it has one, stays as it is */
    ret = df_trip_getattr(&trip, &where, &st);
    if (ret == 0 && st.st_size < DFI_KEPT_LEAST)
        kept.id = 0;
    if (ret == 0 && !take_kept(files, handle, ofd, &kept, st.st_size))
        ret = bring_new(files, handle, ofd, &kept, st.st_size);
    if (ret == 0)
        mark_size(files, ofd, st.st_size);
    unmark_all(files, ofd, DFI_SHADOW_FILLED);
    return ret;
}

/* The lock of the job, or -errno. */
static long lock_job(const struct dfi_files *files)
{
    char path[DFI_SHADOW_NAME_MAX];
    long lock, ret;

    strcpy(mempcpy(path, files->shadow, files->shadow_len), "/lock");
    lock = dfi_brief_open(path, O_RDONLY);
    if (lock < 0)
        return lock;
    ret = dfi_shadow_lock(lock, LOCK_EX);
    if (ret == 0)
        return lock;
    dfi_brief_close(lock);
    return ret;
}

static void unlock_job(long lock)
{
    dfi_shadow_lock(lock, LOCK_UN); /* a child may have a copy: dfi_chunks_end() */
    dfi_brief_close(lock);
}

long dfi_shadow_map(struct dfi_files *files, uint64_t handle)
{
    struct df_ofd *ofd = dfi_ofd(files, handle);
    long lock = ofd ? lock_job(files) : -EBADF, ret = lock;

    if (lock >= 0)
        ret = map_under_lock(files, handle, ofd);
    unlock_job(lock);
    return ret;
}

/* ---- what others map ------------------------------------------------------------------------- */

/* 0: the description is another file's by now. What is being copied is waited for: who changes the
 * file may have done so behind the copy. */
static uint64_t marks_by_now(const struct dfi_files *files, const struct df_ofd *ofd,
                             uint64_t handle)
{
    uint64_t marks = marks_of(ofd);

    if (DF_UNLIKELY(marks & DFI_SHADOW_FILLED)) {
        unlock_job(lock_job(files));
        marks = marks_of(ofd);
    }
    return DF_OFD_UNMARKED(marks) == DF_OFD_UNMARKED(handle) ? marks : 0;
}

bool dfi_shadow_mapped_by_now(const struct df_file *file)
{
    const struct df_ofd *ofd = (const struct df_ofd *)file->host[DFI_HOST_OFD];

    return ofd && marks_by_now(dfi_record_now()->files, ofd, file->host[DFI_HOST_HANDLE]) &
                      DFI_SHADOW_MAPPED;
}

bool dfi_shadow_find(const struct dfi_files *files, int mount, uint64_t ino,
                     struct dfi_shadow_named *out)
{
    bool any = atomic_load(&files->shared->mapped) != 0;
    struct dfi_shadow_look look = {0};
    const struct df_ofd *at;

    memset(out, 0, sizeof(*out));
    out->ofd.mount = mount;
    out->ofd.ino = ino;
    out->file.host[DFI_HOST_OFD] = (uintptr_t)&out->ofd;
    while (any && !out->ofd.marks && (at = dfi_shadow_next(files, &out->ofd, &look))) {
        uint64_t marks = marks_by_now(files, at, look.handle);

        if (marks & DFI_SHADOW_MAPPED)
            out->ofd.marks = marks;
    }
    return out->ofd.marks != 0;
}

/* ---- data ------------------------------------------------------------------------------------ */

static long open_of(struct df_file *file, int flags)
{
    return dfi_shadow_data(dfi_record_now()->files, (const struct df_ofd *)file->host[DFI_HOST_OFD],
                           flags);
}

/* ---- chunks of a large file ---- */

static bool is_chunked(const struct df_file *file)
{
    const struct df_ofd *ofd = (const struct df_ofd *)file->host[DFI_HOST_OFD];

    return ofd && marks_of(ofd) & DFI_SHADOW_CHUNKED;
}

/* Who had a file open that was found by its name (dfi_shadow_find()) may have closed it meanwhile:
 * then it has no data file, and needs none. Where a filter of the program's refuses the lock, it
 * goes without. */
static long begin_small(const struct dfi_files *files, const struct df_ofd *ofd,
                        struct dfi_chunks *chunks)
{
    chunks->list = -1;
    chunks->data = dfi_shadow_data(files, ofd, O_RDWR);
    dfi_shadow_lock(chunks->data, LOCK_EX);
    return chunks->data == -ENOENT ? 0 : chunks->data;
}

static long begin(struct dfi_files *files, const struct df_ofd *ofd, struct dfi_chunks *chunks)
{
    return marks_of(ofd) & DFI_SHADOW_CHUNKED
               ? dfi_chunks_begin(chunks, files, ofd->mount, ofd->ino)
               : begin_small(files, ofd, chunks);
}

int dfi_shadow_change(struct df_file *file, struct dfi_chunks *chunks)
{
    const struct df_ofd *ofd = (const struct df_ofd *)file->host[DFI_HOST_OFD];

    return begin(dfi_record_now()->files, ofd, chunks) < 0 ? -EIO : 0;
}

void dfi_shadow_changed(struct dfi_chunks *chunks)
{
    dfi_chunks_end(chunks);
}

/* What is there is read from the data file, the rest from the mount. */
static ssize_t read_chunks(struct df_trip *trip, struct df_file *file, const struct dfi_chunks *c,
                           char *to, size_t size, off_t offset)
{
    size_t done = 0;

    while (done < size) {
        bool there;
        struct iovec iov = {to + done, dfi_chunks_run(c, offset, size - done, &there)};
        ssize_t got = there ? dfi_kernel(__NR_pread64, c->data, iov.iov_base, iov.iov_len, offset)
                            : df_trip_read(trip, file->host[DFI_HOST_HANDLE], &iov, 1, offset);

        if (got < 0)
            return done > 0 ? (ssize_t)done : got;
        done += (size_t)got;
        offset += got;
        if ((size_t)got < iov.iov_len)
            break;
    }
    return (ssize_t)done;
}

static ssize_t read_chunked(struct df_trip *trip, struct df_file *file, const struct iovec *iov,
                            int iovcnt, off_t offset)
{
    struct dfi_chunks c;
    ssize_t done = 0, got;

    if (dfi_shadow_change(file, &c) < 0)
        return -EIO;
    for (int i = 0; i < iovcnt; i++) {
        got = read_chunks(trip, file, &c, iov[i].iov_base, iov[i].iov_len, offset + done);
        if (got < 0 && done == 0)
            done = got;
        if (got < 0)
            break;
        done += got;
        if ((size_t)got < iov[i].iov_len)
            break;
    }
    dfi_shadow_changed(&c);
    return done;
}

static void grow(long data, off_t size)
{
    struct stat st;

    if (dfi_kernel(__NR_fstat, data, &st) == 0 && st.st_size < size)
        dfi_kernel(__NR_ftruncate, data, size);
}

static void write_chunks(const struct dfi_chunks *c, const char *from, size_t size, off_t offset)
{
    for (size_t run; size > 0; size -= run) {
        bool there;

        run = dfi_chunks_run(c, offset, size, &there);
        if (there)
            dfi_kernel(__NR_pwrite64, c->data, from, run, offset);
        from += run;
        offset += (off_t)run;
    }
}

/* ---- all of them ---- */

ssize_t dfi_shadow_read(struct df_trip *trip, struct df_file *file, const struct iovec *iov,
                        int iovcnt, off_t offset)
{
    long data, ret;

    if (is_chunked(file))
        return read_chunked(trip, file, iov, iovcnt, offset);
    data = open_of(file, O_RDONLY);
    if (data < 0)
        return -EIO;
    ret = dfi_kernel(__NR_preadv, data, iov, iovcnt, offset, 0);
    dfi_brief_close(data);
    return ret;
}

static void write_some(const struct dfi_chunks *chunks, const char *from, size_t size, off_t offset)
{
    if (chunks->list >= 0)
        write_chunks(chunks, from, size, offset);
    else
        dfi_kernel(__NR_pwrite64, chunks->data, from, size, offset);
}

void dfi_shadow_write(const struct dfi_chunks *chunks, const struct iovec *iov, int iovcnt,
                      off_t offset, ssize_t size)
{
    for (int i = 0; i < iovcnt && size > 0; i++) {
        size_t run = (ssize_t)iov[i].iov_len < size ? iov[i].iov_len : (size_t)size;

        write_some(chunks, iov[i].iov_base, run, offset);
        offset += (off_t)run;
        size -= (ssize_t)run;
    }
    if (chunks->list >= 0)
        grow(chunks->data, offset);
}

void dfi_shadow_resize(const struct dfi_chunks *chunks, off_t size, bool shrink)
{
    if (shrink)
        dfi_kernel(__NR_ftruncate, chunks->data, size);
    else
        grow(chunks->data, size);
}

/* Others may have written to both, or have written back, since it was emptied on the mount: so it
 * is once more. */
void dfi_shadow_emptied(struct dfi_files *files, uint64_t handle)
{
    const struct df_setattr set = {.valid = DF_SET_SIZE};
    const struct df_trip_where where = {.base = handle, .name = ""};
    struct df_trip trip = dfi_trip_of(files);
    struct df_ofd *ofd = dfi_ofd(files, handle);
    struct dfi_chunks chunks;

    if (!ofd || !(marks_by_now(files, ofd, handle) & DFI_SHADOW_MAPPED) ||
        begin(files, ofd, &chunks) < 0)
        return;
    df_trip_setattr(&trip, &where, &set, NULL);
    dfi_shadow_resize(&chunks, 0, true);
    dfi_shadow_changed(&chunks);
}

/* Of a large file what is not there is not touched. */
static void allocate_chunks(const struct dfi_chunks *c, int mode, off_t offset, off_t end)
{
    for (size_t run; offset < end; offset += (off_t)run) {
        bool there;

        run = dfi_chunks_run(c, offset, (size_t)(end - offset), &there);
        if (there)
            dfi_kernel(__NR_fallocate, c->data, mode, offset, run);
    }
}

void dfi_shadow_allocate(const struct dfi_chunks *chunks, int mode, off_t offset, off_t end)
{
    if (chunks->list >= 0)
        allocate_chunks(chunks, mode, offset, end);
    else
        dfi_kernel(__NR_fallocate, chunks->data, mode, offset, end - offset);
}

/* ---- what was not done after all ---- */

static bool is_readable(uint32_t flags)
{
    return !(flags & O_PATH) && ((flags & O_ACCMODE) == O_RDONLY || (flags & O_ACCMODE) == O_RDWR);
}

/* A handle of the file that may be read by; who writes need not be able to. */
static uint64_t readable(struct dfi_files *files, const struct df_file *file)
{
    const struct df_ofd *ofd = (const struct df_ofd *)file->host[DFI_HOST_OFD], *at;
    struct dfi_shadow_look look = {0};

    while ((at = dfi_shadow_next(files, ofd, &look)))
        if (is_readable(atomic_load(&at->flags)))
            return look.handle;
    return file->host[DFI_HOST_HANDLE];
}

static void refill_chunks(struct dfi_filling *f, const struct dfi_chunks *c, off_t offset,
                          off_t end)
{
    for (size_t run; offset < end; offset += (off_t)run) {
        bool there;

        run = dfi_chunks_run(c, offset, (size_t)(end - offset), &there);
        if (there)
            dfi_fill_again(f, offset, offset + (off_t)run);
    }
}

void dfi_shadow_refill(struct df_file *file, const struct dfi_chunks *chunks, off_t offset,
                       off_t end)
{
    struct dfi_files *files = dfi_record_now()->files;
    struct dfi_filling f;

    if (dfi_fill_begin(&f, files, readable(files, file), chunks->data) < 0)
        return;
    if (chunks->list >= 0)
        refill_chunks(&f, chunks, offset, end);
    else
        dfi_fill_again(&f, offset, end);
    dfi_fill_end(&f);
}
