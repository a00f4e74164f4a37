/*
 * moody.c - a read-only file system that fails as its files are named: reading "crash" follows a
 * wild pointer, looking at "hang", reading "mute" never end, every other file holds its own name.
 * With -o flushes closing "sticky" never ends, either. While the file of -o once= exists, the next
 * read removes it and crashes: a crash that happens once. With -o dies=abort or dies=exit it ends
 * itself where it would crash; with -o dies=thread a thread of its own does, and with
 * -o dies=recursion it fills its stack. Its own end waits until there is no file of -o hold=, and
 * makes that of -o ended=; who begins to hang makes that of -o hanging=. So does the opening of
 * "late", which is not listed. With -o starts it hangs before it mounts.
 */
#define FUSE_USE_VERSION 31
#include <errno.h>
#include <fcntl.h>
#include <fuse.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct settings {
    char *once, *dies, *hold, *ended, *hanging;
    int flushes, starts;
} settings;

static const char *const names[] = {"/one", "/two", "/crash", "/hang", "/mute", "/sticky"};

static void make(const char *path)
{
    if (path)
        close(open(path, O_CREAT | O_WRONLY, 0600));
}

static void hang(void)
{
    make(settings.hanging);
    for (;;)
        pause();
}

static int moody_getattr(const char *path, struct stat *st, struct fuse_file_info *fi)
{
    (void)fi;
    if (strcmp(strrchr(path, '/'), "/hang") == 0)
        hang();
    *st = (struct stat){.st_mode = S_IFDIR | 0755, .st_nlink = 2};
    if (strcmp(path, "/") == 0 || strcmp(path, "/sub") == 0)
        return 0;
    if (strcmp(path, "/late") == 0) {
        st->st_mode = S_IFREG | 0444;
        return 0;
    }
    if (strncmp(path, "/sub/", 5) == 0)
        path += 4;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strcmp(path, names[i]) == 0) {
            *st = (struct stat){
                .st_mode = S_IFREG | 0444, .st_nlink = 1, .st_size = (off_t)strlen(path) - 1};
            return 0;
        }
    return -ENOENT;
}

static int moody_readdir(const char *path, void *buf, fuse_fill_dir_t fill, off_t offset,
                         struct fuse_file_info *fi, enum fuse_readdir_flags flags)
{
    (void)path, (void)offset, (void)fi, (void)flags;
    fill(buf, ".", NULL, 0, 0);
    fill(buf, "..", NULL, 0, 0);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        fill(buf, names[i] + 1, NULL, 0, 0);
    return 0;
}

static void wait_while_held(void)
{
    while (settings.hold && access(settings.hold, F_OK) == 0)
        usleep(1000);
}

static int moody_open(const char *path, struct fuse_file_info *fi)
{
    if (strcmp(path, "/late") == 0) {
        make(settings.hanging);
        wait_while_held();
    }
    fi->direct_io = 1;
    return 0;
}

static void *end_all(void *unused)
{
    (void)unused;
    abort();
}

/* The call that has made the thread is answered. */
static void end_on_a_thread(void)
{
    pthread_t thread;

    if (pthread_create(&thread, NULL, end_all, NULL) != 0)
        abort();
    pthread_join(thread, NULL);
}

/* As far as the stack reaches. */
static int recurse(int depth)
{
    volatile char frame[4096];

    frame[0] = (char)depth;
    return depth < 0 ? 0 : recurse(depth + 1) + frame[0];
}

static void crash(void)
{
    volatile char *wild = (volatile char *)16;

    if (!settings.dies)
        *wild = 1;
    else if (strcmp(settings.dies, "thread") == 0)
        end_on_a_thread();
    else if (strcmp(settings.dies, "exit") == 0)
        exit(3);
    else if (strcmp(settings.dies, "recursion") == 0)
        recurse(0);
    else
        abort();
}

static int moody_read(const char *path, char *buf, size_t size, off_t offset,
                      struct fuse_file_info *fi)
{
    const char *name = strrchr(path, '/') + 1;
    size_t length = strlen(name);

    (void)fi;
    if (strcmp(name, "mute") == 0)
        hang();
    if (strcmp(name, "crash") == 0 || (settings.once && unlink(settings.once) == 0))
        crash();
    if (offset >= (off_t)length)
        return 0;
    if (size > length - (size_t)offset)
        size = length - (size_t)offset;
    memcpy(buf, name + offset, size);
    return (int)size;
}

static int moody_flush(const char *path, struct fuse_file_info *fi)
{
    (void)fi;
    if (strcmp(strrchr(path, '/'), "/sticky") == 0)
        hang();
    return 0;
}

static void moody_destroy(void *data)
{
    (void)data;
    wait_while_held();
    make(settings.ended);
}

static struct fuse_operations operations = {
    .getattr = moody_getattr,
    .readdir = moody_readdir,
    .open = moody_open,
    .read = moody_read,
    .destroy = moody_destroy,
};

static const struct fuse_opt options[] = {{"once=%s", offsetof(struct settings, once), 0},
                                          {"dies=%s", offsetof(struct settings, dies), 0},
                                          {"hanging=%s", offsetof(struct settings, hanging), 0},
                                          {"flushes", offsetof(struct settings, flushes), 1},
                                          {"starts", offsetof(struct settings, starts), 1},
                                          {"hold=%s", offsetof(struct settings, hold), 0},
                                          {"ended=%s", offsetof(struct settings, ended), 0},
                                          FUSE_OPT_END};

int main(int argc, char *argv[])
{
    struct fuse_args args = FUSE_ARGS_INIT(argc, argv);

    if (fuse_opt_parse(&args, &settings, options, NULL) < 0)
        return 1;
    if (settings.starts)
        hang();
    if (settings.flushes)
        operations.flush = moody_flush;
    return fuse_main(args.argc, args.argv, &operations, NULL);
}
