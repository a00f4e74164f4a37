/*
 * sane.h - attributes that a file system can mean.
 */
#ifndef DF_HOST_SANE_H
#define DF_HOST_SANE_H

#include <stdbool.h>
#include <sys/stat.h>

/* False: an unknown type, or a negative size. The kernel calls such an answer an error, too. A bit
 * for each type: this is asked of every answer. */
static inline bool df_sane(const struct stat *st)
{
#define DF_TYPE_BIT(type) (1U << ((type) >> 12))
    const unsigned types = DF_TYPE_BIT(S_IFREG) | DF_TYPE_BIT(S_IFDIR) | DF_TYPE_BIT(S_IFLNK) |
                           DF_TYPE_BIT(S_IFCHR) | DF_TYPE_BIT(S_IFBLK) | DF_TYPE_BIT(S_IFIFO) |
                           DF_TYPE_BIT(S_IFSOCK);
    return (types & DF_TYPE_BIT(st->st_mode & S_IFMT)) && st->st_size >= 0;
#undef DF_TYPE_BIT
}

#endif
