/*
 * call.c - a call in flight: late completion.
 */
#include "core/call.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

_Atomic(void (*)(void)) df_call_listener;
_Atomic bool df_call_keeps_writes;
_Atomic(enum df_heard) df_heard;
_Atomic(void (*)(df_call_tell *, void *)) df_call_signals;

enum { RUNNING, COMPLETE, ASLEEP }; /* df_call.state */

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
