/*
 * calls_map.c - mmap, munmap, msync, mremap, remap_file_pages.
 *
 * A private mapping of a small file is anonymous memory, filled at once, but for one that is made
 * again to be read only. Any other is the kernel's mapping of the data file, which has the file's
 * bytes, or will have them (shadow_map.c, map.h).
 */
#include <fcntl.h>
#include <limits.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "core/calls.h"
#include "core/fd.h"
#include "intercept/brief.h"
#include "intercept/learn.h"
#include "intercept/rewrite.h"
#include "syscalls/code_file.h"
#include "syscalls/map.h"
#include "syscalls/map_copies.h"
#include "syscalls/map_library.h"
#include "syscalls/shadow.h"
#include "syscalls/shadow_fill.h"
#include "syscalls/shadow_kept.h"

#define PAGE        4096ul
#define PROTECTIONS (PROT_READ | PROT_WRITE | PROT_EXEC) /* other bits mmap(2) does not look at */
#define HUGE        (4ul << 20) /* bytes: a copy of so many is made of huge pages */
#ifndef MAP_ABOVE4G
#define MAP_ABOVE4G 0x80
#endif
#define HUGE_SIZES 0x7c000000 /* MAP_HUGE_2MB | MAP_HUGE_1GB, and MAP_UNINITIALIZED: of no file */
/* LEGACY_MAP_MASK of the kernel: what MAP_SHARED_VALIDATE lets be. */
#define ACCEPTED                                                                                   \
    ((unsigned long)(MAP_TYPE | MAP_FIXED | MAP_ANONYMOUS | MAP_GROWSDOWN | MAP_DENYWRITE |        \
                     MAP_EXECUTABLE | MAP_LOCKED | MAP_NORESERVE | MAP_POPULATE | MAP_NONBLOCK |   \
                     MAP_STACK | MAP_HUGETLB | MAP_32BIT | MAP_ABOVE4G | HUGE_SIZES))
#define IS_ERROR(value) ((value) < 0 && (value) > -4096)

static size_t whole_pages(size_t length)
{
    return (length + PAGE - 1) & ~(PAGE - 1);
}

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
    uintptr_t end = a[0] + whole_pages(a[1]);

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

/* mmap(2) of the kernel, where something may lie already. */
static long map_there(struct dfi_files *files, unsigned long at, size_t length, unsigned long prot,
                      unsigned long flags, long fd, unsigned long offset)
{
    const unsigned long a[6] = {at, length, prot, flags, (unsigned long)fd, offset};
    long ret = cover(files, a);

    return ret == DFI_PASS ? dfi_kernel(__NR_mmap, at, length, prot, flags, fd, offset) : ret;
}

/* ---- mmap ------------------------------------------------------------------------------------ */

struct request {
    unsigned long address, length, prot, flags, offset;
    int fd;
    bool links; /* it is the dynamic linker that asks */
    uint64_t handle;
};

/* Offsets are unsigned, and no regular file is longer than a signed one tells: file_mmap_ok(). */
static bool is_behind_all(const struct request *r, const struct df_ofd *ofd)
{
    unsigned long most = ofd->kind == DF_KIND_REGULAR ? (unsigned long)INT64_MAX : ULONG_MAX;

    return r->offset / PAGE > (most - whole_pages(r->length)) / PAGE;
}

/* What the kernel finds wrong, in its order: ksys_mmap_pgoff(), do_mmap(). */
static long check(const struct request *r, const struct df_ofd *ofd)
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

/* Those of a file that is mapped by others are not the server's. */
static bool may_ask(const struct dfi_files *files, const struct request *r)
{
    const struct df_ofd *ofd = dfi_ofd(files, r->handle);

    return ofd && !(ofd->flags & O_DIRECT) &&
           !(__atomic_load_n(&ofd->marks, __ATOMIC_ACQUIRE) & DFI_SHADOW_MAPPED);
}

/* The first bytes of what is large, as far as they come by messages. */
static long fill_large(const struct request *r, char *memory, size_t done, size_t end)
{
    struct dfi_files *files = dfi_process()->files;
    long ret = may_ask(files, r) && end - done > DFI_FILL_PIECE
                   ? dfi_fill_memory(files, r->handle, memory + done, (off_t)(r->offset + done),
                                     (off_t)(r->offset + end))
                   : 0;

    return ret < 0 ? dfi_as_told(ret) : (long)done + ret;
}

/* All pages at once cost a third of what they do one by one, when they are written to. Those of
 * huge pages are few. */
static void make_pages(const struct request *r, char *memory, size_t size)
{
    if (size > PAGE && r->length < HUGE)
        dfi_kernel(__NR_madvise, memory, whole_pages(size), MADV_POPULATE_WRITE);
}

/* Fills [done, end) of the memory. How many bytes of that end the file had; behind them it stays
 * zero. */
static long fill(const struct request *r, char *memory, size_t done, size_t end)
{
    ssize_t ret;

    make_pages(r, memory + done, end - done);
    ret = fill_large(r, memory, done, end);
    done = ret < 0 ? end : (size_t)ret;
    while (ret >= 0 && done < end) {
        ret =
            df_call_pread(DF_FD_BASE + r->fd, memory + done, end - done, (off_t)(r->offset + done));
        if (ret == 0)
            break;
        done += ret < 0 ? 0 : (size_t)ret;
    }
    return ret < 0 ? ret : (long)done;
}

/* Its first page says how much of it is wanted. */
static bool is_read_in_parts(const struct request *r)
{
    return dfi_map_may_be_library(r->flags, r->offset) && r->length > PAGE;
}

/* Fills what will be looked at, from `done` on: of a library that its dynamic linker maps, no more
 * than the first segment. *end: where that ends; what fill() says of it. */
static long fill_wanted(const struct request *r, char *memory, size_t done, size_t *end)
{
    long head = (long)done;

    *end = r->length;
    if (is_read_in_parts(r)) {
        head = fill(r, memory, done, PAGE);
        if (head != PAGE)
            return head;
        *end = dfi_map_first_segment(r->length, memory, PAGE);
    }
    return fill(r, memory, (size_t)head, *end);
}

/* Pages behind the end of a file give SIGBUS, mmap(2): those of an empty file do. Its address. */
static long map_empty(struct dfi_files *files, unsigned long from, size_t size, unsigned long prot,
                      unsigned long flags)
{
    long empty = dfi_brief(__NR_memfd_create, "directfuse-end", MFD_CLOEXEC), at;

    if (empty < 0)
        return empty;
    at = map_there(files, from, size, prot, flags, empty, 0);
    dfi_brief_close(empty);
    return at;
}

static long end_memory(struct dfi_files *files, unsigned long from, unsigned long end,
                       unsigned long prot)
{
    long at = from < end ? map_empty(files, from, end - from, prot, MAP_PRIVATE | MAP_FIXED) : 0;

    return IS_ERROR(at) ? at : 0;
}

/* The file's bytes lie in [at, at + size), of a mapping that is longer, perhaps: all of it is of
 * the file, to /proc/self/maps. */
static long note_copy(struct dfi_files *files, const struct request *r, unsigned long at,
                      size_t size, size_t whole)
{
    const char *name = df_segment_name(files->link.segment, r->handle);
    long ret = end_memory(files, at + size, at + whole, r->prot);

    return ret < 0 ? ret : dfi_copies_add(files, at, at + whole, name, r->offset);
}

static bool look(struct dfi_files *files, const struct request *r, struct stat *st)
{
    struct df_trip trip = dfi_trip_of(files);
    struct df_trip_where where = {.base = r->handle, .name = ""};

    return df_trip_getattr(&trip, &where, st) == 0;
}

/* By which the programs of the run know the file whose code is mapped. */
static int learnt_file(struct dfi_files *files, const struct request *r)
{
    struct stat st;

    if (!r->links || !look(files, r, &st))
        return DFI_LEARN_NONE;
    const struct dfi_learn_id id = {
        .device = st.st_dev,
        .inode = st.st_ino,
        .size = (unsigned long)st.st_size,
        .changed =
            (unsigned long)st.st_ctim.tv_sec * 1000000000 + (unsigned long)st.st_ctim.tv_nsec,
    };
    return dfi_learn_known(&id);
}

/* Code of the file, as a library's, has its system calls rewritten as that of a file of the
 * kernel's. */
static void rewrite(struct dfi_files *files, const struct request *r, unsigned long at, size_t size)
{
    if (dfi_rewrite_on && r->prot == (PROT_READ | PROT_EXEC) && size > 0)
        dfi_rewrite_copy(at, size, learnt_file(files, r), r->offset);
}

/* What is behind the memory that was filled: pages behind the end of the file, and from `end` on
 * what is covered by other segments, or would be read as zeros. */
static long close_memory(struct dfi_files *files, const struct request *r, unsigned long at,
                         size_t filled, size_t end)
{
    long ret = note_copy(files, r, at, whole_pages(filled), whole_pages(end));

    if (ret == 0 && end < r->length)
        ret = dfi_kernel(__NR_mprotect, at + end, whole_pages(r->length) - end, PROT_NONE);
    if (ret == 0 && r->prot != (PROT_READ | PROT_WRITE))
        ret = dfi_kernel(__NR_mprotect, at, end, r->prot);
    return ret;
}

/* The first bytes are on their way while the kernel makes the memory. */
static void ask_early(struct dfi_files *files, const struct request *r, struct df_trip_early *early)
{
    struct df_trip trip = dfi_trip_of(files);

    early->slot = NULL;
    if (r->length <= DFI_FILL_PIECE && !is_read_in_parts(r) && may_ask(files, r))
        df_trip_read_ask(&trip, r->handle, r->length, (off_t)r->offset, early);
}

/* How many bytes have come; without memory they are not wanted. */
static long take_early(struct dfi_files *files, const struct request *r,
                       const struct df_trip_early *early, char *memory)
{
    struct df_trip trip = dfi_trip_of(files);
    long ret;

    if (!early->slot)
        return 0;
    if (memory)
        make_pages(r, memory, early->size); /* meanwhile */
    ret = df_trip_read_take(&trip, early, memory);
    return dfi_as_told(ret);
}

static long map_private(struct dfi_files *files, const struct request *r)
{
    unsigned long flags = (r->flags & ~(unsigned long)(MAP_TYPE | MAP_SYNC | MAP_POPULATE)) |
                          MAP_PRIVATE | MAP_ANONYMOUS;
    struct df_trip_early early;
    size_t end = 0;
    long at, ret;

    ask_early(files, r, &early);
    at = map_there(files, r->address, r->length, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (!IS_ERROR(at) && r->length >= HUGE) /* or it is refused */
        dfi_kernel(__NR_madvise, at, r->length, MADV_HUGEPAGE);
    ret = take_early(files, r, &early, IS_ERROR(at) ? NULL : (char *)at);
    if (IS_ERROR(at))
        return at;
    if (ret >= 0)
        ret = fill_wanted(r, (char *)at, (size_t)ret, &end);
    if (ret >= 0) {
        rewrite(files, r, (unsigned long)at, (size_t)ret);
        ret = close_memory(files, r, (unsigned long)at, (size_t)ret, end);
    }
    if (ret < 0) {
        dfi_copies_cut(files, (unsigned long)at, (unsigned long)at + whole_pages(r->length));
        dfi_rewrite_changed((unsigned long)at, whole_pages(r->length));
        dfi_kernel(__NR_munmap, at, r->length);
        return ret;
    }
    return at;
}

/* Whether its memory is brought when it is touched. */
static bool is_late(const struct df_ofd *ofd)
{
    return __atomic_load_n(&ofd->marks, __ATOMIC_ACQUIRE) & DFI_SHADOW_CHUNKED;
}

static long map_data(struct dfi_files *files, const struct request *r, const struct df_ofd *ofd,
                     bool late)
{
    bool at_once = !late || r->prot & PROT_EXEC; /* whether it may be executed is seen here */
    unsigned long flags = late ? r->flags & ~(unsigned long)(MAP_POPULATE | MAP_LOCKED) : r->flags;
    long at, data = dfi_shadow_data(
                 files, ofd, (atomic_load(&ofd->flags) & O_ACCMODE) == O_RDWR ? O_RDWR : O_RDONLY);

    if (data < 0)
        return data;
    at = map_there(files, r->address, r->length, at_once ? r->prot : PROT_NONE, flags, data,
                   r->offset);
    dfi_brief_close(data);
    if (late && at_once && !IS_ERROR(at))
        dfi_kernel(__NR_mprotect, at, r->length, PROT_NONE);
    return at;
}

static long map_file(struct dfi_files *files, const struct request *r, const struct df_ofd *ofd)
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
        return map_private(files, r);
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
    if (r->prot & PROT_WRITE)
        dfi_maps_store(files, m.start, m.end);
    return at;
}

/* As dynamic linkers map libraries, and what they execute. */
static bool is_of_library(const struct request *r)
{
    return r->flags & MAP_DENYWRITE || r->prot & PROT_EXEC;
}

/* Copying a part of a large file is no waste: libraries are mapped so, and headers of archives. */
static bool is_small(const struct request *r)
{
    return r->length <= (size_t)DFI_SHADOW_WHOLE || is_of_library(r);
}

/* A large one would be brought by chunks, each by a fault. */
static bool is_file_small(struct dfi_files *files, const struct request *r)
{
    struct stat st;

    return look(files, r, &st) && st.st_size <= DFI_SHADOW_WHOLE;
}

/* Git maps its packs and its index so, in each of its processes. The first time costs less as a
 * copy, and is the only one of most files. */
static bool is_worth_keeping(struct dfi_files *files, const struct request *r,
                             const struct df_ofd *ofd)
{
    return r->prot == PROT_READ && r->length >= (size_t)DFI_KEPT_LEAST && !is_of_library(r) &&
           dfi_kept_again(files, ofd, r->handle) && is_file_small(files, r);
}

/* By the dynamic linker, which nobody can look at meanwhile: writable until what is learnt of it is
 * rewritten. */
static bool is_to_be_rewritten(const struct request *r)
{
    return dfi_rewrite_on && r->links && r->prot == (PROT_READ | PROT_EXEC);
}

static long map_code(struct dfi_files *files, const struct request *r, long fd)
{
    unsigned long flags = r->flags & ~(unsigned long)MAP_SYNC;
    size_t whole = whole_pages(r->length);
    bool open = is_to_be_rewritten(r);
    long ret, at = map_there(files, r->address, r->length, open ? PROT_READ | PROT_WRITE : r->prot,
                             flags, fd, r->offset);

    if (IS_ERROR(at))
        return at;
    if (open)
        dfi_rewrite_copy((uintptr_t)at, whole, learnt_file(files, r), r->offset);
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
static long map_shared_code(struct dfi_files *files, const struct request *r)
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
static long map_small(struct dfi_files *files, const struct request *r, const struct df_ofd *ofd)
{
    long at = map_shared_code(files, r);

    if (IS_ERROR(at) && is_worth_keeping(files, r, ofd))
        at = map_file(files, r, ofd);
    if (IS_ERROR(at))
        at = map_private(files, r);
    return at == -EACCES && r->prot & PROT_EXEC ? map_file(files, r, ofd) : at;
}

static long map_it(struct dfi_files *files, const struct request *r, const struct df_ofd *ofd)
{
    if ((r->flags & MAP_TYPE) == MAP_PRIVATE && is_small(r))
        return map_small(files, r, ofd);
    return map_file(files, r, ofd);
}

/* Without a server mmap succeeds as behind the kernel, which asks nobody, and memory that would
 * have to be brought gives SIGBUS. */
static long map_ours(struct dfi_files *files, const struct request *r)
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
    if (IS_ERROR(ret) && df_link_lost(&files->link))
        return map_empty(files, r->address, r->length, r->prot, r->flags);
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
    struct request r = {.address = a[0],
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
    uintptr_t end = a[0] + whole_pages(a[1]);
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

    dfi_rewrite_changed(a[0], whole_pages(a[1]));
    if (a[2] & PROT_WRITE && dfi_maps_are_there(owner))
        dfi_maps_store(owner, a[0], a[0] + whole_pages(a[1]));
    if (dfi_process()->late == 0 || a[0] & (PAGE - 1))
        return DFI_PASS;
    return dfi_maps_protect(files, frame, a[0] + whole_pages(a[1]));
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
    written = dfi_maps_write_back(files, frame->args[0],
                                  frame->args[0] + whole_pages(frame->args[1]), flags & MS_SYNC);
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
    size_t old = whole_pages(a[1]), size = whole_pages(a[2]);
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
    if (IS_ERROR(at))
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
