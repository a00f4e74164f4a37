/*
 * heap.h - memory that file systems have freed goes back to the system.
 *
 * free() returns it from the end of a heap only: under one small block that stays, gigabytes of
 * removed files would stay resident for as long as the server lives.
 */
#ifndef DF_PROCESS_HEAP_H
#define DF_PROCESS_HEAP_H

#include <stdbool.h>
#include <stdint.h>

#include "core/export.h"

/* Zeroed at the beginning. Of one thread. */
struct df_heap {
    uint64_t seen;  /* calls of file systems at the last look */
    uint64_t given; /* and when memory was given back; */
    int64_t since;  /* ns: when that was */
};

/*
 * A look at time `now` (ns), when file systems have had so many calls: gives back what is free if
 * there were any since it did so last, and none since the last look; or though there were, if a
 * minute has passed. Whether it did.
 */
DF_PRIVATE_EXPORT bool df_heap_cool(struct df_heap *heap, uint64_t calls, int64_t now);

#endif
