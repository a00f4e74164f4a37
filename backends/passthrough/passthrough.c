/*
 * passthrough.c - command line and main of passthrough: passthrough SOURCE MOUNTPOINT [options].
 */
#include "passthrough.h"

#include <errno.h>
#include <fcntl.h>
#include <fuse_log.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct passthrough passthrough = {.root = -1};

enum { KEY_HELP, KEY_VERSION };

static const struct fuse_opt options[] = {
    FUSE_OPT_KEY("-h", KEY_HELP),
    FUSE_OPT_KEY("--help", KEY_HELP),
    FUSE_OPT_KEY("-V", KEY_VERSION),
    FUSE_OPT_KEY("--version", KEY_VERSION),
    FUSE_OPT_END,
};

struct words {
    const char *program;
    char *source;
    bool help;
};

/* The first word is the source; what follows is libfuse's. */
static int take_word(void *data, const char *arg, int key, struct fuse_args *rest)
{
    struct words *words = data;
    switch (key) {
    case KEY_HELP:
        words->help = true;
        return fuse_opt_add_arg(rest, "--help");
    case KEY_VERSION:
        fuse_log(FUSE_LOG_INFO, "passthrough 0.1\n");
        return fuse_opt_add_arg(rest, "--version");
    case FUSE_OPT_KEY_NONOPT:
        if (words->source)
            return 1;
        words->source = strdup(arg);
        return words->source ? 0 : -1;
    default:
        return 1;
    }
}

static void print_help(const char *program)
{
    fuse_log(FUSE_LOG_INFO,
             "usage: %s SOURCE MOUNTPOINT [options]\n\n"
             "Serves the directory SOURCE at MOUNTPOINT.\n"
             "By default attributes are not cached (-o attr_timeout=0), names for a second.\n\n",
             program);
}

static int open_source(const struct words *words)
{
    if (!words->source) {
        fuse_log(FUSE_LOG_ERR, "passthrough: no source directory: usage: %s SOURCE MOUNTPOINT\n",
                 words->program);
        return -1;
    }
    passthrough.root = open(words->source, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (passthrough.root >= 0)
        return 0;
    fuse_log(FUSE_LOG_ERR, "passthrough: %s: %s\n", words->source, strerror(errno));
    return -1;
}

/* Reading it with umask(2) would change it for a moment, for every thread of the process. */
static mode_t read_umask(void)
{
    unsigned mask = 0;
    char line[128];
    FILE *status = fopen("/proc/self/status", "re");
    while (status && fgets(line, sizeof(line), status))
        if (sscanf(line, "Umask: %o", &mask) == 1)
            break;
    if (status)
        fclose(status);
    return mask;
}

/*
 * Ours stand before the user's, which override them. Attributes are asked for each time: a hard link
 * has as many paths as names, and libfuse caches by path. Root reads and writes everything, so mode
 * bits are left to the kernel to check; for anybody else the source's own checks are exact.
 */
static int add_defaults(struct fuse_args *args)
{
    if (fuse_opt_insert_arg(args, 1, "-oattr_timeout=0,entry_timeout=1") == -1)
        return -1;
    if (!passthrough.give_files)
        return 0;
    return fuse_opt_insert_arg(args, 1, "-odefault_permissions");
}

static void *init(struct fuse_conn_info *conn, struct fuse_config *config)
{
    (void)conn;
    config->use_ino = 1;
    config->nullpath_ok = 1; /* every operation that has a handle uses it */
    config->hard_remove = 1; /* and the handle outlives the name */
    return NULL;
}

int main(int argc, char *argv[])
{
    struct fuse_args args = FUSE_ARGS_INIT(argc, argv);
    struct words words = {.program = argv[0]};
    struct fuse_operations ops = {.init = init};
    int status = 1;

    passthrough.umask = read_umask();
    passthrough.give_files = geteuid() == 0;
    add_name_operations(&ops);
    add_file_operations(&ops);
    if (fuse_opt_parse(&args, &words, options, take_word) == -1 || add_defaults(&args) == -1)
        goto out;
    if (words.help)
        print_help(words.program);
    else if (open_source(&words) != 0)
        goto out;
    status = fuse_main(args.argc, args.argv, &ops, NULL);
out:
    if (passthrough.root >= 0)
        close(passthrough.root);
    free(words.source);
    fuse_opt_free_args(&args);
    return status;
}
