/*
 * highlevel.c - life of a file system of the path lane: made for a struct fuse, initialised as
 * FUSE_INIT does, served through its table of ops, destroyed. And what fuse_get_context() shows.
 */
#include "highlevel/highlevel.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "highlevel/frame.h"
#include "host/open_traits.h"

/* What this lane can do; writeback caching, where somebody does it. Left out: POSIX ACLs, which no
 * program is known to want of this API (docs/decisions/160); cached symlinks and explicit
 * invalidation of data, which only a kernel does; who asks for them without looking is told so. */
#define OFFERED                                                                                    \
    (FUSE_CAP_ASYNC_READ | FUSE_CAP_POSIX_LOCKS | FUSE_CAP_ATOMIC_O_TRUNC |                        \
     FUSE_CAP_EXPORT_SUPPORT | FUSE_CAP_DONT_MASK | FUSE_CAP_SPLICE_WRITE | FUSE_CAP_SPLICE_MOVE | \
     FUSE_CAP_SPLICE_READ | FUSE_CAP_FLOCK_LOCKS | FUSE_CAP_IOCTL_DIR | FUSE_CAP_AUTO_INVAL_DATA | \
     FUSE_CAP_READDIRPLUS | FUSE_CAP_READDIRPLUS_AUTO | FUSE_CAP_ASYNC_DIO |                       \
     FUSE_CAP_NO_OPEN_SUPPORT | FUSE_CAP_PARALLEL_DIROPS | FUSE_CAP_HANDLE_KILLPRIV |              \
     FUSE_CAP_NO_OPENDIR_SUPPORT | DF_CAP_DIRECT_IO_ALLOW_MMAP)

/* What libfuse wants unless ops->init says otherwise. */
#define WANTED                                                                                     \
    (FUSE_CAP_ASYNC_READ | FUSE_CAP_AUTO_INVAL_DATA | FUSE_CAP_ASYNC_DIO | FUSE_CAP_IOCTL_DIR |    \
     FUSE_CAP_ATOMIC_O_TRUNC | FUSE_CAP_READDIRPLUS | FUSE_CAP_READDIRPLUS_AUTO |                  \
     FUSE_CAP_EXPORT_SUPPORT)

#define MAX_WRITE_LEAST 4096 /* of the kernel */

static const struct df_ops highlevel_ops = {
    .version = DF_OPS_VERSION,
    .size = sizeof(struct df_ops),
    .getattr = df_highlevel_getattr,
    .setattr = df_highlevel_setattr,
    .access = df_highlevel_access,
    .readlink = df_highlevel_readlink,
    .getxattr = df_highlevel_getxattr,
    .listxattr = df_highlevel_listxattr,
    .setxattr = df_highlevel_setxattr,
    .removexattr = df_highlevel_removexattr,
    .statfs = df_highlevel_statfs,
    .mknod = df_highlevel_mknod,
    .mkdir = df_highlevel_mkdir,
    .symlink = df_highlevel_symlink,
    .unlink = df_highlevel_unlink,
    .rmdir = df_highlevel_rmdir,
    .rename = df_highlevel_rename,
    .link = df_highlevel_link,
    .open = df_highlevel_open,
    .flush = df_highlevel_flush,
    .release = df_highlevel_release,
    .read = df_highlevel_read,
    .write = df_highlevel_write,
    .lseek = df_highlevel_lseek,
    .fsync = df_highlevel_fsync,
    .fallocate = df_highlevel_fallocate,
    .copy_file_range = df_highlevel_copy_file_range,
    .readdir = df_highlevel_readdir,
    .ioctl = df_highlevel_ioctl,
    .poll = df_highlevel_poll,
    .lock = df_highlevel_lock,
    .flock = df_highlevel_flock,
    .destroy = df_highlevel_free,
    .statx = df_highlevel_statx,
    .tmpfile = df_highlevel_tmpfile,
    .path = df_highlevel_path,
};

static struct df_ops completed; /* highlevel_ops with the core's defaults in the gaps */
static pthread_once_t complete_once = PTHREAD_ONCE_INIT;

static void complete(void)
{
    df_ops_complete(&completed, &highlevel_ops);
}

static void default_config(struct fuse_config *config)
{
    config->entry_timeout = 1.0;
    config->attr_timeout = 1.0;
    config->negative_timeout = 0.0;
    config->intr_signal = SIGUSR1;
}

struct df_fs *df_highlevel_new(const struct fuse_operations *ops, size_t op_size, void *user_data,
                               const struct df_session *session, struct df_plugin *plugin)
{
    struct df_highlevel *hl = aligned_alloc(_Alignof(struct df_highlevel), sizeof(*hl));

    if (!hl)
        return NULL;
    memset(hl, 0, sizeof(*hl));
    if (df_entry_cache_init(&hl->cache) != 0) {
        free(hl);
        return NULL;
    }
    pthread_once(&complete_once, complete);
    hl->fs.ops = &completed;
    memcpy(&hl->ops, ops, op_size < sizeof(hl->ops) ? op_size : sizeof(hl->ops));
    default_config(&hl->config);
    hl->private_data = user_data;
    hl->session = session;
    hl->plugin = plugin;
    df_serial_init(&hl->serial_lock);
    df_open_paths_init(&hl->open_paths, &hl->cache.seed);
    return &hl->fs;
}

struct fuse_config *df_highlevel_config(struct df_fs *fs)
{
    return &df_highlevel_of(fs)->config;
}

void df_highlevel_set_statx(struct df_fs *fs, df_highlevel_statx_op *statx)
{
    df_highlevel_of(fs)->statx = statx;
}

void df_highlevel_set_masks(struct df_fs *fs, unsigned fmask, unsigned dmask)
{
    df_highlevel_of(fs)->fmask = fmask;
    df_highlevel_of(fs)->dmask = dmask;
}

void df_highlevel_need_paths(struct df_fs *fs)
{
    df_highlevel_of(fs)->needs_paths = true;
}

void df_highlevel_bear_null(struct df_fs *fs)
{
    df_highlevel_of(fs)->bears_null = true;
}

/* A time-out in seconds as nanoseconds; what is not a positive number is 0. */
static uint64_t nanoseconds(double seconds)
{
    if (!(seconds > 0))
        return 0;
    if (seconds > 1e9) /* thirty years: never, and out of the way of overflow */
        return DF_ENTRY_FOREVER;
    return (uint64_t)(seconds * 1e9);
}

static uint32_t request_limit(unsigned a, unsigned b)
{
    unsigned limit = DF_REQUEST_MAX;

    if (a && a < limit)
        limit = a;
    if (b && b < limit)
        limit = b;
    return limit;
}

/* What the plugin exports beside its operations. Its getattr_at answers for its own getattr, not
 * for one of a module or of a translator above. */
static void take_extras(struct df_highlevel *hl)
{
    struct df_plugin *plugin = hl->plugin;

    if (!plugin)
        return;
    hl->checks_names = df_plugin_checks_names(plugin);
    /* What the lane would do before a copy is not to be done before one of nothing. */
    hl->fs.shortens = df_plugin_shortens(plugin) && hl->want & FUSE_CAP_HANDLE_KILLPRIV;
    if (df_plugin_of_code(*(void **)&hl->ops.getattr) == plugin)
        *(void **)&hl->getattr_at = df_plugin_getattr_at(plugin);
    hl->asks_at_once = hl->getattr_at && hl->config.use_ino && hl->attr_ns == 0 &&
                       hl->negative_ns == 0 && !df_highlevel_takes_turns(hl);
}

/* Takes over what ops->init left in connection and configuration. */
static void settle(struct df_highlevel *hl, const struct fuse_conn_info *conn)
{
    const struct fuse_config *config = &hl->config;
    const struct df_session *session = hl->session;

    hl->entry_ns = nanoseconds(config->entry_timeout);
    hl->attr_ns = nanoseconds(config->attr_timeout);
    hl->negative_ns = nanoseconds(config->negative_timeout);
    hl->caches = hl->entry_ns || hl->attr_ns || hl->negative_ns;
    hl->overrides = config->set_mode || config->set_uid || config->set_gid;
    hl->open_paths.gives_numbers = !config->use_ino;
    hl->want = conn->want;
    hl->fs.writes_back = conn->want & FUSE_CAP_WRITEBACK_CACHE;
    hl->fs.polls = hl->ops.poll != NULL;
    hl->max_read = request_limit(conn->max_read, session->max_read);
    hl->max_write = request_limit(conn->max_write, session->max_write);
    if (hl->max_write < MAX_WRITE_LEAST)
        hl->max_write = MAX_WRITE_LEAST;
    bool plus = conn->want & FUSE_CAP_READDIRPLUS;
    hl->plus = plus && (hl->attr_ns || !(conn->want & FUSE_CAP_READDIRPLUS_AUTO));
    hl->plus_for_numbers = plus && !hl->plus && config->use_ino;
    hl->serial = session->serial;
    hl->serial_lock.turns = session->turns;
    hl->check = session->default_permissions;
    hl->everybody = session->allow_other;
    hl->root_too = session->allow_root;
}

/* A frame for init and destroy, which no call of an application has caused. */
static void enter_alone(struct df_frame *frame, struct df_highlevel *hl)
{
    memset(frame, 0, sizeof(*frame));
    frame->context.fuse = hl->fuse;
    frame->context.private_data = hl->private_data;
    frame->hl = hl;
    df_on_stack_push(&df_ops_on_stack, &frame->stacked);
}

/* libfuse gives up likewise. */
static int check_wanted(const struct df_highlevel *hl, const struct fuse_conn_info *conn)
{
    unsigned extra = conn->want & ~conn->capable;
    char line[128];

    if (!extra)
        return 0;
    snprintf(line, sizeof(line),
             "the file system wants capabilities (0x%x) that were not offered to it", extra);
    if (hl->plugin)
        df_plugin_log(hl->plugin, line);
    return -EPROTO;
}

int df_highlevel_init(struct df_fs *fs, struct fuse *fuse, struct fuse_conn_info *conn)
{
    struct df_highlevel *hl = df_highlevel_of(fs);
    struct df_frame frame;

    conn->proto_major = 7;
    conn->proto_minor = 38;
    conn->capable = OFFERED;
    if (atomic_load(&df_call_keeps_writes))
        conn->capable |= FUSE_CAP_WRITEBACK_CACHE;
    conn->want = WANTED;
    conn->time_gran = 1;
    if (hl->ops.write_buf)
        conn->want |= FUSE_CAP_SPLICE_READ;
    if (hl->ops.lock)
        conn->want |= FUSE_CAP_POSIX_LOCKS;
    if (hl->ops.flock)
        conn->want |= FUSE_CAP_FLOCK_LOCKS;
    hl->fuse = fuse;
    hl->initialised = true;
    if (hl->ops.init) {
        enter_alone(&frame, hl);
        hl->private_data = hl->ops.init(conn, &hl->config);
        df_on_stack_pop(&df_ops_on_stack, &frame.stacked);
    }
    hl->bears_null |= hl->config.nullpath_ok != 0;
    settle(hl, conn);
    take_extras(hl);
    hl->remembers = hl->caches || df_highlevel_takes_turns(hl);
    return check_wanted(hl, conn);
}

void df_highlevel_free(struct df_fs *fs)
{
    struct df_highlevel *hl = df_highlevel_of(fs);
    struct df_frame frame;

    if (hl->initialised && hl->ops.destroy) {
        enter_alone(&frame, hl);
        hl->ops.destroy(hl->private_data);
        df_on_stack_pop(&df_ops_on_stack, &frame.stacked);
    }
    df_open_paths_forget_all(&hl->open_paths);
    df_open_paths_destroy(&hl->open_paths);
    df_entry_cache_destroy(&hl->cache);
    df_serial_destroy(&hl->serial_lock);
    free(hl);
}

struct fuse_context *df_highlevel_context(void)
{
    struct df_frame *frame = df_frame_of(df_ops_on_stack);

    return frame ? &frame->context : NULL;
}

const struct df_caller *df_highlevel_caller(void)
{
    const struct df_frame *frame = df_frame_of(df_ops_on_stack);

    return frame ? frame->caller : NULL;
}

static void note_signal(void *noted)
{
    atomic_store_explicit((_Atomic bool *)noted, true, memory_order_relaxed);
}

/* A signal that came before is told at once. */
bool df_highlevel_interrupted(void)
{
    _Atomic bool noted = false;

    if (!df_highlevel_caller())
        return false;
    df_call_hear_signals(note_signal, &noted);
    df_call_hear_signals(NULL, NULL);
    return atomic_load_explicit(&noted, memory_order_relaxed);
}

int df_highlevel_invalidate(struct df_fs *fs, const char *path)
{
    struct df_highlevel *hl = df_highlevel_of(fs);
    size_t len = strlen(path);

    if (len == 0)
        return -ENOENT;
    df_call_tell_change();
    return df_entry_cache_forget(&hl->cache, df_entry_cache_key(&hl->cache, path, len)) ? 0
                                                                                        : -ENOENT;
}
