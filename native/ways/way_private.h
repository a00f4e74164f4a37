/*
 * way_private.h - what the files of way.h share: a call made by the kernel, and the questions that
 * are asked of few paths.
 */
#ifndef DF_WAYS_WAY_PRIVATE_H
#define DF_WAYS_WAY_PRIVATE_H

#include <fcntl.h>
#include <string.h>

#include "core/export.h"
#include "shadows/linger.h"
#include "ways/way.h"

/* The call with `paths` in the places of its own; NULL: as the caller wrote it. execveat(2) is here
 * to open the program (program_files.c). Flat: behind a system call each function that returns
 * costs as much as fifty instructions (decision 013). */
static DF_FLAT long dfi_way_ask(const struct dfi_way *way, const char *const paths[2])
{
    const struct dfi_frame *f = way->frame;
    unsigned long args[6];

    dfi_linger_end(way->record.files);
    memcpy(args, f->args, sizeof(args));
    for (unsigned i = 0; i < way->legs; i++) {
        if (!paths[i])
            continue;
        args[way->leg[i].name] = (unsigned long)paths[i];
        if (way->leg[i].at >= 0)
            args[way->leg[i].at] = (unsigned long)AT_FDCWD;
    }
    if (way->blocks && f->nr == __NR_execveat)
        return dfi_program_open((int)args[0], (const char *)args[1], (int)args[4]);
    if (way->blocks)
        return dfi_kernel_wait6(f->nr, args[0], args[1], args[2], args[3], args[4], args[5]);
    return dfi_kernel6(f->nr, args[0], args[1], args[2], args[3], args[4], args[5]);
}

/* ---- way_proc.c ---- */

/* The path in leg->text, if it leads through a symlink of /proc or /dev, begins where that symlink
 * leads. 0 or -errno. */
int dfi_way_take_proc(struct dfi_way *way, struct dfi_leg *leg);

/* The leg goes on at that path, which is absolute. False: it leads through no link of /proc or /dev
 * to a file of ours. */
bool dfi_way_goes_on(struct dfi_way *way, struct dfi_leg *leg, const char *path);

/* Whether the call is about a symlink itself that stands at the end of that path. */
bool dfi_way_is_of_link(const struct dfi_way *way, const struct dfi_leg *leg);

/* ---- way_disk.c: in a process that has files of mounts open, or stands in a mount ---- */

/* Each sets way->back where a path leads there: the leg goes on from there. */

/* An open, by openat2(2). Else as dfi_way_open_plainly(). */
long dfi_way_open_on_disk(struct dfi_way *way, const char *path);

/* Any other call, or an open where there is no openat2(2): before the kernel is asked, and when it
 * has said `ret`. */
void dfi_way_look_before(struct dfi_way *way);
void dfi_way_look_for_names(struct dfi_way *way); /* the same for names that are made or removed */
void dfi_way_look_after(struct dfi_way *way, long ret);

/* ---- way_missing.c: what the kernel does not find ---- */

/*
 * An open of a program that has lately opened what is missing: by openat2(2), whose answer says as
 * well that no symlink is on the path. `path`: as in dfi_way_ask(). -ELOOP: make the call as it is.
 */
long dfi_way_open_plainly(struct dfi_way *way, const char *path);

/* The same call, restricted by RESOLVE_ flags: what openat2(2) says. */
long dfi_way_open_restricted(const struct dfi_way *way, const char *path, uint64_t resolve);

/* What openat2(2) says of the path, restricted so: 0 or -errno. */
long dfi_way_try(int dirfd, const char *path, uint64_t resolve);

/* What the kernel was asked: the path of a leg, or what a mount's own symlinks and ".." have made
 * of it. NULL: nothing that it could look for. */
const char *dfi_way_asked(const struct dfi_way *way, unsigned which, int *dirfd);

/* The following: the kernel has said ENOENT or ENOTDIR. */

/* Directories above mountpoints that are not on disk can be looked at; they cannot be changed.
 * `walked`: a symlink may be on the path. True: *ret is the call's result. */
bool dfi_way_look_above(struct dfi_way *way, bool walked, long *ret);

/* No symlink is on the path: it is missing for certain. */
bool dfi_way_is_missing(const struct dfi_way *way, unsigned which);

/* Could a real symlink on one of the paths lead to a mount? */
bool dfi_way_may_lead(const struct dfi_way *way, unsigned which);

#endif
