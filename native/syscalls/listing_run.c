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

#include "syscalls/listing.h"

#define HEADER ((long)offsetof(struct dirent64, d_name))

struct run {
    char path[sizeof(((struct dfi_files *)0)->shadow)];
    const char *name; /* the last of its path */
};

/* Placeholders are in a directory below it, whose name other users cannot list. */
static void find_run(const struct dfi_files *files, struct run *run)
{
    char *slash;

    strcpy(run->path, files->shadow);
    slash = strrchr(run->path, '/');
    if (slash)
        *slash = '\0';
    slash = strrchr(run->path, '/');
    run->name = slash ? slash + 1 : run->path;
}

/* The entry of that name: where it begins among `got` bytes, its size in *size; or -1. */
static long find(unsigned long program, long got, const char *name, unsigned *size)
{
    size_t len = strlen(name) + 1;
    struct dirent64 entry;

    for (long at = 0; at + HEADER < got; at += entry.d_reclen) {
        const char *there = (const char *)program + at;

        if (dfi_copy_from(&entry, there, (size_t)HEADER) < 0 || entry.d_reclen <= HEADER)
            break; /* another thread has written there */
        if (entry.d_type != DT_DIR || entry.d_reclen < HEADER + (long)len)
            continue;
        if (dfi_copy_from(entry.d_name, there + HEADER, len) < 0)
            break;
        *size = entry.d_reclen;
        if (memcmp(entry.d_name, name, len) == 0)
            return at;
    }
    return -1;
}

static bool is_listed(const struct run *run, int fd)
{
    struct stat listed, own;

    return dfi_kernel(__NR_newfstatat, fd, run->name, &listed, AT_SYMLINK_NOFOLLOW) == 0 &&
           dfi_kernel(__NR_newfstatat, AT_FDCWD, run->path, &own, AT_SYMLINK_NOFOLLOW) == 0 &&
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
    struct run run;
    unsigned size = 0;
    long at, behind;

    find_run(files, &run);
    at = find(program, got, run.name, &size);
    behind = at + (long)size;
    if (at < 0 || behind > got || !is_listed(&run, fd))
        return got;
    if (!move_down(program + (unsigned long)at, program + (unsigned long)behind,
                   (size_t)(got - behind)))
        return got;
    return got - (long)size;
}
