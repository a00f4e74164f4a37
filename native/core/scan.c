/*
 * scan.c - a path in canonical form, by text alone; without a copy when it is canonical already.
 */
#include "core/scan.h"

#include <errno.h>
#include <string.h>

/* Copies the components, each behind one '/', that of a relative path's first one left out. */
static int scan_copy(const char *path, char *buf, struct df_scan *s)
{
    bool absolute = path[0] == '/';
    char *out = buf;

    if (strnlen(path, PATH_MAX) == PATH_MAX)
        return -ENAMETOOLONG;
    *s = (struct df_scan){.text = buf, .last = DF_LAST_ROOT};
    for (;;) {
        const char *end;
        unsigned n;

        s->slash = *path == '/';
        while (*path == '/')
            path++;
        if (*path == '\0')
            break;
        end = df_scan_end(path);
        n = df_scan_dots(path);
        s->last = n == 0 ? DF_LAST_NAME : n == 1 ? DF_LAST_DOT : DF_LAST_DOTDOT;
        if (n == 2 && !s->up) {
            s->up = true;
            s->plain = (size_t)(out - buf);
        }
        if (n != 1) {
            if (absolute || out != buf)
                *out++ = '/';
            out = mempcpy(out, path, (size_t)(end - path));
        }
        path = end;
    }
    if (absolute && out == buf)
        *out++ = '/';
    *out = '\0';
    s->len = (size_t)(out - buf);
    s->plain = s->up ? s->plain : s->len;
    s->slash = s->slash || s->last == DF_LAST_DOT;
    return 0;
}

/* No copy as long as each component begins as one should. `path` is not empty. */
int df_scan(const char *path, char buf[PATH_MAX], struct df_scan *s)
{
    const char *name = path + (path[0] == '/');

    *s = (struct df_scan){.text = path, .last = DF_LAST_NAME};
    for (;;) {
        unsigned n = df_scan_dots(name);

        if (DF_UNLIKELY(*name == '/' || *name == '\0' || n == 1))
            return scan_copy(path, buf, s);
        if (DF_UNLIKELY(n == 2) && !s->up) {
            s->up = true;
            s->plain = name == path ? 0 : (size_t)(name - 1 - path);
        }
        name = df_scan_end(name);
        if (*name == '\0') {
            s->last = n == 2 ? DF_LAST_DOTDOT : DF_LAST_NAME;
            break;
        }
        name++;
    }
    s->len = (size_t)(name - path);
    s->plain = s->up ? s->plain : s->len;
    return s->len < PATH_MAX ? 0 : -ENAMETOOLONG;
}
