/*
 * link.c - claims slots, rings the doorbell, awaits replies. Freestanding.
 *
 * Why no wake-up is lost: the client sets its bit in `pending`, then reads `spinning` and `asleep`;
 * a worker writes those, then reads `pending` (workers/pool.c). The client writes `waiting`, then
 * reads the slot's word; the worker writes the word, then reads `waiting`. All sequentially
 * consistent, so one of the two always sees the other.
 *
 * A worker that spins may have lost its processor: who has spun in vain and finds its slot not even
 * taken wakes another one. Not the one that it has woken itself and that has not run yet.
 *
 * A question behind what this process has posted does not wait until that is done: it says BEHIND
 * in the neighbour's slot, then FOLLOWED in the word of what is posted. Who has done that takes
 * FOLLOWED back before it looks for a neighbour that is BEHIND, and frees the slot only where
 * nothing was said (workers/pool_take.c). So a question is begun by that worker, or its client
 * finds the other slot free and submits it as any.
 */
#include "channel/link.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#include "channel/room.h"
#include "channel/spin.h"
#include "channel/sys.h"
#include "core/export.h"

#define LOOK_NS INT64_C(50000000) /* between two looks whether the server lives */

int df_link_init(struct df_link *link, void *mapped, uint64_t size)
{
    const struct df_segment *segment = mapped;
    int64_t patience;

    if (size < sizeof(*segment) || segment->magic != DF_SEGMENT_MAGIC ||
        memcmp(segment->build, df_build, DF_BUILD_SIZE) != 0 || segment->size != size)
        return -EPROTO;
    patience = atomic_load_explicit(&segment->patience, memory_order_relaxed);
    link->segment = mapped;
    link->client = 0;
    link->control = link->memory = -1;
    link->meet = NULL;
    atomic_init(&link->patience, patience > 0 ? patience : -1);
    atomic_init(&link->hint, 0);
    atomic_init(&link->posted, 0);
    atomic_init(&link->told, 0);
    atomic_init(&link->starts, atomic_load(&segment->starts));
    atomic_init(&link->full, 0);
    atomic_init(&link->late, 0);
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

/* How long a wait has lasted, in ns, when one of its sleeps is over. By the clock: a signal ends a
 * sleep before its time. *since: when the wait began; 0 until its first sleep is over. */
static int64_t waited_since(int64_t *since, long slept)
{
    int64_t now = df_sys_now();

    if (*since == 0)
        *since = slept == -ETIMEDOUT ? now - LOOK_NS : now;
    return now - *since;
}

/* patience < 0: never. */
static bool is_over(int64_t patience, int64_t waited)
{
    return patience >= 0 && waited >= patience;
}

/* Patience has come to its end. Returns -ETIMEDOUT; who hears of it: remote.c. */
static int give_up(struct df_link *link)
{
    uint32_t never = 0;

    atomic_compare_exchange_strong(&link->late, &never, 1);
    return -ETIMEDOUT;
}

/* ---- claiming -------------------------------------------------------------------------------- */

static bool is_free(const struct df_slot *slot)
{
    return atomic_load_explicit(&slot->word, memory_order_relaxed) == DF_SLOT_FREE;
}

/* With its memory, unless *full, which it may become: then only one that has it already. */
static bool claim(struct df_link *link, struct df_slot *slot, bool *full)
{
    uint32_t word = DF_SLOT_FREE, wanted = df_slot_word(link->client, DF_SLOT_CLAIMED);

    if (!is_free(slot) || (*full && atomic_load_explicit(&slot->made, memory_order_relaxed) == 0) ||
        !atomic_compare_exchange_strong(&slot->word, &word, wanted))
        return false;
    if (df_room_begin(link->segment, slot))
        return true;
    *full = true;
    df_link_release(link->segment, slot);
    return false;
}

/* The slot that was free last, its neighbour, and then the lowest: what slots have of memory stays,
 * so it is to be the same few that are used, and not each in its turn. */
static uint32_t nth_choice(uint32_t hint, uint32_t n)
{
    return n < 2 ? hint ^ n : n - 2;
}

static struct df_slot *try_claim(struct df_link *link)
{
    struct df_slot *slots = df_segment_slots(link->segment);
    uint32_t hint = atomic_load_explicit(&link->hint, memory_order_relaxed);
    bool full = false;

    for (uint32_t n = 0; n < DF_SLOT_COUNT + 2; n++) {
        struct df_slot *slot = &slots[nth_choice(hint, n)];

        if (claim(link, slot, &full))
            return slot;
    }
    return NULL;
}

/* Whoever frees a slot from now on wakes one of those who sleep on the count that is returned. It
 * counts first, and takes the word back if it has found nobody asleep and nobody has come since; so
 * who has read the count first either finds it changed or is still wanted for. What is counted is
 * who comes, and not who waits: one that is killed while it waits leaves nothing behind. */
static uint32_t want_slot(struct df_segment *segment)
{
    uint32_t freed = atomic_load(&segment->freed);

    atomic_fetch_add(&segment->wanted, 1);
    return freed;
}

/* A slot is free, for one: thousands that are woken for it would take the processors from who has
 * the others. */
static void wake_wanting(struct df_segment *segment)
{
    uint32_t wanted = atomic_load(&segment->wanted);

    if (wanted == 0)
        return;
    atomic_fetch_add(&segment->freed, 1);
    if (df_sys_wake(&segment->freed, 1) <= 0)
        atomic_compare_exchange_strong(&segment->wanted, &wanted, 0);
}

/* All slots are taken: until one is freed. */
static struct df_slot *claim_slowly(struct df_link *link, int64_t patience, int *error)
{
    struct df_segment *segment = link->segment;
    struct df_slot *slot;
    int64_t since = 0, waited = 0;

    for (;;) {
        uint32_t freed = want_slot(segment);

        if ((slot = try_claim(link)))
            return slot;
        *error = df_link_lost(link) ? -ENOTCONN : is_over(patience, waited) ? -ETIMEDOUT : 0;
        if (*error == -ETIMEDOUT)
            give_up(link);
        if (*error < 0)
            return NULL;
        waited = waited_since(&since, df_sys_wait(&segment->freed, freed, LOOK_NS));
    }
}

/* The slot of df_link.posted; NULL: none. */
static struct df_slot *posted_slot(const struct df_link *link, uint32_t posted)
{
    uint32_t place = posted & UINT8_MAX;

    return place > 0 ? &df_segment_slots(link->segment)[place - 1] : NULL;
}

_Static_assert(DF_SLOT_COUNT < UINT8_MAX, "beside a count in df_link.posted");

/* What was posted is done, or is waited for no more. */
static void forget_posted(struct df_link *link, uint32_t posted)
{
    atomic_compare_exchange_strong(&link->posted, &posted, posted & ~(uint32_t)UINT8_MAX);
}

/* A slot of that word is one that this process has posted. */
static bool is_posted(const struct df_link *link, uint32_t word)
{
    return df_slot_client(word) == link->client &&
           (df_slot_state(word) == DF_SLOT_POSTED || df_slot_state(word) == DF_SLOT_ABANDONED);
}

static _Atomic uint32_t *settled(struct df_segment *segment, const struct df_slot *slot)
{
    return &segment->settled[slot - df_segment_slots(segment)];
}

/* Who frees it looks for waiters. */
static void settle_slowly(struct df_link *link, const struct df_slot *slot, int64_t patience)
{
    _Atomic uint32_t *count = settled(link->segment, slot);
    int64_t since = 0, waited = 0;

    for (;;) {
        uint32_t odd = atomic_fetch_or(count, 1) | 1;

        if (!is_posted(link, atomic_load(&slot->word)) || df_link_lost(link) ||
            is_over(patience, waited))
            return;
        waited = waited_since(&since, df_sys_wait(count, odd, LOOK_NS));
    }
}

/* What was posted in the slot is done, for all that wait for that. Nobody else makes the count
 * even. */
static void wake_settling(struct df_segment *segment, const struct df_slot *slot)
{
    _Atomic uint32_t *count = settled(segment, slot);
    uint32_t odd = atomic_load(count);

    if (odd % 2 == 1 && atomic_compare_exchange_strong(count, &odd, odd + 1))
        df_sys_wake(count, INT_MAX);
}

/* What was posted is a close mostly. Its RELEASE may hang, for which Linux waits nowhere. */
static void settle(struct df_link *link, int64_t patience)
{
    uint32_t posted = atomic_load_explicit(&link->posted, memory_order_acquire);
    const struct df_slot *slot = posted_slot(link, posted);
    struct df_segment *segment = link->segment;
    struct df_spin spin;

    if (!slot)
        return;
    spin = df_spin_begin(&segment->worth, df_sys_ticks());
    while (is_posted(link, atomic_load_explicit(&slot->word, memory_order_acquire)))
        if (segment->cpus < 2 || !df_spin_on(&spin)) {
            settle_slowly(link, slot, df_link_briefly(patience));
            break;
        }
    forget_posted(link, posted);
}

void df_link_settle(struct df_link *link)
{
    settle(link, link->patience);
}

/* The slot behind what was posted and is not done; NULL: there is none. */
static struct df_slot *try_claim_behind(struct df_link *link)
{
    uint32_t posted = atomic_load_explicit(&link->posted, memory_order_acquire);
    struct df_slot *slot = posted_slot(link, posted);
    bool full = false;

    if (!slot || !is_posted(link, atomic_load_explicit(&slot->word, memory_order_relaxed)))
        return NULL;
    slot = df_slot_neighbour(link->segment, slot);
    return claim(link, slot, &full) ? slot : NULL;
}

struct df_slot *df_link_claim(struct df_link *link, int64_t patience, int *error)
{
    struct df_slot *slot;

    if (df_link_lost(link)) {
        *error = -ENOTCONN;
        return NULL;
    }
    if (DF_UNLIKELY(__atomic_load_n(&link->client, __ATOMIC_ACQUIRE) == 0) && link->meet)
        link->meet(link);
    if ((slot = try_claim_behind(link)))
        return slot;
    settle(link, patience);
    slot = try_claim(link);
    return slot ? slot : claim_slowly(link, patience, error);
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
    df_link_freed(segment, slot);
}

void df_link_freed(struct df_segment *segment, const struct df_slot *slot)
{
    wake_settling(segment, slot);
    wake_wanting(segment);
}

/* ---- sending --------------------------------------------------------------------------------- */

/* The worker to wake, always the lowest; DF_WORKER_COUNT: none sleeps. */
static unsigned find_asleep(struct df_segment *segment)
{
    for (unsigned i = 0; i < DF_WORKER_WORDS; i++) {
        uint64_t asleep = atomic_load(&segment->asleep[i]);

        if (asleep != 0)
            return i * 64 + (unsigned)__builtin_ctzll(asleep);
    }
    return DF_WORKER_COUNT;
}

/* Unless that is `woken`. Returns who has been woken now, else DF_WORKER_COUNT. */
static unsigned ring_but(struct df_segment *segment, unsigned woken)
{
    unsigned worker = find_asleep(segment);

    if (worker == DF_WORKER_COUNT || worker == woken)
        return DF_WORKER_COUNT;
    atomic_fetch_add(&segment->doorbells[worker].rings, 1);
    df_sys_wake(&segment->doorbells[worker].rings, 1);
    return worker;
}

void df_link_ring(struct df_segment *segment)
{
    ring_but(segment, DF_WORKER_COUNT);
}

/* *spins: df_segment.spinning. Returns as ring_but(). */
static unsigned mark_and_look(struct df_link *link, _Atomic uint64_t *bits,
                              const struct df_slot *slot, uint32_t *spins)
{
    uint32_t index = (uint32_t)(slot - df_segment_slots(link->segment));

    atomic_fetch_or(&bits[index / 64], UINT64_C(1) << index % 64);
    *spins = atomic_load(&link->segment->spinning);
    return *spins == 0 ? ring_but(link->segment, DF_WORKER_COUNT) : DF_WORKER_COUNT;
}

static void mark(struct df_link *link, _Atomic uint64_t *bits, const struct df_slot *slot)
{
    uint32_t spins;

    mark_and_look(link, bits, slot, &spins);
}

/* ---- waiting --------------------------------------------------------------------------------- */

/* Returns the moment, in ticks. Nobody is told yet: mark(). */
static uint64_t submit(struct df_link *link, struct df_slot *slot, enum df_slot_state state)
{
    uint64_t now = df_sys_clock(&slot->cpu);

    count(&link->trips);
    atomic_store_explicit(&slot->at, df_spin_moment(now), memory_order_relaxed);
    atomic_store_explicit(&slot->waiting, 0, memory_order_relaxed);
    atomic_store_explicit(&slot->died, 0, memory_order_relaxed);
    atomic_store_explicit(&slot->entered, 0, memory_order_relaxed);
    atomic_store_explicit(&slot->word, df_slot_word(link->client, state), memory_order_release);
    return now;
}

bool df_link_post(struct df_link *link, struct df_slot *slot)
{
    uint32_t index = (uint32_t)(slot - df_segment_slots(link->segment));
    uint32_t none = atomic_load_explicit(&link->posted, memory_order_relaxed);

    if (posted_slot(link, none) ||
        !atomic_compare_exchange_strong(&link->posted, &none, none + (UINT8_MAX + 1) + index + 1))
        return false;
    atomic_store_explicit(&link->hint, index, memory_order_relaxed);
    submit(link, slot, DF_SLOT_POSTED);
    mark(link, link->segment->pending, slot);
    return true;
}

/* A worker that spins on this processor does not run: nothing to wait for. */
static bool may_spin(const struct df_segment *segment, uint32_t spins, uint32_t cpu)
{
    return segment->cpus > 1 && spins != DF_SPINNING_ON(cpu);
}

static bool is_done(const struct df_slot *slot, uint32_t done)
{
    return atomic_load_explicit(&slot->word, memory_order_acquire) == done;
}

/* The question waits for what was posted no more. False: it was begun. */
static bool overtake(struct df_link *link, struct df_slot *slot)
{
    uint32_t word = df_slot_word(link->client, DF_SLOT_BEHIND);

    return atomic_compare_exchange_strong(&slot->word, &word,
                                          df_slot_word(link->client, DF_SLOT_SUBMITTED));
}

/* What is said in the slot is to be begun behind what was posted in its neighbour. False: that is
 * done, and it is not. */
static bool follow(struct df_link *link, struct df_slot *slot)
{
    struct df_slot *first = df_slot_neighbour(link->segment, slot);
    uint32_t word = atomic_load(&first->word);

    while (is_posted(link, word))
        if (atomic_compare_exchange_weak(&first->word, &word, word | DF_SLOT_FOLLOWED))
            return true;
    return !overtake(link, slot);
}

/* Before anybody has begun it. False: somebody has. */
static bool withdraw(struct df_link *link, struct df_slot *slot)
{
    uint32_t client = link->client, word = df_slot_word(client, DF_SLOT_SUBMITTED);
    bool stays = df_message_lets_go(&slot->message);
    uint32_t then = stays ? df_slot_word(client, DF_SLOT_POSTED) : DF_SLOT_FREE;

    if (!atomic_compare_exchange_strong(&slot->word, &word, then))
        return false;
    if (stays) /* a worker may have taken its bit, and have found another word than it had read */
        mark(link, link->segment->pending, slot);
    else
        df_link_freed(link->segment, slot);
    return true;
}

/* Nobody waits any more: the worker, or this, frees the slot. True if the reply came just now. */
static bool abandon(struct df_link *link, struct df_slot *slot)
{
    uint32_t client = link->client, word;

    do {
        if (withdraw(link, slot))
            return false;
        word = df_slot_word(client, DF_SLOT_RUNNING);
        if (atomic_compare_exchange_strong(&slot->word, &word,
                                           df_slot_word(client, DF_SLOT_ABANDONED))) {
            mark(link, link->segment->signals, slot); /* not a slot that is free again */
            return false;
        }
    } while (word == df_slot_word(client, DF_SLOT_SUBMITTED)); /* the server was started again */
    return word == df_slot_word(client, DF_SLOT_DONE);
}

/* What was posted has been waited for as long as settle() waits. */
static void go_ahead(struct df_link *link, struct df_slot *slot, uint32_t posted)
{
    forget_posted(link, posted);
    if (overtake(link, slot))
        mark(link, link->segment->pending, slot);
}

/* A wait for an answer that has become a sleep. */
struct sleep {
    int64_t since; /* waited_since() */
    bool signalled;
};

/* One sleep on the slot. 0: look again. Of a signal the worker is told at each look from then on:
 * one that was not asleep yet itself has missed it. */
static int nap(struct df_link *link, struct df_slot *slot, uint32_t word, int64_t patience,
               uint32_t behind, struct sleep *sleep)
{
    long ret = df_sys_wait(&slot->word, word, LOOK_NS);
    int64_t waited;

    if (ret != -EINTR && ret != -ETIMEDOUT)
        return 0;
    sleep->signalled |= ret == -EINTR;
    if (sleep->signalled)
        mark(link, link->segment->signals, slot);
    waited = waited_since(&sleep->since, ret);
    if (df_link_lost(link))
        return atomic_load(&slot->word) == df_slot_word(link->client, DF_SLOT_DONE) ? 0 : -ENOTCONN;
    if (df_slot_client(atomic_load(&slot->word)) != link->client) /* the server takes it for dead */
        return -ENOTCONN;
    if (df_slot_state(word) == DF_SLOT_BEHIND) {
        if (is_over(df_link_briefly(link->patience < 0 ? patience : link->patience), waited)) {
            go_ahead(link, slot, behind);
            sleep->since = 0;
        }
    } else if (patience >= 0 && waited >= patience && !abandon(link, slot)) {
        return give_up(link);
    }
    return 0;
}

/* It was answered all the same. Who sees the bit only now would take it for the next question's. */
static void take_signal_back(struct df_link *link, const struct df_slot *slot)
{
    uint32_t index = (uint32_t)(slot - df_segment_slots(link->segment));

    atomic_fetch_and(&link->segment->signals[index / 64], ~(UINT64_C(1) << index % 64));
}

/* Nobody is at it, nor at what comes before it. */
static bool is_lying(const struct df_link *link, const struct df_slot *slot)
{
    enum df_slot_state state = df_slot_state(atomic_load(&slot->word));

    if (state == DF_SLOT_BEHIND)
        state = df_slot_state(atomic_load(&df_slot_neighbour(link->segment, slot)->word));
    return state == DF_SLOT_SUBMITTED || state == DF_SLOT_POSTED;
}

static int sleep_on(struct df_link *link, struct df_slot *slot, uint32_t done, int64_t patience,
                    struct df_asked asked)
{
    struct sleep sleep = {0};
    uint32_t word;
    int ret = 0;

    count(&link->slept);
    atomic_store(&slot->waiting, 1);
    if (is_lying(link, slot))
        ring_but(link->segment, asked.woken);
    while (ret == 0 && (word = atomic_load(&slot->word)) != done)
        ret = nap(link, slot, word, patience, asked.behind, &sleep);
    if (ret == 0 && sleep.signalled)
        take_signal_back(link, slot);
    if (ret == 0)
        atomic_store_explicit(&slot->waiting, 0, memory_order_relaxed);
    return ret;
}

/* The next question is written to the same lines, which the server has read: they come back while
 * the reply is taken. */
static void fetch_next(const struct df_link *link, const struct df_slot *slot)
{
    df_sys_fetch_to_write(slot);
    df_sys_fetch_to_write(slot->message.wheres);
    df_sys_fetch_to_write(df_link_area(link, slot)->names[0]);
}

/* The answer is there. */
static void learn(_Atomic uint32_t *worth, struct df_spin *spin, const struct df_slot *slot,
                  bool slept)
{
    uint64_t end = df_sys_ticks();
    uint32_t at = atomic_load_explicit(&slot->at, memory_order_relaxed);

    if (slept) {
        spin->torn |= at & DF_SPIN_HERE;
        end = df_spin_ticks(at, end);
    } else {
        spin->torn |= end - spin->last > DF_SPIN_MISSED;
    }
    df_spin_learn(worth, spin, end, slept, DF_SPIN_MAX);
}

/* What was posted last, if that is in the neighbour; else 0. Whether it is done is seen by
 * follow(). */
static uint32_t what_is_before(const struct df_link *link, const struct df_slot *slot)
{
    uint32_t posted = atomic_load_explicit(&link->posted, memory_order_acquire);

    return posted_slot(link, posted) == df_slot_neighbour(link->segment, slot) ? posted : 0;
}

struct df_asked df_link_ask(struct df_link *link, struct df_slot *slot)
{
    struct df_asked asked = {.behind = what_is_before(link, slot), .woken = DF_WORKER_COUNT};

    asked.at = submit(link, slot, asked.behind ? DF_SLOT_BEHIND : DF_SLOT_SUBMITTED);
    if (!asked.behind || !follow(link, slot)) {
        asked.behind = 0;
        asked.woken = mark_and_look(link, link->segment->pending, slot, &asked.spins);
    }
    return asked;
}

int df_link_await(struct df_link *link, struct df_slot *slot, int64_t patience,
                  struct df_asked asked)
{
    struct df_segment *segment = link->segment;
    bool woke = asked.woken != DF_WORKER_COUNT, came = false;
    uint32_t done = df_slot_word(link->client, DF_SLOT_DONE);
    _Atomic uint32_t *worth = woke ? &segment->woken_worth : &segment->worth;
    struct df_spin spin = df_spin_begin(worth, asked.at);
    int ret = 0;

    if (may_spin(segment, asked.spins, slot->cpu))
        while (!(came = is_done(slot, done)) && df_spin_on(&spin))
            ;
    if (came) {
        count(&link->spun);
        fetch_next(link, slot);
    } else {
        ret = sleep_on(link, slot, done, patience, asked);
    }
    if (ret == 0 && asked.behind)
        forget_posted(link, asked.behind);
    if (ret == 0 && segment->cpus > 1)
        learn(worth, &spin, slot, !came);
    return ret;
}
