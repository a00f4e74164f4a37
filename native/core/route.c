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
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/caller.h"
#include "core/check.h"
#include "core/fd.h"
#include "core/file.h"
#include "core/mount.h"

/* Beside DF_ROUTE_*: a leg of two, whose base needs a reference because a call uses one file. */
#define ROUTE_PAIR (1U << 31)

/* ---- scanning ------------------------------------------------------------------------------ */

struct scan {
    const char *text; /* canonical */
    size_t len;
    size_t plain; /* length of the part before the first "..", or len */
    enum df_last last;
    bool up;    /* it has ".." */
    bool slash; /* it ended in '/' or "." */
};

/* 1: "."; 2: ".."; 0: a name. `name` ends at '/' or NUL. */
static inline unsigned dots(const char *name)
{
    if (DF_LIKELY(name[0] != '.'))
        return 0;
    if (name[1] == '/' || name[1] == '\0')
        return 1;
    return name[1] == '.' && (name[2] == '/' || name[2] == '\0') ? 2 : 0;
}

static inline const char *component_end(const char *name)
{
    while (*name != '/' && *name != '\0')
        name++;
    return name;
}

/* Copies the components, each behind one '/', that of a relative path's first one left out. */
static int scan_copy(const char *path, char *buf, struct scan *s)
{
    bool absolute = path[0] == '/';
    char *out = buf;

    if (strnlen(path, PATH_MAX) == PATH_MAX)
        return -ENAMETOOLONG;
    *s = (struct scan){.text = buf, .last = DF_LAST_ROOT};
    for (;;) {
        const char *end;
        unsigned n;

        s->slash = *path == '/';
        while (*path == '/')
            path++;
        if (*path == '\0')
            break;
        end = component_end(path);
        n = dots(path);
        s->last = n == 0 ? DF_LAST_NAME : n == 1 ? DF_LAST_DOT : DF_LAST_DOTDOT;
        if (n == 2 && !s->up) {
            s->up = true;
            s->plain = (size_t)(out - buf);
        }
        if (n != 1) {
            if (absolute || out != buf)
                *out++ = '/';
            out = mempcpy(out, path, (size_t)(end - path));
        }
        path = end;
    }
    if (absolute && out == buf)
        *out++ = '/';
    *out = '\0';
    s->len = (size_t)(out - buf);
    s->plain = s->up ? s->plain : s->len;
    s->slash = s->slash || s->last == DF_LAST_DOT;
    return 0;
}

/* No copy as long as each component begins as one should. `path` is not empty. */
static int scan(const char *path, char *buf, struct scan *s)
{
    const char *name = path + (path[0] == '/');

    *s = (struct scan){.text = path, .last = DF_LAST_NAME};
    for (;;) {
        unsigned n = dots(name);

        if (DF_UNLIKELY(*name == '/' || *name == '\0' || n == 1))
            return scan_copy(path, buf, s);
        if (DF_UNLIKELY(n == 2) && !s->up) {
            s->up = true;
            s->plain = name == path ? 0 : (size_t)(name - 1 - path);
        }
        name = component_end(name);
        if (*name == '\0') {
            s->last = n == 2 ? DF_LAST_DOTDOT : DF_LAST_NAME;
            break;
        }
        name++;
    }
    s->len = (size_t)(name - path);
    s->plain = s->up ? s->plain : s->len;
    return s->len < PATH_MAX ? 0 : -ENAMETOOLONG;
}

/* ---- the real file system's part of a way -------------------------------------------------- */

/* dir and rest, with one '/' between if there is a rest. Either may lie in out. */
static int join(char out[PATH_MAX], const char *dir, size_t dir_len, const char *rest)
{
    size_t rest_len = strlen(rest);
    bool slash = rest_len > 0 && rest[0] != '/';

    if (dir_len + slash + rest_len >= PATH_MAX)
        return -ENAMETOOLONG;
    memmove(out + dir_len + slash, rest, rest_len + 1);
    memmove(out, dir, dir_len);
    if (slash)
        out[dir_len] = '/';
    return 0;
}

/* A walk through real directories: `done` is physical, `rest` is still to go. */
struct walk {
    char done[PATH_MAX];
    char rest[PATH_MAX];
    size_t len; /* of done */
    uint32_t links;
};

static void walk_up(struct walk *w)
{
    while (w->len > 0 && w->done[--w->len] != '/')
        ;
    w->done[w->len] = '\0';
}

/* The symlink at the end of `done` is replaced by its target. */
static int walk_follow(struct walk *w, char target[PATH_MAX], size_t len)
{
    if (++w->links > DF_LINKS_MAX)
        return -ELOOP;
    target[len] = '\0';
    if (target[0] == '/')
        w->len = 0;
    else
        walk_up(w);
    return join(w->rest, target, len, w->rest);
}

/* One component. Returns 1 when `done` has come to a mount, 0 to go on, negative: no way there. */
static int walk_step(struct walk *w, const char *name, size_t len, const char *rest, bool follow)
{
    char target[PATH_MAX];
    ssize_t size;

    if (dots(name) == 2) {
        walk_up(w);
        memmove(w->rest, rest, strlen(rest) + 1);
        return 0;
    }
    if (w->len + 1 + len >= PATH_MAX)
        return -ENAMETOOLONG;
    w->done[w->len] = '/';
    memcpy(w->done + w->len + 1, name, len);
    w->len += 1 + len;
    w->done[w->len] = '\0';
    memmove(w->rest, rest, strlen(rest) + 1);
    if (df_mount_lookup(w->done, w->len))
        return 1;
    size = readlink(w->done, target, sizeof(target) - 1);
    if (size < 0)
        return errno == EINVAL ? 0 : -errno;
    return follow || w->rest[0] ? walk_follow(w, target, (size_t)size) : -ENOENT;
}

/*
 * Follows `path` (absolute, in no mount by its text) through real symlinks and "..". Returns 0 when
 * it came to a mount, with the path to go on with in leg->joined; else DF_NOT_OURS.
 */
static int walk_real(struct df_leg *leg, const char *path)
{
    bool follow = !(leg->flags & (DF_ROUTE_NOFOLLOW | DF_ROUTE_PARENT)) || leg->slash;
    int saved = errno, ret = 0;
    struct walk w;

    w.len = 0;
    w.links = 0;
    strcpy(w.rest, path);
    while (ret == 0) {
        const char *name = w.rest + strspn(w.rest, "/"), *end = component_end(name);

        if (name == end)
            ret = -ENOENT;
        else if (dots(name) == 1)
            memmove(w.rest, end, strlen(end) + 1);
        else
            ret = walk_step(&w, name, (size_t)(end - name), end, follow);
    }
    errno = saved;
    if (ret < 0 || join(leg->joined, w.done, w.len, w.rest) < 0)
        return DF_NOT_OURS;
    return 0;
}

/* The kernel's name of a real directory, its length, 0 for "/"; -1 when none can be used. */
static ssize_t directory_name(int dirfd, char out[PATH_MAX])
{
    char link[sizeof("/proc/self/fd/-2147483648")];
    int saved = errno;
    ssize_t len;

    if (dirfd == AT_FDCWD) {
        len = syscall(SYS_getcwd, out, PATH_MAX) - 1;
    } else {
        snprintf(link, sizeof(link), "/proc/self/fd/%d", dirfd);
        len = readlink(link, out, PATH_MAX - 1);
    }
    errno = saved;
    if (len <= 0 || len >= PATH_MAX || out[0] != '/')
        return -1;
    return len == 1 ? 0 : len;
}

/* ---- routing ------------------------------------------------------------------------------- */

static void set_where(struct df_leg *leg, const struct scan *s, struct df_file *base,
                      const char *name)
{
    uint32_t flags = 0;

    leg->slash = leg->slash || s->slash;
    leg->last = s->last;
    if (leg->flags & DF_ROUTE_NOFOLLOW)
        flags |= DF_WHERE_NOFOLLOW;
    if (leg->flags & DF_ROUTE_PARENT)
        flags |= DF_WHERE_PARENT;
    if (leg->slash)
        flags |= DF_WHERE_DIRECTORY;
    if (s->up)
        flags |= DF_WHERE_DOTDOT;
    leg->where.base = base;
    leg->where.name = name;
    leg->where.len = (uint32_t)(s->text + s->len - name);
    leg->where.flags = flags;
}

/* Pins the entry's mount, unless this call pins one already (of the other leg: the same one, or
 * the answer will be EXDEV). Sleeps out a verdict. False: look it up again. */
static bool pin(struct df_thread *thread, const struct df_mount_entry *entry)
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

static int route_absolute(struct df_thread *thread, struct df_leg *leg, const char *path)
{
    const struct df_mount_entry *entry;
    struct scan s;
    int ret = scan(path, leg->text, &s);

    if (ret < 0)
        return ret;
    do {
        entry = df_mount_lookup(s.text, s.plain);
        if (DF_UNLIKELY(!entry)) {
            if (!df_mount_any() || (!s.up && !thread->follow_real_links))
                return DF_NOT_OURS;
            leg->slash = leg->slash || s.slash;
            ret = walk_real(leg, s.text);
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
    if (leg->where.len == 1 && leg->last != DF_LAST_DOTDOT)
        leg->last = s.last == DF_LAST_DOT ? DF_LAST_DOT : DF_LAST_ROOT;
    return 0;
}

static int route_from_file(struct df_thread *thread, struct df_leg *leg)
{
    struct scan s = {.text = "", .last = DF_LAST_DOT};

    if (!leg->base)
        leg->base =
            leg->flags & ROUTE_PAIR ? df_fd_get(thread, leg->dirfd) : df_fd_use(thread, leg->dirfd);
    if (!leg->base)
        return -EBADF;
    leg->mount = atomic_load_explicit(&leg->base->mount, memory_order_relaxed);
    if (leg->path[0] != '\0') {
        int ret = scan(leg->path, leg->text, &s);

        if (ret < 0)
            return ret;
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

    if (!df_mount_any())
        return false;
    while (dots(name) == 1)
        name += 1 + strspn(name + 1, "/");
    end = component_end(name);
    if (thread->follow_real_links || df_mount_may_begin(name, (size_t)(end - name)))
        return true;
    for (const char *up = strstr(path, ".."); up; up = strstr(up + 1, ".."))
        if ((up == path || up[-1] == '/') && dots(up) == 2)
            return true;
    return false;
}

static int route_from_real(struct df_thread *thread, struct df_leg *leg)
{
    ssize_t len;

    if (!may_lead(thread, leg->path))
        return DF_NOT_OURS;
    len = directory_name(leg->dirfd, leg->joined);
    if (len < 0 || join(leg->joined, leg->joined, (size_t)len, leg->path) < 0)
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
    leg->slash = false;
    leg->left = false;
    leg->base = NULL;
}

static void leave(struct df_leg *leg, const struct df_call *call)
{
    strcpy(leg->joined, call->leave);
    leg->path = leg->joined;
    leg->left = true;
}

static void end_leg(struct df_thread *thread, struct df_leg *leg)
{
    if (leg->base && (leg->flags & ROUTE_PAIR))
        df_file_put(thread, leg->base);
}

/* The kernel goes on: with the caller's own path, or with what a mount has led to. */
static void hand_over(struct df_thread *thread, struct df_leg *leg, int which)
{
    size_t len;

    if (!leg->left)
        return;
    len = strlen(leg->path);
    memcpy(thread->left[which], leg->path, len + 1);
    if (leg->slash && len > 0 && len + 1 < PATH_MAX && leg->path[len - 1] != '/')
        strcpy(thread->left[which] + len, "/");
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
    way->thread = from && to ? df_gate_enter(&error) : NULL;
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
    to = route(way->thread, &way->to);
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
    way->call.caller = df_caller_of(way->thread);
    way->fs = atomic_load_explicit(&way->from.mount->fs, memory_order_acquire);
    return true;
}

/* The directory of an entry is outside: puts the entry's name behind it. */
static bool add_last_name(char leave[PATH_MAX], const char *name)
{
    const char *slash = strrchr(name, '/'), *last = slash ? slash + 1 : name;
    size_t len = strlen(leave);

    if (len + 1 + strlen(last) >= PATH_MAX)
        return false;
    leave[len++] = '/';
    strcpy(leave + len, last);
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
    way->call.caller = df_caller_of(way->thread);
    fs = atomic_load_explicit(&leg->mount->fs, memory_order_acquire);
    if (by_parent)
        ret = df_check_parent(fs, &way->call, &leg->where);
    else
        ret = df_check_entry(fs, &way->call, &leg->where, true, &st);
    if (ret != DF_LEAVE || (by_parent && !add_last_name(way->call.leave, leg->where.name)))
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

    if ((error != ENOENT && error != ENOTDIR) || !df_mount_any() || !(thread = df_gate_thread()))
        return false;
    thread->follow_real_links = true;
    return true;
}

void df_retry_end(void)
{
    struct df_thread *thread = df_gate_thread();

    if (thread)
        thread->follow_real_links = false;
}
