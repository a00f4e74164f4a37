/*
 * cmdline_words.h - what the command lines of FUSE 2 and FUSE 3 have in common: the mountpoint, and
 * the name that a mount gets of its program. Inline, for libdf3.so.3 exports libfuse's names only.
 * To be included behind abi.h or abi2.h, which declare libfuse's functions.
 */
#ifndef DF_LIBFUSE_CMDLINE_WORDS_H
#define DF_LIBFUSE_CMDLINE_WORDS_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A path from the root, malloc'ed; NULL: no memory, or no working directory (errno). libfuse
 * resolves a mountpoint, which must exist, with realpath(3). Here it need not exist, and symlinks
 * stay: the core knows a mount by its resolved name and by the one it was given. */
static inline char *df_cmdline_absolute(const char *path)
{
    char *full;

    if (path[0] == '/')
        return strdup(path);
    char *cwd = getcwd(NULL, 0);
    if (!cwd)
        return NULL;
    int length = asprintf(&full, "%s/%s", cwd, path);
    free(cwd);
    return length < 0 ? NULL : full;
}

/* Takes the only word that is no option. 0, or -1 and a line in the log. */
static inline int df_cmdline_mountpoint(char **mountpoint, const char *word)
{
    if (*mountpoint) {
        fuse_log(FUSE_LOG_ERR, "fuse: invalid argument `%s'\n", word);
        return -1;
    }
    errno = ENOENT; /* what an empty name is to realpath(3) */
    *mountpoint = word[0] ? df_cmdline_absolute(word) : NULL;
    if (*mountpoint)
        return 0;
    fuse_log(FUSE_LOG_ERR, "fuse: bad mount point `%s': %s\n", word, strerror(errno));
    return -1;
}

/* Without fsname= and subtype= a mount is named after its program, and one that was built as a
 * shared object as the same source is when the kernel mounts it. 0, or -1: no memory. */
static inline int df_cmdline_subtype(struct fuse_args *args)
{
    char *option;
    const char *program = args->argv[0];
    const char *slash = strrchr(program, '/');
    size_t len;

    if (slash && slash[1])
        program = slash + 1;
    len = strlen(program);
    if (len > 3 && strcmp(program + len - 3, ".so") == 0)
        len -= 3;
    if (asprintf(&option, "-osubtype=%.*s", (int)len, program) < 0) {
        fuse_log(FUSE_LOG_ERR, "fuse: memory allocation failed\n");
        return -1;
    }
    int result = fuse_opt_add_arg(args, option);
    free(option);
    return result;
}

#endif
