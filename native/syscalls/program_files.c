/*
 * program_files.c - a program to execute that may lie in a mount: its bytes, in memory.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/calls.h"
#include "core/fd.h"
#include "core/scan.h"
#include "core/walk.h"
#include "intercept/brief.h"
#include "intercept/proc_link.h"
#include "shadows/code_file.h"
#include "shadows/shadow_fill.h"
#include "ways/cwd.h"
#include "ways/name.h"
#include "ways/root.h"
#include "ways/way.h"

/* ---- copying --------------------------------------------------------------------------------- */

/* Opened for reading once more: a file that is open for writing is not executed. */
static long reopen(long memory)
{
    char name[DFI_PROC_LINK_MAX];
    long fd;

    dfi_proc_link((int)memory, name);
    fd = dfi_brief(__NR_open, name, O_RDONLY | O_CLOEXEC, 0);
    if (fd < 0) /* no /proc */
        return memory;
    dfi_brief_close(memory);
    return fd;
}

static long copy_program(struct dfi_files *files, uint64_t handle, off_t size, const char *path)
{
    const char *slash = strrchr(path, '/');
    char name[64];
    size_t len = strnlen(slash ? slash + 1 : path, sizeof(name) - 1);
    long memory, ret;

    memcpy(name, slash ? slash + 1 : path, len);
    name[len] = '\0';
    memory = dfi_brief(__NR_memfd_create, name, MFD_CLOEXEC);
    if (memory < 0)
        return memory;
    ret = dfi_fill_file(files, handle, memory, size);
    if (ret == 0)
        return reopen(memory);
    dfi_brief_close(memory);
    return ret;
}

/* ---- in a mount ------------------------------------------------------------------------------ */

/* 0 and its size: a regular file that the caller may execute. */
static int look(const struct dfi_leg *leg, int flags, off_t *size)
{
    struct stat st;
    int ret = df_call_fstatat(leg->dirfd, leg->path, &st, flags);

    if (ret < 0)
        return ret;
    if (S_ISLNK(st.st_mode))
        return -ELOOP;
    if (!S_ISREG(st.st_mode))
        return -EACCES;
    if (!(st.st_mode & (S_IXUSR | S_IXGRP | S_IXOTH)))
        return -EACCES; /* whatever a file system that asks nobody's permission says */
    *size = st.st_size;
    ret = df_call_faccessat(leg->dirfd, leg->path, X_OK, flags | AT_EACCESS);
    return ret == DF_NOT_OURS ? -EACCES : ret;
}

static long copy_leg(struct dfi_way *way, const struct dfi_leg *leg, off_t size)
{
    struct dfi_files *files = way->record.files;
    const char *name = leg->path;
    long ret;

    if (leg->empty)
        name = df_segment_name(files->link.segment, dfi_record_handle(&way->record, leg->dirfd));
    ret = dfi_way_open(way, leg, O_RDONLY | O_CLOEXEC);
    if (ret < 0)
        return ret;
    ret = dfi_code_file(files, way->record.foreign, (size_t)size);
    if (ret < 0)
        ret = copy_program(files, way->record.foreign, size, name);
    dfi_way_shut(way);
    return ret;
}

/* ---- finding --------------------------------------------------------------------------------- */

/* What it is called, whatever /proc calls it: there the next program would find something else. */
static void find_name(const struct dfi_way *way, const struct dfi_leg *leg, char *name)
{
    bool found = leg->empty ? dfi_name_show(leg->dirfd, name) > 0 : dfi_way_written(way, leg, name);

    if (!found)
        name[0] = '\0';
}

static long open_leg(struct dfi_way *way, int flags, char *name)
{
    const struct dfi_leg *leg = &way->leg[0];
    off_t size;
    long ret = look(leg, (flags & AT_SYMLINK_NOFOLLOW) | dfi_way_flags(leg), &size);

    if (ret < 0)
        return ret;
    if (name)
        find_name(way, leg, name);
    return copy_leg(way, leg, size);
}

/* As execveat(2) takes it. */
static long open_program(int dirfd, const char *path, int flags, bool *virtual, char *name)
{
    struct dfi_frame frame = {
        .nr = __NR_execveat,
        .args = {(unsigned long)dirfd, (unsigned long)path, [4] = (unsigned long)flags}};
    struct dfi_way way;
    long ret = dfi_way_begin(&way, &frame);

    way.blocks = true;
    way.leg[0].empty = way.leg[0].empty || path[0] == '\0';
    while (dfi_way_next(&way, &ret))
        ret = open_leg(&way, flags, name);
    *virtual = way.ours;
    if (name && !way.ours)
        name[0] = '\0'; /* it was left again */
    return dfi_way_end(&way, ret);
}

int dfi_files_program(int dirfd, const char *path, int flags, bool *virtual, char *name)
{
    *virtual = false;
    if (name)
        name[0] = '\0';
    if (path[0] == '\0' && !(flags & AT_EMPTY_PATH))
        return -ENOENT;
    if (flags & ~(AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW))
        return -EINVAL;
    if (path[0] == '\0' && dirfd == AT_FDCWD)
        return -EACCES; /* a directory */
    return (int)open_program(dirfd, path, flags, virtual, name);
}

/* ---- its name -------------------------------------------------------------------------------- */

static bool make_absolute(struct dfi_files *files, char path[PATH_MAX])
{
    char text[PATH_MAX];

    if (path[0] == '/' || dfi_cwd_join(files, path, path) == 1)
        return true;
    if (df_walk_absolute(AT_FDCWD, path, text) < 0)
        return false;
    strcpy(path, text);
    return true;
}

/* The same of a process with a root of its own. */
static bool make_global(char path[PATH_MAX])
{
    struct dfi_record record;
    long ret;

    dfi_record_begin(&record);
    ret = dfi_root_name(&record, path, true);
    dfi_record_end(&record);
    return ret == 0 && path[0] == '/';
}

void dfi_files_name(struct dfi_process *process, const char *path, bool found)
{
    char text[PATH_MAX], scanned[PATH_MAX];
    const char *name = text;
    struct df_scan scan;
    struct dfi_exe *exe;

    strcpy(text, path);
    if (!found && !(dfi_root_of(process->files) && make_global(text)) &&
        !make_absolute(process->files, text))
        return;
    if (df_scan(text, scanned, &scan) == 0 && !scan.up)
        name = scan.text;
    exe = dfi_alloc(sizeof(*exe) + strlen(name) + 1);
    if (exe)
        strcpy(exe->name, name);
    process->exe = exe;
}
