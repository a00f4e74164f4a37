/*
 * interrupted.c - a high-level file system whose first read of /file lasts until fuse_interrupted()
 * says that its caller does not wait for it any more; it is EINTR then. Each later one tells what
 * became of the first. Its first word "intr" asks for interrupts (struct fuse_config).
 */
#define FUSE_USE_VERSION 31
#include <errno.h>
#include <fuse.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATIENCE = 20000 }; /* looks, a millisecond apart */

static _Atomic int begun;
static const char *_Atomic became = "asks\n";

static int asks;

static void *begin(struct fuse_conn_info *conn, struct fuse_config *config)
{
    (void)conn;
    config->intr = asks;
    return NULL;
}

static int get_attributes(const char *path, struct stat *st, struct fuse_file_info *fi)
{
    (void)fi;
    *st = (struct stat){.st_mode = path[1] ? S_IFREG | 0444 : S_IFDIR | 0755, .st_nlink = 1};
    return path[1] && strcmp(path, "/file") != 0 ? -ENOENT : 0;
}

static int open_file(const char *path, struct fuse_file_info *fi)
{
    (void)path;
    fi->direct_io = 1;
    return 0;
}

static int wait_for_interrupt(void)
{
    for (int i = 0; i < PATIENCE; i++) {
        if (fuse_interrupted()) {
            became = "told\n";
            return -EINTR;
        }
        usleep(1000);
    }
    became = "deaf\n";
    return -EIO;
}

static int read_file(const char *path, char *buffer, size_t size, off_t offset,
                     struct fuse_file_info *fi)
{
    (void)path, (void)size, (void)fi;
    if (!atomic_fetch_add(&begun, 1))
        return wait_for_interrupt();
    if (fuse_interrupted())
        return -EINTR;
    memcpy(buffer, became, 5);
    return offset == 0 ? 5 : 0;
}

static const struct fuse_operations operations = {
    .init = begin, .getattr = get_attributes, .open = open_file, .read = read_file};

int main(int argc, char *argv[])
{
    asks = argc > 1 && strcmp(argv[1], "intr") == 0;
    argv[asks] = argv[0];
    if (asks)
        signal(SIGUSR1, SIG_IGN); /* libfuse 3.14 sends it without a handler of its own */
    return fuse_main(argc - asks, argv + asks, &operations, NULL);
}
