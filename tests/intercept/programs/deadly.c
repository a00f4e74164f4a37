/*
 * deadly.c - a file system that kills whoever reads its one file, "f" in any directory, and has not
 * opened it: in the middle of what mapped memory is brought by. A read at SLOW ends when the
 * directory "end" is made; making "wait" ends when such a read has begun.
 */
#define _GNU_SOURCE
#define FUSE_USE_VERSION 31
#include <errno.h>
#include <fuse.h>
#include <semaphore.h>
#include <signal.h>
#include <string.h>

#define MIB        ((off_t)1 << 20)
#define CHUNK      (MIB / 2)
#define SIZE       (256 * MIB)

#define SLOW       (CHUNK + 4096)

#define ALLOW_MMAP (1u << 28) /* FUSE_CAP_DIRECT_IO_ALLOW_MMAP of libfuse 3.16 */

static pid_t opener;
static sem_t begun, over;
static int made; /* a directory: any has the file */

static void *fs_init(struct fuse_conn_info *conn, struct fuse_config *config)
{
    (void)config;
    conn->want |= conn->capable & ALLOW_MMAP;
    return NULL;
}

static int is_file(const char *path)
{
    return strcmp(strrchr(path, '/'), "/f") == 0;
}

static int fs_getattr(const char *path, struct stat *st, struct fuse_file_info *fi)
{
    (void)fi;
    if (path[1] != '\0' && (!made || strcmp(strrchr(path, '/'), "/wait") == 0 ||
                            strcmp(strrchr(path, '/'), "/end") == 0))
        return -ENOENT;
    st->st_mode = is_file(path) ? S_IFREG | 0644 : S_IFDIR | 0755;
    st->st_nlink = 1;
    st->st_size = is_file(path) ? SIZE : 0;
    return 0;
}

static int fs_mkdir(const char *path, mode_t mode)
{
    (void)mode;
    made = 1;
    if (strcmp(strrchr(path, '/'), "/wait") == 0)
        sem_wait(&begun);
    if (strcmp(strrchr(path, '/'), "/end") == 0)
        sem_post(&over);
    return 0;
}

static int fs_open(const char *path, struct fuse_file_info *fi)
{
    (void)path;
    opener = fuse_get_context()->pid;
    fi->direct_io = 1; /* each read comes here */
    return 0;
}

static int fs_read(const char *path, char *buf, size_t size, off_t offset,
                   struct fuse_file_info *fi)
{
    pid_t reader = fuse_get_context()->pid;

    (void)path;
    (void)fi;
    if (offset == SLOW) {
        sem_post(&begun);
        sem_wait(&over);
    }
    if (reader > 1 && reader != opener && offset % CHUNK >= CHUNK / 2)
        kill(reader, SIGKILL);
    if (offset >= SIZE)
        return 0;
    if ((off_t)size > SIZE - offset)
        size = (size_t)(SIZE - offset);
    memset(buf, 1 + (int)(offset / CHUNK), size);
    return (int)size;
}

static const struct fuse_operations ops = {
    .init = fs_init, .getattr = fs_getattr, .mkdir = fs_mkdir, .open = fs_open, .read = fs_read};

int main(int argc, char **argv)
{
    sem_init(&begun, 0, 0);
    sem_init(&over, 0, 0);
    return fuse_main(argc, argv, &ops, NULL);
}
