/*
 * segment.h - the server's side of the shared segment: made, and proved to be alive.
 */
#ifndef DF_SEGMENT_SEGMENT_H
#define DF_SEGMENT_SEGMENT_H

#include <pthread.h>

#include "channel/layout.h"

struct df_own_segment {
    struct df_segment *segment;
    uint64_t size; /* of the mapping; what lies there may not say so yet */
    int memory;    /* its memfd; clients get copies */
    pthread_t life;
    _Atomic uint32_t ending; /* futex: 1 when the thread of life shall end */
};

/* Makes the memfd, maps it, and starts the thread whose life stands for the server's. answers:
 * how many may be kept, a power of two, DF_CACHE_ENTRIES_LEAST at least; frames_size: bytes of
 * frames, that many at least. 0: without. 0 or -errno. Clients may be let in afterwards. */
int df_segment_create(struct df_own_segment *own, uint64_t answers, size_t frames_size);

/* The segment of a server that has died, by its memfd: mapped, but nobody lives yet. 0 or -errno.
 */
int df_segment_take(struct df_own_segment *own, int memory);

/* Before workers begin, everything else being ready, and what the clients have asked for submitted
 * again (ledger/unanswered.h): this server lives. 0 or -errno. */
int df_segment_resume(struct df_own_segment *own);

/* From here on clients find the server gone. The mapping and the memfd stay until free. */
void df_segment_end(struct df_own_segment *own);
void df_segment_free(struct df_own_segment *own);

#endif
