/*
 * frames_private.h - between contents.c and frames.c.
 */
#ifndef DF_SERVER_FRAMES_PRIVATE_H
#define DF_SERVER_FRAMES_PRIVATE_H

#include "server/frames.h"

static inline pthread_mutex_t *df_framer_stripe(struct df_framer *framer, uint16_t content)
{
    return &framer->stripes[content % DF_BODY_STRIPES];
}

/* Pages first to last of the content go. Under its stripe. */
void df_framer_take_away(struct df_framer *framer, uint16_t content, uint64_t first, uint64_t last);

#endif
