/*
 * walk.c - from a name to a verified path.
 *
 * The plugin gets whole paths, but only below a directory that was verified by its own getattr
 * within the entry time-out: every component a directory, none a symlink (docs/decisions/003).
 * Warm, that is one look at the parent; else the walk goes component by component and asks what the
 * kernel's LOOKUPs would ask, following symlinks and "..".
 *
 * A directory's entry lives no longer than its parent's, so one live entry vouches for the whole
 * way. Other objects' entries have the full time-out: nothing is below them.
 */
#include <string.h>
#include <unistd.h>

#include "highlevel/walk.h"

/* One walk's state: place->buf[0..place->len) is the directory reached; `rest` remains. */
struct walk {
    struct df_frame *frame;
    struct df_place *place;
    const struct df_where *where;
    unsigned how;
    const char *rest;
    bool directory;          /* the last component must be one: trailing slash */
    char expanded[PATH_MAX]; /* what links have made of the name; `rest` points into it then */
};

/* Length of the path of the directory that a path's last component is in. */
static uint32_t parent_of(const char *path, uint32_t len)
{
    const char *slash = memrchr(path, '/', len);

    return slash == path ? 1 : (uint32_t)(slash - path);
}

static size_t component_len(const char *rest)
{
    return (size_t)(strchrnul(rest, '/') - rest);
}

/* Takes slashes and "." off the front of the rest; a final one asks for a directory. */
static void skip_dots(struct walk *walk)
{
    for (;;) {
        const char *start = walk->rest;
        walk->rest += strspn(walk->rest, "/");
        if (walk->rest[0] == '.' && (walk->rest[1] == '/' || walk->rest[1] == '\0'))
            walk->rest++;
        if (walk->rest == start)
            return;
        if (*walk->rest == '\0')
            walk->directory = true;
    }
}

/* Appends a component to the directory reached. */
static int push(struct walk *walk, const char *name, size_t len)
{
    struct df_place *place = walk->place;
    uint32_t slash = place->len > 1;

    if (place->len + slash + len >= sizeof(place->buf))
        return -ENAMETOOLONG;
    place->parent_len = place->len;
    if (slash)
        place->buf[place->len] = '/';
    memcpy(place->buf + place->len + slash, name, len);
    place->len += slash + (uint32_t)len;
    place->buf[place->len] = '\0';
    place->key = df_entry_cache_key(&walk->frame->hl->cache, place->buf, place->len);
    return 0;
}

/* What is left of the name for whoever goes on outside of this mount. */
static const char *left_over(struct walk *walk)
{
    size_t len = strlen(walk->rest);

    if (!walk->directory)
        return walk->rest;
    if (len == 0)
        return ".";
    if (len + 1 >= sizeof(walk->expanded))
        return walk->rest; /* too long in any case */
    memmove(walk->expanded, walk->rest, len);
    memcpy(walk->expanded + len, "/", 2);
    return walk->expanded;
}

static uint64_t verified_key_until(struct df_frame *frame, struct df_path_hash key)
{
    struct df_entry entry;

    df_entry_cache_look(&frame->hl->cache, key, frame->now, &entry);
    return entry.kind == DF_ENTRY_PRESENT && S_ISDIR(entry.mode) ? entry.expiry : 0;
}

/* Until when the directory `path` is known to be one, with all above it. */
static uint64_t verified_until(struct df_frame *frame, const char *path, uint32_t len)
{
    if (len == 1)
        return DF_ENTRY_FOREVER;
    return verified_key_until(frame, df_entry_cache_key(&frame->hl->cache, path, len));
}

/* Goes up one directory, in the path: it has no symlinks. */
static int pop(struct walk *walk)
{
    struct df_place *place = walk->place;

    if (place->len == 1)
        return df_call_leave_up(walk->frame->call, left_over(walk));
    place->len = parent_of(place->buf, place->len);
    place->buf[place->len] = '\0';
    place->parent_expiry = verified_until(walk->frame, place->buf, place->len);
    return 0;
}

/* The link's target goes in front of what is left of the name. */
static int expand(struct walk *walk, const char *target, size_t len)
{
    const char *rest = walk->rest;
    size_t rest_len = strlen(rest);

    if (len + 1 + rest_len >= sizeof(walk->expanded))
        return -ENAMETOOLONG;
    memmove(walk->expanded + len + 1, rest, rest_len + 1);
    memcpy(walk->expanded, target, len);
    walk->expanded[len] = rest_len ? '/' : '\0';
    walk->rest = walk->expanded;
    return 0;
}

ssize_t df_walk_read_link(struct df_frame *frame, const struct df_place *place,
                          char target[PATH_MAX + 1])
{
    struct df_highlevel *hl = frame->hl;

    if (!hl->ops.readlink)
        return -ENOSYS;
    int result = df_answer_error(hl->ops.readlink(place->path, target, PATH_MAX + 1));
    if (result)
        return df_place_result(frame, place, result);
    df_highlevel_accessed(hl, place->key);
    return df_answer_target(target);
}

/* Exchanges the symlink reached for what it says: nothing, as for the kernel, of an empty one. */
static __attribute__((noinline)) int follow(struct walk *walk)
{
    struct df_place *place = walk->place;
    struct df_call *call = walk->frame->call;
    char target[PATH_MAX + 1];

    if (call->links >= DF_LINKS_MAX)
        return -ELOOP;
    ssize_t len = df_walk_read_link(walk->frame, place, target);
    if (len < 0)
        return (int)len;
    if (target[0] == '/')
        return df_call_leave(call, target, (size_t)len, left_over(walk), true);
    call->links++;
    int result = expand(walk, target, (size_t)len);
    place->len = place->parent_len;
    place->buf[place->len] = '\0';
    return result;
}

/* The end of the way, reached without a name of its own: "..", or "." behind a link. */
static int end_at_directory(struct walk *walk)
{
    struct df_place *place = walk->place;

    place->special = true;
    place->parent_len = place->len;
    if (walk->how & DF_WALK_PARENT)
        return 0;
    place->key = df_entry_cache_key(&walk->frame->hl->cache, place->buf, place->len);
    return df_walk_find(walk->frame, place, walk->how & DF_WALK_STAT);
}

/* The last component's object is known: is it what was asked for? */
static int check_last(const struct df_place *place, unsigned how, bool directory)
{
    if (place->entry.kind == DF_ENTRY_PRESENT)
        return directory && !S_ISDIR(place->entry.mode) ? -ENOTDIR : 0;
    if (!(how & DF_WALK_ABSENT))
        return -ENOENT;
    if (!directory)
        return 0;
    return how & DF_WALK_CREATE ? -EISDIR : -ENOENT;
}

/* A name that is found absent may be made: whoever changes the directory from now on shows. */
static inline void note_changes(struct df_frame *frame, unsigned how, struct df_place *place)
{
    if (how & DF_WALK_CREATE)
        place->changes = df_name_turn_changes(&frame->hl->turns, df_place_parent_key(frame, place));
}

/* The name is on the path now: what is there? Returns as step(). */
static int reach(struct walk *walk, bool last)
{
    struct df_place *place = walk->place;

    if (last)
        note_changes(walk->frame, walk->how, place);
    int result = df_walk_look(walk->frame, place, last && walk->how & DF_WALK_STAT);
    if (result)
        return result;
    bool link = place->entry.kind == DF_ENTRY_PRESENT && S_ISLNK(place->entry.mode);
    if (link && (!last || walk->directory || !(walk->where->flags & DF_WHERE_NOFOLLOW))) {
        result = follow(walk);
        return result ? result : 1;
    }
    if (last)
        return check_last(place, walk->how, walk->directory);
    if (place->entry.kind == DF_ENTRY_ABSENT)
        return -ENOENT;
    if (!S_ISDIR(place->entry.mode))
        return -ENOTDIR;
    place->parent_expiry = place->entry.expiry;
    return 1;
}

static int may_search(struct walk *walk)
{
    if (!df_frame_checks(walk->frame))
        return 0;
    return df_walk_may_directory(walk->frame, walk->place->buf, walk->place->len, X_OK);
}

/* One component. Returns 1 to go on, 0 at the end, or an error. */
static int step(struct walk *walk)
{
    const char *name = walk->rest;
    size_t len = component_len(name);

    if (len == 0)
        return end_at_directory(walk);
    int result = may_search(walk);
    if (result)
        return result;
    walk->rest += len;
    skip_dots(walk);
    bool last = *walk->rest == '\0';
    if (len == 2 && name[0] == '.' && name[1] == '.') {
        result = pop(walk);
        return result ? result : 1;
    }
    if (last && walk->directory && walk->how & DF_WALK_CREATE)
        return -EISDIR; /* open_last_lookups() does not even look */
    result = push(walk, name, len);
    if (result || (last && walk->how & DF_WALK_PARENT))
        return result;
    return reach(walk, last);
}

/* Walks `rest` from place->buf[0..place->len) on. With `at_link` that is a symlink to follow first,
 * else a directory. */
static __attribute__((noinline)) int walk_on(struct df_frame *frame, const struct df_where *where,
                                             unsigned how, struct df_place *place, const char *rest,
                                             bool at_link)
{
    struct walk walk;

    walk.frame = frame;
    walk.place = place;
    walk.where = where;
    walk.how = how;
    walk.rest = rest;
    walk.directory = where->flags & DF_WHERE_DIRECTORY;
    place->path = place->buf;
    int result = at_link ? follow(&walk) : 0;
    if (result)
        return result;
    do {
        skip_dots(&walk);
        result = step(&walk);
    } while (result == 1);
    return result;
}

/* ---- the short way ---- */

/* The place's path is whole and its directory verified: what is left is the object itself. */
static int arrive(struct df_frame *frame, const struct df_where *where, unsigned how,
                  struct df_place *place)
{
    bool directory = where->flags & DF_WHERE_DIRECTORY;

    place->key = df_entry_cache_key(&frame->hl->cache, place->path, place->len);
    if (how & DF_WALK_PARENT)
        return 0;
    note_changes(frame, how, place);
    int result = df_walk_look(frame, place, how & DF_WALK_STAT);
    if (DF_UNLIKELY(result))
        return result;
    if (place->entry.kind == DF_ENTRY_PRESENT && S_ISLNK(place->entry.mode) &&
        (directory || !(where->flags & DF_WHERE_NOFOLLOW))) {
        if (place->path != place->buf)
            memcpy(place->buf, place->path, place->len + 1);
        place->directory = NULL;
        return walk_on(frame, where, how, place, "", true);
    }
    return check_last(place, how, directory);
}

static int walk_from_root(struct df_frame *frame, const struct df_where *where, unsigned how,
                          struct df_place *place)
{
    place->path = where->name;
    place->len = where->len;
    place->parent_len = parent_of(where->name, where->len);
    place->special = where->len == 1;
    if (!(where->flags & DF_WHERE_DOTDOT) && !df_frame_checks(frame)) {
        place->parent_expiry = verified_until(frame, where->name, place->parent_len);
        if (place->parent_expiry > frame->now)
            return arrive(frame, where, how, place);
    }
    place->special = false;
    memcpy(place->buf, "/", 2);
    place->len = place->parent_len = 1;
    place->parent_expiry = DF_ENTRY_FOREVER;
    return walk_on(frame, where, how, place, where->name, false);
}

/* The open file itself: an empty name. */
static int stay_at_base(struct df_frame *frame, unsigned how, struct df_place *place)
{
    place->key = df_open_path_key(place->held);
    place->parent_len = parent_of(place->path, place->len);
    place->special = true;
    place->parent_expiry = verified_until(frame, place->path, place->parent_len);
    return df_walk_find(frame, place, how & DF_WALK_STAT);
}

static int walk_from_base(struct df_frame *frame, const struct df_where *where, unsigned how,
                          struct df_place *place)
{
    struct df_open_path *base = df_handle_of(where->base)->node;

    place->held = base;
    place->path = df_frame_hold(frame, base);
    if (!place->path)
        return -ENOENT;
    place->len = base->len;
    uint32_t slash = base->len > 1;
    if (where->len == 0)
        return stay_at_base(frame, how, place);
    if (where->base->kind != DF_KIND_DIRECTORY)
        return -ENOTDIR;
    if (base->len + slash + where->len >= sizeof(place->buf))
        return -ENAMETOOLONG;
    memcpy(place->buf, base->path, base->len + 1);
    place->parent_len = base->len;
    place->parent_expiry =
        base->len == 1 ? DF_ENTRY_FOREVER : verified_key_until(frame, df_open_path_key(base));
    if (where->flags & DF_WHERE_DOTDOT || df_frame_checks(frame) || strchr(where->name, '/'))
        return walk_on(frame, where, how, place, where->name, false);
    place->buf[base->len] = '/';
    memcpy(place->buf + base->len + slash, where->name, where->len + 1);
    place->path = place->buf;
    place->len += slash + where->len;
    if (frame->hl->getattr_at && df_handle_of(where->base)->bits & DF_HANDLE_PLUGIN) {
        place->directory = where->base;
        place->name_len = where->len;
    }
    return arrive(frame, where, how, place);
}

int df_walk(struct df_frame *frame, const struct df_where *where, unsigned how,
            struct df_place *place, struct stat *st)
{
    place->held = NULL;
    place->directory = NULL;
    place->special = false;
    place->asked = false;
    place->st = st ? st : &place->own;
    df_frame_clock(frame);
    int result = df_frame_admit(frame);
    if (DF_UNLIKELY(result))
        return result;
    uint32_t links = frame->call->links;
    result = where->base ? walk_from_base(frame, where, how, place)
                         : walk_from_root(frame, where, how, place);
    if (result != DF_LEAVE)
        frame->call->links = links;
    if (DF_UNLIKELY(where->flags & DF_WHERE_DOT) && result == 0)
        result = df_walk_may(frame, place, X_OK);
    return result;
}

void df_walk_end(struct df_frame *frame, struct df_place *place)
{
    if (place->held)
        df_frame_unhold(frame, place->held);
    place->held = NULL;
}

void df_walk_let_go(struct df_frame *frame, struct df_place *place)
{
    if (place->held && place->path && place->path != place->buf) {
        memcpy(place->buf, place->path, place->len + 1);
        place->path = place->buf;
    }
    place->directory = NULL; /* by its path from now on */
    df_walk_end(frame, place);
}
