/*
 * walk.c - a walk step by step: what the cache does not know is asked, symlinks are followed. The
 * rules are in walk.h.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "nodes/link.h"
#include "nodes/lookup.h"
#include "nodes/walk_warm.h"

#define TRIES_MAX 100 /* a walk that meets that many directories being forgotten gives up */

/* ---- a directory that is used -------------------------------------------------------------- */

void df_node_walk_unlock(struct df_node_walk *walk)
{
    df_node_held_give(&walk->held);
    df_node_put(walk->nodes, walk->dir);
}

/* References and locks the directory of the walk, which it had a bare pointer to. Returns as
 * df_node_walk_lock(). */
static int lock_dir(struct df_node_walk *walk, bool shared)
{
    struct df_node *dir = walk->dir;
    int result;

    if (!df_node_try_hold(dir))
        return DF_NODE_COLD;
    result = df_node_held_take(&walk->held, walk->nodes, &dir->lock, shared);
    if (DF_UNLIKELY(result < 0)) {
        df_node_put(walk->nodes, dir);
        return result;
    }
    result = df_node_dir_error(dir);
    if (DF_UNLIKELY(result < 0))
        df_node_walk_unlock(walk);
    return result;
}

int df_node_walk_lock(struct df_node_walk *walk)
{
    return lock_dir(walk, false);
}

/* ---- one step ------------------------------------------------------------------------------ */

/* Looks the NUL-terminated name up, with the directory locked. */
static int ask(struct df_node_walk *walk, const struct df_node_name *name, unsigned how,
               struct df_node **child)
{
    struct df_node_drops drops;
    struct df_node_search search = {
        .nodes = walk->nodes, .dir = walk->dir, .name = name, .drops = &drops};
    int result = lock_dir(walk, how & DF_LOOKUP_SHARED);

    *child = NULL;
    if (result != 0)
        return result;
    df_node_cache_begin_drops(&drops);
    result = df_node_lookup(&search, walk->call, how);
    if (search.entry)
        *child = atomic_load_explicit(&search.entry->node, memory_order_relaxed);
    df_node_walk_unlock(walk);
    df_node_cache_drop(walk->nodes, &drops);
    return result;
}

/* Asks. The child is readable until the call ends. */
static int step_cold(struct df_node_walk *walk, const struct df_node_name *name,
                     struct df_node **child)
{
    unsigned how =
        (walk->nodes->parallel ? DF_LOOKUP_SHARED : 0) | (walk->revalidate ? DF_LOOKUP_FRESH : 0);
    struct df_node_name terminated = *name;
    char text[PATH_MAX];
    int result;

    memcpy(text, name->text, name->len);
    text[name->len] = '\0';
    terminated.text = text;
    result = ask(walk, &terminated, how, child);
    if (result == DF_LOOKUP_AGAIN)
        result = ask(walk, &terminated, (how & ~DF_LOOKUP_SHARED) | DF_LOOKUP_REPLACE, child);
    assert(result != DF_LOOKUP_AGAIN);
    return result == 0 && !*child ? -ENOENT : result;
}

static int step(struct df_node_walk *walk, const struct df_node_name *name, struct df_node **child)
{
    int result = DF_NODE_COLD;

    if (!walk->revalidate)
        result = df_node_walk_peek_at(walk, name, child);
    return result == DF_NODE_COLD ? step_cold(walk, name, child) : result;
}

/* ---- leaving the mount --------------------------------------------------------------------- */

/* What remains of the name, with the slash that the core took off its end. */
static int rest_of(const struct df_node_walk *walk, char rest[PATH_MAX])
{
    size_t len = (size_t)(walk->end - walk->at);

    if (len + 2 > PATH_MAX)
        return -ENAMETOOLONG;
    memcpy(rest, walk->at, len);
    if (walk->must_be_dir)
        rest[len++] = '/';
    rest[len] = '\0';
    return 0;
}

static int leave(struct df_node_walk *walk, const char *target, size_t len)
{
    char rest[PATH_MAX];
    int result = rest_of(walk, rest);

    if (result < 0)
        return result;
    walk->call->links = walk->links;
    return df_call_leave(walk->call, target, len, rest, true);
}

static int leave_up(struct df_node_walk *walk)
{
    char rest[PATH_MAX];
    int result = rest_of(walk, rest);

    if (result < 0)
        return result;
    walk->call->links = walk->links;
    return df_call_leave_up(walk->call, rest);
}

/* ---- symlinks ------------------------------------------------------------------------------ */

/* The walk goes on with the target of a link in its directory, and what remains behind that. What
 * remains is at the end of walk->text already if this is not the first link. */
static int expand(struct df_node_walk *walk, const char *target, size_t len)
{
    size_t rest = (size_t)(walk->end - walk->at);
    char *end = walk->text + sizeof(walk->text) - 1;

    if (++walk->links > DF_LINKS_MAX)
        return -ELOOP;
    if (len + rest >= sizeof(walk->text))
        return -ENAMETOOLONG;
    if (walk->end != end)
        memcpy(end - rest, walk->at, rest);
    memcpy(end - rest - len, target, len);
    *end = '\0';
    walk->at = end - rest - len;
    walk->end = end;
    return 0;
}

/* Reads the link, which the caller holds. An empty one leads to the directory that it is in, as for
 * the kernel. */
static int follow(struct df_node_walk *walk, struct df_node *link)
{
    char target[PATH_MAX];
    ssize_t len = df_node_link_read(walk->nodes, walk->call, link, target, sizeof(target) - 1);

    if (len < 0)
        return (int)len;
    if (len > 0 && target[0] == '/')
        return leave(walk, target, (size_t)len);
    return expand(walk, target, (size_t)len);
}

static int hold_and_follow(struct df_node_walk *walk, struct df_node *link)
{
    int result;

    if (!df_node_try_hold(link))
        return DF_NODE_COLD;
    result = follow(walk, link);
    df_node_put(walk->nodes, link);
    return result;
}

/* ---- the walk to the last component -------------------------------------------------------- */

static int check_search(struct df_node_walk *walk)
{
    const struct df_node_source *source = walk->nodes->source;

    if (!df_node_is_dir(walk->dir))
        return -ENOTDIR;
    return source->search ? source->search(walk->nodes, walk->call, walk->dir) : 0;
}

static bool is_dotdot(const char *name, size_t len)
{
    return len == 2 && name[0] == '.' && name[1] == '.';
}

static int up(struct df_node_walk *walk)
{
    if (walk->dir == walk->nodes->root)
        return leave_up(walk);
    walk->dir = atomic_load_explicit(&walk->dir->parent, memory_order_acquire);
    return 0;
}

/* A component with more behind it. */
static int pass_through(struct df_node_walk *walk, const char *name, size_t len)
{
    struct df_node_name component;
    struct df_node *child;
    int result;

    if (is_dotdot(name, len))
        return up(walk);
    if (len == 1 && name[0] == '.')
        return 0;
    component = df_node_cache_name(walk->nodes, name, len);
    result = step(walk, &component, &child);
    if (result != 0)
        return result;
    if (S_ISLNK(child->type))
        return hold_and_follow(walk, child);
    if (!df_node_is_dir(child))
        return -ENOTDIR;
    walk->dir = child;
    return 0;
}

/* The name ends here, so it is NUL-terminated, but for slashes in a symlink's target, which is in
 * walk->text. */
static void end_with(struct df_node_walk *walk, const char *name, size_t len)
{
    if (name[len] != '\0')
        walk->text[name + len - walk->text] = '\0';
    walk->kind = DF_END_NAME;
    if (is_dotdot(name, len))
        walk->kind = DF_END_DOTDOT;
    else if (len == 1 && name[0] == '.')
        walk->kind = DF_END_DOT;
    else
        walk->last = df_node_cache_name(walk->nodes, name, len);
}

static size_t slashes(const char *at, const char *end)
{
    size_t count = 0;

    while (at + count < end && at[count] == '/')
        count++;
    return count;
}

/* Goes on from walk->dir with walk->at. Keeps `last` valid: it points into the name or walk->text.
 */
static int run(struct df_node_walk *walk)
{
    for (;;) {
        const char *name = walk->at + slashes(walk->at, walk->end);
        size_t len = df_node_component_len(name, (size_t)(walk->end - name));
        size_t behind = slashes(name + len, walk->end);
        int result;

        if (len == 0) {
            walk->kind = DF_END_ROOT;
            return 0;
        }
        result = check_search(walk);
        if (result != 0)
            return result;
        walk->at = name + len;
        if (walk->at + behind == walk->end) {
            walk->at = walk->end;
            walk->must_be_dir |= behind > 0;
            end_with(walk, name, len);
            return 0;
        }
        result = pass_through(walk, name, len);
        if (result != 0)
            return result;
    }
}

static int begin(struct df_node_walk *walk)
{
    const struct df_where *where = walk->where;

    walk->must_be_dir = where->flags & DF_WHERE_DIRECTORY;
    walk->dir = where->base ? df_node_of_file(where->base) : walk->nodes->root;
    walk->at = where->name;
    walk->end = where->name + where->len;
    walk->links = walk->call->links;
    return df_node_walk_known(walk) ? 0 : run(walk);
}

int df_node_walk_again(struct df_node_walk *walk)
{
    int result;

    do {
        if (++walk->tries > TRIES_MAX)
            return -ESTALE;
        result = begin(walk);
    } while (result == DF_NODE_COLD);
    return result;
}

int df_node_walk_parent(struct df_node_walk *walk, struct df_nodes *nodes, struct df_call *call,
                        const struct df_where *where, bool revalidate)
{
    int result;

    walk->nodes = nodes;
    walk->call = call;
    walk->where = where;
    walk->revalidate = revalidate;
    walk->tries = 0;
    walk->clock = (struct df_node_clock){0};
    result = begin(walk);
    return result == DF_NODE_COLD ? df_node_walk_again(walk) : result;
}

int df_node_walk_follow(struct df_node_walk *walk, struct df_node *link)
{
    int result = follow(walk, link);

    if (result == 0)
        result = run(walk);
    return result == DF_NODE_COLD ? df_node_walk_again(walk) : result;
}

/* ---- the last component -------------------------------------------------------------------- */

static bool follows(const struct df_node_walk *walk)
{
    return walk->must_be_dir || !(walk->where->flags & DF_WHERE_NOFOLLOW);
}

int df_node_walk_last(struct df_node_walk *walk, struct df_node **node)
{
    for (;;) {
        int result = 0;

        *node = walk->dir;
        if (walk->kind == DF_END_DOTDOT) {
            result = up(walk);
            *node = walk->dir;
        } else if (walk->kind == DF_END_NAME) {
            result = step(walk, &walk->last, node);
            if (DF_UNLIKELY(result == -ENOENT))
                walk->call->absent = df_changes_name(walk->last.hash);
        }
        if (result != 0)
            return result;
        if (!S_ISLNK((*node)->type) || !follows(walk))
            return walk->must_be_dir && !df_node_is_dir(*node) ? -ENOTDIR : 0;
        result = hold_and_follow(walk, *node);
        if (result == 0)
            result = run(walk);
        if (result != 0)
            return result;
    }
}
