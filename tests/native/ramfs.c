/*
 * ramfs.c - see ramfs.h. What it leaves out (permissions, xattrs, space) has the core's defaults.
 */
#include "ramfs.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/call.h"
#include "core/file.h"

struct entry {
    struct entry *next;
    struct node *node;
    off_t cookie; /* grows along the list */
    char name[NAME_MAX + 1];
};

struct node {
    struct stat st;
    unsigned opens;
    struct node *parent;   /* of a directory */
    struct entry *entries; /* of a directory, oldest first */
    off_t last_cookie;
    char *data; /* of a file, or a link's target */
};

struct ramfs {
    struct df_fs fs;
    struct df_ops ops;
    pthread_mutex_t lock; /* protects every node */
    struct node *root;
    ino_t last_ino;
    struct ramfs_probe *probe;
};

/* Where a name leads. */
struct place {
    struct node *dir;
    struct node *node; /* NULL: there is no such entry in dir */
    char name[NAME_MAX + 1];
};

#define CALL  struct df_fs *fs, struct df_call *call
#define WHERE const struct df_where *where
#define OPEN  struct df_file *file

static void unlock(struct ramfs **ram)
{
    pthread_mutex_unlock(&(*ram)->lock);
}

static struct ramfs *lock(struct df_fs *fs)
{
    pthread_mutex_lock(&((struct ramfs *)fs)->lock);
    return (struct ramfs *)fs;
}

/* `ram`, locked until the end of the function. */
#define LOCKED(fs) struct ramfs *ram __attribute__((cleanup(unlock))) = lock(fs)

static struct node *node_of(const struct df_file *file)
{
    return (struct node *)(uintptr_t)file->host[0];
}

/* ---- nodes and entries ---- */

static struct node *new_node(struct ramfs *ram, mode_t mode)
{
    struct node *node = calloc(1, sizeof(*node));

    if (!node)
        return NULL;
    node->st.st_ino = ++ram->last_ino;
    node->st.st_mode = mode;
    ram->probe->nodes++;
    return node;
}

static void free_unused(struct ramfs *ram, struct node *node)
{
    if (node->st.st_nlink > 0 || node->opens > 0)
        return;
    free(node->data);
    free(node);
    ram->probe->nodes--;
}

/* The link that points to the entry, or the end of the list. */
static struct entry **find(struct node *dir, const char *name)
{
    struct entry **at = &dir->entries;

    while (*at && strcmp((*at)->name, name) != 0)
        at = &(*at)->next;
    return at;
}

static int add(struct node *dir, const char *name, struct node *node)
{
    struct entry *e = calloc(1, sizeof(*e));

    if (!e)
        return -ENOMEM;
    strcpy(e->name, name);
    e->node = node;
    e->cookie = ++dir->last_cookie;
    *find(dir, name) = e;
    node->st.st_nlink++;
    node->parent = dir;
    return 0;
}

static void drop_entry(struct ramfs *ram, struct node *dir, const char *name)
{
    struct entry **at = find(dir, name), *e = *at;

    *at = e->next;
    e->node->st.st_nlink--;
    free_unused(ram, e->node);
    free(e);
}

/* ---- the walk ---- */

static int follow(struct df_call *call, const char *target, const char *rest, char path[PATH_MAX])
{
    char joined[PATH_MAX];

    if (target[0] == '/')
        return df_call_leave(call, target, strlen(target), rest, true);
    if (++call->links > DF_LINKS_MAX)
        return -ELOOP;
    if (snprintf(joined, sizeof(joined), "%s/%s", target, rest) >= PATH_MAX)
        return -ENAMETOOLONG;
    strcpy(path, joined);
    return 0;
}

static int walk(struct ramfs *ram, struct df_call *call, WHERE, struct place *p)
{
    bool parent = where->flags & DF_WHERE_PARENT, slash = where->flags & DF_WHERE_DIRECTORY;
    bool stop = parent || ((where->flags & DF_WHERE_NOFOLLOW) && !slash);
    char path[PATH_MAX], *name = path;
    int ret;

    strcpy(path, where->name);
    *p = (struct place){.node = where->base ? node_of(where->base) : ram->root};
    while (*(name += strspn(name, "/"))) {
        char *rest = name + strcspn(name, "/");

        if (!p->node)
            return -ENOENT;
        if (!S_ISDIR(p->node->st.st_mode))
            return -ENOTDIR;
        if (rest - name > NAME_MAX)
            return -ENAMETOOLONG;
        p->dir = p->node;
        *(char *)mempcpy(p->name, name, (size_t)(rest - name)) = '\0';
        name = rest;
        if (strcmp(p->name, "..") == 0) {
            if (p->dir == ram->root)
                return df_call_leave_up(call, rest);
            p->node = p->dir->parent;
        } else if (strcmp(p->name, ".") != 0) {
            struct entry *e = *find(p->dir, p->name);

            p->node = e ? e->node : NULL;
            if (e && S_ISLNK(e->node->st.st_mode) && (*rest || !stop)) {
                if ((ret = follow(call, e->node->data, rest, path)) < 0)
                    return ret;
                name = path;
                p->node = p->dir;
            }
        }
    }
    return !parent && slash && p->node && !S_ISDIR(p->node->st.st_mode) ? -ENOTDIR : 0;
}

/* To what must exist. */
static int reach(struct ramfs *ram, struct df_call *call, WHERE, struct place *p)
{
    int ret = walk(ram, call, where, p);

    return ret == 0 && !p->node ? -ENOENT : ret;
}

/* ---- by name ---- */

static int ram_getattr(CALL, WHERE, struct stat *st)
{
    LOCKED(fs);
    struct place p;
    int ret = reach(ram, call, where, &p);

    if (ret == 0)
        *st = p.node->st;
    return ret;
}

static int resize(struct node *node, off_t size)
{
    off_t kept = size < node->st.st_size ? size : node->st.st_size;
    char *data = calloc(1, (size_t)size + 1);

    if (!data)
        return -ENOSPC;
    if (kept > 0)
        memcpy(data, node->data, (size_t)kept);
    free(node->data);
    node->data = data;
    node->st.st_size = size;
    return 0;
}

static int ram_setattr(CALL, WHERE, const struct df_setattr *set, struct stat *st)
{
    LOCKED(fs);
    struct place p;
    int ret = reach(ram, call, where, &p);

    if (ret < 0)
        return ret;
    if (set->valid & DF_SET_SIZE)
        ret = S_ISREG(p.node->st.st_mode) ? resize(p.node, set->size) : -EISDIR;
    if (set->valid & DF_SET_MODE)
        p.node->st.st_mode = (p.node->st.st_mode & S_IFMT) | set->mode;
    if (set->valid & DF_SET_UID)
        p.node->st.st_uid = set->uid;
    if (set->valid & DF_SET_MTIME)
        p.node->st.st_mtim = set->mtime;
    if (st) /* nobody may want them */
        *st = p.node->st;
    return ret;
}

static ssize_t ram_readlink(CALL, WHERE, char *buf, size_t size)
{
    LOCKED(fs);
    struct place p;
    int ret = reach(ram, call, where, &p);

    if (ret < 0 || !S_ISLNK(p.node->st.st_mode))
        return ret < 0 ? ret : -EINVAL;
    return (char *)mempcpy(buf, p.node->data, strnlen(p.node->data, size)) - buf;
}

/* ---- entries ---- */

static int make_at(struct ramfs *ram, struct df_call *call, struct place *p, mode_t mode,
                   const char *target)
{
    int ret = -ENOMEM;

    if (p->node)
        return -EEXIST;
    if (!(p->node = new_node(ram, mode & (S_IFMT | ~call->caller->umask))))
        return -ENOMEM;
    if (!target || (p->node->data = strdup(target)))
        ret = add(p->dir, p->name, p->node);
    if (ret < 0)
        free_unused(ram, p->node);
    else if (target)
        p->node->st.st_size = (off_t)strlen(target);
    return ret;
}

static int make(CALL, WHERE, mode_t mode, const char *target)
{
    LOCKED(fs);
    struct place p;
    int ret = walk(ram, call, where, &p);

    return ret < 0 ? ret : make_at(ram, call, &p, mode, target);
}

static int ram_mknod(CALL, WHERE, mode_t mode, dev_t rdev)
{
    (void)rdev;
    return make(fs, call, where, mode, NULL);
}

static int ram_mkdir(CALL, WHERE, mode_t mode)
{
    return make(fs, call, where, S_IFDIR | mode, NULL);
}

static int ram_symlink(CALL, const char *target, WHERE)
{
    return make(fs, call, where, S_IFLNK | 0777, target);
}

static int drop(CALL, WHERE, bool dir)
{
    LOCKED(fs);
    struct place p;
    int ret = reach(ram, call, where, &p);

    if (ret == 0 && dir != S_ISDIR(p.node->st.st_mode))
        ret = dir ? -ENOTDIR : -EISDIR;
    if (ret == 0 && p.node->entries)
        ret = -ENOTEMPTY;
    if (ret == 0)
        drop_entry(ram, p.dir, p.name);
    return ret;
}

static int ram_unlink(CALL, WHERE)
{
    return drop(fs, call, where, false);
}

static int ram_rmdir(CALL, WHERE)
{
    return drop(fs, call, where, true);
}

/* The walks of rename and link. */
static int reach_two(struct ramfs *ram, struct df_call *call, const struct df_where *from,
                     const struct df_where *to, struct place *a, struct place *b)
{
    int ret = reach(ram, call, from, a);

    if (ret == 0 && (ret = walk(ram, call, to, b)) == DF_LEAVE)
        call->leave_second = true;
    return ret;
}

static int ram_rename(CALL, const struct df_where *from, const struct df_where *to, unsigned flags)
{
    LOCKED(fs);
    struct place a, b;
    int ret = reach_two(ram, call, from, to, &a, &b);

    if (ret < 0 || a.node == b.node)
        return ret;
    if (b.node && (flags & RENAME_NOREPLACE))
        return -EEXIST;
    if (b.node)
        drop_entry(ram, b.dir, b.name);
    if ((ret = add(b.dir, b.name, a.node)) == 0)
        drop_entry(ram, a.dir, a.name);
    return ret;
}

static int ram_link(CALL, const struct df_where *from, const struct df_where *to)
{
    LOCKED(fs);
    struct place a, b;
    int ret = reach_two(ram, call, from, to, &a, &b);

    if (ret < 0 || b.node)
        return ret < 0 ? ret : -EEXIST;
    return S_ISDIR(a.node->st.st_mode) ? -EPERM : add(b.dir, b.name, a.node);
}

/* ---- open files ---- */

static int open_node(struct ramfs *ram, struct df_call *call, WHERE, struct place *p, int flags,
                     mode_t mode)
{
    int ret = walk(ram, call, where, p);

    if (ret < 0)
        return ret;
    if (!p->node)
        return flags & O_CREAT ? make_at(ram, call, p, S_IFREG | mode, NULL) : -ENOENT;
    if ((flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL))
        return -EEXIST;
    if (S_ISLNK(p->node->st.st_mode) && !(flags & O_PATH))
        return -ELOOP;
    if (S_ISDIR(p->node->st.st_mode) && (flags & (O_ACCMODE | O_CREAT)))
        return -EISDIR;
    if (!S_ISDIR(p->node->st.st_mode) && (flags & O_DIRECTORY))
        return -ENOTDIR;
    return flags & O_TRUNC ? resize(p->node, 0) : 0;
}

static int ram_open(CALL, WHERE, OPEN, int flags, mode_t mode)
{
    LOCKED(fs);
    struct place p;
    int ret = open_node(ram, call, where, &p, flags, mode);

    if (ret < 0)
        return ret;
    p.node->opens++;
    file->host[0] = (uint64_t)(uintptr_t)p.node;
    file->ino = file->body = p.node->st.st_ino;
    file->kind = S_ISDIR(p.node->st.st_mode) ? DF_KIND_DIRECTORY : DF_KIND_REGULAR;
    if (S_ISLNK(p.node->st.st_mode))
        file->kind = DF_KIND_OTHER;
    ram->probe->opened++;
    return 0;
}

static int ram_flush(CALL, OPEN, uint64_t owner)
{
    LOCKED(fs);
    (void)call, (void)file, (void)owner;
    ram->probe->flushed++;
    return 0;
}

static void ram_release(CALL, OPEN)
{
    LOCKED(fs);
    (void)call;
    node_of(file)->opens--;
    free_unused(ram, node_of(file));
    ram->probe->released++;
}

static ssize_t ram_read(CALL, OPEN, const struct iovec *iov, int iovcnt, off_t offset)
{
    LOCKED(fs);
    struct node *node = node_of(file);
    ssize_t done = 0;

    (void)call, (void)ram;
    for (int i = 0; i < iovcnt && offset + done < node->st.st_size; i++) {
        size_t left = (size_t)(node->st.st_size - offset - done);
        size_t size = iov[i].iov_len < left ? iov[i].iov_len : left;

        memcpy(iov[i].iov_base, node->data + offset + done, size);
        done += (ssize_t)size;
    }
    return done;
}

static ssize_t ram_write(CALL, OPEN, const struct iovec *iov, int iovcnt, off_t *offset)
{
    LOCKED(fs);
    struct node *node = node_of(file);
    bool appends = file->flags & O_APPEND && !call->writes_back;
    off_t at = *offset = appends ? node->st.st_size : *offset;

    (void)call;
    for (int i = 0; i < iovcnt; i++, at += (off_t)iov[i - 1].iov_len) {
        off_t end = at + (off_t)iov[i].iov_len;

        if (end > node->st.st_size && resize(node, end) < 0)
            return -ENOSPC;
        memcpy(node->data + at, iov[i].iov_base, iov[i].iov_len);
    }
    int error = ram->probe->written ? ram->probe->written() : 0;
    return error ? error : at - *offset;
}

/* Cookies: 1 ".", 2 "..", then the entry's plus 2. */
static int ram_readdir(CALL, OPEN, off_t offset, struct df_dirbuf *buf)
{
    LOCKED(fs);
    struct node *dir = node_of(file);
    bool fits = offset >= 1 || df_dirbuf_add(buf, ".", 1, dir->st.st_ino, 1, DT_DIR);

    (void)call, (void)ram;
    fits = fits && (offset >= 2 || df_dirbuf_add(buf, "..", 2, dir->st.st_ino, 2, DT_DIR));
    for (struct entry *e = dir->entries; e && fits; e = e->next)
        if (e->cookie + 2 > offset)
            fits = df_dirbuf_add(buf, e->name, strlen(e->name), e->node->st.st_ino, e->cookie + 2,
                                 IFTODT(e->node->st.st_mode));
    return !fits && buf->used == 0 ? -EINVAL : 0;
}

static ssize_t ram_borrow(CALL, OPEN, off_t offset, size_t size, const void **ptr)
{
    LOCKED(fs);
    off_t left = node_of(file)->st.st_size - offset;

    (void)call;
    if (left <= 0)
        return 0;
    *ptr = node_of(file)->data + offset;
    ram->probe->borrowed++;
    return (off_t)size < left ? (ssize_t)size : left;
}

static void ram_unborrow(CALL, OPEN, const void *ptr, size_t size)
{
    LOCKED(fs);
    (void)call, (void)file, (void)ptr, (void)size;
    ram->probe->borrowed--;
}

/* ---- life ---- */

static void free_tree(struct ramfs *ram, struct node *dir)
{
    while (dir->entries) {
        free_tree(ram, dir->entries->node);
        drop_entry(ram, dir, dir->entries->name);
    }
}

static void ram_destroy(struct df_fs *fs)
{
    struct ramfs *ram = (struct ramfs *)fs;

    free_tree(ram, ram->root);
    ram->root->st.st_nlink = 0;
    free_unused(ram, ram->root);
    pthread_mutex_destroy(&ram->lock);
    ram->probe->destroyed++;
    free(ram);
}

struct df_fs *ramfs_new(struct ramfs_probe *probe)
{
#define DF_RAM(name) .name = ram_##name
    static const struct df_ops ops = {
        DF_OPS_VERSION,  sizeof(struct df_ops), DF_RAM(getattr), DF_RAM(setattr), DF_RAM(readlink),
        DF_RAM(mknod),   DF_RAM(mkdir),         DF_RAM(symlink), DF_RAM(unlink),  DF_RAM(rmdir),
        DF_RAM(rename),  DF_RAM(link),          DF_RAM(open),    DF_RAM(flush),   DF_RAM(release),
        DF_RAM(read),    DF_RAM(write),         DF_RAM(readdir), DF_RAM(borrow),  DF_RAM(unborrow),
        DF_RAM(destroy),
    };
    static struct ramfs_probe nobody;
    struct ramfs *ram = calloc(1, sizeof(*ram));

    if (!ram)
        return NULL;
    ram->probe = probe ? probe : &nobody;
    pthread_mutex_init(&ram->lock, NULL);
    df_ops_complete(&ram->ops, &ops);
    ram->fs.ops = &ram->ops;
    ram->root = new_node(ram, S_IFDIR | 0755);
    if (!ram->root) {
        free(ram);
        return NULL;
    }
    ram->root->st.st_nlink = 1;
    return &ram->fs;
}
