/*
 * walk.c - walking a name, warm and cold. The rules are in walk.h.
 */
#include "nodes/walk.h"

#include <errno.h>
#include <string.h>

#include "nodes/link.h"
#include "nodes/lookup.h"

#define TRIES_MAX 100 /* a walk that meets that many directories being forgotten gives up */

/* Bytes up to the next slash; eight at a time where that does not read past the end. */
static inline size_t component_len(const char *at, size_t left)
{
    size_t len = 0;

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    for (; left - len >= 8; len += 8) {
        const uint64_t ones = UINT64_C(0x0101010101010101);
        uint64_t word, zero;

        memcpy(&word, at + len, 8);
        word ^= ones * '/';
        zero = (word - ones) & ~word & (ones << 7);
        if (zero)
            return len + ((size_t)__builtin_ctzll(zero) >> 3);
    }
#endif
    while (len < left && at[len] != '/')
        len++;
    return len;
}

/* A node that came with READDIRPLUS is used for the first time: it was worth it. */
static void used_after_plus(struct df_node *dir, struct df_node *node)
{
    df_node_clear(node, DF_NODE_VIA_PLUS);
    df_node_set(dir, DF_NODE_WANT_PLUS);
}

/* What the cache says for certain about the name in dir: 0 and the child, -ENOENT or COLD. */
static inline int peek(struct df_node *dir, const struct df_node_name *name,
                       struct df_node_clock *clock, struct df_node **child)
{
    struct df_node_entry *entry = df_node_cache_find(dir, name);
    struct df_node *node;

    if (DF_UNLIKELY(!entry) ||
        !df_node_live(clock, atomic_load_explicit(&entry->expiry, memory_order_acquire)))
        return DF_NODE_COLD;
    df_node_cache_touch(entry);
    node = atomic_load_explicit(&entry->node, memory_order_acquire);
    if (!node)
        return -ENOENT;
    if (DF_UNLIKELY(df_node_has(node, DF_NODE_BAD | DF_NODE_VIA_PLUS))) {
        if (df_node_has(node, DF_NODE_BAD))
            return DF_NODE_COLD;
        if (!clock->unused)
            used_after_plus(dir, node);
    }
    *child = node;
    return 0;
}

/* A walk that knows its way. */
struct stroll {
    struct df_nodes *nodes;
    struct df_call *call;
    struct df_node_clock *clock;
    struct df_node *dir;
    const char *at; /* what remains: names with one slash between them */
    size_t left;
};

/* Up to the last component, which is at `at` then, or until the cache does not know. */
static inline int stroll_to_last(struct stroll *s)
{
    for (;;) {
        size_t len = component_len(s->at, s->left);
        struct df_node_name name;
        int result;

        if (!df_node_is_dir(s->dir) || len > NAME_MAX)
            return DF_NODE_COLD;
        if (s->nodes->source->search &&
            (result = s->nodes->source->search(s->nodes, s->call, s->dir)) != 0)
            return result;
        if (len == s->left)
            return 0;
        name = df_node_cache_name(s->nodes, s->at, len);
        result = peek(s->dir, &name, s->clock, &s->dir);
        if (result != 0)
            return result;
        s->at += len + 1;
        s->left -= len + 1;
    }
}

static inline struct stroll begin_stroll(struct df_nodes *nodes, struct df_call *call,
                                         const struct df_where *where, struct df_node_clock *clock)
{
    size_t skip = where->base ? 0 : 1;

    return (struct stroll){
        .nodes = nodes,
        .call = call,
        .clock = clock,
        .dir = where->base ? df_node_of_file(where->base) : nodes->root,
        .at = where->name + skip,
        .left = where->len - skip,
    };
}

int df_node_walk_warm(struct df_nodes *nodes, struct df_call *call, const struct df_where *where,
                      struct df_node_clock *clock, struct df_node **out)
{
    struct stroll s = begin_stroll(nodes, call, where, clock);
    struct df_node *node = s.dir;
    struct df_node_name name;
    int result;

    if (DF_UNLIKELY(where->flags & (DF_WHERE_DOTDOT | DF_WHERE_DOT)))
        return DF_NODE_COLD;
    if (s.left > 0) {
        result = stroll_to_last(&s);
        if (result != 0)
            return result;
        name = df_node_cache_name(nodes, s.at, s.left);
        result = peek(s.dir, &name, clock, &node);
        if (result != 0)
            return result;
    }
    if (DF_UNLIKELY(S_ISLNK(node->type)) &&
        (!(where->flags & DF_WHERE_NOFOLLOW) || (where->flags & DF_WHERE_DIRECTORY)))
        return DF_NODE_COLD;
    if (DF_UNLIKELY(where->flags & DF_WHERE_DIRECTORY) && !df_node_is_dir(node))
        return -ENOTDIR;
    *out = node;
    return 0;
}

/* ---- one step ------------------------------------------------------------------------------ */

/* Asks. The child is readable until the call ends. */
static int step_cold(struct df_node_walk *walk, const struct df_node_name *name,
                     struct df_node **child)
{
    struct df_node *dir = walk->dir;
    struct df_node_name terminated = *name;
    struct df_node_drops drops;
    struct df_node_entry *entry = NULL;
    char text[NAME_MAX + 1];
    unsigned how =
        (walk->nodes->parallel ? DF_LOOKUP_SHARED : 0) | (walk->revalidate ? DF_LOOKUP_FRESH : 0);
    bool shared;
    int result;

    memcpy(text, name->text, name->len);
    text[name->len] = '\0';
    terminated.text = text;
    df_node_cache_begin_drops(&drops);
    do {
        shared = how & DF_LOOKUP_SHARED;
        shared ? df_node_lock_shared(&dir->lock) : df_node_lock(&dir->lock);
        if (!df_node_alive(dir))
            result = DF_NODE_COLD;
        else if (df_node_has(dir, DF_NODE_REMOVED))
            result = -ENOENT;
        else
            result = df_node_lookup(walk->nodes, walk->call, dir, &terminated, how, &entry, &drops);
        *child = entry ? atomic_load_explicit(&entry->node, memory_order_relaxed) : NULL;
        shared ? df_node_unlock_shared(&dir->lock) : df_node_unlock(&dir->lock);
        df_node_cache_drop(walk->nodes, &drops);
        how = (how & ~DF_LOOKUP_SHARED) | DF_LOOKUP_REPLACE;
    } while (shared && result == DF_LOOKUP_AGAIN && df_node_alive(dir));
    if (result == 0 && !*child)
        return -ENOENT;
    return result;
}

static int step(struct df_node_walk *walk, const struct df_node_name *name, struct df_node **child)
{
    int result = DF_NODE_COLD;

    if (!walk->revalidate)
        result = peek(walk->dir, name, &walk->clock, child);
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

/* Reads the link, which the caller holds. */
static int follow(struct df_node_walk *walk, struct df_node *link)
{
    char target[PATH_MAX];
    ssize_t len = df_node_link_read(walk->nodes, walk->call, link, target, sizeof(target) - 1);

    if (len <= 0)
        return len < 0 ? (int)len : -ENOENT;
    if (target[0] == '/')
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

static int check_search(struct df_node_walk *walk, size_t len)
{
    int result = 0;

    if (!df_node_is_dir(walk->dir))
        return -ENOTDIR;
    if (walk->nodes->source->search)
        result = walk->nodes->source->search(walk->nodes, walk->call, walk->dir);
    if (result == 0 && len > NAME_MAX)
        return -ENAMETOOLONG;
    return result;
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
        size_t len = component_len(name, (size_t)(walk->end - name));
        size_t behind = slashes(name + len, walk->end);
        int result;

        if (len == 0) {
            walk->kind = DF_END_ROOT;
            return 0;
        }
        result = check_search(walk, len);
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

/* The way to the last component is known: that is all of the walk. */
static bool is_known(struct df_node_walk *walk)
{
    struct stroll s = begin_stroll(walk->nodes, walk->call, walk->where, &walk->clock);

    if (walk->revalidate || (walk->where->flags & DF_WHERE_DOTDOT) || s.left == 0 ||
        stroll_to_last(&s) != 0)
        return false;
    walk->dir = s.dir;
    walk->kind = DF_END_NAME;
    walk->last = df_node_cache_name(walk->nodes, s.at, s.left);
    walk->at = walk->end;
    return true;
}

static int begin(struct df_node_walk *walk)
{
    const struct df_where *where = walk->where;

    walk->must_be_dir = where->flags & DF_WHERE_DIRECTORY;
    walk->dir = where->base ? df_node_of_file(where->base) : walk->nodes->root;
    walk->at = where->name;
    walk->end = where->name + where->len;
    walk->links = walk->call->links;
    return is_known(walk) ? 0 : run(walk);
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

int df_node_walk_peek(struct df_node_walk *walk, struct df_node **node)
{
    return peek(walk->dir, &walk->last, &walk->clock, node);
}

int df_node_walk_follow(struct df_node_walk *walk, struct df_node *link)
{
    int result = follow(walk, link);

    if (result == 0)
        result = run(walk);
    return result == DF_NODE_COLD ? df_node_walk_again(walk) : result;
}

int df_node_walk_lock(struct df_node_walk *walk)
{
    int result = 0;

    df_node_lock(&walk->dir->lock);
    if (!df_node_alive(walk->dir))
        result = DF_NODE_COLD;
    else if (df_node_has(walk->dir, DF_NODE_REMOVED))
        result = -ENOENT;
    if (result != 0)
        df_node_unlock(&walk->dir->lock);
    return result;
}

/* ---- the walk to an object ----------------------------------------------------------------- */

static bool follows(const struct df_node_walk *walk)
{
    return walk->must_be_dir || !(walk->where->flags & DF_WHERE_NOFOLLOW);
}

/* From the last component to the object, through symlinks. A bare pointer. */
static int last_step(struct df_node_walk *walk, struct df_node **node)
{
    for (;;) {
        int result = 0;

        *node = walk->dir;
        if (walk->kind == DF_END_DOTDOT) {
            result = up(walk);
            *node = walk->dir;
        } else if (walk->kind == DF_END_NAME) {
            result = step(walk, &walk->last, node);
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

static int walk_cold(struct df_nodes *nodes, struct df_call *call, const struct df_where *where,
                     bool revalidate, struct df_node **node)
{
    struct df_node_walk walk;
    int result = df_node_walk_parent(&walk, nodes, call, where, revalidate);

    while (result == 0) {
        result = last_step(&walk, node);
        if (result == 0 && df_node_try_hold(*node))
            return 0;
        if (result == 0 || result == DF_NODE_COLD)
            result = df_node_walk_again(&walk);
    }
    return result;
}

/* A final "." asks whether the directory itself may be searched. It is held by now. */
static int search_dot(struct df_node_spot *spot, struct df_nodes *nodes, struct df_call *call,
                      const struct df_where *where)
{
    int result;

    if (DF_LIKELY(!(where->flags & DF_WHERE_DOT)) || !nodes->source->search)
        return 0;
    result = nodes->source->search(nodes, call, spot->node);
    if (result != 0)
        df_node_walk_done(nodes, spot);
    return result;
}

int df_node_walk_object(struct df_nodes *nodes, struct df_call *call, const struct df_where *where,
                        bool revalidate, struct df_node_spot *spot)
{
    struct df_node_clock clock = {0};
    int result = DF_NODE_COLD;

    spot->held = !where->base || where->len > 0;
    if (!spot->held) {
        spot->node = df_node_of_file(where->base);
        return search_dot(spot, nodes, call, where);
    }
    if (!revalidate)
        result = df_node_walk_warm(nodes, call, where, &clock, &spot->node);
    if (result == 0 && df_node_try_hold(spot->node))
        return 0;
    if (result < 0)
        return result;
    result = walk_cold(nodes, call, where, revalidate, &spot->node);
    return result == 0 ? search_dot(spot, nodes, call, where) : result;
}
