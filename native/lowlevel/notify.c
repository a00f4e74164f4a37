/*
 * notify.c - fuse_lowlevel_notify_*: the plugin says what changed behind our back.
 *
 * Nothing is locked for long and nothing is forgotten here: what is told is marked, and the next
 * call that comes by asks. So a plugin may notify from wherever it likes, also from inside an
 * operation on the same directory, where the kernel would deadlock.
 */
#include <limits.h>

#include "lowlevel/private.h"
#include "nodes/evict.h"
#include "nodes/link.h"

static int inval_inode(struct df_nodes *nodes, uint64_t id)
{
    struct df_node *node = df_node_find(nodes, id);

    if (!node)
        return -ENOENT;
    df_node_attr_forget(node, DF_ATTR_ALL);
    df_node_link_forget(node);
    return 0;
}

int df_notify_inval_inode(struct df_fs *fs, fuse_ino_t ino, off_t off, off_t len)
{
    int result;
    struct df_thread *thread = df_gate_enter(&result);

    (void)off, (void)len; /* parts of the page cache */
    if (!thread)
        return result;
    result = inval_inode(&df_lowlevel_of(fs)->nodes, ino);
    df_gate_leave(thread);
    df_call_tell_change();
    return result;
}

/* child: 0, or the node that the entry must lead to. */
static int inval_entry(struct df_nodes *nodes, uint64_t parent, uint64_t child, const char *text,
                       size_t len)
{
    struct df_node *dir = df_node_find(nodes, parent), *node;
    struct df_node_entry *entry;
    struct df_node_name name;

    if (!dir)
        return -ENOENT;
    if (!df_node_is_dir(dir))
        return -ENOTDIR;
    if (len == 0)
        return -EINVAL;
    if (len > DF_NAME_MAX)
        return -ENAMETOOLONG;
    name = df_node_cache_name(nodes, text, len);
    df_node_tell(nodes);
    entry = df_node_cache_find(dir, &name);
    if (!entry)
        return -ENOENT;
    df_node_attr_forget(dir, DF_ATTR_ALL);
    node = atomic_load_explicit(&entry->node, memory_order_acquire);
    df_node_cache_expire(entry);
    return child == 0 || (node && node->id == child) ? 0 : -ENOENT;
}

static int notify_entry(struct df_fs *fs, fuse_ino_t parent, fuse_ino_t child, const char *name,
                        size_t len)
{
    int result;
    struct df_thread *thread = df_gate_enter(&result);

    if (!thread)
        return result;
    result = inval_entry(&df_lowlevel_of(fs)->nodes, parent, child, name, len);
    df_gate_leave(thread);
    df_call_tell_change();
    return result;
}

int df_notify_inval_entry(struct df_fs *fs, fuse_ino_t parent, const char *name, size_t len)
{
    return notify_entry(fs, parent, 0, name, len);
}

int df_notify_delete(struct df_fs *fs, fuse_ino_t parent, fuse_ino_t child, const char *name,
                     size_t len)
{
    return notify_entry(fs, parent, child, name, len);
}

int df_notify_increment_epoch(struct df_fs *fs)
{
    struct df_nodes *nodes = &df_lowlevel_of(fs)->nodes;
    int result;
    struct df_thread *thread = df_gate_enter(&result);

    if (!thread)
        return result;
    df_node_tell(nodes);
    df_node_cache_expire_all(nodes);
    df_gate_leave(thread);
    df_call_tell_change();
    return 0;
}

int df_notify_prune(struct df_fs *fs, const fuse_ino_t *nodeids, uint32_t count)
{
    int result;
    struct df_thread *thread = df_gate_enter(&result);

    if (!thread)
        return result;
    df_node_prune(&df_lowlevel_of(fs)->nodes, nodeids, count);
    df_gate_leave(thread);
    return 0;
}

static int store(struct df_nodes *nodes, uint64_t id, off_t offset, size_t size)
{
    struct df_node *node = df_node_find(nodes, id);

    if (!node)
        return -ENOENT;
    if (!S_ISREG(node->type) || offset < 0 || (uint64_t)offset > INT64_MAX - size)
        return -EINVAL;
    df_node_attr_wrote(node, offset + (off_t)size);
    return 0;
}

int df_notify_store(struct df_fs *fs, fuse_ino_t ino, off_t offset, struct fuse_bufvec *bufv,
                    enum fuse_buf_copy_flags flags)
{
    size_t size = 0;
    int result;
    struct df_thread *thread = df_gate_enter(&result);

    (void)flags;
    if (!thread)
        return result;
    for (size_t i = bufv->idx; i < bufv->count; i++)
        size += bufv->buf[i].size - (i == bufv->idx ? bufv->off : 0);
    result = store(&df_lowlevel_of(fs)->nodes, ino, offset, size);
    df_gate_leave(thread);
    df_call_tell_change();
    return result;
}

int df_notify_retrieve(struct df_fs *fs, fuse_ino_t ino, size_t size, off_t offset, void *cookie)
{
    (void)fs, (void)ino, (void)size, (void)offset, (void)cookie;
    return -ENOSYS;
}
