/*
 * calls_ready.c - poll(2) and ppoll(2) of files in mounts, among others.
 */
#include <limits.h>
#include <poll.h>
#include <string.h>

#include "syscalls/ready.h"

struct polled {
    struct dfi_waiter waiter; /* the first member */
    unsigned long count;
    struct pollfd *program;     /* the program's own */
    struct pollfd *given;       /* a copy: fd and events; revents of the answer */
    struct pollfd *asked;       /* for the kernel: files of mounts are none there */
    uint64_t *files;            /* handles of these; 0: of what the kernel is asked */
    unsigned long at;           /* the first of them: there the kernel finds the bell */
    unsigned long mask, masked; /* for the kernel: a signal mask and its size */
};

/* ---- memory ---------------------------------------------------------------------------------- */

#define EACH (2 * sizeof(struct pollfd) + sizeof(uint64_t))

/* False: the kernel's, which may have something to say. */
static bool take(struct polled *p)
{
    if (p->count == 0 || p->count > DFI_FD_MAX || !(p->files = dfi_alloc(p->count * EACH)))
        return false;
    p->given = (struct pollfd *)(p->files + p->count);
    p->asked = p->given + p->count;
    return dfi_copy_from(p->given, p->program, p->count * sizeof(struct pollfd)) == 0;
}

/* Whether there are any, or any that are ours: those the kernel is to find closed. */
static bool sort(struct polled *p)
{
    bool any = false;

    p->at = p->count;
    memcpy(p->asked, p->given, p->count * sizeof(struct pollfd));
    for (unsigned long i = p->count; i-- > 0;) {
        p->files[i] = dfi_ready_file(p->waiter.files, p->given[i].fd);
        if (dfi_is_hidden(dfi_process(), p->given[i].fd))
            p->asked[i].fd = INT_MAX;
        else if (p->files[i])
            p->asked[p->at = i] = (struct pollfd){.fd = -1};
        else
            continue;
        any = true;
    }
    return any;
}

/* ---- asking ---------------------------------------------------------------------------------- */

/* How many are ready. Once one is, the others need not ring. */
static long ask_mounts(struct dfi_waiter *waiter, bool rings)
{
    struct polled *p = (struct polled *)waiter;
    long ready = 0;

    for (unsigned long i = 0; i < p->count; i++) {
        if (!p->files[i])
            continue;
        p->given[i].revents = (short)dfi_ready_ask(
            &p->waiter, p->given[i].fd, (unsigned short)p->given[i].events, rings && ready == 0);
        ready += p->given[i].revents != 0;
    }
    return ready;
}

static long look_at_others(struct dfi_waiter *waiter)
{
    struct polled *p = (struct polled *)waiter;
    struct timespec none = {0, 0};

    return dfi_kernel(__NR_ppoll, p->asked, p->count, &none, 0, 0);
}

/* How many others are ready now, or -errno; *over: the time is. */
static long wait_for_others(struct dfi_waiter *waiter, bool *over)
{
    struct polled *p = (struct polled *)waiter;
    struct pollfd *bell = &p->asked[p->at];
    struct timespec left;
    long ret;

    *bell = (struct pollfd){.fd = p->waiter.bell, .events = POLLIN};
    ret = dfi_kernel_wait(__NR_ppoll, p->asked, p->count, dfi_ready_left(&p->waiter.until, &left),
                          p->mask, p->masked);
    *over = ret == 0;
    if (ret > 0 && bell->revents) {
        dfi_ready_hear(&p->waiter);
        ret--;
    }
    bell->fd = -1;
    return ret;
}

static long run(struct polled *p)
{
    return dfi_ready_run(&p->waiter,
                         (struct dfi_ready_ways){look_at_others, ask_mounts, wait_for_others});
}

/* ---- the answer ------------------------------------------------------------------------------ */

static long tell(struct polled *p, long ret)
{
    for (unsigned long i = 0; i < p->count; i++) {
        short events = p->files[i] ? p->given[i].revents : p->asked[i].revents;

        if (ret < 0)
            events = 0;
        if (dfi_copy_to(&p->program[i].revents, &events, sizeof(events)) < 0)
            return -EFAULT;
    }
    return ret;
}

/* DFI_PASS: there is none of ours. */
static long poll_by(struct dfi_frame *frame, struct polled *p)
{
    long ret = DFI_PASS;

    p->program = (struct pollfd *)frame->args[0];
    p->count = (unsigned)frame->args[1];
    p->waiter.bell = -1;
    if (take(p) && sort(p)) {
        dfi_ready_hold(p->waiter.files, p->files, p->count);
        ret = tell(p, run(p));
        dfi_ready_let_go(p->waiter.files, p->files, p->count);
        dfi_ready_end(&p->waiter);
    }
    dfi_free(p->files);
    return ret;
}

/* Whether some may be ours. */
static bool any_high(const struct pollfd *program, unsigned count)
{
    int from = dfi_process()->hidden_from;
    struct pollfd some[8];

    for (unsigned at = 0, n; at < count; at += n) {
        n = count - at < 8 ? count - at : 8;
        if (dfi_copy_from(some, program + at, n * sizeof(*some)) < 0)
            return false;
        for (unsigned i = 0; i < n; i++)
            if (some[i].fd >= from)
                return true;
    }
    return false;
}

static bool is_kernels(const struct dfi_files *files, const struct dfi_frame *frame)
{
    return !dfi_ready_told(files) &&
           !any_high((const struct pollfd *)frame->args[0], (unsigned)frame->args[1]);
}

long dfi_do_poll(struct dfi_frame *frame)
{
    struct dfi_files *files = dfi_process()->files;
    struct polled p = {.waiter.files = files};
    int ms = (int)frame->args[2];

    if (is_kernels(files, frame))
        return DFI_PASS;
    if (dfi_ready_until(&p.waiter.until, ms / 1000, ms % 1000 * 1000000) < 0)
        p.waiter.until = (struct dfi_until){true, INT64_MAX};
    return poll_by(frame, &p);
}

/* What is left of the time is told if it can be. */
static void tell_left(const struct polled *p, unsigned long program)
{
    struct timespec left;

    if (program && p->waiter.until.waits && dfi_ready_left(&p->waiter.until, &left) &&
        dfi_copy_to((void *)program, &left, sizeof(left)) < 0)
        return;
}

static long ppoll_told(struct dfi_frame *frame, struct polled *p)
{
    unsigned long time = frame->args[2];
    struct timespec given;
    long ret;

    p->waiter.until = (struct dfi_until){true, INT64_MAX};
    if (time && (dfi_copy_from(&given, (void *)time, sizeof(given)) < 0 ||
                 dfi_ready_until(&p->waiter.until, given.tv_sec, given.tv_nsec) < 0))
        return DFI_PASS; /* the kernel says what is wrong */
    p->mask = frame->args[3];
    p->masked = frame->args[4];
    if (!dfi_ready_masks(p->mask, p->masked))
        return DFI_PASS;
    ret = poll_by(frame, p);
    if (ret != DFI_PASS)
        tell_left(p, time);
    return ret == -EINTR ? dfi_wait_ended(frame, p->mask) : ret;
}

long dfi_do_ppoll(struct dfi_frame *frame)
{
    struct polled p = {.waiter.files = dfi_process()->files};
    long ret = dfi_wait_with(frame, 3);

    return ret != DFI_PASS || is_kernels(p.waiter.files, frame) ? ret : ppoll_told(frame, &p);
}
