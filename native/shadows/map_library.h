/*
 * map_library.h - which part of a library's first mapping its dynamic linker leaves there.
 *
 * glibc maps a library's whole extent by its first segment, and then the other segments over what
 * that has shown: dl-map-segments.h. Copying all of it would read each library twice.
 */
#ifndef DF_SHADOWS_MAP_LIBRARY_H
#define DF_SHADOWS_MAP_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

/* Whether a mapping may be such a one: from the file's beginning, and with the flag that dynamic
 * linkers alone still give. */
bool dfi_map_may_be_library(unsigned long flags, unsigned long offset);

/* Bytes that the first segment has of a mapping of `length` bytes, whole pages: what is behind them
 * is covered. `head`, aligned, has the first `size` bytes of the file. `length` if it is no mapping
 * of a library's whole extent. */
size_t dfi_map_first_segment(size_t length, const char *head, size_t size);

#endif
