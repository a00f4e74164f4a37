/*
 * restricted.h - openat2(2) with RESOLVE_ flags: the way is walked one component at a time
 * (steps.h), for only so can be said where it goes.
 *
 *     struct dfi_restricted r;
 *     long ret = dfi_restricted_walk(&r, frame, &how);
 *     if (ret == 0) ret = dfi_restricted_open(&r);              in a mount
 *     else if (ret == DF_NOT_OURS) ret = dfi_restricted_pass(&r);
 *     return dfi_way_end(&r.way, ret);
 */
#ifndef DF_WAYS_RESTRICTED_H
#define DF_WAYS_RESTRICTED_H

#include <linux/openat2.h>

#include "ways/steps.h"
#include "ways/way.h"

struct dfi_restricted {
    struct dfi_way way;
    const struct open_how *how;
    bool absolute;       /* the path begins at the root */
    struct dfi_steps at; /* where the walk is */
};

/* Begins r->way and walks. 0: to a place in a mount, of which the last component may be missing;
 * DF_NOT_OURS: the kernel is to say; or -errno. */
long dfi_restricted_walk(struct dfi_restricted *r, struct dfi_frame *frame,
                         const struct open_how *how);

/* df_call_openat() there, without following a link: r->way.leg[0] leads there. -EAGAIN: somebody
 * has changed the way meanwhile. */
long dfi_restricted_open(struct dfi_restricted *r);

/* The kernel's descriptor, or -errno. */
long dfi_restricted_pass(struct dfi_restricted *r);

#endif
