/*
 * letter.c - a message on its way: made, signed, sent, answered. Freestanding.
 */
#include "channel/letter.h"

#include <errno.h>

#include "channel/room.h"
#include "channel/sys.h"

/* Who asks is mostly who asked before: what a slot says already is not written, so that the server
 * finds it where it has it. */
static bool says(const struct df_message_caller *m, const struct df_caller *caller, uint32_t groups)
{
    return ((m->uid ^ caller->uid) | (m->gid ^ caller->gid) | (m->real_uid ^ caller->real_uid) |
            (m->real_gid ^ caller->real_gid) | ((uint32_t)m->pid ^ (uint32_t)caller->pid) |
            (m->umask ^ caller->umask) | (m->group_count ^ groups) |
            (m->rights ^ caller->rights)) == 0 &&
           m->lock_owner == caller->lock_owner && m->size_limit == caller->size_limit;
}

static int sign(struct df_letter *l, const struct df_caller *caller)
{
    uint32_t groups = caller->group_count < DF_GROUPS_MAX ? caller->group_count : DF_GROUPS_MAX;

    if (!says(&l->message->caller, caller, groups))
        l->message->caller = (struct df_message_caller){
            .uid = caller->uid,
            .gid = caller->gid,
            .real_uid = caller->real_uid,
            .real_gid = caller->real_gid,
            .pid = caller->pid,
            .umask = caller->umask,
            .group_count = groups,
            .rights = caller->rights,
            .lock_owner = caller->lock_owner,
            .size_limit = caller->size_limit,
        };
    if (groups > DF_ROOM_GROUPS &&
        !df_room_make(l->trip->link->segment, l->area->groups, groups * sizeof(uint32_t)))
        return -ENOMEM;
    if (groups > 0)
        df_sys_copy(l->area->groups, caller->groups, groups * sizeof(uint32_t));
    return 0;
}

/* As who asks: mostly none. */
static void put_links(struct df_message *m, uint32_t links, uint32_t second_links)
{
    if (m->links != links)
        m->links = links;
    if (m->second_links != second_links)
        m->second_links = second_links;
}

struct df_letter df_letter_of(struct df_trip *trip, struct df_slot *slot)
{
    return (struct df_letter){
        .trip = trip,
        .slot = slot,
        .message = &slot->message,
        .area = df_link_area(trip->link, slot),
        .patience = df_letter_patience(trip),
    };
}

int df_letter_begin_within(struct df_letter *l, struct df_trip *trip, enum df_message_op op,
                           int64_t patience)
{
    int error = 0;
    struct df_slot *slot = df_link_claim(trip->link, patience, &error);

    if (!slot)
        return error;
    *l = df_letter_of(trip, slot);
    l->patience = patience;
    l->message->op = op;
    l->message->mount = trip->mount;
    put_links(l->message, trip->links, trip->second_links);
    l->message->files[0] = l->message->files[1] = 0;
    l->message->wheres[0] = l->message->wheres[1] = (struct df_message_where){0};
    return 0;
}

int df_letter_begin_plain(struct df_letter *l, struct df_trip *trip, enum df_message_op op)
{
    return df_letter_begin_within(l, trip, op, df_letter_patience(trip));
}

int df_letter_begin(struct df_letter *l, struct df_trip *trip, enum df_message_op op)
{
    int error = df_letter_begin_plain(l, trip, op);

    if (error == 0 && (error = sign(l, trip->caller)) < 0)
        df_letter_finish(l, error);
    return error;
}

size_t df_letter_room(const struct df_letter *l, size_t size)
{
    return df_room_for(l->trip->link->segment, l->slot, size);
}

int df_letter_begin_file(struct df_letter *l, struct df_trip *trip, enum df_message_op op,
                         uint64_t file)
{
    int error = df_letter_begin(l, trip, op);

    if (error == 0)
        l->message->files[0] = file;
    return error;
}

void df_letter_put_where(struct df_letter *l, unsigned i, const struct df_trip_where *where)
{
    uint32_t len = where->len < PATH_MAX ? where->len : PATH_MAX - 1;

    l->message->wheres[i] = (struct df_message_where){where->base, len, where->flags};
    df_sys_copy(l->area->names[i], where->name, len);
    l->area->names[i][len] = '\0';
}

int df_letter_begin_where(struct df_letter *l, struct df_trip *trip, enum df_message_op op,
                          const struct df_trip_where *where)
{
    int error = df_letter_begin(l, trip, op);

    if (error == 0)
        df_letter_put_where(l, 0, where);
    return error;
}

/* ---- closes that are owed -------------------------------------------------------------------- */

#define FLUSHES (UINT64_C(1) << 31) /* of an owed handle; no index of a file is as large */

void df_letter_owe(struct df_link *link, uint64_t file, bool flush)
{
    for (unsigned i = 0; i < DF_LINK_OWED; i++) {
        uint64_t none = 0;

        if (!atomic_compare_exchange_strong(&link->owed[i], &none, file | (flush ? FLUSHES : 0)))
            continue;
        atomic_fetch_add(&link->owes, 1);
        return;
    }
}

static uint64_t take_owed(struct df_link *link)
{
    for (unsigned i = 0; i < DF_LINK_OWED; i++) {
        uint64_t file = atomic_exchange(&link->owed[i], 0);

        if (file == 0)
            continue;
        atomic_fetch_sub(&link->owes, 1);
        return file;
    }
    return 0;
}

/* Whether the slot is on its way again. Nobody waits for the answer. */
static bool pay(struct df_letter *l)
{
    struct df_link *link = l->trip->link;
    uint64_t file = l->trip->caller ? take_owed(link) : 0;
    bool flush = file & FLUSHES;

    if (file == 0)
        return false;
    l->message->op = flush ? DF_MESSAGE_flush : DF_MESSAGE_DROP;
    l->message->files[0] = file & ~FLUSHES;
    l->message->files[1] = 0;
    l->message->wheres[0] = l->message->wheres[1] = (struct df_message_where){0};
    if (flush) {
        l->message->args.flush.owner = l->trip->caller->lock_owner;
        l->message->args.flush.drop = true;
    }
    if (sign(l, l->trip->caller) == 0 && df_link_post(link, l->slot))
        return true;
    df_letter_owe(link, file & ~FLUSHES, flush);
    return false;
}

int64_t df_letter_finish(struct df_letter *l, int64_t result)
{
    struct df_link *link = l->trip->link;

    if (__builtin_expect(atomic_load_explicit(&link->owes, memory_order_relaxed) == 0, 1) ||
        !pay(l))
        df_link_free(link, l->slot);
    return result;
}

/* ---- sending --------------------------------------------------------------------------------- */

static int64_t take_leave(struct df_letter *l)
{
    if (!l->trip->leave)
        return -EXDEV;
    df_sys_copy(l->trip->leave, l->area->names[0], PATH_MAX);
    l->trip->leave[PATH_MAX - 1] = '\0';
    l->trip->links = l->message->links;
    l->trip->second_links = l->message->second_links;
    l->trip->leave_second = l->message->leave_second;
    return DF_LEAVE;
}

/* The reply's result; the letter is then still to be finished. Without a reply *error < 0, and it
 * is finished. */
int64_t df_letter_await(struct df_letter *l, struct df_asked asked, int *error)
{
    int64_t result;

    *error = df_link_await(l->trip->link, l->slot, l->patience, asked);
    if (*error < 0)
        return *error;
    result = l->message->result;
    return result == DF_LEAVE ? take_leave(l) : result;
}

struct df_asked df_letter_ask(struct df_letter *l)
{
    return df_link_ask(l->trip->link, l->slot);
}

int64_t df_letter_send(struct df_letter *l, int *error)
{
    return df_letter_await(l, df_letter_ask(l), error);
}

/* For letters whose answer is the result alone. */
int64_t df_letter_send_and_finish(struct df_letter *l)
{
    int error;
    int64_t result = df_letter_send(l, &error);

    return error < 0 ? error : df_letter_finish(l, result);
}

/* For letters that bring bytes: as many as the result says, at most size. */
int64_t df_letter_send_for_bytes(struct df_letter *l, void *to, size_t size)
{
    int error;
    int64_t result = df_letter_send(l, &error);
    long copied = 0;

    if (error < 0)
        return error;
    if (result > 0 && (size_t)result <= size)
        copied = df_channel_user_copy(to, l->area->payload, (size_t)result);
    return df_letter_finish(l, copied < 0 ? copied : result);
}
