/*
 * dir.c - reading directories: a handle is a descriptor and a buffer of getdents64(2), whose
 * offsets go through as they are.
 */
#include "passthrough.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sys.h"

#define BUFFER_SIZE (32 * 1024) /* as glibc's readdir */

struct directory {
    int fd;
    off_t next; /* offset of the entry at `at`; who asks for it goes on in the buffer */
    size_t at;  /* bytes of the buffer that were handed out */
    size_t filled;
    char entries[BUFFER_SIZE]; /* struct dirent64 */
};

static struct directory *directory_of(const struct fuse_file_info *fi)
{
    return (struct directory *)(uintptr_t)fi->fh;
}

int passthrough_opendir(const char *path, struct fuse_file_info *fi)
{
    struct directory *dir = malloc(sizeof(*dir));

    if (!dir)
        return -ENOMEM;
    dir->next = 0;
    dir->at = dir->filled = 0;
    dir->fd = openat(passthrough_here()->root, passthrough_relative(path),
                     O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir->fd < 0) {
        int error = errno;
        free(dir);
        return -error;
    }
    fi->fh = (uint64_t)(uintptr_t)dir;
    return 0;
}

int passthrough_releasedir(const char *path, struct fuse_file_info *fi)
{
    struct directory *dir = directory_of(fi);

    (void)path;
    close(dir->fd);
    free(dir);
    return 0;
}

int passthrough_fsyncdir(const char *path, int datasync, struct fuse_file_info *fi)
{
    int fd = directory_of(fi)->fd;

    (void)path;
    return passthrough_result(datasync ? fdatasync(fd) : fsync(fd));
}

/* Makes the buffer begin at an offset: the start anew, or where somebody was before. */
static int seek_to(struct directory *dir, off_t offset)
{
    if (offset != 0 && offset == dir->next)
        return 0;
    if (!(offset == 0 && dir->next == 0 && dir->filled == 0) &&
        lseek(dir->fd, offset, SEEK_SET) < 0)
        return -errno;
    dir->next = offset;
    dir->at = dir->filled = 0;
    return 0;
}

/* Reads more when the buffer is used up. 0 (also at the end) or an error. */
static int fill_buffer(struct directory *dir)
{
    if (dir->at < dir->filled)
        return 0;
    ssize_t got = getdents64(dir->fd, dir->entries, sizeof(dir->entries));
    dir->at = 0;
    dir->filled = got < 0 ? 0 : (size_t)got;
    return got < 0 ? -errno : 0;
}

/* One name: type and number as getdents64 gives them, in *brief (else zero); all attributes when
 * they are asked for. */
static int tell(const struct directory *dir, const struct dirent64 *entry, bool plus,
                struct stat *brief, void *buf, fuse_fill_dir_t fill)
{
    struct stat full;

    if (plus && fstatat(dir->fd, entry->d_name, &full, AT_SYMLINK_NOFOLLOW) == 0)
        return fill(buf, entry->d_name, &full, entry->d_off, FUSE_FILL_DIR_PLUS);
    brief->st_ino = entry->d_ino;
    brief->st_mode = DTTOIF(entry->d_type);
    return fill(buf, entry->d_name, brief, entry->d_off, 0);
}

int directfuse_getattr_at(struct fuse_file_info *directory, const char *name, struct stat *st)
{
    int fd = directory_of(directory)->fd;

    return *name ? sys_fstatat(fd, name, st, AT_SYMLINK_NOFOLLOW) : sys_fstat(fd, st);
}

int passthrough_readdir(const char *path, void *buf, fuse_fill_dir_t fill, off_t offset,
                        struct fuse_file_info *fi, enum fuse_readdir_flags flags)
{
    struct directory *dir = directory_of(fi);
    struct stat brief;
    int result = seek_to(dir, offset);

    (void)path;
    if (result == 0)
        result = fill_buffer(dir);
    memset(&brief, 0, sizeof(brief));
    /* What the buffer has is an answer; only an empty one is the end. */
    while (result == 0 && dir->at < dir->filled) {
        const struct dirent64 *entry = (const struct dirent64 *)(dir->entries + dir->at);
        if (tell(dir, entry, flags & FUSE_READDIR_PLUS, &brief, buf, fill))
            break;
        dir->at += entry->d_reclen;
        dir->next = entry->d_off;
    }
    return result;
}
