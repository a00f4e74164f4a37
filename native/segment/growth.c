/*
 * growth.c - hands out elements of the segment, and has memory made for them.
 */
#include "segment/growth.h"

#include "core/clock.h"

#define AGAIN_NS INT64_C(1000000000) /* between two attempts where there is none */

static bool grow(struct df_growth *growth, df_growth_make *make, void *owner)
{
    uint32_t count;

    if (growth->failed != 0 && df_clock_coarse() - growth->failed < AGAIN_NS)
        return false;
    count = make(owner, growth->made);
    growth->failed = count > 0 ? 0 : df_clock_coarse();
    growth->made += count;
    return count > 0;
}

bool df_growth_reach(struct df_growth *growth, uint32_t number, df_growth_make *make, void *owner)
{
    while (growth->made < number)
        if (!grow(growth, make, owner))
            return false;
    return true;
}

uint32_t df_growth_take(struct df_growth *growth, df_growth_make *make, void *owner)
{
    return df_growth_reach(growth, growth->used + 1, make, owner) ? ++growth->used : 0;
}
