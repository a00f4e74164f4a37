/*
 * attr.c - attributes of one object: getattr, statx, known, setattr, access, readlink, statfs.
 */
#include <time.h>
#include <unistd.h>

#include "core/check.h"
#include "host/permission.h"
#include "host/statx.h"
#include "lowlevel/changes.h"
#include "lowlevel/request.h"
#include "lowlevel/target.h"
#include "nodes/link.h"

/* ---- getattr ------------------------------------------------------------------------------- */

static ssize_t ask_attr(const struct df_target *target, void *st)
{
    return df_lowlevel_attr(target->lane, target->call, target->node, target->file, DF_ATTR_ALL,
                            st);
}

/* What was believed here may be as old as that already: an answer that is repeated for so long is
 * at most twice as old as the plugin allows, as one that two kernels cache. */
static void tell_validity(struct df_lowlevel *lane, struct df_call *call, int result)
{
    uint64_t shortest = atomic_load_explicit(&lane->nodes.shortest, memory_order_relaxed);
    uint64_t absent = atomic_load_explicit(&lane->nodes.shortest_absent, memory_order_relaxed);

    if (result == -ENOENT && absent < shortest)
        shortest = absent;
    call->valid_ns = result == 0 || result == -ENOENT ? shortest : 0;
}

int df_lowlevel_getattr(struct df_fs *fs, struct df_call *call, const struct df_where *where,
                        struct stat *st)
{
    struct df_lowlevel *lane = df_lowlevel_of(fs);
    struct df_node_clock clock = {0};
    struct df_node *node;
    int result = df_lowlevel_enter(lane, call);

    if (DF_UNLIKELY(result < 0))
        return result;
    if (DF_UNLIKELY(call->asks_validity)) {
        result = (int)df_lowlevel_on_object(fs, call, where, ask_attr, st);
        tell_validity(lane, call, result);
        return result;
    }
    result = df_node_walk_warm(&lane->nodes, call, where, &clock, &node);
    if (DF_LIKELY(result == 0) && DF_LIKELY(df_node_attr_read(node, DF_ATTR_ALL, &clock, st)))
        return 0;
    return result < 0 ? result : (int)df_lowlevel_on_object(fs, call, where, ask_attr, st);
}

/* ---- statx --------------------------------------------------------------------------------- */

/* Without a handle, also for an open file: so does statx(2) of the kernel. */
static int send_statx(const struct df_target *target, struct df_statx_reply *reply)
{
    struct fuse_req req;

    df_request_begin(&req, target->lane, target->call, DF_TAKES_STATX);
    req.statx = reply;
    return (int)DF_REQUEST_OF(&req, later.statx, target->node->id, 0, DF_STATX_MASK, NULL);
}

/* Who answers with all of them answers GETATTR as well; else the answer is not kept, and wrong only
 * in what its mask names: fuse_do_statx() of the kernel. */
static int believe(struct df_node *node, struct df_statx_reply *reply, uint32_t changes)
{
    struct stat *st = &reply->found.st;
    uint32_t mask = reply->found.mask;

    if ((mask & STATX_BASIC_STATS) == STATX_BASIC_STATS)
        return df_node_attr_store(node, st, df_node_expiry(reply->timeout), changes);
    if ((mask & STATX_TYPE && (st->st_mode & S_IFMT) != node->type) ||
        (mask & STATX_SIZE && st->st_size < 0)) {
        df_node_attr_spoil(node);
        return -EIO;
    }
    st->st_mode = node->type | (st->st_mode & 07777);
    reply->found.mask |= STATX_TYPE;
    return 0;
}

static ssize_t ask_statx(const struct df_target *target, void *out)
{
    uint32_t changes = df_node_attr_changes(target->node);
    struct df_statx_reply reply;
    int result = send_statx(target, &reply);

    if (result == -ENOSYS) {
        df_lowlevel_note_lack(target->lane, DF_LACKS_STATX);
        return DF_PLAIN_STAT;
    }
    df_node_given(&target->lane->nodes.shortest, result == 0 ? reply.timeout : 1e9);
    if (result == 0)
        result = believe(target->node, &reply, changes);
    if (result == 0)
        *(struct df_statx *)out = reply.found;
    return result;
}

int df_lowlevel_statx(struct df_fs *fs, struct df_call *call, const struct df_where *where,
                      struct df_statx *out)
{
    if (df_lowlevel_lacks(df_lowlevel_of(fs), DF_LACKS_STATX))
        return DF_PLAIN_STAT;
    return (int)df_lowlevel_on_object(fs, call, where, ask_statx, out);
}

/* ---- known --------------------------------------------------------------------------------- */

/* By names that are known and believed; where a link leads is not looked at. */
int df_lowlevel_known(struct df_fs *fs, struct df_call *call, const struct df_where *where,
                      struct stat *st)
{
    struct df_lowlevel *lane = df_lowlevel_of(fs);
    struct df_node_clock clock = {.unused = true};
    struct df_node *node;
    int result = df_lowlevel_enter(lane, call);

    if (result < 0)
        return result;
    result = df_node_walk_warm(&lane->nodes, call, where, &clock, &node);
    if (result == 0 && !df_node_attr_read(node, DF_ATTR_ALL, &clock, st))
        result = DF_NODE_COLD;
    tell_validity(lane, call, result);
    return result == DF_NODE_COLD ? -EAGAIN : result;
}

/* ---- setattr ------------------------------------------------------------------------------- */

static int check_setattr(const struct df_target *target, struct df_setattr *set)
{
    const struct df_caller *caller = target->call->caller;
    struct stat st;
    int result;

    if ((set->valid & DF_SET_SIZE) && !S_ISREG(target->node->type))
        return df_node_is_dir(target->node) ? -EISDIR : -EINVAL;
    if (!target->lane->default_permissions)
        return 0;
    result = df_lowlevel_attr(target->lane, target->call, target->node, NULL, DF_ATTR_OWNER, &st);
    if (result == 0 && df_permission_setattr_writes(caller, &st, !target->file, set))
        result = df_lowlevel_permit(target->lane, target->call, target->node, W_OK);
    return result < 0 ? result : df_permission_setattr(caller, &st, set);
}

/* chown takes the setuid and setgid bits of a file, and so does truncate by other than root. If the
 * plugin does not see to that, the new mode goes along. */
static int take_privileges(const struct df_target *target, struct df_setattr *set)
{
    bool chown = set->valid & (DF_SET_UID | DF_SET_GID);
    bool truncate = (set->valid & DF_SET_SIZE) && !target->call->caller->capable;
    struct stat st;
    int result;

    if (target->lane->handles_killpriv || df_node_is_dir(target->node) || !(chown || truncate) ||
        (set->valid & DF_SET_MODE))
        return 0;
    result = df_lowlevel_ask_attr(target->lane, target->call, target->node, target->file, &st);
    if (result < 0)
        return result;
    set->mode = df_check_strip(st.st_mode & 07777);
    if (set->mode != (st.st_mode & 07777))
        set->valid |= DF_SET_MODE;
    return 0;
}

/* What the kernel calls FATTR_* and the plugin to_set. */
static int to_set(uint32_t valid)
{
    static const struct {
        uint32_t ours;
        int theirs;
    } bits[] = {
        {DF_SET_MODE, FUSE_SET_ATTR_MODE},
        {DF_SET_UID, FUSE_SET_ATTR_UID},
        {DF_SET_GID, FUSE_SET_ATTR_GID},
        {DF_SET_SIZE, FUSE_SET_ATTR_SIZE},
        {DF_SET_ATIME, FUSE_SET_ATTR_ATIME},
        {DF_SET_MTIME, FUSE_SET_ATTR_MTIME},
        {DF_SET_ATIME_NOW, FUSE_SET_ATTR_ATIME_NOW},
        {DF_SET_MTIME_NOW, FUSE_SET_ATTR_MTIME_NOW},
    };
    int set = 0;

    for (size_t i = 0; i < sizeof(bits) / sizeof(bits[0]); i++)
        if (valid & bits[i].ours)
            set |= bits[i].theirs;
    return set;
}

/* "Now" comes with a time as well, for plugins that do not know the flag. */
static struct stat wanted(const struct df_node *node, const struct df_setattr *set)
{
    struct stat st = {
        .st_mode = node->type | (set->mode & 07777),
        .st_uid = set->uid,
        .st_gid = set->gid,
        .st_size = set->size,
        .st_atim = set->atime,
        .st_mtim = set->mtime,
    };
    struct timespec now;

    if (set->valid & (DF_SET_ATIME_NOW | DF_SET_MTIME_NOW))
        clock_gettime(CLOCK_REALTIME, &now);
    if (set->valid & DF_SET_ATIME_NOW)
        st.st_atim = now;
    if (set->valid & DF_SET_MTIME_NOW)
        st.st_mtim = now;
    return st;
}

/* With the handle as the kernel sends it: to resize an open file, and with the time of its writes.
 */
static int send_setattr(const struct df_target *target, const struct df_setattr *set,
                        struct stat *out)
{
    struct stat st = wanted(target->node, set);
    union df_file_info info;
    struct fuse_file_info *fi = NULL;
    struct df_attr_reply reply;
    struct fuse_req req;
    int result;

    if (!target->lane->ops.setattr)
        return -ENOSYS;
    if (target->file && (set->valid & DF_SET_SIZE || target->call->writes_back) &&
        df_lowlevel_file_has(target->file, DF_FILE_HAS_HANDLE))
        fi = df_lowlevel_handle(&info, target->file);
    df_request_begin(&req, target->lane, target->call, DF_TAKES_ATTR);
    req.attr = &reply;
    result = (int)DF_REQUEST(&req, setattr, target->node->id, &st, to_set(set->valid), fi);
    df_node_given(&target->lane->nodes.shortest, result == 0 ? reply.timeout : 1e9);
    if (result == 0)
        result = df_node_attr_changed(target->node, &reply.st, df_node_expiry(reply.timeout));
    if (result == 0 && out)
        *out = reply.st;
    return result;
}

/* Truncating keeps appends out, which look for the end of the file. */
int df_lowlevel_change(const struct df_target *target, const struct df_setattr *set,
                       struct stat *st)
{
    struct df_node_held held;
    int result;

    if (!(set->valid & DF_SET_SIZE))
        return send_setattr(target, set, st);
    result = df_node_held_take(&held, &target->lane->nodes, &target->node->lock, false);
    if (result < 0)
        return result;
    result = send_setattr(target, set, st);
    df_node_held_give(&held);
    return result;
}

int df_lowlevel_strip(const struct df_target *target)
{
    struct df_setattr set = {.valid = DF_SET_MODE};
    struct stat st;
    int result;

    if (target->lane->handles_killpriv || target->call->caller->capable)
        return 0;
    result = df_lowlevel_attr(target->lane, target->call, target->node, target->file, DF_ATTR_OWNER,
                              &st);
    if (result < 0 || df_check_strip(st.st_mode) == st.st_mode)
        return result;
    result = df_lowlevel_ask_attr(target->lane, target->call, target->node, target->file, &st);
    set.mode = df_check_strip(st.st_mode & 07777);
    if (result < 0 || set.mode == (st.st_mode & 07777))
        return result;
    return df_permission_stripped(target->call, df_lowlevel_change(target, &set, &st));
}

struct setting {
    struct df_setattr set;
    struct stat *st;
};

static ssize_t set_attr(const struct df_target *target, void *arg)
{
    const struct setting *setting = arg;
    struct df_setattr set = setting->set; /* each try begins with what was asked for */
    int result = check_setattr(target, &set);

    if (result == 0)
        result = take_privileges(target, &set);
    if (result < 0)
        return result;
    DF_TELL_ATTR(target->call, target->node, set.valid & (DF_SET_MODE | DF_SET_UID | DF_SET_GID));
    if (set.valid & DF_SET_SIZE)
        DF_TELL_BYTES(target->call, target->node);
    result = df_lowlevel_change(target, &set, setting->st);
    if (!(set.valid & ~setting->set.valid & DF_SET_MODE) ||
        df_permission_stripped(target->call, result) == result)
        return result;
    set.valid &= ~(uint32_t)DF_SET_MODE;
    return df_lowlevel_change(target, &set, setting->st);
}

int df_lowlevel_setattr(struct df_fs *fs, struct df_call *call, const struct df_where *where,
                        const struct df_setattr *set, struct stat *st)
{
    struct setting setting = {*set, st};

    df_lowlevel_tells(call);
    if (DF_UNLIKELY(call->changes))
        df_changes_bytes_begin(call->changes);
    return (int)df_lowlevel_on_object(fs, call, where, set_attr, &setting);
}

/* ---- access -------------------------------------------------------------------------------- */

static ssize_t check_access(const struct df_target *target, void *mask)
{
    struct df_lowlevel *lane = target->lane;
    struct fuse_req req;
    int result;

    if (lane->default_permissions)
        return df_lowlevel_permit(lane, target->call, target->node, *(int *)mask);
    if (df_lowlevel_lacks(lane, DF_LACKS_ACCESS))
        return 0;
    df_request_begin(&req, lane, target->call, DF_TAKES_OK);
    result = (int)DF_REQUEST(&req, access, target->node->id, *(int *)mask);
    if (result != -ENOSYS)
        return result;
    df_lowlevel_note_lack(lane, DF_LACKS_ACCESS);
    return 0;
}

int df_lowlevel_access(struct df_fs *fs, struct df_call *call, const struct df_where *where,
                       int mask)
{
    return (int)df_lowlevel_on_object(fs, call, where, check_access, &mask);
}

/* ---- readlink ------------------------------------------------------------------------------ */

static ssize_t read_link(const struct df_target *target, void *arg)
{
    const struct iovec *to = arg;

    if (!S_ISLNK(target->node->type))
        return -EINVAL;
    return df_node_link_read(&target->lane->nodes, target->call, target->node, to->iov_base,
                             to->iov_len);
}

ssize_t df_lowlevel_readlink(struct df_fs *fs, struct df_call *call, const struct df_where *where,
                             char *buf, size_t size)
{
    struct iovec to = {buf, size};

    return df_lowlevel_on_object(fs, call, where, read_link, &to);
}

/* ---- statfs -------------------------------------------------------------------------------- */

static ssize_t ask_statfs(const struct df_target *target, void *out)
{
    struct fuse_req req;

    *(struct statvfs *)out = (struct statvfs){.f_namemax = 255, .f_bsize = 512}; /* libfuse's */
    if (!target->lane->ops.statfs)
        return 0;
    df_request_begin(&req, target->lane, target->call, DF_TAKES_STATFS);
    req.statfs = out;
    return DF_REQUEST(&req, statfs, target->node->id);
}

int df_lowlevel_statfs(struct df_fs *fs, struct df_call *call, const struct df_where *where,
                       struct statvfs *out)
{
    return (int)df_lowlevel_on_object(fs, call, where, ask_statfs, out);
}
