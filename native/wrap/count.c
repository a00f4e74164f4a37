/*
 * count.c - counts the calls of each op of one mount, on their way to the file system below.
 */
#include "wrap/count.h"

#include <stdlib.h>
#include <string.h>

#include "core/call.h"
#include "core/clock.h"
#include "core/gate.h"

#define FANOUT 256 /* threads with counters of their own: FANOUT * FANOUT */

struct counter {
    _Atomic uint64_t calls;
    _Atomic uint64_t errors;
    _Atomic uint64_t bytes;
    _Atomic uint64_t nanoseconds;
};

/* One thread's; written by it alone. */
struct block {
    _Alignas(64) struct counter ops[DF_OP_COUNT];
};

struct leaf {
    _Atomic(struct block *) blocks[FANOUT];
};

struct df_counters {
    _Atomic uint32_t refs;
    bool timing;                           /* fixed */
    _Atomic(struct leaf *) leaves[FANOUT]; /* by df_thread.index; grow only */
    struct block shared; /* of threads for whom there was no memory; atomic adds */
};

struct counting {
    struct df_fs fs;
    struct df_fs *below;
    struct df_counters *counters;
};

/* ---- counters ------------------------------------------------------------------------------ */

struct df_counters *df_count_new(bool timing)
{
    struct df_counters *counters = aligned_alloc(64, sizeof(*counters));

    if (!counters)
        return NULL;
    memset(counters, 0, sizeof(*counters));
    atomic_init(&counters->refs, 1);
    counters->timing = timing;
    return counters;
}

static void hold(struct df_counters *counters)
{
    atomic_fetch_add(&counters->refs, 1);
}

static void free_leaf(struct leaf *leaf)
{
    for (unsigned i = 0; leaf && i < FANOUT; i++)
        free(atomic_load(&leaf->blocks[i]));
    free(leaf);
}

void df_count_drop(struct df_counters *counters)
{
    if (atomic_fetch_sub(&counters->refs, 1) != 1)
        return;
    for (unsigned i = 0; i < FANOUT; i++)
        free_leaf(atomic_load(&counters->leaves[i]));
    free(counters);
}

/* Two threads may make one leaf at once: the second finds the first one's. */
static struct leaf *leaf_of(struct df_counters *counters, uint32_t at)
{
    struct leaf *leaf = atomic_load_explicit(&counters->leaves[at], memory_order_acquire);
    struct leaf *made;

    if (DF_LIKELY(leaf) || !(made = calloc(1, sizeof(*made))))
        return leaf;
    if (atomic_compare_exchange_strong(&counters->leaves[at], &leaf, made))
        return made;
    free(made);
    return leaf;
}

static struct block *make_block(struct leaf *leaf, uint32_t at)
{
    struct block *block = aligned_alloc(64, sizeof(*block));

    if (!block)
        return NULL;
    memset(block, 0, sizeof(*block));
    atomic_store_explicit(&leaf->blocks[at], block, memory_order_release);
    return block;
}

static struct block *block_of(struct df_counters *counters, const struct df_thread *thread)
{
    uint32_t index = thread->index;
    struct leaf *leaf = NULL;
    struct block *block = NULL;

    if (DF_LIKELY(index < FANOUT * FANOUT))
        leaf = leaf_of(counters, index / FANOUT);
    if (DF_LIKELY(leaf)) {
        block = atomic_load_explicit(&leaf->blocks[index % FANOUT], memory_order_relaxed);
        if (DF_UNLIKELY(!block))
            block = make_block(leaf, index % FANOUT);
    }
    return DF_LIKELY(block) ? block : &counters->shared;
}

static void add(bool shared, _Atomic uint64_t *counter, uint64_t n)
{
    if (DF_UNLIKELY(shared))
        atomic_fetch_add_explicit(counter, n, memory_order_relaxed);
    else
        df_gate_add(counter, n);
}

static void add_block(struct df_op_total totals[DF_OP_COUNT], const struct block *block)
{
    for (unsigned i = 0; i < DF_OP_COUNT; i++) {
        const struct counter *c = &block->ops[i];

        totals[i].calls += atomic_load_explicit(&c->calls, memory_order_relaxed);
        totals[i].errors += atomic_load_explicit(&c->errors, memory_order_relaxed);
        totals[i].bytes += atomic_load_explicit(&c->bytes, memory_order_relaxed);
        totals[i].nanoseconds += atomic_load_explicit(&c->nanoseconds, memory_order_relaxed);
    }
}

void df_count_sum(struct df_counters *counters, struct df_op_total totals[DF_OP_COUNT])
{
    memset(totals, 0, DF_OP_COUNT * sizeof(totals[0]));
    add_block(totals, &counters->shared);
    for (unsigned i = 0; i < FANOUT; i++) {
        struct leaf *leaf = atomic_load_explicit(&counters->leaves[i], memory_order_acquire);

        for (unsigned j = 0; leaf && j < FANOUT; j++) {
            struct block *block = atomic_load_explicit(&leaf->blocks[j], memory_order_acquire);

            if (block)
                add_block(totals, block);
        }
    }
}

const char *df_count_op_name(unsigned number)
{
    static const char *const names[] = {
#define DF_OP(name) #name,
#include "core/ops.def"
#undef DF_OP
    };

    return number < DF_OP_COUNT ? names[number] : NULL;
}

/* ---- around an op -------------------------------------------------------------------------- */

static uint64_t now(const struct df_counters *counters)
{
    return DF_LIKELY(!counters->timing) ? 0 : (uint64_t)df_clock();
}

/* DF_LEAVE and DF_NOT_OURS are answers, not errors. */
static bool is_error(ssize_t result)
{
    return DF_UNLIKELY(result < 0) && result >= -4095;
}

static inline void count(struct counting *self, struct df_call *call, enum df_op_number op,
                         ssize_t result, size_t bytes, uint64_t start)
{
    struct df_counters *counters = self->counters;
    struct block *block = block_of(counters, call->thread);
    struct counter *c = &block->ops[op];
    bool shared = block == &counters->shared;

    add(shared, &c->calls, 1);
    if (is_error(result))
        add(shared, &c->errors, 1);
    if (bytes > 0)
        add(shared, &c->bytes, bytes);
    if (DF_UNLIKELY(counters->timing))
        add(shared, &c->nanoseconds, now(counters) - start);
}

#define NONE(ret)  ((size_t)0)
#define MOVED(ret) ((ret) > 0 ? (size_t)(ret) : 0)

/* A late result is waited for here, so that it can be counted; the core would wait as well. */
#define COUNTED(type, name, parameters, arguments, bytes)                                          \
    static type count_##name parameters                                                            \
    {                                                                                              \
        struct counting *self = (struct counting *)fs;                                             \
        struct df_fs *below = self->below;                                                         \
        uint64_t start = now(self->counters);                                                      \
        type ret = (type)df_call_result(call, below->ops->name arguments);                         \
                                                                                                   \
        count(self, call, DF_OP_##name, ret, bytes(ret), start);                                   \
        return ret;                                                                                \
    }

#define DF_OP_CALL(type, name, parameters, arguments, bytes)                                       \
    COUNTED(type, name, parameters, arguments, bytes)
#include "core/ops_calls.def"
#undef DF_OP_CALL

#define FS    struct df_fs *fs, struct df_call *call
#define FILE_ struct df_file *file

static int count_read_batch(FS, struct df_extent *extents, size_t n)
{
    struct counting *self = (struct counting *)fs;
    uint64_t start = now(self->counters);
    int ret =
        (int)df_call_result(call, self->below->ops->read_batch(self->below, call, extents, n));
    size_t bytes = 0;

    for (size_t i = 0; ret == 0 && i < n; i++)
        bytes += MOVED(extents[i].result);
    count(self, call, DF_OP_read_batch, ret, bytes, start);
    return ret;
}

static void count_release(FS, FILE_)
{
    struct counting *self = (struct counting *)fs;
    uint64_t start = now(self->counters);

    if (DF_LIKELY(!self->counters->timing)) { /* no result, no time: nothing to come back for */
        count(self, call, DF_OP_release, 0, 0, 0);
        self->below->ops->release(self->below, call, file);
        return;
    }
    self->below->ops->release(self->below, call, file);
    count(self, call, DF_OP_release, 0, 0, start);
}

static void count_unborrow(FS, FILE_, const void *ptr, size_t size)
{
    struct counting *self = (struct counting *)fs;
    uint64_t start = now(self->counters);

    self->below->ops->unborrow(self->below, call, file, ptr, size);
    count(self, call, DF_OP_unborrow, 0, 0, start);
}

/* What is not lent is read. */
static ssize_t count_lend(FS, FILE_, void *buffer, size_t size, off_t offset, const char **at)
{
    struct counting *self = (struct counting *)fs;
    uint64_t start = now(self->counters);
    ssize_t ret = df_call_result(
        call, self->below->ops->lend(self->below, call, file, buffer, size, offset, at));

    count(self, call, *at == buffer ? DF_OP_read : DF_OP_lend, ret, MOVED(ret), start);
    return ret;
}

static void count_destroy(struct df_fs *fs)
{
    struct counting *self = (struct counting *)fs;

    self->below->ops->destroy(self->below);
    df_count_drop(self->counters);
    free(self);
}

/* Asks nobody anything: there is nothing to count. */
static int count_known(FS, const struct df_where *where, struct stat *st)
{
    struct counting *self = (struct counting *)fs;

    return self->below->ops->known(self->below, call, where, st);
}

static const struct df_ops count_ops = {
    .version = DF_OPS_VERSION,
    .size = sizeof(struct df_ops),
#define DF_OP(name) .name = count_##name,
#include "core/ops.def"
#undef DF_OP
};

struct df_fs *df_count_wrap(struct df_fs *below, struct df_counters *counters)
{
    struct counting *self = malloc(sizeof(*self));

    if (!self)
        return NULL;
    hold(counters);
    *self = (struct counting){df_fs_around(below, &count_ops), below, counters};
    return &self->fs;
}
