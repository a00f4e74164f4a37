/*
 * window.c - sending for windows, and keeping the memory of those that are done with; see window.h.
 */
#include "window.h"

#include <stdlib.h>

#include "requests.h"

/* ---- memory ------------------------------------------------------------------------------------
 */

/* One that an earlier reader has left. */
static struct window *take_spare(struct channel *channel, size_t size)
{
    pthread_mutex_lock(&channel->lock);
    struct window *window = channel->spares;
    if (window && window->capacity >= size) {
        channel->spares = window->next;
        channel->spare_count--;
    } else {
        window = NULL;
    }
    pthread_mutex_unlock(&channel->lock);
    return window;
}

/* Small ones are the memory allocator's: only those of the largest size are worth their memory, for
 * the allocator would give theirs back to the system each time. */
static struct window *get(struct channel *channel, size_t size)
{
    struct window *window = size > WINDOW_MAX / 2 ? take_spare(channel, size) : NULL;

    if (!window && (window = malloc(sizeof(*window) + size)))
        window->capacity = size;
    return window;
}

void window_free(struct channel *channel, struct window *window)
{
    if (window->capacity > WINDOW_MAX / 2) {
        pthread_mutex_lock(&channel->lock);
        if (channel->spare_count < WINDOW_SPARES) {
            window->next = channel->spares;
            channel->spares = window;
            channel->spare_count++;
            window = NULL;
        }
        pthread_mutex_unlock(&channel->lock);
    }
    free(window);
}

void window_free_spares(struct channel *channel)
{
    for (struct window *window; (window = channel->spares);) {
        channel->spares = window->next;
        free(window);
    }
}

/* ---- reading -----------------------------------------------------------------------------------
 */

struct window *window_begin(struct channel *channel, fuse_req_t req, fuse_ino_t ino,
                            const struct fuse_file_info *fi, off_t start, size_t size)
{
    const struct handle *handle = handle_of(fi);
    struct window *window = get(channel, size);

    if (!window)
        return NULL;
    window->next = NULL;
    window->in = (struct fuse_read_in){.fh = handle->fh,
                                       .offset = (uint64_t)start,
                                       .size = (uint32_t)size,
                                       .flags = file_flags(fi)};
    window->changes = atomic_load(&handle->file->changes);
    window->parcel.message = REQUEST(FUSE_READ, ino);
    request_add(&window->parcel.message, &window->in, sizeof(window->in));
    window->parcel.ask = (struct ask){.room = window->data, .size = size, .partial = true};
    if (exchange_begin(channel, req, &window->parcel) == 0)
        return window;
    window_free(channel, window);
    return NULL;
}

struct iovec window_part(struct window *window, off_t offset, size_t size)
{
    size_t skipped = (size_t)offset - window->in.offset, got = window->parcel.ask.got;
    size_t left = got > skipped ? got - skipped : 0;

    return (struct iovec){window->data + skipped, left < size ? left : size};
}
