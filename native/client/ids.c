/*
 * ids.c - ids of a user namespace, and those of the run.
 */
#include "client/ids.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "client/number.h"
#include "intercept/brief.h"

#define NOBODY   65534 /* /proc/sys/kernel/overflowuid, unless somebody has changed it */
#define MAP_SIZE 12288 /* 340 ranges, of 33 bytes each */

static const struct dfi_ids nothing;

/* The number of the namespace; 0: /proc does not say. */
static uint64_t number_of(void)
{
    struct stat st;

    return dfi_kernel(__NR_stat, "/proc/self/ns/user", &st) < 0 ? 0 : st.st_ino;
}

void dfi_ids_begin(struct dfi_files *files)
{
    if (atomic_load(&files->shared->user_ns) == 0)
        atomic_store(&files->shared->user_ns, number_of());
}

void dfi_ids_expect(struct dfi_files *files)
{
    if (!files->shared)
        return;
    atomic_store(&files->shared->namespaces, 1);
    files->ids_awaited = true;
}

/* ---- reading maps ---------------------------------------------------------------------------- */

static long read_text(const char *name, char *text, size_t size)
{
    long fd = dfi_brief(__NR_open, name, O_RDONLY | O_CLOEXEC, 0), len = 0, got = 1;

    if (fd < 0)
        return fd;
    while (got > 0 && (got = dfi_kernel(__NR_read, fd, text + len, size - 1 - (size_t)len)) > 0)
        len += got;
    dfi_brief_close(fd);
    text[len] = '\0';
    return got < 0 ? got : len;
}

static bool next_number(const char **text, uint32_t *number)
{
    while (**text == ' ' || **text == '\n')
        (*text)++;
    if (**text == '\0')
        return false;
    *number = (uint32_t)dfi_number_get(text);
    return true;
}

static bool next_range(const char **text, struct dfi_id_range *range)
{
    return next_number(text, &range->inside) && next_number(text, &range->outside) &&
           next_number(text, &range->count);
}

/* What two ranges have in common: what the upper one calls `inside` is the lower one's `outside`.
 */
static bool meet(const struct dfi_id_range *lower, const struct dfi_id_range *upper,
                 struct dfi_id_range *both)
{
    uint64_t start = lower->outside, end = start + lower->count;

    if (start < upper->inside)
        start = upper->inside;
    if (end > (uint64_t)upper->inside + upper->count)
        end = (uint64_t)upper->inside + upper->count;
    if (start >= end)
        return false;
    both->inside = lower->inside + (uint32_t)(start - lower->outside);
    both->outside = upper->outside + (uint32_t)(start - upper->inside);
    both->count = (uint32_t)(end - start);
    return true;
}

/* Puts the ranges of a map into `to`, in ids of the run; `upper` are those of the namespace above,
 * or NULL: that is the run's. to == NULL counts them. */
static uint32_t put_ranges(const char *text, const struct dfi_id_range *upper, uint32_t uppers,
                           struct dfi_id_range *to)
{
    struct dfi_id_range lower, both;
    uint32_t count = 0;

    while (next_range(&text, &lower)) {
        if (!upper && to)
            to[count] = lower;
        count += !upper;
        for (uint32_t i = 0; upper && i < uppers; i++) {
            if (!meet(&lower, &upper[i], &both))
                continue;
            if (to)
                to[count] = both;
            count++;
        }
    }
    return count;
}

static struct dfi_ids *make(uint32_t users, uint32_t groups, uint64_t ns)
{
    struct dfi_ids *ids =
        dfi_alloc(sizeof(*ids) + ((size_t)users + groups) * sizeof(ids->range[0]));

    if (ids)
        *ids = (struct dfi_ids){.ns = ns, .users = users, .groups = groups};
    return ids;
}

/* Of both maps; NULL: there is no memory. */
static struct dfi_ids *compose(const struct dfi_ids *above, const char *users, const char *groups)
{
    const struct dfi_id_range *upper = above ? above->range : NULL;
    const struct dfi_id_range *second = above ? above->range + above->users : NULL;
    uint32_t uppers = above ? above->users : 0, seconds = above ? above->groups : 0;
    struct dfi_ids *ids =
        make(put_ranges(users, upper, uppers, NULL), put_ranges(groups, second, seconds, NULL), 0);

    if (!ids)
        return NULL;
    put_ranges(users, upper, uppers, ids->range);
    put_ranges(groups, second, seconds, ids->range + ids->users);
    return ids;
}

/* What the namespace with that number has by now: each of its maps is written once, or never. */
static struct dfi_ids *read_maps(const struct dfi_ids *above, uint64_t ns)
{
    char *users = dfi_alloc(2 * MAP_SIZE), *groups = users + MAP_SIZE;
    struct dfi_ids *ids = NULL;
    bool both;

    if (!users)
        return NULL;
    users[0] = groups[0] = '\0';
    both = read_text("/proc/self/uid_map", users, MAP_SIZE) > 0;
    both = read_text("/proc/self/gid_map", groups, MAP_SIZE) > 0 && both;
    if ((ids = compose(above, users, groups)) && both)
        ids->ns = ns;
    dfi_free(users);
    return ids;
}

static bool take(struct dfi_files *files, struct dfi_ids *ids)
{
    const struct dfi_ids *before = files->ids;

    files->ids_awaited = !ids || ids->ns == 0;
    if (files->ids_awaited && before && before->ns == 0 &&
        (!ids || (ids->users == before->users && ids->groups == before->groups))) {
        dfi_free(ids);
        return false;
    }
    files->ids = ids ? ids : &nothing;
    return true;
}

bool dfi_ids_look(struct dfi_files *files)
{
    const struct dfi_ids *ids = files->ids;
    uint64_t ns;

    files->ids_awaited = false;
    if (!atomic_load_explicit(&files->shared->namespaces, memory_order_relaxed) ||
        (ns = number_of()) == 0 || (ids && ids->ns == ns))
        return false;
    if (ns == atomic_load(&files->shared->user_ns)) {
        files->ids = files->ids_above = NULL;
        return ids != NULL;
    }
    if (!ids || ids->ns != 0)
        files->ids_above = ids;
    return take(files, read_maps(files->ids_above, ns));
}

/* ---- from program to program ----------------------------------------------------------------- */

static void add(struct dfi_text *text, unsigned long number)
{
    dfi_text_add_number(text, number);
    dfi_text_add(text, " ");
}

/* The namespace above, where there are no maps yet: the next program reads them. */
void dfi_ids_tell(const struct dfi_files *files, struct dfi_text *text)
{
    const struct dfi_ids *ids = files->ids && files->ids->ns == 0 ? files->ids_above : files->ids;

    add(text, dfi_caller(files)->uid);
    add(text, dfi_caller(files)->gid);
    add(text, ids ? ids->ns : 0);
    if (!ids)
        return;
    add(text, ids->users);
    add(text, ids->groups);
    for (uint32_t i = 0; i < ids->users + ids->groups; i++) {
        add(text, ids->range[i].inside);
        add(text, ids->range[i].outside);
        add(text, ids->range[i].count);
    }
}

long dfi_ids_hear(struct dfi_files *files, const char **text)
{
    uint32_t users, groups;
    struct dfi_ids *ids;
    uint64_t ns;

    files->outer_uid = (uid_t)dfi_text_number(text);
    files->outer_gid = (gid_t)dfi_text_number(text);
    if ((ns = dfi_text_number(text)) == 0)
        return 0;
    users = (uint32_t)dfi_text_number(text);
    groups = (uint32_t)dfi_text_number(text);
    if (!(ids = make(users, groups, ns)))
        return -ENOMEM;
    for (uint32_t i = 0; i < users + groups; i++) {
        ids->range[i].inside = (uint32_t)dfi_text_number(text);
        ids->range[i].outside = (uint32_t)dfi_text_number(text);
        ids->range[i].count = (uint32_t)dfi_text_number(text);
    }
    files->ids = ids;
    return 0;
}

/* ---- one id ---------------------------------------------------------------------------------- */

static bool find_outside(const struct dfi_id_range *ranges, uint32_t count, uint32_t *id)
{
    for (uint32_t i = 0; i < count; i++)
        if (*id >= ranges[i].inside && *id - ranges[i].inside < ranges[i].count) {
            *id = ranges[i].outside + (*id - ranges[i].inside);
            return true;
        }
    return *id == (uint32_t)-1;
}

static uint32_t find_inside(const struct dfi_id_range *ranges, uint32_t count, uint32_t id)
{
    for (uint32_t i = 0; i < count; i++)
        if (id >= ranges[i].outside && id - ranges[i].outside < ranges[i].count)
            return ranges[i].inside + (id - ranges[i].outside);
    return (uint32_t)-1;
}

static uint32_t or_nobody(uint32_t id)
{
    return id == (uint32_t)-1 ? NOBODY : id;
}

bool dfi_ids_user(const struct dfi_files *files, uid_t *id)
{
    return !files->ids || find_outside(files->ids->range, files->ids->users, id);
}

bool dfi_ids_group(const struct dfi_files *files, gid_t *id)
{
    return !files->ids ||
           find_outside(files->ids->range + files->ids->users, files->ids->groups, id);
}

uid_t dfi_ids_user_inside(const struct dfi_files *files, uid_t id)
{
    return files->ids ? find_inside(files->ids->range, files->ids->users, id) : id;
}

gid_t dfi_ids_group_inside(const struct dfi_files *files, gid_t id)
{
    return files->ids ? find_inside(files->ids->range + files->ids->users, files->ids->groups, id)
                      : id;
}

bool dfi_ids_all(const struct dfi_files *files)
{
    const struct dfi_ids *ids = files->ids;

    return !ids || (ids->users == 1 && ids->groups == 1 && ids->range[0].count == UINT32_MAX &&
                    ids->range[1].count == UINT32_MAX);
}

void dfi_ids_show(const struct dfi_files *files, uid_t *user, gid_t *group)
{
    if (!files->ids)
        return;
    *user = or_nobody(dfi_ids_user_inside(files, *user));
    *group = or_nobody(dfi_ids_group_inside(files, *group));
}
