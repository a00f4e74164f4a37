/*
 * mount.c - the life of mounts; its states are described in mount.h.
 */
#include "core/mount.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <time.h>

#include "core/file.h"
#include "core/gate.h"
#include "core/mountpoint.h"
#include "core/table.h"

/* st_dev: 12 and 20 bits as the kernel's, so 32, which is all that some programs keep. The kernel
 * gives a file system no major number from 512 on. */
#define DEV_MAJOR  0xDF0
#define DEV_MINORS (1u << 20)

#define CALLS_S    5 /* that calls in flight are waited for */

enum { LIVE, CLOSING, DETACHED, ENDING }; /* df_mount.state */

/* Mounts, attached or detached lazily, that are not prompt. Counted up before one can be found. */
static _Atomic int may_wait;

static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER; /* protects what follows */
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;      /* any state, any pin of interest */
static struct df_mount *mounts; /* all that have not ended, the oldest first */
static struct df_mount *free_mounts;
static int last_id;

bool df_mount_any_may_wait(void)
{
    return atomic_load_explicit(&may_wait, memory_order_relaxed) != 0;
}

/* Under table_lock. */
static bool in_use(const char *point)
{
    for (struct df_mount *m = mounts; m; m = m->next) {
        if (!m->listed)
            continue;
        if (strcmp(m->point, point) == 0 || (m->alias && strcmp(m->alias, point) == 0))
            return true;
    }
    return false;
}

/* ---- attaching ----------------------------------------------------------------------------- */

static void free_strings(struct df_mount *mount)
{
    free(mount->point);
    free(mount->alias);
    free(mount->fsname);
    free(mount->subtype);
    mount->point = mount->alias = mount->fsname = mount->subtype = NULL;
}

/* NULL stays NULL. */
static bool copy_string(char **copy, const char *string)
{
    *copy = string ? strdup(string) : NULL;
    return *copy || !string;
}

static bool copy_strings(struct df_mount *mount, const struct df_mount_spec *spec,
                         const char *point, const char *alias)
{
    if (copy_string(&mount->point, point) && copy_string(&mount->alias, alias) &&
        copy_string(&mount->fsname, spec->fsname) && copy_string(&mount->subtype, spec->subtype))
        return true;
    free_strings(mount);
    return false;
}

/* Under table_lock. */
static struct df_mount *take_free(void)
{
    struct df_mount *mount = free_mounts;

    if (mount)
        free_mounts = mount->next;
    else
        mount = calloc(1, sizeof(*mount));
    return mount;
}

/* Under table_lock. */
static void push_free(struct df_mount *mount)
{
    free_strings(mount);
    mount->id = 0;
    mount->next = free_mounts;
    free_mounts = mount;
}

/* Under table_lock. */
static struct df_mount **end_of_mounts(void)
{
    struct df_mount **at = &mounts;

    while (*at)
        at = &(*at)->next;
    return at;
}

/* Under table_lock: all that can fail, then what cannot. */
static int attach(struct df_mount *mount, struct df_fs *fs, unsigned flags)
{
    struct df_mount **place = end_of_mounts();
    struct df_table *t;
    int error;

    if (in_use(mount->point) || (mount->alias && in_use(mount->alias)))
        return -EBUSY;
    mount->id = last_id + 1;
    mount->state = LIVE;
    mount->listed = true;
    mount->next = NULL;
    *place = mount;
    t = df_table_make(mounts, &error);
    if (!t) {
        *place = NULL;
        return error;
    }
    last_id++;
    mount->flags = flags;
    mount->prompt = false;
    atomic_fetch_add(&may_wait, 1);
    mount->dev = makedev(DEV_MAJOR, (unsigned)mount->id % DEV_MINORS);
    mount->point_len = (uint32_t)strlen(mount->point);
    atomic_store(&mount->fs, fs);
    atomic_store(&mount->lock_count, 0);
    atomic_store(&mount->plain_stat, false);
    atomic_store(&mount->root, 0);
    atomic_store(&mount->live, mount->id);
    df_table_publish(t);
    return 0;
}

int df_mount_attach(const struct df_mount_spec *spec, struct df_fs *fs, struct df_mount **out)
{
    char canonical[PATH_MAX], physical[PATH_MAX];
    const char *alias;
    struct df_mount *mount;
    mode_t type;
    int ret;

    if (!df_gate_thread())
        return -ENOMEM;
    if (!spec->point || !spec->point[0])
        return -EINVAL;
    if ((ret = df_mountpoint_canonical(spec->point, canonical)) < 0 ||
        (ret = df_mountpoint_physical(canonical, physical)) < 0)
        return ret;
    type = df_mountpoint_type(physical);
    alias = strcmp(canonical, physical) != 0 ? canonical : NULL;

    pthread_mutex_lock(&table_lock);
    mount = take_free();
    ret = mount && copy_strings(mount, spec, physical, alias) ? 0 : -ENOMEM;
    if (ret == 0) {
        mount->covers = type;
        ret = attach(mount, fs, spec->flags);
    }
    if (ret < 0 && mount)
        push_free(mount);
    pthread_mutex_unlock(&table_lock);
    if (ret == 0)
        *out = mount;
    return ret;
}

/* ---- detaching ----------------------------------------------------------------------------- */

/* Under table_lock. */
static struct df_mount *find(int id)
{
    for (struct df_mount *m = mounts; m; m = m->next)
        if (m->id == id)
            return m;
    return NULL;
}

/* Under table_lock. */
static void unlink_mount(struct df_mount *mount)
{
    struct df_mount **at = &mounts;

    while (*at != mount)
        at = &(*at)->next;
    *at = mount->next;
}

/* Under table_lock, which is released while the file system is destroyed. The state is ENDING, so
 * nobody else does this; nothing refers to the mount any more. */
static void end(struct df_mount *mount)
{
    struct df_fs *fs = atomic_load(&mount->fs);

    pthread_mutex_unlock(&table_lock);
    fs->ops->destroy(fs);
    pthread_mutex_lock(&table_lock);
    if (!mount->prompt)
        atomic_fetch_sub(&may_wait, 1);
    unlink_mount(mount);
    push_free(mount);
    pthread_cond_broadcast(&changed);
}

/* Under table_lock: from now on readers that pin the mount see that it is not live, and those that
 * had pinned it before are visible. */
static void stop_readers(struct df_mount *mount, int state)
{
    mount->state = state;
    atomic_store(&mount->live, 0);
    df_gate_barrier();
}

/* Under table_lock. */
static void reopen(struct df_mount *mount)
{
    mount->state = LIVE;
    mount->listed = true;
    atomic_store(&mount->live, mount->id);
    pthread_cond_broadcast(&changed);
}

/* Under table_lock, which is released during waits. False: some call is in flight still. */
static bool await_readers(const struct df_mount *mount)
{
    struct timespec until;
    int over = 0;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += CALLS_S;
    while (df_gate_is_pinned(mount)) {
        if (over)
            return false;
        over = pthread_cond_timedwait(&changed, &table_lock, &until);
    }
    return true;
}

/* Under table_lock, which is released during waits. */
static int detach_now(struct df_mount *mount)
{
    struct df_table *t;
    int error;

    stop_readers(mount, CLOSING);
    if (!await_readers(mount)) {
        reopen(mount);
        return -EBUSY;
    }
    mount->listed = false;
    t = df_table_make(mounts, &error);
    if (error == 0 && df_file_count(mount) > 0) {
        df_table_free(t);
        error = -EBUSY;
    }
    if (error < 0) {
        reopen(mount);
        return error;
    }
    mount->state = ENDING;
    df_table_publish(t);
    pthread_cond_broadcast(&changed); /* those who wait for the verdict */
    end(mount);
    return 0;
}

/* Under table_lock. */
static int detach_lazily(struct df_mount *mount)
{
    struct df_table *t;
    int error;

    mount->listed = false;
    t = df_table_make(mounts, &error);
    if (error < 0) {
        mount->listed = true;
        return error;
    }
    df_table_publish(t);
    stop_readers(mount, DETACHED);
    return 0;
}

/* Under table_lock. */
static int detach(int id, unsigned flags, const struct df_thread *thread)
{
    struct df_mount *mount = find(id);

    if (!mount || mount->state == DETACHED || mount->state == ENDING)
        return -EINVAL;
    if (mount->state == CLOSING)
        return -EBUSY;
    if (flags & DF_DETACH_LAZY)
        return detach_lazily(mount);
    if (thread->depth > 0 || df_file_count(mount) > 0)
        return -EBUSY;
    return detach_now(mount);
}

int df_mount_detach(int id, unsigned flags)
{
    struct df_thread *thread = df_gate_thread();
    int ret;

    if (!thread)
        return -ENOMEM;
    pthread_mutex_lock(&table_lock);
    ret = detach(id, flags, thread);
    pthread_mutex_unlock(&table_lock);
    if (ret == 0 && (flags & DF_DETACH_LAZY)) {
        if (thread->depth > 0)
            thread->reap = true;
        else
            df_mount_reap();
    }
    return ret;
}

/* Under table_lock. */
static struct df_mount *find_finished(void)
{
    for (struct df_mount *m = mounts; m; m = m->next)
        if (m->state == DETACHED && !df_gate_is_pinned(m) && df_file_count(m) == 0)
            return m;
    return NULL;
}

void df_mount_reap(void)
{
    struct df_mount *mount;

    pthread_mutex_lock(&table_lock);
    while ((mount = find_finished())) {
        mount->state = ENDING;
        end(mount);
    }
    pthread_mutex_unlock(&table_lock);
}

void df_mount_notify(void)
{
    pthread_mutex_lock(&table_lock);
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&table_lock);
}

void df_mount_await_verdict(int id)
{
    struct df_mount *mount;

    pthread_mutex_lock(&table_lock);
    while ((mount = find(id)) && mount->state == CLOSING)
        pthread_cond_wait(&changed, &table_lock);
    pthread_mutex_unlock(&table_lock);
}

void df_mount_wait(int id)
{
    pthread_mutex_lock(&table_lock);
    while (find(id))
        pthread_cond_wait(&changed, &table_lock);
    pthread_mutex_unlock(&table_lock);
}

bool df_mount_has_files(int id)
{
    pthread_mutex_lock(&table_lock);
    struct df_mount *mount = find(id);
    bool open = mount && df_file_count(mount) > 0;
    pthread_mutex_unlock(&table_lock);
    return open;
}

bool df_mount_is_ending(int id)
{
    pthread_mutex_lock(&table_lock);
    const struct df_mount *mount = find(id);
    bool ending = !mount || mount->state == ENDING;
    pthread_mutex_unlock(&table_lock);
    return ending;
}

/* ---- wrapping and listing ------------------------------------------------------------------ */

int df_mount_wrap(int id, struct df_fs *(*make)(struct df_fs *below, void *arg), void *arg)
{
    struct df_mount *mount;
    int ret = -EINVAL;

    pthread_mutex_lock(&table_lock);
    mount = find(id);
    if (mount && mount->state == LIVE) {
        struct df_fs *top = make(atomic_load(&mount->fs), arg);

        if (top)
            atomic_store(&mount->fs, top);
        ret = top ? 0 : -ENOMEM;
    }
    pthread_mutex_unlock(&table_lock);
    return ret;
}

int df_mount_set_prompt(int id)
{
    struct df_mount *mount;

    pthread_mutex_lock(&table_lock);
    mount = find(id);
    if (mount && !mount->prompt) {
        mount->prompt = true;
        atomic_fetch_sub(&may_wait, 1);
    }
    pthread_mutex_unlock(&table_lock);
    return mount ? 0 : -EINVAL;
}

void df_mount_each(bool (*visit)(const struct df_mount *mount, void *arg), void *arg)
{
    pthread_mutex_lock(&table_lock);
    for (struct df_mount *m = mounts; m; m = m->next)
        if (m->listed && !visit(m, arg))
            break;
    pthread_mutex_unlock(&table_lock);
}

/* ---- fork ---------------------------------------------------------------------------------- */

void df_mount_lock(void)
{
    pthread_mutex_lock(&table_lock);
}

void df_mount_unlock(void)
{
    pthread_mutex_unlock(&table_lock);
}

/* A mount that a thread of the parent was ending is not ended here: that thread may be anywhere in
 * destroy(). It is out of the table and stays so. */
void df_mount_after_fork(void)
{
    for (struct df_mount *m = mounts; m; m = m->next)
        if (m->state == CLOSING)
            reopen(m);
    pthread_cond_init(&changed, NULL);
}
