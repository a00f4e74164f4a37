/*
 * execute_ops.c - each op of a message as the call of the same op of struct df_ops.
 */
#include <errno.h>
#include <linux/ioctl.h>
#include <string.h>
#include <sys/file.h>

#include "core/caller.h"
#include "core/lock.h"
#include "server/server_private.h"

#define out_of  df_execute_out
#define CALL    DF_EXECUTE_CALL
#define at_most df_execute_at_most

/* Those of execute_data.c. */
#define do_read       df_execute_read
#define do_write      df_execute_write
#define do_read_batch df_execute_read_batch
#define do_readdir    df_execute_readdir
#define do_advise     df_execute_advise

/* ---- by name --------------------------------------------------------------------------------- */

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
    w->call.valid_ns = 0;
    ret = CALL(getattr, &w->wheres[0], st);
    if (ret == 0)
        st->st_dev = w->call.mount->dev;
    df_execute_keep(w, ticket, &question, ret, st);
    return ret;
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

/* realpath(3) asks for every directory of a path. Attributes that are kept say that one is no link:
 * df_trip_readlink(). */
static int64_t do_readlink(struct df_work *w)
{
    struct stat st;
    int64_t ret = CALL(readlink, &w->wheres[0], w->area->payload,
                       df_execute_room(w, w->message.args.readlink.size));

    if (ret == -EINVAL)
        ask_attributes(w, &st);
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
    uint16_t content = df_execute_content(w, file);
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

static int64_t do_open(struct df_work *w)
{
    int flags = w->message.args.open.flags;
    struct df_file *file = df_file_new(w->thread, w->call.mount, w->fs, flags & ~CREATION_FLAGS);
    int64_t ret;

    if (!file)
        return -ENOMEM;
    w->message.mount = w->call.mount->id;
    df_files_foresee(&w->server->files);
    ret = w->message.op == DF_MESSAGE_tmpfile
              ? CALL(tmpfile, &w->wheres[0], file, flags, w->message.args.tmpfile.mode)
              : CALL(open, &w->wheres[0], file, flags, w->message.args.open.mode);
    if (ret < 0) {
        df_file_discard(w->thread, file);
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
    int64_t ret = CALL(getattr, &source, &st);

    if (ret < 0)
        return ret;
    *size = w->message.args.copy_file_range.size;
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
    return CALL(poll, w->files[0], w->message.args.poll.events, NULL);
}

/* ---- locks ----------------------------------------------------------------------------------- */

/* Slots that can be used: where there is no memory for more, those that have theirs. */
static unsigned count_slots(struct df_segment *segment)
{
    unsigned made = 0;

    if (!atomic_load(&segment->full))
        return DF_SLOT_COUNT;
    for (unsigned i = 0; i < DF_SLOT_COUNT; i++)
        made += atomic_load(&df_segment_slots(segment)[i].made) > 0;
    return made;
}

/* Waiting is refused where it would leave too few slots for those who hold the locks. */
static bool may_wait(struct df_work *w, bool wait)
{
    return !wait || df_pool_sleeping(&w->server->pool) < count_slots(w->server->own.segment) / 2;
}

static struct df_shared_mount *shared_of(struct df_work *w)
{
    struct df_served *served = df_server_mount(w->server, w->call.mount->id);

    return served ? served->shared : NULL;
}

/* The file system keeps no locks of such files. Where there are placeholders, the kernel of the
 * clients does (core/placed.h): DF_NOT_OURS, and they are told once for all. Else the core does: 0.
 */
static int64_t leave_lock(struct df_work *w, bool flock)
{
    struct df_shared_mount *shared = shared_of(w);

    if (!w->server->options->shadow)
        return 0;
    if (shared)
        atomic_fetch_or(&shared->left, df_left_bit(w->files[0]->kind, flock));
    return DF_NOT_OURS;
}

static int64_t lock_range(struct df_work *w, struct df_lock *lock)
{
    struct df_shared_mount *shared = shared_of(w);
    int64_t ret = CALL(lock, w->files[0], lock);

    if (ret != DF_NOT_OURS || (ret = leave_lock(w, false)) != 0)
        return ret;
    if (shared)
        atomic_store(&shared->locked, 1);
    return df_lock_range(&w->call, w->files[0], lock);
}

/* What a process had that has ended is in nobody's way. */
static int64_t lock_range_of_the_living(struct df_work *w, struct df_lock *lock)
{
    const struct df_lock asked = *lock;
    int64_t ret = lock_range(w, lock);
    bool found = ret == 0 && lock->test && lock->type != F_UNLCK;

    if ((ret != -EAGAIN && !found) || !df_server_see_the_dead(w->server))
        return ret;
    *lock = asked;
    return lock_range(w, lock);
}

static int64_t lock_file(struct df_work *w, int operation)
{
    int64_t ret = CALL(flock, w->files[0], operation, df_lock_file_owner(w->files[0]));

    if (ret != DF_NOT_OURS || (ret = leave_lock(w, true)) != 0)
        return ret;
    return df_lock_flock(&w->call, w->files[0], operation);
}

static int64_t do_lock(struct df_work *w)
{
    struct df_lock lock = w->message.args.lock.lock;
    bool sleeps = lock.wait && !lock.test;
    int64_t ret;

    if (!may_wait(w, sleeps))
        return -ENOLCK;
    lock.owner = lock.pid == -1 ? df_lock_file_owner(w->files[0]) : w->caller.lock_owner;
    if (sleeps)
        df_pool_sleep_begin(&w->server->pool, w->slot);
    ret = lock_range_of_the_living(w, &lock);
    if (sleeps)
        df_pool_sleep_end(&w->server->pool, w->slot);
    out_of(w)->lock = lock;
    return ret;
}

static int64_t do_flock(struct df_work *w)
{
    int operation = w->message.args.flock.operation;
    bool sleeps = !(operation & (LOCK_NB | LOCK_UN));
    int64_t ret;

    if (!may_wait(w, sleeps))
        return -ENOLCK;
    if (sleeps)
        df_pool_sleep_begin(&w->server->pool, w->slot);
    ret = lock_file(w, operation);
    if (ret == -EWOULDBLOCK && df_server_see_the_dead(w->server))
        ret = lock_file(w, operation);
    if (sleeps)
        df_pool_sleep_end(&w->server->pool, w->slot);
    return ret;
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

/* ---- processes ------------------------------------------------------------------------------- */

static int64_t do_adopt(struct df_work *w)
{
    return df_files_adopt(&w->server->files, w->client, w->message.files[0]);
}

static int64_t do_drop(struct df_work *w)
{
    return df_execute_drop(w, w->message.files[0]);
}

/* One that it has not: another thread of its parent opened it just before the fork. */
static int64_t do_keep(struct df_work *w)
{
    size_t count = at_most(w->message.args.keep.size, DF_PAYLOAD_SIZE) / sizeof(uint64_t);
    const uint64_t *kept = (const uint64_t *)w->area->payload;
    uint64_t others[64];
    size_t found;

    for (size_t i = 0; i < count; i++)
        df_files_adopt(&w->server->files, w->client, kept[i]);
    do {
        found = df_files_others(&w->server->files, w->client, kept, count, others, 64);
        for (size_t i = 0; i < found; i++)
            df_execute_drop(w, others[i]);
    } while (found > 0);
    return 0;
}

static int64_t do_fork(struct df_work *w)
{
    uint32_t child = df_files_client_fork(&w->server->files, w->client, &w->slot->entered);

    return child ? (int64_t)child : -EAGAIN;
}

static int64_t do_unfork(struct df_work *w)
{
    df_execute_gone(w->server, w->message.args.unfork.client);
    return 0;
}

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

static int64_t do_nothing(struct df_work *w)
{
    (void)w;
    return 0;
}

df_execute_op *const df_execute_ops[DF_MESSAGE_COUNT] = {
#define DF_OP(name) [DF_MESSAGE_##name] = do_##name,
#include "core/ops.def"
#undef DF_OP
    [DF_MESSAGE_ADOPT] = do_adopt,   [DF_MESSAGE_DROP] = do_drop,
    [DF_MESSAGE_KEEP] = do_keep,     [DF_MESSAGE_FORK] = do_fork,
    [DF_MESSAGE_UNFORK] = do_unfork, [DF_MESSAGE_UNMOUNT] = do_unmount,
    [DF_MESSAGE_SYNC] = do_sync,     [DF_MESSAGE_NOTHING] = do_nothing,
};
