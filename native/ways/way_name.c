/*
 * way_name.c - the absolute path of a call's path, by text alone or walked.
 */
#include "core/fd.h"
#include "core/scan.h"
#include "core/walk.h"
#include "ways/name.h"
#include "ways/steps.h"
#include "ways/way_private.h"

static bool absolute_from_fd(const struct dfi_way *way, const struct dfi_leg *leg,
                             char out[PATH_MAX])
{
    uint64_t handle = dfi_record_handle(&way->record, leg->dirfd);
    const char *name;

    if (!handle)
        return false;
    name = df_segment_name(way->record.files->link.segment, handle);
    return name[0] == '/' && df_walk_join(out, name, strlen(name), leg->path) == 0;
}

bool dfi_way_written(const struct dfi_way *way, const struct dfi_leg *leg, char out[PATH_MAX])
{
    if (leg->path[0] != '/' && leg->dirfd >= DF_FD_BASE)
        return absolute_from_fd(way, leg, out);
    return df_walk_absolute(leg->dirfd, leg->path, out) == 0;
}

/* ".." by text alone. Where a symlink stands before it the name is wrong: then there is no shadow
 * of that name, or fchdir(2) finds another file there. */
static void collapse(char *path)
{
    char *to = path;

    for (const char *from = path; *from != '\0';) {
        const char *end = df_scan_end(from + 1);

        if (df_scan_dots(from + 1) == 2) {
            while (to > path && *--to != '/')
                ;
        } else {
            memmove(to, from, (size_t)(end - from));
            to += end - from;
        }
        from = end;
    }
    if (to == path)
        *to++ = '/';
    *to = '\0';
}

bool dfi_way_absolute(struct dfi_way *way, const struct dfi_leg *leg, char out[PATH_MAX])
{
    char text[PATH_MAX];
    struct df_scan scan;

    if (!leg->path || !dfi_way_written(way, leg, text) || df_scan(text, out, &scan) < 0)
        return false;
    memmove(out, scan.text, scan.len + 1);
    if (scan.up)
        collapse(out);
    return true;
}

/* What the walk has come to, which is in a mount. */
static long name_of(const struct dfi_steps *s, char out[PATH_MAX])
{
    char start[PATH_MAX];
    long len = s->dirfd == AT_FDCWD ? 0 : dfi_name_find(s->dirfd, start);

    return len < 0 ? len : df_walk_join(out, start, (size_t)len, s->done);
}

bool dfi_way_physical(struct dfi_way *way, const struct dfi_leg *leg, char out[PATH_MAX])
{
    struct dfi_steps s;

    dfi_steps_init(&s, &way->record, false, 0); /* a root is where the leg begins already */
    s.entry = true;
    return dfi_steps_walk(&s, leg->dirfd, leg->path) == 0 && name_of(&s, out) == 0;
}
