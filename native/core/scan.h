/*
 * scan.h - one look at a path: its canonical form, and what is special about it.
 */
#ifndef DF_CORE_SCAN_H
#define DF_CORE_SCAN_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

#define DF_SCAN_ONES UINT64_C(0x0101010101010101) /* in each byte of a word */

/* The top bit of each byte that is 0; of one that is 1, too, if the byte below it is 0. */
static inline uint64_t df_scan_zeros(uint64_t word)
{
    return (word - DF_SCAN_ONES) & ~word & DF_SCAN_ONES << 7;
}

static inline bool df_scan_pair_in_word(const char *text)
{
    uint64_t word, found;

    __builtin_memcpy(&word, text, sizeof(word));
    word = (word | DF_SCAN_ONES) ^ DF_SCAN_ONES * '/'; /* 0 of either, and never 1 */
    found = df_scan_zeros(word);
    return (found & found >> 8) != 0;
}

/* Does one of '.' and '/' follow another in text[0..len)? A path without such a pair that begins
 * with neither and does not end in '/' is canonical: no empty component, no "." and no "..". */
static inline bool df_scan_has_pair(const char *text, size_t len)
{
    const size_t word = sizeof(uint64_t);
    size_t at = 0;

    if (len >= word) {
        for (; at < len - word; at += word - 1) /* they overlap */
            if (df_scan_pair_in_word(text + at))
                return true;
        return df_scan_pair_in_word(text + len - word);
    }
    for (; at + 1 < len; at++)
        if ((text[at] | 1) == '/' && (text[at + 1] | 1) == '/')
            return true;
    return false;
}

/* The '/' or NUL behind the component. */
static inline const char *df_scan_end(const char *name)
{
    while (*name != '/' && *name != '\0')
        name++;
    return name;
}

#endif
