/*
 * attr.c - the attributes of a node: what an answer or a change does to them.
 */
#include "nodes/attr.h"

#include <errno.h>
#include <sched.h>

#include "core/call.h"
#include "host/sane.h"

_Static_assert((sizeof(struct timespec) + offsetof(struct stat, st_ctim) -
                offsetof(struct stat, st_ino)) %
                       8 ==
                   0,
               "attributes are cached in whole words");

_Alignas(64) _Atomic uint64_t df_node_attr_era;

/* The era a change falls into: the first one makes it odd. */
static uint64_t changing(void)
{
    uint64_t era = atomic_load_explicit(&df_node_attr_era, memory_order_acquire);

    return DF_LIKELY(era & 1) ? era : atomic_fetch_or(&df_node_attr_era, 1) | 1;
}

/* A writer is between two stores, or was taken off its processor there. */
void df_node_attr_pause(void)
{
    sched_yield();
}

static uint32_t begin(struct df_node *node)
{
    uint32_t seq = atomic_load_explicit(&node->seq, memory_order_relaxed);

    for (;;) {
        if (seq & 1) {
            df_node_attr_pause();
            seq = atomic_load_explicit(&node->seq, memory_order_relaxed);
        } else if (atomic_compare_exchange_weak_explicit(
                       &node->seq, &seq, seq + 1, memory_order_acquire, memory_order_relaxed)) {
            return seq + 1;
        }
    }
}

static void end(struct df_node *node, uint32_t seq)
{
    atomic_store_explicit(&node->seq, seq + 1, memory_order_release);
}

/* Release, so that a reader who sees the word sees seq odd or later as well. */
static void put_word(struct df_node *node, size_t i, uint64_t word)
{
    atomic_store_explicit(&node->attr[i], word, memory_order_release);
}

/* True: the node shows another number from now on, and those who keep answers under the old one
 * (core/changes.h) are to be told. */
static bool put_stat(struct df_node *node, const struct stat *st, uint64_t expiry)
{
    const char *in = (const char *)st + offsetof(struct stat, st_ino);
    ino_t before = atomic_load_explicit(&node->attr[0], memory_order_relaxed);

    for (size_t i = 0; i < DF_NODE_ATTR_WORDS; i++) {
        uint64_t word;

        memcpy(&word, in + 8 * i, 8);
        put_word(node, i, word);
    }
    atomic_store_explicit(&node->expiry, expiry, memory_order_release);
    atomic_store_explicit(&node->stale, DF_ATTR_NO_ACL, memory_order_release);
    return before != 0 && before != st->st_ino;
}

static void get_stat(const struct df_node *node, struct stat *st)
{
    char *out = (char *)st + offsetof(struct stat, st_ino);

    memset(st, 0, sizeof(*st));
    for (size_t i = 0; i < DF_NODE_ATTR_WORDS; i++) {
        uint64_t word = atomic_load_explicit(&node->attr[i], memory_order_acquire);

        memcpy(out + 8 * i, &word, 8);
    }
}

/* Between begin and end. */
static void note_change(struct df_node *node, uint32_t parts)
{
    uint32_t changes = atomic_load_explicit(&node->changes, memory_order_relaxed);

    atomic_store_explicit(&node->changes, changes + 1, memory_order_release);
    atomic_store_explicit(&node->changed_in, changing(), memory_order_release);
    if ((atomic_load_explicit(&node->stale, memory_order_relaxed) & parts) != parts)
        atomic_fetch_or_explicit(&node->stale, parts, memory_order_release);
}

void df_node_attr_last(const struct df_node *node, struct stat *st)
{
    uint32_t seq;

    do {
        while ((seq = atomic_load_explicit(&node->seq, memory_order_acquire)) & 1)
            df_node_attr_pause();
        get_stat(node, st);
    } while (atomic_load_explicit(&node->seq, memory_order_relaxed) != seq);
}

/* ---- answers ------------------------------------------------------------------------------- */

/* The root is taken for a directory until it is asked, which is at once where it covers a file. */
static bool is_file_for_root(struct df_node *node, const struct stat *st)
{
    if (node->id != DF_NODE_ROOT_ID || !S_ISREG(st->st_mode) ||
        atomic_load_explicit(&node->seq, memory_order_relaxed) != 0)
        return false;
    node->type = S_IFREG;
    return true;
}

static int check(struct df_node *node, const struct stat *st)
{
    if (df_sane(st) &&
        (node->type == (st->st_mode & S_IFMT) || DF_UNLIKELY(is_file_for_root(node, st))))
        return 0;
    df_node_attr_spoil(node);
    return -EIO;
}

int df_node_attr_store(struct df_node *node, const struct stat *st, uint64_t expiry,
                       uint32_t changes)
{
    bool renumbered = false;
    uint32_t seq;

    if (check(node, st) < 0)
        return -EIO;
    seq = begin(node);
    if (atomic_load_explicit(&node->changes, memory_order_relaxed) == changes)
        renumbered = put_stat(node, st, expiry);
    end(node, seq);
    if (DF_UNLIKELY(renumbered))
        df_call_tell_change();
    return 0;
}

void df_node_attr_meet(struct df_node *node, const struct stat *st, uint64_t expiry, uint64_t asked)
{
    uint32_t seq = begin(node);
    bool renumbered = atomic_load_explicit(&node->changed_in, memory_order_relaxed) < asked &&
                      put_stat(node, st, expiry);

    end(node, seq);
    if (DF_UNLIKELY(renumbered))
        df_call_tell_change();
}

void df_node_attr_first(struct df_node *node, const struct stat *st, uint64_t expiry)
{
    memcpy((void *)node->attr, (const char *)st + offsetof(struct stat, st_ino),
           sizeof(node->attr));
    atomic_store_explicit(&node->expiry, expiry, memory_order_relaxed);
    atomic_store_explicit(&node->stale, DF_ATTR_NO_ACL, memory_order_relaxed);
}

int df_node_attr_changed(struct df_node *node, const struct stat *st, uint64_t expiry)
{
    bool renumbered;
    uint32_t seq;

    if (check(node, st) < 0)
        return -EIO;
    seq = begin(node);
    note_change(node, 0);
    renumbered = put_stat(node, st, expiry);
    end(node, seq);
    if (DF_UNLIKELY(renumbered))
        df_call_tell_change();
    return 0;
}

void df_node_attr_without_acl(struct df_node *node, uint32_t changes)
{
    uint32_t seq = begin(node);

    if (atomic_load_explicit(&node->changes, memory_order_relaxed) == changes)
        atomic_fetch_and_explicit(&node->stale, ~(uint32_t)DF_ATTR_NO_ACL, memory_order_release);
    end(node, seq);
}

/* ---- changes ------------------------------------------------------------------------------- */

void df_node_attr_forget_known(struct df_node *node, uint32_t parts)
{
    uint32_t seq = begin(node);

    note_change(node, parts);
    end(node, seq);
}

void df_node_attr_spoil(struct df_node *node)
{
    df_node_set(node, DF_NODE_BAD);
    df_node_attr_forget(node, DF_ATTR_ALL);
}

/* The size we know changes with it; what else a write changes, only the plugin knows. */
static void change_size(struct df_node *node, off_t size, bool shrink)
{
    uint32_t seq = begin(node);

    if (shrink || df_node_attr_size(node) < size)
        put_word(node, DF_NODE_SIZE_WORD, (uint64_t)size);
    note_change(node, DF_ATTR_TIMES);
    end(node, seq);
}

void df_node_attr_wrote(struct df_node *node, off_t end_of_write)
{
    change_size(node, end_of_write, false);
}

void df_node_attr_truncated(struct df_node *node)
{
    change_size(node, 0, true);
}
