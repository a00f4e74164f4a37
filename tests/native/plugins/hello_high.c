/*
 * hello_high.c - a small file system on libfuse's high-level API, for test_plugin.c.
 *
 *   /text      what -o text= said
 *   /mounts    how many mounts this copy of the program has made: 1, unless copies share globals
 *   /end       opening it makes the file system end itself
 *   /deep/text, and /deep/link, an absolute symlink to it: for the module subdir
 *   /caf\351   a name in ISO-8859-1, for the module iconv
 *
 * With -o witness=FILE it appends a word to that (real) file at each step of its life,
 * "(elsewhere)" behind it if that is not the thread on which main began.
 */
#define FUSE_USE_VERSION 31
#include <errno.h>
#include <fcntl.h>
#include <fuse.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef MAIN_MOVES
const unsigned directfuse_main_moves = 1; /* docs/decisions/015 */
#endif

static struct {
    char *text;
    char *witness;
    int end_at_init;
    int exit_at_end;
} options;

static const struct fuse_opt templates[] = {
    {"text=%s", offsetof(__typeof__(options), text), 0},
    {"witness=%s", offsetof(__typeof__(options), witness), 0},
    {"end_at_init", offsetof(__typeof__(options), end_at_init), 1},
    {"exit_at_end", offsetof(__typeof__(options), exit_at_end), 1},
    FUSE_OPT_END,
};

static char mounts[16];
static int mount_count;
static pid_t main_thread;

static void testify(const char *word)
{
    int fd = options.witness ? open(options.witness, O_WRONLY | O_APPEND | O_CREAT, 0600) : -1;
    if (fd < 0)
        return;
    dprintf(fd, "%s%s ", word, gettid() == main_thread ? "" : "(elsewhere)");
    close(fd);
}

static const char *content(const char *path)
{
    if (strcmp(path, "/text") == 0 || strcmp(path, "/deep/text") == 0)
        return options.text ? options.text : "";
    if (strcmp(path, "/caf\351") == 0)
        return "coffee";
    if (strcmp(path, "/mounts") == 0)
        return mounts;
    return strcmp(path, "/end") == 0 ? "" : NULL;
}

static void *hello_init(struct fuse_conn_info *conn, struct fuse_config *config)
{
    (void)conn;
    config->attr_timeout = 0;
    snprintf(mounts, sizeof(mounts), "%d", ++mount_count);
    testify("init");
    if (options.end_at_init)
        fuse_exit(fuse_get_context()->fuse);
    return &options;
}

static void hello_destroy(void *data)
{
    testify(data == &options ? "destroy" : "destroy(stranger)");
}

static int hello_getattr(const char *path, struct stat *st, struct fuse_file_info *fi)
{
    (void)fi;
    const char *text = content(path);
    *st = (struct stat){.st_mode = S_IFREG | 0444, .st_nlink = 1};
    if (strcmp(path, "/") == 0 || strcmp(path, "/deep") == 0 || strcmp(path, "/deep/") == 0)
        *st = (struct stat){.st_mode = S_IFDIR | 0755, .st_nlink = 2};
    else if (strcmp(path, "/deep/link") == 0)
        *st = (struct stat){.st_mode = S_IFLNK | 0777, .st_nlink = 1, .st_size = 10};
    else if (!text)
        return -ENOENT;
    else
        st->st_size = (off_t)strlen(text);
    return 0;
}

static int hello_readdir(const char *path, void *buf, fuse_fill_dir_t fill, off_t offset,
                         struct fuse_file_info *fi, enum fuse_readdir_flags flags)
{
    (void)offset;
    (void)fi;
    (void)flags;
    static const char *const top[] = {".", "..", "text", "mounts", "end", "deep", "caf\351", NULL};
    static const char *const deep[] = {".", "..", "text", "link", NULL};
    for (const char *const *name = path[1] ? deep : top; *name; name++)
        fill(buf, *name, NULL, 0, 0);
    return 0;
}

static int hello_readlink(const char *path, char *buf, size_t size)
{
    (void)path;
    snprintf(buf, size, "/deep/text");
    return 0;
}

static int hello_open(const char *path, struct fuse_file_info *fi)
{
    (void)fi;
    if (fuse_get_context()->private_data != &options)
        return -EUCLEAN;
    if (strcmp(path, "/end") == 0)
        fuse_exit(fuse_get_context()->fuse);
    return 0;
}

static int hello_read(const char *path, char *buf, size_t size, off_t offset,
                      struct fuse_file_info *fi)
{
    (void)fi;
    const char *text = content(path);
    size_t length = strlen(text);
    if ((size_t)offset >= length)
        return 0;
    if (size > length - (size_t)offset)
        size = length - (size_t)offset;
    memcpy(buf, text + offset, size);
    return (int)size;
}

static const struct fuse_operations operations = {
    .init = hello_init,
    .destroy = hello_destroy,
    .getattr = hello_getattr,
    .readdir = hello_readdir,
    .readlink = hello_readlink,
    .open = hello_open,
    .read = hello_read,
};

int main(int argc, char *argv[])
{
    struct fuse_args args = FUSE_ARGS_INIT(argc, argv);
    int status = 1;
    main_thread = gettid();
    if (fuse_opt_parse(&args, &options, templates, NULL) == 0) {
        status = fuse_main(args.argc, args.argv, &operations, NULL);
        testify("returns");
    }
    fuse_opt_free_args(&args);
    free(options.text);
    free(options.witness);
    if (options.exit_at_end)
        exit(9);
    return status;
}
