/*
 * calls_dir.c - getdents, and whether it will do.
 */
#include <errno.h>
#include <limits.h>

#include "core/calls.h"
#include "core/use.h"

/* Under position_lock. */
static ssize_t fill(struct df_use *use, void *buf, size_t size)
{
    struct df_dirbuf records = {.data = buf, .size = size < INT_MAX ? size : INT_MAX};
    struct df_file *file = use->file;
    ssize_t ret;

    ret = use->fs->ops->readdir(use->fs, &use->call, file, file->position, &records);
    ret = df_call_result(&use->call, ret);
    if (ret < 0 && records.used == 0)
        return ret;
    if (records.used > 0)
        file->position = records.next;
    return (ssize_t)records.used;
}

ssize_t df_call_getdents(int fd, void *buf, size_t size)
{
    struct df_use use;
    ssize_t ret = df_use_begin(&use, fd);

    if (ret < 0)
        return ret;
    if (use.file->kind != DF_KIND_DIRECTORY)
        return df_use_end(&use, -ENOTDIR);
    df_file_lock_position(use.file);
    ret = fill(&use, buf, size);
    df_file_unlock_position(use.file);
    return df_use_end(&use, ret);
}

int df_call_is_directory(int fd)
{
    struct df_use use;
    int ret = df_use_begin_any(&use, fd); /* it asks by fstat(2): only reading wants more */

    if (ret < 0)
        return ret;
    return (int)df_use_end(&use, use.file->kind == DF_KIND_DIRECTORY ? 0 : -ENOTDIR);
}
