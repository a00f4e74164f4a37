/*
 * link.c - claims slots, rings the doorbell, awaits replies. Freestanding.
 *
 * Why no wake-up is lost: the client sets its bit in `pending`, then reads `spinning` and `asleep`;
 * a worker writes those, then reads `pending` (server/worker.c). The client writes `waiting`, then
 * reads the slot's word; the worker writes the word, then reads `waiting`. All sequentially
 * consistent, so one of the two always sees the other.
 */
#include "channel/link.h"

#include <errno.h>

#include "channel/sys.h"

#define BUDGET_START 256  /* of df_link.budget: ticks >> 6 */
#define BUDGET_MIN   16   /* about 0.4 us at 2.5 GHz: a hot answer is still met */
#define BUDGET_MAX   1024 /* about 26 us: beyond that sleeping is cheaper */

#define LOOK_NS      INT64_C(50000000) /* between two looks whether the server lives */

int df_link_init(struct df_link *link, void *mapped, uint64_t size)
{
    const struct df_segment *segment = mapped;

    if (size < sizeof(*segment) || segment->magic != DF_SEGMENT_MAGIC ||
        segment->version != DF_SEGMENT_VERSION || segment->size != size)
        return -EPROTO;
    link->segment = mapped;
    link->client = 0;
    link->control = link->memory = -1;
    atomic_init(&link->patience, -1);
    atomic_init(&link->hint, 0);
    atomic_init(&link->budget, BUDGET_START);
    atomic_init(&link->told, 0);
    atomic_init(&link->trips, 0);
    atomic_init(&link->spun, 0);
    atomic_init(&link->slept, 0);
    atomic_init(&link->hits, 0);
    return 0;
}

/* Lost counts do no harm. */
static void count(_Atomic uint64_t *counter)
{
    atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + 1,
                          memory_order_relaxed);
}

/* ---- claiming -------------------------------------------------------------------------------- */

static struct df_slot *try_claim(struct df_link *link)
{
    struct df_slot *slots = df_segment_slots(link->segment);
    uint32_t first = atomic_load_explicit(&link->hint, memory_order_relaxed);
    uint32_t wanted = df_slot_word(link->client, DF_SLOT_CLAIMED);

    for (uint32_t i = 0; i < DF_SLOT_COUNT; i++) {
        struct df_slot *slot = &slots[(first + i) % DF_SLOT_COUNT];
        uint32_t word = DF_SLOT_FREE;

        if (atomic_load_explicit(&slot->word, memory_order_relaxed) == word &&
            atomic_compare_exchange_strong(&slot->word, &word, wanted))
            return slot;
    }
    return NULL;
}

/* All slots are taken: until one is freed. */
static struct df_slot *claim_slowly(struct df_link *link, int *error)
{
    struct df_segment *segment = link->segment;
    struct df_slot *slot = NULL;
    int64_t waited = 0;

    atomic_fetch_add(&segment->slot_waiters, 1);
    for (;;) {
        uint32_t freed = atomic_load(&segment->freed);

        if ((slot = try_claim(link)))
            break;
        *error = !df_link_alive(link)                              ? -ENOTCONN
                 : link->patience >= 0 && waited >= link->patience ? -ETIMEDOUT
                                                                   : 0;
        if (*error < 0)
            break;
        if (df_sys_wait(&segment->freed, freed, LOOK_NS) == -ETIMEDOUT)
            waited += LOOK_NS;
    }
    atomic_fetch_sub(&segment->slot_waiters, 1);
    return slot;
}

struct df_slot *df_link_claim(struct df_link *link, int *error)
{
    struct df_slot *slot;

    if (!df_link_alive(link)) {
        *error = -ENOTCONN;
        return NULL;
    }
    slot = try_claim(link);
    return slot ? slot : claim_slowly(link, error);
}

void df_link_free(struct df_link *link, struct df_slot *slot)
{
    atomic_store_explicit(&link->hint, (uint32_t)(slot - df_segment_slots(link->segment)),
                          memory_order_relaxed);
    df_link_release(link->segment, slot);
}

void df_link_release(struct df_segment *segment, struct df_slot *slot)
{
    atomic_store(&slot->word, DF_SLOT_FREE);
    if (atomic_load(&segment->slot_waiters) > 0) {
        atomic_fetch_add(&segment->freed, 1);
        df_sys_wake(&segment->freed, 1);
    }
}

/* ---- sending --------------------------------------------------------------------------------- */

static void ring(struct df_segment *segment)
{
    if (atomic_load(&segment->spinning) > 0 || atomic_load(&segment->asleep) == 0)
        return;
    atomic_fetch_add(&segment->doorbell, 1);
    df_sys_wake(&segment->doorbell, 1);
}

static void mark(struct df_link *link, _Atomic uint64_t *bits, const struct df_slot *slot)
{
    uint32_t index = (uint32_t)(slot - df_segment_slots(link->segment));

    atomic_fetch_or(&bits[index / 64], UINT64_C(1) << index % 64);
    ring(link->segment);
}

/* ---- waiting --------------------------------------------------------------------------------- */

/* Grows with success, shrinks twice as fast with failure: with busy cores spins soon are short. */
static void learn(struct df_link *link, uint32_t budget, bool success)
{
    if (success)
        budget += budget / 8;
    else
        budget -= budget / 4;
    if (budget < BUDGET_MIN)
        budget = BUDGET_MIN;
    if (budget > BUDGET_MAX)
        budget = BUDGET_MAX;
    atomic_store_explicit(&link->budget, budget, memory_order_relaxed);
}

static bool spin(struct df_link *link, struct df_slot *slot, uint32_t done)
{
    uint32_t budget = atomic_load_explicit(&link->budget, memory_order_relaxed);
    uint64_t begin = df_sys_ticks();
    bool success = false;

    if (link->segment->cpus < 2)
        return false;
    do {
        success = atomic_load_explicit(&slot->word, memory_order_acquire) == done;
        df_sys_relax();
    } while (!success && df_sys_ticks() - begin < (uint64_t)budget << 6);
    learn(link, budget, success);
    return success;
}

/* Nobody waits any more: the worker, or this, frees the slot. True if the reply came just now. */
static bool abandon(struct df_link *link, struct df_slot *slot)
{
    uint32_t client = link->client, word = df_slot_word(client, DF_SLOT_SUBMITTED);

    if (atomic_compare_exchange_strong(&slot->word, &word, DF_SLOT_FREE))
        return false;
    word = df_slot_word(client, DF_SLOT_RUNNING);
    return !atomic_compare_exchange_strong(&slot->word, &word,
                                           df_slot_word(client, DF_SLOT_ABANDONED)) &&
           word == df_slot_word(client, DF_SLOT_DONE);
}

/* One sleep on the slot. 0: look again. */
static int nap(struct df_link *link, struct df_slot *slot, uint32_t word, int64_t patience,
               int64_t *waited)
{
    long ret = df_sys_wait(&slot->word, word, LOOK_NS);

    if (ret == -EINTR)
        mark(link, link->segment->signals, slot);
    if (ret != -ETIMEDOUT)
        return 0;
    *waited += LOOK_NS;
    if (!df_link_alive(link))
        return atomic_load(&slot->word) == df_slot_word(link->client, DF_SLOT_DONE) ? 0 : -ENOTCONN;
    if (patience >= 0 && *waited >= patience && !abandon(link, slot))
        return -ETIMEDOUT;
    return 0;
}

static int sleep_on(struct df_link *link, struct df_slot *slot, uint32_t done, int64_t patience)
{
    int64_t waited = 0;
    uint32_t word;
    int ret = 0;

    count(&link->slept);
    atomic_store(&slot->waiting, 1);
    while (ret == 0 && (word = atomic_load(&slot->word)) != done)
        ret = nap(link, slot, word, patience, &waited);
    if (ret == 0)
        atomic_store_explicit(&slot->waiting, 0, memory_order_relaxed);
    return ret;
}

int df_link_run(struct df_link *link, struct df_slot *slot, int64_t patience)
{
    uint32_t done = df_slot_word(link->client, DF_SLOT_DONE);

    count(&link->trips);
    atomic_store_explicit(&slot->waiting, 0, memory_order_relaxed);
    atomic_store_explicit(&slot->word, df_slot_word(link->client, DF_SLOT_SUBMITTED),
                          memory_order_release);
    mark(link, link->segment->pending, slot);
    if (spin(link, slot, done)) {
        count(&link->spun);
        return 0;
    }
    return sleep_on(link, slot, done, patience);
}
