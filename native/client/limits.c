/*
 * limits.c - resource limits as the program knows them, which are not all the kernel's.
 *
 * RLIMIT_NOFILE is raised for moments, when the core needs a descriptor. RLIMIT_AS is to hold for
 * what the program maps: the kernel's limit is higher by what is the run's (own.h), which is the
 * same before and after an execve.
 */
#include <errno.h>
#include <sys/resource.h>

#include "client/own.h"

/* Not what the core has raised for a moment, which it will put back. */
static long call_alone(const struct dfi_frame *frame)
{
    const unsigned long *a = frame->args;
    bool held = dfi_limit_hold();
    long ret = dfi_kernel(frame->nr, a[0], a[1], a[2], a[3]);

    dfi_limit_release(held);
    return ret;
}

static rlim_t with_own(rlim_t limit)
{
    rlim_t own = dfi_own_space(dfi_process()->files);

    return limit < RLIM_INFINITY - own ? limit + own : limit;
}

static rlim_t without_own(rlim_t limit)
{
    rlim_t own = dfi_own_space(dfi_process()->files);

    if (limit == RLIM_INFINITY)
        return limit;
    return limit > own ? limit - own : 0;
}

static long fetch_space(struct rlimit *limit, unsigned long program)
{
    if (dfi_copy_from(limit, (const void *)program, sizeof(*limit)) < 0)
        return -EFAULT;
    limit->rlim_cur = with_own(limit->rlim_cur);
    limit->rlim_max = with_own(limit->rlim_max);
    return 0;
}

static long show_space(struct rlimit limit, unsigned long program)
{
    limit.rlim_cur = without_own(limit.rlim_cur);
    limit.rlim_max = without_own(limit.rlim_max);
    return dfi_copy_to((void *)program, &limit, sizeof(limit)) < 0 ? -EFAULT : 0;
}

/* Each by the program's own call: a filter of the program's may know no other. */
static long set_space(unsigned long program)
{
    struct rlimit limit;
    long ret = fetch_space(&limit, program);

    return ret < 0 ? ret : dfi_kernel(__NR_setrlimit, RLIMIT_AS, &limit);
}

static long get_space(unsigned long program)
{
    struct rlimit limit;
    long ret = dfi_kernel(__NR_getrlimit, RLIMIT_AS, &limit);

    return ret < 0 ? ret : show_space(limit, program);
}

static long replace_space(unsigned long pid, unsigned long wanted, unsigned long program)
{
    struct rlimit limit, old;
    long ret = wanted ? fetch_space(&limit, wanted) : 0;

    if (ret == 0)
        ret = dfi_kernel(__NR_prlimit64, pid, RLIMIT_AS, wanted ? &limit : NULL, &old);
    return ret < 0 || !program ? ret : show_space(old, program);
}

off_t dfi_limit_of_size(void)
{
    struct rlimit limit;

    if (dfi_kernel(__NR_prlimit64, 0, RLIMIT_FSIZE, 0, &limit) < 0 ||
        limit.rlim_cur > (rlim_t)INT64_MAX)
        return INT64_MAX;
    return (off_t)limit.rlim_cur;
}

static long change(struct dfi_frame *frame)
{
    long ret = call_alone(frame);

    if (ret == 0)
        dfi_process()->files->caller.size_limit = dfi_limit_of_size();
    return ret;
}

long dfi_do_setrlimit(struct dfi_frame *frame)
{
    return (unsigned)frame->args[0] == RLIMIT_AS ? set_space(frame->args[1]) : change(frame);
}

long dfi_do_getrlimit(struct dfi_frame *frame)
{
    switch ((unsigned)frame->args[0]) {
    case RLIMIT_AS:
        return get_space(frame->args[1]);
    case RLIMIT_NOFILE:
        return call_alone(frame);
    default:
        return DFI_PASS;
    }
}

/* Another process's limits are the kernel's: nobody here knows whether it belongs to a run. */
static bool is_own(unsigned long pid)
{
    return (pid_t)pid == 0 || (pid_t)pid == dfi_process()->pid;
}

long dfi_do_prlimit64(struct dfi_frame *frame)
{
    const unsigned long *a = frame->args;

    if ((unsigned)a[1] == RLIMIT_AS && is_own(a[0]))
        return replace_space(a[0], a[2], a[3]);
    if (a[2])
        return change(frame);
    return (unsigned)a[1] == RLIMIT_NOFILE ? call_alone(frame) : DFI_PASS;
}
