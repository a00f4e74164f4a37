/*
 * workload.c - the operations that are timed.
 */
#include "workload.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PAGE = 4096 };

/* Page-aligned offsets in an order that no readahead guesses: a full-period linear congruence. */
static off_t scattered(uint64_t i)
{
    return (off_t)((i * 1103515245 + 12345) % (SITE_DATA / PAGE)) * PAGE;
}

static int stat_path(const struct door *door, const char *path, uint64_t count)
{
    struct stat st;
    for (uint64_t i = 0; i < count; i++) {
        if (door->fstatat(AT_FDCWD, path, &st, 0) != 0) {
            return -1;
        }
    }
    return 0;
}

static int stat_2(struct site *site, uint64_t count)
{
    return stat_path(site->door, site->deep2, count);
}

static int stat_4(struct site *site, uint64_t count)
{
    return stat_path(site->door, site->deep4, count);
}

static int fstat_open(struct site *site, uint64_t count)
{
    struct stat st;
    for (uint64_t i = 0; i < count; i++) {
        if (site->door->fstat(site->fd, &st) != 0) {
            return -1;
        }
    }
    return 0;
}

static int open_close(struct site *site, uint64_t count)
{
    const struct door *door = site->door;
    for (uint64_t i = 0; i < count; i++) {
        int fd = door->openat(AT_FDCWD, site->deep2, O_RDONLY | O_CLOEXEC, 0);
        if (fd < 0 || door->close(fd) != 0) {
            return -1;
        }
    }
    return 0;
}

static int create_unlink(struct site *site, uint64_t count)
{
    const struct door *door = site->door;
    for (uint64_t i = 0; i < count; i++) {
        int fd = door->openat(AT_FDCWD, site->fresh, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
        if (fd < 0 || door->close(fd) != 0 || door->unlinkat(AT_FDCWD, site->fresh, 0) != 0) {
            return -1;
        }
    }
    return 0;
}

/* What a data loader does with a small file. */
static int open_read_close(struct site *site, uint64_t count)
{
    const struct door *door = site->door;
    struct stat st;
    for (uint64_t i = 0; i < count; i++) {
        int fd = door->openat(AT_FDCWD, site->deep2, O_RDONLY | O_CLOEXEC, 0);
        if (fd < 0 || door->fstat(fd, &st) != 0 || door->pread(fd, site->buf, PAGE, 0) != PAGE ||
            door->close(fd) != 0) {
            return -1;
        }
    }
    return 0;
}

static int pread_page(struct site *site, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        if (site->door->pread(site->fd, site->buf, PAGE, scattered(i)) != PAGE) {
            return -1;
        }
    }
    return 0;
}

static int pwrite_page(struct site *site, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        if (site->door->pwrite(site->fd, site->buf, PAGE, scattered(i)) != PAGE) {
            return -1;
        }
    }
    return 0;
}

static int pread_block(struct site *site, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        off_t offset = (off_t)(i % (SITE_DATA / SITE_BLOCK)) * SITE_BLOCK;
        if (site->door->pread(site->fd, site->buf, SITE_BLOCK, offset) != SITE_BLOCK) {
            return -1;
        }
    }
    return 0;
}

static int list_once(const struct door *door, const char *path, char *buf)
{
    int fd = door->openat(AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    if (fd < 0) {
        return -1;
    }
    ssize_t got;
    do {
        got = door->getdents(fd, buf, 32768); /* what readdir(3) asks for */
    } while (got > 0);
    return door->close(fd) != 0 || got < 0 ? -1 : 0;
}

static int read_directory(struct site *site, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        if (list_once(site->door, site->crowd, site->buf) != 0) {
            return -1;
        }
    }
    return 0;
}

const struct workload workloads[] = {
    {"stat, depth 2", stat_2},
    {"stat, depth 4", stat_4},
    {"fstat", fstat_open},
    {"open+close", open_close},
    {"create+unlink", create_unlink},
    {"open+fstat+read 4 KiB+close", open_read_close},
    {"pread 4 KiB", pread_page},
    {"pwrite 4 KiB", pwrite_page},
    {"pread 1 MiB", pread_block},
    {"readdir of 1000", read_directory},
};
const int workload_count = sizeof(workloads) / sizeof(workloads[0]);

/* ---- the tree they work on ---- */

static char *below(const char *root, const char *name)
{
    char *path = NULL;
    return asprintf(&path, "%s/%s", root, name) < 0 ? NULL : path;
}

static int make_directory(const struct door *door, const char *root, const char *name)
{
    char *path = below(root, name);
    int result = path == NULL ? -1 : door->mkdirat(AT_FDCWD, path, 0700);
    free(path);
    return result;
}

/* A file of `size` bytes; returns its descriptor. */
static int make_file(struct site *site, const char *path, off_t size)
{
    int fd = site->door->openat(AT_FDCWD, path, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
    for (off_t at = 0; fd >= 0 && at < size; at += PAGE) {
        if (site->door->pwrite(fd, site->buf, PAGE, at) != PAGE) {
            site->door->close(fd);
            return -1;
        }
    }
    return fd;
}

static int make_closed(struct site *site, const char *path, off_t size)
{
    int fd = make_file(site, path, size);
    return fd < 0 ? -1 : site->door->close(fd);
}

static int make_crowd(struct site *site)
{
    for (int i = 0; i < SITE_CROWD; i++) {
        char name[32];
        snprintf(name, sizeof(name), "file-%04d", i);
        char *path = below(site->crowd, name);
        int result = path == NULL ? -1 : make_closed(site, path, 0);
        free(path);
        if (result != 0) {
            return -1;
        }
    }
    return 0;
}

int site_prepare(struct site *site, const struct door *door, const char *root)
{
    *site = (struct site){.door = door, .fd = -1};
    site->deep2 = below(root, "a/file");
    site->deep4 = below(root, "a/b/c/file");
    site->fresh = below(root, "a/fresh");
    site->crowd = below(root, "crowd");
    site->buf = malloc(SITE_BLOCK);
    char *data = below(root, "data");
    int result = -1;
    if (site->deep2 == NULL || site->deep4 == NULL || site->fresh == NULL || site->crowd == NULL ||
        site->buf == NULL || data == NULL) {
        errno = ENOMEM;
        goto out;
    }
    memset(site->buf, 'x', SITE_BLOCK);
    if (make_directory(door, root, "a") != 0 || make_directory(door, root, "a/b") != 0 ||
        make_directory(door, root, "a/b/c") != 0 || make_directory(door, root, "crowd") != 0 ||
        make_closed(site, site->deep2, PAGE) != 0 || make_closed(site, site->deep4, PAGE) != 0 ||
        make_crowd(site) != 0) {
        goto out;
    }
    site->fd = make_file(site, data, SITE_DATA);
    result = site->fd < 0 ? -1 : 0;
out:
    free(data);
    return result;
}

void site_release(struct site *site)
{
    if (site->fd >= 0) {
        site->door->close(site->fd);
    }
    free(site->deep2);
    free(site->deep4);
    free(site->fresh);
    free(site->crowd);
    free(site->buf);
}
