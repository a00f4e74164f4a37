/*
 * scan.h - one look at a path: its canonical form, and what is special about it.
 */
#ifndef DF_CORE_SCAN_H
#define DF_CORE_SCAN_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "core/route.h"

struct df_scan {
    const char *text; /* canonical: no "//", no ".", no trailing '/' */
    size_t len;
    size_t plain; /* length of the part before the first "..", or len */
    enum df_last last;
    bool up;    /* it has ".." */
    bool slash; /* it ended in '/' or "." */
};

/* `path` is not empty. scan->text is the path itself if that is canonical, else buf. Returns 0 or
 * -ENAMETOOLONG. */
int df_scan(const char *path, char buf[PATH_MAX], struct df_scan *scan);

/* 1: "."; 2: ".."; 0: a name. `name` ends at '/' or NUL. */
static inline unsigned df_scan_dots(const char *name)
{
    if (DF_LIKELY(name[0] != '.'))
        return 0;
    if (name[1] == '/' || name[1] == '\0')
        return 1;
    return name[1] == '.' && (name[2] == '/' || name[2] == '\0') ? 2 : 0;
}

/* The '/' or NUL behind the component. */
static inline const char *df_scan_end(const char *name)
{
    while (*name != '/' && *name != '\0')
        name++;
    return name;
}

#endif
