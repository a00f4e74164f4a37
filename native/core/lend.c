/*
 * lend.c - memory for the contents of files that others read where it lies.
 */
#include "core/lend.h"

#include <stdatomic.h>
#include <stdint.h>

/* Set before the first client comes, reset when all plugins have ended. */
static _Atomic(struct df_lender *) lender;

void df_lend_by(struct df_lender *to)
{
    atomic_store_explicit(&lender, to, memory_order_release);
}

void *df_lend_take(size_t size)
{
    struct df_lender *l = atomic_load_explicit(&lender, memory_order_acquire);

    return l ? l->take(l, size) : NULL;
}

void df_lend_give(void *memory)
{
    struct df_lender *l = atomic_load_explicit(&lender, memory_order_acquire);

    if (l)
        l->give(l, memory);
}

bool df_lend_has(const void *bytes, size_t size)
{
    const struct df_lender *l = atomic_load_explicit(&lender, memory_order_acquire);
    uintptr_t at = l ? (uintptr_t)bytes - (uintptr_t)l->begin : 0;

    return l && at < l->size && size <= l->size - at;
}
