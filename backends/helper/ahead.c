/*
 * ahead.c - windows of bytes that were read before they were asked for; see ahead.h.
 */
#include "ahead.h"

#include <errno.h>
#include <stdlib.h>

#include "exchange.h"
#include "requests.h"

#define PAGE 4096u

struct window {
    struct parcel parcel; /* the READ that fills it */
    struct fuse_read_in in;
    size_t capacity;  /* bytes of data */
    uint32_t changes; /* of the file, when it was sent */
    _Alignas(16) char data[];
};

/* One READ of the host. */
struct reader {
    struct channel *channel;
    fuse_req_t req;
    fuse_ino_t ino;
    const struct fuse_file_info *fi;
    struct handle *handle;
    struct ahead *ahead;
    size_t size;
    off_t offset;
    bool interrupted; /* its caller has a signal */
};

void ahead_init(struct ahead *ahead)
{
    pthread_mutex_init(&ahead->lock, NULL);
}

void ahead_free(struct ahead *ahead)
{
    free(ahead->first);
    free(ahead->second);
    free(ahead->spare);
    pthread_mutex_destroy(&ahead->lock);
}

/* ---- sizes; as get_init_ra_size() and get_next_ra_size() of mm/readahead.c --------------------
 */

static size_t largest(const struct channel *channel)
{
    size_t most =
        channel->max_readahead < channel->max_read ? channel->max_readahead : channel->max_read;

    return most - most % PAGE;
}

static size_t first_size(size_t wanted, size_t most)
{
    size_t size = PAGE;

    while (size < wanted)
        size *= 2;
    if (size <= most / 32)
        return size * 4;
    return size <= most / 4 ? size * 2 : most;
}

static size_t next_size(size_t size, size_t most)
{
    if (size < most / 16)
        return size * 4;
    return size <= most / 2 ? size * 2 : most;
}

/* ---- windows; under the handle's lock ---------------------------------------------------------
 */

static off_t end_of(const struct window *window)
{
    return (off_t)(window->in.offset + window->in.size);
}

static bool covers(const struct window *window, off_t offset)
{
    return window && offset >= (off_t)window->in.offset && offset < end_of(window);
}

static bool is_short(const struct window *window)
{
    return window->parcel.ask.got < window->in.size;
}

/* Sends the READ of a window that begins at `start`; *place is NULL, or has one to be used again.
 * False: for no memory, a full socket, or a server that is gone. */
static bool begin(const struct reader *reader, struct window **place, off_t start, size_t size)
{
    struct window *window = *place;

    if (!window || window->capacity < size) {
        free(window);
        *place = window = malloc(sizeof(*window) + size);
        if (!window)
            return false;
        window->capacity = size;
    }
    window->in = (struct fuse_read_in){.fh = reader->handle->fh,
                                       .offset = (uint64_t)start,
                                       .size = (uint32_t)size,
                                       .flags = file_flags(reader->fi)};
    window->changes = atomic_load(&reader->handle->file->changes);
    window->parcel.message = REQUEST(FUSE_READ, reader->ino);
    request_add(&window->parcel.message, &window->in, sizeof(window->in));
    window->parcel.ask = (struct ask){.room = window->data, .size = size, .partial = true};
    if (exchange_begin(reader->channel, reader->req, &window->parcel) == 0)
        return true;
    free(window);
    *place = NULL;
    return false;
}

/* Waits for the server, if its reply is still to come. False: it was an error. */
static bool arrive(struct reader *reader, struct window *window)
{
    if (!exchange_arrived(&window->parcel)) {
        reader->ahead->busy = true;
        pthread_mutex_unlock(&reader->ahead->lock);
        exchange_await(reader->channel, reader->req, &window->parcel);
        pthread_mutex_lock(&reader->ahead->lock);
        reader->ahead->busy = false;
        reader->interrupted = window->parcel.ask.error == EINTR;
    }
    return window->parcel.ask.error == 0;
}

/* False: it is still under way, and has to stay. */
static bool drop(struct window **place)
{
    if (*place && !exchange_arrived(&(*place)->parcel))
        return false;
    free(*place);
    *place = NULL;
    return true;
}

/* The second window becomes the first, and the first's memory is kept for the next second. */
static bool turn(struct ahead *ahead)
{
    if (ahead->first && !exchange_arrived(&ahead->first->parcel))
        return false;
    free(ahead->spare);
    ahead->spare = ahead->first;
    ahead->first = ahead->second;
    ahead->second = NULL;
    return true;
}

/* Sends for what follows the first window, if the file does not end there. */
static void send_ahead(const struct reader *reader)
{
    struct ahead *ahead = reader->ahead;

    if (ahead->second || is_short(ahead->first) || !(reader->channel->flags & FUSE_ASYNC_READ))
        return;
    ahead->size = next_size(ahead->size, largest(reader->channel));
    ahead->second = ahead->spare;
    ahead->spare = NULL;
    begin(reader, &ahead->second, end_of(ahead->first), ahead->size);
}

/* ---- may the bytes be repeated? ---------------------------------------------------------------
 */

static bool unchanged(const struct reader *reader, const struct window *window)
{
    return window->changes == atomic_load(&reader->handle->file->changes);
}

/* The kernel asks before it reads from its cache, if attributes are too old to tell. Where they
 * never hold, that would cost what a READ costs. */
static bool ask_attributes(const struct reader *reader)
{
    struct ahead *ahead = reader->ahead;
    struct fuse_getattr_in in = {.getattr_flags = FUSE_GETATTR_FH, .fh = reader->handle->fh};
    struct message message = REQUEST(FUSE_GETATTR, reader->ino);
    struct fuse_attr_out out;

    request_add(&message, &in, sizeof(in));
    ahead->busy = true;
    pthread_mutex_unlock(&ahead->lock);
    int error = channel_ask(reader->channel, reader->req, &message, &out, sizeof(out));
    if (!error)
        files_told(reader->channel, reader->ino, &out.attr, out.attr_valid, out.attr_valid_nsec);
    pthread_mutex_lock(&ahead->lock);
    ahead->busy = false;
    ahead->useless |= error || (out.attr_valid == 0 && out.attr_valid_nsec == 0);
    return !ahead->useless;
}

static bool believed(const struct reader *reader)
{
    return !(reader->channel->flags & FUSE_AUTO_INVAL_DATA) || files_holds(reader->handle->file) ||
           ask_attributes(reader);
}

/* Whether what was got is all there is: the kernel's answer at the size that attributes tell. */
static bool ends_there(const struct reader *reader, const struct window *window)
{
    const struct file *file = reader->handle->file;

    return is_short(window) && (files_holds(file) || ask_attributes(reader)) &&
           atomic_load(&file->size) == window->in.offset + window->parcel.ask.got;
}

/* ---- answering --------------------------------------------------------------------------------
 */

/* The part of a window from `offset` on, at most `size` bytes. */
static struct iovec part_of(struct window *window, off_t offset, size_t size)
{
    size_t skipped = (size_t)offset - window->in.offset, got = window->parcel.ask.got;
    size_t left = got > skipped ? got - skipped : 0;

    return (struct iovec){window->data + skipped, left < size ? left : size};
}

/* What the windows have of it. False: some of it has to be asked for. */
static bool gather(struct reader *reader, struct iovec parts[2])
{
    struct ahead *ahead = reader->ahead;
    struct window *last = ahead->first;

    if (!arrive(reader, ahead->first))
        return false;
    parts[0] = part_of(ahead->first, reader->offset, reader->size);
    size_t rest = reader->size - parts[0].iov_len;
    if (rest > 0 && !is_short(ahead->first) && ahead->second) {
        if (!arrive(reader, ahead->second))
            return false;
        last = ahead->second;
        parts[1] = part_of(last, end_of(ahead->first), rest);
        rest -= parts[1].iov_len;
    }
    if (rest > 0 ? !ends_there(reader, last) : !believed(reader))
        return false;
    return unchanged(reader, ahead->first) && unchanged(reader, last);
}

/* Out of what is here, or under way. */
static bool repeat(struct reader *reader)
{
    struct ahead *ahead = reader->ahead;
    struct iovec parts[2] = {{0}};

    if (!covers(ahead->first, reader->offset) && covers(ahead->second, reader->offset) &&
        !turn(ahead))
        return false;
    if (!covers(ahead->first, reader->offset) || !gather(reader, parts))
        return false;
    send_ahead(reader);
    ahead->next = reader->offset + (off_t)(parts[0].iov_len + parts[1].iov_len);
    fuse_reply_iov(reader->req, parts, 2);
    return true;
}

static bool goes_on(const struct reader *reader)
{
    off_t next = reader->ahead->next;

    return reader->offset == 0 || reader->offset == next ||
           (reader->offset / PAGE == next / PAGE && next % PAGE != 0);
}

/* Its reader knows that the file ends before this. */
static bool behind_end(const struct reader *reader)
{
    const struct window *first = reader->ahead->first;

    return first && is_short(first) && covers(first, reader->offset) &&
           reader->offset >= (off_t)(first->in.offset + first->parcel.ask.got);
}

/* A first window, and the answer out of it. */
static bool start_over(struct reader *reader)
{
    struct ahead *ahead = reader->ahead;
    off_t start = reader->offset - reader->offset % PAGE;
    size_t lead = (size_t)(reader->offset - start), most = largest(reader->channel);

    if (!goes_on(reader) || lead + reader->size > most || !drop(&ahead->second) ||
        (ahead->first && !exchange_arrived(&ahead->first->parcel)) || behind_end(reader))
        return false;
    ahead->size = ahead->first && start == end_of(ahead->first)
                      ? next_size(ahead->size, most)
                      : first_size(lead + reader->size, most);
    if (!begin(reader, &ahead->first, start, ahead->size) || !arrive(reader, ahead->first))
        return false;
    struct iovec part = part_of(ahead->first, reader->offset, reader->size);
    ahead->next = reader->offset + (off_t)part.iov_len;
    if (ahead->size - lead - part.iov_len < reader->size)
        send_ahead(reader);
    fuse_reply_iov(reader->req, &part, 1);
    return true;
}

/* An error may be of bytes that nobody has asked for: those that somebody has are read once more,
 * by themselves. */
static bool read_windows(struct reader *reader)
{
    if (repeat(reader) || (!reader->interrupted && !reader->ahead->useless && start_over(reader)))
        return true;
    if (!reader->interrupted)
        return false;
    fuse_reply_err(reader->req, EINTR);
    return true;
}

bool ahead_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset,
                const struct fuse_file_info *fi)
{
    struct handle *handle = handle_of(fi);
    struct channel *channel = fuse_req_userdata(req);

    if (!handle || !handle->file || size == 0 || !channel_is_ours(channel))
        return false;
    struct ahead *ahead = &handle->ahead;
    struct reader reader = {channel, req, ino, fi, handle, ahead, size, offset, false};
    pthread_mutex_lock(&ahead->lock);
    bool free = !ahead->busy && !ahead->useless;
    bool done = free && read_windows(&reader);
    if (free && !done) {
        ahead->next = offset + (off_t)size;
        drop(&ahead->first);
        drop(&ahead->second);
    }
    pthread_mutex_unlock(&ahead->lock);
    return done;
}

void ahead_settle(fuse_req_t req, struct ahead *ahead)
{
    struct channel *channel = fuse_req_userdata(req);
    struct window *windows[] = {ahead->first, ahead->second};

    for (int i = 0; i < 2; i++)
        if (windows[i] && channel_is_ours(channel))
            exchange_await(channel, req, &windows[i]->parcel);
}
