/*
 * calls_map.c - mmap, munmap, msync, mremap.
 *
 * A private mapping is anonymous memory, filled at once. A shared one is the kernel's mapping of
 * the shadow file, which then has the file's bytes (shadow_map.c).
 */
#include <fcntl.h>
#include <sys/mman.h>

#include "core/calls.h"
#include "core/fd.h"
#include "intercept/map.h"
#include "intercept/shadow.h"

#define PAGE            4096ul
#define IS_ERROR(value) ((value) < 0 && (value) > -4096)

static size_t whole_pages(size_t length)
{
    return (length + PAGE - 1) & ~(PAGE - 1);
}

/* ---- mmap ------------------------------------------------------------------------------------ */

struct request {
    unsigned long address, length, prot, flags, offset;
    int fd;
    uint64_t handle;
};

static long check(const struct request *r, const struct df_ofd *ofd)
{
    int mode = (int)atomic_load(&ofd->flags);

    if (mode & O_PATH)
        return -EBADF;
    if (r->length == 0 || r->offset & (PAGE - 1) || (off_t)r->offset < 0)
        return -EINVAL;
    if (whole_pages(r->length) == 0)
        return -ENOMEM;
    if ((mode & O_ACCMODE) == O_WRONLY)
        return -EACCES;
    return ofd->kind == DF_KIND_REGULAR ? 0 : -ENODEV;
}

/* Behind the end of the file it stays zero. */
static long fill(const struct request *r, char *memory)
{
    size_t done = 0;

    while (done < r->length) {
        ssize_t ret = df_call_pread(DF_FD_BASE + r->fd, memory + done, r->length - done,
                                    (off_t)(r->offset + done));

        if (ret <= 0)
            return ret;
        done += (size_t)ret;
    }
    return 0;
}

static long map_private(const struct request *r)
{
    unsigned long flags = (r->flags & ~(unsigned long)(MAP_TYPE | MAP_SYNC | MAP_POPULATE)) |
                          MAP_PRIVATE | MAP_ANONYMOUS;
    long at = dfi_kernel(__NR_mmap, r->address, r->length, PROT_READ | PROT_WRITE, flags, -1, 0);
    long ret;

    if (IS_ERROR(at))
        return at;
    ret = fill(r, (char *)at);
    if (ret == 0 && r->prot != (PROT_READ | PROT_WRITE))
        ret = dfi_kernel(__NR_mprotect, at, r->length, r->prot);
    if (ret < 0) {
        dfi_kernel(__NR_munmap, at, r->length);
        return ret;
    }
    return at;
}

static long map_shared(struct dfi_files *files, const struct request *r)
{
    struct dfi_mapping m = {.handle = r->handle, .offset = (off_t)r->offset};
    long at, ret = dfi_shadow_map(files, r->handle, r->fd);

    if (ret < 0)
        return ret;
    at = dfi_kernel(__NR_mmap, r->address, r->length, r->prot, r->flags, r->fd, r->offset);
    if (at == -EPERM && r->prot & PROT_EXEC) /* the shadow directory is mounted noexec */
        return map_private(r);
    if (IS_ERROR(at))
        return at;
    m.start = (uintptr_t)at;
    m.end = (uintptr_t)at + whole_pages(r->length);
    dfi_fd_hold(files, r->handle);
    if (dfi_maps_add(files, &m) < 0) {
        dfi_fd_drop(files, r->handle, false);
        dfi_kernel(__NR_munmap, at, r->length);
        return -ENOMEM;
    }
    return at;
}

static long map_ours(struct dfi_files *files, const struct request *r)
{
    const struct df_ofd *ofd = dfi_ofd(files, r->handle);
    unsigned long type = r->flags & MAP_TYPE;
    long ret = ofd ? check(r, ofd) : -EBADF;

    if (ret < 0)
        return ret;
    if (type == MAP_PRIVATE)
        return map_private(r);
    return type == MAP_SHARED || type == MAP_SHARED_VALIDATE ? map_shared(files, r) : -EINVAL;
}

long dfi_do_mmap(struct dfi_frame *frame)
{
    struct dfi_files *files = dfi_process()->files;
    const unsigned long *a = frame->args;
    struct request r = {a[0], a[1], a[2], a[3], a[5], (int)a[4], 0};
    struct dfi_record record;
    long ret;

    if (r.flags & (MAP_FIXED) && !(r.flags & MAP_FIXED_NOREPLACE) && files->maps)
        dfi_maps_cut(files, r.address, r.address + whole_pages(r.length));
    if (r.flags & MAP_ANONYMOUS || !(r.handle = dfi_file_of(files, r.fd)))
        return DFI_PASS;
    dfi_record_begin(&record);
    ret = map_ours(files, &r);
    dfi_record_end(&record);
    return ret;
}

/* ---- the rest -------------------------------------------------------------------------------- */

long dfi_do_munmap(struct dfi_frame *frame)
{
    struct dfi_files *files = dfi_process()->files;

    if (files->maps)
        dfi_maps_cut(files, frame->args[0], frame->args[0] + whole_pages(frame->args[1]));
    return DFI_PASS;
}

long dfi_do_msync(struct dfi_frame *frame)
{
    struct dfi_files *files = dfi_process()->files;
    unsigned long flags = frame->args[2];
    long ret;

    if (!files->maps)
        return DFI_PASS;
    ret = dfi_kernel(__NR_msync, frame->args[0], frame->args[1], flags); /* its errors first */
    if (ret == 0 && flags & (MS_SYNC | MS_ASYNC))
        ret = dfi_maps_write_back(files, frame->args[0],
                                  frame->args[0] + whole_pages(frame->args[1]));
    return ret;
}

long dfi_do_mremap(struct dfi_frame *frame)
{
    struct dfi_files *files = dfi_process()->files;
    const unsigned long *a = frame->args;
    long at;

    if (!files->maps)
        return DFI_PASS;
    if (a[3] & MREMAP_FIXED)
        dfi_maps_cut(files, a[4], a[4] + whole_pages(a[2]));
    at = dfi_kernel(__NR_mremap, a[0], a[1], a[2], a[3], a[4]);
    if (!IS_ERROR(at))
        dfi_maps_move(files, a[0], whole_pages(a[1]), (uintptr_t)at, whole_pages(a[2]));
    return at;
}
