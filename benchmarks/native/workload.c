/*
 * workload.c - the operations that are timed.
 */
#include "workload.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- names and attributes
 * ------------------------------------------------------------------------ */

static int stat_path(const struct door *door, const char *path, uint64_t count)
{
    struct stat st;

    for (uint64_t i = 0; i < count; i++) {
        if (door->fstatat(AT_FDCWD, path, &st, 0) != 0)
            return -1;
    }
    return 0;
}

static int stat_2(const struct workload *self, struct site *site, uint64_t count)
{
    (void)self;
    return stat_path(site->door, site->deep2, count);
}

static int stat_4(const struct workload *self, struct site *site, uint64_t count)
{
    (void)self;
    return stat_path(site->door, site->deep4, count);
}

static int fstat_open(const struct workload *self, struct site *site, uint64_t count)
{
    struct stat st;

    (void)self;
    for (uint64_t i = 0; i < count; i++) {
        if (site->door->fstat(site->fd, &st) != 0)
            return -1;
    }
    return 0;
}

static int open_close(const struct workload *self, struct site *site, uint64_t count)
{
    const struct door *door = site->door;

    (void)self;
    for (uint64_t i = 0; i < count; i++) {
        int fd = door->openat(AT_FDCWD, site->deep2, O_RDONLY | O_CLOEXEC, 0);
        if (fd < 0 || door->close(fd) != 0)
            return -1;
    }
    return 0;
}

static int create(const struct door *door, const char *path)
{
    int fd = door->openat(AT_FDCWD, path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);

    return fd < 0 ? -1 : door->close(fd);
}

static int create_unlink(const struct workload *self, struct site *site, uint64_t count)
{
    const struct door *door = site->door;

    (void)self;
    for (uint64_t i = 0; i < count; i++) {
        if (create(door, site->fresh) != 0 || door->unlinkat(AT_FDCWD, site->fresh, 0) != 0)
            return -1;
    }
    return 0;
}

/* There and back: two renames an operation. */
static int rename_twice(const struct workload *self, struct site *site, uint64_t count)
{
    const struct door *door = site->door;

    (void)self;
    if (create(door, site->fresh) != 0)
        return -1;
    for (uint64_t i = 0; i < count; i++) {
        if (door->renameat(AT_FDCWD, site->fresh, AT_FDCWD, site->other) != 0 ||
            door->renameat(AT_FDCWD, site->other, AT_FDCWD, site->fresh) != 0)
            return -1;
    }
    return door->unlinkat(AT_FDCWD, site->fresh, 0);
}

static int mkdir_rmdir(const struct workload *self, struct site *site, uint64_t count)
{
    const struct door *door = site->door;

    (void)self;
    for (uint64_t i = 0; i < count; i++) {
        if (door->mkdirat(AT_FDCWD, site->fresh, 0700) != 0 ||
            door->unlinkat(AT_FDCWD, site->fresh, AT_REMOVEDIR) != 0)
            return -1;
    }
    return 0;
}

static int set_get_xattr(const struct workload *self, struct site *site, uint64_t count)
{
    const struct door *door = site->door;
    char value[16];

    (void)self;
    for (uint64_t i = 0; i < count; i++) {
        if (door->setxattr(site->deep2, "user.bench", "0123456789abcdef", sizeof(value), 0) != 0 ||
            door->getxattr(site->deep2, "user.bench", value, sizeof(value)) != sizeof(value))
            return -1;
    }
    return 0;
}

/* ---- directories
 * ---------------------------------------------------------------------------------- */

/* Calls see() for each record of the directory, if there is one. */
static int list(struct site *site, int (*see)(struct site *, int fd, const struct dirent64 *))
{
    const struct door *door = site->door;
    int fd = door->openat(AT_FDCWD, site->crowd, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0), result = 0;
    ssize_t got = 0;

    if (fd < 0)
        return -1;
    while (result == 0 && (got = door->getdents(fd, site->buf, 32768)) > 0) { /* as readdir(3) */
        for (ssize_t at = 0; see && result == 0 && at < got;) {
            const struct dirent64 *entry = (const struct dirent64 *)(site->buf + at);
            result = see(site, fd, entry);
            at += entry->d_reclen;
        }
    }
    return door->close(fd) != 0 || got < 0 ? -1 : result;
}

static int stat_entry(struct site *site, int fd, const struct dirent64 *entry)
{
    struct stat st;

    return site->door->fstatat(fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW);
}

static int read_directory(const struct workload *self, struct site *site, uint64_t count)
{
    (void)self;
    for (uint64_t i = 0; i < count; i++) {
        if (list(site, NULL) != 0)
            return -1;
    }
    return 0;
}

static int list_long(const struct workload *self, struct site *site, uint64_t count)
{
    (void)self;
    for (uint64_t i = 0; i < count; i++) {
        if (list(site, stat_entry) != 0)
            return -1;
    }
    return 0;
}

/* ---- data
 * ------------------------------------------------------------------------------------------ */

/* The offset of piece i: in order, or by a full-period linear congruence. */
static off_t offset_of(const struct workload *self, const struct site *site, uint64_t i)
{
    uint64_t size = (uint64_t)site->data_size;
    uint64_t pieces = (self->within && self->within < size ? self->within : size) / self->size;

    if (pieces == 0)
        return 0;
    return (off_t)((self->scattered ? i * 1103515245 + 12345 : i) % pieces * self->size);
}

static int read_pieces(const struct workload *self, struct site *site, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        if (site->door->pread(site->fd, site->buf, self->size, offset_of(self, site, i)) <= 0)
            return -1;
    }
    return 0;
}

static int write_pieces(const struct workload *self, struct site *site, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        if (site->door->pwrite(site->fd, site->buf, self->size, offset_of(self, site, i)) !=
            (ssize_t)self->size)
            return -1;
    }
    return 0;
}

/* All of the file, piece by piece, so that a disk has something to do. */
static uint64_t pieces_of(const struct workload *self, const struct site *site)
{
    return (uint64_t)site->data_size / self->size;
}

/* Neither the file system below nor the kernel's FUSE remembers the file's bytes. */
static int forget_bytes(const struct workload *self, struct site *site, uint64_t count)
{
    (void)self, (void)count;
    if (!site->real) {
        errno = EOPNOTSUPP; /* it is not known where the bytes are */
        return -1;
    }
    int fd = open(site->real, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    int error = fdatasync(fd) != 0 ? errno : posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    close(fd);
    if (error == 0 && site->door == &door_kernel)
        error = posix_fadvise(site->fd, 0, 0, POSIX_FADV_DONTNEED);
    errno = error;
    return error ? -1 : 0;
}

static int read_whole(const struct workload *self, struct site *site, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        if (i > 0 && forget_bytes(self, site, count) != 0)
            return -1;
        if (read_pieces(self, site, pieces_of(self, site)) != 0)
            return -1;
    }
    return 0;
}

static int write_whole(const struct workload *self, struct site *site, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        if (write_pieces(self, site, pieces_of(self, site)) != 0 ||
            site->door->fdatasync(site->fd) != 0)
            return -1;
    }
    return 0;
}

/* What a data loader does with a sample. */
static int read_file(const struct workload *self, struct site *site, uint64_t count)
{
    const struct door *door = site->door;
    const char *path = self->size == SITE_SMALL ? site->deep2 : site->large;
    struct stat st;

    for (uint64_t i = 0; i < count; i++) {
        int fd = door->openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
        if (fd < 0 || door->fstat(fd, &st) != 0 || door->pread(fd, site->buf, self->size, 0) < 0 ||
            door->close(fd) != 0)
            return -1;
    }
    return 0;
}

/* ---- the table
 * ------------------------------------------------------------------------------------- */

enum { KIB = 1024, MIB = 1024 * KIB };

/* As much as a processor's own caches hold: the call is timed, not the memory behind it. */
enum { HOT = 256 * KIB };

#define READS(name, bytes)                                                                         \
    {name ", sequential", read_pieces, .size = (bytes)},                                           \
    {                                                                                              \
        name ", random", read_pieces, .size = (bytes), .scattered = true                           \
    }
#define WRITES(name, bytes)                                                                        \
    {name ", sequential", write_pieces, .size = (bytes), .writes = true},                          \
    {                                                                                              \
        name ", random", write_pieces, .size = (bytes), .scattered = true, .writes = true          \
    }

/* Direct-FUSE's measurements on disk: the file of SITE_DATA bytes as a whole. */
#define COLD(name, bytes)                                                                          \
    {"cold read of 8 MiB by " name ", sequential", read_whole, forget_bytes, .size = (bytes),      \
     .writes = true},                                                                              \
    {                                                                                              \
        "cold read of 8 MiB by " name ", random", read_whole, forget_bytes, .size = (bytes),       \
            .scattered = true, .writes = true                                                      \
    }
#define SYNCED(name, bytes)                                                                        \
    {"synced write of 8 MiB by " name ", sequential", write_whole, .size = (bytes),                \
     .writes = true},                                                                              \
    {                                                                                              \
        "synced write of 8 MiB by " name ", random", write_whole, .size = (bytes),                 \
            .scattered = true, .writes = true                                                      \
    }

const struct workload workloads[] = {
    {"stat, depth 2", stat_2, .size = 0},
    {"stat, depth 4", stat_4, .size = 0},
    {"fstat", fstat_open, .size = 0},
    {"open+close", open_close, .size = 0},
    {"create+unlink", create_unlink, .writes = true},
    {"rename, there and back", rename_twice, .writes = true},
    {"mkdir+rmdir", mkdir_rmdir, .writes = true},
    {"setxattr+getxattr", set_get_xattr, .writes = true},
    {"readdir of 1000", read_directory, .size = 0},
    {"ls -l of 1000", list_long, .size = 0},
    {"open+fstat+read 4 KiB+close", read_file, .size = SITE_SMALL},
    {"open+fstat+read 100 KiB+close", read_file, .size = SITE_LARGE},
    READS("pread 4 KiB", 4 * KIB),
    {"pread 4 KiB, hot", read_pieces, .size = 4 * KIB, .within = HOT, .scattered = true},
    READS("pread 16 KiB", 16 * KIB),
    READS("pread 64 KiB", 64 * KIB),
    READS("pread 256 KiB", 256 * KIB),
    READS("pread 1 MiB", MIB),
    WRITES("pwrite 4 KiB", 4 * KIB),
    WRITES("pwrite 16 KiB", 16 * KIB),
    WRITES("pwrite 64 KiB", 64 * KIB),
    WRITES("pwrite 256 KiB", 256 * KIB),
    WRITES("pwrite 1 MiB", MIB),
    COLD("4 KiB", 4 * KIB),
    COLD("16 KiB", 16 * KIB),
    COLD("64 KiB", 64 * KIB),
    COLD("256 KiB", 256 * KIB),
    COLD("1 MiB", MIB),
    SYNCED("4 KiB", 4 * KIB),
    SYNCED("16 KiB", 16 * KIB),
    SYNCED("64 KiB", 64 * KIB),
    SYNCED("256 KiB", 256 * KIB),
    SYNCED("1 MiB", MIB),
    {"storm: make a file", storm_make, NULL, storm_remove, .writes = true},
    {"storm: stat a file", storm_stat, storm_make, storm_remove, .writes = true},
    {"storm: remove a file", storm_remove, storm_make, NULL, .writes = true},
    {"storm: make a directory", storm_mkdir, NULL, storm_rmdir, .writes = true},
    {"storm: remove a directory", storm_rmdir, storm_mkdir, NULL, .writes = true},
};
const int workload_count = sizeof(workloads) / sizeof(workloads[0]);

const struct workload *workload_find(const char *name)
{
    for (int i = 0; i < workload_count; i++) {
        if (strcmp(workloads[i].name, name) == 0)
            return &workloads[i];
    }
    return NULL;
}
