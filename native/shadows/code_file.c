/*
 * code_file.c - the copies of programs and libraries; see code_file.h.
 */
#include "shadows/code_file.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "intercept/brief.h"
#include "intercept/proc_link.h"
#include "shadows/shadow.h"
#include "shadows/shadow_fill.h"
#include "shadows/shadow_kept.h"

#define PART        8 /* of what there is room for */
#define WANTED_PART 4 /* of a file, at least, is wanted by who makes a copy of it all */

/* Where code may be executed at all. */
static bool may_execute(long fd)
{
    struct statfs st;

    return dfi_kernel(__NR_fstatfs, fd, &st) == 0 && !(st.f_flags & ST_NOEXEC);
}

static long found(const char *name)
{
    long fd = dfi_brief_open(name, O_RDONLY | O_NOFOLLOW);

    if (fd < 0 || may_execute(fd))
        return fd;
    dfi_brief_close(fd);
    return -ENOENT;
}

/* A file without a name, in the directory of the copies. */
static long new_file(const struct dfi_files *files)
{
    char path[DFI_SHADOW_NAME_MAX];
    long fd;

    strcpy(mempcpy(path, files->shadow, files->shadow_len), "/x");
    fd = dfi_brief(__NR_open, path, O_TMPFILE | O_RDWR | O_CLOEXEC, 0400);
    if (fd >= 0)
        dfi_kernel(__NR_fchmod, fd, 0444); /* programs under other ids of the job */
    return fd;
}

/* Bytes that all copies may take, of a shadow directory and of the memory of the job. */
static uint64_t most_of(const struct dfi_files *files, const struct statfs *st)
{
    uint64_t most = st->f_blocks * (uint64_t)st->f_bsize, memory = files->hold.memory;

    return (memory != 0 && memory < most ? memory : most) / PART;
}

/* Copies that have no name any more are there as long as somebody runs them. So it goes by what is
 * free, too: others need the most of it. */
static bool is_mostly_free(const struct statfs *st, off_t size)
{
    uint64_t block = (uint64_t)st->f_bsize;

    return st->f_bavail * block >= st->f_blocks / 4 * 3 * block + (uint64_t)size;
}

/* With what is there it takes no more than that; else nothing of those is left. */
static bool has_room(const struct dfi_files *files, long fd, off_t size)
{
    struct statfs st;
    uint64_t most;

    if (dfi_kernel(__NR_fstatfs, fd, &st) < 0)
        return false;
    most = most_of(files, &st);
    if ((uint64_t)size > most || !is_mostly_free(&st, size))
        return false;
    if (dfi_kept_bytes(files, DFI_KEPT_CODE) + (uint64_t)size > most)
        dfi_kept_drop_code(files);
    return true;
}

/* They have memory from now on: where none is left later, who touches one would be ended. Of a file
 * that is as long already: no RLIMIT_FSIZE ends who asks. */
static bool fill_holes(long fd, off_t size)
{
    long ret = dfi_kernel(__NR_fallocate, fd, 0, 0, size);

    return ret == 0 || ret == -EOPNOTSUPP; /* of no tmpfs: its holes are read without */
}

/* Others may have been faster, with the same bytes. */
static long give_name(long fd, const char *name)
{
    char link[DFI_PROC_LINK_MAX];

    dfi_proc_link((int)fd, link);
    return dfi_kernel(__NR_linkat, AT_FDCWD, link, AT_FDCWD, name, AT_SYMLINK_FOLLOW);
}

/* Bytes of the file, however few: a copy of its own would cost each program trips to read them. 0:
 * that is not known. */
static off_t size_of(struct dfi_files *files, uint64_t handle)
{
    struct df_trip trip = dfi_trip_of(files);
    struct df_trip_where where = {.base = handle, .name = ""};
    struct stat st;

    if (df_trip_getattr(&trip, &where, &st) < 0)
        return 0;
    return st.st_size;
}

static void make(struct dfi_files *files, const struct df_ofd *ofd, uint64_t handle,
                 const struct dfi_kept *kept, const char *name, size_t wanted)
{
    off_t size = size_of(files, handle);
    long fd = size > 0 && (size_t)size / WANTED_PART <= wanted ? new_file(files) : -1;

    if (fd < 0)
        return;
    if (may_execute(fd) && has_room(files, fd, size) &&
        dfi_fill_file(files, handle, fd, size) == 0 && fill_holes(fd, size) &&
        dfi_kept_holds(files, ofd, handle, kept))
        give_name(fd, name);
    dfi_brief_close(fd);
}

/* By programs that have mapped it shared: what they store is counted when it is written back. */
static bool is_stored_to(const struct df_ofd *ofd)
{
    return __atomic_load_n(&ofd->marks, __ATOMIC_ACQUIRE) & DF_OFD_OF_FILE;
}

long dfi_code_file(struct dfi_files *files, uint64_t handle, size_t wanted)
{
    const struct df_ofd *ofd = dfi_ofd(files, handle);
    struct dfi_kept kept = {0};
    char name[DFI_KEPT_NAME_MAX];
    long fd;

    if (ofd && !is_stored_to(ofd))
        kept = dfi_kept_of(files, ofd, handle);
    if (kept.id == 0)
        return -ENOENT;
    dfi_kept_name(files, DFI_KEPT_CODE, ofd, &kept, name);
    fd = found(name);
    if (fd >= 0 || !dfi_kept_again(files, ofd, handle))
        return fd < 0 ? -ENOENT : fd;
    make(files, ofd, handle, &kept, name, wanted);
    fd = found(name);
    return fd < 0 ? -ENOENT : fd;
}
