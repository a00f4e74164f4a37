/*
 * known.c - stat and access of a name whose attributes lie in shared memory, in one go.
 *
 * The way of such a call through native/core takes as long as the answer itself. What
 * core/route.c does for any path is done here for one that is canonical as it was written; every
 * other, and whatever is not known, is left to it. The question is the same, and so is the answer.
 */
#include "ways/known.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "client/ids.h"
#include "core/caller.h"
#include "core/export.h"
#include "core/fd.h"
#include "core/scan.h"
#include "core/table.h"
#include "intercept/intercept.h"

struct question {
    struct df_trip trip;
    struct df_trip_where where;
};

static bool is_canonical_by_names(const char *name)
{
    for (;; name++) {
        if (*name == '/' || *name == '\0' || df_scan_dots(name) != 0)
            return false;
        name = df_scan_end(name);
        if (*name == '\0')
            return true;
    }
}

/* No empty component, no "." and no "..". Of most names a glance tells. */
static DF_FLAT bool is_canonical(const char *name, size_t len)
{
    if (len == 0 || name[len - 1] == '/')
        return false;
    return ((name[0] | 1) != '/' && !df_scan_has_pair(name, len)) || is_canonical_by_names(name);
}

/* A mountpoint is canonical, so only what is behind it has to be looked at. The mount's id, or 0.
 */
static DF_FLAT int32_t ask_by_path(const struct dfi_leg *leg, struct df_trip_where *where)
{
    size_t len = dfi_leg_len(leg);
    const struct df_table_entry *entry = df_table_lookup(leg->path, len);

    if (!entry || len <= entry->point_len ||
        !is_canonical(leg->path + entry->point_len + 1, len - entry->point_len - 1))
        return 0;
    where->base = 0;
    where->name = leg->path + entry->point_len;
    where->len = (uint32_t)(len - entry->point_len);
    return entry->id;
}

static int32_t ask_by_file(const struct dfi_way *way, const struct dfi_leg *leg,
                           struct df_trip_where *where)
{
    bool rooted = leg->dirfd == DF_FD_BASE + DFI_FD_ROOT;
    uint64_t handle =
        rooted ? way->record.root : dfi_file_of(way->record.files, leg->dirfd - DF_FD_BASE);
    const struct df_ofd *ofd = dfi_ofd(way->record.files, handle);

    if (!ofd || (leg->changed && !rooted) || !is_canonical(leg->path, leg->len))
        return 0;
    where->base = handle;
    where->name = leg->path;
    where->len = leg->len;
    return ofd->mount;
}

/* False: the call's path is not one of which something may be known here. */
static DF_FLAT bool ask(const struct dfi_way *way, int flags, struct question *question)
{
    const struct dfi_leg *leg = &way->leg[0];
    struct dfi_files *files = way->record.files;
    int32_t mount = 0;

    if (!files->link.segment || !leg->path)
        return false;
    if (leg->path[0] == '/')
        mount = ask_by_path(leg, &question->where);
    else if (leg->dirfd >= DF_FD_BASE)
        mount = ask_by_file(way, leg, &question->where);
    question->where.flags = flags & AT_SYMLINK_NOFOLLOW ? DF_WHERE_NOFOLLOW : 0;
    question->trip =
        (struct df_trip){.link = &files->link, .caller = way->record.thread.caller, .mount = mount};
    return mount != 0;
}

bool dfi_known_stat(const struct dfi_way *way, struct stat *to, int flags, long *ret)
{
    struct question question;
    int result;

    if (dfi_ids_differ(way->record.files) || (flags & ~(AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT)) ||
        (uintptr_t)to >= DFI_USER_END - sizeof(*to) || !ask(way, flags, &question) ||
        !df_trip_known(&question.trip, &question.where, &result, to))
        return false;
    *ret = result;
    return true;
}

/* Without AT_EACCESS access(2) asks of the real ids. */
static bool is_of_ids(const struct df_caller *caller, int flags)
{
    return flags & AT_EACCESS || df_caller_is_real(caller);
}

bool dfi_known_access(const struct dfi_way *way, int mode, int flags, long *ret)
{
    struct question question;
    int result;

    if ((mode & ~(R_OK | W_OK | X_OK)) || (flags & ~(AT_SYMLINK_NOFOLLOW | AT_EACCESS)) ||
        !is_of_ids(way->record.thread.caller, flags) || !ask(way, flags, &question) ||
        !df_trip_known_access(&question.trip, &question.where, mode, &result))
        return false;
    *ret = result;
    return true;
}
