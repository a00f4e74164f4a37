/*
 * place.c - placeholders for clients that have none: processes that have joined from Python or C.
 *
 * In the directory of the runs each open file has a shadow file (shadows/shadow.c), on which the
 * kernel keeps the locks of programs. Here others get a descriptor of it. Locks that belong to an
 * open file description are to be those of all processes that have it; whoever already has the
 * placeholder hands it on by fork, so only where several processes had the file before it was first
 * locked is one kept here for the others.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ledger/files_private.h"

/* Programs of the runs may have other ids: as shadows/shadow.c makes it. */
static int make_directory(const char *shadow)
{
    char path[PATH_MAX];

    if (snprintf(path, sizeof(path), "%s/f", shadow) >= PATH_MAX)
        return -ENAMETOOLONG;
    if (mkdir(path, 0777) < 0)
        return errno == EEXIST ? 0 : -errno;
    return chmod(path, 0777) < 0 ? -errno : 0;
}

static int open_or_make(const char *path)
{
    int fd = open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC);

    if (fd >= 0 || errno != ENOENT)
        return fd < 0 ? -errno : fd;
    fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (fd >= 0)
        fchmod(fd, 0666);
    return fd < 0 ? -errno : fd;
}

static bool name_placeholder(char path[PATH_MAX], const char *shadow, uint32_t number)
{
    return snprintf(path, PATH_MAX, "%s/f/0.%" PRIu32, shadow, number) < PATH_MAX;
}

static int open_placeholder(const char *shadow, uint32_t number)
{
    char path[PATH_MAX];
    int fd;

    if (!name_placeholder(path, shadow, number))
        return -ENAMETOOLONG;
    fd = open_or_make(path);
    if (fd == -ENOENT && (fd = make_directory(shadow)) == 0)
        fd = open_or_make(path);
    return fd;
}

static int copy_of(int fd)
{
    int copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);

    return copy < 0 ? -errno : copy;
}

/* Under the lock. */
static int place(struct df_open_file *entry, const char *shadow)
{
    int fd, kept;

    if (entry->place)
        return copy_of(entry->place - 1);
    fd = open_placeholder(shadow, entry->number);
    if (fd < 0 || entry->clients == 1)
        return fd;
    kept = copy_of(fd);
    if (kept < 0) {
        close(fd);
        return kept;
    }
    entry->place = kept + 1;
    return fd;
}

int df_files_place(struct df_files *files, const char *shadow, uint32_t client, uint64_t handle)
{
    uint32_t index = df_handle_index(handle);
    struct df_client *owner;
    int fd = -EBADF;

    pthread_mutex_lock(&files->lock);
    owner = df_files_client_find(files, client);
    if (owner && df_segment_ofd(files->segment, handle) && df_files_client_has(owner, index)) {
        __atomic_fetch_or(&df_files_ofd(files, index)->marks, DF_OFD_LOCKED, __ATOMIC_ACQ_REL);
        fd = place(&files->open[index], shadow);
    }
    pthread_mutex_unlock(&files->lock);
    return fd;
}

void df_files_unplace(const char *shadow, uint32_t number)
{
    char path[PATH_MAX];

    if (shadow && name_placeholder(path, shadow, number))
        unlink(path);
}
