/*
 * mount.c - the table of mounts. Lives and states are described in mount.h.
 */
#include "core/mount.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "core/file.h"
#include "core/gate.h"

/* Major number of st_dev: a kernel's has 12 bits, so no real file's device equals ours. */
#define DEV_MAJOR 0xDF00

enum { LIVE, CLOSING, DETACHED, ENDING }; /* df_mount.state */

/* A snapshot: entries, longest first, and behind them the strings they point to. */
struct table {
    struct df_retired retired;
    uint32_t count;
    bool on_disk; /* a mountpoint exists on disk: a working directory may lie below it */
    struct df_mount_entry entries[];
};

static _Atomic(struct table *) table; /* NULL: no mounts. Old ones are retired */

/* Mounts, attached or detached lazily, that are not prompt. Counted up before one can be found. */
static _Atomic int may_wait;

static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER; /* protects what follows */
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;      /* any state, any pin of interest */
static struct df_mount *mounts;                                /* all that have not ended */
static struct df_mount *free_mounts;
static int last_id;

/* ---- readers ------------------------------------------------------------------------------- */

bool df_mount_any(void)
{
    return atomic_load_explicit(&table, memory_order_relaxed) != NULL;
}

bool df_mount_any_may_wait(void)
{
    return atomic_load_explicit(&may_wait, memory_order_relaxed) != 0;
}

static inline bool covers(const struct df_mount_entry *entry, const char *path, size_t len)
{
    uint32_t n = entry->point_len;

    if (n > len || (path[n] != '/' && path[n] != '\0'))
        return false;
    return memcmp(path, entry->point, n) == 0;
}

const struct df_mount_entry *df_mount_lookup(const char *path, size_t len)
{
    const struct table *t = atomic_load_explicit(&table, memory_order_acquire);

    if (!t)
        return NULL;
    for (uint32_t i = 0; i < t->count; i++)
        if (covers(&t->entries[i], path, len))
            return &t->entries[i];
    return NULL;
}

static bool has_component(const char *point, const char *component, size_t len)
{
    for (const char *p = point; *p == '/'; p += strcspn(p, "/"))
        if (strncmp(++p, component, len) == 0 && (p[len] == '/' || p[len] == '\0'))
            return true;
    return false;
}

bool df_mount_may_begin(const char *component, size_t len)
{
    const struct table *t = atomic_load_explicit(&table, memory_order_acquire);

    if (!t)
        return false;
    for (uint32_t i = 0; i < t->count; i++)
        if (t->on_disk || has_component(t->entries[i].point, component, len))
            return true;
    return false;
}

bool df_mount_below(const char *path, size_t len)
{
    const struct table *t = atomic_load_explicit(&table, memory_order_acquire);

    for (uint32_t i = 0; t && i < t->count; i++) {
        const struct df_mount_entry *entry = &t->entries[i];

        if (entry->point_len > len && entry->point[len] == '/' &&
            memcmp(entry->point, path, len) == 0)
            return true;
    }
    return false;
}

/* ---- the snapshot -------------------------------------------------------------------------- */

static void free_table(struct df_retired *retired)
{
    free(retired);
}

static void add_entry(struct table *t, struct df_mount *mount, const char *point, char **strings)
{
    struct df_mount_entry entry = {*strings, (uint32_t)strlen(point), mount->id, mount};
    uint32_t at = t->count++;

    *strings = stpcpy(*strings, point) + 1;
    for (; at > 0 && t->entries[at - 1].point_len < entry.point_len; at--)
        t->entries[at] = t->entries[at - 1];
    t->entries[at] = entry;
}

/* Under table_lock: the table of all live mounts but `without`, with `with`. NULL and *error = 0
 * when there are none. */
static struct table *make_table(const struct df_mount *without, struct df_mount *with, int *error)
{
    size_t count = 0, bytes = 0;
    struct table *t;
    char *strings;

    if (with)
        with->next = mounts;
    for (struct df_mount *m = with ? with : mounts; m; m = m->next) {
        count += m->alias ? 2 : 1;
        bytes += strlen(m->point) + 1 + (m->alias ? strlen(m->alias) + 1 : 0);
    }
    t = malloc(sizeof(*t) + count * sizeof(t->entries[0]) + bytes);
    *error = t ? 0 : -ENOMEM;
    if (!t)
        return NULL;
    t->count = 0;
    t->on_disk = false;
    strings = (char *)&t->entries[count];
    for (struct df_mount *m = with ? with : mounts; m; m = m->next) {
        if (m == without || m->state == DETACHED || m->state == ENDING)
            continue;
        add_entry(t, m, m->point, &strings);
        if (m->alias)
            add_entry(t, m, m->alias, &strings);
        t->on_disk = t->on_disk || m->on_disk;
    }
    if (t->count == 0) {
        free(t);
        t = NULL;
    }
    return t;
}

/* Under table_lock. */
static void publish(struct table *t)
{
    struct table *old = atomic_exchange(&table, t);

    if (old)
        df_gate_retire_node(&old->retired, free_table);
}

/* ---- mountpoints --------------------------------------------------------------------------- */

/* Absolute, without "//", "." and trailing '/', by text alone; ".." takes back a component. */
static int make_canonical(const char *point, char out[PATH_MAX])
{
    char text[PATH_MAX], *end = out;

    if (point[0] == '/') {
        if (strlen(point) >= sizeof(text))
            return -ENAMETOOLONG;
        strcpy(text, point);
    } else {
        if (!getcwd(text, sizeof(text)))
            return -errno;
        if (strlen(text) + 1 + strlen(point) >= sizeof(text))
            return -ENAMETOOLONG;
        strcat(strcat(text, "/"), point);
    }
    for (char *state, *name = strtok_r(text, "/", &state); name;
         name = strtok_r(NULL, "/", &state)) {
        if (strcmp(name, ".") == 0)
            continue;
        if (strcmp(name, "..") == 0) {
            while (end > out && *--end != '/')
                ;
            continue;
        }
        *end++ = '/';
        end = stpcpy(end, name);
    }
    *end = '\0';
    return 0;
}

/* Resolves the symlinks of the part that exists on disk; the rest stays as it is. */
static int make_physical(const char *canonical, char out[PATH_MAX])
{
    char head[PATH_MAX], real[PATH_MAX];
    size_t len = strlen(canonical);

    strcpy(head, canonical);
    while (len > 0 && !realpath(head, real)) {
        if (errno == ELOOP || errno == ENAMETOOLONG)
            return -errno;
        while (head[--len] != '/')
            ;
        head[len] = '\0';
    }
    if (len == 0 || strcmp(real, "/") == 0)
        real[0] = '\0';
    if (strlen(real) + strlen(canonical + len) >= PATH_MAX)
        return -ENAMETOOLONG;
    strcpy(stpcpy(out, real), canonical + len);
    return 0;
}

/* A mountpoint need not exist; if it does it is a directory. */
static int look_at(const char *point, bool *on_disk)
{
    struct stat st;

    *on_disk = stat(point[0] ? point : "/", &st) == 0;
    return *on_disk && !S_ISDIR(st.st_mode) ? -ENOTDIR : 0;
}

/* Under table_lock. */
static bool in_use(const char *point)
{
    for (struct df_mount *m = mounts; m; m = m->next) {
        if (m->state == DETACHED || m->state == ENDING)
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

/* Under table_lock: all that can fail, then what cannot. */
static int attach(struct df_mount *mount, struct df_fs *fs, unsigned flags)
{
    struct table *t;
    int error;

    if (in_use(mount->point) || (mount->alias && in_use(mount->alias)))
        return -EBUSY;
    mount->id = last_id + 1;
    mount->state = LIVE;
    t = make_table(NULL, mount, &error);
    if (!t)
        return error;
    last_id++;
    mount->flags = flags;
    mount->prompt = false;
    atomic_fetch_add(&may_wait, 1);
    mount->dev = makedev(DEV_MAJOR, (unsigned)mount->id);
    mount->point_len = (uint32_t)strlen(mount->point);
    atomic_store(&mount->fs, fs);
    atomic_store(&mount->lock_count, 0);
    atomic_store(&mount->live, mount->id);
    mounts = mount;
    publish(t);
    return 0;
}

int df_mount_attach(const struct df_mount_spec *spec, struct df_fs *fs, struct df_mount **out)
{
    char canonical[PATH_MAX], physical[PATH_MAX];
    const char *alias;
    struct df_mount *mount;
    bool on_disk;
    int ret;

    if (!df_gate_thread())
        return -ENOMEM;
    if (!spec->point || !spec->point[0])
        return -EINVAL;
    if ((ret = make_canonical(spec->point, canonical)) < 0 ||
        (ret = make_physical(canonical, physical)) < 0 || (ret = look_at(physical, &on_disk)) < 0)
        return ret;
    alias = strcmp(canonical, physical) != 0 ? canonical : NULL;

    pthread_mutex_lock(&table_lock);
    mount = take_free();
    ret = mount && copy_strings(mount, spec, physical, alias) ? 0 : -ENOMEM;
    if (ret == 0) {
        mount->on_disk = on_disk;
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
    atomic_store(&mount->live, mount->id);
    pthread_cond_broadcast(&changed);
}

/* Under table_lock, which is released during waits. */
static int detach_now(struct df_mount *mount)
{
    struct table *t;
    int error;

    stop_readers(mount, CLOSING);
    while (df_gate_is_pinned(mount))
        pthread_cond_wait(&changed, &table_lock);
    t = make_table(mount, NULL, &error);
    if (error == 0 && df_file_count(mount) > 0) {
        free(t);
        error = -EBUSY;
    }
    if (error < 0) {
        reopen(mount);
        return error;
    }
    mount->state = ENDING;
    publish(t);
    pthread_cond_broadcast(&changed); /* those who wait for the verdict */
    end(mount);
    return 0;
}

/* Under table_lock. */
static int detach_lazily(struct df_mount *mount)
{
    int error;
    struct table *t = make_table(mount, NULL, &error);

    if (error < 0)
        return error;
    publish(t);
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
        if ((m->state == LIVE || m->state == CLOSING) && !visit(m, arg))
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
