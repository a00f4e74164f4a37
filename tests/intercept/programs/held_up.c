/*
 * held_up.c - a file system of one file, "file", of four pages. Its first change is made when it
 * has been read, and then it has another time. Opening "begun" waits until that change waits so.
 * "source" has nothing but 'n'.
 */
#define FUSE_USE_VERSION 31
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <fuse.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#define SIZE (4 * 4096)

static char bytes[2 * SIZE];

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* protects what follows, and bytes */
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static size_t size = SIZE;
static bool begun, was_read, made;

static void set(bool *what)
{
    *what = true;
    pthread_cond_broadcast(&changed);
}

static void await(const bool *what)
{
    while (!*what)
        pthread_cond_wait(&changed, &lock);
}

static void begin_change(void)
{
    pthread_mutex_lock(&lock);
    set(&begun);
    await(&was_read);
}

static void end_change(void)
{
    made = true;
    pthread_mutex_unlock(&lock);
}

static int get_attributes(const char *path, struct stat *st, struct fuse_file_info *fi)
{
    (void)fi;
    *st = (struct stat){.st_mode = S_IFDIR | 0755, .st_nlink = 2};
    if (strcmp(path, "/") != 0)
        *st = (struct stat){.st_mode = S_IFREG | 0666, .st_nlink = 1, .st_size = SIZE};
    pthread_mutex_lock(&lock);
    if (strcmp(path, "/file") == 0) {
        st->st_size = (off_t)size;
        st->st_mtime = made;
    }
    pthread_mutex_unlock(&lock);
    return 0;
}

static int set_size(const char *path, off_t length, struct fuse_file_info *fi)
{
    (void)path, (void)fi;
    begin_change();
    if ((size_t)length < size)
        memset(bytes + length, 0, size - (size_t)length);
    size = (size_t)length;
    end_change();
    return 0;
}

static int open_file(const char *path, struct fuse_file_info *fi)
{
    if (fi->flags & O_TRUNC)
        return set_size(path, 0, fi);
    pthread_mutex_lock(&lock);
    if (strcmp(path, "/begun") == 0)
        await(&begun);
    pthread_mutex_unlock(&lock);
    return 0;
}

static int read_file(const char *path, char *to, size_t count, off_t at, struct fuse_file_info *fi)
{
    size_t left;

    (void)fi;
    if (strcmp(path, "/source") == 0)
        return memset(to, 'n', count) ? (int)count : 0;
    pthread_mutex_lock(&lock);
    left = at < (off_t)size ? size - (size_t)at : 0;
    count = count < left ? count : left;
    memcpy(to, bytes + at, count);
    set(&was_read);
    pthread_mutex_unlock(&lock);
    return (int)count;
}

static int write_file(const char *path, const char *from, size_t count, off_t at,
                      struct fuse_file_info *fi)
{
    (void)path, (void)fi;
    begin_change();
    memcpy(bytes + at, from, count);
    end_change();
    return (int)count;
}

static int punch(const char *path, int mode, off_t at, off_t length, struct fuse_file_info *fi)
{
    (void)path, (void)mode, (void)fi;
    begin_change();
    memset(bytes + at, 0, (size_t)length);
    end_change();
    return 0;
}

static ssize_t copy(const char *from, struct fuse_file_info *in, off_t offset, const char *to,
                    struct fuse_file_info *out, off_t at, size_t count, int flags)
{
    (void)from, (void)in, (void)offset, (void)to, (void)out, (void)flags;
    begin_change();
    memset(bytes + at, 'n', count);
    end_change();
    return (ssize_t)count;
}

int main(int argc, char *argv[])
{
    static const struct fuse_operations operations = {
        .getattr = get_attributes,
        .open = open_file,
        .read = read_file,
        .write = write_file,
        .truncate = set_size,
        .fallocate = punch,
        .copy_file_range = copy,
    };

    memset(bytes, 'o', SIZE);
    return fuse_main(argc, argv, &operations, NULL);
}
