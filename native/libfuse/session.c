/*
 * session.c - struct fuse_session: made from options, mounted, ended, asked for. Its loops are in
 * loop.c and own_loop.c.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host/turns.h"
#include "libfuse/abi.h"
#include "lowlevel/lowlevel.h"

#include "libfuse/cmdline_words.h"
#include "libfuse/turn.h"

/* ---- making one -------------------------------------------------------------------------- */

/* Says which arguments nobody took, in one line. */
static void refuse_rest(const struct fuse_args *args)
{
    char *list = NULL;
    size_t size;
    FILE *text = open_memstream(&list, &size);
    if (!text) {
        df_abi_no_memory();
        return;
    }
    for (int i = 1; i < args->argc; i++)
        fprintf(text, "%s%s", i > 1 ? " " : "", args->argv[i]);
    fclose(text);
    fuse_log(FUSE_LOG_ERR, "fuse: unknown option(s): `%s'\n", list);
    free(list);
}

struct fuse_session *df_abi_session_new(struct fuse_args *args, struct df_plugin *plugin)
{
    if (args->argc == 0) {
        fuse_log(FUSE_LOG_ERR, "fuse: the argument vector is empty: it must have a program name\n");
        return NULL;
    }
    struct fuse_session *se = calloc(1, sizeof(*se));
    if (!se) {
        df_abi_no_memory();
        return NULL;
    }
    pthread_rwlock_init(&se->fs_lock, NULL);
    se->plugin = plugin;
    se->mount.owner_uid = getuid();
    se->mount.owner_gid = getgid();
    if (df_abi_parse_mount_opts(args, se) == 0) {
        if (args->argc == 1)
            return se;
        refuse_rest(args);
    }
    df_abi_session_free(se);
    return NULL;
}

static pthread_mutex_t kept_lock = PTHREAD_MUTEX_INITIALIZER;
static struct fuse_session *kept; /* under kept_lock: sessions that have ended; for leak checkers */

static void keep(struct fuse_session *se)
{
    pthread_mutex_lock(&kept_lock);
    se->next_kept = kept;
    kept = se;
    pthread_mutex_unlock(&kept_lock);
}

bool df_abi_session_free(struct fuse_session *se)
{
    bool must_keep = se->plugin && df_plugin_lingers(se->plugin);

    df_turns_free(se->turns);
    free(se->words.fsname);
    free(se->words.subtype);
    free(se->mountpoint);
    free(se->later);
    se->turns = NULL;
    se->mount.turns = NULL;
    se->mounted = false;
    se->later = NULL;
    se->words = (struct df_mount_words){0};
    se->mountpoint = NULL;
    if (must_keep)
        keep(se);
    else
        free(se);
    return !must_keep;
}

struct df_fs *df_abi_session_enter(struct fuse_session *se)
{
    pthread_rwlock_rdlock(&se->fs_lock);
    struct df_fs *fs = se->fs;
    if (!fs)
        pthread_rwlock_unlock(&se->fs_lock);
    return fs;
}

void df_abi_session_leave(struct fuse_session *se)
{
    pthread_rwlock_unlock(&se->fs_lock);
}

/* Of a program that has ended itself in an operation the file system stays as it is: locks may be
 * held for ever, the lane's and the program's, which its destroy would wait for. */
struct df_fs *df_abi_session_take(struct fuse_session *se)
{
    pthread_rwlock_wrlock(&se->fs_lock);
    struct df_fs *fs = se->plugin && df_plugin_is_over(se->plugin) ? NULL : se->fs;
    se->fs = NULL;
    pthread_rwlock_unlock(&se->fs_lock);
    return fs;
}

struct fuse_session *df_abi_lowlevel_session(struct fuse_args *args,
                                             const struct fuse_lowlevel_ops *op, size_t op_size,
                                             void *userdata, struct df_plugin *plugin)
{
    struct fuse_session *se = df_abi_session_new(args, plugin);
    if (!se)
        return NULL;
    se->fs = df_lowlevel_new(op, op_size, userdata, &se->mount, plugin);
    if (!se->fs) {
        df_abi_no_memory();
        df_abi_session_free(se);
        return NULL;
    }
    return se;
}

void df3_session_turn(struct fuse_session *se, bool (*is_my_turn)(void *turn), void *turn)
{
    se->mount.is_my_turn = is_my_turn;
    se->mount.turn = turn;
}

void fuse_session_destroy(struct fuse_session *se)
{
    df_abi_own_loop_end(se);
    struct df_fs *fs = df_abi_session_take(se);
    if (fs)
        df_lowlevel_free(fs); /* calls the file system's destroy */
    df_abi_session_free(se);
}

/* ---- mounting ---------------------------------------------------------------------------- */

/* The mountpoint is remembered; the mount is attached when the loop begins, for before that nobody
 * would answer. */
int fuse_session_mount(struct fuse_session *se, const char *mountpoint)
{
    if (!se->plugin) {
        fuse_log(FUSE_LOG_ERR,
                 "fuse: this program is linked to directfuse's libdf3.so.3, which mounts inside a "
                 "process that loads it: use directfuse.mount(), or link it to libfuse3 to run it "
                 "by itself\n");
        return -1;
    }
    if (!mountpoint) {
        fuse_log(FUSE_LOG_ERR, "fuse: no mountpoint specified\n");
        return -1;
    }
    if (strncmp(mountpoint, "/dev/fd/", strlen("/dev/fd/")) == 0) {
        fuse_log(FUSE_LOG_ERR,
                 "fuse: %s stands for a mount made by somebody else, which nothing inside this "
                 "process could answer: name a directory\n",
                 mountpoint);
        return -1;
    }
    char *full = df_cmdline_absolute(mountpoint);
    if (!full) {
        fuse_log(FUSE_LOG_ERR, "fuse: bad mount point `%s': %s\n", mountpoint, strerror(errno));
        return -1;
    }
    free(se->mountpoint);
    se->mountpoint = full;
    se->mount.mountpoint = full;
    se->mounted = true;
    return 0;
}

/* Also called by a thread that wants to end the loop of another. */
void fuse_session_unmount(struct fuse_session *se)
{
    if (!se->mounted)
        return;
    se->mounted = false;
    df_plugin_exit(se->plugin);
}

/* ---- ending ------------------------------------------------------------------------------ */

/* From any thread, from inside an operation, and from a signal handler. */
void fuse_session_exit(struct fuse_session *se)
{
    atomic_store(&se->exited, true);
    if (se->plugin)
        df_plugin_exit(se->plugin);
}

int fuse_session_exited(struct fuse_session *se)
{
    return atomic_load(&se->exited);
}

void fuse_session_reset(struct fuse_session *se)
{
    atomic_store(&se->exited, false);
    if (se->plugin)
        df_plugin_stay(se->plugin);
}

/* ---- channels of the program's own ----------------------------------------------------------- */

int df_abi_custom_io(const struct fuse_custom_io *io, int fd)
{
    if (fd < 0)
        return -EBADF;
    if (!io || !io->read || !io->writev)
        return -EINVAL;
    fuse_log(FUSE_LOG_ERR, "fuse: requests do not come through a descriptor here, so a transport "
                           "of the program's own cannot be used\n");
    return -ENOSYS;
}

int fuse_open_channel(const char *mountpoint, const char *options)
{
    (void)options;
    fuse_log(FUSE_LOG_ERR, "fuse: %s: a channel to the kernel cannot be opened here\n", mountpoint);
    errno = ENOSYS;
    return -1;
}
