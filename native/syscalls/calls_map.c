/*
 * calls_map.c - mmap, munmap, msync, mremap, remap_file_pages.
 *
 * A private mapping of a small file is anonymous memory, filled at once (map_private.c), but for
 * one that is made again to be read only. Any other is the kernel's mapping of the data file, which
 * has the file's bytes, or will have them (shadow_map.c, map.h).
 */
#include <fcntl.h>
#include <limits.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "intercept/brief.h"
#include "intercept/rewrite.h"
#include "shadows/code_file.h"
#include "shadows/map.h"
#include "shadows/map_copies.h"
#include "shadows/shadow.h"
#include "shadows/shadow_kept.h"
#include "syscalls/map_request.h"

#define PAGE        4096ul
#define PROTECTIONS (PROT_READ | PROT_WRITE | PROT_EXEC) /* other bits mmap(2) does not look at */
#ifndef MAP_ABOVE4G
#define MAP_ABOVE4G 0x80
#endif
#define HUGE_SIZES 0x7c000000 /* MAP_HUGE_2MB | MAP_HUGE_1GB, and MAP_UNINITIALIZED: of no file */
/* LEGACY_MAP_MASK of the kernel: what MAP_SHARED_VALIDATE lets be. */
#define ACCEPTED                                                                                   \
    ((unsigned long)(MAP_TYPE | MAP_FIXED | MAP_ANONYMOUS | MAP_GROWSDOWN | MAP_DENYWRITE |        \
                     MAP_EXECUTABLE | MAP_LOCKED | MAP_NORESERVE | MAP_POPULATE | MAP_NONBLOCK |   \
                     MAP_STACK | MAP_HUGETLB | MAP_32BIT | MAP_ABOVE4G | HUGE_SIZES))

/* ---- code of the kernel's files ---------------------------------------------------------------
 */

/* A private mapping of a file that is no file of a mount, as libraries are mapped. */
static bool is_code(const unsigned long a[6])
{
    return dfi_rewrite_on && a[2] == (PROT_READ | PROT_EXEC) &&
           (a[3] & (MAP_TYPE | MAP_ANONYMOUS)) == MAP_PRIVATE;
}

/* ---- what lies there --------------------------------------------------------------------------
 */

static bool is_ours(struct dfi_files *files, uintptr_t start, uintptr_t end)
{
    return dfi_maps_any(files, start, end) || dfi_copies_in(files, start, end);
}

/* mmap(2) or munmap(2), by which nothing of ours lies in the range any more. Only its success
 * tells: what fails leaves the program the mappings that it had. DFI_PASS: there are none. */
static long replace(struct dfi_files *files, long nr, const unsigned long a[6])
{
    uintptr_t end = a[0] + dfi_map_whole_pages(a[1]);

    if (a[0] & (PAGE - 1) || a[1] > DFI_USER_END || end <= a[0]) /* is refused, or does nothing */
        return DFI_PASS;
    dfi_rewrite_changed(a[0], end - a[0]);
    return is_ours(files, a[0], end) ? dfi_maps_replace(files, nr, a, a[0], end) : DFI_PASS;
}

/* The same where mmap(2) with these flags may cover something. */
static long cover(struct dfi_files *files, const unsigned long a[6])
{
    bool covers = a[3] & MAP_FIXED && !(a[3] & MAP_FIXED_NOREPLACE);

    return covers ? replace(files, __NR_mmap, a) : DFI_PASS;
}

long dfi_map_there(struct dfi_files *files, unsigned long at, size_t length, unsigned long prot,
                   unsigned long flags, long fd, unsigned long offset)
{
    const unsigned long a[6] = {at, length, prot, flags, (unsigned long)fd, offset};
    long ret = cover(files, a);

    return ret == DFI_PASS ? dfi_kernel(__NR_mmap, at, length, prot, flags, fd, offset) : ret;
}

/* ---- mmap ------------------------------------------------------------------------------------ */

/* Offsets are unsigned, and no regular file is longer than a signed one tells: file_mmap_ok(). */
static bool is_behind_all(const struct dfi_map_request *r, const struct df_ofd *ofd)
{
    unsigned long most = ofd->kind == DF_KIND_REGULAR ? (unsigned long)INT64_MAX : ULONG_MAX;

    return r->offset / PAGE > (most - dfi_map_whole_pages(r->length)) / PAGE;
}

/* What the kernel finds wrong, in its order: ksys_mmap_pgoff(), do_mmap(). */
static long check(const struct dfi_map_request *r, const struct df_ofd *ofd)
{
    int mode = (int)atomic_load(&ofd->flags);
    unsigned long type = r->flags & MAP_TYPE;

    if (r->offset & (PAGE - 1))
        return -EINVAL;
    if (mode & O_PATH)
        return -EBADF;
    if (r->flags & MAP_HUGETLB)
        return -EINVAL;
    if (r->length == 0)
        return -EINVAL;
    if (r->length > DFI_USER_END)
        return -ENOMEM;
    if (is_behind_all(r, ofd))
        return -EOVERFLOW;
    if (type != MAP_PRIVATE && type != MAP_SHARED && type != MAP_SHARED_VALIDATE)
        return -EINVAL;
    if (type == MAP_SHARED_VALIDATE && r->flags & ~ACCEPTED) /* MAP_SYNC */
        return -EOPNOTSUPP;
    if (type != MAP_PRIVATE && r->prot & PROT_WRITE && (mode & O_ACCMODE) != O_RDWR)
        return -EACCES;
    if (mode & O_WRONLY) /* or neither: O_ACCMODE itself */
        return -EACCES;
    if (ofd->kind != DF_KIND_REGULAR)
        return -ENODEV;
    if (r->flags & MAP_GROWSDOWN)
        return -EINVAL;
    return type == MAP_PRIVATE || df_file_may_share(ofd->traits) ? 0 : -ENODEV;
}

/* Whether its memory is brought when it is touched. */
static bool is_late(const struct df_ofd *ofd)
{
    return __atomic_load_n(&ofd->marks, __ATOMIC_ACQUIRE) & DFI_SHADOW_CHUNKED;
}

static long map_data(struct dfi_files *files, const struct dfi_map_request *r,
                     const struct df_ofd *ofd, bool late)
{
    bool at_once = !late || r->prot & PROT_EXEC; /* whether it may be executed is seen here */
    unsigned long flags = late ? r->flags & ~(unsigned long)(MAP_POPULATE | MAP_LOCKED) : r->flags;
    long at, data = dfi_shadow_data(
                 files, ofd, (atomic_load(&ofd->flags) & O_ACCMODE) == O_RDWR ? O_RDWR : O_RDONLY);

    if (data < 0)
        return data;
    at = dfi_map_there(files, r->address, r->length, at_once ? r->prot : PROT_NONE, flags, data,
                       r->offset);
    dfi_brief_close(data);
    if (late && at_once && !DFI_MAP_IS_ERROR(at))
        dfi_kernel(__NR_mprotect, at, r->length, PROT_NONE);
    return at;
}

static long map_file(struct dfi_files *files, const struct dfi_map_request *r,
                     const struct df_ofd *ofd)
{
    struct dfi_mapping m = {.handle = r->handle,
                            .offset = (off_t)r->offset,
                            .prot = (int)r->prot,
                            .shared = (r->flags & MAP_TYPE) != MAP_PRIVATE,
                            .locked = r->flags & MAP_LOCKED};
    long at, ret = dfi_shadow_map(files, r->handle);

    if (ret < 0)
        return ret;
    m.late = is_late(ofd);
    at = map_data(files, r, ofd, m.late);
    if (at == -EPERM && r->prot & PROT_EXEC) /* the shadow directory is mounted noexec */
        return dfi_map_private(files, r);
    if (DFI_MAP_IS_ERROR(at))
        return at;
    m.start = (uintptr_t)at;
    m.end = (uintptr_t)at + dfi_map_whole_pages(r->length);
    dfi_fd_hold(files, r->handle);
    if (dfi_maps_add(files, &m) < 0) {
        dfi_fd_drop(files, r->handle, false);
        dfi_kernel(__NR_munmap, at, r->length);
        return -ENOMEM;
    }
    if (r->prot & PROT_WRITE)
        dfi_maps_store(files, m.start, m.end);
    return at;
}

/* As dynamic linkers map libraries, and what they execute. */
static bool is_of_library(const struct dfi_map_request *r)
{
    return r->flags & MAP_DENYWRITE || r->prot & PROT_EXEC;
}

/* Copying a part of a large file is no waste: libraries are mapped so, and headers of archives. */
static bool is_small(const struct dfi_map_request *r)
{
    return r->length <= (size_t)DFI_SHADOW_WHOLE || is_of_library(r);
}

/* A large one would be brought by chunks, each by a fault. */
static bool is_file_small(struct dfi_files *files, const struct dfi_map_request *r)
{
    struct stat st;

    return dfi_map_look(files, r, &st) && st.st_size <= DFI_SHADOW_WHOLE;
}

/* Git maps its packs and its index so, in each of its processes. The first time costs less as a
 * copy, and is the only one of most files. */
static bool is_worth_keeping(struct dfi_files *files, const struct dfi_map_request *r,
                             const struct df_ofd *ofd)
{
    return r->prot == PROT_READ && r->length >= (size_t)DFI_KEPT_LEAST && !is_of_library(r) &&
           dfi_kept_again(files, ofd, r->handle) && is_file_small(files, r);
}

/* By the dynamic linker, which nobody can look at meanwhile: writable until what is learnt of it is
 * rewritten. */
static bool is_to_be_rewritten(const struct dfi_map_request *r)
{
    return dfi_rewrite_on && r->links && r->prot == (PROT_READ | PROT_EXEC);
}

static long map_code(struct dfi_files *files, const struct dfi_map_request *r, long fd)
{
    unsigned long flags = r->flags & ~(unsigned long)MAP_SYNC;
    size_t whole = dfi_map_whole_pages(r->length);
    bool open = is_to_be_rewritten(r);
    long ret, at = dfi_map_there(files, r->address, r->length,
                                 open ? PROT_READ | PROT_WRITE : r->prot, flags, fd, r->offset);

    if (DFI_MAP_IS_ERROR(at))
        return at;
    if (open)
        dfi_rewrite_copy((uintptr_t)at, whole, dfi_map_learnt(files, r), r->offset);
    ret = open ? dfi_kernel(__NR_mprotect, at, whole, r->prot) : 0;
    if (ret == 0)
        ret = dfi_copies_add(files, (uintptr_t)at, (uintptr_t)at + whole,
                             df_segment_name(files->link.segment, r->handle), r->offset);
    if (ret == 0)
        return at;
    dfi_rewrite_changed((uintptr_t)at, whole);
    dfi_kernel(__NR_munmap, at, whole);
    return ret;
}

/* -ENOENT: it has to be copied. */
static long map_shared_code(struct dfi_files *files, const struct dfi_map_request *r)
{
    long at, fd = is_of_library(r) ? dfi_code_file(files, r->handle, r->length) : -ENOENT;

    if (fd < 0)
        return fd;
    at = map_code(files, r, fd);
    dfi_brief_close(fd);
    return at;
}

/* Where there is no room for a data file there may be memory for a copy; and memory that was
 * written to may perhaps not be executed (PR_SET_MDWE, SELinux), but a file. */
static long map_small(struct dfi_files *files, const struct dfi_map_request *r,
                      const struct df_ofd *ofd)
{
    long at = map_shared_code(files, r);

    if (DFI_MAP_IS_ERROR(at) && is_worth_keeping(files, r, ofd))
        at = map_file(files, r, ofd);
    if (DFI_MAP_IS_ERROR(at))
        at = dfi_map_private(files, r);
    return at == -EACCES && r->prot & PROT_EXEC ? map_file(files, r, ofd) : at;
}

static long map_it(struct dfi_files *files, const struct dfi_map_request *r,
                   const struct df_ofd *ofd)
{
    if ((r->flags & MAP_TYPE) == MAP_PRIVATE && is_small(r))
        return map_small(files, r, ofd);
    return map_file(files, r, ofd);
}

/* Without a server mmap succeeds as behind the kernel, which asks nobody, and memory that would
 * have to be brought gives SIGBUS. */
static long map_ours(struct dfi_files *files, const struct dfi_map_request *r)
{
    const struct df_ofd *ofd = dfi_ofd(files, r->handle);
    long ret = ofd ? check(r, ofd) : -EBADF;
    bool held;

    if (ret < 0)
        return ret;
    held = dfi_fd_hold_beside_others(files, r->handle);
    ret = map_it(files, r, ofd);
    if (held)
        dfi_fd_drop(files, r->handle, false);
    if (DFI_MAP_IS_ERROR(ret) && df_link_lost(&files->link))
        return dfi_map_empty(files, r->address, r->length, r->prot, r->flags);
    return ret;
}

/* Memory of nobody's, or of a file of the kernel's. */
static long map_other(struct dfi_files *files, const struct dfi_frame *frame)
{
    const unsigned long *a = frame->args;
    long ret;

    if (!(a[3] & MAP_ANONYMOUS) && dfi_other_fd(a[4]) != DFI_PASS)
        return -EBADF;
    ret = cover(files, a);
    if (ret == DFI_PASS && is_code(a) && dfi_rewrite_is_linker(frame->ip))
        ret = dfi_rewrite_map(a[0], a[1], a[3], (int)a[4], a[5]);
    return ret;
}

long dfi_do_mmap(struct dfi_frame *frame)
{
    struct dfi_files *files = dfi_process()->files;
    const unsigned long *a = frame->args;
    struct dfi_map_request r = {.address = a[0],
                                .length = a[1],
                                .prot = a[2] & PROTECTIONS,
                                .flags = a[3],
                                .offset = a[5],
                                .fd = (int)a[4],
                                .links = dfi_rewrite_is_linker(frame->ip)};
    struct dfi_record record;
    long ret;

    if (r.flags & MAP_ANONYMOUS || !dfi_fd_is_ours(a[4]))
        return map_other(files, frame);
    r.handle = dfi_file_of(files, r.fd);
    dfi_record_begin(&record);
    ret = map_ours(files, &r);
    dfi_record_end(&record);
    return ret;
}

/* ---- the rest -------------------------------------------------------------------------------- */

/* A call that is passed comes back to its stack: not so where that is what is unmapped. */
long dfi_do_munmap(struct dfi_frame *frame)
{
    const unsigned long *a = frame->args;
    uintptr_t end = a[0] + dfi_map_whole_pages(a[1]);
    bool own = dfi_stack_is_in(frame, a[0], end);
    long ret = replace(dfi_process()->files, __NR_munmap, a);

    if (own && ret == DFI_PASS)
        ret = dfi_kernel(__NR_munmap, a[0], a[1]);
    if (own && ret == 0)
        dfi_stack_gone(a[0], end);
    return ret;
}

long dfi_do_mprotect(struct dfi_frame *frame)
{
    const unsigned long *a = frame->args;
    struct dfi_files *files = dfi_process()->files;
    struct dfi_files *owner = files->lender ? files->lender : files;

    dfi_rewrite_changed(a[0], dfi_map_whole_pages(a[1]));
    if (a[2] & PROT_WRITE && dfi_maps_are_there(owner))
        dfi_maps_store(owner, a[0], a[0] + dfi_map_whole_pages(a[1]));
    if (dfi_process()->late == 0 || a[0] & (PAGE - 1))
        return DFI_PASS;
    return dfi_maps_protect(files, frame, a[0] + dfi_map_whole_pages(a[1]));
}

long dfi_do_pkey_mprotect(struct dfi_frame *frame)
{
    return dfi_do_mprotect(frame);
}

long dfi_do_msync(struct dfi_frame *frame)
{
    struct dfi_files *files = dfi_process()->files;
    unsigned long flags = frame->args[2];
    long ret, written;

    if (!files->maps)
        return DFI_PASS;
    ret = dfi_kernel(__NR_msync, frame->args[0], frame->args[1], flags); /* its errors first */
    if (ret != 0 || !(flags & (MS_SYNC | MS_ASYNC)))
        return ret;
    written =
        dfi_maps_write_back(files, frame->args[0],
                            frame->args[0] + dfi_map_whole_pages(frame->args[1]), flags & MS_SYNC);
    return flags & MS_SYNC ? written : 0; /* MS_ASYNC waits for nothing, and is told nothing */
}

/* A place that is asked for, as check_mremap_params() of the kernel judges it: what is refused
 * leaves the program what lies there. */
static bool is_place(const unsigned long a[5], size_t old, size_t size)
{
    const unsigned long needed = MREMAP_MAYMOVE | MREMAP_FIXED;

    return (a[3] & ~MREMAP_DONTUNMAP) == needed && ((a[0] | a[4]) & (PAGE - 1)) == 0 && size > 0 &&
           (a[4] + size <= a[0] || a[0] + old <= a[4]);
}

/* What mremap(2) would have to fill with bytes of the file, which a copy has none of: what is
 * behind it where it grows, and what is left in its place. The kernel would leave zeros there. 0 or
 * -errno; what is wrong anyway is the kernel's to say. */
static long refuse_copy(struct dfi_files *files, const unsigned long a[5], size_t old, size_t size)
{
    const unsigned long known = MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP;
    bool left = a[3] & MREMAP_DONTUNMAP;

    if (a[0] & (PAGE - 1) || a[3] & ~known || old == 0 || (size <= old && !left) ||
        !dfi_copies_in(files, a[0], a[0] + old))
        return 0;
    return left ? -EINVAL : -ENOMEM;
}

long dfi_do_mremap(struct dfi_frame *frame)
{
    struct dfi_files *files = dfi_process()->files;
    const unsigned long *a = frame->args;
    size_t old = dfi_map_whole_pages(a[1]), size = dfi_map_whole_pages(a[2]);
    bool stays = old == 0 || a[3] & MREMAP_DONTUNMAP, covers = is_place(a, old, size);
    long at = refuse_copy(files, a, old, size);

    if (at < 0)
        return at;
    dfi_rewrite_changed(a[0], old);
    if (a[3] & MREMAP_FIXED)
        dfi_rewrite_changed(a[4], size);
    if (!files->maps && !dfi_copies_any(files))
        return DFI_PASS;
    if (files->maps) {
        if (covers)
            dfi_maps_write_back(files, a[4], a[4] + size, false);
        if (size < old)
            dfi_maps_write_back(files, a[0] + size, a[0] + old, false);
        dfi_maps_unready(files, a[0], a[0] + old);
    }
    at = dfi_kernel(__NR_mremap, a[0], a[1], a[2], a[3], a[4]);
    if (DFI_MAP_IS_ERROR(at))
        return at;
    if (covers) {
        dfi_maps_cut(files, a[4], a[4] + size);
        dfi_copies_cut(files, a[4], a[4] + size);
    }
    (stays ? dfi_maps_repeat : dfi_maps_move)(files, a[0], old, (uintptr_t)at, size);
    dfi_copies_move(files, a[0], old, (uintptr_t)at, size);
    return at;
}

/* Of memory that shows a file of a mount the list has to know which pages. */
long dfi_do_remap_file_pages(struct dfi_frame *frame)
{
    struct dfi_files *files = dfi_process()->files;
    uintptr_t start = frame->args[0] & ~(PAGE - 1), end = start + (frame->args[1] & ~(PAGE - 1));

    if (end <= start || !dfi_maps_any(files, start, end))
        return DFI_PASS;
    return dfi_maps_turn(files, frame->args, start, end);
}
