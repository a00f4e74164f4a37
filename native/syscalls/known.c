/*
 * known.c - stat of a name whose attributes lie in shared memory, in one go.
 *
 * The way of such a call through native/core takes as long as the answer itself. What
 * core/route.c does for any path is done here for one that is canonical as it was written; every
 * other, and whatever is not known, is left to it. The question is the same, and so is the answer.
 */
#include "syscalls/known.h"

#include <fcntl.h>
#include <string.h>

#include "core/fd.h"
#include "core/scan.h"
#include "core/table.h"
#include "intercept/intercept.h"
#include "syscalls/ids.h"

/* A question, and of whose mount. */
struct question {
    struct df_trip_where where;
    int32_t mount;
};

/* No empty component, no "." and no "..". */
static bool is_canonical(const char *name)
{
    for (;; name++) {
        if (*name == '/' || *name == '\0' || df_scan_dots(name) != 0)
            return false;
        name = df_scan_end(name);
        if (*name == '\0')
            return true;
    }
}

/* A mountpoint is canonical, so only what is behind it has to be looked at. */
static bool ask_by_path(const struct dfi_leg *leg, struct question *question)
{
    size_t len = leg->changed ? strlen(leg->path) : leg->len;
    const struct df_table_entry *entry = df_table_lookup(leg->path, len);

    if (!entry || len <= entry->point_len || !is_canonical(leg->path + entry->point_len + 1))
        return false;
    question->mount = entry->id;
    question->where.base = 0;
    question->where.name = leg->path + entry->point_len;
    question->where.len = (uint32_t)(len - entry->point_len);
    return true;
}

static bool ask_by_file(const struct dfi_way *way, const struct dfi_leg *leg,
                        struct question *question)
{
    bool rooted = leg->dirfd == DF_FD_BASE + DFI_FD_ROOT;
    uint64_t handle =
        rooted ? way->record.root : dfi_file_of(way->record.files, leg->dirfd - DF_FD_BASE);
    const struct df_ofd *ofd = dfi_ofd(way->record.files, handle);

    if (!ofd || (leg->changed && !rooted) || !is_canonical(leg->path))
        return false;
    question->mount = ofd->mount;
    question->where.base = handle;
    question->where.name = leg->path;
    question->where.len = leg->len;
    return true;
}

static bool ask(const struct dfi_way *way, const struct dfi_leg *leg, struct question *question)
{
    if (!leg->path)
        return false;
    if (leg->path[0] == '/')
        return ask_by_path(leg, question);
    return leg->dirfd >= DF_FD_BASE && ask_by_file(way, leg, question);
}

static bool answer(struct dfi_files *files, const struct question *question, struct stat *to,
                   long *ret)
{
    struct df_trip trip = {
        .link = &files->link, .caller = &files->caller, .mount = question->mount};
    int result;

    if (!df_trip_known(&trip, &question->where, &result, to))
        return false;
    *ret = result;
    return true;
}

bool dfi_known_stat(const struct dfi_way *way, struct stat *to, int flags, long *ret)
{
    struct dfi_files *files = way->record.files;
    struct question question;

    if (!files->link.segment || dfi_ids_differ(files) ||
        (flags & ~(AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT)) ||
        (uintptr_t)to >= DFI_USER_END - sizeof(*to) || !ask(way, &way->leg[0], &question))
        return false;
    question.where.flags = flags & AT_SYMLINK_NOFOLLOW ? DF_WHERE_NOFOLLOW : 0;
    return answer(files, &question, to, ret);
}
