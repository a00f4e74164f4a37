/*
 * find.c - from the first word of a command line to the library that is loaded.
 */
#include "api/find.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* <directory of this library>/backends/<name>.so */
static int find_backend(const char *name, char out[PATH_MAX])
{
    Dl_info info;
    const char *slash;
    int len;

    if (!dladdr((void *)find_backend, &info) || !(slash = strrchr(info.dli_fname, '/')))
        return -ENOENT;
    len = snprintf(out, PATH_MAX, "%.*s/backends/%s.so", (int)(slash - info.dli_fname),
                   info.dli_fname, name);
    if (len >= PATH_MAX)
        return -ENAMETOOLONG;
    return access(out, F_OK) == 0 ? 0 : -ENOENT;
}

static int find(const char *library, int argc, char *const argv[], char out[PATH_MAX])
{
    if (argc < 1 || !argv || !argv[0] || !argv[0][0])
        return -EINVAL;
    out[0] = '\0';
    if (argv[0][0] == DF_NAME_OF_SERVER)
        return 0;
    if (!library && !strchr(argv[0], '/'))
        return find_backend(argv[0], out);
    if (!library)
        library = argv[0];
    if (strlen(library) >= PATH_MAX)
        return -ENAMETOOLONG;
    strcpy(out, library);
    return 0;
}

static void explain(int error, char *const argv[], char *message, size_t size)
{
    if (error == -ENOENT)
        snprintf(message, size,
                 "%s is no built-in file system; a program or plugin of your own is named by its "
                 "path, with a slash",
                 argv[0]);
    else if (error == -EINVAL)
        snprintf(message, size, "argv has no first word: it names the file system, as in a shell");
    else
        snprintf(message, size, "the library's path is too long");
}

int df_find_library(const char *library, int argc, char *const argv[], char out[PATH_MAX],
                    char *message, size_t size)
{
    int error = find(library, argc, argv, out);

    if (error < 0 && message)
        explain(error, argv, message, size);
    return error;
}
