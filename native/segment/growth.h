/*
 * growth.h - elements of the segment that are handed out one after the other, and get their memory
 * no sooner.
 *
 * None is ever given back. Where there is no memory it is asked for again after a second: to be
 * refused takes long.
 */
#ifndef DF_SEGMENT_GROWTH_H
#define DF_SEGMENT_GROWTH_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct df_growth {
    pthread_mutex_t lock; /* protects these; innermost */
    uint32_t used;        /* elements that were handed out */
    uint32_t made;        /* elements that have memory */
    int64_t failed;       /* ns: when there was no memory for more; 0: never */
};

/* Makes memory for elements behind the first `made`. For how many; 0: there is none. */
typedef uint32_t df_growth_make(void *owner, uint32_t made);

/* Under the lock. The element of that number has memory; false: there is none. */
bool df_growth_reach(struct df_growth *growth, uint32_t number, df_growth_make *make, void *owner);

/* Under the lock. The number of one more element, from 1 on; 0: there is no memory. */
uint32_t df_growth_take(struct df_growth *growth, df_growth_make *make, void *owner);

#endif
