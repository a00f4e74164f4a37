/*
 * letter.h - what all trips have in common: a message being made and its answer. Of trip*.c.
 *
 *     error = df_letter_begin_where(&l, trip, DF_MESSAGE_access, where);
 *     if (error < 0)
 *         return error;
 *     l.message->args.access.mask = mask;
 *     return df_letter_send_and_finish(&l);
 */
#ifndef DF_CHANNEL_LETTER_H
#define DF_CHANNEL_LETTER_H

#include "channel/trip.h"

struct df_letter {
    struct df_trip *trip;
    struct df_slot *slot;
    struct df_message *message;
    struct df_area *area;
    int64_t patience; /* ns that the answer may take; the link's, unless changed; < 0: any */
};

/* That of a message which was asked before (df_letter_ask()). */
struct df_letter df_letter_of(struct df_trip *trip, struct df_slot *slot);

/* How long its messages wait, in ns; < 0: for ever. */
static inline int64_t df_letter_patience(const struct df_trip *trip)
{
    return atomic_load_explicit(&trip->link->patience, memory_order_relaxed);
}

/* Claims a slot. 0, -ENOTCONN, -ETIMEDOUT, -ENOMEM. `plain`: the message says nothing of the
 * caller's identity. `within`: nor waits longer than `patience` for a slot, nor for the answer. */
int df_letter_begin_within(struct df_letter *l, struct df_trip *trip, enum df_message_op op,
                           int64_t patience);
int df_letter_begin_plain(struct df_letter *l, struct df_trip *trip, enum df_message_op op);
int df_letter_begin(struct df_letter *l, struct df_trip *trip, enum df_message_op op);
int df_letter_begin_file(struct df_letter *l, struct df_trip *trip, enum df_message_op op,
                         uint64_t file);
int df_letter_begin_where(struct df_letter *l, struct df_trip *trip, enum df_message_op op,
                          const struct df_trip_where *where);

/* How many of `size` bytes the payload has room for: at least DF_ROOM_FIRST of them. */
size_t df_letter_room(const struct df_letter *l, size_t size);

/* Puts in the name of wheres[i]. */
void df_letter_put_where(struct df_letter *l, unsigned i, const struct df_trip_where *where);

/* The reply's result; the letter is then still to be finished. Without a reply *error < 0, and it
 * is finished. */
int64_t df_letter_send(struct df_letter *l, int *error);

/* The same in two halves; before the second the answer may be on its way for a while. */
struct df_asked df_letter_ask(struct df_letter *l);
int64_t df_letter_await(struct df_letter *l, struct df_asked asked, int *error);

/* Gives the slot back, by way of a close that is owed; returns result. */
int64_t df_letter_finish(struct df_letter *l, int64_t result);

/* For letters whose answer is the result alone. */
int64_t df_letter_send_and_finish(struct df_letter *l);

/* For letters that bring bytes: as many as the result says, at most size. */
int64_t df_letter_send_for_bytes(struct df_letter *l, void *to, size_t size);

/* A close of the file found no slot in time: the next letter's takes it along. With `flush` as
 * df_trip_flush(drop), else as df_trip_drop(). */
void df_letter_owe(struct df_link *link, uint64_t file, bool flush);

#endif
