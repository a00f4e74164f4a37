/*
 * listing_run.c - listings of real directories, without the directory of the run itself.
 *
 * It lies in /dev/shm, and what lies in it stands for the directories of mounts: a program that
 * walks through all there is (find /) would come to it, and by it into the mounts once more.
 */
#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "shown/listing.h"

#define HEADER ((long)offsetof(struct dirent64, d_name))

/* Placeholders are in a directory below the run's, whose name other users cannot list: the run's is
 * the last name but one. Looked for at each listing, so nothing is copied. */
static const char *name_of_run(const struct dfi_files *files, size_t *len)
{
    const char *end = files->shadow + files->shadow_len, *name;

    while (end > files->shadow && *--end != '/')
        ;
    for (name = end; name > files->shadow && name[-1] != '/';)
        name--;
    *len = (size_t)(end - name);
    return name;
}

/* The entry of that name: where it begins among `got` bytes, its size in *size; or -1. */
static long find(unsigned long program, long got, const char *name, size_t len, unsigned *size)
{
    struct dirent64 entry;

    for (long at = 0; at + HEADER < got; at += entry.d_reclen) {
        const char *there = (const char *)program + at;

        if (dfi_copy_from(&entry, there, (size_t)HEADER) < 0 || entry.d_reclen <= HEADER)
            break; /* another thread has written there */
        if (entry.d_type != DT_DIR || entry.d_reclen < HEADER + (long)len + 1)
            continue;
        if (dfi_copy_from(entry.d_name, there + HEADER, len + 1) < 0)
            break;
        *size = entry.d_reclen;
        if (memcmp(entry.d_name, name, len) == 0 && entry.d_name[len] == '\0')
            return at;
    }
    return -1;
}

static bool is_run(const struct dfi_files *files, int fd, const char *name, size_t len)
{
    char path[sizeof(files->shadow)];
    struct stat listed, own;

    strcpy(path, files->shadow);
    path[name + len - files->shadow] = '\0';
    return dfi_kernel(__NR_newfstatat, fd, path + (name - files->shadow), &listed,
                      AT_SYMLINK_NOFOLLOW) == 0 &&
           dfi_kernel(__NR_newfstatat, AT_FDCWD, path, &own, AT_SYMLINK_NOFOLLOW) == 0 &&
           listed.st_dev == own.st_dev && listed.st_ino == own.st_ino;
}

/* Moves memory of the program's down. False: there is none any more. */
static bool move_down(unsigned long to, unsigned long from, size_t size)
{
    char piece[512];

    for (size_t moved = 0, now; moved < size; moved += now) {
        now = size - moved < sizeof(piece) ? size - moved : sizeof(piece);
        if (dfi_copy_from(piece, (const void *)(from + moved), now) < 0 ||
            dfi_copy_to((void *)(to + moved), piece, now) < 0)
            return false;
    }
    return true;
}

long dfi_listing_without_run(const struct dfi_files *files, int fd, unsigned long program, long got)
{
    size_t len;
    const char *name = name_of_run(files, &len);
    unsigned size = 0;
    long at = find(program, got, name, len, &size), behind = at + (long)size;

    if (at < 0 || behind > got || !is_run(files, fd, name, len))
        return got;
    if (!move_down(program + (unsigned long)at, program + (unsigned long)behind,
                   (size_t)(got - behind)))
        return got;
    return got - (long)size;
}
