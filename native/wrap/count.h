/*
 * count.h - a wrapper that counts: calls, errors, bytes and, when asked, nanoseconds of each op of
 * one mount.
 *
 * Each thread writes to counters of its own (no atomic read-modify-write, no shared cache line);
 * reading sums over all threads.
 */
#ifndef DF_WRAP_COUNT_H
#define DF_WRAP_COUNT_H

#include <stdbool.h>
#include <stdint.h>

#include "core/ops.h"

/* A number for each op, in the order of core/ops.def. */
enum df_op_number {
#define DF_OP(name) DF_OP_##name,
#include "core/ops.def"
#undef DF_OP
    DF_OP_COUNT
};

/* The counters of one mount. Outlives the wrapper as long as somebody holds a reference. */
struct df_counters;

struct df_op_total {
    uint64_t calls;
    uint64_t errors;      /* calls that gave a negative result */
    uint64_t bytes;       /* moved by read, write, read_batch, copy_file_range, borrow, lend */
    uint64_t nanoseconds; /* spent in the op; 0 without timing */
};

/* NULL: no memory. One reference. */
struct df_counters *df_count_new(bool timing);
void df_count_drop(struct df_counters *counters);

/* The wrapper over `below`, with its own reference on the counters; its destroy destroys `below`.
 * NULL: no memory (then `below` is untouched). */
struct df_fs *df_count_wrap(struct df_fs *below, struct df_counters *counters);

/* Sums over all threads; a call in flight may be seen in part. */
void df_count_sum(struct df_counters *counters, struct df_op_total totals[DF_OP_COUNT]);

/* "getattr" ...; NULL past the last. */
const char *df_count_op_name(unsigned number);

#endif
