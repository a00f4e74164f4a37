/*
 * call.c - a call in flight: leaving the mount, late completion.
 */
#include "core/call.h"

#include <errno.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/caller.h"
#include "core/mount.h"

enum { RUNNING, COMPLETE, ASLEEP }; /* df_call.state */

/* ---- leaving ------------------------------------------------------------------------------- */

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

/* ---- late completion ----------------------------------------------------------------------- */

void df_call_complete(struct df_call *call, ssize_t result)
{
    call->result = result;
    if (atomic_exchange(&call->state, COMPLETE) == ASLEEP)
        syscall(SYS_futex, &call->state, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

ssize_t df_call_wait(struct df_call *call)
{
    uint32_t state = RUNNING;

    if (atomic_compare_exchange_strong(&call->state, &state, ASLEEP))
        while (atomic_load(&call->state) == ASLEEP)
            syscall(SYS_futex, &call->state, FUTEX_WAIT_PRIVATE, ASLEEP, NULL, NULL, 0);
    atomic_store_explicit(&call->state, RUNNING, memory_order_relaxed);
    return call->result;
}
