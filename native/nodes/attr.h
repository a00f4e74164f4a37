/*
 * attr.h - the attributes of a node and until when they may be believed.
 *
 * Readers copy the words between two looks at df_node.seq and write nothing; a writer makes seq
 * odd, which also keeps other writers out. Every word is an atomic of its own and read with
 * acquire, so no fence is needed and no reader sees a mixture.
 *
 * Two things end belief: time (expiry, from the plugin's attr_timeout), and a change that went
 * through us (stale, by parts, as the kernel's inval_mask). An answer that was asked for before a
 * change and arrives after it must not be believed again. Who asks about a node it knows remembers
 * `changes`. An answer about a node that turns out to be known already (READDIRPLUS, a hard link)
 * is told by eras: READDIRPLUS begins a new one if there was any change in the last, a change
 * writes down the era it falls into, and what was changed in the era of the question, or later, is
 * not believed. So neither writes to the shared counter as long as the other does not.
 */
#ifndef DF_NODES_ATTR_H
#define DF_NODES_ATTR_H

#include <string.h>

#include "core/clock.h"
#include "nodes/node.h"

/* ---- time, coarse (core/clock.h) ---- */

/* The time of a call, read when first needed. */
struct df_node_clock {
    uint64_t now; /* 0: not read yet */
    bool unused;  /* what is found is told to nobody yet: READDIRPLUS has not been worth it */
};

/* True if something that ends at `expiry` is still valid. 0 never is. */
static inline bool df_node_live(struct df_node_clock *clock, uint64_t expiry)
{
    if (expiry == DF_NODE_FOREVER || expiry == 0)
        return expiry != 0;
    if (clock->now == 0)
        clock->now = (uint64_t)df_clock_coarse();
    return clock->now < expiry;
}

/* When a time-out in seconds, counted from now, ends. */
static inline uint64_t df_node_expiry(double timeout)
{
    if (!(timeout > 0))
        return 0;
    if (timeout >= 1e9) /* thirty years: past the range of sums, and of the process */
        return DF_NODE_FOREVER;
    return (uint64_t)df_clock_coarse() + (uint64_t)(timeout * 1e9);
}

/* Keeps the shortest time-out (seconds) that was ever given, in ns; DF_NODE_FOREVER at first. */
static inline void df_node_given(_Atomic uint64_t *shortest, double timeout)
{
    uint64_t given = timeout >= 1e9 ? DF_NODE_FOREVER : timeout > 0 ? (uint64_t)(timeout * 1e9) : 0;
    uint64_t known = atomic_load_explicit(shortest, memory_order_relaxed);

    while (given < known && !atomic_compare_exchange_weak(shortest, &known, given))
        ;
}

/* ---- eras: even until the first change, odd from then on ---- */

extern _Atomic uint64_t df_node_attr_era __attribute__((visibility("hidden")));

/* Before a request whose answer may be about a node that is not known yet. */
static inline uint64_t df_node_attr_asking(void)
{
    return atomic_load_explicit(&df_node_attr_era, memory_order_acquire);
}

/* The same before a request that tells of many: earlier changes are told from later ones. */
static inline uint64_t df_node_attr_asking_many(void)
{
    uint64_t era = df_node_attr_asking();

    if ((era & 1) && atomic_compare_exchange_strong(&df_node_attr_era, &era, era + 1))
        era++;
    return era;
}

/* ---- reading ---- */

void df_node_attr_pause(void);

/* Copies the attributes (st_dev is 0) if the parts in `need` can be believed; false: ask. */
static inline bool df_node_attr_read(const struct df_node *node, uint32_t need,
                                     struct df_node_clock *clock, struct stat *st)
{
    char *out = (char *)st + offsetof(struct stat, st_ino);
    uint64_t expiry;
    uint32_t seq;

    for (;;) {
        seq = atomic_load_explicit(&node->seq, memory_order_acquire);
        if (DF_UNLIKELY(seq & 1)) {
            df_node_attr_pause();
            continue;
        }
        if (atomic_load_explicit(&node->stale, memory_order_acquire) & need)
            return false;
        expiry = atomic_load_explicit(&node->expiry, memory_order_acquire);
        for (size_t i = 0; i < DF_NODE_ATTR_WORDS; i++) {
            uint64_t word = atomic_load_explicit(&node->attr[i], memory_order_acquire);

            memcpy(out + 8 * i, &word, 8);
        }
        if (DF_LIKELY(atomic_load_explicit(&node->seq, memory_order_relaxed) == seq))
            break;
    }
    memset(st, 0, offsetof(struct stat, st_ino));
    memset(out + 8 * DF_NODE_ATTR_WORDS, 0,
           sizeof(*st) - offsetof(struct stat, st_ino) - 8 * DF_NODE_ATTR_WORDS);
    return df_node_live(clock, expiry);
}

#define DF_NODE_SIZE_WORD ((offsetof(struct stat, st_size) - offsetof(struct stat, st_ino)) / 8)

_Static_assert(sizeof(off_t) == 8 &&
                   (offsetof(struct stat, st_size) - offsetof(struct stat, st_ino)) % 8 == 0,
               "the size is a word of its own");

/* The size as last heard of, however old. */
static inline off_t df_node_attr_size(const struct df_node *node)
{
    return (off_t)atomic_load_explicit(&node->attr[DF_NODE_SIZE_WORD], memory_order_relaxed);
}

/* May none of these parts be believed? */
static inline bool df_node_attr_is_stale(const struct df_node *node, uint32_t parts)
{
    return (atomic_load_explicit(&node->stale, memory_order_acquire) & parts) == parts;
}

/* The attributes as last heard of, however old. */
void df_node_attr_last(const struct df_node *node, struct stat *st);

/* Before a request about the node: the state for df_node_attr_store(). */
static inline uint32_t df_node_attr_changes(struct df_node *node)
{
    if (!(atomic_load_explicit(&node->stale, memory_order_acquire) & DF_ATTR_ASKED))
        atomic_fetch_or(&node->stale, DF_ATTR_ASKED);
    return atomic_load_explicit(&node->changes, memory_order_acquire);
}

/* ---- an answer of the plugin ---- */

/* Believes the answer, unless the node has changed since `changes` was read. Returns -EIO for
 * attributes that cannot be or of another type: the node is bad from then on. */
int df_node_attr_store(struct df_node *node, const struct stat *st, uint64_t expiry,
                       uint32_t changes);

/* The same for a node that was not known to be the one when the request was sent; `asked` is from
 * df_node_attr_asking(), 0: nothing is believed. */
void df_node_attr_meet(struct df_node *node, const struct stat *st, uint64_t expiry,
                       uint64_t asked);

/* The first attributes of a node that nobody else has seen. */
void df_node_attr_first(struct df_node *node, const struct stat *st, uint64_t expiry);

/* Believes the answer to a change of our own (SETATTR), whatever happened meanwhile. */
int df_node_attr_changed(struct df_node *node, const struct stat *st, uint64_t expiry);

/* The plugin said that the node has no access control list: believed until the next attributes
 * come, as the kernel forgets lists then; unless the node has changed since `changes` was read. */
void df_node_attr_without_acl(struct df_node *node, uint32_t changes);

/* ---- changes that went through us ---- */

void df_node_attr_forget_known(struct df_node *node, uint32_t parts);

/* Parts of the attributes are no longer known. Nothing to do if they are not known anyway, nobody
 * is being told, and whoever asks from now on begins in another era. */
static inline void df_node_attr_forget(struct df_node *node, uint32_t parts)
{
    uint64_t era = atomic_load_explicit(&df_node_attr_era, memory_order_acquire);
    uint32_t stale = atomic_load_explicit(&node->stale, memory_order_acquire);

    if ((stale & (parts | DF_ATTR_ASKED)) != parts || !(era & 1) ||
        atomic_load_explicit(&node->changed_in, memory_order_relaxed) != era)
        df_node_attr_forget_known(node, parts);
}

/* The plugin contradicts itself about the node: EIO from now on. */
void df_node_attr_spoil(struct df_node *node);

/* READ, READLINK, READDIR: the time of access is no longer known. */
static inline void df_node_attr_accessed(const struct df_nodes *nodes, struct df_node *node)
{
    if (nodes->read_only)
        return;
    if (DF_UNLIKELY(!(atomic_load_explicit(&node->stale, memory_order_relaxed) & DF_ATTR_ATIME)))
        atomic_fetch_or_explicit(&node->stale, DF_ATTR_ATIME, memory_order_relaxed);
}

/* WRITE and the like, up to `end`: the size is at least that. */
void df_node_attr_wrote(struct df_node *node, off_t end);

/* O_TRUNC in OPEN. */
void df_node_attr_truncated(struct df_node *node);

#endif
