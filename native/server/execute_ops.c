/*
 * execute_ops.c - each op of a message as the call of the same op of struct df_ops.
 */
#include <errno.h>
#include <linux/ioctl.h>
#include <string.h>

#include "core/caller.h"
#include "core/lock.h"
#include "server/server_private.h"

#define out_of  df_execute_out
#define CALL    DF_EXECUTE_CALL
#define at_most df_execute_at_most

/* Those of the other execute_*.c files. */
#define do_read       df_execute_read
#define do_write      df_execute_write
#define do_read_batch df_execute_read_batch
#define do_readdir    df_execute_readdir
#define do_advise     df_execute_advise
#define do_lock       df_execute_lock
#define do_flock      df_execute_flock
#define do_adopt      df_execute_adopt
#define do_keep       df_execute_keep_files
#define do_fork       df_execute_fork
#define do_unfork     df_execute_unfork
#define do_watch      df_execute_watch
#define do_epoll      df_execute_epoll

/* ---- by name --------------------------------------------------------------------------------- */

/* A plugin that has not allowed it once is not asked for that alone. */
static void learn_absences(struct df_work *w)
{
    _Atomic uint8_t *known = &w->server->mounts[w->index].absences;
    uint8_t now = w->call.valid_ns == 0 ? DF_ABSENCES_NEVER : DF_ABSENCES_KEPT;

    if (atomic_load_explicit(known, memory_order_relaxed) != now)
        atomic_store_explicit(known, now, memory_order_relaxed);
}

/* Symlinks are not kept: reading one changes what stat shows, and is no reason to forget all. */
void df_execute_keep(struct df_work *w, struct df_cacher_ticket ticket,
                     const struct df_trip_where *question, int64_t result, const struct stat *st)
{
    struct df_segment *segment = w->server->own.segment;
    struct df_cacher *cacher = &w->server->cacher;
    struct df_cache_key key;

    if (!ticket.valid || w->call.valid_ns == 0 || (result != 0 && result != -ENOENT) ||
        (result == 0 && S_ISLNK(st->st_mode)))
        return;
    ticket.absent = w->call.absent;
    df_cache_key(cacher->cache, w->call.mount->id, &w->caller, question,
                 question->base ? df_content_id(segment, question->base) : 0, &key);
    df_cacher_keep(cacher, w->index, ticket, &key, (int)result, st, w->call.valid_ns);
}

/* The answer may be kept. */
static int64_t ask_attributes(struct df_work *w, struct stat *st)
{
    const struct df_message_where *where = &w->message.wheres[0];
    struct df_trip_where question = {where->base, w->names[0], where->len, where->flags};
    struct df_cacher_ticket ticket = {0};
    int64_t ret;

    if (w->index < DF_MOUNT_COUNT)
        ticket = df_cacher_ask(&w->server->cacher, w->index);
    w->call.asks_validity = ticket.valid;
    w->call.valid_ns = w->call.absent = 0;
    ret = CALL(getattr, &w->wheres[0], st);
    if (ret == 0)
        st->st_dev = w->call.mount->dev;
    if (ret == -ENOENT && ticket.valid)
        learn_absences(w);
    df_execute_keep(w, ticket, &question, ret, st);
    return ret;
}

/* Something has said that the name is not there: then the next one need not ask. */
static void keep_absence(struct df_work *w)
{
    struct stat st;

    if (w->index < DF_MOUNT_COUNT &&
        atomic_load_explicit(&w->server->mounts[w->index].absences, memory_order_relaxed) !=
            DF_ABSENCES_NEVER)
        ask_attributes(w, &st);
}

static int64_t do_getattr(struct df_work *w)
{
    struct stat st;
    int64_t ret = ask_attributes(w, &st);

    if (ret == 0)
        out_of(w)->st = st;
    return ret;
}

static int64_t do_statx(struct df_work *w)
{
    return CALL(statx, &w->wheres[0], &out_of(w)->statx);
}

static int64_t do_setattr(struct df_work *w)
{
    struct stat st;
    bool wanted = w->message.args.setattr.wants_stat;
    int64_t ret = CALL(setattr, &w->wheres[0], &w->message.args.setattr.set, wanted ? &st : NULL);

    if (ret == 0 && wanted) {
        st.st_dev = w->call.mount->dev;
        out_of(w)->st = st;
    }
    return ret;
}

static int64_t do_access(struct df_work *w)
{
    return CALL(access, &w->wheres[0], w->message.args.access.mask);
}

/* realpath(3) asks for every directory of a path, and for the last name, which may be missing. What
 * is kept says that a name is no link, or no name: df_trip_readlink(). */
static int64_t do_readlink(struct df_work *w)
{
    struct stat st;
    int64_t ret = CALL(readlink, &w->wheres[0], w->area->payload,
                       df_execute_room(w, w->message.args.readlink.size));

    if (ret == -EINVAL)
        ask_attributes(w, &st);
    else if (ret == -ENOENT)
        keep_absence(w);
    return ret;
}

static const char *key_of(struct df_work *w)
{
    memcpy(w->key, w->area->key, sizeof(w->key));
    w->key[sizeof(w->key) - 1] = '\0';
    return w->key;
}

static int64_t do_getxattr(struct df_work *w)
{
    return CALL(getxattr, &w->wheres[0], key_of(w), w->area->payload,
                df_execute_room(w, w->message.args.getxattr.size));
}

static int64_t do_listxattr(struct df_work *w)
{
    return CALL(listxattr, &w->wheres[0], w->area->payload,
                df_execute_room(w, w->message.args.listxattr.size));
}

static int64_t do_setxattr(struct df_work *w)
{
    return CALL(setxattr, &w->wheres[0], key_of(w), w->area->payload,
                df_execute_room(w, w->message.args.setxattr.size), w->message.args.setxattr.flags);
}

static int64_t do_removexattr(struct df_work *w)
{
    return CALL(removexattr, &w->wheres[0], key_of(w));
}

static int64_t do_statfs(struct df_work *w)
{
    return CALL(statfs, &w->wheres[0], &out_of(w)->statvfs);
}

/* ---- entries --------------------------------------------------------------------------------- */

static int64_t do_mknod(struct df_work *w)
{
    return CALL(mknod, &w->wheres[0], w->message.args.mknod.mode, w->message.args.mknod.rdev);
}

static int64_t do_mkdir(struct df_work *w)
{
    return CALL(mkdir, &w->wheres[0], w->message.args.mkdir.mode);
}

static int64_t do_symlink(struct df_work *w)
{
    size_t size = w->message.args.symlink.size;

    if (size >= PATH_MAX)
        return -ENAMETOOLONG;
    memcpy(w->names[1], w->area->payload, size); /* a second where is not used here */
    w->names[1][size] = '\0';
    return CALL(symlink, w->names[1], &w->wheres[0]);
}

static int64_t do_unlink(struct df_work *w)
{
    return CALL(unlink, &w->wheres[0]);
}

static int64_t do_rmdir(struct df_work *w)
{
    int64_t ret = CALL(rmdir, &w->wheres[0]);

    /* A file that was removed while somebody who has ended had it open is there under another name.
     */
    if (ret == -ENOTEMPTY && df_server_see_the_dead(w->server))
        ret = CALL(rmdir, &w->wheres[0]);
    return ret;
}

static int64_t do_rename(struct df_work *w)
{
    const unsigned flags = w->message.args.rename.flags;
    int64_t ret = CALL(rename, &w->wheres[0], &w->wheres[1], flags);

    if (ret == -ENOTEMPTY && df_server_see_the_dead(w->server)) /* as for rmdir */
        ret = CALL(rename, &w->wheres[0], &w->wheres[1], flags);
    return ret;
}

static int64_t do_link(struct df_work *w)
{
    return CALL(link, &w->wheres[0], &w->wheres[1]);
}

/* ---- opening and closing -----------------------------------------------------------------------
 */

#define CREATION_FLAGS (O_CLOEXEC | O_CREAT | O_EXCL | O_NOCTTY | O_TRUNC) /* open(2) */

static int64_t register_file(struct df_work *w, struct df_file *file)
{
    uint32_t content = w->reads_are_told ? 0 : df_execute_content(w, file);
    uint64_t handle = df_files_add(&w->server->files, w->client, file, w->message.mount, content,
                                   &w->slot->entered);

    if (handle == 0) {
        df_framer_close(&w->server->framer, content);
        df_file_put(w->thread, file);
        return -ENFILE;
    }
    if (w->message.op == DF_MESSAGE_open) /* else no name leads to it */
        df_files_note(&w->server->files, handle, w->message.wheres[0].base, w->names[0],
                      w->wheres[0].len, w->wheres[0].flags, w->message.args.open.flags);
    w->opened = handle;
    if (file->kind == DF_KIND_DIRECTORY && w->message.wheres[0].base == 0)
        df_files_call(&w->server->files, handle, w->names[0], w->wheres[0].len);
    out_of(w)->file = (struct df_message_file){handle, file->ino, file->kind, file->traits};
    return 0;
}

int64_t df_execute_drop(struct df_work *w, uint64_t handle)
{
    struct df_last_file last;
    int ret = df_files_drop(&w->server->files, w->client, handle, &last);

    if (last.file)
        df_execute_close(w->server, w->thread, &last);
    return ret;
}

/* Nobody is given a file: so none is made or emptied for him. */
static int64_t do_open(struct df_work *w)
{
    int flags = w->message.args.open.flags;
    struct df_file *file;
    int64_t ret;

    if (w->client == 0)
        return -ENFILE;
    file = df_file_new(w->thread, w->call.mount, w->fs, flags & ~CREATION_FLAGS);
    if (!file)
        return -ENOMEM;
    w->message.mount = w->call.mount->id;
    df_files_foresee(&w->server->files);
    ret = w->message.op == DF_MESSAGE_tmpfile
              ? CALL(tmpfile, &w->wheres[0], file, flags, w->message.args.tmpfile.mode)
              : CALL(open, &w->wheres[0], file, flags, w->message.args.open.mode);
    if (ret < 0) {
        df_file_discard(w->thread, file);
        if (ret == -ENOENT && !(flags & (O_CREAT | O_TRUNC)))
            keep_absence(w);
        return ret;
    }
    df_file_opened_counted(file);
    ret = df_call_know_ino(&w->call, file); /* clients name their placeholders by it */
    if (ret < 0) {
        df_file_put(w->thread, file);
        return ret;
    }
    return register_file(w, file);
}

#define do_tmpfile do_open

static int64_t do_flush(struct df_work *w)
{
    struct df_file *file = w->files[0];
    int64_t ret = 0;

    if (!(atomic_load(&file->flags) & O_PATH)) {
        if (!(file->traits & DF_FILE_NOFLUSH))
            ret = CALL(flush, file, w->caller.lock_owner);
        df_lock_close(&w->call, file, w->caller.lock_owner);
    }
    return ret;
}

static int64_t do_release(struct df_work *w)
{
    return df_execute_drop(w, w->message.files[0]);
}

#define do_drop do_release

/* ---- data ------------------------------------------------------------------------------------ */

static int64_t do_path(struct df_work *w)
{
    return CALL(path, w->files[0], w->area->payload, df_execute_room(w, w->message.args.path.size));
}

static int64_t do_lseek(struct df_work *w)
{
    return CALL(lseek, w->files[0], w->message.args.lseek.offset, w->message.args.lseek.whence);
}

static int64_t do_fsync(struct df_work *w)
{
    return CALL(fsync, w->files[0], w->message.args.fsync.datasync);
}

static int64_t do_fallocate(struct df_work *w)
{
    return CALL(fallocate, w->files[0], w->message.args.fallocate.mode,
                w->message.args.fallocate.offset, w->message.args.fallocate.length);
}

/* Two files, and no name. */
static void tell_copied(struct df_work *w)
{
    if (!w->call.changes)
        return;
    w->call.changes->answers = true;
    df_changes_object(w->call.changes, df_execute_ino(w, 0));
    df_changes_object(w->call.changes, df_execute_ino(w, 1));
}

/* Not more than the source has, which clients do not ask for first (df_fs.shortens). */
static int64_t size_to_copy(struct df_work *w, uint64_t *size)
{
    struct df_where source = {.base = w->files[0], .name = ""};
    off_t offset = w->message.args.copy_file_range.in;
    struct stat st;
    int64_t ret;

    *size = w->message.args.copy_file_range.size;
    if (w->fs->shortens)
        return 0;
    if ((ret = CALL(getattr, &source, &st)) < 0)
        return ret;
    if (offset < 0 || offset >= st.st_size)
        *size = 0;
    else if (*size > (uint64_t)(st.st_size - offset))
        *size = (uint64_t)(st.st_size - offset);
    return 0;
}

static int64_t do_copy_file_range(struct df_work *w)
{
    uint64_t size;
    int64_t ret;

    if (!w->files[1])
        return -EBADF;
    if (w->files[0]->fs != w->files[1]->fs)
        return -EXDEV;
    tell_copied(w);
    ret = size_to_copy(w, &size);
    if (ret < 0 || size == 0)
        return ret;
    return CALL(copy_file_range, w->files[0], w->message.args.copy_file_range.in, w->files[1],
                w->message.args.copy_file_range.out, size, w->message.args.copy_file_range.flags);
}

static int64_t do_ioctl(struct df_work *w)
{
    unsigned long request = w->message.args.ioctl.request;
    void *argument = _IOC_SIZE(request) > 0 ? (void *)w->area->payload
                                            : (void *)(uintptr_t)w->message.args.ioctl.argument;

    return CALL(ioctl, w->files[0], request, argument);
}

static int64_t do_poll(struct df_work *w)
{
    uint64_t bell = w->message.args.poll.bell;
    struct df_wake *wake = bell ? df_bell_wake(&w->server->bells, bell, false) : NULL;

    if (bell && !wake)
        return -ENOMEM;
    return df_execute_poll(w, w->message.args.poll.events, wake);
}

/* ---- never asked for over a channel
 * -------------------------------------------------------------- */

static int64_t do_borrow(struct df_work *w)
{
    (void)w;
    return -EOPNOTSUPP;
}

#define do_unborrow do_borrow
#define do_lend     do_borrow
#define do_destroy  do_borrow
#define do_known    do_borrow

/* ---- the server as a whole ------------------------------------------------------------------- */

static int64_t do_unmount(struct df_work *w)
{
    if (w->message.args.unmount.alone && df_files_client_count(&w->server->files) > 1)
        return -EUSERS;
    return df_server_unmount(w->server, w->message.mount, w->message.args.unmount.lazy);
}

static int64_t do_sync(struct df_work *w)
{
    for (unsigned i = 0; i < w->server->mount_count; i++)
        if (w->server->mounts[i].writeback.made)
            df_writeback_sync(w->server->mounts[i].writeback.made);
    return 0;
}

static int64_t do_bury(struct df_work *w)
{
    df_server_finish_the_dead(w->server);
    return 0;
}

static int64_t do_write_back(struct df_work *w)
{
    return df_mapped_write_back(w->server, w->client, w->message.files[0]);
}

static int64_t do_nothing(struct df_work *w)
{
    (void)w;
    return 0;
}

df_execute_op *const df_execute_ops[DF_MESSAGE_COUNT] = {
#define DF_OP(name) [DF_MESSAGE_##name] = do_##name,
#include "core/ops.def"
#undef DF_OP
    [DF_MESSAGE_ADOPT] = do_adopt,     [DF_MESSAGE_DROP] = do_drop,
    [DF_MESSAGE_KEEP] = do_keep,       [DF_MESSAGE_FORK] = do_fork,
    [DF_MESSAGE_UNFORK] = do_unfork,   [DF_MESSAGE_UNMOUNT] = do_unmount,
    [DF_MESSAGE_BURY] = do_bury,       [DF_MESSAGE_SYNC] = do_sync,
    [DF_MESSAGE_NOTHING] = do_nothing, [DF_MESSAGE_WATCH] = do_watch,
    [DF_MESSAGE_EPOLL] = do_epoll,     [DF_MESSAGE_WRITE_BACK] = do_write_back,
};
