/*
 * map_copies.c - which memory is a private copy of a file, and what madvise(2) does with it.
 */
#include "shadows/map_copies.h"

#include <string.h>
#include <sys/mman.h>

#include "shadows/map.h"

#define PAGE       4096ul
#define FIRST_ROOM 32

#ifndef MADV_DONTNEED_LOCKED
#define MADV_DONTNEED_LOCKED 24
#endif
#define GUARD_INSTALL 102 /* MADV_GUARD_INSTALL of Linux 6.13 */

/* A child that shares our memory has none of its own. */
static struct dfi_files *owner(struct dfi_files *files)
{
    return files->lender ? files->lender : files;
}

static bool has_any(const struct dfi_files *files)
{
    return __atomic_load_n(&files->copies.count, __ATOMIC_RELAXED) > 0;
}

static bool overlaps(const struct dfi_range *r, uintptr_t start, uintptr_t end)
{
    return r->start < end && r->end > start;
}

/* ---- their files ------------------------------------------------------------------------------
 */

struct dfi_copied *dfi_copied_new(const char *name)
{
    size_t len = strnlen(name, PATH_MAX - 1);
    struct dfi_copied *of = dfi_alloc(sizeof(*of) + len + 1);

    if (!of)
        return NULL;
    of->uses = 1;
    *(char *)mempcpy(of->name, name, len) = '\0';
    return of;
}

void dfi_copied_drop(struct dfi_copied *of)
{
    if (of && --of->uses == 0)
        dfi_free(of);
}

/* ---- the list, under the lock of the mappings ------------------------------------------------ */

static bool make_room(struct dfi_copies *copies)
{
    size_t room = copies->room ? copies->room * 2 : FIRST_ROOM;
    struct dfi_range *list;

    if (copies->count < copies->room)
        return true;
    if (!(list = dfi_alloc(room * sizeof(*list))))
        return false;
    if (copies->list)
        memcpy(list, copies->list, copies->count * sizeof(*list));
    dfi_free(copies->list);
    copies->list = list;
    copies->room = room;
    return true;
}

static bool add(struct dfi_copies *copies, const struct dfi_range *range)
{
    if (!make_room(copies))
        return false;
    copies->list[copies->count] = *range;
    if (range->of)
        range->of->uses++;
    __atomic_store_n(&copies->count, copies->count + 1, __ATOMIC_RELAXED);
    return true;
}

/* What it is from there on. */
static struct dfi_range behind(const struct dfi_range *r, uintptr_t at)
{
    return (struct dfi_range){at, r->end, r->offset + (at - r->start), r->of};
}

static void take_off(struct dfi_copies *copies, struct dfi_range *r)
{
    dfi_copied_drop(r->of);
    *r = copies->list[copies->count - 1];
    __atomic_store_n(&copies->count, copies->count - 1, __ATOMIC_RELAXED);
}

/* Without room for what is behind the hole, that is forgotten. */
static void cut(struct dfi_copies *copies, uintptr_t start, uintptr_t end)
{
    for (size_t i = copies->count; i-- > 0;) {
        struct dfi_range *r = &copies->list[i];
        const struct dfi_range rest = behind(r, end);
        bool is_longer = r->end > end;

        if (!overlaps(r, start, end))
            continue;
        if (r->start >= start && is_longer) {
            *r = rest;
        } else if (r->start >= start) {
            take_off(copies, r);
        } else {
            r->end = start;
            if (is_longer)
                add(copies, &rest);
        }
    }
}

/* The first one of the range. NULL: there is none. */
static const struct dfi_range *first_in(const struct dfi_copies *copies, uintptr_t start,
                                        uintptr_t end)
{
    const struct dfi_range *first = NULL;

    for (size_t i = 0; i < copies->count; i++) {
        const struct dfi_range *r = &copies->list[i];

        if (overlaps(r, start, end) && (!first || r->start < first->start))
            first = r;
    }
    return first;
}

/* ---- mappings that come and go --------------------------------------------------------------- */

bool dfi_copies_any(struct dfi_files *files)
{
    return has_any(owner(files));
}

bool dfi_copies_in(struct dfi_files *files, uintptr_t start, uintptr_t end)
{
    bool any;

    files = owner(files);
    if (!has_any(files))
        return false;
    dfi_maps_lock(files);
    any = first_in(&files->copies, start, end);
    dfi_maps_unlock(files);
    return any;
}

/* Segments of a library come one behind the other. Of one use more. */
static struct dfi_copied *file_of(const struct dfi_copies *copies, const char *name)
{
    struct dfi_copied *last = copies->count > 0 ? copies->list[copies->count - 1].of : NULL;

    if (!last || strcmp(last->name, name) != 0)
        return dfi_copied_new(name);
    last->uses++;
    return last;
}

long dfi_copies_add(struct dfi_files *files, uintptr_t start, uintptr_t end, const char *name,
                    uint64_t offset)
{
    struct dfi_range range = {start, end, offset, NULL};
    bool added;

    files = owner(files);
    dfi_maps_lock(files);
    range.of = file_of(&files->copies, name);
    added = add(&files->copies, &range);
    dfi_copied_drop(range.of);
    dfi_maps_unlock(files);
    return added ? 0 : -ENOMEM;
}

void dfi_copies_free(struct dfi_copies *copies)
{
    for (size_t i = 0; i < copies->count; i++)
        dfi_copied_drop(copies->list[i].of);
    dfi_free(copies->list);
}

void dfi_copies_forget(struct dfi_files *files, uintptr_t start, uintptr_t end)
{
    cut(&files->copies, start, end);
}

void dfi_copies_cut(struct dfi_files *files, uintptr_t start, uintptr_t end)
{
    files = owner(files);
    if (!has_any(files))
        return;
    dfi_maps_lock(files);
    cut(&files->copies, start, end);
    dfi_maps_unlock(files);
}

/* One that reaches across the address becomes two. Without room what is behind is forgotten. */
static void split(struct dfi_copies *copies, uintptr_t at)
{
    for (size_t i = 0; i < copies->count; i++) {
        struct dfi_range *r = &copies->list[i];
        const struct dfi_range rest = behind(r, at);

        if (r->start < at && r->end > at) {
            r->end = at;
            add(copies, &rest);
        }
    }
}

/* The last part grows. */
void dfi_copies_move(struct dfi_files *files, uintptr_t from, size_t old, uintptr_t to, size_t size)
{
    struct dfi_copies *copies;

    files = owner(files);
    if (!has_any(files))
        return;
    copies = &files->copies;
    dfi_maps_lock(files);
    if (size < old)
        cut(copies, from + size, from + old);
    split(copies, from);
    split(copies, from + old);
    for (size_t i = 0; i < copies->count; i++) {
        struct dfi_range *r = &copies->list[i];

        if (r->start < from || r->end > from + old)
            continue;
        r->end = (r->end == from + old ? from + size : r->end) - from + to;
        r->start = r->start - from + to;
    }
    dfi_maps_unlock(files);
}

/* ---- madvise --------------------------------------------------------------------------------- */

/* The copies stay as they are: what was stored there, too, which behind the kernel is the file's
 * again. What lies between them is the kernel's. The first error. */
static long drop_others(const struct dfi_copies *copies, uintptr_t start, uintptr_t end, int advice)
{
    const struct dfi_range *r;
    long ret = 0, one;

    while (start < end) {
        uintptr_t until = (r = first_in(copies, start, end)) && r->start < end ? r->start : end;

        if (until > start) {
            one = dfi_kernel(__NR_madvise, start, until - start, advice);
            ret = ret == 0 ? one : ret;
        }
        start = r ? r->end : end;
    }
    return ret;
}

static long advise(const struct dfi_copies *copies, uintptr_t start, uintptr_t end, int advice)
{
    if (!first_in(copies, start, end))
        return DFI_PASS;
    switch (advice) {
    case MADV_DONTNEED:
    case MADV_DONTNEED_LOCKED:
        return drop_others(copies, start, end, advice);
    case MADV_FREE:
    case MADV_WIPEONFORK:
        return -EINVAL; /* for anonymous memory only */
    case GUARD_INSTALL:
        return -EINVAL; /* so was it before Linux 6.15: what lies there would be lost */
    case MADV_REMOVE:
        return -EACCES; /* for shared memory only */
    default:
        return DFI_PASS;
    }
}

long dfi_copies_advise(struct dfi_files *files, uintptr_t start, uintptr_t end, int advice)
{
    long ret;

    files = owner(files);
    if (!has_any(files))
        return DFI_PASS;
    dfi_maps_lock(files);
    ret = advise(&files->copies, start, end, advice);
    dfi_maps_unlock(files);
    return ret;
}

bool dfi_copies_drops(int advice)
{
    return advice == MADV_DONTNEED || advice == MADV_DONTNEED_LOCKED || advice == GUARD_INSTALL;
}
