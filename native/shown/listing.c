/*
 * listing.c - mountpoints that are not on disk, in the listings of the real directories they are
 * in.
 *
 * They come behind the kernel's last entry. That they have been told is kept by descriptor until
 * the kernel has entries again: the directory was rewound, or is another one's descriptor now.
 */
#include "shown/listing.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "client/table.h"
#include "core/table.h"

/* The lowest directory above a mountpoint that is there, as far as it was when it was looked for.
 */
struct parent {
    dev_t dev;
    ino_t ino;
    uint32_t name, len; /* of the entry that leads to the mountpoint: where in its path */
};

/* By place in the table of mounts, under its lock. */
static struct parent parents[DF_MOUNT_COUNT];
static _Atomic uint32_t looked; /* dfi_table_version() when they were looked for */

static bool find_parent(const char *point, struct parent *parent)
{
    char path[PATH_MAX], *slash;
    struct stat st;

    strcpy(path, point);
    while ((slash = strrchr(path, '/')) != NULL) {
        size_t name = (size_t)(slash - path) + 1;

        parent->name = (uint32_t)name;
        parent->len = (uint32_t)strlen(slash + 1);
        slash[slash == path ? 1 : 0] = '\0';
        if (dfi_kernel(__NR_stat, path, &st) == 0) {
            parent->dev = st.st_dev;
            parent->ino = st.st_ino;
            return df_table_lookup(path, strlen(path)) == NULL; /* else a mount has the directory */
        }
        if (name == 1)
            break;
    }
    return false;
}

static void find_parents(void)
{
    uint32_t version = dfi_table_version();

    if (looked == version)
        return;
    dfi_table_lock();
    for (int i = 0; looked != version && i < dfi_table_places(); i++) {
        const char *point = dfi_table_point(i);

        if (!point || !find_parent(point, &parents[i]))
            parents[i].len = 0;
    }
    looked = version;
    dfi_table_unlock();
}

static bool is_same(const struct parent *a, const char *a_name, int b)
{
    const struct parent *other = &parents[b];
    const char *point = dfi_table_point(b);

    return point && other->len == a->len && other->dev == a->dev && other->ino == a->ino &&
           memcmp(point + other->name, a_name, a->len) == 0;
}

/* The name that mount i adds to that directory. False: none, or another mount adds it. */
static bool take_name(const struct stat *directory, int i, char out[NAME_MAX + 1])
{
    const struct parent *parent = &parents[i];
    const char *point = dfi_table_point(i);

    if (!point || parent->len == 0 || parent->len > NAME_MAX || parent->dev != directory->st_dev ||
        parent->ino != directory->st_ino)
        return false;
    for (int j = 0; j < i; j++)
        if (is_same(parent, point + parent->name, j))
            return false;
    memcpy(out, point + parent->name, parent->len);
    out[parent->len] = '\0';
    return true;
}

static bool name_in(int fd, const struct stat *directory, int i, char out[NAME_MAX + 1])
{
    struct stat st;
    bool found;

    dfi_table_lock();
    found = take_name(directory, i, out);
    dfi_table_unlock();
    return found && dfi_kernel(__NR_newfstatat, fd, out, &st, AT_SYMLINK_NOFOLLOW) == -ENOENT;
}

/* Copies an entry to the program. Its size; 0: no room; -EFAULT. */
static long add(const char *name, unsigned long program, size_t room)
{
    struct dirent64 entry = {.d_ino = 1, .d_off = INT64_MAX, .d_type = DT_DIR};
    size_t len = strlen(name), size = offsetof(struct dirent64, d_name) + len + 1;

    size = (size + 7) & ~(size_t)7;
    if (size > room)
        return 0;
    entry.d_reclen = (unsigned short)size;
    memcpy(entry.d_name, name, len + 1);
    return dfi_copy_to((void *)program, &entry, size) < 0 ? -EFAULT : (long)size;
}

static long add_all(int fd, const struct stat *directory, unsigned long program, size_t size)
{
    char name[NAME_MAX + 1];
    size_t used = 0;

    for (int i = 0; i < dfi_table_places(); i++) {
        long more;

        if (!name_in(fd, directory, i, name))
            continue;
        more = add(name, program + used, size - used);
        if (more <= 0)
            return used > 0 ? (long)used : more;
        used += (size_t)more;
    }
    return (long)used;
}

/* Of any mount. */
static bool is_parent(const struct stat *directory)
{
    bool found = false;

    dfi_table_lock();
    for (int i = 0; i < dfi_table_places() && !found; i++)
        found = parents[i].len > 0 && parents[i].dev == directory->st_dev &&
                parents[i].ino == directory->st_ino;
    dfi_table_unlock();
    return found;
}

static bool was_told(struct dfi_files *files, int fd)
{
    return (dfi_told(files)[fd / 64] >> fd % 64 & 1) != 0;
}

long dfi_listing_next(struct dfi_files *files, int fd, long got, unsigned long program, size_t size)
{
    struct stat st;
    long more;

    if (fd >= DFI_FD_MAX || got < 0)
        return got;
    if (got > 0) {
        if (files->tells && was_told(files, fd))
            atomic_fetch_and(&dfi_told(files)[fd / 64], ~(UINT64_C(1) << fd % 64));
        return got;
    }
    find_parents();
    if (dfi_kernel(__NR_fstat, fd, &st) < 0 || !is_parent(&st))
        return 0;
    if (!dfi_fd_room(files))
        return -ENOMEM;
    if (was_told(files, fd))
        return 0;
    more = add_all(fd, &st, program, size);
    if (more > 0) {
        files->tells = true;
        atomic_fetch_or(&dfi_told(files)[fd / 64], UINT64_C(1) << fd % 64);
    }
    return more;
}
