/*
 * cwd.c - the working directory in a mount: a shadow directory, and its name.
 */
#include "ways/cwd.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <string.h>
#include <unistd.h>

#include "client/number.h"
#include "core/walk.h"
#include "intercept/brief.h"
#include "intercept/proc_link.h"
#include "shadows/shadow.h"

#define TREE     "/t"
#define TREE_LEN 2
#define HELD     "/c/0." /* as dfi_shadow_name() makes it */

/* ---- names --------------------------------------------------------------------------------- */

size_t dfi_cwd_shown(const struct dfi_files *files, char *name, size_t len)
{
    size_t prefix = files->shadow_len + TREE_LEN;

    if (len < prefix || memcmp(name, files->shadow, files->shadow_len) != 0 ||
        memcmp(name + files->shadow_len, TREE, TREE_LEN) != 0)
        return len;
    if (len == prefix) {
        name[0] = '/';
        return 1;
    }
    if (name[prefix] != '/')
        return len;
    memmove(name, name + prefix, len - prefix);
    return len - prefix;
}

int dfi_cwd_shadow(const struct dfi_files *files, const char *path, size_t len, char out[PATH_MAX])
{
    char *end;

    if (files->shadow_len + TREE_LEN + len >= PATH_MAX)
        return -ENAMETOOLONG;
    end = mempcpy(out, files->shadow, files->shadow_len);
    end = mempcpy(end, TREE, TREE_LEN);
    end = mempcpy(end, path, len);
    *end = '\0';
    return 0;
}

/* ---- which there are ------------------------------------------------------------------------- */

/* Most directories that are renamed or removed nobody ever stood in, nor in one that is called so:
 * then there is no shadow to follow, and neither the kernel nor a mount need be asked. */
static uint32_t hash_of(const char *name, size_t len)
{
    uint32_t hash = 2166136261u;

    for (size_t i = 0; i < len; i++)
        hash = (hash ^ (unsigned char)name[i]) * 16777619u;
    return hash % (DFI_ENTERED_WORDS * 64);
}

/* Where the last component of path[0..len) begins. */
static size_t last_of(const char *path, size_t len)
{
    while (len > 0 && path[len - 1] != '/')
        len--;
    return len;
}

/* Before it is made. All above it are made with it. */
static void note(const struct dfi_files *files, const char *path, size_t len)
{
    while (len > 0) {
        size_t start = last_of(path, len);
        uint32_t bit = hash_of(path + start, len - start);

        atomic_fetch_or(&files->shared->entered[bit / 64], UINT64_C(1) << bit % 64);
        len = start > 0 ? start - 1 : 0;
    }
}

bool dfi_cwd_may_have(const struct dfi_files *files, const char *path)
{
    size_t len = strlen(path), start;
    uint32_t bit;

    if (!files->shared) /* there is no mount */
        return false;
    while (len > 0 && path[len - 1] == '/')
        len--;
    start = last_of(path, len);
    bit = hash_of(path + start, len - start);
    return atomic_load(&files->shared->entered[bit / 64]) >> bit % 64 & 1;
}

/* ---- making them ----------------------------------------------------------------------------- */

/* Programs under other ids of the job use it too. 1; 0: it was there; or -errno. */
static long make_one(const char *path)
{
    long ret = dfi_kernel(__NR_mkdir, path, 0777);

    if (ret == 0)
        dfi_kernel(__NR_chmod, path, 0777);
    return ret == -EEXIST ? 0 : ret < 0 ? ret : 1;
}

/* Makes the shadow of that directory and of those above it. 1; 0: it was there; or -errno. */
static long make_shadow(const struct dfi_files *files, const char *path, size_t len)
{
    size_t start = files->shadow_len + TREE_LEN + 1;
    char out[PATH_MAX];
    long ret = dfi_cwd_shadow(files, path, len, out);

    if (ret < 0)
        return ret;
    note(files, path, len);
    if ((ret = make_one(out)) != -ENOENT)
        return ret;
    for (char *at = out + start; *at != '\0'; at++)
        if (*at == '/') {
            *at = '\0';
            ret = make_one(out);
            *at = '/';
            if (ret < 0)
                return ret;
        }
    return make_one(out);
}

long dfi_cwd_expect(const struct dfi_files *files, const char *path, size_t len)
{
    return make_shadow(files, path, len);
}

/* ---- where we are ---------------------------------------------------------------------------- */

/* What the kernel shows of a directory that this link leads to, behind the shadow directory's name;
 * NULL: it is none below it. */
static const char *shown_by(const struct dfi_files *files, const char *link, char name[PATH_MAX])
{
    long len = dfi_kernel(__NR_readlink, link, name, PATH_MAX - 1);

    if (len < 0)
        return NULL;
    name[len] = '\0';
    return dfi_shadow_behind(files, name);
}

/* Under cwd.lock: the open directory of that handle is the working directory, or none is. */
static void be_open(struct dfi_files *files, uint64_t handle)
{
    uint64_t before = files->cwd.handle;

    files->cwd.ours = handle != 0;
    files->cwd.removed = false;
    files->cwd.len = 0;
    if (handle == before)
        return;
    if (handle)
        dfi_fd_hold(files, handle);
    __atomic_store_n(&files->cwd.handle, handle, __ATOMIC_RELAXED);
    if (before)
        dfi_fd_drop(files, before, false);
}

bool dfi_cwd_take(struct dfi_record *record)
{
    struct dfi_files *files = record->files;

    if (record->here || !dfi_cwd_handle(files))
        return record->here;
    dfi_lock(&files->cwd.lock);
    record->here = files->cwd.handle;
    if (record->here)
        dfi_fd_hold(files, record->here);
    dfi_unlock(&files->cwd.lock);
    return record->here;
}

/* Under cwd.lock, of a working directory that the kernel has no name for: by its handle, removed,
 * or one that is not ours. */
static void be_nameless(struct dfi_files *files)
{
    char name[PATH_MAX];
    const char *text = shown_by(files, "/proc/self/cwd", name);
    uint64_t handle = 0;

    if (text && strncmp(text, HELD, sizeof(HELD) - 1) == 0) {
        text += sizeof(HELD) - 1;
        handle = dfi_fd_room(files) ? dfi_number_get(&text) : 0;
        text = NULL;
    }
    be_open(files, handle);
    if (text && strncmp(text, TREE "/", TREE_LEN + 1) == 0)
        files->cwd.ours = files->cwd.removed = true;
}

/* Under cwd.lock: asks the kernel. */
static long ask(struct dfi_files *files)
{
    struct dfi_cwd *cwd = &files->cwd;
    long len = dfi_kernel(__NR_getcwd, cwd->path, PATH_MAX);
    size_t shown;

    if (len == -ENOENT)
        be_nameless(files);
    else
        be_open(files, 0);
    if (cwd->ours)
        return 0;
    if (len <= 1 || cwd->path[0] != '/')
        return len < 0 ? len : 0;
    shown = dfi_cwd_shown(files, cwd->path, (size_t)len - 1);
    cwd->ours = shown < (size_t)len - 1;
    cwd->len = (uint32_t)shown;
    cwd->path[shown] = '\0';
    return 0;
}

void dfi_cwd_copy(struct dfi_cwd *to, struct dfi_cwd *from)
{
    dfi_lock(&from->lock);
    to->ours = from->ours;
    to->removed = from->removed;
    to->handle = from->handle;
    to->moved = from->moved;
    to->len = from->len;
    memcpy(to->path, from->path, (size_t)from->len + 1);
    dfi_unlock(&from->lock);
}

void dfi_cwd_changed(struct dfi_files *files)
{
    if (!files->shared) /* a run without mounts */
        return;
    dfi_lock(&files->cwd.lock);
    files->cwd.moved = atomic_load(&files->shared->moved);
    ask(files);
    dfi_unlock(&files->cwd.lock);
}

static void make_ways(const struct dfi_files *files)
{
    const struct df_shared_mount *mounts = df_segment_mounts(files->link.segment);

    for (int i = 0; i < DF_MOUNT_COUNT; i++)
        if (atomic_load(&mounts[i].live) != 0)
            make_shadow(files, mounts[i].point, mounts[i].point_len);
}

/* Two that start at once make them both: who finds the mark finds the directories. */
void dfi_cwd_begin(struct dfi_files *files)
{
    if (atomic_load(&files->shared->ways))
        return;
    make_ways(files);
    atomic_store(&files->shared->ways, 1);
}

/* A directory that was renamed has another name now, also for those that stand in it. */
static int refresh(struct dfi_files *files)
{
    uint32_t moved = atomic_load_explicit(&files->shared->moved, memory_order_acquire);
    long ret = 0;

    if (files->cwd.handle)
        return -ENAMETOOLONG;
    if (files->cwd.moved != moved && !files->cwd.removed) {
        ret = ask(files);
        if (ret < 0)
            files->cwd.ours = true; /* removed, but ours */
        else
            files->cwd.moved = moved;
    }
    return (int)ret;
}

/* The directory above one that was removed, which may have been renamed meanwhile. Its length, or
 * -ENOENT: it was removed, too. */
static long name_above(const struct dfi_files *files, char name[PATH_MAX])
{
    static const char deleted[] = " (deleted)";
    char link[DFI_PROC_LINK_MAX];
    long fd = dfi_brief(__NR_open, "..", O_PATH | O_CLOEXEC, 0);
    const char *text;
    size_t len;

    if (fd < 0)
        return fd;
    dfi_proc_link((int)fd, link);
    text = shown_by(files, link, name);
    dfi_brief_close(fd);
    len = text ? strlen(name) : 0;
    if (len < sizeof(deleted) || strcmp(name + len - (sizeof(deleted) - 1), deleted) == 0)
        return -ENOENT;
    return (long)dfi_cwd_shown(files, name, len);
}

/* As dfi_cwd_join(), of a directory that was removed. Its shadow, which was, too, stands for it:
 * what is asked of it, and of names in it, is the kernel's to say; from it there is only the way
 * up. */
static int join_removed(const struct dfi_files *files, const char *path, char out[PATH_MAX])
{
    char above[PATH_MAX];
    long len;

    while (*path == '/' || (*path == '.' && (path[1] == '/' || path[1] == '\0')))
        path++;
    if (path[0] != '.' || path[1] != '.' || (path[2] != '/' && path[2] != '\0'))
        return 0;
    for (path += 2; *path == '/';)
        path++;
    if ((len = name_above(files, above)) < 0)
        return -ENOENT;
    return df_walk_join(out, above, len == 1 ? 0 : (size_t)len, *path ? path : ".") < 0
               ? -ENAMETOOLONG
               : 1;
}

static int join(const struct dfi_cwd *cwd, const char *path, char out[PATH_MAX])
{
    return df_walk_join(out, cwd->path, cwd->len == 1 ? 0 : cwd->len, path) < 0 ? -ENAMETOOLONG : 1;
}

int dfi_cwd_join(struct dfi_files *files, const char *path, char out[PATH_MAX])
{
    struct dfi_cwd *cwd = &files->cwd;
    int ret = 0;

    if (!__atomic_load_n(&cwd->ours, __ATOMIC_RELAXED))
        return 0;
    dfi_lock(&cwd->lock);
    if (cwd->ours)
        ret = refresh(files);
    if (ret == 0 && cwd->ours)
        ret = cwd->removed ? join_removed(files, path, out) : join(cwd, path, out);
    dfi_unlock(&cwd->lock);
    return ret;
}

long dfi_cwd_show(const struct dfi_files *files, char name[PATH_MAX])
{
    if (!shown_by(files, "/proc/self/cwd", name))
        return -ENOENT;
    name[dfi_cwd_shown(files, name, strlen(name))] = '\0';
    return (long)strlen(name);
}

long dfi_cwd_set(struct dfi_files *files, const char *path, size_t len)
{
    char shadow[PATH_MAX];
    long ret = dfi_cwd_shadow(files, path, len, shadow);

    if (ret == 0)
        ret = dfi_kernel(__NR_chdir, shadow);
    if (ret == 0)
        dfi_cwd_changed(files);
    return ret;
}

long dfi_cwd_set_open(struct dfi_files *files, uint64_t handle)
{
    char name[DFI_SHADOW_NAME_MAX];
    long ret;

    if (!dfi_fd_room(files))
        return -ENOMEM;
    dfi_shadow_name(files, 'c', 0, handle, name);
    dfi_lock(&files->cwd.lock);
    ret = dfi_shadow_result(make_one(name));
    if (ret >= 0)
        ret = dfi_kernel(__NR_chdir, name);
    dfi_kernel(__NR_rmdir, name);
    if (ret == 0)
        be_open(files, handle);
    dfi_unlock(&files->cwd.lock);
    return ret;
}

/* ---- names that change ----------------------------------------------------------------------- */

#define PATIENCE 400 /* times 50 microseconds, with a rename under way */

void dfi_cwd_moves(const struct dfi_files *files)
{
    atomic_fetch_add(&files->shared->moving, 1);
}

/* Not below zero: who has waited for too long takes those who move for dead. */
void dfi_cwd_has_moved(const struct dfi_files *files)
{
    uint32_t moving = atomic_load(&files->shared->moving);

    while (moving > 0 && !atomic_compare_exchange_weak(&files->shared->moving, &moving, moving - 1))
        ;
}

uint32_t dfi_cwd_count_moved(const struct dfi_files *files)
{
    return files->shared ? atomic_load(&files->shared->moved) : 0;
}

bool dfi_cwd_moved_since(const struct dfi_files *files, uint32_t count)
{
    const long pause[2] = {0, 50000};
    struct dfi_shared *shared = files->shared;
    uint32_t moving = 0;

    for (int i = 0; i < PATIENCE && atomic_load(&shared->moved) == count; i++) {
        if ((moving = atomic_load(&shared->moving)) == 0)
            return atomic_load(&shared->moved) != count;
        dfi_kernel(__NR_nanosleep, pause, 0);
    }
    if (atomic_load(&shared->moved) != count)
        return true;
    atomic_compare_exchange_strong(&shared->moving, &moving, 0);
    return false;
}

static bool exists(const char *shadow)
{
    return dfi_kernel(__NR_access, shadow, F_OK) == 0;
}

/* The shadows that are to be there before one is moved: those above the new name; of two that
 * change places, both. */
static void make_room(const struct dfi_files *files, const char *from, const char *to, bool both)
{
    size_t len = strlen(to);

    note(files, to, len);
    if (both)
        make_shadow(files, from, strlen(from));
    make_shadow(files, to, both ? len : last_of(to, len) - 1);
}

/* Where nobody stood in what was moved, somebody may have in what it has taken the place of. */
void dfi_cwd_renamed(struct dfi_files *files, const char *from, const char *to, unsigned flags)
{
    char old[PATH_MAX], new[PATH_MAX];
    bool both = flags & RENAME_EXCHANGE;
    long ret;

    if (dfi_cwd_shadow(files, from, strlen(from), old) < 0 ||
        dfi_cwd_shadow(files, to, strlen(to), new) < 0)
        return;
    if (both || exists(old)) {
        make_room(files, from, to, both);
        ret = dfi_kernel(__NR_renameat2, -100, old, -100, new, flags & RENAME_EXCHANGE);
    } else {
        ret = dfi_kernel(__NR_rmdir, new);
    }
    if (ret == 0)
        atomic_fetch_add(&files->shared->moved, 1);
}

long dfi_cwd_leave(const struct dfi_files *files, const char *path)
{
    char shadow[PATH_MAX];

    if (dfi_cwd_shadow(files, path, strlen(path), shadow) < 0)
        return -ENOENT;
    return dfi_brief(__NR_open, shadow, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
}

/* Of a shadow that another user has made the mode stays that of all: 0777. */
void dfi_cwd_removed(struct dfi_files *files, const char *path, long shadow, const struct stat *st)
{
    char name[PATH_MAX];

    if (dfi_cwd_shadow(files, path, strlen(path), name) == 0 && dfi_kernel(__NR_rmdir, name) == 0) {
        dfi_kernel(__NR_fchown, shadow, st->st_uid, st->st_gid);
        dfi_kernel(__NR_fchmod, shadow, st->st_mode & 07777);
        atomic_fetch_add(&files->shared->moved, 1);
    }
}
