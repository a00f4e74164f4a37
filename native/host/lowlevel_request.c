/*
 * lowlevel_request.c - a request: waiting for a reply that comes late, and what a plugin may ask of
 * a request (fuse_req_*).
 */
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "host/lowlevel_private.h"

_Thread_local char df_request_mark;

void df_request_await(struct fuse_req *req)
{
    uint32_t state = DF_REQUEST_RUNNING;

    if (!atomic_compare_exchange_strong(&req->state, &state, DF_REQUEST_AWAITED))
        return; /* replied just now */
    while (atomic_load_explicit(&req->state, memory_order_acquire) == DF_REQUEST_AWAITED)
        syscall(SYS_futex, &req->state, FUTEX_WAIT_PRIVATE, DF_REQUEST_AWAITED, NULL, NULL, 0);
}

void *df_req_userdata(fuse_req_t req)
{
    return req->lane->userdata;
}

const struct fuse_ctx *df_req_ctx(fuse_req_t req)
{
    return &req->ctx;
}

int df_req_getgroups(fuse_req_t req, int count, gid_t list[])
{
    const struct df_caller *caller = req->caller;
    int total = caller ? (int)caller->group_count : 0;

    for (int i = 0; i < count && i < total; i++)
        list[i] = caller->groups[i];
    return total;
}

/* Calls are not interrupted, so there is nothing to remember. */
void df_req_interrupt_func(fuse_req_t req, fuse_interrupt_func_t func, void *data)
{
    (void)req, (void)func, (void)data;
}

int df_req_interrupted(fuse_req_t req)
{
    (void)req;
    return 0;
}
