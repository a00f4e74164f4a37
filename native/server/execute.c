/*
 * execute.c - one message: checked and copied, its op called in the client's name, answered.
 */
#include <errno.h>
#include <string.h>

#include "channel/link.h"
#include "channel/ofd.h"
#include "channel/sys.h"
#include "core/caller.h"
#include "server/server_private.h"

/* ---- the question ---------------------------------------------------------------------------- */

#define RIGHTS 0x0101 /* of what a client says, what its two bools can be */

static void take_caller(struct df_work *w)
{
    const struct df_message_caller *from = &w->message.caller;

    w->caller = (struct df_caller){
        .uid = from->uid,
        .gid = from->gid,
        .real_uid = from->real_uid,
        .real_gid = from->real_gid,
        .pid = from->pid,
        .umask = from->umask & 0777,
        .group_count = from->group_count < DF_GROUPS_MAX ? from->group_count : DF_GROUPS_MAX,
        .groups = w->area->groups,
        .rights = from->rights & RIGHTS,
        .lock_owner = df_execute_owner(w->client),
        .size_limit = from->size_limit,
    };
}

/* A reference on each file that is named. 0 or -EBADF. */
static int take_file(struct df_work *w, unsigned i, uint64_t handle)
{
    if (handle == 0)
        return 0;
    w->files[i] = df_files_get(&w->server->files, handle);
    if (w->files[i])
        return 0;
    return df_files_lost(&w->server->files, handle) ? -ESTALE : -EBADF;
}

/* The name is copied before anybody looks at it. */
static int take_where(struct df_work *w, unsigned i)
{
    const struct df_message_where *from = &w->message.wheres[i];
    int ret;

    if (from->len >= PATH_MAX)
        return -EPROTO;
    memcpy(w->names[i], w->area->names[i], from->len);
    w->names[i][from->len] = '\0';
    if (memchr(w->names[i], '\0', from->len))
        return -EPROTO;
    w->wheres[i] = (struct df_where){NULL, w->names[i], from->len, from->flags};
    if (from->base == 0) /* a path of the mount */
        return w->names[i][0] != '/' ? -EPROTO : 0;
    if (!w->files[i] && (ret = take_file(w, i, from->base)) < 0)
        return ret;
    w->wheres[i].base = w->files[i];
    return 0;
}

static bool takes_where(uint32_t op)
{
    return op <= DF_MESSAGE_open || op == DF_MESSAGE_statx || op == DF_MESSAGE_tmpfile;
}

static bool takes_two(uint32_t op)
{
    return op == DF_MESSAGE_rename || op == DF_MESSAGE_link;
}

/* Pins the mount, or finds that of the file. */
static int find_fs(struct df_work *w)
{
    struct df_served *served;

    if (w->files[0]) {
        w->fs = w->files[0]->fs;
        w->call.mount = atomic_load_explicit(&w->files[0]->mount, memory_order_relaxed);
        return 0;
    }
    served = df_server_mount(w->server, w->message.mount);
    if (!served || !atomic_load(&served->shared->live) ||
        !df_gate_pin(w->thread, served->mount, served->id))
        return -ENOTCONN;
    w->fs = atomic_load(&served->mount->fs);
    w->call.mount = served->mount;
    return 0;
}

int df_execute_take(struct df_work *w, uint64_t handle)
{
    int ret = handle ? take_file(w, 0, handle) : -EBADF;

    return ret < 0 ? ret : find_fs(w);
}

static int take_objects(struct df_work *w)
{
    uint32_t op = w->message.op;
    int ret;

    if (takes_where(op)) {
        if ((ret = take_where(w, 0)) < 0 || (takes_two(op) && (ret = take_where(w, 1)) < 0))
            return ret;
        ret = find_fs(w);
        return ret == 0 && w->files[1] && w->files[1]->fs != w->fs ? -EXDEV : ret;
    }
    if (op == DF_MESSAGE_read_batch || op > DF_MESSAGE_WATCH)
        return 0;
    ret = df_execute_take(w, w->message.files[0]);
    return ret < 0 ? ret : take_file(w, 1, w->message.files[1]);
}

/* ---- the answer ------------------------------------------------------------------------------ */

static void put_files(struct df_work *w)
{
    for (unsigned i = 0; i < 2; i++)
        if (w->files[i])
            df_file_put(w->thread, w->files[i]);
}

static void answer(struct df_work *w, int64_t result)
{
    struct df_message *m = &w->slot->message;

    m->result = result;
    if (result != DF_LEAVE)
        return;
    m->links = w->call.links;
    m->second_links = w->call.second_links;
    m->leave_second = w->call.leave_second;
    memcpy(w->area->names[0], w->call.leave, PATH_MAX);
}

/* What the op may change of what stat shows. */
static enum df_cache_change change_of(const struct df_work *w)
{
    const struct df_message *m = &w->message;

    switch (m->op) {
    case DF_MESSAGE_getattr:
    case DF_MESSAGE_statx:
    case DF_MESSAGE_access:
    case DF_MESSAGE_readlink: /* links are not kept */
    case DF_MESSAGE_getxattr:
    case DF_MESSAGE_listxattr:
    case DF_MESSAGE_statfs:
    case DF_MESSAGE_lseek:
    case DF_MESSAGE_poll:
    case DF_MESSAGE_lock:
    case DF_MESSAGE_flock:
    case DF_MESSAGE_advise:
    case DF_MESSAGE_flush: /* as the kernel: what they write, a write has announced */
    case DF_MESSAGE_release:
    case DF_MESSAGE_fsync:
    case DF_MESSAGE_path:
    case DF_MESSAGE_read_batch: /* which files, execute_batch.c knows */
        return DF_CACHE_NOTHING;
    case DF_MESSAGE_open:
        return m->args.open.flags & (O_CREAT | O_TRUNC) ? DF_CACHE_NAMES : DF_CACHE_NOTHING;
    case DF_MESSAGE_setattr:
        return m->args.setattr.set.valid & (DF_SET_MODE | DF_SET_UID | DF_SET_GID) ||
                       m->wheres[0].base == 0 || m->wheres[0].len > 0
                   ? DF_CACHE_NAMES
                   : DF_CACHE_FILE;
    case DF_MESSAGE_read:
    case DF_MESSAGE_readdir:
        return df_execute_reading(w);
    case DF_MESSAGE_write:
    case DF_MESSAGE_fallocate:
    case DF_MESSAGE_ioctl:
        return DF_CACHE_FILE;
    default:
        return m->op < DF_MESSAGE_OPS ? DF_CACHE_NAMES : DF_CACHE_NOTHING;
    }
}

/* Of those that change owners, modes or names (DF_CACHE_NAMES): what no listing shows. */
static bool lists_the_same(const struct df_message *m)
{
    return m->op == DF_MESSAGE_setattr || m->op == DF_MESSAGE_copy_file_range ||
           m->op == DF_MESSAGE_tmpfile ||
           (m->op == DF_MESSAGE_open && !(m->args.open.flags & O_CREAT));
}

static void end_change(struct df_work *w, enum df_cache_change change, uint64_t ino)
{
    struct df_changes *told = &w->changes;

    if (change != DF_CACHE_NAMES) {
        df_cacher_end(&w->server->cacher, w->index, change, ino);
        return;
    }
    told->listings |= lists_the_same(&w->message);
    for (uint32_t i = 0; told->listings && i < told->directory_count; i++)
        df_framer_end_listing(&w->server->framer, w->index, w->bytes.mount, told->directories[i]);
    df_cacher_end_told(&w->server->cacher, w->index, told);
}

uint64_t df_execute_ino_of(struct df_work *w, struct df_file *file, uint64_t handle)
{
    _Atomic uint64_t *known = &df_files_entry(&w->server->files, handle)->st_ino;
    struct df_where itself = {.base = file, .name = ""};
    struct stat st;
    uint64_t ino;

    if (!file ||
        !atomic_load_explicit(&w->server->cacher.mounts[w->index].kept, memory_order_relaxed))
        return 0;
    ino = atomic_load_explicit(known, memory_order_relaxed);
    if (ino == 0 &&
        df_call_result(&w->call, file->fs->ops->getattr(file->fs, &w->call, &itself, &st)) == 0)
        atomic_store_explicit(known, ino = st.st_ino, memory_order_relaxed);
    return ino;
}

uint64_t df_execute_ino(struct df_work *w, unsigned file)
{
    uint64_t handle =
        w->message.files[file] ? w->message.files[file] : w->message.wheres[file].base;

    return df_execute_ino_of(w, w->files[file], handle);
}

/* Which file's bytes it was, if the host has told. */
static void learn_file(struct df_work *w)
{
    w->bytes.known = w->changes.bytes;
    if (w->bytes.known && w->bytes.body == 0)
        w->bytes.body = w->changes.body;
}

/* Announced before it begins, and ended when it is over: segment/cache.h, segment/frames.h. */
static int64_t run_changing(struct df_work *w, enum df_cache_change change)
{
    uint64_t ino;
    int64_t ret;

    ino = change == DF_CACHE_FILE ? df_execute_ino(w, 0) : 0;
    df_execute_bytes(w);
    df_cacher_begin(&w->server->cacher, w->index, change);
    df_framer_begin(&w->server->framer, &w->bytes);
    if (change == DF_CACHE_NAMES) {
        w->changes = (struct df_changes){.listings = false};
        w->call.changes = &w->changes;
    }
    ret = df_execute_ops[w->message.op](w);
    if (change == DF_CACHE_NAMES) {
        w->call.changes = NULL;
        learn_file(w);
    }
    df_framer_end(&w->server->framer, &w->bytes);
    end_change(w, change, ino);
    if (w->opened)
        df_execute_bring(w);
    else if (w->message.op == DF_MESSAGE_copy_file_range && ret > 0)
        df_execute_bring_answer(w, w->message.files[0], w->files[0]);
    else if (w->listed > 0)
        df_execute_ahead(w);
    return ret;
}

/* Asks of the file system what changes nothing, opens nothing and brings nothing along: most
 * questions. */
static bool only_asks(const struct df_message *m)
{
    switch (m->op) {
    case DF_MESSAGE_getattr:
    case DF_MESSAGE_statx:
    case DF_MESSAGE_access:
    case DF_MESSAGE_readlink:
    case DF_MESSAGE_getxattr:
    case DF_MESSAGE_listxattr:
    case DF_MESSAGE_statfs:
    case DF_MESSAGE_lseek:
        return true;
    default:
        return false;
    }
}

static int64_t run_op(struct df_work *w)
{
    if (w->index == DF_MOUNT_COUNT || only_asks(&w->message))
        return df_execute_ops[w->message.op](w);
    return run_changing(w, change_of(w));
}

static int64_t run(struct df_work *w)
{
    struct df_watcher *watcher = &w->server->watcher;
    struct df_watch_look look;
    int64_t ret = take_objects(w);
    bool looked;

    if (ret == 0)
        ret = df_execute_check(w);
    if (ret < 0)
        return ret;
    w->index = w->call.mount ? df_server_index(w->server, w->call.mount->id) : 0;
    if ((looked = df_watch_used(watcher)))
        df_execute_watch_before(w, &look);
    ret = run_op(w);
    if (df_watch_used(watcher))
        df_execute_watch_after(w, looked ? &look : NULL, ret);
    return ret;
}

/* Inside the gate with the client's identity. */
static int64_t run_inside(struct df_work *w)
{
    const struct df_caller *before;
    int64_t ret;
    int error;

    w->thread = df_gate_enter(&error);
    if (!w->thread)
        return error;
    before = w->thread->caller;
    w->thread->caller = &w->caller;
    df_call_start(&w->call, w->thread, NULL);
    w->call.links = w->message.links;
    w->call.second_links = w->message.second_links;
    ret = run(w);
    put_files(w);
    if (w->message.op == DF_MESSAGE_flush && w->message.args.flush.drop) /* also of a lost file */
        df_execute_drop(w, w->message.files[0]);
    w->thread->caller = before;
    df_gate_leave(w->thread);
    return ret;
}

/* Those that change mounts, go through all of them, or wait for others that end there, must not
 * stand inside one. */
static bool is_outside(uint32_t op)
{
    return op == DF_MESSAGE_UNMOUNT || op == DF_MESSAGE_SYNC || op == DF_MESSAGE_BURY ||
           op == DF_MESSAGE_WRITE_BACK;
}

/* The reply's lines come from the client's processor while the op has other things to wait for. */
static void fetch_reply(const struct df_slot *slot)
{
    const char *out = (const char *)&slot->message.out;

    for (size_t at = 0; at < sizeof(struct stat); at += 64)
        df_sys_fetch_to_write(out + at);
}

void df_execute(void *arg, struct df_slot *slot, struct df_area *area)
{
    struct df_work w;
    int64_t ret;

    fetch_reply(slot);
    w.server = arg;
    w.slot = slot;
    w.area = area;
    w.client = df_slot_client(atomic_load(&slot->word));
    memcpy(&w.message, &slot->message, offsetof(struct df_message, out));
    w.files[0] = w.files[1] = NULL;
    w.opened = 0;
    w.listed = 0;
    w.reads_are_told = false;
    w.call.links = w.call.second_links = 0;
    w.call.leave_second = false;
    take_caller(&w);
    if (w.message.op >= DF_MESSAGE_COUNT)
        ret = -ENOSYS;
    else if (is_outside(w.message.op))
        ret = df_execute_ops[w.message.op](&w);
    else
        ret = run_inside(&w);
    answer(&w, ret);
}
