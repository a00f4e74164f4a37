/*
 * trampoline.h - memory near call sites for what is executed in place of them.
 */
#ifndef DF_INTERCEPT_TRAMPOLINE_H
#define DF_INTERCEPT_TRAMPOLINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "intercept/site.h"

/* All of this under dfi_rewrite_lock, but for the question of what a trampoline stands for. */

struct dfi_arena;

/* Memory for trampolines near a site, writable until it is closed; NULL: there is none. */
struct dfi_arena *dfi_arena_open(uintptr_t site);
void dfi_arena_close(const struct dfi_arena *arena);

/* The address of a new trampoline, in an arena that is open; 0: it reaches not far enough. */
uintptr_t dfi_trampoline_put(struct dfi_arena *arena, const struct dfi_plan *plan, uintptr_t site);

/* The instruction of the program that is executed there, as the thread's registers are those that
 * it has at that one; 0: the address is in no trampoline. For handlers of signals: it takes no
 * lock.
 */
uintptr_t dfi_trampoline_origin(uintptr_t ip);

/* Makes a range of code writable. Where that is refused, and not of this code alone, nothing is
 * rewritten any more. */
bool dfi_code_open(uintptr_t start, size_t size);
void dfi_code_close(uintptr_t start, size_t size);

/* The displacement that ends at `end` of an instruction that ends at `from`. */
void dfi_put_displacement(unsigned char *end, uintptr_t from, uintptr_t to);

#endif
