/*
 * pool_take.c - a slot from its client to a worker, and back with the answer.
 */
#include "channel/link.h"
#include "channel/spin.h"
#include "channel/sys.h"
#include "workers/pool_private.h"

/* ---- taking ---------------------------------------------------------------------------------- */

bool df_pool_any_pending(struct df_segment *segment)
{
    for (unsigned i = 0; i < DF_SLOT_COUNT / 64; i++)
        if (atomic_load(&segment->pending[i]) != 0 || atomic_load(&segment->signals[i]) != 0)
            return true;
    return false;
}

/* Clears the lowest bit that is set in word i; -1: none. */
static int take_bit(_Atomic uint64_t *words, unsigned i)
{
    uint64_t bits = atomic_load_explicit(&words[i], memory_order_relaxed);

    while (bits != 0) {
        uint64_t lowest = bits & -bits;

        if (atomic_fetch_and(&words[i], ~lowest) & lowest)
            return (int)(i * 64) + __builtin_ctzll(lowest);
        bits = atomic_load(&words[i]);
    }
    return -1;
}

/* Of a slot that is taken; FREE: it is not for us any more. */
static enum df_slot_state next_state(enum df_slot_state state)
{
    return state == DF_SLOT_SUBMITTED ? DF_SLOT_RUNNING
           : state == DF_SLOT_POSTED  ? DF_SLOT_ABANDONED
                                      : DF_SLOT_FREE;
}

/* Of a slot whose bit was taken. False: it is not for us any more. */
static bool begin(struct df_slot *slot)
{
    uint32_t word = atomic_load(&slot->word), followed;
    enum df_slot_state next;

    do {
        next = next_state(df_slot_state(word));
        followed = word & DF_SLOT_FOLLOWED; /* of what is posted */
    } while (next != DF_SLOT_FREE &&
             !atomic_compare_exchange_weak(&slot->word, &word,
                                           df_slot_word(df_slot_client(word), next) | followed));
    return next != DF_SLOT_FREE;
}

/* Of a slot whose client has had a signal. False: it has had its answer as well, and what may be
 * asked for in the slot next is none of it. */
static bool is_asked(const struct df_slot *slot)
{
    enum df_slot_state state = df_slot_state(atomic_load(&slot->word));

    return state != DF_SLOT_FREE && state != DF_SLOT_CLAIMED && state != DF_SLOT_DONE;
}

static void pass_signals(struct df_pool *pool, unsigned i)
{
    int index;

    while ((index = take_bit(pool->segment->signals, i)) >= 0)
        if (is_asked(&df_segment_slots(pool->segment)[index]))
            df_pool_signal(pool, (uint32_t)index);
}

/* A submitted slot, now running; NULL: there is none. */
struct df_slot *df_pool_take(struct df_pool *pool)
{
    struct df_segment *segment = pool->segment;
    int index;

    for (unsigned i = 0; i < DF_SLOT_COUNT / 64; i++) {
        pass_signals(pool, i);
        while ((index = take_bit(segment->pending, i)) >= 0) {
            struct df_slot *slot = &df_segment_slots(segment)[index];

            if (begin(slot))
                return slot;
        }
    }
    return NULL;
}

/* Beside the answer, for who sleeps (spin.h). A client that begins to sleep only now finds the
 * moment of its question: a short wait, which it was. */
static void write_moment(struct df_slot *slot)
{
    uint32_t cpu, at;

    if (atomic_load_explicit(&slot->waiting, memory_order_relaxed) == 0)
        return;
    at = df_spin_moment(df_sys_clock(&cpu));
    if (cpu == slot->cpu && cpu != UINT32_MAX)
        at |= DF_SPIN_HERE;
    atomic_store_explicit(&slot->at, at, memory_order_relaxed);
}

/* What the slot will be read from comes from its client's processor: all at once, and while its bit
 * is taken. */
void df_pool_foresee(struct df_segment *segment, const struct df_slot *slot)
{
    size_t index = (size_t)(slot - df_segment_slots(segment));

    df_sys_fetch_to_write(slot);
    __builtin_prefetch(&slot->message.wheres);
    __builtin_prefetch(&slot->message.links); /* and the end of long arguments */
    __builtin_prefetch(df_segment_areas(segment)[index].names[0]);
}

/* Frees the slot. Returns the question behind what was posted in it, now running; NULL: there is
 * none. The order is that of channel/link.c. */
static struct df_slot *free_slot(struct df_segment *segment, struct df_slot *slot)
{
    struct df_slot *next = df_slot_neighbour(segment, slot);
    uint32_t word = atomic_load(&slot->word);

    for (;;) {
        uint32_t client = df_slot_client(word), behind = df_slot_word(client, DF_SLOT_BEHIND);

        if (!(word & DF_SLOT_FOLLOWED)) {
            if (!atomic_compare_exchange_strong(&slot->word, &word, DF_SLOT_FREE))
                continue;
            df_link_freed(segment, slot);
            return NULL;
        }
        df_pool_foresee(segment, next);
        word = atomic_fetch_and(&slot->word, ~DF_SLOT_FOLLOWED) & ~DF_SLOT_FOLLOWED;
        if (!atomic_compare_exchange_strong(&next->word, &behind,
                                            df_slot_word(client, DF_SLOT_RUNNING)))
            continue;
        df_link_release(segment, slot);
        return next;
    }
}

/* The reply is complete. Nobody waits for it any more: then the slot is free again. Returns as
 * free_slot(). */
struct df_slot *df_pool_give_back(struct df_pool *pool, struct df_slot *slot)
{
    uint32_t word = atomic_load_explicit(&slot->word, memory_order_relaxed);
    uint32_t done = df_slot_word(df_slot_client(word), DF_SLOT_DONE);

    write_moment(slot);
    if (df_slot_state(word) != DF_SLOT_RUNNING ||
        !atomic_compare_exchange_strong(&slot->word, &word, done)) {
        if (pool->unheard)
            pool->unheard(pool->arg, slot);
        return free_slot(pool->segment, slot);
    }
    if (atomic_load(&slot->waiting))
        df_sys_wake(&slot->word, 1);
    return NULL;
}
