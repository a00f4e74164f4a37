/*
 * maps.h - which addresses are code from a file, neither writable nor shared: what may be
 * rewritten; and what is mapped at all.
 */
#ifndef DF_INTERCEPT_MAPS_H
#define DF_INTERCEPT_MAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How many bytes before `at`, max at most, are such code, with `at` itself; 0: it is not. */
size_t dfi_maps_code_before(uintptr_t at, size_t max);

/*
 * Such code has been mapped; it need not be asked for. file: of learn.h, or DFI_LEARN_NONE; offset:
 * where its bytes begin there.
 */
void dfi_maps_known(uintptr_t start, uintptr_t end, int file, unsigned long offset);

/* Whether any of [start, end) is known to be such code. Without the lock. */
bool dfi_maps_knows(uintptr_t start, uintptr_t end);

/* It may be something else now: it will be asked for. */
void dfi_maps_forget(uintptr_t start, uintptr_t end);

/* The file that known code comes from, and *offset in it; or DFI_LEARN_NONE. */
int dfi_maps_file(uintptr_t at, unsigned long *offset);

/* The same for the bytes from `at` on; `at` must be known from the function above. */
size_t dfi_maps_code_behind(uintptr_t at, size_t max);

/* Calls `visit` for each mapping of the process, in order. 0, or a negative errno: /proc cannot be
 * read. Without the lock. */
long dfi_maps_each(void (*visit)(uintptr_t start, uintptr_t end, void *data), void *data);

#endif
