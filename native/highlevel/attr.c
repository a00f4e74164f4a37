/*
 * attr.c - asking for what is known of an object: getattr, statx, access, readlink, statfs.
 */
#include <string.h>
#include <sys/statvfs.h>

#include "highlevel/ask.h"
#include "host/statx.h"

/* ---- getattr ---- */

/* The plugin's answer through a file's handle. A hidden file has one link more than its owner
 * thinks. `entry`: what the cache said before; NULL: the answer is not to be kept. */
static DF_FLAT int ask_file(struct df_frame *frame, struct df_file *file,
                            const struct df_entry *entry, struct df_path_hash key, struct stat *st)
{
    struct df_highlevel *hl = frame->hl;
    struct df_open_path *node = df_handle_of(file)->node;
    union df_file_info fi;

    if (!hl->ops.getattr)
        return -ENOSYS;
    memset(st, 0, sizeof(*st));
    df_handle_info(frame, file, &fi);
    const char *path = df_handle_hold(frame, file);
    int result = -ENOENT;
    if (file->kind == DF_KIND_DIRECTORY)
        result = df_answer_error(hl->getattr_at(&fi.info, "", st));
    else if (path || hl->bears_null)
        result = df_answer_error(hl->ops.getattr(path, st, &fi.info));
    df_handle_unhold(frame, file);
    if (result == 0)
        result = df_highlevel_fix_stat(frame, node, NULL, 0, key, st);
    if (result)
        return result;
    atomic_store_explicit(&df_handle_of(file)->vouched, st->st_size, memory_order_relaxed);
    if (df_open_path_is_hidden(node)) {
        if (st->st_nlink > 0)
            st->st_nlink--;
    } else if (entry) {
        df_entry_cache_store(&hl->cache, key, entry->ticket, st,
                             entry->kind == DF_ENTRY_PRESENT ? entry->expiry : 0,
                             df_frame_until(frame, hl->attr_ns));
    }
    return 0;
}

static DF_COLD int stat_by_walk(struct df_frame *frame, const struct df_where *where,
                                struct stat *st)
{
    struct df_place place;

    int result = df_walk(frame, where, DF_WALK_STAT, &place, st);
    df_walk_end(frame, &place);
    return result;
}

/* The object in a directory that is verified. It may be a symlink: of which nothing is said yet
 * when it is to be followed. */
static DF_FLAT int stat_in_directory(struct df_frame *frame, struct df_place *place, bool follow)
{
    struct df_entry_cache *cache = &frame->hl->cache;
    struct df_entry *entry = &place->entry;
    int result = 0;

    df_walk_recall(frame, place);
    if (entry->kind == DF_ENTRY_ABSENT)
        return -ENOENT;
    bool known = entry->kind == DF_ENTRY_PRESENT;
    if (known && S_ISLNK(entry->mode) && follow)
        return 0;
    if (!(known && df_frame_believes(frame, entry) &&
          df_entry_cache_stat(cache, place->key, entry, place->st)))
        result = df_ask(frame, place, NULL);
    return result == 0 && entry->kind == DF_ENTRY_ABSENT ? -ENOENT : result;
}

/* The walk ends at the directory: the functions that walk have returned when the plugin is asked
 * (docs/decisions/013). */
static DF_FLAT int stat_by_path(struct df_frame *frame, const struct df_where *where,
                                struct stat *st)
{
    bool follow = !(where->flags & DF_WHERE_NOFOLLOW), again;
    struct df_place place;

    if (DF_UNLIKELY(where->len == 0 || where->flags & (DF_WHERE_DIRECTORY | DF_WHERE_DOT)))
        return stat_by_walk(frame, where, st);
    int result = df_walk(frame, where, DF_WALK_PARENT, &place, st);
    again = result == 0 && place.special;
    if (DF_LIKELY(result == 0 && !again)) {
        result = stat_in_directory(frame, &place, follow);
        again = result == 0 && follow && S_ISLNK(place.entry.mode);
    }
    df_walk_end(frame, &place);
    return DF_UNLIKELY(again) ? stat_by_walk(frame, where, st) : result;
}

static DF_FLAT int stat_file(struct df_frame *frame, struct df_file *file, struct stat *st)
{
    struct df_highlevel *hl = frame->hl;
    struct df_handle *handle = df_handle_of(file);
    struct df_entry entry, *keep = NULL;

    /* A directory's handle is for readdir (and getattr_at) alone; libfuse never shows it to
     * getattr. */
    bool by_handle =
        file->kind == DF_KIND_REGULAR || (file->kind == DF_KIND_DIRECTORY && hl->getattr_at);
    if (!by_handle || !(handle->bits & DF_HANDLE_PLUGIN))
        return stat_by_path(frame, &(struct df_where){.base = file, .name = ""}, st);
    struct df_path_hash key = {0};
    if (hl->attr_ns) {
        key = df_open_path_key(handle->node);
        df_frame_clock(frame);
        df_entry_cache_look(&hl->cache, key, frame->now, &entry);
        if (!atomic_load(&handle->node->removed) && !df_open_path_is_hidden(handle->node))
            keep = &entry;
        if (keep && df_frame_believes(frame, &entry) &&
            df_entry_cache_stat(&hl->cache, key, &entry, st))
            return 0;
    }
    return ask_file(frame, file, keep, key, st);
}

int df_highlevel_stat_file(struct df_frame *frame, struct df_file *file, struct stat *st)
{
    return stat_file(frame, file, st);
}

bool df_highlevel_kept_size(struct df_frame *frame, struct df_file *file, off_t *size)
{
    struct df_highlevel *hl = frame->hl;
    struct df_handle *handle = df_handle_of(file);
    struct df_path_hash key = df_open_path_key(handle->node);
    struct df_entry entry;
    struct stat st;

    df_frame_clock(frame);
    df_entry_cache_look(&hl->cache, key, frame->now, &entry);
    if (!entry.lasting || atomic_load(&handle->node->removed) ||
        !df_entry_cache_stat(&hl->cache, key, &entry, &st))
        return false;
    *size = st.st_size;
    return true;
}

/* A plain name in an open directory, of which no cache could tell: the plugin is the whole way. */
static DF_FLAT bool is_asked_at_once(const struct df_frame *frame, const struct df_where *where)
{
    return frame->hl->asks_at_once && where->base->kind == DF_KIND_DIRECTORY &&
           df_handle_of(where->base)->bits & DF_HANDLE_PLUGIN &&
           !(where->flags & ~(uint32_t)DF_WHERE_NOFOLLOW) && !df_frame_checks(frame) &&
           !strchr(where->name, '/');
}

static DF_FLAT int ask_at_once(struct df_frame *frame, const struct df_where *where,
                               struct stat *st)
{
    union df_file_info directory;
    int result = df_frame_admit(frame);

    if (DF_UNLIKELY(result))
        return result;
    memset(st, 0, sizeof(*st));
    df_handle_info(frame, where->base, &directory);
    result = df_answer_error(frame->hl->getattr_at(&directory.info, where->name, st));
    if (DF_LIKELY(result == 0))
        result = df_highlevel_fix_stat(frame, NULL, NULL, 0, (struct df_path_hash){0}, st);
    return result;
}

/* What ask_at_once() said is not the end of it: a link to follow, or a name that is missing,
 * perhaps only for the moment in which it is replaced, perhaps against what the cache believes. */
static inline bool needs_walk(const struct df_where *where, int result, const struct stat *st)
{
    bool follow = !(where->flags & DF_WHERE_NOFOLLOW);

    return result == -ENOENT || (result == 0 && follow && S_ISLNK(st->st_mode));
}

static DF_FLAT int stat_where(struct df_frame *frame, const struct df_where *where, struct stat *st)
{
    if (df_where_is_itself(where))
        return stat_file(frame, where->base, st);
    if (where->base && is_asked_at_once(frame, where)) {
        int result = ask_at_once(frame, where, st);
        if (DF_LIKELY(!needs_walk(where, result, st)))
            return result;
    }
    return stat_by_path(frame, where, st);
}

/* As on the node lane: up to twice as old as the plugin allows. */
static void tell_validity(const struct df_highlevel *hl, struct df_call *call, int result)
{
    uint64_t shortest = hl->entry_ns < hl->attr_ns ? hl->entry_ns : hl->attr_ns;

    call->valid_ns = result == 0 ? shortest : result == -ENOENT ? hl->negative_ns : 0;
}

int df_highlevel_getattr(struct df_fs *fs, struct df_call *call, const struct df_where *where,
                         struct stat *st)
{
    int result = DF_IN_FRAME(fs, call, stat_where(&frame, where, st));

    if (DF_UNLIKELY(call->asks_validity))
        tell_validity(df_highlevel_of(fs), call, result);
    return result;
}

/* ---- statx ---- */

/* The plugin's answer, as fuse_lib_statx() shows it: not kept, for it is asked for seldom. `node`:
 * of the open file, or NULL: of `place`. */
static int take_statx(struct df_frame *frame, struct df_open_path *node,
                      const struct df_place *place, const struct statx *answer,
                      struct df_statx *out)
{
    df_statx_take(out, answer);
    out->mask |= STATX_TYPE;
    if (node && df_open_path_is_hidden(node) && out->st.st_nlink > 0)
        out->st.st_nlink--;
    return node ? df_highlevel_fix_stat(frame, node, NULL, 0, df_open_path_key(node), &out->st)
                : df_highlevel_fix_stat(frame, NULL, place->path, place->len, place->key, &out->st);
}

static int statx_by_path(struct df_frame *frame, const struct df_where *where, struct df_statx *out)
{
    struct statx answer = {0};
    struct df_place place;

    int result = df_walk(frame, where, 0, &place, NULL);
    if (result == 0)
        result = df_place_result(frame, &place,
                                 frame->hl->statx(place.path, 0, DF_STATX_MASK, &answer, NULL));
    if (result == 0)
        result = take_statx(frame, NULL, &place, &answer, out);
    df_walk_end(frame, &place);
    return result;
}

static int statx_by_handle(struct df_frame *frame, struct df_file *file, struct df_statx *out)
{
    struct statx answer = {0};
    union df_file_info fi;

    df_handle_info(frame, file, &fi);
    const char *path = df_handle_hold(frame, file);
    int result = path || frame->hl->bears_null
                     ? frame->hl->statx(path, 0, DF_STATX_MASK, &answer, &fi.info)
                     : -ENOENT;
    df_handle_unhold(frame, file);
    return result ? result : take_statx(frame, df_handle_of(file)->node, NULL, &answer, out);
}

static int statx_where(struct df_frame *frame, const struct df_where *where, struct df_statx *out)
{
    struct df_highlevel *hl = frame->hl;
    struct df_file *file = where->len == 0 ? where->base : NULL;
    int result;

    if (!hl->statx || df_highlevel_lacks(hl, DF_MISSING_STATX))
        return DF_PLAIN_STAT;
    if (file && file->kind == DF_KIND_REGULAR && df_handle_of(file)->bits & DF_HANDLE_PLUGIN)
        result = statx_by_handle(frame, file, out);
    else
        result = statx_by_path(frame, where, out);
    if (result != -ENOSYS)
        return result;
    df_highlevel_miss(hl, DF_MISSING_STATX);
    return DF_PLAIN_STAT;
}

int df_highlevel_statx(struct df_fs *fs, struct df_call *call, const struct df_where *where,
                       struct df_statx *out)
{
    return DF_IN_FRAME(fs, call, statx_where(&frame, where, out));
}

/* ---- access, readlink, statfs ---- */

static int access_where(struct df_frame *frame, const struct df_where *where, int mask)
{
    struct df_highlevel *hl = frame->hl;
    struct df_place place;

    int result = df_walk(frame, where, 0, &place, NULL);
    if (result == 0 && hl->check) {
        result = df_walk_permit(frame, &place, mask);
    } else if (result == 0 && hl->ops.access && !df_highlevel_lacks(hl, DF_MISSING_ACCESS)) {
        result = df_place_result(frame, &place, df_answer_error(hl->ops.access(place.path, mask)));
        if (result == -ENOSYS) { /* from now on everything is granted, as by fuse_access() */
            df_highlevel_miss(hl, DF_MISSING_ACCESS);
            result = 0;
        }
    }
    df_walk_end(frame, &place);
    return result;
}

int df_highlevel_access(struct df_fs *fs, struct df_call *call, const struct df_where *where,
                        int mask)
{
    return DF_IN_FRAME(fs, call, access_where(&frame, where, mask));
}

static ssize_t readlink_where(struct df_frame *frame, const struct df_where *where, char *buf,
                              size_t size)
{
    char target[PATH_MAX + 1];
    struct df_place place;

    ssize_t result = df_walk(frame, where, 0, &place, NULL);
    if (result == 0 && !S_ISLNK(place.entry.mode))
        result = -EINVAL;
    if (result == 0)
        result = df_walk_read_link(frame, &place, target);
    df_walk_end(frame, &place);
    if (result < 0)
        return result;
    size = (size_t)result < size ? (size_t)result : size;
    memcpy(buf, target, size);
    return (ssize_t)size;
}

ssize_t df_highlevel_readlink(struct df_fs *fs, struct df_call *call, const struct df_where *where,
                              char *buf, size_t size)
{
    return DF_IN_FRAME(fs, call, readlink_where(&frame, where, buf, size));
}

static int statfs_where(struct df_frame *frame, const struct df_where *where, struct statvfs *out)
{
    const struct fuse_operations *ops = &frame->hl->ops;
    struct df_place place;

    memset(out, 0, sizeof(*out));
    int result = df_walk(frame, where, 0, &place, NULL);
    if (result == 0 && ops->statfs) {
        result = df_place_result(frame, &place, df_answer_error(ops->statfs(place.path, out)));
    } else if (result == 0) { /* libfuse's default */
        out->f_namemax = 255;
        out->f_bsize = 512;
    }
    df_walk_end(frame, &place);
    return result;
}

int df_highlevel_statfs(struct df_fs *fs, struct df_call *call, const struct df_where *where,
                        struct statvfs *out)
{
    return DF_IN_FRAME(fs, call, statfs_where(&frame, where, out));
}
