/*
 * site.c - making the files that are timed.
 */
#include "site.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *below(const char *root, const char *name)
{
    char *path = NULL;

    return asprintf(&path, "%s/%s", root, name) < 0 ? NULL : path;
}

static int make_directory(const struct door *door, const char *root, const char *name)
{
    char *path = below(root, name);
    int result = path ? door->mkdirat(AT_FDCWD, path, 0700) : -1;

    free(path);
    return result;
}

/* A file of `size` bytes, a multiple of SITE_SMALL; returns its descriptor. */
static int make_file(struct site *site, const char *path, off_t size, int flags)
{
    int fd =
        site->door->openat(AT_FDCWD, path, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC | flags, 0600);
    size_t piece = size % SITE_BUFFER == 0 ? SITE_BUFFER : SITE_SMALL;
    ssize_t put = 0; /* a file system that is nearly full writes less at first */

    for (off_t at = 0; fd >= 0 && at < size; at += put) {
        size_t left = (size_t)(size - at);
        put = site->door->pwrite(fd, site->buf, left < piece ? left : piece, at);
        if (put <= 0) {
            int error = errno;
            site->door->close(fd);
            errno = error;
            return -1;
        }
    }
    return fd;
}

static int make_closed(struct site *site, const char *path, off_t size)
{
    int fd = make_file(site, path, size, 0);

    return fd < 0 ? -1 : site->door->close(fd);
}

static int make_crowd(struct site *site)
{
    for (int i = 0; i < SITE_CROWD; i++) {
        char name[32];
        snprintf(name, sizeof(name), "file-%04d", i);
        char *path = below(site->crowd, name);
        int result = path ? make_closed(site, path, 0) : -1;
        free(path);
        if (result != 0)
            return -1;
    }
    return 0;
}

/* storm/0 to storm/3, and 0 to 3 in each. */
static int make_storm(struct site *site)
{
    char name[32];
    int result = site->door->mkdirat(AT_FDCWD, site->storm, 0700);

    for (int i = 0; result == 0 && i < 4; i++) {
        snprintf(name, sizeof(name), "%d", i);
        result = make_directory(site->door, site->storm, name);
        for (int j = 0; result == 0 && j < SITE_STORM / 4; j++) {
            snprintf(name, sizeof(name), "%d/%d", i, j);
            result = make_directory(site->door, site->storm, name);
        }
    }
    return result;
}

static bool name_all(struct site *site, const struct site_plan *plan)
{
    const char *root = plan->root;

    site->deep2 = below(root, "a/file");
    site->deep4 = below(root, "a/b/c/file");
    site->large = below(root, "large");
    site->data = below(root, "data");
    site->crowd = below(root, "crowd");
    site->fresh = below(root, "a/fresh");
    site->other = below(root, "a/other");
    site->storm = below(root, "storm");
    site->real = plan->real ? below(plan->real, "data") : NULL;
    site->buf = aligned_alloc(SITE_SMALL, SITE_BUFFER);
    return site->deep2 && site->deep4 && site->large && site->data && site->crowd && site->fresh &&
           site->other && site->storm && site->buf && (site->real || !plan->real);
}

int site_make(struct site *site, const struct site_plan *plan)
{
    const struct door *door = plan->door;
    const char *root = plan->root;

    *site = (struct site){.door = door, .fd = -1, .data_size = SITE_DATA, .crowd_size = SITE_CROWD};
    if (!name_all(site, plan)) {
        errno = ENOMEM;
        return -1;
    }
    memset(site->buf, 'x', SITE_BUFFER);
    if (make_directory(door, root, "a") != 0 || make_directory(door, root, "a/b") != 0 ||
        make_directory(door, root, "a/b/c") != 0 || make_directory(door, root, "crowd") != 0 ||
        make_closed(site, site->deep2, SITE_SMALL) != 0 ||
        make_closed(site, site->deep4, SITE_SMALL) != 0 ||
        make_closed(site, site->large, SITE_LARGE) != 0 || make_crowd(site) != 0 ||
        make_storm(site) != 0)
        return -1;
    site->fd = make_file(site, site->data, SITE_DATA, plan->direct ? O_DIRECT : 0);
    return site->fd < 0 ? -1 : 0;
}

void site_release(struct site *site)
{
    if (!site->door) /* nothing was begun */
        return;
    if (site->fd >= 0)
        site->door->close(site->fd);
    free(site->deep2);
    free(site->deep4);
    free(site->large);
    free(site->data);
    free(site->crowd);
    free(site->fresh);
    free(site->other);
    free(site->storm);
    free(site->real);
    free(site->buf);
}
