/*
 * window.h - a piece of a file that is read before it is asked for: one READ, and its reply's data,
 * which the channel puts where they stay.
 */
#ifndef HELPER_WINDOW_H
#define HELPER_WINDOW_H

#include "exchange.h"

struct handle;

struct window {
    struct window *next;  /* in the list of a handle: it goes on where this one ends; or a spare */
    struct parcel parcel; /* the READ that fills it */
    struct fuse_read_in in;
    size_t capacity;  /* bytes of data */
    uint32_t changes; /* of the file, when it was sent */
    _Alignas(16) char data[];
};

/* Sends the READ of `size` bytes from `start` on. NULL: no memory, a full socket, or a server that
 * is gone. */
struct window *window_begin(struct channel *channel, fuse_req_t req, fuse_ino_t ino,
                            const struct fuse_file_info *fi, off_t start, size_t size);

/* Its reply has come. The largest are kept for the next that needs one. */
void window_free(struct channel *channel, struct window *window);

/* At the channel's end. */
void window_free_spares(struct channel *channel);

static inline bool window_arrived(struct window *window)
{
    return exchange_arrived(&window->parcel);
}

/* Where the next begins. */
static inline off_t window_end(const struct window *window)
{
    return (off_t)(window->in.offset + window->in.size);
}

static inline bool window_covers(const struct window *window, off_t offset)
{
    return offset >= (off_t)window->in.offset && offset < window_end(window);
}

/* Of one that has arrived: the server had less than it was asked for. */
static inline bool window_short(const struct window *window)
{
    return window->parcel.ask.got < window->in.size;
}

/* The part of one that has arrived from `offset` on, at most `size` bytes. */
struct iovec window_part(struct window *window, off_t offset, size_t size);

#endif
