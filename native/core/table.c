/*
 * table.c - the snapshot of all mountpoints, and the longest prefix.
 */
#include "core/table.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "core/gate.h"
#include "core/mount.h"

/* A snapshot: entries, longest first, and behind them the strings they point to. */
struct df_table {
    struct df_retired retired;
    uint32_t count;
    bool on_disk; /* a mountpoint exists on disk: a working directory may lie below it */
    struct df_table_entry entries[];
};

static _Atomic(struct df_table *) table; /* NULL: no mounts. Old ones are retired */

/* ---- readers ------------------------------------------------------------------------------- */

bool df_table_any(void)
{
    return atomic_load_explicit(&table, memory_order_relaxed) != NULL;
}

static inline bool covers(const struct df_table_entry *entry, const char *path, size_t len)
{
    uint32_t n = entry->point_len;

    if (n > len || (path[n] != '/' && path[n] != '\0'))
        return false;
    return memcmp(path, entry->point, n) == 0;
}

const struct df_table_entry *df_table_lookup(const char *path, size_t len)
{
    const struct df_table *t = atomic_load_explicit(&table, memory_order_acquire);

    if (!t)
        return NULL;
    for (uint32_t i = 0; i < t->count; i++)
        if (covers(&t->entries[i], path, len))
            return &t->entries[i];
    return NULL;
}

static bool has_component(const char *point, const char *component, size_t len)
{
    for (const char *p = point; *p == '/'; p += strcspn(p, "/"))
        if (strncmp(++p, component, len) == 0 && (p[len] == '/' || p[len] == '\0'))
            return true;
    return false;
}

bool df_table_may_begin(const char *component, size_t len)
{
    const struct df_table *t = atomic_load_explicit(&table, memory_order_acquire);

    if (!t)
        return false;
    for (uint32_t i = 0; i < t->count; i++)
        if (t->on_disk || has_component(t->entries[i].point, component, len))
            return true;
    return false;
}

bool df_table_below(const char *path, size_t len)
{
    const struct df_table *t = atomic_load_explicit(&table, memory_order_acquire);

    for (uint32_t i = 0; t && i < t->count; i++) {
        const struct df_table_entry *entry = &t->entries[i];

        if (entry->point_len > len && entry->point[len] == '/' &&
            memcmp(entry->point, path, len) == 0)
            return true;
    }
    return false;
}

/* ---- making one ---------------------------------------------------------------------------- */

static void free_retired(struct df_retired *retired)
{
    free(retired);
}

static void add_entry(struct df_table *t, const struct df_mount *mount, const char *point,
                      char **strings)
{
    struct df_table_entry entry = {*strings, (uint32_t)strlen(point), mount->id,
                                   (struct df_mount *)mount};
    uint32_t at = t->count++;

    *strings = stpcpy(*strings, point) + 1;
    for (; at > 0 && t->entries[at - 1].point_len < entry.point_len; at--)
        t->entries[at] = t->entries[at - 1];
    t->entries[at] = entry;
}

/* Entries, and behind them their strings. */
static struct df_table *allocate(const struct df_mount *mounts, char **strings)
{
    size_t count = 0, bytes = 0;
    struct df_table *t;

    for (const struct df_mount *m = mounts; m; m = m->next) {
        count += m->alias ? 2 : 1;
        bytes += strlen(m->point) + 1 + (m->alias ? strlen(m->alias) + 1 : 0);
    }
    t = malloc(sizeof(*t) + count * sizeof(t->entries[0]) + bytes);
    if (!t)
        return NULL;
    t->count = 0;
    t->on_disk = false;
    *strings = (char *)&t->entries[count];
    return t;
}

struct df_table *df_table_make(const struct df_mount *mounts, int *error)
{
    char *strings;
    struct df_table *t = allocate(mounts, &strings);

    *error = t ? 0 : -ENOMEM;
    for (const struct df_mount *m = mounts; t && m; m = m->next) {
        if (!m->listed)
            continue;
        add_entry(t, m, m->point, &strings);
        if (m->alias)
            add_entry(t, m, m->alias, &strings);
        t->on_disk = t->on_disk || m->covers != 0;
    }
    if (t && t->count == 0) {
        free(t);
        t = NULL;
    }
    return t;
}

void df_table_free(struct df_table *t)
{
    free(t);
}

void df_table_publish(struct df_table *t)
{
    struct df_table *old = atomic_exchange(&table, t);

    if (old)
        df_gate_retire(&old->retired, free_retired);
}
