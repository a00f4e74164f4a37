/*
 * ioctl.h - how much memory an ioctl is about, and whether there is any.
 */
#ifndef DF_CORE_IOCTL_H
#define DF_CORE_IOCTL_H

#include <linux/ioctl.h>
#include <stdbool.h>
#include <stddef.h>

/* In the directions that the request encodes, and of the size that it encodes, but for two: those
 * of a file's flags (lsattr, chattr) say long, and Linux reads and writes an int. Callers have room
 * for no more. */
static inline size_t df_ioctl_size(unsigned long request)
{
    unsigned command = (unsigned)request;

    if (command == _IOR('f', 1, long) || command == _IOW('f', 2, long))
        return sizeof(int);
    return _IOC_SIZE(command);
}

/* Bytes go in or out, and the caller has given no place for them. */
static inline bool df_ioctl_lacks_place(unsigned long request, const void *arg)
{
    return !arg && _IOC_DIR((unsigned)request) && df_ioctl_size(request) > 0;
}

#endif
