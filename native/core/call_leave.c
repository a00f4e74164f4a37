/*
 * call_leave.c - where a path goes on that leads out of a mount.
 */
#include <errno.h>
#include <string.h>

#include "core/call.h"
#include "core/mount.h"

/* A "//" that arises is the router's to remove. */
int df_call_leave(struct df_call *call, const char *target, size_t target_len, const char *rest,
                  bool link)
{
    size_t rest_len = strlen(rest);
    bool slash = rest_len > 0 && rest[0] != '/';

    if (link && ++call->links > DF_LINKS_MAX)
        return -ELOOP;
    if (target_len + slash + rest_len >= sizeof(call->leave))
        return -ENAMETOOLONG;
    memmove(call->leave + target_len + slash, rest, rest_len + 1); /* rest may lie in leave */
    memcpy(call->leave, target, target_len);
    if (slash)
        call->leave[target_len] = '/';
    return DF_LEAVE;
}

int df_call_leave_up(struct df_call *call, const char *rest)
{
    const char *point = call->mount->point;
    const char *end = strrchr(point, '/'); /* NULL: "" is the mountpoint "/", its own parent */

    if (!end || end == point)
        return df_call_leave(call, "/", 1, rest, false);
    return df_call_leave(call, point, (size_t)(end - point), rest, false);
}
