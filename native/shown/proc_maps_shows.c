/*
 * proc_maps_shows.c - which memory shows files of mounts, and what these are called now.
 */
#include "shown/proc_maps_private.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "client/record.h"
#include "core/calls.h"
#include "core/fd.h"
#include "core/route.h"
#include "core/scan.h"
#include "core/walk.h"
#include "shadows/map.h"
#include "ways/name.h"

/* ---- what is ours ---------------------------------------------------------------------------- */

static void add(struct dfi_maps_job *job, struct dfi_shows shows)
{
    if (shows.of)
        job->list[job->count++] = shows;
}

/* Of one use more. Parts of one mapping are of one file. */
static struct dfi_copied *file_of(const struct dfi_maps_job *job, const struct dfi_files *files,
                                  uint64_t handle)
{
    struct dfi_copied *of;

    for (size_t i = job->count; i-- > 0;) {
        if (job->list[i].handle == handle) {
            job->list[i].of->uses++;
            return job->list[i].of;
        }
    }
    of = dfi_copied_new(df_segment_name(files->link.segment, handle));
    if (of)
        of->handle = handle;
    return of;
}

static void add_mapping(struct dfi_maps_job *job, const struct dfi_files *files,
                        const struct dfi_mapping *m)
{
    add(job, (struct dfi_shows){.start = m->start,
                                .end = m->end,
                                .offset = (uint64_t)m->offset,
                                .prot = m->late ? m->prot : -1,
                                .handle = m->handle,
                                .of = file_of(job, files, m->handle)});
}

static void add_copy(struct dfi_maps_job *job, const struct dfi_range *r)
{
    if (r->of)
        r->of->uses++;
    add(job, (struct dfi_shows){
                 .start = r->start, .end = r->end, .offset = r->offset, .prot = -1, .of = r->of});
}

bool dfi_shows_take(struct dfi_maps_job *job, struct dfi_files *files)
{
    size_t maps, copies;

    files = files->lender ? files->lender : files;
    dfi_maps_lock(files);
    maps = files->maps ? files->maps->count : 0;
    copies = files->copies.count;
    job->list = dfi_alloc((maps + copies + 1) * sizeof(*job->list));
    for (size_t i = 0; job->list && i < maps; i++)
        add_mapping(job, files, &files->maps->list[i]);
    for (size_t i = 0; job->list && i < copies; i++)
        add_copy(job, &files->copies.list[i]);
    dfi_maps_unlock(files);
    return job->list;
}

void dfi_shows_drop(struct dfi_maps_job *job, struct dfi_files *files)
{
    files = files->lender ? files->lender : files;
    dfi_maps_lock(files);
    for (size_t i = 0; i < job->count; i++)
        dfi_copied_drop(job->list[i].of);
    dfi_maps_unlock(files);
    dfi_copied_drop(job->program);
    dfi_free(job->list);
}

const struct dfi_shows *dfi_shows_next(const struct dfi_maps_job *job, uintptr_t at)
{
    const struct dfi_shows *next = NULL;

    for (size_t i = 0; i < job->count; i++) {
        const struct dfi_shows *s = &job->list[i];

        if (s->end > at && (!next || s->start < next->start))
            next = s;
    }
    return next;
}

/* ---- what it is called ----------------------------------------------------------------------- */

/* A name on its way to what Linux shows, which has no links, no dots and no second slashes. */
struct settling {
    char done[PATH_MAX]; /* has none */
    char rest[PATH_MAX]; /* is still to go */
    size_t len;          /* of done */
    int links;
};

/* What has become the end of `done` is a link: its target is to go, ahead of the rest. */
static bool follow(struct settling *s, const char *target, size_t len)
{
    if (++s->links > DF_LINKS_MAX)
        return false;
    if (target[0] == '/')
        s->len = 0;
    else
        df_walk_up(s->done, &s->len);
    return df_walk_join(s->rest, target, len, s->rest) == 0;
}

/* One component of the rest, which has one. */
static bool step(struct settling *s, const char *name)
{
    const char *end = df_scan_end(name);
    unsigned dots = df_scan_dots(name);
    char target[PATH_MAX];
    ssize_t len;

    if (dots == 0 && df_walk_down(s->done, &s->len, name, (size_t)(end - name)) < 0)
        return false;
    if (dots == 2)
        df_walk_up(s->done, &s->len);
    memmove(s->rest, end, strlen(end) + 1);
    if (dots > 0)
        return true;
    len = df_call_readlinkat(AT_FDCWD, s->done, target, sizeof(target) - 1);
    return len <= 0 || follow(s, target, (size_t)len);
}

/* Where it leads now; one that leads nowhere stays as it is. */
static void settle(char name[PATH_MAX])
{
    struct settling s;
    bool goes_on = true;

    s.len = 0;
    s.links = 0;
    s.done[0] = '\0';
    strcpy(s.rest, name);
    while (goes_on) {
        const char *next = s.rest + strspn(s.rest, "/");

        if (*next == '\0') {
            strcpy(name, s.done);
            return;
        }
        goes_on = step(&s, next);
    }
}

/* The file itself is asked. False: it is closed, or has never had a name. */
static bool name_open(struct dfi_maps_job *job, uint64_t handle)
{
    struct dfi_record record;
    struct stat st;
    bool named;

    dfi_record_begin_of(&record, handle);
    named = df_call_fstat(DF_FD_BASE + DFI_FD_FOREIGN, &st) == 0 &&
            dfi_name_show(DF_FD_BASE + DFI_FD_FOREIGN, job->name) >= 0;
    dfi_record_end(&record);
    if (named) {
        job->dev = st.st_dev;
        job->ino = st.st_ino;
    }
    return named;
}

static void name_by_name(struct dfi_maps_job *job, const struct dfi_copied *of)
{
    struct stat st;

    strcpy(job->name, of->name);
    settle(job->name);
    if (df_call_fstatat(AT_FDCWD, job->name, &st, 0) == 0) {
        job->dev = st.st_dev;
        job->ino = st.st_ino;
    } else {
        job->dev = 0;
        job->ino = 0;
        strcat(job->name, " (deleted)");
    }
}

void dfi_shows_name(struct dfi_maps_job *job, const struct dfi_copied *of)
{
    if (job->named == of)
        return;
    job->named = of;
    if (of->handle == 0 || !name_open(job, of->handle))
        name_by_name(job, of);
}
