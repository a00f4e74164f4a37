/*
 * liar.c - a file system whose answers make no sense, each file in its own way.
 */
#define _GNU_SOURCE
#define FUSE_USE_VERSION 31
#include <errno.h>
#include <fuse.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define SIZE 100000

/* Files, and the size that stat tells. */
static const struct {
    const char *name;
    off_t size;
} files[] = {
    {"/back", SIZE},      /* SEEK_DATA and SEEK_HOLE go back to the beginning */
    {"/ahead", SIZE},     /* they go behind the end */
    {"/blind", SIZE},     /* both are EINVAL, as any lseek */
    {"/huge", INT64_MAX}, /* of which there are SIZE bytes */
    {"/negative", -5},
    {"/empty", SIZE},            /* a read finds nothing */
    {"/more", SIZE},             /* reads and writes tell of more bytes than were wanted */
    {"/grows", SIZE},            /* longer at each look */
    {"/large", (off_t)40 << 20}, /* of which there are SIZE bytes */
};

static int find(const char *path)
{
    for (unsigned i = 0; i < sizeof(files) / sizeof(files[0]); i++)
        if (strcmp(files[i].name, path) == 0)
            return (int)i;
    return -1;
}

static int is(const char *path, const char *name)
{
    return strcmp(path + 1, name) == 0;
}

static int tell(const char *path, struct stat *st, struct fuse_file_info *fi)
{
    static off_t more;
    int i = find(path);

    (void)fi;
    memset(st, 0, sizeof(*st));
    if (strcmp(path, "/") == 0 || is(path, "partly")) {
        st->st_mode = S_IFDIR | 0755;
        return 0;
    }
    if (is(path, "nothing"))
        return 0; /* neither file nor directory */
    if (is(path, "link")) {
        st->st_mode = S_IFLNK | 0777;
        st->st_size = -1;
        return 0;
    }
    if (i < 0)
        return -ENOENT;
    st->st_mode = S_IFREG | 0666;
    st->st_nlink = 1;
    st->st_size = files[i].size + (is(path, "grows") ? more++ : 0);
    return 0;
}

static int list(const char *path, void *buf, fuse_fill_dir_t fill, off_t offset,
                struct fuse_file_info *fi, enum fuse_readdir_flags flags)
{
    char longest[300];
    struct stat st = {.st_ino = UINT64_MAX, .st_mode = 0170000};

    (void)fi, (void)flags;
    if (is(path, "partly")) {
        if (offset == 0)
            fill(buf, "name", NULL, 1, 0);
        fill(buf, "a/b", NULL, 2, 0);
        return 0;
    }
    memset(longest, 'x', sizeof(longest) - 1);
    longest[sizeof(longest) - 1] = '\0';
    fill(buf, "", NULL, 0, 0);
    fill(buf, "a/b", &st, 0, 0);
    fill(buf, "..", &st, 0, 0);
    fill(buf, longest, &st, 0, 0);
    for (unsigned i = 0; i < sizeof(files) / sizeof(files[0]); i++)
        fill(buf, files[i].name + 1, &st, 0, 0);
    fill(buf, files[0].name + 1, &st, 0, 0);
    fill(buf, "link", &st, 0, 0);
    fill(buf, "nothing", &st, 0, 0);
    return 0;
}

static int get(const char *path, char *buf, size_t size, off_t offset, struct fuse_file_info *fi)
{
    size_t got = offset >= SIZE ? 0 : SIZE - (size_t)offset < size ? SIZE - (size_t)offset : size;

    (void)fi;
    if (is(path, "empty"))
        return 0;
    memset(buf, 'a', got);
    return is(path, "more") ? (int)size + 1000 : (int)got;
}

static int put(const char *path, const char *buf, size_t size, off_t offset,
               struct fuse_file_info *fi)
{
    (void)buf, (void)offset, (void)fi;
    return is(path, "more") ? (int)size + 1000 : is(path, "empty") ? 0 : (int)size;
}

static off_t seek(const char *path, off_t offset, int whence, struct fuse_file_info *fi)
{
    (void)fi, (void)whence;
    if (is(path, "ahead"))
        return INT64_MAX;
    if (is(path, "negative"))
        return -1000000;
    if (is(path, "blind"))
        return -EINVAL;
    if (is(path, "back"))
        return whence == SEEK_HOLE ? offset + 4096 : 0;
    return offset;
}

static int follow(const char *path, char *buf, size_t size)
{
    (void)path;
    memset(buf, 'l', size);
    return 0;
}

static int attributes(const char *path, char *list, size_t size)
{
    (void)path;
    memset(list, 'n', size);
    return (int)size + 100;
}

static int attribute(const char *path, const char *name, char *value, size_t size)
{
    (void)path, (void)name;
    memset(value, 'v', size);
    return (int)size + 100;
}

static ssize_t copy(const char *in, struct fuse_file_info *fi_in, off_t from, const char *out,
                    struct fuse_file_info *fi_out, off_t to, size_t size, int flags)
{
    (void)in, (void)fi_in, (void)from, (void)out, (void)fi_out, (void)to, (void)flags;
    return (ssize_t)size + 1000;
}

static int shorten(const char *path, off_t size, struct fuse_file_info *fi)
{
    (void)path, (void)size, (void)fi;
    return 0;
}

static const struct fuse_operations operations = {
    .getattr = tell,
    .readdir = list,
    .read = get,
    .write = put,
    .lseek = seek,
    .readlink = follow,
    .listxattr = attributes,
    .getxattr = attribute,
    .copy_file_range = copy,
    .truncate = shorten,
};

int main(int argc, char *argv[])
{
    return fuse_main(argc, argv, &operations, NULL);
}
