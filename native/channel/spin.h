/*
 * spin.h - for how long to look again and again before going to sleep. Freestanding.
 *
 * A spin is judged in hindsight: by how long the wait was in the end, slept or not. A wait that was
 * short though it was slept through says that a longer spin would have met its end, so two sides
 * that both sleep find back to spinning by themselves. (Judged by its own success a spin that has
 * become too short for the other side's sleep would stay so for ever.) A wait that was long says
 * that the other side has nothing for us, or no processor.
 *
 * A wait ends when the other side does its part, which it writes down (df_slot.at): until who
 * sleeps has been woken may take longer than any spin. And where the other side ran on the
 * processor of who waited, it could only do so because that slept.
 */
#ifndef DF_CHANNEL_SPIN_H
#define DF_CHANNEL_SPIN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "channel/sys.h"

/* All in ticks >> 6: at 2.5 GHz 1000 are about 26 us. */
#define DF_SPIN_START 1024
#define DF_SPIN_MIN   48
#define DF_SPIN_MAX   2048 /* as long as both sides' falling asleep and waking take */

/* Of who waits for a question: programs often work for longer than that between two of them (git
 * hashes a file of 20 KB), and each would begin with waking the server. What is behind DF_SPIN_MAX
 * is spun politely: df_spin_is_long(). */
#define DF_SPIN_MAX_QUESTION 8192

/* In a moment: the other side ran on the processor where who waits did. */
#define DF_SPIN_HERE 1U

/* Ticks between two looks, from which on we have not been running: somebody wants the processor. */
#define DF_SPIN_TORN 32768

/* Ticks between the last look and the end of a wait, from which on it was not seen to end: whoever
 * ended it has had our processor, as a woken worker does that the kernel puts there, or the call
 * that woke it took so long that there was nothing to spin for. */
#define DF_SPIN_MISSED 4096

struct df_spin {
    uint64_t begin; /* of the wait */
    uint64_t last;  /* look */
    uint64_t limit; /* ticks after begin */
    bool torn;      /* we were not running all the time */
};

/* A moment that another processor understands: ticks, their lower half. */
static inline uint32_t df_spin_moment(uint64_t ticks)
{
    return (uint32_t)ticks & ~DF_SPIN_HERE;
}

/* The ticks of a moment that was not long before `now` (half a second at 4 GHz; later ones are now:
 * clocks of two processors may differ by a little). */
static inline uint64_t df_spin_ticks(uint32_t moment, uint64_t now)
{
    int32_t ago = (int32_t)(df_spin_moment(now) - (moment & ~DF_SPIN_HERE));

    return ago > 0 ? now - (uint64_t)ago : now;
}

static inline struct df_spin df_spin_begin(const _Atomic uint32_t *worth, uint64_t now)
{
    uint64_t limit = (uint64_t)atomic_load_explicit(worth, memory_order_relaxed) << 6;

    return (struct df_spin){.begin = now, .last = now, .limit = limit};
}

/* False: it is over. */
static inline bool df_spin_on(struct df_spin *spin)
{
    uint64_t now;

    df_sys_relax();
    now = df_sys_ticks();
    spin->torn |= now - spin->last > DF_SPIN_TORN;
    spin->last = now;
    return now - spin->begin < spin->limit;
}

/* The processor is to be offered to others between two looks. */
static inline bool df_spin_is_long(const struct df_spin *spin)
{
    return spin->last - spin->begin > (uint64_t)DF_SPIN_MAX << 6;
}

/* The other side did its part, at `end`, later than the longest spin that is worth its while. */
static inline bool df_spin_was_long(const struct df_spin *spin, uint64_t end, uint32_t longest)
{
    return (int64_t)(end - spin->begin) > (int64_t)longest << 6; /* it may be before the wait */
}

/* The wait is over. `end`: ticks at which the other side did its part. `longest`: a spin that is
 * worth its while, DF_SPIN_MAX or that of a question. Lost updates do no harm; in the steady state
 * there are none. */
static inline void df_spin_learn(_Atomic uint32_t *worth, const struct df_spin *spin, uint64_t end,
                                 bool slept, uint32_t longest)
{
    uint32_t before = atomic_load_explicit(worth, memory_order_relaxed), after;

    if (spin->torn || df_spin_was_long(spin, end, longest))
        after = before / 2;
    else
        after = slept ? before + before / 4 : before * 2;
    after = after < DF_SPIN_MIN ? DF_SPIN_MIN : after > longest ? longest : after;
    if (after != before)
        atomic_store_explicit(worth, after, memory_order_relaxed);
}

#endif
