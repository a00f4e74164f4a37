/*
 * map.h - maps the segment so that huge pages of it are mapped as such. Freestanding.
 */
#ifndef DF_CHANNEL_MAP_H
#define DF_CHANNEL_MAP_H

#include <stdint.h>

/* Linux maps so many bytes of a file by one fault, where it has them as one page and their place in
 * memory is as aligned as that in the file. A power of two. */
#define DF_HUGE_SIZE (UINT64_C(2) << 20)

static inline uint64_t df_huge_aligned(uint64_t at)
{
    return (at + DF_HUGE_SIZE - 1) & ~(DF_HUGE_SIZE - 1);
}

/* Maps `size` bytes of `memory`, shared, to be read and written; at a multiple of DF_HUGE_SIZE if
 * that can be had. Core files go without them. `below`: an address with room below it, which saves
 * mapping it twice; 0: none is known. The address, or a negative errno. */
long df_segment_map(int memory, uint64_t size, uint64_t below);

#endif
