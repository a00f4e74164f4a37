/*
 * caller.c - reads the process's identity and keeps it.
 */
#include "core/caller.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/lock.h"

struct identity {
    struct df_retired retired;
    struct df_caller caller; /* groups point behind */
    gid_t groups[];
};

_Atomic(const struct df_caller *) df_caller_process;

static pthread_mutex_t write_lock = PTHREAD_MUTEX_INITIALIZER; /* one writer of the above */

/* The umask can be read without setting it only here (proc(5), since Linux 4.7). 022, the mask of
 * most, where /proc is not mounted. */
static mode_t read_umask(void)
{
    char text[512];
    const char *line;
    ssize_t size;
    int fd = open("/proc/thread-self/status", O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return 022;
    size = read(fd, text, sizeof(text) - 1); /* Umask is the second line */
    close(fd);
    if (size < 0)
        return 022;
    text[size] = '\0';
    line = strstr(text, "\nUmask:");
    return line ? (mode_t)strtoul(line + 7, NULL, 8) : 022;
}

static bool read_capable(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];
    uint32_t wanted = 1U << CAP_DAC_OVERRIDE | 1U << CAP_FOWNER;

    if (syscall(SYS_capget, &header, data) < 0)
        return false;
    return (data[0].effective & wanted) == wanted;
}

static off_t read_size_limit(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_FSIZE, &limit) < 0 || limit.rlim_cur > (rlim_t)INT64_MAX)
        return INT64_MAX;
    return (off_t)limit.rlim_cur;
}

int df_caller_too_large(void)
{
    return -EFBIG;
}

/* Odd, so that no file's address (df_lock_file_owner) equals it. */
static uint64_t lock_owner_of(pid_t pid)
{
    return (uint64_t)pid << 1 | 1;
}

static struct identity *make_identity(int group_count)
{
    struct identity *identity =
        calloc(1, sizeof(*identity) + (size_t)group_count * sizeof(identity->groups[0]));

    if (identity) {
        identity->caller.groups = identity->groups;
        identity->caller.group_count = (uint32_t)group_count;
    }
    return identity;
}

/* The groups may grow between the two questions: then EINVAL, and again. Of none there is no second
 * one, which would be the first again. */
static int read_groups(struct identity **out)
{
    for (;;) {
        int count = getgroups(0, NULL);
        struct identity *identity = make_identity(count);

        if (!identity)
            return -ENOMEM;
        count = count > 0 ? getgroups(count, identity->groups) : 0;
        if (count >= 0) {
            identity->caller.group_count = (uint32_t)count;
            *out = identity;
            return 0;
        }
        free(identity);
        if (errno != EINVAL)
            return -errno;
    }
}

/* -1 changes nothing: setfsuid(2). What refuses the call, a filter or gVisor, keeps the ids equal
 * to the effective ones. */
static uid_t read_uid(void)
{
    int uid = setfsuid((uid_t)-1);

    return uid != -1 ? (uid_t)uid : geteuid();
}

static gid_t read_gid(void)
{
    int gid = setfsgid((gid_t)-1);

    return gid != -1 ? (gid_t)gid : getegid();
}

static int read_identity(struct identity **out)
{
    int saved = errno, ret = read_groups(out);

    if (ret == 0) {
        struct df_caller *caller = &(*out)->caller;

        caller->uid = read_uid();
        caller->gid = read_gid();
        caller->real_uid = getuid();
        caller->real_gid = getgid();
        caller->pid = getpid();
        caller->umask = read_umask();
        caller->lock_owner = lock_owner_of(caller->pid);
        caller->capable = read_capable();
        caller->overrides_own = false;
        caller->size_limit = read_size_limit();
    }
    errno = saved;
    return ret;
}

static void free_identity(struct df_retired *retired)
{
    free(retired);
}

static struct identity *identity_of(const struct df_caller *caller)
{
    return (struct identity *)((char *)caller - offsetof(struct identity, caller));
}

/* Under write_lock. Calls in flight keep the old one. */
static void publish(struct identity *identity)
{
    const struct df_caller *old = atomic_exchange(&df_caller_process, &identity->caller);

    if (old)
        df_gate_retire(&identity_of(old)->retired, free_identity);
}

int df_caller_refresh(void)
{
    struct identity *identity = NULL;
    int ret;

    pthread_mutex_lock(&write_lock);
    ret = read_identity(&identity);
    if (ret == 0)
        publish(identity);
    pthread_mutex_unlock(&write_lock);
    return ret;
}

int df_caller_ensure(void)
{
    if (atomic_load(&df_caller_process))
        return 0;
    return df_caller_refresh();
}

/* write_lock keeps the original: the thread need not be inside the gate. */
void df_caller_copy_process(struct df_caller *copy)
{
    pthread_mutex_lock(&write_lock);
    *copy = *atomic_load(&df_caller_process);
    pthread_mutex_unlock(&write_lock);
    copy->groups = NULL;
    copy->group_count = 0;
}

static struct identity *copy_identity(const struct df_caller *from)
{
    struct identity *copy = make_identity((int)from->group_count);

    if (!copy)
        return NULL;
    copy->caller = *from;
    copy->caller.groups = copy->groups;
    memcpy(copy->groups, from->groups, from->group_count * sizeof(gid_t));
    return copy;
}

/* umask(2) cannot fail, so a lack of memory may not either: then the next refresh brings it. */
mode_t df_caller_umask(mode_t mask)
{
    const struct df_caller *process;
    struct identity *identity;
    mode_t old;

    df_caller_ensure();
    pthread_mutex_lock(&write_lock);
    old = umask(mask & 0777);
    process = atomic_load(&df_caller_process);
    identity = process ? copy_identity(process) : NULL;
    if (identity) {
        identity->caller.umask = mask & 0777;
        publish(identity);
    }
    pthread_mutex_unlock(&write_lock);
    return old;
}

int df_caller_set(const struct df_caller *caller)
{
    struct df_thread *thread = df_gate_thread();

    if (!thread)
        return -ENOMEM;
    thread->caller = caller;
    return 0;
}

/* ---- fork ---------------------------------------------------------------------------------- */

void df_caller_lock(void)
{
    pthread_mutex_lock(&write_lock);
}

void df_caller_unlock(void)
{
    pthread_mutex_unlock(&write_lock);
}

/* Alone in the process: changed in place. */
void df_caller_after_fork(void)
{
    const struct df_caller *process = atomic_load(&df_caller_process);
    struct df_caller *caller;

    if (!process)
        return;
    caller = &identity_of(process)->caller;
    df_lock_after_fork(caller->lock_owner);
    caller->pid = getpid();
    caller->lock_owner = lock_owner_of(caller->pid);
}
