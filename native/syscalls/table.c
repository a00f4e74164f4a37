/*
 * table.c - the server's table of mounts, copied to where native/core looks.
 *
 * A place in the server's table is a place here: a df_mount is never moved, so a call that is under
 * way while the table changes goes on with the mount it found, or with one that the server refuses.
 */
#include "syscalls/table.h"

#include <string.h>

#include "core/scan.h"
#include "core/table.h"
#include "intercept/intercept.h"
#include "syscalls/remote.h"

static struct dfi_lock lock; /* of one refresh */
static struct df_mount mounts[DF_MOUNT_COUNT];
static struct df_table_entry entries[DF_MOUNT_COUNT];
static char points[DF_MOUNT_COUNT][PATH_MAX];
static _Atomic uint32_t seen; /* segment->mounts_changed of the copy, + 1; 0: there is none */
static _Atomic int count;     /* places in use; none behind it */

static void copy_mount(int i, const struct df_shared_mount *from, int32_t id)
{
    struct df_mount *to = &mounts[i];

    atomic_store(&to->live, 0);
    memcpy(points[i], from->point, from->point_len + 1);
    to->id = id;
    to->flags = from->flags & DF_SHARED_READONLY ? DF_ATTACH_READONLY : 0;
    to->dev = from->dev;
    to->point_len = from->point_len;
    to->point = points[i];
    atomic_store(&to->plain_stat, false);
    atomic_store(&to->fs, &dfi_remote);
    entries[i] = (struct df_table_entry){points[i], from->point_len, id, to};
    atomic_store(&to->live, id);
}

static void copy(const struct df_segment *segment)
{
    const struct df_shared_mount *from = df_segment_mounts(segment);
    int filled = (int)atomic_load_explicit(&segment->mounts_used, memory_order_acquire);
    int before = atomic_load(&count), used = 0;

    /* No further: to look at a place is to touch a page, in each program that starts. */
    for (int i = 0; i < DF_MOUNT_COUNT && (i < filled || i < before); i++) {
        int32_t id = atomic_load_explicit(&from[i].live, memory_order_acquire);

        if (id > 0 && id != atomic_load(&mounts[i].live) && from[i].point_len < PATH_MAX)
            copy_mount(i, &from[i], id);
        else if (id == 0)
            atomic_store(&mounts[i].live, 0);
        if (id > 0)
            used = i + 1;
    }
    atomic_store(&count, used);
}

void dfi_table_refresh(const struct df_segment *segment)
{
    uint32_t changed;

    if (!segment) /* a run without mounts */
        return;
    changed = atomic_load_explicit(&segment->mounts_changed, memory_order_acquire) + 1;

    if (__builtin_expect(atomic_load_explicit(&seen, memory_order_acquire) == changed, 1))
        return;
    dfi_lock(&lock);
    copy(segment);
    atomic_store(&seen, changed);
    dfi_unlock(&lock);
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
    return atomic_load_explicit(&mounts[i].live, memory_order_acquire) != 0;
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
    return live(i) ? points[i] : NULL;
}

struct df_mount *dfi_table_mount(int32_t id)
{
    int used = atomic_load_explicit(&count, memory_order_acquire);

    for (int i = 0; i < used; i++)
        if (atomic_load_explicit(&mounts[i].live, memory_order_acquire) == id)
            return &mounts[i];
    return NULL;
}

static bool begins_with(const char *point, const char *name, size_t len)
{
    return memcmp(point + 1, name, len) == 0 && (point[1 + len] == '/' || point[1 + len] == '\0');
}

bool dfi_table_is_foreign(const char *path)
{
    int used = atomic_load_explicit(&count, memory_order_acquire);
    const char *name = path + 1, *end = df_scan_end(name);
    size_t len = (size_t)(end - name);

    if (*name == '/' || *name == '.')
        return false;
    for (int i = 0; i < used; i++)
        if (live(i) && entries[i].point_len > len && begins_with(entries[i].point, name, len))
            return false;
    for (; *end != '\0'; end++)
        if (end[0] == '/' && end[1] == '.' && end[2] == '.')
            return false;
    return true;
}

bool dfi_table_is_last(const char *name)
{
    int used = atomic_load_explicit(&count, memory_order_acquire);
    size_t len = strlen(name);

    for (int i = 0; i < used; i++) {
        const char *end = entries[i].point + entries[i].point_len;

        if (live(i) && entries[i].point_len > len && end[-(long)len - 1] == '/' &&
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
        const struct df_table_entry *e = &entries[i];

        if (!live(i) || e->point_len > len || (best && e->point_len <= best->point_len))
            continue;
        if (memcmp(e->point, path, e->point_len) == 0 &&
            (len == e->point_len || path[e->point_len] == '/'))
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
        if (live(i) && has_component(entries[i].point, component, len))
            return true;
    return false;
}

bool df_table_below(const char *path, size_t len)
{
    int used = atomic_load_explicit(&count, memory_order_acquire);

    if (len == 1) /* "/" */
        len = 0;
    for (int i = 0; i < used; i++)
        if (live(i) && entries[i].point_len > len && entries[i].point[len] == '/' &&
            memcmp(entries[i].point, path, len) == 0)
            return true;
    return false;
}
