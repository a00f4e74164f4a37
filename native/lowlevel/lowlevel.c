/*
 * lowlevel.c - the node lane's life: made from a plugin's operations, INIT, DESTROY; its table of
 * ops.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/open_traits.h"
#include "lowlevel/private.h"

#define PROTO_MINOR      38 /* the protocol we speak as the kernel's side: Linux 6.2 */

#define SIZE_MAX_DEFAULT (1024u * 1024u) /* bytes of one READ or WRITE: the kernel's 256 pages */
#define WRITE_MIN        4096u           /* the kernel never asks for less */
#define READAHEAD        (128u * 1024u)
#define BACKGROUND       12u /* the kernel's default; nothing is sent in the background here */

/* What is honoured, or harmless: splice(2) and asynchronous reads are about the device, which there
 * is none of; nobody exports this file system; the page cache that is not there is never stale. */
#define CAPABLE                                                                                    \
    (FUSE_CAP_ASYNC_READ | FUSE_CAP_POSIX_LOCKS | FUSE_CAP_ATOMIC_O_TRUNC |                        \
     FUSE_CAP_EXPORT_SUPPORT | FUSE_CAP_DONT_MASK | FUSE_CAP_SPLICE_WRITE | FUSE_CAP_SPLICE_MOVE | \
     FUSE_CAP_SPLICE_READ | FUSE_CAP_FLOCK_LOCKS | FUSE_CAP_IOCTL_DIR | FUSE_CAP_AUTO_INVAL_DATA | \
     FUSE_CAP_READDIRPLUS | FUSE_CAP_READDIRPLUS_AUTO | FUSE_CAP_ASYNC_DIO |                       \
     FUSE_CAP_NO_OPEN_SUPPORT | FUSE_CAP_PARALLEL_DIROPS | FUSE_CAP_HANDLE_KILLPRIV |              \
     FUSE_CAP_CACHE_SYMLINKS | FUSE_CAP_NO_OPENDIR_SUPPORT | FUSE_CAP_EXPLICIT_INVAL_DATA |        \
     FUSE_CAP_POSIX_ACL | EXPIRE_ONLY | DF_CAP_DIRECT_IO_ALLOW_MMAP)

#ifdef FUSE_CAP_EXPIRE_ONLY
#define EXPIRE_ONLY FUSE_CAP_EXPIRE_ONLY
#else
#define EXPIRE_ONLY 0
#endif

/* ---- the table ----------------------------------------------------------------------------- */

static const struct df_ops table = {
    .version = DF_OPS_VERSION,
    .size = sizeof(struct df_ops),
    .getattr = df_lowlevel_getattr,
    .setattr = df_lowlevel_setattr,
    .access = df_lowlevel_access,
    .readlink = df_lowlevel_readlink,
    .getxattr = df_lowlevel_getxattr,
    .listxattr = df_lowlevel_listxattr,
    .setxattr = df_lowlevel_setxattr,
    .removexattr = df_lowlevel_removexattr,
    .statfs = df_lowlevel_statfs,
    .mknod = df_lowlevel_mknod,
    .mkdir = df_lowlevel_mkdir,
    .symlink = df_lowlevel_symlink,
    .unlink = df_lowlevel_unlink,
    .rmdir = df_lowlevel_rmdir,
    .rename = df_lowlevel_rename,
    .link = df_lowlevel_link,
    .open = df_lowlevel_open,
    .flush = df_lowlevel_flush,
    .release = df_lowlevel_release,
    .read = df_lowlevel_read,
    .write = df_lowlevel_write,
    .lseek = df_lowlevel_lseek,
    .fsync = df_lowlevel_fsync,
    .fallocate = df_lowlevel_fallocate,
    .copy_file_range = df_lowlevel_copy_file_range,
    .readdir = df_lowlevel_readdir,
    .ioctl = df_lowlevel_ioctl,
    .poll = df_lowlevel_poll,
    .lock = df_lowlevel_lock,
    .flock = df_lowlevel_flock,
    .destroy = df_lowlevel_free,
    .statx = df_lowlevel_statx,
    .tmpfile = df_lowlevel_tmpfile,
    .path = df_lowlevel_path,
    .lend = df_lowlevel_lend,
    .known = df_lowlevel_known,
};

/* A request without an operation would be answered with ENOSYS, once. */
static uint32_t lacking(const struct fuse_lowlevel_ops *ops, const struct df_lowlevel_later *later)
{
    return (later->statx ? 0 : DF_LACKS_STATX) | (later->tmpfile ? 0 : DF_LACKS_TMPFILE) |
           (ops->create ? 0 : DF_LACKS_CREATE) | (ops->flush ? 0 : DF_LACKS_FLUSH) |
           (ops->fsync ? 0 : DF_LACKS_FSYNC) | (ops->fsyncdir ? 0 : DF_LACKS_FSYNCDIR) |
           (ops->access ? 0 : DF_LACKS_ACCESS) | (ops->lseek ? 0 : DF_LACKS_LSEEK) |
           (ops->poll ? 0 : DF_LACKS_POLL) | (ops->getxattr ? 0 : DF_LACKS_GETXATTR) |
           (ops->setxattr ? 0 : DF_LACKS_SETXATTR) | (ops->listxattr ? 0 : DF_LACKS_LISTXATTR) |
           (ops->removexattr ? 0 : DF_LACKS_REMOVEXATTR) |
           (ops->fallocate ? 0 : DF_LACKS_FALLOCATE) | (ops->copy_file_range ? 0 : DF_LACKS_COPY);
}

/* ---- new ----------------------------------------------------------------------------------- */

static void take_ops(struct df_lowlevel *lane, const struct fuse_lowlevel_ops *ops, size_t op_size)
{
    struct df_lowlevel_ops all = {.later.statx = NULL};

    memcpy(&all, ops, op_size < sizeof(all) ? op_size : sizeof(all));
    lane->ops = all.ops;
    lane->later = all.later;
}

struct df_fs *df_lowlevel_new(const struct fuse_lowlevel_ops *ops, size_t op_size, void *userdata,
                              const struct df_session *session, struct df_plugin *plugin)
{
    struct df_lowlevel *lane;

    if (posix_memalign((void **)&lane, _Alignof(struct df_lowlevel), sizeof(*lane)) != 0)
        return NULL;
    memset(lane, 0, sizeof(*lane));
    take_ops(lane, ops, op_size);
    lane->userdata = userdata;
    lane->session = session;
    lane->plugin = plugin;
    lane->max_read = lane->max_write = SIZE_MAX_DEFAULT;
    atomic_init(&lane->lacks, lacking(&lane->ops, &lane->later));
    if (df_nodes_init(&lane->nodes, &df_lowlevel_source) < 0) {
        free(lane);
        return NULL;
    }
    df_serial_init(&lane->serial_lock);
    df_ops_complete(&lane->table, &table);
    lane->fs.ops = &lane->table;
    return &lane->fs;
}

/* ---- INIT ---------------------------------------------------------------------------------- */

/* libfuse's defaults. FUSE_CAP_HANDLE_KILLPRIV is not among them, though the headers of some
 * versions say so: those libraries did not tell the kernel, later ones leave it out. */
static void offer(const struct df_lowlevel *lane, struct fuse_conn_info *conn)
{
    const struct fuse_lowlevel_ops *ops = &lane->ops;

    conn->proto_major = 7;
    conn->proto_minor = PROTO_MINOR;
    if (conn->max_write == 0)
        conn->max_write = SIZE_MAX_DEFAULT;
    if (conn->max_readahead == 0)
        conn->max_readahead = READAHEAD;
    if (conn->max_background == 0)
        conn->max_background = BACKGROUND;
    if (conn->congestion_threshold == 0)
        conn->congestion_threshold = conn->max_background * 3 / 4;
    conn->time_gran = 1;
    conn->capable = CAPABLE;
    if (atomic_load(&df_call_keeps_writes))
        conn->capable |= FUSE_CAP_WRITEBACK_CACHE;
    conn->want = FUSE_CAP_ASYNC_READ | FUSE_CAP_AUTO_INVAL_DATA | FUSE_CAP_ASYNC_DIO |
                 FUSE_CAP_IOCTL_DIR | FUSE_CAP_ATOMIC_O_TRUNC | FUSE_CAP_PARALLEL_DIROPS |
                 (ops->write_buf ? FUSE_CAP_SPLICE_READ : 0) |
                 (ops->getlk && ops->setlk ? FUSE_CAP_POSIX_LOCKS : 0) |
                 (ops->flock ? FUSE_CAP_FLOCK_LOCKS : 0) |
                 (ops->readdirplus ? FUSE_CAP_READDIRPLUS : 0) |
                 (ops->readdirplus && ops->readdir ? FUSE_CAP_READDIRPLUS_AUTO : 0);
}

static void say(const struct df_lowlevel *lane, const char *format, unsigned a, unsigned b)
{
    char line[200];

    snprintf(line, sizeof(line), format, a, b);
    if (lane->plugin)
        df_plugin_log(lane->plugin, line);
}

static int check(const struct df_lowlevel *lane, const struct fuse_conn_info *conn,
                 unsigned max_read)
{
    unsigned refused = conn->want & ~conn->capable;

    if (refused) {
        say(lane, "fuse: error: the file system wants capabilities 0x%x, which are not offered",
            refused, 0);
        return -EPROTO;
    }
    if (conn->max_read != max_read) {
        say(lane, "fuse: error: init() and the mount options ask for different max_read (%u, %u)",
            conn->max_read, max_read);
        return -EPROTO;
    }
    return 0;
}

static void obey(struct df_lowlevel *lane, const struct fuse_conn_info *conn)
{
    const struct df_session *session = lane->session;
    unsigned want = conn->want;

    lane->want = want;
    lane->dont_mask = want & FUSE_CAP_DONT_MASK;
    lane->atomic_truncate = want & FUSE_CAP_ATOMIC_O_TRUNC;
    lane->handles_killpriv = want & FUSE_CAP_HANDLE_KILLPRIV;
    lane->plus = want & FUSE_CAP_READDIRPLUS;
    lane->plus_auto = want & FUSE_CAP_READDIRPLUS_AUTO;
    lane->posix_locks = want & FUSE_CAP_POSIX_LOCKS;
    lane->flock_locks = want & FUSE_CAP_FLOCK_LOCKS;
    lane->ioctl_dir = want & FUSE_CAP_IOCTL_DIR;
    lane->nodes.parallel = want & FUSE_CAP_PARALLEL_DIROPS;
    lane->fs.writes_back = want & FUSE_CAP_WRITEBACK_CACHE;
    lane->fs.acls = want & FUSE_CAP_POSIX_ACL;
    lane->fs.polls = lane->ops.poll != NULL;
    lane->nodes.keep_links = want & FUSE_CAP_CACHE_SYMLINKS;
    lane->max_write = conn->max_write < SIZE_MAX_DEFAULT ? conn->max_write : SIZE_MAX_DEFAULT;
    if (lane->max_write < WRITE_MIN)
        lane->max_write = WRITE_MIN;
    if (conn->max_read > 0 && conn->max_read < SIZE_MAX_DEFAULT)
        lane->max_read = conn->max_read < WRITE_MIN ? WRITE_MIN : conn->max_read;
    lane->default_permissions = lane->fs.acls || (session && session->default_permissions);
    if (lane->default_permissions)
        lane->nodes.source = &df_lowlevel_guarded_source;
    if (!session)
        return;
    lane->nodes.read_only = session->readonly;
    lane->serial = session->serial;
    lane->serial_lock.turns = session->turns;
    lane->guarded = !session->allow_other;
}

int df_lowlevel_init(struct df_fs *fs, struct fuse_conn_info *conn)
{
    struct df_lowlevel *lane = df_lowlevel_of(fs);
    unsigned max_read = conn->max_read;
    int result;

    offer(lane, conn);
    lane->initialised = true;
    if (lane->ops.init)
        lane->ops.init(lane->userdata, conn);
    result = check(lane, conn, max_read);
    if (result == 0)
        obey(lane, conn);
    return result;
}

/* ---- DESTROY ------------------------------------------------------------------------------- */

void df_lowlevel_free(struct df_fs *fs)
{
    struct df_lowlevel *lane = df_lowlevel_of(fs);

    if (lane->initialised) {
        df_nodes_forget_all(&lane->nodes);
        if (lane->ops.destroy)
            lane->ops.destroy(lane->userdata);
    }
    df_nodes_destroy(&lane->nodes);
    df_serial_destroy(&lane->serial_lock);
    free(lane);
}
