/*
 * route.c - from a path to the mount that serves it.
 *
 * A path is scanned once. When it is canonical (no "//", no ".", no trailing slash) the name in the
 * mount is the caller's own string behind the mountpoint; else it is copied. Then the longest
 * prefix decides.
 *
 * Relative paths ask the kernel for the directory's name only when they could lead into a mount:
 * when their first component occurs in a mountpoint, when they contain "..", or when a mountpoint
 * exists on disk (then the working directory may lie below it).
 *
 * Not seen: a real symlink that leads to a mountpoint which also exists on disk. There the kernel
 * finds the covered directory and never asks us (docs/compat.md).
 */
#include "core/route.h"

#include <errno.h>
#include <string.h>

#include "core/caller.h"
#include "core/check.h"
#include "core/fd.h"
#include "core/file.h"
#include "core/mount.h"
#include "core/scan.h"
#include "core/table.h"
#include "core/walk.h"

/* Beside DF_ROUTE_*: a leg of two, whose base needs a reference because a call uses one file. */
#define ROUTE_PAIR (1U << 31)

/* ---- routing ------------------------------------------------------------------------------- */

static void set_where(struct df_leg *leg, const struct df_scan *s, struct df_file *base,
                      const char *name)
{
    uint32_t flags = 0;

    leg->slash = leg->slash || s->slash;
    leg->last = leg->walked != DF_LAST_NAME ? leg->walked : s->last;
    if (leg->flags & DF_ROUTE_NOFOLLOW)
        flags |= DF_WHERE_NOFOLLOW;
    if (leg->flags & DF_ROUTE_PARENT)
        flags |= DF_WHERE_PARENT;
    if (leg->slash)
        flags |= DF_WHERE_DIRECTORY;
    if (s->up)
        flags |= DF_WHERE_DOTDOT;
    if (s->last == DF_LAST_DOT && leg->path[0] != '\0')
        flags |= DF_WHERE_DOT;
    leg->where.base = base;
    leg->where.name = name;
    leg->where.len = (uint32_t)(s->text + s->len - name);
    leg->where.flags = flags;
}

/* Pins the entry's mount, unless this call pins one already (of the other leg: the same one, or
 * the answer will be EXDEV). Sleeps out a verdict. False: look it up again. */
static bool pin(struct df_thread *thread, const struct df_table_entry *entry)
{
    int id = entry->id;

    if (atomic_load_explicit(&thread->levels[thread->depth - 1].pin, memory_order_relaxed))
        return true;
    if (DF_LIKELY(df_gate_pin(thread, entry->mount, id)))
        return true;
    df_gate_sleep(thread);
    df_mount_await_verdict(id);
    df_gate_awake(thread);
    return false;
}

/* Is a final symlink followed? One with a slash behind it always is, but where it is an entry to
 * make, remove or move; and one with "." behind it is no last component. */
static bool follows(const struct df_leg *leg)
{
    if (leg->flags & DF_ROUTE_PARENT)
        return leg->walked != DF_LAST_NAME;
    return leg->slash || !(leg->flags & DF_ROUTE_NOFOLLOW);
}

/* The path may go on elsewhere without its final "." (a symlink before it leaves the mount) or
 * ".." (it leads above the mount); it stays one that makes, removes and moves nothing. */
static void note_walked(struct df_leg *leg, const struct df_scan *s)
{
    if (s->last == DF_LAST_DOT || s->last == DF_LAST_DOTDOT)
        leg->walked = s->last;
}

static int route_absolute(struct df_thread *thread, struct df_leg *leg, const char *path)
{
    const struct df_table_entry *entry;
    struct df_scan s;
    int ret = df_scan(path, leg->text, &s);

    if (ret < 0)
        return ret;
    note_walked(leg, &s);
    do {
        entry = df_table_lookup(s.text, s.plain);
        if (DF_UNLIKELY(!entry)) {
            if (!df_table_any() || (!s.up && !thread->follow_real_links))
                return DF_NOT_OURS;
            leg->slash = leg->slash || s.slash;
            ret = df_walk_real(s.text, follows(leg), leg->joined, &leg->links);
            return ret < 0 ? ret : route_absolute(thread, leg, leg->joined);
        }
    } while (DF_UNLIKELY(!pin(thread, entry)));

    leg->mount = entry->mount;
    if (s.len > entry->point_len) {
        set_where(leg, &s, NULL, s.text + entry->point_len);
    } else {
        s.text = "/";
        s.len = 1;
        set_where(leg, &s, NULL, s.text);
    }
    if (leg->where.len == 1 && leg->last == DF_LAST_NAME)
        leg->last = DF_LAST_ROOT;
    return 0;
}

static int route_from_file(struct df_thread *thread, struct df_leg *leg)
{
    struct df_scan s = {.text = "", .last = DF_LAST_DOT};

    if (!leg->base)
        leg->base =
            leg->flags & ROUTE_PAIR ? df_fd_get(thread, leg->dirfd) : df_fd_use(thread, leg->dirfd);
    if (!leg->base)
        return -EBADF;
    leg->mount = atomic_load_explicit(&leg->base->mount, memory_order_relaxed);
    if (leg->path[0] != '\0') {
        int ret = df_scan(leg->path, leg->text, &s);

        if (ret < 0)
            return ret;
        note_walked(leg, &s);
        if (leg->base->kind != DF_KIND_DIRECTORY)
            return -ENOTDIR;
    }
    set_where(leg, &s, leg->base, s.text);
    return 0;
}

/* Could the relative path, from a real directory, lead into a mount? */
static bool may_lead(const struct df_thread *thread, const char *path)
{
    const char *name = path, *end;

    if (!df_table_any())
        return false;
    while (df_scan_dots(name) == 1)
        name += 1 + strspn(name + 1, "/");
    end = df_scan_end(name);
    if (thread->follow_real_links || df_table_may_begin(name, (size_t)(end - name)))
        return true;
    for (const char *up = strstr(path, ".."); up; up = strstr(up + 1, ".."))
        if ((up == path || up[-1] == '/') && df_scan_dots(up) == 2)
            return true;
    return false;
}

static int route_from_real(struct df_thread *thread, struct df_leg *leg)
{
    if (!may_lead(thread, leg->path) || df_walk_absolute(leg->dirfd, leg->path, leg->joined) < 0)
        return DF_NOT_OURS;
    return route_absolute(thread, leg, leg->joined);
}

static int route(struct df_thread *thread, struct df_leg *leg)
{
    if (DF_LIKELY(leg->path[0] == '/'))
        return route_absolute(thread, leg, leg->path);
    if (leg->path[0] == '\0' && !(leg->flags & DF_ROUTE_EMPTY))
        return -ENOENT;
    if (df_fd_ours(leg->dirfd))
        return route_from_file(thread, leg);
    return leg->path[0] == '\0' ? DF_NOT_OURS : route_from_real(thread, leg);
}

/* ---- legs ---------------------------------------------------------------------------------- */

static void start_leg(struct df_leg *leg, int dirfd, const char *path, unsigned flags)
{
    leg->mount = NULL;
    leg->dirfd = dirfd;
    leg->path = path;
    leg->flags = flags;
    leg->links = 0;
    leg->walked = DF_LAST_NAME;
    leg->slash = false;
    leg->left = false;
    leg->base = NULL;
}

static void leave(struct df_leg *leg, const struct df_call *call)
{
    strcpy(leg->joined, call->leave);
    leg->links = call->links;
    leg->path = leg->joined;
    leg->left = true;
}

static void end_leg(struct df_thread *thread, struct df_leg *leg)
{
    if (leg->base && (leg->flags & ROUTE_PAIR))
        df_file_put(thread, leg->base);
}

/* The kernel goes on: with the caller's own path, or with what a mount has led to. A final ".."
 * that is gone by then is handed over as ".", which is refused as well. */
static void hand_over(struct df_thread *thread, struct df_leg *leg, int which)
{
    const char *end = leg->walked != DF_LAST_NAME ? "/." : leg->slash ? "/" : "";
    size_t len;

    if (!leg->left)
        return;
    len = strlen(leg->path);
    memcpy(thread->left[which], leg->path, len + 1);
    if (len > 0 && len + strlen(end) < PATH_MAX)
        strcpy(thread->left[which] + len, end);
    thread->left_paths |= (uint8_t)(1 << which);
}

/* ---- one path ------------------------------------------------------------------------------ */

ssize_t df_way_begin(struct df_way *way, int dirfd, const char *path, unsigned flags)
{
    int error = -EFAULT;

    way->fs = NULL;
    way->thread = DF_LIKELY(path) ? df_gate_enter(&error) : NULL;
    if (DF_UNLIKELY(!way->thread))
        return error;
    way->thread->left_paths = 0;
    start_leg(&way->leg, dirfd, path, flags);
    df_call_start(&way->call, way->thread, NULL);
    return 0;
}

bool df_way_step(struct df_way *way, ssize_t *ret)
{
    if (*ret == DF_PENDING)
        *ret = df_call_wait(&way->call);
    if (*ret == DF_LEAVE) {
        leave(&way->leg, &way->call);
        df_gate_unpin(way->thread);
        way->fs = NULL;
    } else if (way->fs || *ret < 0) {
        return false;
    }
    *ret = route(way->thread, &way->leg);
    if (*ret < 0) {
        if (*ret == DF_NOT_OURS)
            hand_over(way->thread, &way->leg, 0);
        return false;
    }
    way->call.mount = way->leg.mount;
    way->call.links = way->leg.links;
    way->call.caller = df_caller_of(way->thread); /* routing may have slept outside the gate */
    way->fs = atomic_load_explicit(&way->leg.mount->fs, memory_order_acquire);
    return true;
}

ssize_t df_way_end(struct df_way *way, ssize_t ret)
{
    if (DF_LIKELY(way->thread)) {
        end_leg(way->thread, &way->leg);
        df_gate_leave(way->thread);
    }
    return ret;
}

/* ---- two paths ----------------------------------------------------------------------------- */

ssize_t df_way_pair_begin(struct df_way_pair *way, int from_dirfd, const char *from,
                          unsigned from_flags, int to_dirfd, const char *to, unsigned to_flags)
{
    int error = -EFAULT;

    way->fs = NULL;
    way->thread = from ? df_gate_enter(&error) : NULL;
    if (!way->thread)
        return error;
    way->thread->left_paths = 0;
    start_leg(&way->from, from_dirfd, from, from_flags | ROUTE_PAIR);
    start_leg(&way->to, to_dirfd, to, to_flags | ROUTE_PAIR);
    df_call_start(&way->call, way->thread, NULL);
    return 0;
}

static ssize_t route_pair(struct df_way_pair *way)
{
    int from = route(way->thread, &way->from), to;

    if (from < 0 && from != DF_NOT_OURS)
        return from;
    to = way->to.path ? route(way->thread, &way->to) : -EFAULT;
    if (to < 0 && to != DF_NOT_OURS)
        return to;
    if (from == DF_NOT_OURS && to == DF_NOT_OURS) {
        hand_over(way->thread, &way->from, 0);
        hand_over(way->thread, &way->to, 1);
        return DF_NOT_OURS;
    }
    return from < 0 || to < 0 || way->from.mount != way->to.mount ? -EXDEV : 0;
}

bool df_way_pair_next(struct df_way_pair *way, ssize_t *ret)
{
    if (*ret == DF_PENDING)
        *ret = df_call_wait(&way->call);
    if (*ret == DF_LEAVE) {
        leave(way->call.leave_second ? &way->to : &way->from, &way->call);
        way->call.leave_second = false;
        df_gate_unpin(way->thread);
        way->fs = NULL;
    } else if (way->fs || *ret < 0) {
        return false;
    }
    *ret = route_pair(way);
    if (*ret < 0)
        return false;
    way->call.mount = way->from.mount;
    way->call.links = way->from.links;
    way->call.second_links = way->to.links;
    way->call.caller = df_caller_of(way->thread);
    way->fs = atomic_load_explicit(&way->from.mount->fs, memory_order_acquire);
    return true;
}

/* Whether the way of one leg leaves its mount; the leg then goes on outside. */
static bool leg_leaves(struct df_way_pair *way, struct df_leg *leg)
{
    const bool by_parent = leg->flags & (DF_ROUTE_PARENT | DF_ROUTE_NOFOLLOW);
    struct df_fs *fs;
    struct stat st;
    ssize_t ret;

    df_gate_unpin(way->thread);
    if (route(way->thread, leg) < 0)
        return false;
    way->call.mount = leg->mount;
    way->call.links = leg->links;
    way->call.caller = df_caller_of(way->thread);
    fs = atomic_load_explicit(&leg->mount->fs, memory_order_acquire);
    if (by_parent)
        ret = df_check_parent(fs, &way->call, &leg->where);
    else
        ret = df_check_entry(fs, &way->call, &leg->where, true, &st);
    if (ret != DF_LEAVE)
        return false;
    leave(leg, &way->call);
    return true;
}

bool df_way_pair_settle(struct df_way_pair *way, ssize_t *ret)
{
    if (way->fs || *ret != -EXDEV)
        return false;
    if (!leg_leaves(way, &way->from) && !leg_leaves(way, &way->to))
        return false;
    df_gate_unpin(way->thread);
    *ret = 0;
    return true;
}

ssize_t df_way_pair_end(struct df_way_pair *way, ssize_t ret)
{
    if (way->thread) {
        end_leg(way->thread, &way->from);
        end_leg(way->thread, &way->to);
        df_gate_leave(way->thread);
    }
    return ret;
}

/* ---- for doors ----------------------------------------------------------------------------- */

const char *df_left_path(int which)
{
    struct df_thread *thread = df_gate_thread();

    return thread && (thread->left_paths >> which & 1) ? thread->left[which] : NULL;
}

bool df_retry_begin(int error)
{
    struct df_thread *thread;

    if ((error != ENOENT && error != ENOTDIR) || !df_table_any() || !(thread = df_gate_thread()))
        return false;
    thread->follow_real_links++;
    return true;
}

void df_retry_end(void)
{
    struct df_thread *thread = df_gate_thread();

    if (thread)
        thread->follow_real_links--;
}
