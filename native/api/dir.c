/*
 * dir.c - opendir(3) and its family over df_getdents(), for directories of mounts and real ones.
 */
#include "directfuse.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/calls.h"

#define BUFFER_SIZE 32768 /* what glibc reads at a time */

struct df_dir {
    int fd;
    size_t at;   /* of the next record in buffer */
    size_t used; /* bytes in buffer */
    off_t next;  /* d_off of the last record given out: where the next one begins */
    _Alignas(struct dirent) char buffer[BUFFER_SIZE];
};

/* A record is a struct dirent as far as it goes: glibc's readdir(3) gives out the same. */
_Static_assert(sizeof(ino_t) == 8 && sizeof(off_t) == 8, "struct dirent is linux_dirent64");

/* The directory has been removed meanwhile: that is the end, with errno unchanged. */
static ssize_t refill(df_dir *dir)
{
    int saved = errno;
    ssize_t got = df_getdents(dir->fd, dir->buffer, sizeof(dir->buffer));

    if (got < 0 && errno == ENOENT) {
        errno = saved;
        got = 0;
    }
    return got;
}

static df_dir *make_dir(int fd)
{
    df_dir *dir = malloc(sizeof(*dir));

    if (dir) {
        dir->fd = fd;
        dir->at = dir->used = 0;
        dir->next = 0;
    }
    return dir;
}

df_dir *df_opendir(const char *path)
{
    int fd = df_open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    df_dir *dir;

    if (fd < 0)
        return NULL;
    dir = make_dir(fd);
    if (!dir) {
        df_close(fd);
        errno = ENOMEM;
    }
    return dir;
}

df_dir *df_fdopendir(int fd)
{
    struct stat st;
    int ret = df_call_is_directory(fd);

    if (ret == DF_NOT_OURS)
        ret = fstat(fd, &st) < 0 ? -errno : S_ISDIR(st.st_mode) ? 0 : -ENOTDIR;
    if (ret < 0) {
        errno = -ret;
        return NULL;
    }
    return make_dir(fd);
}

static struct dirent *next_record(df_dir *dir)
{
    struct dirent *entry;

    if (dir->at == dir->used) {
        ssize_t got = refill(dir);

        if (got <= 0)
            return NULL;
        dir->at = 0;
        dir->used = (size_t)got;
    }
    entry = (struct dirent *)(dir->buffer + dir->at);
    dir->at += entry->d_reclen;
    dir->next = entry->d_off;
    return entry;
}

struct dirent *df_readdir(df_dir *dir)
{
    struct dirent *entry;

    do
        entry = next_record(dir);
    while (entry && entry->d_ino == 0); /* removed, to glibc's readdir */
    return entry;
}

long df_telldir(df_dir *dir)
{
    return dir->next;
}

void df_seekdir(df_dir *dir, long position)
{
    df_lseek(dir->fd, position, SEEK_SET);
    dir->at = dir->used = 0;
    dir->next = position;
}

void df_rewinddir(df_dir *dir)
{
    df_seekdir(dir, 0);
}

int df_dirfd(df_dir *dir)
{
    return dir->fd;
}

int df_closedir(df_dir *dir)
{
    int fd = dir->fd;

    free(dir);
    return df_close(fd);
}
