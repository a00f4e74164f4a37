/*
 * open.c - open, and the path of what is open.
 *
 * The kernel knows what it opens before it sends OPEN or OPENDIR, and creates only after a negative
 * lookup; so does this lane, from the entry cache or by one getattr.
 */
#include "highlevel/open.h"
#include "core/check.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "host/open_traits.h"
#include "host/permission.h"

/* ---- opening what exists ---- */

/* Before the plugin is asked: may an object of this type be opened so? The order of errors is that
 * of do_open() and may_open() in fs/namei.c. */
static int check_type(mode_t mode, int flags)
{
    if (flags & O_PATH)
        return flags & O_DIRECTORY && !S_ISDIR(mode) ? -ENOTDIR : 0;
    if (flags & O_CREAT && flags & O_EXCL)
        return -EEXIST;
    if (flags & O_CREAT && S_ISDIR(mode))
        return -EISDIR;
    if (flags & O_DIRECTORY && !S_ISDIR(mode))
        return -ENOTDIR;
    if (S_ISLNK(mode))
        return -ELOOP;
    if (S_ISDIR(mode) && ((flags & O_ACCMODE) != O_RDONLY || flags & O_TRUNC))
        return -EISDIR;
    return S_ISDIR(mode) || S_ISREG(mode) ? 0 : -ENXIO;
}

/* O_NOATIME is for owners, on every file system (open(2)). */
static int check_noatime(struct df_frame *frame, struct df_place *place, int flags)
{
    if (!(flags & O_NOATIME) || frame->caller->capable)
        return 0;
    int result = df_walk_find(frame, place, true);
    if (result == 0 && place->st->st_uid != frame->caller->uid)
        result = -EPERM;
    return result;
}

/* What the plugin sees of the flags. */
static int plugin_flags(const struct df_highlevel *hl, int flags)
{
    flags &= ~(O_CREAT | O_EXCL | O_NOCTTY);
    if (!(hl->want & FUSE_CAP_ATOMIC_O_TRUNC))
        flags &= ~O_TRUNC;
    return flags;
}

/* Asks the plugin; fills handle->fh and handle->bits. Without such an op there is nothing to ask,
 * but release is due, as in libfuse; after ENOSYS neither, as in the kernel. */
static DF_FLAT int ask(struct df_highlevel *hl, const char *path, bool directory,
                       struct df_handle *handle, struct fuse_file_info *fi)
{
    uint32_t missing = directory ? DF_MISSING_OPENDIR : DF_MISSING_OPEN;
    int (*op)(const char *, struct fuse_file_info *) = directory ? hl->ops.opendir : hl->ops.open;

    if (!op) {
        df_handle_add_bits(handle, DF_HANDLE_RELEASE);
        return 0;
    }
    if (df_highlevel_lacks(hl, missing))
        return 0;
    int result = df_answer_error(op(path, fi));
    if (result == -ENOSYS) {
        df_highlevel_miss(hl, missing);
        return 0;
    }
    handle->fh = fi->fh;
    df_handle_add_bits(handle, DF_HANDLE_PLUGIN | DF_HANDLE_RELEASE);
    return result;
}

/* What FUSE_OPEN would say; the options stand for every file, as in libfuse. auto_cache there
 * compares in open, with what it remembers; here who remembers does. A directory has no FLUSH. */
static uint8_t traits_of(const struct df_highlevel *hl, const struct fuse_file_info *fi,
                         uint8_t kind)
{
    uint8_t traits = df_open_traits(fi, hl->want);

    if (hl->config.direct_io)
        traits |= DF_FILE_DIRECT;
    if (hl->config.kernel_cache)
        traits |= DF_FILE_KEEP;
    else if (!fi->keep_cache && hl->config.auto_cache)
        traits |= DF_FILE_KEEP | DF_FILE_CHECK;
    if (kind == DF_KIND_REGULAR)
        return traits;
    return (traits & ~DF_OPEN_TRAITS_OF_FILES) | DF_FILE_NOFLUSH;
}

void df_highlevel_settle(struct df_frame *frame, const struct df_place *place, struct df_file *file,
                         const struct fuse_file_info *fi)
{
    const struct df_highlevel *hl = frame->hl;
    struct df_handle *handle = df_handle_of(file);
    bool flushes = hl->ops.flush && !df_highlevel_lacks(hl, DF_MISSING_FLUSH);
    bool locks = hl->ops.lock && hl->want & FUSE_CAP_POSIX_LOCKS;

    file->ino = hl->config.use_ino ? place->entry.ino : handle->node->ino;
    if (place->asked && !(fi->flags & O_TRUNC) && place->entry.kind == DF_ENTRY_PRESENT)
        atomic_store_explicit(&handle->vouched, place->st->st_size, memory_order_relaxed);
    file->traits |= traits_of(hl, fi, file->kind);
    /* The node of a directory goes with its last close: nothing would be found by it again. */
    if (file->kind != DF_KIND_DIRECTORY || file->traits & DF_FILE_LISTS)
        file->body = handle->node->serial;
    /* libfuse's own time-out of auto_cache: the plugin is asked before that is over. */
    if (file->traits & DF_FILE_CHECK && hl->config.ac_attr_timeout < hl->config.attr_timeout)
        df_handle_changed(frame, file);
    if (file->traits & DF_FILE_KEEP && !atomic_load(&frame->hl->open_paths.keeps))
        atomic_store(&frame->hl->open_paths.keeps, true);
    if (file->kind != DF_KIND_REGULAR)
        return;
    if (!(flushes || locks) ||
        (hl->config.no_rofd_flush && (handle->flags & O_ACCMODE) == O_RDONLY))
        file->traits |= DF_FILE_NOFLUSH;
    uint32_t bits = DF_HANDLE_COUNTED;
    if ((handle->flags & O_ACCMODE) != O_RDONLY && df_frame_strips(frame))
        bits |= DF_HANDLE_STRIPS;
    df_handle_add_bits(handle, bits);
    df_open_path_opened(handle->node);
}

/* Takes setuid and setgid away, where there are any. */
static int strip(struct df_frame *frame, struct df_place *place)
{
    int (*chmod)(const char *, mode_t, struct fuse_file_info *) = frame->hl->ops.chmod;
    int result = df_walk_find(frame, place, true);

    if (result || !chmod)
        return result;
    mode_t mode = place->st->st_mode, stripped = df_check_strip(mode);
    if (stripped == mode)
        return 0;
    return df_permission_stripped(frame->call, chmod(place->path, stripped, NULL));
}

/* O_TRUNC beside the open: takes setuid away where that is ours, and truncates when the plugin does
 * not want the flag itself. The kernel truncates behind the OPEN, by name. */
static int truncate_opened(struct df_frame *frame, struct df_place *place)
{
    struct df_highlevel *hl = frame->hl;
    int result = 0;

    if (df_frame_strips(frame))
        result = strip(frame, place);
    if (result == 0 && !(hl->want & FUSE_CAP_ATOMIC_O_TRUNC))
        result =
            hl->ops.truncate ? df_answer_error(hl->ops.truncate(place->path, 0, NULL)) : -ENOSYS;
    df_entry_cache_forget_attributes(&hl->cache, place->key);
    return result;
}

/* Under the node's read lock. */
static DF_FLAT int open_node(struct df_frame *frame, struct df_place *place, struct df_file *file,
                             int flags)
{
    struct df_highlevel *hl = frame->hl;
    struct df_handle *handle = df_handle_of(file);
    bool directory = S_ISDIR(place->entry.mode);
    union df_file_info fi;

    file->kind = directory ? DF_KIND_DIRECTORY : DF_KIND_REGULAR;
    memset(&fi, 0, sizeof(fi));
    fi.info.flags = plugin_flags(hl, flags);
    handle->flags = fi.info.flags & ~O_TRUNC; /* it was for open alone */
    int result = ask(hl, place->path, directory, handle, &fi.info);
    if (result)
        return df_place_result(frame, place, result);
    if (flags & O_TRUNC)
        result = truncate_opened(frame, place);
    if (result) {
        fi.info.fh = handle->fh;
        if (handle->bits & DF_HANDLE_RELEASE)
            df_highlevel_release_handle(hl, place->path, directory, &fi.info);
        return result;
    }
    df_highlevel_settle(frame, place, file, &fi.info);
    return 0;
}

int df_highlevel_open_made(struct df_frame *frame, struct df_place *place, struct df_file *file,
                           int flags)
{
    return open_node(frame, place, file, flags);
}

/* The number of what was made here may not be known yet; an open file shows it, at the latest when
 * it is needed (df_call_know_ino()) if it can be asked through its handle. */
static DF_COLD int learn_ino(struct df_frame *frame, struct df_place *place)
{
    if (!frame->hl->config.use_ino || (frame->hl->checks_names && S_ISREG(place->entry.mode)))
        return 0;
    df_entry_cache_forget(&frame->hl->cache, place->key);
    return df_walk_find(frame, place, true);
}

static DF_FLAT int open_existing(struct df_frame *frame, struct df_place *place,
                                 struct df_file *file, int flags)
{
    struct df_handle *handle = df_handle_of(file);
    int result = DF_LIKELY(place->entry.ino) ? 0 : learn_ino(frame, place);
    mode_t mode = place->entry.mode;

    if (result == 0)
        result = check_type(mode, flags);
    if (result == 0 && !(flags & O_PATH))
        result = df_walk_may(frame, place, df_permission_of_open(flags));
    if (result == 0 && !(flags & O_PATH))
        result = check_noatime(frame, place, flags);
    if (result == 0)
        result = df_highlevel_enter_node(frame, place, handle);
    if (result)
        return result;
    if (flags & O_PATH) {
        file->kind = S_ISDIR(mode)   ? DF_KIND_DIRECTORY
                     : S_ISREG(mode) ? DF_KIND_REGULAR
                                     : DF_KIND_OTHER;
        df_handle_add_bits(handle, DF_HANDLE_PATH);
        file->ino = frame->hl->config.use_ino ? place->entry.ino : handle->node->ino;
    } else {
        result = open_node(frame, place, file, flags);
    }
    return df_highlevel_leave_node(frame, handle, result);
}

static DF_FLAT int open_where(struct df_frame *frame, const struct df_where *given,
                              struct df_file *file, int flags, mode_t mode)
{
    struct df_where where = *given;
    struct df_place place;

    if (flags & O_CREAT)
        df_frame_tells(frame, false);
    if (flags & O_NOFOLLOW || (flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL))
        where.flags |= DF_WHERE_NOFOLLOW;
    if (flags & O_CREAT && df_frame_goes_unseen(frame) && !(where.flags & DF_WHERE_DIRECTORY)) {
        int result = df_highlevel_create_unseen(frame, &where, file, flags, mode);
        if (result != -EEXIST || flags & O_EXCL)
            return result;
    }
    unsigned how = flags & O_CREAT ? DF_WALK_ABSENT | DF_WALK_CREATE : 0;
    int result;
    do {
        place.removed = df_name_turn_removed(&frame->hl->turns);
        result = df_walk(frame, &where, how, &place, NULL);
        if (result == 0)
            result = place.entry.kind == DF_ENTRY_ABSENT
                         ? df_highlevel_create(frame, &place, file, flags, mode, false)
                         : open_existing(frame, &place, file, flags);
        df_walk_end(frame, &place);
    } while (DF_UNLIKELY(result == DF_COME_AGAIN));
    return result;
}

int df_highlevel_open(struct df_fs *fs, struct df_call *call, const struct df_where *where,
                      struct df_file *file, int flags, mode_t mode)
{
    return DF_IN_FRAME(fs, call, open_where(&frame, where, file, flags, mode));
}

/* The high-level API has no such operation; who may not make names here is told so first. */
static int refuse_tmpfile(struct df_frame *frame, const struct df_where *where)
{
    struct df_place place;
    int result = df_walk(frame, where, 0, &place, NULL);

    if (result == 0 && !S_ISDIR(place.entry.mode))
        result = -ENOTDIR;
    if (result == 0)
        result = df_walk_may(frame, &place, W_OK | X_OK);
    df_walk_end(frame, &place);
    return result ? result : -EOPNOTSUPP;
}

int df_highlevel_tmpfile(struct df_fs *fs, struct df_call *call, const struct df_where *where,
                         struct df_file *file, int flags, mode_t mode)
{
    (void)file, (void)flags, (void)mode;
    return DF_IN_FRAME(fs, call, refuse_tmpfile(&frame, where));
}

/* ---- its name ---- */

static ssize_t tell_path(struct df_frame *frame, struct df_open_path *node, char *buf, size_t size)
{
    const char *path = df_frame_hold(frame, node);
    ssize_t result = -ENOENT;

    if (path && !df_open_path_is_hidden(node)) {
        result = (ssize_t)strlen(path);
        if ((size_t)result > size)
            result = -ENAMETOOLONG;
        else
            memcpy(buf, path, (size_t)result);
    }
    df_frame_unhold(frame, node);
    return result;
}

ssize_t df_highlevel_path(struct df_fs *fs, struct df_call *call, struct df_file *file, char *buf,
                          size_t size)
{
    struct df_frame frame;

    df_frame_enter(&frame, df_highlevel_of(fs), call);
    ssize_t result = tell_path(&frame, df_handle_of(file)->node, buf, size);
    df_frame_leave(&frame);
    return result;
}
