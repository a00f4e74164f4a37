/*
 * release.c - closing files at the server; see release.h.
 */
#include "release.h"

#include <fcntl.h>
#include <stdlib.h>

#include "exchange.h"
#include "requests.h"

enum { RELEASES_MAX = 64 }; /* under way; who closes one more waits */

struct release {
    struct release *next;
    struct parcel parcel;
    struct fuse_release_in in;
};

/* Under the lock. */
static void reap(struct channel *channel)
{
    struct release **link = &channel->releases.list;

    for (struct release *release; (release = *link);) {
        if (!exchange_arrived(&release->parcel)) {
            link = &release->next;
            continue;
        }
        *link = release->next;
        atomic_fetch_sub(&channel->releases.count, 1);
        free(release);
    }
}

/* Without waiting for the answer. False: it is not sent. */
static bool send_off(struct channel *channel, fuse_req_t req, const struct message *message,
                     const struct fuse_release_in *in)
{
    struct releases *releases = &channel->releases;
    struct release *release = NULL;

    pthread_mutex_lock(&releases->lock);
    reap(channel);
    if (atomic_load(&releases->count) < RELEASES_MAX && (release = malloc(sizeof(*release)))) {
        release->in = *in;
        release->parcel.message = *message;
        release->parcel.ask = (struct ask){0};
        request_add(&release->parcel.message, &release->in, sizeof(release->in));
        if (exchange_begin(channel, req, &release->parcel) != 0) {
            free(release);
            release = NULL;
        }
    }
    if (release) {
        release->next = releases->list;
        releases->list = release;
        atomic_fetch_add(&releases->count, 1);
    }
    pthread_mutex_unlock(&releases->lock);
    return release;
}

static bool is_waited_for(uint32_t opcode, const struct fuse_file_info *fi)
{
    return fi->flock_release || (opcode == FUSE_RELEASE && (fi->flags & O_ACCMODE) != O_RDONLY);
}

void release_send(struct channel *channel, fuse_req_t req, uint32_t opcode, fuse_ino_t ino,
                  const struct fuse_file_info *fi)
{
    struct fuse_release_in in = {
        .fh = handle_fh(fi),
        .flags = file_flags(fi),
        .release_flags = (fi->flush ? FUSE_RELEASE_FLUSH : 0) |
                         (fi->flock_release ? FUSE_RELEASE_FLOCK_UNLOCK : 0),
        .lock_owner = fi->lock_owner,
    };
    struct message message = REQUEST(opcode, ino);

    if (!is_waited_for(opcode, fi) && channel_is_ours(channel) &&
        send_off(channel, req, &message, &in)) {
        fuse_reply_err(req, 0);
        return;
    }
    request_add(&message, &in, sizeof(in));
    request_send(req, &message);
}

/* ---- forgetting --------------------------------------------------------------------------------
 */

struct forget {
    struct forget *next;
    fuse_ino_t ino;
    uint64_t count;
};

static void tell(struct channel *channel, fuse_req_t req, fuse_ino_t ino, uint64_t count)
{
    struct fuse_forget_in in = {.nlookup = count};
    struct message message = REQUEST(FUSE_FORGET, ino);

    request_add(&message, &in, sizeof(in));
    channel_tell(channel, req, &message);
}

/* False: no memory. */
static bool put_off(struct channel *channel, fuse_ino_t ino, uint64_t count)
{
    struct forget *forget = malloc(sizeof(*forget));

    if (!forget)
        return false;
    *forget = (struct forget){.ino = ino, .count = count};
    pthread_mutex_lock(&channel->lock);
    forget->next = channel->releases.forgets;
    channel->releases.forgets = forget;
    pthread_mutex_unlock(&channel->lock);
    return true;
}

static struct forget *take_forgets(struct channel *channel)
{
    pthread_mutex_lock(&channel->lock);
    struct forget *list = channel->releases.forgets;
    channel->releases.forgets = NULL;
    pthread_mutex_unlock(&channel->lock);
    return list;
}

/* Those that were put off. */
static void tell_all(struct channel *channel, fuse_req_t req)
{
    struct forget *next, *forget = take_forgets(channel);

    for (; forget; forget = next) {
        next = forget->next;
        tell(channel, req, forget->ino, forget->count);
        free(forget);
    }
}

/* Who reads cannot wait for what it would have to read itself. The node lane drops no node when it
 * is notified (lowlevel/notify.c); one that did would come here as the reader. */
void release_forget(struct channel *channel, fuse_req_t req, fuse_ino_t ino, uint64_t count)
{
    if (!channel_is_reader(channel))
        release_settle(channel, req);
    else if (atomic_load(&channel->releases.count) > 0 && put_off(channel, ino, count))
        return;
    tell(channel, req, ino, count);
}

/* ---- in order ----------------------------------------------------------------------------------
 */

void release_settle(struct channel *channel, fuse_req_t req)
{
    struct releases *releases = &channel->releases;

    if (!channel_is_ours(channel))
        return;
    if (atomic_load(&releases->count) > 0) {
        pthread_mutex_lock(&releases->lock);
        for (struct release *release = releases->list; release; release = release->next)
            exchange_await(channel, req, &release->parcel);
        reap(channel);
        pthread_mutex_unlock(&releases->lock);
    }
    tell_all(channel, req);
}

void release_free(struct channel *channel)
{
    for (struct release *release; (release = channel->releases.list);) {
        channel->releases.list = release->next;
        free(release);
    }
    for (struct forget *next, *forget = take_forgets(channel); forget; forget = next) {
        next = forget->next;
        free(forget);
    }
    pthread_mutex_destroy(&channel->releases.lock);
}
