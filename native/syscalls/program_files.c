/*
 * program_files.c - a program to execute that may lie in a mount: its bytes, in memory.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/calls.h"
#include "core/fd.h"
#include "core/mount.h"
#include "core/route.h"
#include "core/scan.h"
#include "core/walk.h"
#include "intercept/brief.h"
#include "syscalls/cwd.h"
#include "syscalls/files.h"
#include "syscalls/proc.h"
#include "syscalls/record.h"
#include "syscalls/root.h"
#include "syscalls/shadow_fill.h"
#include "syscalls/table.h"
#include "syscalls/way.h"

#define LARGE ((off_t)16 << 20) /* bytes */

/* What is asked for, in the terms of native/core. */
struct program {
    int dirfd, flags;
    bool rooted; /* below the root of the process, which is in a mount */
    char path[PATH_MAX];
};

/* ---- copying --------------------------------------------------------------------------------- */

/* Where holes are is asked of a large file only: of others it costs more than reading them. */
static long copy_bytes(struct dfi_files *files, uint64_t handle, long memory, off_t size)
{
    struct dfi_filling filling;
    long ret;

    if (size > files->caller.size_limit) /* of the copy, too: it would be SIGXFSZ */
        return -EFBIG;
    ret = dfi_kernel(__NR_ftruncate, memory, size);
    if (ret < 0)
        return ret;
    ret = dfi_fill_begin(&filling, files, handle, memory);
    if (ret == 0)
        ret = size > LARGE ? dfi_fill_all(&filling, size) : dfi_fill_range(&filling, 0, size);
    dfi_fill_end(&filling);
    return ret;
}

/* Opened for reading once more: a file that is open for writing is not executed. */
static long reopen(long memory)
{
    char name[] = "/proc/self/fd/0123456789";
    char digits[12];
    int count = 0;
    long fd;

    for (long rest = memory; count == 0 || rest > 0; rest /= 10)
        digits[count++] = (char)('0' + rest % 10);
    for (int i = 0; i < count; i++)
        name[sizeof("/proc/self/fd/") - 1 + (size_t)i] = digits[count - 1 - i];
    name[sizeof("/proc/self/fd/") - 1 + (size_t)count] = '\0';
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
    ret = copy_bytes(files, handle, memory, size);
    if (ret == 0)
        return reopen(memory);
    dfi_brief_close(memory);
    return ret;
}

/* ---- finding --------------------------------------------------------------------------------- */

/* The rest behind /proc/self/fd/5 and its like begins at the object itself. */
static void begin_at_fd(struct program *p, int fd, const char *rest)
{
    const char *name = rest + strspn(rest, "/");

    p->dirfd = DF_FD_BASE + fd;
    if (*name == '\0' && *rest == '/')
        name = ".";
    memmove(p->path, name, strlen(name) + 1);
    p->flags |= AT_EMPTY_PATH;
}

static int take_other(struct dfi_record *record, struct program *p)
{
    char name[PATH_MAX];
    const char *rest;

    switch (dfi_proc_other(record->files, p->path, name, &record->foreign, &rest)) {
    case DFI_PROC_FD:
        begin_at_fd(p, DFI_FD_FOREIGN, rest);
        return 0;
    case DFI_PROC_NONE:
        return 0;
    default:
        return df_walk_join(p->path, name, strlen(name), rest);
    }
}

/* Below the root of the process, if it has one in a mount. */
static int take_rooted(struct dfi_record *record, struct program *p)
{
    long ret;

    if (p->path[0] != '/')
        p->dirfd = dfi_fd_given(record->files, p->dirfd);
    ret = dfi_root_place(record, &p->dirfd, p->path, !(p->flags & AT_SYMLINK_NOFOLLOW));
    return ret == DF_NOT_OURS ? 0 : (int)ret;
}

static int take(struct dfi_record *record, struct program *p)
{
    struct dfi_files *files = record->files;
    char text[PATH_MAX];
    const char *rest;
    int fd;

    if (p->path[0] != '\0' && (p->rooted = dfi_root_begin(record)))
        return take_rooted(record, p);
    if (p->path[0] != '/') {
        if (p->dirfd != AT_FDCWD) {
            p->dirfd = dfi_fd_given(files, p->dirfd);
            return 0;
        }
        if (dfi_cwd_take(record)) {
            p->dirfd = DF_FD_BASE + DFI_FD_HERE;
            return 0;
        }
        return dfi_cwd_join(files, p->path, p->path) < 0 ? -ENOENT : 0;
    }
    switch (dfi_proc_look(files, p->path, &fd, &rest)) {
    case DFI_PROC_FD:
        begin_at_fd(p, fd, rest);
        return 0;
    case DFI_PROC_EXE:
        dfi_proc_exe(text);
        return df_walk_join(p->path, text, strlen(text), rest);
    case DFI_PROC_CWD:
        strcpy(text, rest);
        return dfi_cwd_join(files, text, p->path) < 0 ? -ENOENT : 0;
    default:
        return take_other(record, p);
    }
}

/* 0 and its size: a regular file of a mount that the caller may execute. */
static int look(const struct program *p, off_t *size)
{
    int flags = p->flags & (AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW);
    struct stat st;
    int ret = df_call_fstatat(p->dirfd, p->path, &st, flags);

    if (ret < 0)
        return ret;
    if (S_ISLNK(st.st_mode))
        return -ELOOP;
    if (!S_ISREG(st.st_mode))
        return -EACCES;
    if (!(st.st_mode & (S_IXUSR | S_IXGRP | S_IXOTH)))
        return -EACCES; /* whatever a file system that asks nobody's permission says */
    *size = st.st_size;
    ret = df_call_faccessat(p->dirfd, p->path, X_OK, flags | AT_EACCESS);
    return ret == DF_NOT_OURS ? -EACCES : ret;
}

/* Its open file description is of this call alone. */
static long open_and_copy(struct dfi_files *files, const struct program *p, off_t size)
{
    struct df_trip trip = {.link = &files->link, .caller = &files->caller};
    const char *name = p->path;
    uint64_t handle;
    long ret;

    if (p->path[0] == '\0') {
        handle = dfi_record_handle(dfi_record_now(), p->dirfd);
        name = df_segment_name(files->link.segment, handle);
        ret = df_call_open_again(p->dirfd, O_RDONLY | O_CLOEXEC, 0);
    } else {
        ret = df_call_openat(p->dirfd, p->path, O_RDONLY | O_CLOEXEC, 0);
    }
    if (ret < 0)
        return ret;
    handle = dfi_record_now()->opened->host[DFI_HOST_HANDLE];
    ret = copy_program(files, handle, size, name);
    df_trip_drop(&trip, handle);
    return ret;
}

/* DF_NOT_OURS, or as dfi_files_program(). */
static long ask_mounts(struct dfi_files *files, const struct program *p)
{
    off_t size;
    long ret = look(p, &size);

    return ret < 0 ? ret : open_and_copy(files, p, size);
}

static long ask(struct dfi_record *record, const struct program *p, bool *virtual)
{
    long ret = ask_mounts(record->files, p);
    const char *left, *path;
    int dirfd;

    *virtual = ret != DF_NOT_OURS;
    if (*virtual)
        return ret;
    left = df_left_path(0);
    path = left ? left : p->path;
    dirfd = left ? AT_FDCWD : p->dirfd;
    ret = dfi_program_open(dirfd, path, p->flags);
    if (ret != -ENOENT && ret != -ENOTDIR)
        return ret;
    if (!p->rooted && dfi_way_is_plainly_missing(dirfd, path)) /* a shell looks along PATH */
        return ret;
    record->thread.follow_real_links = true;
    record->used = 0;
    if (p->dirfd == AT_FDCWD || p->dirfd >= DF_FD_BASE || p->path[0] == '/') {
        long again = ask_mounts(record->files, p);

        *virtual = again != DF_NOT_OURS;
        ret = *virtual ? again : ret;
    }
    record->thread.follow_real_links = false;
    return ret;
}

static bool make_absolute(struct dfi_files *files, char path[PATH_MAX])
{
    char text[PATH_MAX];
    ssize_t len;

    if (path[0] == '/' || dfi_cwd_join(files, path, path) == 1)
        return true;
    len = df_walk_directory_name(AT_FDCWD, text);
    return len >= 0 && df_walk_join(path, text, (size_t)len, path) >= 0;
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

void dfi_files_name(struct dfi_process *process, const char *path)
{
    char text[PATH_MAX], scanned[PATH_MAX];
    const char *name = text;
    struct df_scan scan;
    struct dfi_exe *exe;

    strcpy(text, path);
    if (!(dfi_root_of(process->files) && make_global(text)) && !make_absolute(process->files, text))
        return;
    if (df_scan(text, scanned, &scan) == 0 && !scan.up)
        name = scan.text;
    exe = dfi_alloc(sizeof(*exe) + strlen(name) + 1);
    if (exe)
        strcpy(exe->name, name);
    process->exe = exe;
}

int dfi_files_program(int dirfd, const char *path, int flags, bool *virtual)
{
    struct dfi_files *files = dfi_process()->files;
    struct program p = {.dirfd = dirfd, .flags = flags};
    struct dfi_record record;
    long ret;

    *virtual = false;
    if (path[0] == '\0' && !(flags & AT_EMPTY_PATH))
        return -ENOENT;
    if (flags & ~(AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW))
        return -EINVAL;
    if (path[0] == '\0' && dirfd == AT_FDCWD)
        return -EACCES; /* a directory */
    if (strlen(path) >= PATH_MAX)
        return -ENAMETOOLONG;
    if (!files->link.segment)
        return (int)dfi_program_open(dirfd, path, flags);
    strcpy(p.path, path);
    dfi_record_begin(&record);
    dfi_table_refresh(files->link.segment);
    ret = take(&record, &p);
    if (ret == 0)
        ret = ask(&record, &p, virtual);
    if (p.rooted)
        dfi_root_end(&record);
    dfi_record_end(&record);
    return (int)ret;
}
