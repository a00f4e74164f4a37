/*
 * calls_locked.c - mlockall(2), of what the program has mapped.
 *
 * The kernel would lock what is the run's, too (own.h): each page of the segment would be brought
 * into memory, and count where RLIMIT_MEMLOCK is looked at. So the mappings are locked one by one.
 * MCL_FUTURE of an earlier call stays: only a call that locks everything ends it.
 */
#include <errno.h>
#include <linux/capability.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "client/own.h"
#include "intercept/maps.h"

#define FLAGS (MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT)

struct locking {
    const struct dfi_files *files;
    unsigned long flags; /* of mlock2(2) */
    unsigned long space; /* bytes of the program's mappings */
};

static void count(uintptr_t start, uintptr_t end, void *data)
{
    struct locking *locking = data;

    if (!dfi_own_has(locking->files, start))
        locking->space += end - start;
}

/* What cannot be brought is locked all the same, as by mlockall(2). */
static void lock(uintptr_t start, uintptr_t end, void *data)
{
    struct locking *locking = data;

    if (!dfi_own_has(locking->files, start))
        dfi_kernel(__NR_mlock2, start, end - start, locking->flags);
}

/* EPERM, ENOMEM: as mlockall(2) finds before it locks anything. */
static long may_lock(unsigned long space)
{
    struct rlimit limit;
    long ret = dfi_kernel(__NR_prlimit64, 0, RLIMIT_MEMLOCK, NULL, &limit);

    if (ret < 0 || dfi_capable(1U << CAP_IPC_LOCK))
        return ret;
    if (limit.rlim_cur == 0)
        return -EPERM;
    return space > limit.rlim_cur ? -ENOMEM : 0;
}

long dfi_do_mlockall(struct dfi_frame *frame)
{
    unsigned long wanted = frame->args[0];
    struct locking locking = {.files = dfi_process()->files,
                              .flags = wanted & MCL_ONFAULT ? MLOCK_ONFAULT : 0};
    long ret;

    if (wanted & ~(unsigned long)FLAGS || !(wanted & MCL_CURRENT) ||
        dfi_maps_each(count, &locking) < 0) /* there is no /proc */
        return DFI_PASS;
    ret = may_lock(locking.space);
    if (ret == 0 && wanted & MCL_FUTURE)
        ret = dfi_kernel(__NR_mlockall, wanted & ~(unsigned long)MCL_CURRENT);
    return ret < 0 ? ret : dfi_maps_each(lock, &locking);
}
