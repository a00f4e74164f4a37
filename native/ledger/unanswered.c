/*
 * unanswered.c - calls that a server was at when it died: out of the ledger, then asked for again.
 */
#include "ledger/unanswered.h"

#include <errno.h>

#include "channel/link.h"
#include "channel/sys.h"

/* ---- the ledger ------------------------------------------------------------------------------ */

/* The client has the file no more. Closed it is by df_files_take(), when nobody has it. */
static void forget_file(struct df_files *files, uint32_t client, uint64_t handle)
{
    uint32_t index = df_handle_index(handle), place = client % DF_CLIENT_MAX;
    uint64_t bit = UINT64_C(1) << index % 64, *word;

    if (!df_segment_ofd(files->segment, handle) || files->ledger->clients[place].id != client)
        return;
    word = &files->ledger->sets[place][index / 64];
    if (*word & bit)
        *word &= ~bit;
}

/* Its files are dropped by df_files_take(), as those of all that are none. */
static void forget_child(struct df_files *files, uint32_t client)
{
    uint32_t place = client % DF_CLIENT_MAX;

    if (client != 0 && files->ledger->clients[place].id == client)
        files->ledger->clients[place].id = 0;
}

static void settle(struct df_files *files, const struct df_slot *slot)
{
    uint32_t word = atomic_load(&slot->word), client = df_slot_client(word);
    enum df_slot_state state = df_slot_state(word);
    const struct df_message *m = &slot->message;

    if (state != DF_SLOT_RUNNING && state != DF_SLOT_ABANDONED)
        return;
    if (df_message_opens(m))
        forget_file(files, client, atomic_load(&slot->entered));
    else if (m->op == DF_MESSAGE_FORK)
        forget_child(files, (uint32_t)atomic_load(&slot->entered));
    else if (m->op == DF_MESSAGE_UNFORK)
        forget_child(files, m->args.unfork.client);
    else if (df_message_lets_go(m) || (m->op == DF_MESSAGE_ADOPT && state == DF_SLOT_ABANDONED))
        forget_file(files, client, m->files[0]);
}

void df_unanswered_settle(struct df_files *files)
{
    for (unsigned i = 0; i < DF_SLOT_COUNT; i++)
        settle(files, &df_segment_slots(files->segment)[i]);
}

/* ---- the slots ------------------------------------------------------------------------------- */

/* Whether a server crashed at it for the second time. One that was killed died of nothing that it
 * was at, and what is the server's own business no plugin can crash at twice. */
static bool is_deadly(const struct df_segment *segment, struct df_slot *slot)
{
    return slot->message.op < DF_MESSAGE_OPS && atomic_load(&segment->end) != DF_END_NONE &&
           atomic_fetch_add(&slot->died, 1) > 0;
}

/* Unless the client has given up just now. */
static void put_state(struct df_segment *segment, struct df_slot *slot, uint32_t word,
                      enum df_slot_state state)
{
    if (!atomic_compare_exchange_strong(&slot->word, &word,
                                        df_slot_word(df_slot_client(word), state)))
        df_link_release(segment, slot);
    else if (state == DF_SLOT_DONE)
        df_sys_wake(&slot->word, 1);
}

static void answer(struct df_segment *segment, struct df_slot *slot, uint32_t word, int result)
{
    slot->message.result = result;
    put_state(segment, slot, word, DF_SLOT_DONE);
}

/* What two servers have died of ends in EIO: it would be the death of all. */
static void take_up(struct df_segment *segment, struct df_slot *slot, uint32_t word)
{
    if (df_message_lets_go(&slot->message))
        answer(segment, slot, word, 0);
    else if (is_deadly(segment, slot))
        answer(segment, slot, word, -EIO);
    else
        put_state(segment, slot, word, DF_SLOT_SUBMITTED);
}

/* By the ledger: it was being buried, or came too late. */
static bool is_nobodys(const struct df_files *files, uint32_t client)
{
    return files->ledger->clients[client % DF_CLIENT_MAX].id != client;
}

/* The question is behind what was posted and is still to be done: it stays so. */
static bool comes_second(const struct df_segment *segment, const struct df_slot *slot,
                         uint32_t word)
{
    uint32_t first = atomic_load(&df_slot_neighbour(segment, slot)->word);

    return df_slot_state(first) == DF_SLOT_POSTED && df_slot_client(first) == df_slot_client(word);
}

/* What was posted is done: the question behind it is one as any. */
static void submit_behind(struct df_segment *segment, struct df_slot *slot, uint32_t client)
{
    uint32_t index = (uint32_t)(slot - df_segment_slots(segment));
    uint32_t word = df_slot_word(client, DF_SLOT_BEHIND);

    if (atomic_compare_exchange_strong(&slot->word, &word, df_slot_word(client, DF_SLOT_SUBMITTED)))
        atomic_fetch_or(&segment->pending[index / 64], UINT64_C(1) << index % 64);
}

/* All that was to be done is. */
static void free_abandoned(struct df_segment *segment, struct df_slot *slot)
{
    uint32_t word = atomic_exchange(&slot->word, DF_SLOT_FREE);

    df_link_freed(segment, slot);
    if (word & DF_SLOT_FOLLOWED)
        submit_behind(segment, df_slot_neighbour(segment, slot), df_slot_client(word));
}

static bool is_sent(enum df_slot_state state)
{
    return state == DF_SLOT_SUBMITTED || state == DF_SLOT_POSTED;
}

static void submit(const struct df_files *files, unsigned index)
{
    struct df_segment *segment = files->segment;
    struct df_slot *slot = &df_segment_slots(segment)[index];
    uint32_t word = atomic_load(&slot->word);

    if (df_slot_state(word) == DF_SLOT_FREE)
        return;
    if (is_nobodys(files, df_slot_client(word)))
        df_link_release(segment, slot);
    else if (df_slot_state(word) == DF_SLOT_RUNNING)
        take_up(segment, slot, word);
    else if (df_slot_state(word) == DF_SLOT_ABANDONED)
        free_abandoned(segment, slot);
    else if (df_slot_state(word) == DF_SLOT_BEHIND && !comes_second(segment, slot, word))
        submit_behind(segment, slot, df_slot_client(word));
    if (is_sent(df_slot_state(atomic_load(&slot->word))))
        atomic_fetch_or(&segment->pending[index / 64], UINT64_C(1) << index % 64);
}

void df_unanswered_submit(const struct df_files *files)
{
    for (unsigned i = 0; i < DF_SLOT_COUNT; i++)
        submit(files, i);
}
