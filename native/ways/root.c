/*
 * root.c - the root of the process in a mount, and its name.
 */
#include "ways/root.h"

#include <errno.h>
#include <string.h>

#include "core/fd.h"
#include "core/table.h"
#include "core/walk.h"
#include "ways/cwd.h"
#include "ways/name.h"

/* ---- the root -------------------------------------------------------------------------------- */

/* Its name is to be asked for. */
static void be(struct dfi_files *files, uint64_t handle)
{
    files->root.known = false;
    __atomic_store_n(&files->root.handle, handle, __ATOMIC_RELAXED);
}

void dfi_root_inherit(struct dfi_files *files, uint64_t handle)
{
    dfi_fd_hold(files, handle);
    be(files, handle);
}

bool dfi_root_set(struct dfi_files *files, uint64_t handle)
{
    uint64_t before;

    if (handle && !dfi_fd_room(files))
        return false;
    dfi_lock(&files->root.lock);
    before = files->root.handle;
    if (handle)
        dfi_fd_hold(files, handle);
    be(files, handle);
    dfi_unlock(&files->root.lock);
    if (before)
        dfi_fd_drop(files, before, false);
    return true;
}

/* Another thread may be about to go by another one. */
bool dfi_root_begin(struct dfi_record *record)
{
    struct dfi_files *files = record->files;

    dfi_lock(&files->root.lock);
    record->root = files->root.handle;
    if (record->root)
        dfi_fd_hold(files, record->root);
    dfi_unlock(&files->root.lock);
    return record->root != 0;
}

void dfi_root_end(struct dfi_record *record)
{
    dfi_fd_drop(record->files, record->root, false);
}

/* ---- its name -------------------------------------------------------------------------------- */

/* Asks for it. A shadow directory of that name tells when it is renamed (cwd.h). */
static void learn(struct dfi_record *record)
{
    struct dfi_files *files = record->files;
    struct dfi_root *root = &files->root;
    uint32_t moved = atomic_load(&files->shared->moved);
    char name[PATH_MAX];
    long len = dfi_name_find(DF_FD_BASE + DFI_FD_ROOT, name);

    if (len > 0)
        dfi_cwd_expect(files, name, (size_t)len);
    dfi_lock(&root->lock);
    if (root->handle == record->root) {
        root->len = len > 0 ? (uint32_t)len : 0;
        memcpy(files->root_path, name, root->len);
        root->moved = moved;
        root->known = true;
    }
    dfi_unlock(&root->lock);
}

static bool is_known(const struct dfi_files *files)
{
    return files->root.known && files->root.moved == atomic_load(&files->shared->moved);
}

static struct dfi_root *lock_known(struct dfi_record *record)
{
    struct dfi_root *root = &record->files->root;

    if (!is_known(record->files))
        learn(record);
    dfi_lock(&root->lock);
    return root;
}

bool dfi_root_has_mounts(struct dfi_record *record)
{
    struct dfi_root *root = lock_known(record);
    bool has = root->len > 0 && df_table_below(record->files->root_path, root->len);

    dfi_unlock(&root->lock);
    return has;
}

long dfi_root_join(struct dfi_record *record, const char *below, char out[PATH_MAX])
{
    struct dfi_root *root = lock_known(record);
    long len = root->len;

    if (df_walk_join(out, record->files->root_path, root->len, below) < 0)
        len = 0;
    dfi_unlock(&root->lock);
    return len;
}

size_t dfi_root_covers(struct dfi_record *record, const char *name, size_t len)
{
    struct dfi_root *root = lock_known(record);
    size_t covered = 0;

    if (root->len > 0 && len >= root->len &&
        memcmp(name, record->files->root_path, root->len) == 0 &&
        (len == root->len || name[root->len] == '/'))
        covered = root->len;
    dfi_unlock(&root->lock);
    return covered;
}

/* d_path() of the kernel: "(unreachable)" is said of what lies outside. */
long dfi_root_show(struct dfi_record *record, char name[PATH_MAX], size_t len)
{
    static const char outside[] = "(unreachable)";
    const size_t prefix = sizeof(outside) - 1;
    size_t root;

    if (name[0] != '/')
        return (long)len;
    root = dfi_root_covers(record, name, len);
    if (root > 0 && root == len) {
        name[0] = '/';
        return 1;
    }
    if (root > 0)
        memmove(name, name + root, len - root);
    if (root > 0 || len == 1)
        return (long)(len - root);
    if (len + prefix >= PATH_MAX)
        return -ENAMETOOLONG;
    memmove(name + prefix, name, len);
    memcpy(name, outside, prefix);
    return (long)(len + prefix);
}
