/*
 * identity.c - in whose name the process makes calls; and the calls that change it.
 */
#include <errno.h>
#include <linux/capability.h>
#include <linux/sched.h>
#include <signal.h>

#include "client/files.h"
#include "client/ids.h"
#include "core/caller.h"

bool dfi_capable(uint32_t wanted)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

    if (dfi_kernel(__NR_capget, &header, data) < 0)
        return false;
    return (data[0].effective & wanted) == wanted;
}

/* Delivered when the call is done, but where it ends the process: then at once, as by the kernel.
 */
int df_caller_too_large(void)
{
    dfi_kernel(__NR_tgkill, dfi_process()->pid, dfi_self()->tid, SIGXFSZ);
    return -EFBIG;
}

/* ---- a thread's own ---------------------------------------------------------------------------
 *
 * Ids, groups and capabilities are a thread's (credentials(7)). glibc's calls change those of all,
 * a thread after the other; servers change those of one, to work for a user. A process of one
 * thread, as most are that change them, has one identity all the same.
 */

/* The mask, the limit, and whose locks are taken, are the process's. */
const struct df_caller *dfi_identity_own(const struct dfi_files *files)
{
    struct df_caller *own = &dfi_of_thread(dfi_self())->caller;

    own->pid = files->caller.pid;
    own->umask = files->caller.umask;
    own->lock_owner = files->caller.lock_owner;
    own->size_limit = files->caller.size_limit;
    return own;
}

/* What this thread is to change: its own, which it has from now on, or that of its process. */
static struct df_caller *to_change(struct dfi_files *files)
{
    struct dfi_of_thread *mine = dfi_of_thread(dfi_self());

    if (!mine->has_identity) {
        if (dfi_is_alone())
            return &files->caller;
        mine->caller = files->caller;
        mine->has_identity = true;
    }
    return &mine->caller;
}

/* It begins as the thread that makes it is. */
void dfi_files_thread(struct dfi_thread *thread)
{
    const struct dfi_of_thread *mine = dfi_of_thread(dfi_self());
    struct dfi_of_thread *its = dfi_of_thread(thread);

    its->has_identity = mine->has_identity;
    its->caller = mine->caller;
}

/* ---- reading --------------------------------------------------------------------------------- */

/* Calls under way in other threads may still look at the old ones: they stay, a few bytes for each
 * setgroups(2). */
static long read_groups(struct dfi_files *files, struct df_caller *caller)
{
    long count = dfi_kernel(__NR_getgroups, 0, 0);
    gid_t *groups;

    if (count <= 0) {
        caller->group_count = 0;
        return 0;
    }
    groups = dfi_alloc((size_t)count * sizeof(groups[0]));
    if (!groups)
        return -ENOMEM;
    count = dfi_kernel(__NR_getgroups, count, groups);
    for (long i = 0; i < count; i++)
        dfi_ids_group(files, &groups[i]);
    caller->groups = groups;
    caller->group_count = count > 0 ? (uint32_t)count : 0;
    return 0;
}

/* Who has no id in the namespace where he is stays who he was. */
static uid_t user_of(const struct dfi_files *files, long id)
{
    uid_t user = (uid_t)id;

    return dfi_ids_user(files, &user) ? user : files->outer_uid;
}

static gid_t group_of(const struct dfi_files *files, long id)
{
    gid_t group = (gid_t)id;

    return dfi_ids_group(files, &group) ? group : files->outer_gid;
}

/* setfsuid(2) of -1 changes nothing. What refuses it, a filter or gVisor, keeps the two ids equal.
 */
static long fs_id(long call, long effective)
{
    long id = dfi_kernel(call, -1);

    return id >= 0 ? id : dfi_kernel(effective);
}

/* Root by that number, as access(2) asks for, and with one for its group. */
static bool is_root_within(const struct dfi_files *files, uid_t user, gid_t group)
{
    return user == 0 && dfi_ids_user(files, &user) && dfi_ids_group(files, &group);
}

/* The rights of a namespace's root end where its ids do, which the server does not know: he has
 * them over his own files, and none over those of others. */
static void read_rights(const struct dfi_files *files, struct df_caller *caller, bool root_within)
{
    bool root = dfi_capable(1U << CAP_DAC_OVERRIDE | 1U << CAP_FOWNER);

    caller->capable = root && dfi_ids_all(files);
    caller->overrides_own = root && !caller->capable && root_within;
}

static void read_ids(struct dfi_files *files, struct df_caller *caller)
{
    long user = fs_id(__NR_setfsuid, __NR_geteuid), group = fs_id(__NR_setfsgid, __NR_getegid);

    caller->uid = user_of(files, user);
    caller->gid = group_of(files, group);
    caller->real_uid = user_of(files, dfi_kernel(__NR_getuid));
    caller->real_gid = group_of(files, dfi_kernel(__NR_getgid));
    read_rights(files, caller, is_root_within(files, (uid_t)user, (gid_t)group));
    files->outer_uid = caller->uid;
    files->outer_gid = caller->gid;
}

/* Nobody else runs yet who could make a file with no mask. */
static mode_t read_umask(void)
{
    long mask = dfi_kernel(__NR_umask, 077);

    dfi_kernel(__NR_umask, mask);
    return (mode_t)mask;
}

long dfi_identity_read(struct dfi_files *files)
{
    struct df_caller *caller = &files->caller;

    read_ids(files, caller);
    caller->pid = (pid_t)dfi_kernel(__NR_getpid);
    caller->umask = read_umask();
    caller->size_limit = dfi_limit_of_size();
    return read_groups(files, caller);
}

long dfi_identity_look(struct dfi_files *files)
{
    struct df_caller *caller;

    if (!dfi_ids_look(files) && !files->ids)
        return 0;
    caller = to_change(files);
    read_ids(files, caller);
    return read_groups(files, caller);
}

/* ---- calls that change it ----------------------------------------------------------------------
 */

static long change_ids(struct dfi_frame *frame)
{
    struct dfi_files *files = dfi_process()->files;
    const unsigned long *a = frame->args;
    long ret = dfi_kernel(frame->nr, a[0], a[1], a[2]);

    if (ret >= 0)
        read_ids(files, to_change(files));
    return ret;
}

#define DFI_CHANGES_IDS(name)                                                                      \
    long dfi_do_##name(struct dfi_frame *frame)                                                    \
    {                                                                                              \
        return change_ids(frame);                                                                  \
    }

DFI_CHANGES_IDS(setuid)
DFI_CHANGES_IDS(setgid)
DFI_CHANGES_IDS(setreuid)
DFI_CHANGES_IDS(setregid)
DFI_CHANGES_IDS(setresuid)
DFI_CHANGES_IDS(setresgid)
DFI_CHANGES_IDS(setfsuid)
DFI_CHANGES_IDS(setfsgid)
DFI_CHANGES_IDS(capset)

long dfi_do_setgroups(struct dfi_frame *frame)
{
    struct dfi_files *files = dfi_process()->files;
    long ret = dfi_kernel(__NR_setgroups, frame->args[0], frame->args[1]);

    return ret < 0 ? ret : read_groups(files, to_change(files));
}

long dfi_do_umask(struct dfi_frame *frame)
{
    dfi_process()->files->caller.umask = (mode_t)frame->args[0] & 0777;
    return DFI_PASS;
}

/* ---- other user namespaces -------------------------------------------------------------------
 */

long dfi_do_unshare(struct dfi_frame *frame)
{
    long ret = dfi_kernel(__NR_unshare, frame->args[0]);

    if (ret == 0 && frame->args[0] & CLONE_NEWUSER)
        dfi_ids_expect(dfi_process()->files);
    return ret;
}

void dfi_files_namespace(void)
{
    dfi_ids_expect(dfi_process()->files);
}
