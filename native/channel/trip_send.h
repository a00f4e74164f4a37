/*
 * trip_send.h - what the ops of trip_*.c that are all in their arguments, or in their answer,
 * share. Inline: in the freestanding build no function is inlined across files. Freestanding.
 */
#ifndef DF_CHANNEL_TRIP_SEND_H
#define DF_CHANNEL_TRIP_SEND_H

#include <string.h>

#include "channel/letter.h"

/* Of an op that is all in its arguments: begins a message, fills in what `begin` does not, sends
 * it; the value is the result. */
#define DF_TRIP_SEND(begin, op, ...)                                                               \
    ({                                                                                             \
        struct df_letter l;                                                                        \
        int64_t result = begin;                                                                    \
        if (result == 0) {                                                                         \
            l.message->args.op = (__typeof__(l.message->args.op)){__VA_ARGS__};                    \
            result = df_letter_send_and_finish(&l);                                                \
        }                                                                                          \
        result;                                                                                    \
    })
#define DF_TRIP_BY_NAME(op, where, ...)                                                            \
    DF_TRIP_SEND(df_letter_begin_where(&l, trip, DF_MESSAGE_##op, where), op, __VA_ARGS__)
#define DF_TRIP_BY_FILE(op, file, ...)                                                             \
    DF_TRIP_SEND(df_letter_begin_file(&l, trip, DF_MESSAGE_##op, file), op, __VA_ARGS__)

/* Sends it, and copies what an op that succeeds has put into the answer. */
static inline int df_trip_send_and_take(struct df_letter *l, void *to, const void *answer,
                                        size_t size)
{
    int error;
    int64_t result = df_letter_send(l, &error);

    if (error < 0)
        return error;
    if (result == 0)
        memcpy(to, answer, size);
    return (int)df_letter_finish(l, result);
}

#endif
