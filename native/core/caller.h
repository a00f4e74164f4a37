/*
 * caller.h - on whose behalf calls are made: the process's identity, read once, or the one a
 * thread has chosen. No system call on the path of a call (docs/decisions/004).
 */
#ifndef DF_CORE_CALLER_H
#define DF_CORE_CALLER_H

#include <stdatomic.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/call.h"
#include "core/export.h"
#include "core/gate.h"

/* The process's identity: immutable, replaced as a whole. Read inside the gate. */
extern _Atomic(const struct df_caller *) df_caller_process;

/* The identity for a call of this thread; valid until it leaves the gate. */
static inline const struct df_caller *df_caller_of(const struct df_thread *thread)
{
    return DF_UNLIKELY(thread->caller)
               ? thread->caller
               : atomic_load_explicit(&df_caller_process, memory_order_acquire);
}

/* Begins a call of a thread that is inside; the mount may be unknown yet (NULL). Touches little of
 * the struct: `leave` stays as the stack had it. */
static inline void df_call_start(struct df_call *call, struct df_thread *thread,
                                 struct df_mount *mount)
{
    call->mount = mount;
    call->thread = thread;
    call->caller = df_caller_of(thread);
    call->links = call->second_links = 0;
    call->leave_second = call->asks_validity = call->of_content = call->writes_back = false;
    call->placing = DF_PLACED_BY_FLAGS;
    call->changes = NULL;
    atomic_store_explicit(&call->state, 0, memory_order_relaxed);
}

/* The call is made with the process's own rights, as are then the plugin's system calls. */
static inline bool df_caller_is_process(const struct df_call *call)
{
    return !call->thread->caller;
}

/* Gives the calling thread an identity of its own; NULL: back to the process's. `caller` is the
 * owner's and must live until it is taken back. Returns 0 or -ENOMEM. */
DF_PRIVATE_EXPORT int df_caller_set(const struct df_caller *caller);

/* Reads ids, groups, capability, umask and RLIMIT_FSIZE of the process again. 0 or -errno. */
DF_PRIVATE_EXPORT int df_caller_refresh(void);

/* A file would become larger than the caller's size_limit allows: returns -EFBIG. To programs under
 * `directfuse run` it sends SIGXFSZ as the kernel does; in somebody else's process it sends
 * nothing. */
int df_caller_too_large(void);

/* The first reading, once. 0 or -errno. */
int df_caller_ensure(void);

/* The process's identity, without its groups. After df_caller_ensure(). */
void df_caller_copy_process(struct df_caller *copy);

/* Sets the process's umask and ours; returns the old one as umask(2). */
DF_PRIVATE_EXPORT mode_t df_caller_umask(mode_t mask);

/* True if the caller is in the group. */
static inline bool df_caller_in_group(const struct df_caller *caller, gid_t gid)
{
    if (caller->gid == gid)
        return true;
    for (uint32_t i = 0; i < caller->group_count; i++)
        if (caller->groups[i] == gid)
            return true;
    return false;
}

/* The ids of which access(2) asks are those that count in other calls. */
static inline bool df_caller_is_real(const struct df_caller *caller)
{
    return caller->real_uid == caller->uid && caller->real_gid == caller->gid;
}

/* Do mode bits not count for the caller? capable_wrt_inode_uidgid() of the kernel, as far as a
 * namespace's root is known here. */
static inline bool df_caller_overrides(const struct df_caller *caller, const struct stat *st)
{
    return caller->capable || (DF_UNLIKELY(caller->overrides_own) && caller->uid == st->st_uid &&
                               caller->gid == st->st_gid);
}

/* May the caller read, write, execute or search (R_OK, W_OK, X_OK, or'ed)? generic_permission() of
 * the kernel, without ACLs: root executes only what somebody may execute. */
static inline bool df_caller_may(const struct df_caller *caller, const struct stat *st, int mask)
{
    unsigned granted = st->st_mode;

    if (df_caller_overrides(caller, st))
        return !(mask & X_OK) || S_ISDIR(st->st_mode) || st->st_mode & 0111;
    if (caller->uid == st->st_uid)
        granted >>= 6;
    else if (df_caller_in_group(caller, st->st_gid))
        granted >>= 3;
    return ((unsigned)mask & ~granted & 7) == 0;
}

/* Does an ACL decide, if a file that has these attributes has one? Not for its owner and not for
 * root; and where the bits of the group are clear, which are the ACL's mask, Linux does not look at
 * it: acl_permission_check() of fs/namei.c. */
static inline bool df_caller_is_for_acl(const struct df_caller *caller, const struct stat *st)
{
    return !caller->capable && caller->uid != st->st_uid && st->st_mode & S_IRWXG;
}

void df_caller_lock(void); /* for fork.c */
void df_caller_unlock(void);
void df_caller_after_fork(void); /* in the child: another pid, another owner of locks */

#endif
