/*
 * heap.c - has malloc give back what nobody has a use for, when that holds up little.
 */
#include "process/heap.h"

#include <malloc.h>

/* Who is busy will want again what it has freed, and each page costs a fault then. */
#define BUSY_NS INT64_C(60000000000)

bool df_heap_cool(struct df_heap *heap, uint64_t calls, int64_t now)
{
    bool idle = calls == heap->seen;

    heap->seen = calls;
    if (calls == heap->given || (!idle && now - heap->since < BUSY_NS))
        return false;
    heap->given = calls;
    heap->since = now;
#ifdef __GLIBC__ /* others do so by themselves */
    malloc_trim(0);
#endif
    return true;
}
