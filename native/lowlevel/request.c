/*
 * request.c - a request: waiting for a reply that comes late, and what a plugin may ask of
 * a request (fuse_req_*).
 */
#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "lowlevel/request.h"

_Thread_local char df_request_mark;

/* ---- interrupts ------------------------------------------------------------------------------ */

/* Each request has a lock of its own, as in libfuse: the function may wait for a lock of the
 * plugin's, under which it asks something of another request. */
static void interrupt(void *data)
{
    struct fuse_req *req = data;

    df_node_lock(&req->interrupt_lock);
    atomic_store(&req->interrupted, true);
    if (req->interrupt_func)
        req->interrupt_func(req, req->interrupt_data);
    df_node_unlock(&req->interrupt_lock);
}

/* By the thread that made the call, whose signals these are. */
static void hear(struct fuse_req *req)
{
    if (req->hears)
        return;
    req->hears = true;
    df_call_hear_signals(interrupt, req);
}

void df_request_hear_no_more(struct fuse_req *req)
{
    req->hears = false;
    df_call_hear_signals(NULL, NULL);
}

/* By another thread: its caller hears when it waits, see df_request_await(). */
void df_req_interrupt_func(fuse_req_t req, fuse_interrupt_func_t func, void *data)
{
    if (req->thread == df_request_here())
        hear(req);
    df_node_lock(&req->interrupt_lock);
    req->interrupt_func = func;
    req->interrupt_data = data;
    if (func && atomic_load(&req->interrupted))
        func(req, data);
    df_node_unlock(&req->interrupt_lock);
}

int df_req_interrupted(fuse_req_t req)
{
    if (req->thread == df_request_here())
        hear(req);
    return atomic_load(&req->interrupted);
}

/* ---- late replies ---------------------------------------------------------------------------- */

/* A limit that is never met: with one, the kernel ends the wait at a signal whatever SA_RESTART
 * says (signal(7)). */
#define PATIENCE_S 3600

static void sleep_on(struct fuse_req *req)
{
    const struct timespec limit = {.tv_sec = PATIENCE_S};

    while (atomic_load_explicit(&req->state, memory_order_acquire) == DF_REQUEST_AWAITED)
        if (syscall(SYS_futex, &req->state, FUTEX_WAIT_PRIVATE, DF_REQUEST_AWAITED, &limit, NULL,
                    0) < 0 &&
            errno == EINTR)
            interrupt(req);
}

/* The kernel says ENOTCONN where a program has closed its channel before it replied. */
static void sleep_unless_deserted(struct fuse_req *req, struct df_turns *turns)
{
    struct df_turns_late late = {
        .word = &req->state, .awaited = DF_REQUEST_AWAITED, .deserted = DF_REQUEST_DESERTED};

    df_turns_late(turns, &late);
    sleep_on(req);
    df_turns_late_over(turns, &late);
    if (atomic_load(&req->state) == DF_REQUEST_DESERTED)
        req->result = -ENOTCONN;
}

void df_request_await(struct fuse_req *req)
{
    struct df_turns *turns = req->lane->serial_lock.turns;
    uint32_t state = DF_REQUEST_RUNNING;

    hear(req);
    if (!atomic_compare_exchange_strong(&req->state, &state, DF_REQUEST_AWAITED))
        return; /* replied just now */
    if (turns)
        sleep_unless_deserted(req, turns);
    else
        sleep_on(req);
}

/* ---- what a plugin may ask ------------------------------------------------------------------- */

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
