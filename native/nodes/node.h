/*
 * node.h - the nodes of a mount: what the kernel's inodes and dentries are to a file system that
 * names its objects by numbers. For every host of such plugins: what speaks to the plugin is behind
 * struct df_node_source.
 *
 *   node.c         nodes by number, references, lookup counts, FORGET
 *   attr.c    the attributes of a node and until when they may be believed
 *   cache.c   entries: (directory, name) -> node, or known absent
 *   lookup.c  an entry that must be asked for, revalidated or replaced
 *   walk.c    a whole name, with symlinks and ".."
 *   path.c    the name of a node
 *   evict.c   keeps the number of entries bounded
 *
 * What may be read without a lock. Every operation runs inside the core's gate, and nodes, entries
 * and tables of entries that go away are retired through it: a pointer read from the tables stays
 * readable until the call ends. A warm walk and a warm stat therefore take no lock, no reference
 * and write to no memory that another thread reads. What such a pointer names may have been
 * forgotten meanwhile; who sends a request about a node needs a reference.
 *
 * References (df_node.refs). One for each entry that leads to the node, each open file, each call
 * that sends a request about it or about a name in it; for a directory also one for each directory
 * below it and one while entries stand in its own table (children pin their parents). At zero
 * nobody can take one again: the node leaves the table and the plugin gets FORGET with the count of
 * lookups it has answered. So a number has one node that is used: one lock, one parent (decision
 * 130).
 *
 * The lock of a directory (df_node.lock) orders requests as the kernel's inode lock does: exclusive
 * around whatever makes, removes or moves an entry of it, shared around LOOKUP and READDIR
 * (exclusive too, for a plugin that did not ask for parallel ones). Its table of entries changes
 * only under it: held exclusively, or held shared together with insert_lock, which allows adding
 * alone. The lock keeps nobody from being forgotten: who takes it has a reference. References are
 * dropped with no such lock held, for the plugin may get a FORGET.
 * The lock of a regular file is held around writes, appends and truncation.
 *
 * Order of locks: evict_lock, rename_lock, locks of directories (parent before child; two unrelated
 * ones only under rename_lock), parents_lock, insert_lock, ring_lock, a shard's lock, attributes.
 * Which directory is above which changes only under rename_lock and the lock of the old parent.
 * Eviction does not wait for the lock of a directory. The plugin is called under the first three
 * only; the second and third, and those of files, are taken by held.h.
 */
#ifndef DF_NODES_NODE_H
#define DF_NODES_NODE_H

#include <errno.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "core/gate.h"
#include "nodes/lock.h"

struct df_call;
struct df_caller;
struct df_nodes;

#define DF_NODE_SHARDS   64u
#define DF_NODE_CAPACITY 262144u /* entries kept; about 400 bytes for each with its node */
#define DF_NODE_FOREVER  UINT64_MAX
#define DF_NODE_LIMBO    16u /* dead objects a shard keeps before it retires them together */
#define DF_NODE_SPARES                                                                             \
    160u                    /* nodes' memory that a shard keeps to use again: what the gate        \
                               gives back at once, and some */
#define DF_NODE_FORGETS 32u /* FORGETs sent together */

/* The part of struct stat that is cached: from st_ino to st_ctim, in words. st_dev is the core's.
 */
#define DF_NODE_ATTR_WORDS                                                                         \
    ((offsetof(struct stat, st_ctim) + sizeof(struct timespec) - offsetof(struct stat, st_ino)) / 8)

enum {                           /* df_node.flags */
       DF_NODE_BAD = 1 << 0,     /* the plugin contradicted itself about it: EIO until replaced */
       DF_NODE_REMOVED = 1 << 1, /* directory: rmdir has succeeded; set under its lock */
       DF_NODE_PINNED = 1 << 2,  /* directory: its table holds a reference on it; under its lock */
       DF_NODE_IN_RING = 1 << 3, /* directory: under ring_lock */
       DF_NODE_WANT_PLUS = 1 << 4, /* directory: an entry was looked up since the last READDIR */
       DF_NODE_VIA_PLUS = 1 << 5,  /* came with READDIRPLUS and was not used since */
       DF_NODE_LINKABLE = 1 << 6,  /* made by O_TMPFILE: may get a name though it has none */
       DF_NODE_PRUNE = 1 << 7,     /* the plugin would like it forgotten: evict.c */
};

enum { /* parts of the attributes; df_node.stale says which must not be believed */
       DF_ATTR_ATIME = 1 << 0,
       DF_ATTR_TIMES = 1 << 1, /* mtime, ctime, blocks */
       DF_ATTR_SIZE = 1 << 2,
       DF_ATTR_OWNER = 1 << 3, /* mode, uid, gid */
       DF_ATTR_COUNT = 1 << 4, /* nlink */
       DF_ATTR_ALL = (1 << 5) - 1,
       DF_ATTR_ENTRIES = DF_ATTR_ALL & ~DF_ATTR_OWNER, /* what a change of its entries changes in a
                                                          directory; the kernel forgets all */
       DF_ATTR_ASKED = 1 << 5,                         /* an answer may be on its way */
       DF_ATTR_NO_ACL = 1
           << 6, /* that it has no access control list: no part of what stat(2) tells */
};

/* A dead node or entry on its way through the gate, in a batch of a shard. */
struct df_node_limbo {
    struct df_retired retired; /* of the batch, in its first object */
    struct df_node_limbo *link;
    uintptr_t home; /* the shard's address, low bit set in a node */
};

struct df_node;

/* (directory, name) -> node, or known absent. See cache.h. */
struct df_node_entry {
    struct df_node_limbo limbo; /* dead: on its way; removed: list */
    _Atomic(struct df_node_entry *) next;
    _Atomic(struct df_node *) node; /* referenced; NULL: known absent */
    _Atomic uint64_t expiry;        /* ns; read before node */
    uint32_t hash;
    uint16_t len;
    bool own;          /* is part of the node it was made with: df_node.own */
    _Atomic bool used; /* since eviction last came by */
    char name[];       /* NUL-terminated */
};

#define DF_NODE_ROOT_ID  1u
#define DF_NODE_OWN_NAME 32 /* bytes of a name in a node's own entry, with its NUL */

struct df_node {
    union {
        _Atomic uintptr_t table;             /* directory: cache.c; 0: none yet */
        _Atomic(struct df_node_link *) link; /* symlink: its target, where that may be kept */
    };
    uint64_t id; /* the plugin's number. This and the next three are fixed */
    uint64_t generation;
    uint64_t serial;        /* no other node of the process has or had it */
    mode_t type;            /* S_IFMT bits */
    _Atomic uint32_t flags; /* DF_NODE_* */
    _Atomic uint32_t refs;
    struct df_node_lock lock;
    struct df_node_lock insert_lock;
    uint32_t entries;   /* directory: in its table; changes as the table does */
    uint32_t published; /* of these, counted in df_nodes.population; changes as the table does */
    _Atomic(struct df_node *) parent; /* directory: referenced, never below it; changed under
                                         parents_lock */

    /* Attributes: written by whoever made seq odd, read again when seq has changed. */
    _Atomic uint32_t seq;
    _Atomic uint32_t stale;  /* DF_ATTR_*; bits are also set by who does not write */
    _Atomic uint64_t expiry; /* of the attributes, ns; 0 is in the past */
    _Atomic uint64_t attr[DF_NODE_ATTR_WORDS];
    _Atomic uint32_t changes; /* counts changes that make attributes asked for before them stale */
    _Atomic uint64_t changed_in; /* the era of the last of these, attr.h; 0: never */

    _Atomic uint64_t lookups; /* answered by the plugin, not yet forgotten */
    struct df_node *chain;    /* shard's lock: hash chain */
    struct df_node *ring[2];  /* ring_lock: next and previous directory with entries */
    uint32_t hand;            /* evict_lock: where eviction goes on in this directory */
    struct df_node_limbo limbo;

    /* The entry that the node is first found by, if the name is short, so that most files need one
     * piece of memory. Used once; freed with the node, which no entry outlives. */
    struct df_node_entry own;
};

/* A plugin's answer to LOOKUP, MKDIR and the like. id 0: absent, and may be kept as such. */
struct df_node_found {
    uint64_t id;
    uint64_t generation;
    struct stat attr;
    double attr_timeout; /* seconds */
    double entry_timeout;
};

struct df_node_forget {
    uint64_t id;
    uint64_t count;
};

/* How questions reach the plugin. Results are 0 or a count, or a negative errno. */
struct df_node_source {
    int (*lookup)(struct df_nodes *nodes, struct df_call *call, struct df_node *dir,
                  const char *name, struct df_node_found *found);
    /* Bytes of the target, not NUL-terminated; at most size. */
    ssize_t (*readlink)(struct df_nodes *nodes, struct df_call *call, struct df_node *node,
                        char *buf, size_t size);
    /* May the caller search this directory? NULL: nobody is asked. */
    int (*search)(struct df_nodes *nodes, struct df_call *call, struct df_node *dir);
    void (*forget)(struct df_nodes *nodes, const struct df_node_forget *list, size_t count);
    /* Are all questions answered only after this thread has gone on? NULL: it is not known. */
    bool (*delays)(struct df_nodes *nodes);
};

struct df_node_shard {
    _Alignas(64) struct df_node_lock lock; /* protects all below */
    uint32_t count;
    uint32_t mask;
    struct df_node **chains;
    struct df_node_limbo *limbo;
    uint32_t limbo_count;
    uint32_t spare_count;
    struct df_node *spares; /* linked by chain */
};

/* All nodes of one mount. */
struct df_nodes {
    const struct df_node_source *source;
    struct df_node *root;             /* id 1; one reference of its own */
    uint64_t seed;                    /* of the hash of names */
    _Atomic uint64_t shortest;        /* ns: of all time-outs ever given for names and attributes */
    _Atomic uint64_t shortest_absent; /* the same for names that are absent */
    _Atomic uint32_t told;            /* counts what the plugin has told of names by itself */
    bool parallel;              /* LOOKUP and READDIR of one directory may run at the same time */
    bool keep_links;            /* targets of symlinks may be kept */
    bool read_only;             /* what is read keeps its time of access, as in the kernel */
    uint32_t capacity;          /* entries that should be enough */
    _Atomic int64_t population; /* entries, as published by their directories: within an eighth */
    _Atomic bool crowded;       /* population is over the limit, or there is to prune: somebody
                                   should evict */
    _Atomic int64_t to_prune;   /* entries still to be looked at for DF_NODE_PRUNE */
    _Atomic int64_t limit;      /* of population: capacity, or more when all is in use */
    struct df_node_lock evict_lock;   /* one thread evicts at a time; protects df_node.hand, and */
    uint64_t idle_turns;              /* entries seen since one was last dropped */
    struct df_node_lock rename_lock;  /* one rename between directories at a time */
    struct df_node_lock parents_lock; /* protects df_node.parent of all */
    struct df_node_lock ring_lock;    /* protects the ring of directories that may have entries */
    struct df_node *ring;
    struct df_node_shard shards[DF_NODE_SHARDS];
};

static inline bool df_node_is_dir(const struct df_node *node)
{
    return S_ISDIR(node->type);
}

static inline bool df_node_has(const struct df_node *node, uint32_t flags)
{
    return (atomic_load_explicit(&node->flags, memory_order_acquire) & flags) != 0;
}

static inline void df_node_set(struct df_node *node, uint32_t flags)
{
    if (!df_node_has(node, flags))
        atomic_fetch_or_explicit(&node->flags, flags, memory_order_release);
}

static inline void df_node_clear(struct df_node *node, uint32_t flags)
{
    if (df_node_has(node, flags))
        atomic_fetch_and_explicit(&node->flags, ~flags, memory_order_release);
}

/* 0, or why no name in the locked directory may be asked about. */
static inline int df_node_dir_error(const struct df_node *dir)
{
    if (DF_LIKELY(!df_node_has(dir, DF_NODE_REMOVED | DF_NODE_BAD)))
        return 0;
    return df_node_has(dir, DF_NODE_REMOVED) ? -ENOENT : -EIO;
}

/* Before a question whose answer is about a name: the state for df_node_cache_believe(). */
static inline uint32_t df_node_told(const struct df_nodes *nodes)
{
    return atomic_load_explicit(&nodes->told, memory_order_acquire);
}

/* Before names that the plugin has told of are looked at. */
static inline void df_node_tell(struct df_nodes *nodes)
{
    atomic_fetch_add(&nodes->told, 1);
}

/* ---- all of them ---- */

/* A root with id 1 and no attributes yet. Returns 0 or -ENOMEM. */
int df_nodes_init(struct df_nodes *nodes, const struct df_node_source *source);

/* Before the first call; DF_NODE_CAPACITY at first. */
void df_nodes_set_capacity(struct df_nodes *nodes, uint32_t entries);

/* Forgets every node but the root, children first. No call is in flight, no file is open. */
void df_nodes_forget_all(struct df_nodes *nodes);

/* Frees all. Outside the gate. */
void df_nodes_destroy(struct df_nodes *nodes);

/* ---- one of them ---- */

/* One more reference for somebody who has one. */
static inline void df_node_hold(struct df_node *node)
{
    atomic_fetch_add_explicit(&node->refs, 1, memory_order_relaxed);
}

/* References for somebody with a bare pointer; false when the node is being forgotten. */
bool df_node_try_hold_many(struct df_node *node, uint32_t refs);

static inline bool df_node_try_hold(struct df_node *node)
{
    return df_node_try_hold_many(node, 1);
}

static inline bool df_node_alive(const struct df_node *node)
{
    return atomic_load_explicit(&node->refs, memory_order_acquire) > 0;
}

/* Drops a reference; with the last one the plugin gets FORGET. No lock of a directory is held. */
void df_node_put(struct df_nodes *nodes, struct df_node *node);

/* FORGETs on their way. Zero the count; when all is dropped, df_node_send_forgets(). */
struct df_node_forgets {
    struct df_node_forget list[DF_NODE_FORGETS];
    size_t count;
};

/* The same for many nodes. `entry` (or NULL) has led to the node and is retired along with it, or
 * without it. */
void df_node_put_among(struct df_nodes *nodes, struct df_node *node,
                       struct df_node_forgets *forgets, struct df_node_limbo *entry);

/* Takes a node that has lost its last reference away; returns the parent whose reference it held
 * (of directories). For cache.c. */
struct df_node *df_node_bury(struct df_nodes *nodes, struct df_node *node,
                             struct df_node_forgets *forgets, struct df_node_limbo *entry);
void df_node_send_forgets(struct df_nodes *nodes, struct df_node_forgets *forgets);

/* The node with this number, for a look; readable until the call ends. NULL: not known. */
struct df_node *df_node_find(struct df_nodes *nodes, uint64_t id);

/*
 * The node that a reply speaks of, with one more lookup and `refs` more references: the one we
 * know, or a new one. `asked` is from before the request was sent (attr.h), 0 if the node
 * should be new. A node whose generation or type the reply contradicts is replaced. *is_new: nobody
 * else has seen it, and its own entry is free. Returns 0, -EIO (attributes or a number that cannot
 * be) or -ENOMEM; then the caller takes the lookup back, with df_node_forget_one().
 */
int df_node_get(struct df_nodes *nodes, const struct df_node_found *found, uint64_t asked,
                uint32_t refs, struct df_node **out, bool *is_new);

/* One lookup more was answered with this node, which we hold. */
static inline void df_node_count_lookup(struct df_node *node)
{
    atomic_fetch_add_explicit(&node->lookups, 1, memory_order_relaxed);
}

/* Takes back one lookup that was answered with a node we do not keep. The root is not forgotten. */
void df_node_forget_one(struct df_nodes *nodes, uint64_t id);

/* Gives a dead entry to the gate, in company; `hash` spreads them. */
void df_node_retire(struct df_nodes *nodes, struct df_node_limbo *entry, uint64_t hash);

#endif
