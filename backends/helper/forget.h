/*
 * forget.h - FORGET and BATCH_FORGET: lookups that are no longer counted, in the order of the
 * connection.
 */
#ifndef HELPER_FORGET_H
#define HELPER_FORGET_H

#include <stddef.h>

#include "channel.h"

/* Sends them, on nobody's behalf, when they overtake no RELEASE: several in one message, where the
 * server knows BATCH_FORGET (7.16). */
void forget_send(struct channel *channel, fuse_req_t req, const struct fuse_forget_one *list,
                 size_t count);

/* Those that forget_send() could not send yet. No RELEASE is under way. */
void forget_put_off(struct channel *channel, fuse_req_t req);

/* At the channel's end. */
void forget_free(struct channel *channel);

#endif
