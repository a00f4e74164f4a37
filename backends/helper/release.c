/*
 * release.c - closing files at the server; see release.h.
 */
#include "release.h"

#include <fcntl.h>
#include <stdlib.h>

#include "exchange.h"
#include "forget.h"
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
    forget_put_off(channel, req);
}

void release_free(struct channel *channel)
{
    for (struct release *release; (release = channel->releases.list);) {
        channel->releases.list = release->next;
        free(release);
    }
    pthread_mutex_destroy(&channel->releases.lock);
}
