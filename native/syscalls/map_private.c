/*
 * map_private.c - a private mapping of a small file: anonymous memory, filled at once.
 */
#include "syscalls/map_request.h"

#include <fcntl.h>
#include <sys/mman.h>

#include "core/calls.h"
#include "core/fd.h"
#include "intercept/brief.h"
#include "intercept/learn.h"
#include "intercept/rewrite.h"
#include "shadows/map_copies.h"
#include "shadows/map_library.h"
#include "shadows/shadow.h"
#include "shadows/shadow_fill.h"

#define PAGE 4096ul
#define HUGE (4ul << 20) /* bytes: a copy of so many is made of huge pages */

/* Those of a file that is mapped by others are not the server's. */
static bool may_ask(const struct dfi_files *files, const struct dfi_map_request *r)
{
    const struct df_ofd *ofd = dfi_ofd(files, r->handle);

    return ofd && !(ofd->flags & O_DIRECT) &&
           !(__atomic_load_n(&ofd->marks, __ATOMIC_ACQUIRE) & DFI_SHADOW_MAPPED);
}

/* The first bytes of what is large, as far as they come by messages. */
static long fill_large(const struct dfi_map_request *r, char *memory, size_t done, size_t end)
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
static void make_pages(const struct dfi_map_request *r, char *memory, size_t size)
{
    if (size > PAGE && r->length < HUGE)
        dfi_kernel(__NR_madvise, memory, dfi_map_whole_pages(size), MADV_POPULATE_WRITE);
}

/* Fills [done, end) of the memory. How many bytes of that end the file had; behind them it stays
 * zero. */
static long fill(const struct dfi_map_request *r, char *memory, size_t done, size_t end)
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
static bool is_read_in_parts(const struct dfi_map_request *r)
{
    return dfi_map_may_be_library(r->flags, r->offset) && r->length > PAGE;
}

/* Fills what will be looked at, from `done` on: of a library that its dynamic linker maps, no more
 * than the first segment. *end: where that ends; what fill() says of it. */
static long fill_wanted(const struct dfi_map_request *r, char *memory, size_t done, size_t *end)
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

long dfi_map_empty(struct dfi_files *files, unsigned long from, size_t size, unsigned long prot,
                   unsigned long flags)
{
    long empty = dfi_brief(__NR_memfd_create, "directfuse-end", MFD_CLOEXEC), at;

    if (empty < 0)
        return empty;
    at = dfi_map_there(files, from, size, prot, flags, empty, 0);
    dfi_brief_close(empty);
    return at;
}

static long end_memory(struct dfi_files *files, unsigned long from, unsigned long end,
                       unsigned long prot)
{
    long at =
        from < end ? dfi_map_empty(files, from, end - from, prot, MAP_PRIVATE | MAP_FIXED) : 0;

    return DFI_MAP_IS_ERROR(at) ? at : 0;
}

/* The file's bytes lie in [at, at + size), of a mapping that is longer, perhaps: all of it is of
 * the file, to /proc/self/maps. */
static long note_copy(struct dfi_files *files, const struct dfi_map_request *r, unsigned long at,
                      size_t size, size_t whole)
{
    const char *name = df_segment_name(files->link.segment, r->handle);
    long ret = end_memory(files, at + size, at + whole, r->prot);

    return ret < 0 ? ret : dfi_copies_add(files, at, at + whole, name, r->offset);
}

bool dfi_map_look(struct dfi_files *files, const struct dfi_map_request *r, struct stat *st)
{
    struct df_trip trip = dfi_trip_of(files);
    struct df_trip_where where = {.base = r->handle, .name = ""};

    return df_trip_getattr(&trip, &where, st) == 0;
}

int dfi_map_learnt(struct dfi_files *files, const struct dfi_map_request *r)
{
    struct stat st;

    if (!r->links || !dfi_map_look(files, r, &st))
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
static void rewrite(struct dfi_files *files, const struct dfi_map_request *r, unsigned long at,
                    size_t size)
{
    if (dfi_rewrite_on && r->prot == (PROT_READ | PROT_EXEC) && size > 0)
        dfi_rewrite_copy(at, size, dfi_map_learnt(files, r), r->offset);
}

/* What is behind the memory that was filled: pages behind the end of the file, and from `end` on
 * what is covered by other segments, or would be read as zeros. */
static long close_memory(struct dfi_files *files, const struct dfi_map_request *r, unsigned long at,
                         size_t filled, size_t end)
{
    long ret = note_copy(files, r, at, dfi_map_whole_pages(filled), dfi_map_whole_pages(end));

    if (ret == 0 && end < r->length)
        ret = dfi_kernel(__NR_mprotect, at + end, dfi_map_whole_pages(r->length) - end, PROT_NONE);
    if (ret == 0 && r->prot != (PROT_READ | PROT_WRITE))
        ret = dfi_kernel(__NR_mprotect, at, end, r->prot);
    return ret;
}

/* The first bytes are on their way while the kernel makes the memory. */
static void ask_early(struct dfi_files *files, const struct dfi_map_request *r,
                      struct df_trip_early *early)
{
    struct df_trip trip = dfi_trip_of(files);

    early->slot = NULL;
    if (r->length <= DFI_FILL_PIECE && !is_read_in_parts(r) && may_ask(files, r))
        df_trip_read_ask(&trip, r->handle, r->length, (off_t)r->offset, early);
}

/* How many bytes have come; without memory they are not wanted. */
static long take_early(struct dfi_files *files, const struct dfi_map_request *r,
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

long dfi_map_private(struct dfi_files *files, const struct dfi_map_request *r)
{
    unsigned long flags = (r->flags & ~(unsigned long)(MAP_TYPE | MAP_SYNC | MAP_POPULATE)) |
                          MAP_PRIVATE | MAP_ANONYMOUS;
    struct df_trip_early early;
    size_t end = 0;
    long at, ret;

    ask_early(files, r, &early);
    at = dfi_map_there(files, r->address, r->length, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (!DFI_MAP_IS_ERROR(at) && r->length >= HUGE) /* or it is refused */
        dfi_kernel(__NR_madvise, at, r->length, MADV_HUGEPAGE);
    ret = take_early(files, r, &early, DFI_MAP_IS_ERROR(at) ? NULL : (char *)at);
    if (DFI_MAP_IS_ERROR(at))
        return at;
    if (ret >= 0)
        ret = fill_wanted(r, (char *)at, (size_t)ret, &end);
    if (ret >= 0) {
        rewrite(files, r, (unsigned long)at, (size_t)ret);
        ret = close_memory(files, r, (unsigned long)at, (size_t)ret, end);
    }
    if (ret < 0) {
        dfi_copies_cut(files, (unsigned long)at,
                       (unsigned long)at + dfi_map_whole_pages(r->length));
        dfi_rewrite_changed((unsigned long)at, dfi_map_whole_pages(r->length));
        dfi_kernel(__NR_munmap, at, r->length);
        return ret;
    }
    return at;
}
