/*
 * late_locker.c - a file system that keeps the locks of its file "f", and takes its time to give
 * one: until "go" was opened. Opening "begun" waits until a lock was asked for, opening "unlocked"
 * until a close has unlocked, opening "given" until the lock was given.
 */
#define FUSE_USE_VERSION 31
#include <errno.h>
#include <fcntl.h>
#include <fuse.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* protects what follows */
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool begun, unlocked, goes, given, held;
static uint64_t owner;

/* Under the mutex, as the next. */
static void set(bool *what)
{
    *what = true;
    pthread_cond_broadcast(&changed);
}

static void await(const bool *what)
{
    while (!*what)
        pthread_cond_wait(&changed, &mutex);
}

static int get_attributes(const char *path, struct stat *st, struct fuse_file_info *fi)
{
    (void)fi;
    *st = (struct stat){.st_mode = path[1] ? S_IFREG | 0644 : S_IFDIR | 0755, .st_nlink = 1};
    return 0;
}

static int open_file(const char *path, struct fuse_file_info *fi)
{
    (void)fi;
    pthread_mutex_lock(&mutex);
    if (strcmp(path, "/begun") == 0)
        await(&begun);
    else if (strcmp(path, "/unlocked") == 0)
        await(&unlocked);
    else if (strcmp(path, "/given") == 0)
        await(&given);
    else if (strcmp(path, "/go") == 0)
        set(&goes);
    pthread_mutex_unlock(&mutex);
    return 0;
}

static void take(uint64_t by)
{
    set(&begun);
    await(&goes);
    held = true;
    owner = by;
    set(&given);
}

static void unlock(uint64_t by)
{
    held = held && owner != by;
    set(&unlocked);
}

static int lock(const char *path, struct fuse_file_info *fi, int command, struct flock *range)
{
    if (strcmp(path, "/f") != 0)
        return 0;
    pthread_mutex_lock(&mutex);
    if (command == F_GETLK)
        *range = (struct flock){.l_type = held ? F_WRLCK : F_UNLCK};
    else if (range->l_type == F_UNLCK)
        unlock(fi->lock_owner);
    else
        take(fi->lock_owner);
    pthread_mutex_unlock(&mutex);
    return 0;
}

int main(int argc, char *argv[])
{
    static const struct fuse_operations operations = {
        .getattr = get_attributes,
        .open = open_file,
        .lock = lock,
    };

    return fuse_main(argc, argv, &operations, NULL);
}
