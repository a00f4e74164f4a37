/*
 * stand.c - what is done to stand-ins, so that the kernel tells those who watch them.
 *
 * Never by a descriptor that was opened for reading where a path will do: that would be IN_OPEN.
 * What fails is an event that is lost; the operation in the mount is done already.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "watch/private.h"

void df_stand_path(char path[DF_STAND_PATH], uint64_t serial, const char *name)
{
    snprintf(path, DF_STAND_PATH, name ? "%" PRIu64 "/%s" : "%" PRIu64, serial, name);
}

/* ---- w/ -------------------------------------------------------------------------------------- */

static bool path_of(const char *shadow, const char *name, char path[PATH_MAX])
{
    return snprintf(path, PATH_MAX, "%s/w%s", shadow, name) < PATH_MAX;
}

/* Watches of what an earlier server has left will hear of nothing more. They are told that their
 * objects have moved: of removed names, who keeps copies would make too much. */
static void send_away(int at, const char *name)
{
    char gone[DF_STAND_PATH];

    if (name[0] != '.' && strcmp(name, "s") != 0 &&
        snprintf(gone, sizeof(gone), "s/%s", name) < (int)sizeof(gone))
        renameat(at, name, at, gone);
}

void df_stand_leave_all(const char *shadow)
{
    char path[PATH_MAX];
    DIR *directory = path_of(shadow, "", path) ? opendir(path) : NULL;

    for (struct dirent *entry; directory && (entry = readdir(directory));)
        send_away(dirfd(directory), entry->d_name);
    if (directory)
        closedir(directory);
}

static bool make_directory(const char *path, mode_t mode)
{
    return (mkdir(path, mode) == 0 || errno == EEXIST) && chmod(path, mode) == 0;
}

/* Programs under other ids pass through it, and know the serials. */
int df_stand_begin(const char *shadow)
{
    char path[PATH_MAX], nowhere[PATH_MAX];
    int fd;

    if (!path_of(shadow, "", path) || !path_of(shadow, "/s", nowhere))
        return -ENAMETOOLONG;
    if (!make_directory(path, 0711) || !make_directory(nowhere, 0700))
        return -errno;
    fd = open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

/* ---- stand-ins ------------------------------------------------------------------------------- */

static int unlink_any(int at, const char *path, bool directory)
{
    if (unlinkat(at, path, directory ? AT_REMOVEDIR : 0) == 0)
        return 0;
    if ((errno == EISDIR || errno == ENOTDIR) &&
        unlinkat(at, path, directory ? 0 : AT_REMOVEDIR) == 0)
        return 0;
    return -errno;
}

static int make(int at, const char *path, bool directory)
{
    int ret = directory ? mkdirat(at, path, 0755) : mknodat(at, path, S_IFREG | 0644, 0);

    return ret < 0 ? -errno : 0;
}

/* The kernel asks for the right to read what is watched; whether the object may be read has been
 * asked before. */
int df_stand_make(int at, uint64_t serial, bool directory)
{
    char path[DF_STAND_PATH];
    int ret;

    df_stand_path(path, serial, NULL);
    ret = make(at, path, directory);
    if (ret == 0 && fchmodat(at, path, directory ? 0755 : 0644, 0) < 0)
        ret = -errno;
    return ret;
}

void df_stand_remove(int at, uint64_t serial, bool directory, uint64_t other)
{
    char path[DF_STAND_PATH];

    df_stand_path(path, serial, NULL);
    if (unlinkat(at, path, directory ? AT_REMOVEDIR : 0) < 0 && errno == ENOTEMPTY)
        df_stand_move(at, serial, other);
}

void df_stand_discard(int at, uint64_t serial)
{
    char path[DF_STAND_PATH];
    DIR *directory;
    int fd;

    df_stand_path(path, serial, NULL);
    fd = openat(at, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    directory = fd < 0 ? NULL : fdopendir(fd);
    for (struct dirent *entry; directory && (entry = readdir(directory));)
        unlink_any(fd, entry->d_name, entry->d_type == DT_DIR);
    if (directory)
        closedir(directory);
    else if (fd >= 0)
        close(fd);
}

void df_stand_move(int at, uint64_t from, uint64_t to)
{
    char old[DF_STAND_PATH], new[DF_STAND_PATH];

    df_stand_path(old, from, NULL);
    df_stand_path(new, to, NULL);
    renameat(at, old, at, new);
}

/* ---- names ----------------------------------------------------------------------------------- */

int df_stand_name(int at, const char *path, bool directory)
{
    int ret = make(at, path, directory);

    return ret == -EEXIST ? 0 : ret;
}

void df_stand_made(int at, const char *path, bool directory)
{
    if (make(at, path, directory) == -EEXIST && unlink_any(at, path, directory) == 0)
        make(at, path, directory);
}

void df_stand_removed(int at, const char *path, bool directory)
{
    if (unlink_any(at, path, directory) == -ENOENT && make(at, path, directory) == 0)
        unlink_any(at, path, directory);
}

static int move(int at, const char *from, const char *to, bool exchange)
{
    return renameat2(at, from, at, to, exchange ? RENAME_EXCHANGE : 0) < 0 ? -errno : 0;
}

/* What is in the way is of another kind, which the directory has not by now. */
void df_stand_moved(int at, const char *from, bool directory, const char *to, bool exchange)
{
    int ret;

    df_stand_name(at, from, directory);
    ret = move(at, from, to, exchange);
    if (!exchange && (ret == -EISDIR || ret == -ENOTDIR) && unlink_any(at, to, directory) == 0)
        move(at, from, to, false);
}

void df_stand_forget(int at, const char *path)
{
    unlink_any(at, path, false);
}

/* ---- contents and attributes ----------------------------------------------------------------- */

/* fsnotify_change() of Linux goes by which of the two times is set. */
static const struct timespec *times_of(enum df_watch_kind kind)
{
    static const struct timespec times[][2] = {
        [DF_WATCH_ACCESS] = {{.tv_nsec = UTIME_NOW}, {.tv_nsec = UTIME_OMIT}},
        [DF_WATCH_MODIFY] = {{.tv_nsec = UTIME_OMIT}, {.tv_nsec = UTIME_NOW}},
        [DF_WATCH_ATTRIB] = {{.tv_nsec = UTIME_NOW}, {.tv_nsec = UTIME_NOW}},
    };

    return times[kind];
}

void df_stand_touch(int at, const char *path, enum df_watch_kind kind)
{
    utimensat(at, path, times_of(kind), AT_SYMLINK_NOFOLLOW);
}

void df_stand_touch_name(int at, const char *path, bool directory, enum df_watch_kind kind)
{
    if (utimensat(at, path, times_of(kind), AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT &&
        df_stand_name(at, path, directory) == 0)
        df_stand_touch(at, path, kind);
}

/* An empty file that gets a hole: the one change by a descriptor that takes no memory, and that the
 * kernel tells as such. Times it tells also to those who do not want to hear of removed names. */
void df_stand_touch_fd(int fd, enum df_watch_kind kind)
{
    if (kind != DF_WATCH_MODIFY ||
        fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 1) < 0)
        futimens(fd, times_of(kind));
}

int df_stand_open(int at, const char *path, int flags, bool directory)
{
    const int kept = directory ? 0 : O_ACCMODE | O_TRUNC;

    return openat(at, path,
                  (flags & kept) | O_NOFOLLOW | O_CLOEXEC | (directory ? O_DIRECTORY : 0));
}
