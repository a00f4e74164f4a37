/*
 * walk.c - the real file system's part of a way, step by step: symlinks and "..". What the kernel
 * is asked is in walk_kernel.c, and in native/ways/walk.c for programs without libc.
 */
#include "core/walk.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "core/call.h"
#include "core/scan.h"
#include "core/table.h"

/* dir and rest, with one '/' between if there is a rest. Either may lie in out. */
int df_walk_join(char out[PATH_MAX], const char *dir, size_t dir_len, const char *rest)
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

int df_walk_absolute(int dirfd, const char *path, char out[PATH_MAX])
{
    ssize_t len = path[0] == '/' ? 0 : df_walk_directory_name(dirfd, out);

    return len < 0 ? -ENOENT : df_walk_join(out, out, (size_t)len, path);
}

int df_walk_real_parent(int dirfd, const char *path)
{
    char parent[PATH_MAX];
    size_t len = strnlen(path, PATH_MAX);

    if (len == PATH_MAX)
        return -ENAMETOOLONG;
    while (len > 1 && path[len - 1] == '/') /* "/" is its own */
        len--;
    while (len > 0 && path[len - 1] != '/')
        len--;
    memcpy(parent, path, len);
    strcpy(parent + len, len + 1 < PATH_MAX ? "." : "");
    return df_walk_real_entry(dirfd, parent, 0);
}

int df_walk_down(char done[PATH_MAX], size_t *len, const char *name, size_t name_len)
{
    if (*len + 1 + name_len >= PATH_MAX)
        return -ENAMETOOLONG;
    done[*len] = '/';
    memcpy(done + *len + 1, name, name_len);
    *len += 1 + name_len;
    done[*len] = '\0';
    return 0;
}

void df_walk_up(char done[PATH_MAX], size_t *len)
{
    while (*len > 0 && done[--*len] != '/')
        ;
    done[*len] = '\0';
}

/* A walk through real directories: `done` is physical, `rest` is still to go. */
struct walk {
    char done[PATH_MAX];
    char rest[PATH_MAX];
    size_t len; /* of done */
    uint32_t links;
};

/* The symlink at the end of `done` is replaced by its target. */
static int walk_follow(struct walk *w, char target[PATH_MAX], size_t len)
{
    if (++w->links > DF_LINKS_MAX)
        return -ELOOP;
    target[len] = '\0';
    if (target[0] == '/')
        w->len = 0;
    else
        df_walk_up(w->done, &w->len);
    return df_walk_join(w->rest, target, len, w->rest);
}

/* ".." is of a directory that may be searched; one above a mountpoint need not be on disk. */
static int walk_check(struct walk *w)
{
    int ret = df_walk_down(w->done, &w->len, ".", 1);

    if (ret < 0)
        return ret;
    ret = df_walk_real_entry(AT_FDCWD, w->done, 0);
    df_walk_up(w->done, &w->len);
    return ret == -ENOENT && df_table_below(w->done, w->len) ? 0 : ret;
}

/* One component. Returns 1 when `done` has come to a mount, 0 to go on, negative: no way there. */
static int walk_step(struct walk *w, const char *name, size_t len, const char *rest, bool follow)
{
    char target[PATH_MAX];
    ssize_t size;

    if (df_scan_dots(name) == 2) {
        size = walk_check(w);
        df_walk_up(w->done, &w->len);
        memmove(w->rest, rest, strlen(rest) + 1);
        return (int)size;
    }
    if (df_walk_down(w->done, &w->len, name, len) < 0)
        return -ENAMETOOLONG;
    memmove(w->rest, rest, strlen(rest) + 1);
    if (df_table_lookup(w->done, w->len))
        return 1;
    size = df_walk_link(w->done, target);
    if (size == -ENOENT && df_table_below(w->done, w->len)) /* it need not be on disk */
        return 0;
    if (size < 0)
        return size == -EINVAL ? 0 : (int)size;
    return follow || w->rest[0] ? walk_follow(w, target, (size_t)size) : 0;
}

/* Returns 1 when it has come to a mount, 0 at the path's end, negative: no way there. */
static int walk(struct walk *w, const char *path, bool follow, uint32_t links)
{
    int ret = 0;

    w->len = 0;
    w->links = links;
    strcpy(w->rest, path);
    while (ret == 0) {
        const char *name = w->rest + strspn(w->rest, "/"), *end = df_scan_end(name);

        if (name == end)
            return 0;
        if (df_scan_dots(name) == 1)
            memmove(w->rest, end, strlen(end) + 1);
        else
            ret = walk_step(w, name, (size_t)(end - name), end, follow);
    }
    return ret;
}

int df_walk_real(const char *path, bool follow, char out[PATH_MAX], uint32_t *links)
{
    struct walk w;
    int ret = walk(&w, path, follow, *links);

    if (ret == -ELOOP)
        return ret;
    if (ret <= 0 || df_walk_join(out, w.done, w.len, w.rest) < 0)
        return DF_NOT_OURS;
    *links = w.links;
    return 0;
}

ssize_t df_walk_out(const char *path, bool follow, char out[PATH_MAX])
{
    struct walk w;

    if (walk(&w, path, follow, 0) != 0)
        return -1;
    memcpy(out, w.done, w.len);
    strcpy(out + w.len, w.len == 0 ? "/" : "");
    return w.len == 0 ? 1 : (ssize_t)w.len;
}
