/*
 * ram_rig.h - a path lane in front of the table of ram_table.h: made, driven and taken down by the
 * tests of highlevel_*.c.
 */
#ifndef DF_TEST_RAM_RIG_H
#define DF_TEST_RAM_RIG_H

#include "core/gate.h"
#include "ram_table.h"

struct rig {
    struct ram ram;
    struct df_fs *fs;
    struct df_session session;
    struct df_mount mount;
    struct df_caller caller;
    struct df_call call;
    struct fuse_operations ops; /* of the next start */
    struct fuse_config config;  /* likewise */
    struct fuse_conn_info conn;
    unsigned drop, want; /* capabilities that init takes away and adds */
    void *private_data;  /* that init saw */
};

static struct rig *rig_here;

static void *rig_init(struct fuse_conn_info *conn, struct fuse_config *config)
{
    (void)config;
    rig_here->private_data = df_highlevel_context()->private_data;
    conn->want = (conn->want & ~rig_here->drop) | rig_here->want;
    return &rig_here->ram;
}

/* A rig not yet started: its ops, config, session may be changed. */
static struct rig *rig_new(void)
{
    struct rig *rig = calloc(1, sizeof(*rig));

    pthread_mutex_init(&rig->ram.lock, NULL);
    ram_here = &rig->ram;
    rig_here = rig;
    rig->ops = ram_ops;
    rig->ram.conflict = (struct flock){.l_type = F_WRLCK, .l_start = 10, .l_len = 5, .l_pid = 99};
    rig->ops.init = rig_init;
    rig->config.entry_timeout = rig->config.attr_timeout = 1000;
    rig->config.use_ino = 1;
    rig->session.allow_other = true;
    rig->mount.point = "/top/mnt";
    rig->caller = (struct df_caller){.pid = 42, .umask = 022, .capable = true, .lock_owner = 7};
    ram_add("/", S_IFDIR | 0755);
    ram_add("/dir", S_IFDIR | 0755);
    ram_add("/dir/sub", S_IFDIR | 0755);
    struct ram_name *file = ram_add("/dir/file", S_IFREG | 0644);
    ram_copy_in(file->inode, "0123456789", 10, 0);
    ram_add("/link", S_IFLNK | 0777)->inode->data = strdup("dir");
    ram_add("/dir/up", S_IFLNK | 0777)->inode->data = strdup("../dir/file");
    ram_add("/away", S_IFLNK | 0777)->inode->data = strdup("/etc");
    ram_add("/loop", S_IFLNK | 0777)->inode->data = strdup("loop");
    ram_add("/fifo", S_IFIFO | 0644);
    return rig;
}

static int rig_start(struct rig *rig)
{
    rig->fs = df_highlevel_new(&rig->ops, sizeof(rig->ops), "user data", &rig->session, NULL);
    assert_non_null(rig->fs);
    *df_highlevel_config(rig->fs) = rig->config;
    return df_highlevel_init(rig->fs, (struct fuse *)rig, &rig->conn);
}

static struct rig *rig_default(void)
{
    struct rig *rig = rig_new();
    assert_int_equal(rig_start(rig), 0);
    return rig;
}

static void rig_end(struct rig *rig)
{
    if (rig->fs)
        rig->fs->ops->destroy(rig->fs);
    assert_false(rig->ram.nested);
    for (int i = 0; i < RAM_HANDLES; i++)
        assert_null(rig->ram.handles[i]);
    for (int i = 0; i < RAM_NAMES; i++) {
        if (rig->ram.names[i].path[0])
            ram_remove(&rig->ram.names[i]);
    }
    df_pollhandle_destroy(rig->ram.poll_handle);
    pthread_mutex_destroy(&rig->ram.lock);
    free(rig);
}

/* Counts since the last look. */
static unsigned rig_count(struct rig *rig, enum ram_op op)
{
    unsigned count = rig->ram.count[op];
    rig->ram.count[op] = 0;
    return count;
}

static unsigned rig_total(struct rig *rig)
{
    unsigned total = rig->ram.total;
    rig->ram.total = 0;
    memset(rig->ram.count, 0, sizeof(rig->ram.count));
    return total;
}

/* Of this thread, where several make calls. */
static inline struct df_call rig_own_call(struct rig *rig)
{
    return (struct df_call){
        .mount = &rig->mount, .thread = df_gate_thread(), .caller = &rig->caller};
}

static struct df_call *rig_call(struct rig *rig)
{
    rig->call.mount = &rig->mount;
    rig->call.thread = df_gate_thread();
    rig->call.caller = &rig->caller;
    rig->call.links = 0;
    rig->call.leave_second = false;
    return &rig->call;
}

/* A df_where as the core makes it: slashes at the end are taken off and flagged. */
struct rig_where {
    struct df_where where;
    char name[PATH_MAX];
};

static struct df_where *rig_where(struct rig_where *out, struct df_file *base, const char *name,
                                  uint32_t flags)
{
    size_t len = strlen(name);

    assert_true(len < sizeof(out->name));
    memcpy(out->name, name, len + 1);
    if (len > 1 && name[len - 1] == '/') {
        out->name[--len] = '\0';
        flags |= DF_WHERE_DIRECTORY;
    }
    if (strstr(name, ".."))
        flags |= DF_WHERE_DOTDOT;
    out->where =
        (struct df_where){.base = base, .name = out->name, .len = (uint32_t)len, .flags = flags};
    return &out->where;
}

static int rig_stat(struct rig *rig, const char *path, struct stat *st)
{
    struct rig_where where;
    return rig->fs->ops->getattr(rig->fs, rig_call(rig), rig_where(&where, NULL, path, 0), st);
}

static int rig_lstat(struct rig *rig, const char *path, struct stat *st)
{
    struct rig_where where;
    return rig->fs->ops->getattr(rig->fs, rig_call(rig),
                                 rig_where(&where, NULL, path, DF_WHERE_NOFOLLOW), st);
}

static int rig_fstat(struct rig *rig, struct df_file *file, struct stat *st)
{
    struct rig_where where;
    return rig->fs->ops->getattr(rig->fs, rig_call(rig), rig_where(&where, file, "", 0), st);
}

static int rig_openat(struct rig *rig, struct df_file *base, const char *path, int flags,
                      mode_t mode, struct df_file *file)
{
    struct rig_where where;

    memset(file, 0, sizeof(*file));
    atomic_init(&file->flags, flags & ~(O_CREAT | O_EXCL | O_TRUNC | O_NOCTTY));
    return rig->fs->ops->open(rig->fs, rig_call(rig), rig_where(&where, base, path, 0), file, flags,
                              mode);
}

static int rig_open(struct rig *rig, const char *path, int flags, mode_t mode, struct df_file *file)
{
    return rig_openat(rig, NULL, path, flags, mode, file);
}

static void rig_close(struct rig *rig, struct df_file *file)
{
    if (!(file->traits & DF_FILE_NOFLUSH))
        rig->fs->ops->flush(rig->fs, rig_call(rig), file, 7);
    rig->fs->ops->release(rig->fs, rig_call(rig), file);
}

static ssize_t rig_pread(struct rig *rig, struct df_file *file, void *buf, size_t size,
                         off_t offset)
{
    struct iovec iov = {buf, size};
    return rig->fs->ops->read(rig->fs, rig_call(rig), file, &iov, 1, offset);
}

static ssize_t rig_pwrite(struct rig *rig, struct df_file *file, const void *buf, size_t size,
                          off_t offset)
{
    struct iovec iov = {(void *)buf, size};
    return rig->fs->ops->write(rig->fs, rig_call(rig), file, &iov, 1, &offset);
}

static int rig_unlink(struct rig *rig, const char *path)
{
    struct rig_where where;
    return rig->fs->ops->unlink(rig->fs, rig_call(rig),
                                rig_where(&where, NULL, path, DF_WHERE_PARENT));
}

static int rig_rmdir(struct rig *rig, const char *path)
{
    struct rig_where where;
    return rig->fs->ops->rmdir(rig->fs, rig_call(rig),
                               rig_where(&where, NULL, path, DF_WHERE_PARENT));
}

static int rig_mkdir(struct rig *rig, const char *path, mode_t mode)
{
    struct rig_where where;
    return rig->fs->ops->mkdir(rig->fs, rig_call(rig),
                               rig_where(&where, NULL, path, DF_WHERE_PARENT), mode);
}

static int rig_mknod(struct rig *rig, const char *path, mode_t mode)
{
    struct rig_where where;
    return rig->fs->ops->mknod(rig->fs, rig_call(rig),
                               rig_where(&where, NULL, path, DF_WHERE_PARENT), mode, 0);
}

static int rig_symlink(struct rig *rig, const char *target, const char *path)
{
    struct rig_where where;
    return rig->fs->ops->symlink(rig->fs, rig_call(rig), target,
                                 rig_where(&where, NULL, path, DF_WHERE_PARENT));
}

static int rig_link(struct rig *rig, const char *from, const char *to)
{
    struct rig_where a, b;
    return rig->fs->ops->link(rig->fs, rig_call(rig), rig_where(&a, NULL, from, DF_WHERE_NOFOLLOW),
                              rig_where(&b, NULL, to, DF_WHERE_PARENT));
}

static int rig_rename(struct rig *rig, const char *from, const char *to, unsigned flags)
{
    struct rig_where a, b;
    return rig->fs->ops->rename(rig->fs, rig_call(rig), rig_where(&a, NULL, from, DF_WHERE_PARENT),
                                rig_where(&b, NULL, to, DF_WHERE_PARENT), flags);
}

static int rig_set(struct rig *rig, struct df_file *base, const char *path,
                   const struct df_setattr *set)
{
    struct rig_where where;
    struct stat st;
    return rig->fs->ops->setattr(rig->fs, rig_call(rig), rig_where(&where, base, path, 0), set,
                                 &st);
}

/* Names of an open directory from an offset, joined by commas; *end is where it stopped. */
static int rig_list(struct rig *rig, struct df_file *dir, off_t offset, size_t size, char *names,
                    off_t *end)
{
    char data[4096];
    struct df_dirbuf buf = {.data = data, .size = size ? size : sizeof(data)};
    int result = rig->fs->ops->readdir(rig->fs, rig_call(rig), dir, offset, &buf);

    names[0] = '\0';
    for (size_t at = 0; at < buf.used;) {
        struct dirent64 *entry = (struct dirent64 *)(data + at);
        strcat(names, entry->d_name);
        strcat(names, ",");
        if (end)
            *end = entry->d_off;
        at += entry->d_reclen;
    }
    return result;
}

/* So that a program need not use them all. */
static void (*const rig_unused[])(void) __attribute__((unused)) = {
    (void (*)(void))rig_count,   (void (*)(void))rig_total,  (void (*)(void))rig_lstat,
    (void (*)(void))rig_fstat,   (void (*)(void))rig_open,   (void (*)(void))rig_close,
    (void (*)(void))rig_pread,   (void (*)(void))rig_pwrite, (void (*)(void))rig_unlink,
    (void (*)(void))rig_rmdir,   (void (*)(void))rig_mkdir,  (void (*)(void))rig_mknod,
    (void (*)(void))rig_symlink, (void (*)(void))rig_link,   (void (*)(void))rig_rename,
    (void (*)(void))rig_set,     (void (*)(void))rig_list,   (void (*)(void))rig_default,
    (void (*)(void))rig_stat,    (void (*)(void))rig_end,
};

#endif
