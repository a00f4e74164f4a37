/*
 * caller.h - on whose behalf calls are made: the process's identity, read once, or the one a
 * thread has chosen. No system call on the path of a call (docs/decisions/004).
 */
#ifndef DF_CORE_CALLER_H
#define DF_CORE_CALLER_H

#include "core/call.h"
#include "core/export.h"

struct df_thread;

/* The identity for a call of this thread; valid until it leaves the gate. */
const struct df_caller *df_caller_of(const struct df_thread *thread);

/* Gives the calling thread an identity of its own; NULL: back to the process's. `caller` is the
 * owner's and must live until it is taken back. Returns 0 or -ENOMEM. */
DF_PRIVATE_EXPORT int df_caller_set(const struct df_caller *caller);

/* Reads ids, groups, capability, umask and RLIMIT_FSIZE of the process again. 0 or -errno. */
DF_PRIVATE_EXPORT int df_caller_refresh(void);

/* Sets the process's umask and ours; returns the old one as umask(2). */
DF_PRIVATE_EXPORT mode_t df_caller_umask(mode_t mask);

/* True if the caller is in the group. */
DF_PRIVATE_EXPORT bool df_caller_in_group(const struct df_caller *caller, gid_t gid);

#endif
