/*
 * cmdline.c - the options that every FUSE 2 program understands (-f, -s, -d, -h, mountpoint), and
 * its help. FUSE 3 knows more options here, which in FUSE 2 are the program's own to take.
 */
#include <stddef.h>
#include <stdlib.h>

#include "libfuse2/abi2.h"

#include "libfuse/cmdline_words.h"

struct cmdline {
    int help, version, single, foreground, named;
    char *mountpoint;
};

#define FLAG(template, member) {template, offsetof(struct cmdline, member), 1}
#define KEEP(template)         FUSE_OPT_KEY(template, FUSE_OPT_KEY_KEEP)

static const struct fuse_opt cmdline_opts[] = {
    FLAG("-h", help),
    FLAG("--help", help),
    FLAG("-ho", help),
    FLAG("-V", version),
    FLAG("--version", version),
    FLAG("-d", foreground),
    KEEP("-d"),
    FLAG("debug", foreground),
    KEEP("debug"),
    FLAG("-f", foreground),
    FLAG("-s", single),
    FLAG("fsname=", named),
    KEEP("fsname="),
    FLAG("subtype=", named),
    KEEP("subtype="),
    FUSE_OPT_END,
};

static int take_word(void *data, const char *arg, int key, struct fuse_args *rest)
{
    struct cmdline *line = data;
    (void)rest;
    if (key != FUSE_OPT_KEY_NONOPT)
        return 1;
    return df_cmdline_mountpoint(&line->mountpoint, arg);
}

static void print_help(const char *program)
{
    fuse_log(FUSE_LOG_INFO,
             "usage: %s mountpoint [options]\n\n"
             "    -h   --help            print this text\n"
             "    -V   --version         print the version\n"
             "    -d   -o debug          accepted; what is called is in the mount's statistics\n"
             "    -f                     accepted: there is no background to go to\n"
             "    -s                     one operation at a time\n"
             "    -o hard_remove         remove an open file at once (it is hidden until closed)\n"
             "    -o use_ino             inode numbers are the file system's\n"
             "    -o readdir_ino         likewise in directories\n"
             "    -o direct_io           as if every open file asked for it\n"
             "    -o nopath              no paths beside handles\n"
             "    -o max_write=N         bytes in one write\n"
             "    -o atomic_o_trunc      O_TRUNC goes to open\n"
             "    -o no_remote_lock      locks are kept here, not by the file system\n",
             program);
}

int fuse2_parse_cmdline(struct fuse_args *args, char **mountpoint, int *multithreaded,
                        int *foreground)
{
    struct cmdline line = {0};
    int result = fuse_opt_parse(args, &line, cmdline_opts, take_word);
    if (result == 0 && line.help) {
        print_help(args->argv[0]);
        fuse_lib_help(args);
    }
    if (result == 0 && line.version)
        fuse_log(FUSE_LOG_INFO, "FUSE library version: 2.9\n");
    if (line.help || line.version || (!line.named && df_cmdline_subtype(args) == -1))
        result = -1;
    if (result == 0 && mountpoint)
        *mountpoint = line.mountpoint;
    else
        free(line.mountpoint);
    if (multithreaded)
        *multithreaded = !line.single;
    if (foreground)
        *foreground = line.foreground;
    return result;
}
EXPORT(fuse2_parse_cmdline, "fuse_parse_cmdline@@FUSE_2.5");
