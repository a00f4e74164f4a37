/*
 * mountpoint.c - the names of a mountpoint.
 */
#include "core/mountpoint.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Absolute, without "//", "." and trailing '/', by text alone; ".." takes back a component. */
int df_mountpoint_canonical(const char *point, char out[PATH_MAX])
{
    char text[PATH_MAX], *end = out;

    if (point[0] == '/') {
        if (strlen(point) >= sizeof(text))
            return -ENAMETOOLONG;
        strcpy(text, point);
    } else {
        if (!getcwd(text, sizeof(text)))
            return -errno;
        if (strlen(text) + 1 + strlen(point) >= sizeof(text))
            return -ENAMETOOLONG;
        strcat(strcat(text, "/"), point);
    }
    for (char *state, *name = strtok_r(text, "/", &state); name;
         name = strtok_r(NULL, "/", &state)) {
        if (strcmp(name, ".") == 0)
            continue;
        if (strcmp(name, "..") == 0) {
            while (end > out && *--end != '/')
                ;
            continue;
        }
        *end++ = '/';
        end = stpcpy(end, name);
    }
    *end = '\0';
    return 0;
}

/* Resolves the symlinks of the part that exists on disk; the rest stays as it is. */
int df_mountpoint_physical(const char *canonical, char out[PATH_MAX])
{
    char head[PATH_MAX], real[PATH_MAX];
    size_t len = strlen(canonical);

    strcpy(head, canonical);
    while (len > 0 && !realpath(head, real)) {
        if (errno == ELOOP || errno == ENAMETOOLONG)
            return -errno;
        while (head[--len] != '/')
            ;
        head[len] = '\0';
    }
    if (len == 0 || strcmp(real, "/") == 0)
        real[0] = '\0';
    if (strlen(real) + strlen(canonical + len) >= PATH_MAX)
        return -ENAMETOOLONG;
    strcpy(stpcpy(out, real), canonical + len);
    return 0;
}

mode_t df_mountpoint_type(const char *point)
{
    struct stat st;

    return stat(point[0] ? point : "/", &st) == 0 ? st.st_mode & S_IFMT : 0;
}
