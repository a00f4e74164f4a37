/*
 * maps.h - which addresses are code from a file, neither writable nor shared: what may be
 * rewritten.
 */
#ifndef DF_INTERCEPT_MAPS_H
#define DF_INTERCEPT_MAPS_H

#include <stddef.h>
#include <stdint.h>

/* How many bytes before `at`, max at most, are such code, with `at` itself; 0: it is not. */
size_t dfi_maps_code_before(uintptr_t at, size_t max);

/* Such code has been mapped; it need not be asked for. */
void dfi_maps_known(uintptr_t start, uintptr_t end);

/* The same for the bytes from `at` on; `at` must be known from the function above. */
size_t dfi_maps_code_behind(uintptr_t at, size_t max);

#endif
