/*
 * table.c - the server's table of mounts, copied to where native/core looks.
 *
 * A place in the server's table is a place here: a df_mount is never moved, so a call that is under
 * way while the table changes goes on with the mount it found, or with one that the server refuses.
 */
#include "client/table.h"

#include <string.h>

#include "client/remote.h"
#include "core/scan.h"
#include "core/table.h"
#include "intercept/intercept.h"

static struct dfi_lock lock DFI_HOT; /* of one refresh */
static struct { /* the first places, which most programs use alone, lie on one page */
    _Alignas(4096) struct df_table_entry entries[DF_MOUNT_COUNT];
    struct df_mount mounts[DF_MOUNT_COUNT];
} table __attribute__((section(".bss.table")));
/* segment->mounts_changed of the copy, + 1; 0: there is none. */
static _Atomic uint32_t seen DFI_HOT;
static _Atomic int count DFI_HOT; /* places in use; none behind it */
static _Atomic bool covering;     /* a mount lies where something is on disk, too */

/* In memory that stays: calls under way may look at it. */
static char *copy_point(const struct df_table_entry *former, const struct df_shared_mount *from)
{
    bool fits = former->point && former->point_len >= from->point_len;
    char *point = fits ? (char *)former->point : dfi_alloc((size_t)from->point_len + 1);

    return point ? memcpy(point, from->point, (size_t)from->point_len + 1) : NULL;
}

static void copy_mount(int i, const struct df_shared_mount *from, int32_t id)
{
    struct df_mount *to = &table.mounts[i];
    char *point;

    atomic_store(&to->live, 0);
    if (!(point = copy_point(&table.entries[i], from)))
        return;
    to->id = id;
    to->flags = from->flags & DF_SHARED_READONLY ? DF_ATTACH_READONLY : 0;
    to->dev = from->dev;
    to->point_len = from->point_len;
    to->point = point;
    atomic_store(&to->plain_stat, false);
    atomic_store(&to->root, 0);
    atomic_store(&to->fs, &dfi_remote);
    table.entries[i] = (struct df_table_entry){point, from->point_len, id, to};
    atomic_store(&to->live, id);
}

static void copy(const struct df_segment *segment)
{
    const struct df_shared_mount *from = df_segment_mounts(segment);
    int filled = (int)atomic_load_explicit(&segment->mounts_used, memory_order_acquire);
    int before = atomic_load(&count), used = 0;
    bool covers = false;

    /* No further: to look at a place is to touch a page, in each program that starts. */
    for (int i = 0; i < DF_MOUNT_COUNT && (i < filled || i < before); i++) {
        int32_t id = atomic_load_explicit(&from[i].live, memory_order_acquire);

        if (id > 0 && (i >= before || id != atomic_load(&table.mounts[i].live)) &&
            from[i].point_len < PATH_MAX)
            copy_mount(i, &from[i], id);
        else if (id == 0 && i < before)
            atomic_store(&table.mounts[i].live, 0);
        if (id > 0) {
            covers = covers || (from[i].flags & DF_SHARED_COVERS);
            used = i + 1;
        }
    }
    atomic_store(&covering, covers);
    atomic_store(&count, used);
}

/* Apart: a call that finds nothing changed needs none of its registers. */
__attribute__((noinline)) static void copy_changed(const struct df_segment *segment,
                                                   uint32_t changed)
{
    dfi_lock(&lock);
    copy(segment);
    atomic_store(&seen, changed);
    dfi_unlock(&lock);
}

void dfi_table_refresh(const struct df_segment *segment)
{
    uint32_t changed;

    if (!segment) /* a run without mounts */
        return;
    changed = atomic_load_explicit(&segment->mounts_changed, memory_order_acquire) + 1;
    if (__builtin_expect(atomic_load_explicit(&seen, memory_order_acquire) != changed, 0))
        copy_changed(segment, changed);
}

void dfi_table_lock(void)
{
    dfi_lock(&lock);
}

void dfi_table_unlock(void)
{
    dfi_unlock(&lock);
}

static bool live(int i)
{
    return atomic_load_explicit(&table.mounts[i].live, memory_order_acquire) != 0;
}

uint32_t dfi_table_version(void)
{
    return atomic_load_explicit(&seen, memory_order_acquire);
}

int dfi_table_places(void)
{
    return atomic_load_explicit(&count, memory_order_acquire);
}

const char *dfi_table_point(int i)
{
    return live(i) ? table.entries[i].point : NULL;
}

struct df_mount *dfi_table_mount(int32_t id)
{
    int used = atomic_load_explicit(&count, memory_order_acquire);

    for (int i = 0; i < used; i++)
        if (atomic_load_explicit(&table.mounts[i].live, memory_order_acquire) == id)
            return &table.mounts[i];
    return NULL;
}

static bool begins_with(const char *point, const char *name, size_t len)
{
    return memcmp(point + 1, name, len) == 0 && (point[1 + len] == '/' || point[1 + len] == '\0');
}

/* Does a mountpoint begin with this name, which is `len` long? */
static inline bool is_first(const char *name, size_t len)
{
    int used = atomic_load_explicit(&count, memory_order_acquire);

    for (int i = 0; i < used; i++)
        if (live(i) && table.entries[i].point_len > len &&
            begins_with(table.entries[i].point, name, len))
            return true;
    return false;
}

/* The same for a path with "..": wherever it climbs to, by its text. Where ".." leads behind a
 * symlink only the kernel knows, which finds what is on disk; a mountpoint that is not cannot be
 * found, but it could be made: not by this call, unless the last name is one's. */
static bool is_foreign_above(const char *path)
{
    const char *name, *end;
    unsigned depth = 0;
    bool last = false;

    if (atomic_load_explicit(&covering, memory_order_acquire))
        return false;
    for (end = path; *end == '/'; end = df_scan_end(name)) {
        unsigned dots = df_scan_dots(name = end + 1);
        size_t len = (size_t)(df_scan_end(name) - name);

        if (dots == 2)
            depth -= depth > 0;
        if (dots > 0 || len == 0)
            continue;
        if (depth++ == 0 && is_first(name, len))
            return false;
        last = dfi_table_is_last(name, len);
    }
    return !last;
}

bool dfi_table_is_foreign(const char *path, size_t len)
{
    const char *name = path + 1, *end = df_scan_end(name);

    if (*name == '/' || *name == '.')
        return false;
    if (is_first(name, (size_t)(end - name)))
        return false;
    if (!df_scan_has_pair(end, len - (size_t)(end - path)) || !strstr(end, "/.."))
        return true;
    return is_foreign_above(path);
}

bool dfi_table_is_last(const char *name, size_t len)
{
    int used = atomic_load_explicit(&count, memory_order_acquire);

    for (int i = 0; i < used; i++) {
        const char *end = table.entries[i].point + table.entries[i].point_len;

        if (live(i) && table.entries[i].point_len > len && end[-(long)len - 1] == '/' &&
            memcmp(end - len, name, len) == 0)
            return true;
    }
    return false;
}

/* ---- core/table.h -------------------------------------------------------------------------- */

bool df_table_any(void)
{
    return atomic_load_explicit(&count, memory_order_acquire) > 0;
}

const struct df_table_entry *df_table_lookup(const char *path, size_t len)
{
    int used = atomic_load_explicit(&count, memory_order_acquire);
    const struct df_table_entry *best = NULL;

    for (int i = 0; i < used; i++) {
        const struct df_table_entry *e = &table.entries[i];

        if (!live(i) || e->point_len > len || (best && e->point_len <= best->point_len))
            continue;
        if ((len == e->point_len || path[e->point_len] == '/') &&
            memcmp(e->point, path, e->point_len) == 0)
            best = e;
    }
    return best;
}

static bool has_component(const char *point, const char *component, size_t len)
{
    while (*point == '/') {
        size_t own = 0;

        point++;
        while (point[own] != '/' && point[own] != '\0')
            own++;
        if (own == len && memcmp(point, component, len) == 0)
            return true;
        point += own;
    }
    return false;
}

/* No program stands in a directory that a mount covers, unless the first one was started there. */
bool df_table_may_begin(const char *component, size_t len)
{
    int used = atomic_load_explicit(&count, memory_order_acquire);

    for (int i = 0; i < used; i++)
        if (live(i) && has_component(table.entries[i].point, component, len))
            return true;
    return false;
}

bool df_table_below(const char *path, size_t len)
{
    int used = atomic_load_explicit(&count, memory_order_acquire);

    if (len == 1) /* "/" */
        len = 0;
    for (int i = 0; i < used; i++)
        if (live(i) && table.entries[i].point_len > len && table.entries[i].point[len] == '/' &&
            memcmp(table.entries[i].point, path, len) == 0)
            return true;
    return false;
}
