/*
 * test_lowlevel_control.c - INIT and DESTROY, extended attributes, ioctl, poll, locks, holes: what
 * a plugin may leave out, and what it gets when it does not.
 */
#include <linux/falloc.h>
#include <linux/fs.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/statvfs.h>

#include "host/pollhandle.h"
#include "lone_file.h"
#include "lowlevel/private.h"

static unsigned requests;

/* ---- life ---- */

static unsigned want_on, destroyed, max_write, new_max_read;
static struct fuse_conn_info seen;

static void op_init(void *userdata, struct fuse_conn_info *conn)
{
    assert_ptr_equal(userdata, &lone_data);
    seen = *conn;
    conn->want |= want_on;
    if (max_write)
        conn->max_write = max_write;
    if (new_max_read)
        conn->max_read = new_max_read;
}

static void op_destroy(void *userdata)
{
    assert_ptr_equal(userdata, &lone_data);
    destroyed++;
}

static int init_with(unsigned on, unsigned read_limit)
{
    struct fuse_conn_info conn = {0};
    struct df_fs *fs = lone_new((struct fuse_lowlevel_ops){.init = op_init, .destroy = op_destroy});
    int result;

    want_on = on;
    new_max_read = read_limit;
    destroyed = 0;
    result = df_lowlevel_init(fs, &conn);
    df_lowlevel_free(fs);
    assert_int_equal(destroyed, 1);
    new_max_read = 0;
    want_on = 0;
    return result;
}

static void init_offers_and_checks(void **state)
{
    (void)state;
    assert_int_equal(init_with(0, 0), 0);
    assert_true(seen.capable & FUSE_CAP_CACHE_SYMLINKS);
    assert_false(seen.capable & FUSE_CAP_WRITEBACK_CACHE);
    assert_true(seen.capable & FUSE_CAP_POSIX_ACL);
    assert_int_equal(seen.want & ~seen.capable, 0);
    assert_int_equal(seen.proto_major, 7);
    assert_int_equal(seen.max_write, 1 << 20);
    assert_int_equal(init_with(FUSE_CAP_DONT_MASK, 0), 0);
    assert_int_equal(init_with(FUSE_CAP_WRITEBACK_CACHE, 0), -EPROTO);
    assert_int_equal(init_with(0, 4096), -EPROTO); /* not what the mount option said */
}

static void a_plugin_that_was_not_initialised_is_not_destroyed(void **state)
{
    (void)state;
    destroyed = 0;
    df_lowlevel_free(lone_new((struct fuse_lowlevel_ops){.destroy = op_destroy}));
    assert_int_equal(destroyed, 0);
}

/* Only the first operations are known to an older program. */
static void an_older_table_is_shorter(void **state)
{
    struct fuse_lowlevel_ops ops = {.lookup = lone_lookup, .getattr = lone_getattr};
    struct df_fs *fs;

    (void)state;
    memset((char *)&ops + offsetof(struct fuse_lowlevel_ops, readlink), 0xee,
           sizeof(ops) - offsetof(struct fuse_lowlevel_ops, readlink));
    fs = df_lowlevel_new(&ops, offsetof(struct fuse_lowlevel_ops, readlink), NULL, NULL, NULL);
    assert_non_null(fs);
    assert_null(((struct df_lowlevel *)fs)->ops.readlink);
    assert_null(((struct df_lowlevel *)fs)->ops.lseek);
    df_lowlevel_free(fs);
}

/* ---- what is left out ---- */

static void what_a_plugin_lacks_has_linux_defaults(void **state)
{
    struct statvfs out;
    struct stat st;
    char buf[10];
    int fd, number = 0;

    (void)state;
    lone_mount((struct fuse_lowlevel_ops){0}, 0, 0);
    fd = df_open(FILE_, O_RDWR, 0);
    assert_true(fd >= 0);
    fails(df_pread(fd, buf, 10, 0), ENOSYS);
    fails(df_pwrite(fd, buf, 10, 0), ENOSYS);
    assert_int_equal(df_fsync(fd), 0);
    assert_int_equal(df_access(FILE_, R_OK), 0);
    fails(df_fallocate(fd, 0, 0, 10), EOPNOTSUPP);
    fails(df_getxattr(FILE_, "user.x", buf, 10), EOPNOTSUPP);
    fails(df_setxattr(FILE_, "user.x", "y", 1, 0), EOPNOTSUPP);
    fails(df_listxattr(FILE_, buf, 10), EOPNOTSUPP);
    fails(df_removexattr(FILE_, "user.x"), EOPNOTSUPP);
    fails(df_ioctl(fd, _IOR('f', 9, int), &number), ENOTTY);
    fails(df_chmod(FILE_, 0600), ENOSYS);
    fails(df_unlink(FILE_), ENOSYS);
    fails(df_mkdir(POINT "/d", 0755), ENOSYS);
    fails(df_open(POINT "/g", O_CREAT | O_WRONLY, 0644), ENOSYS);
    fails(df_rename(FILE_, POINT "/g"), ENOSYS);
    fails(df_renameat2(AT_FDCWD, FILE_, AT_FDCWD, POINT "/g", RENAME_NOREPLACE), EINVAL);
    assert_int_equal(df_statvfs(FILE_, &out), 0);
    assert_int_equal(out.f_namemax, 255);
    assert_int_equal(out.f_bsize, 512);
    lone_size = 100;
    assert_int_equal(df_lseek(fd, 10, SEEK_DATA), 10);
    assert_int_equal(df_lseek(fd, 10, SEEK_HOLE), 100);
    fails(df_lseek(fd, 100, SEEK_DATA), ENXIO);
    assert_int_equal(df_stat(FILE_, &st), 0);
    assert_int_equal(st.st_blksize, 4096);
    assert_int_equal(df_close(fd), 0);
    lone_unmount();
}

/* ---- extended attributes ---- */

static const char *value = "value";
static bool unknown;

static void op_getxattr(fuse_req_t req, fuse_ino_t ino, const char *name, size_t size)
{
    (void)ino, (void)name;
    requests++;
    if (unknown)
        df_reply_err(req, ENOSYS);
    else if (size == 0)
        df_reply_xattr(req, strlen(value));
    else if (size < strlen(value))
        df_reply_err(req, ERANGE);
    else
        df_reply_buf(req, value, strlen(value));
}

static char list[16] = "user.a\0user.b";
static size_t list_size = 14;

static void op_listxattr(fuse_req_t req, fuse_ino_t ino, size_t size)
{
    (void)ino;
    if (size == 0)
        df_reply_xattr(req, list_size);
    else
        df_reply_buf(req, list, list_size);
}

static void extended_attributes_are_probed(void **state)
{
    char buf[32];

    (void)state;
    lone_mount((struct fuse_lowlevel_ops){.getxattr = op_getxattr, .listxattr = op_listxattr}, 0,
               0);
    assert_int_equal(df_getxattr(FILE_, "user.x", NULL, 0), 5);
    assert_int_equal(df_getxattr(FILE_, "user.x", buf, 32), 5);
    assert_memory_equal(buf, "value", 5);
    fails(df_getxattr(FILE_, "user.x", buf, 4), ERANGE);
    assert_int_equal(df_listxattr(FILE_, NULL, 0), 14);
    assert_int_equal(df_listxattr(FILE_, buf, 32), 14);
    list_size = 12; /* cut off: the caller would read past it */
    fails(df_listxattr(FILE_, buf, 32), EIO);
    list_size = (size_t)DF_PENDING; /* a negative number that the plugin took for a size */
    assert_int_equal(df_listxattr(FILE_, NULL, 0), XATTR_LIST_MAX);
    list_size = 14;
    requests = 0;
    unknown = true;
    fails(df_getxattr(FILE_, "user.x", buf, 32), EOPNOTSUPP);
    unknown = false;
    fails(df_getxattr(FILE_, "user.x", buf, 32), EOPNOTSUPP);
    assert_int_equal(requests, 1);
    lone_unmount();
}

/* ---- ioctl ---- */

static void op_ioctl(fuse_req_t req, fuse_ino_t ino, unsigned command, void *arg,
                     struct fuse_file_info *fi, unsigned flags, const void *in, size_t in_size,
                     size_t out_size)
{
    int number;

    (void)ino, (void)arg, (void)fi, (void)flags;
    if (command == _IO('f', 2)) {
        df_reply_ioctl_retry(req, NULL, 0, NULL, 0);
        return;
    }
    if (command == _IO('f', 4)) {
        df_reply_ioctl(req, DF_PENDING, NULL, 0);
        return;
    }
    if (command == FS_IOC_GETFLAGS || command == FS_IOC_SETFLAGS) {
        assert_int_equal(in_size, command == FS_IOC_SETFLAGS ? sizeof(int) : 0);
        assert_int_equal(out_size, command == FS_IOC_GETFLAGS ? sizeof(int) : 0);
        df_reply_ioctl(req, 0, &(int){FS_NODUMP_FL}, out_size);
        return;
    }
    if (command != _IOWR('f', 1, int)) {
        df_reply_err(req, ENOTTY);
        return;
    }
    assert_int_equal(in_size, sizeof(int));
    assert_int_equal(out_size, sizeof(int));
    memcpy(&number, in, sizeof(number));
    number *= 2;
    df_reply_ioctl(req, 7, &number, sizeof(number));
}

static void ioctl_sizes_are_those_of_the_command(void **state)
{
    int number = 21, fd;

    (void)state;
    lone_mount((struct fuse_lowlevel_ops){.ioctl = op_ioctl}, 0, 0);
    fd = df_open(FILE_, O_RDWR, 0);
    assert_int_equal(df_ioctl(fd, _IOWR('f', 1, int), &number), 7);
    assert_int_equal(number, 42);
    fails(df_ioctl(fd, _IO('f', 2), NULL), EIO);
    fails(df_ioctl(fd, _IO('f', 3), NULL), ENOTTY);
    fails(df_ioctl(fd, _IO('f', 4), NULL), ERANGE);
    df_close(fd);
    lone_unmount();
}

static void flags_of_files_are_ints(void **state)
{
    int flags[2] = {0, 5}, fd; /* lsattr has one, and what is its own behind it */

    (void)state;
    lone_mount((struct fuse_lowlevel_ops){.ioctl = op_ioctl}, 0, 0);
    fd = df_open(FILE_, O_RDWR, 0);
    assert_int_equal(df_ioctl(fd, FS_IOC_GETFLAGS, flags), 0);
    assert_int_equal(flags[0], FS_NODUMP_FL);
    assert_int_equal(flags[1], 5);
    assert_int_equal(df_ioctl(fd, FS_IOC_SETFLAGS, flags), 0);
    df_close(fd);
    lone_unmount();
}

static void by_user(uid_t uid, bool privileged)
{
    const struct df_identity identity = {.uid = uid, .privileged = privileged};

    assert_int_equal(df_identity_set(&identity), 0);
}

static void flags_are_for_the_owner_and_some_for_root(void **state)
{
    struct fsxattr extended = {.fsx_xflags = FS_XFLAG_APPEND};
    int same = FS_NODUMP_FL, immutable = FS_NODUMP_FL | FS_IMMUTABLE_FL, fd;

    (void)state;
    lone_mount((struct fuse_lowlevel_ops){.ioctl = op_ioctl}, 0, 0);
    fd = df_open(FILE_, O_RDONLY, 0);
    by_user(5, false);
    fails(df_ioctl(fd, FS_IOC_SETFLAGS, &same), EPERM);
    fails(df_ioctl(fd, FS_IOC_FSSETXATTR, &extended), EPERM);
    by_user(0, false); /* whose file it is */
    assert_int_equal(df_ioctl(fd, FS_IOC_SETFLAGS, &same), 0);
    fails(df_ioctl(fd, FS_IOC_SETFLAGS, &immutable), EPERM);
    fails(df_ioctl(fd, FS_IOC_FSSETXATTR, &extended), ENOTTY); /* of which it cannot be asked */
    by_user(5, true);
    assert_int_equal(df_ioctl(fd, FS_IOC_SETFLAGS, &immutable), 0);
    fails(df_ioctl(fd, FS_IOC_SETFLAGS, NULL), EFAULT);
    df_identity_set(NULL);
    df_close(fd);
    lone_unmount();
}

static void no_flags_are_set_on_a_read_only_mount(void **state)
{
    const struct df_mount_spec spec = {.point = POINT, .flags = DF_ATTACH_READONLY};
    struct df_fs *fs = lone_new((struct fuse_lowlevel_ops){.ioctl = op_ioctl});
    struct fuse_conn_info conn = {0};
    struct df_mount *mount;
    int flags = 0, fd;

    (void)state;
    assert_int_equal(df_lowlevel_init(fs, &conn), 0);
    assert_int_equal(df_mount_attach(&spec, fs, &mount), 0);
    fd = df_open(FILE_, O_RDONLY, 0);
    fails(df_ioctl(fd, FS_IOC_SETFLAGS, &flags), EROFS);
    assert_int_equal(df_ioctl(fd, FS_IOC_GETFLAGS, &flags), 0);
    df_close(fd);
    assert_int_equal(df_unmount(mount->id, 0), 0);
}

/* ---- who may ---- */

static void sticky_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    const struct stat st = {.st_ino = ino, .st_mode = S_IFDIR | 01777};

    (void)fi;
    df_reply_attr(req, &st, 0);
}

static void op_setxattr(fuse_req_t req, fuse_ino_t ino, const char *name, const char *value,
                        size_t size, int flags)
{
    (void)ino, (void)name, (void)value, (void)size, (void)flags;
    df_reply_err(req, 0);
}

static void op_setxattr_again(fuse_req_t req, fuse_ino_t ino, const char *name, const char *value,
                              size_t size, int flags)
{
    (void)ino, (void)name, (void)value, (void)size, (void)flags;
    df_reply_err(req, EAGAIN);
}

/* __vfs_setxattr_noperm() of the kernel. */
static void an_attribute_that_nobody_takes_is_not_supported(void **state)
{
    (void)state;
    lone_mount((struct fuse_lowlevel_ops){.setxattr = op_setxattr_again}, 0, 0);
    fails(df_setxattr(FILE_, "user.a", "", 0, 0), EOPNOTSUPP);
    lone_unmount();
}

/* fuse_change_attributes_common() of the kernel leaves it out of the inode. */
static void a_sticky_bit_is_the_plugins_without_default_permissions(void **state)
{
    (void)state;
    lone_mount((struct fuse_lowlevel_ops){.getattr = sticky_getattr, .setxattr = op_setxattr}, 0,
               0);
    by_user(5, false);
    assert_int_equal(df_setxattr(POINT, "user.a", "", 0, 0), 0);
    fails(df_setxattr(POINT, "trusted.a", "", 0, 0), EPERM);
    df_identity_set(NULL);
    lone_unmount();
}

/* ---- poll ---- */

static _Atomic int ready;
static _Atomic(struct fuse_pollhandle *) handle;

static void op_poll(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi,
                    struct fuse_pollhandle *ph)
{
    (void)ino;
    assert_true(fi->poll_events & POLLIN);
    if (ph)
        df_pollhandle_destroy(atomic_exchange(&handle, ph));
    df_reply_poll(req, (unsigned)ready);
}

static void *make_ready(void *arg)
{
    (void)arg;
    while (!handle)
        sched_yield();
    ready = POLLIN;
    df_pollhandle_notify(handle);
    return NULL;
}

static void poll_waits_for_a_notification(void **state)
{
    struct pollfd entry = {.events = POLLIN};
    pthread_t thread;

    (void)state;
    ready = 0;
    lone_mount((struct fuse_lowlevel_ops){.poll = op_poll}, 0, 0);
    entry.fd = df_open(FILE_, O_RDWR, 0);
    assert_int_equal(df_poll(&entry, 1, 0), 0);
    pthread_create(&thread, NULL, make_ready, NULL);
    assert_int_equal(df_poll(&entry, 1, 30000), 1);
    assert_int_equal(entry.revents, POLLIN);
    pthread_join(thread, NULL);
    df_pollhandle_destroy(atomic_exchange(&handle, NULL));
    df_close(entry.fd);
    lone_unmount();
}

/* All 32 bits of an answer are events, also those of what would be an error number. */
static void no_answer_of_poll_is_an_error(void **state)
{
    struct pollfd entry = {.events = POLLIN};

    (void)state;
    ready = -ENOSYS;
    lone_mount((struct fuse_lowlevel_ops){.poll = op_poll}, 0, 0);
    entry.fd = df_open(FILE_, O_RDWR, 0);
    assert_int_equal(df_poll(&entry, 1, 0), 1);
    assert_int_equal(entry.revents, POLLERR | POLLHUP);
    ready = 0; /* it is asked again: poll is not what it lacks */
    assert_int_equal(df_poll(&entry, 1, 0), 0);
    df_close(entry.fd);
    lone_unmount();
}

static void a_file_without_poll_is_ready(void **state)
{
    struct pollfd entry = {.events = POLLIN | POLLOUT};

    (void)state;
    lone_mount((struct fuse_lowlevel_ops){0}, 0, 0);
    entry.fd = df_open(FILE_, O_RDWR, 0);
    assert_int_equal(df_poll(&entry, 1, -1), 1);
    assert_int_equal(entry.revents, POLLIN | POLLOUT);
    df_close(entry.fd);
    lone_unmount();
}

/* ---- locks ---- */

static struct flock held;
static struct flock conflict = {.l_type = F_WRLCK, .l_start = 10, .l_len = 5, .l_pid = 99};
static uint64_t owner, released_owner;
static int flocked, flock_released;

static void op_getlk(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi, struct flock *lock)
{

    (void)ino;
    owner = fi->lock_owner;
    held = *lock;
    df_reply_lock(req, &conflict);
}

static void op_setlk(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi, struct flock *lock,
                     int sleep)
{
    (void)ino;
    owner = fi->lock_owner;
    held = *lock;
    df_reply_err(req, sleep ? 0 : EAGAIN);
}

static void op_flock(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi, int operation)
{
    (void)ino;
    owner = fi->lock_owner;
    flocked = operation;
    df_reply_err(req, 0);
}

static void op_release(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    (void)ino;
    flock_released = fi->flock_release;
    released_owner = fi->lock_owner;
    df_reply_err(req, 0);
}

static void locks_of_a_plugin_are_its_own(void **state)
{
    struct flock lock = {.l_type = F_WRLCK, .l_start = 3, .l_len = 4};
    uint64_t first;
    int fd;

    (void)state;
    lone_mount(
        (struct fuse_lowlevel_ops){
            .getlk = op_getlk, .setlk = op_setlk, .flock = op_flock, .release = op_release},
        0, 0);
    fd = df_open(FILE_, O_RDWR, 0);
    fails(df_fcntl(fd, F_SETLK, (long)&lock), EAGAIN);
    assert_int_equal(held.l_start, 3);
    assert_int_equal(held.l_len, 4);
    first = owner;
    assert_int_equal(df_fcntl(fd, F_SETLKW, (long)&lock), 0);
    assert_true(owner == first);
    assert_int_equal(df_fcntl(fd, F_GETLK, (long)&lock), 0);
    assert_int_equal(lock.l_start, 10);
    assert_int_equal(lock.l_len, 5);
    assert_int_equal(lock.l_pid, 99);
    assert_int_equal(held.l_pid, 0); /* a test is nobody's */
    lock.l_type = F_UNLCK;
    df_fcntl(fd, F_SETLK, (long)&lock);
    assert_int_equal(held.l_pid, 0);
    assert_int_equal(df_flock(fd, LOCK_EX), 0);
    assert_int_equal(flocked, LOCK_EX);
    first = owner;
    df_close(fd);
    assert_int_equal(flock_released, 1);
    assert_true(released_owner == first);
    lone_unmount();
}

/* convert_fuse_file_lock() in fs/fuse/file.c. */
static void a_conflict_that_makes_no_sense_is_eio(void **state)
{
    const struct flock nonsense[] = {
        {.l_type = 77},
        {.l_type = F_RDLCK, .l_start = -1},
        {.l_type = F_RDLCK, .l_start = 10, .l_len = -5},
        {.l_type = F_WRLCK, .l_start = INT64_MAX, .l_len = 2},
    };
    const struct flock sensible = conflict;
    int fd;

    (void)state;
    lone_mount((struct fuse_lowlevel_ops){.getlk = op_getlk, .setlk = op_setlk}, 0, 0);
    fd = df_open(FILE_, O_RDWR, 0);
    for (size_t i = 0; i < sizeof(nonsense) / sizeof(nonsense[0]); i++) {
        struct flock lock = {.l_type = F_WRLCK, .l_start = 3, .l_len = 4};

        conflict = nonsense[i];
        fails(df_fcntl(fd, F_GETLK, (long)&lock), EIO);
    }
    conflict = (struct flock){.l_type = F_WRLCK, .l_start = INT64_MAX, .l_len = 1};
    struct flock lock = {.l_type = F_WRLCK};
    assert_int_equal(df_fcntl(fd, F_GETLK, (long)&lock), 0);
    assert_int_equal(lock.l_start, INT64_MAX);
    conflict = sensible;
    df_close(fd);
    lone_unmount();
}

static void locks_are_ours_when_a_plugin_has_none(void **state)
{
    struct flock lock = {.l_type = F_WRLCK};
    int a, b;

    (void)state;
    lone_mount((struct fuse_lowlevel_ops){0}, 0, 0);
    a = df_open(FILE_, O_RDWR, 0);
    b = df_open(FILE_, O_RDWR, 0);
    assert_int_equal(df_fcntl(a, F_OFD_SETLK, (long)&lock), 0);
    fails(df_fcntl(b, F_OFD_SETLK, (long)&lock), EAGAIN);
    assert_int_equal(df_flock(a, LOCK_EX | LOCK_NB), 0);
    fails(df_flock(b, LOCK_EX | LOCK_NB), EWOULDBLOCK);
    df_close(a);
    assert_int_equal(df_flock(b, LOCK_EX | LOCK_NB), 0);
    df_close(b);
    lone_unmount();
}

/* ---- traits of open files ---- */

static void op_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    (void)ino;
    fi->nonseekable = 1;
    df_reply_open(req, fi);
}

static void a_file_may_be_without_positions(void **state)
{
    char byte;
    int fd;

    (void)state;
    lone_mount((struct fuse_lowlevel_ops){.open = op_open}, 0, 0);
    fd = df_open(FILE_, O_RDONLY, 0);
    fails(df_lseek(fd, 0, SEEK_SET), ESPIPE);
    fails(df_pread(fd, &byte, 1, 0), ESPIPE);
    df_close(fd);
    lone_unmount();
}

static void op_lseek(fuse_req_t req, fuse_ino_t ino, off_t off, int whence,
                     struct fuse_file_info *fi)
{
    assert_int_equal(ino, 2); /* nobody asks about holes in a directory */
    (void)whence, (void)fi;
    df_reply_lseek(req, off == 1 ? -1 : DF_PENDING);
}

static void no_position_is_below_zero(void **state)
{
    int fd;

    (void)state;
    lone_mount((struct fuse_lowlevel_ops){.lseek = op_lseek}, 0, 0);
    fd = df_open(FILE_, O_RDONLY, 0);
    fails(df_lseek(fd, 1, SEEK_DATA), EINVAL);
    fails(df_lseek(fd, 2, SEEK_DATA), EINVAL);
    df_close(fd);
    lone_unmount();
}

/* fuse_dir_operations of the kernel have neither: a handle of opendir is never shown to them. */
static void a_directory_is_asked_for_neither_holes_nor_readiness(void **state)
{
    struct pollfd entry = {.events = POLLIN | POLLPRI};
    int dir;

    (void)state;
    ready = POLLPRI;
    lone_mount((struct fuse_lowlevel_ops){.lseek = op_lseek, .poll = op_poll}, 0, 0);
    lone_size = 60;
    dir = entry.fd = df_open(POINT, O_RDONLY, 0);
    assert_int_equal(df_lseek(dir, 5, SEEK_DATA), 5);
    assert_int_equal(df_lseek(dir, 5, SEEK_HOLE), 60);
    fails(df_lseek(dir, 60, SEEK_DATA), ENXIO);
    fails(df_lseek(dir, -1, SEEK_HOLE), ENXIO);
    assert_int_equal(df_poll(&entry, 1, 0), 1);
    assert_int_equal(entry.revents, POLLIN);
    df_close(dir);
    lone_unmount();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_directory_is_asked_for_neither_holes_nor_readiness),
        cmocka_unit_test(init_offers_and_checks),
        cmocka_unit_test(a_plugin_that_was_not_initialised_is_not_destroyed),
        cmocka_unit_test(an_older_table_is_shorter),
        cmocka_unit_test(what_a_plugin_lacks_has_linux_defaults),
        cmocka_unit_test(extended_attributes_are_probed),
        cmocka_unit_test(ioctl_sizes_are_those_of_the_command),
        cmocka_unit_test(flags_of_files_are_ints),
        cmocka_unit_test(flags_are_for_the_owner_and_some_for_root),
        cmocka_unit_test(a_sticky_bit_is_the_plugins_without_default_permissions),
        cmocka_unit_test(an_attribute_that_nobody_takes_is_not_supported),
        cmocka_unit_test(no_flags_are_set_on_a_read_only_mount),
        cmocka_unit_test(poll_waits_for_a_notification),
        cmocka_unit_test(no_answer_of_poll_is_an_error),
        cmocka_unit_test(a_file_without_poll_is_ready),
        cmocka_unit_test(locks_of_a_plugin_are_its_own),
        cmocka_unit_test(a_conflict_that_makes_no_sense_is_eio),
        cmocka_unit_test(locks_are_ours_when_a_plugin_has_none),
        cmocka_unit_test(a_file_may_be_without_positions),
        cmocka_unit_test(no_position_is_below_zero),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
