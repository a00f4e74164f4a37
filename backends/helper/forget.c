/*
 * forget.c - telling the server what it need not count any longer; see forget.h.
 */
#include "forget.h"

#include <stdlib.h>

#include "requests.h"

#define BATCH_MINOR 16

enum { BATCH_MOST = 64 }; /* nodes of one message; the node lane asks for fewer */

struct forget {
    struct forget *next;
    struct fuse_forget_one one;
};

/* ---- sending --------------------------------------------------------------------------------- */

static void send_one(struct channel *channel, fuse_req_t req, const struct fuse_forget_one *one)
{
    struct fuse_forget_in in = {.nlookup = one->nlookup};
    struct message message = REQUEST(FUSE_FORGET, one->nodeid);

    request_add(&message, &in, sizeof(in));
    channel_tell(channel, req, &message);
}

static void send_batch(struct channel *channel, fuse_req_t req, const struct fuse_forget_one *list,
                       size_t count)
{
    struct fuse_batch_forget_in in = {.count = (uint32_t)count};
    struct message message = REQUEST(FUSE_BATCH_FORGET, 0);

    request_add(&message, &in, sizeof(in));
    request_add(&message, list, count * sizeof(*list));
    channel_tell(channel, req, &message);
}

static void send_all(struct channel *channel, fuse_req_t req, const struct fuse_forget_one *list,
                     size_t count)
{
    size_t most = channel->minor < BATCH_MINOR ? 1 : BATCH_MOST;

    for (size_t sent, done = 0; done < count; done += sent) {
        sent = count - done < most ? count - done : most;
        if (sent == 1)
            send_one(channel, req, &list[done]);
        else
            send_batch(channel, req, &list[done], sent);
    }
}

/* ---- later ----------------------------------------------------------------------------------- */

/* False: no memory. */
static bool put_off(struct channel *channel, const struct fuse_forget_one *one)
{
    struct forget *forget = malloc(sizeof(*forget));

    if (!forget)
        return false;
    forget->one = *one;
    pthread_mutex_lock(&channel->lock);
    forget->next = channel->forgets;
    channel->forgets = forget;
    pthread_mutex_unlock(&channel->lock);
    return true;
}

static struct forget *take_all(struct channel *channel)
{
    pthread_mutex_lock(&channel->lock);
    struct forget *list = channel->forgets;
    channel->forgets = NULL;
    pthread_mutex_unlock(&channel->lock);
    return list;
}

/* The first of the list leaves it. */
static struct fuse_forget_one take_first(struct forget **list)
{
    struct forget *first = *list;
    struct fuse_forget_one one = first->one;

    *list = first->next;
    free(first);
    return one;
}

void forget_put_off(struct channel *channel, fuse_req_t req)
{
    struct forget *list = take_all(channel);

    while (list) {
        struct fuse_forget_one batch[BATCH_MOST];
        size_t count = 0;
        while (list && count < BATCH_MOST)
            batch[count++] = take_first(&list);
        send_all(channel, req, batch, count);
    }
}

/* Who reads cannot wait for what it would have to read itself. The node lane drops no node when it
 * is notified (lowlevel/notify.c); one that did would come here as the reader. */
void forget_send(struct channel *channel, fuse_req_t req, const struct fuse_forget_one *list,
                 size_t count)
{
    if (!channel_is_reader(channel)) {
        release_settle(channel, req);
    } else if (atomic_load(&channel->releases.count) > 0) {
        while (count > 0 && put_off(channel, list))
            list++, count--;
    }
    send_all(channel, req, list, count);
}

void forget_free(struct channel *channel)
{
    for (struct forget *list = take_all(channel); list;)
        take_first(&list);
}
