/*
 * ahead.c - which windows of a file are read before they are asked for; see ahead.h.
 */
#include "ahead.h"

#include <errno.h>

#include "requests.h"
#include "window.h"

#define PAGE 4096u

enum { PARTS = 4 }; /* windows that one READ is answered out of */

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

/* ---- sizes; as get_init_ra_size() and get_next_ra_size() of mm/readahead.c --------------------
 */

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

static size_t largest(const struct channel *channel)
{
    size_t most = smaller(smaller(channel->max_readahead, channel->max_read), WINDOW_MAX);

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

/* ---- the list of windows; under the handle's lock ----------------------------------------------
 */

static void append(struct ahead *ahead, struct window *window)
{
    if (ahead->first)
        ahead->last->next = window;
    else
        ahead->first = window;
    ahead->last = window;
}

/* The first is done with. */
static void retire(struct channel *channel, struct ahead *ahead)
{
    struct window *window = ahead->first;

    ahead->first = window->next;
    if (window_arrived(window)) {
        window_free(channel, window);
    } else {
        window->next = ahead->left;
        ahead->left = window;
    }
}

static void retire_all(struct channel *channel, struct ahead *ahead)
{
    while (ahead->first)
        retire(channel, ahead);
}

/* Of those that were left, the ones whose replies have come since. */
static void reap(struct channel *channel, struct ahead *ahead)
{
    struct window **link = &ahead->left;

    for (struct window *window; (window = *link);) {
        if (!window_arrived(window)) {
            link = &window->next;
            continue;
        }
        *link = window->next;
        window_free(channel, window);
    }
}

void ahead_init(struct ahead *ahead)
{
    pthread_mutex_init(&ahead->lock, NULL);
}

void ahead_free(struct channel *channel, struct ahead *ahead)
{
    retire_all(channel, ahead);
    reap(channel, ahead);
    pthread_mutex_destroy(&ahead->lock);
}

/* ---- sending and waiting -----------------------------------------------------------------------
 */

static bool begin(const struct reader *reader, off_t start, size_t size)
{
    struct window *window =
        window_begin(reader->channel, reader->req, reader->ino, reader->fi, start, size);

    if (window)
        append(reader->ahead, window);
    return window;
}

/* Waits for the server, if its reply is still to come. False: it was an error. */
static bool arrive(struct reader *reader, struct window *window)
{
    if (!window_arrived(window)) {
        reader->ahead->busy = true;
        pthread_mutex_unlock(&reader->ahead->lock);
        exchange_await(reader->channel, reader->req, &window->parcel);
        pthread_mutex_lock(&reader->ahead->lock);
        reader->ahead->busy = false;
        reader->interrupted = window->parcel.ask.error == EINTR;
    }
    return window->parcel.ask.error == 0;
}

/* As the kernel, up to the page that the file ends in: bytes of a window that begins at `start`. */
static size_t cut_at_end(const struct file *file, off_t start, size_t size)
{
    uint64_t end = files_size(file);

    if (!files_holds(file))
        return size;
    if ((uint64_t)start >= end)
        return 0;
    uint64_t left = end - (uint64_t)start;
    return left > size - PAGE ? size : (size_t)((left + PAGE - 1) / PAGE * PAGE);
}

static bool ends_in(struct window *window)
{
    return window_arrived(window) && window_short(window);
}

/* Up to where pieces may be under way, beside the first: not where nothing tells that the file goes
 * on that far. */
static off_t farthest(const struct reader *reader)
{
    const struct ahead *ahead = reader->ahead;

    if (!files_holds(reader->handle->file))
        return 0;
    return ahead->next + (off_t)smaller(ahead->run, reader->channel->most_ahead);
}

/* Sends for what follows the last window, if the file does not end there: one piece, and others. */
static void send_ahead(const struct reader *reader)
{
    struct ahead *ahead = reader->ahead;

    if (!(reader->channel->flags & FUSE_ASYNC_READ))
        return;
    while (!ends_in(ahead->last)) {
        off_t start = window_end(ahead->last);
        size_t next = next_size(ahead->size, largest(reader->channel));
        size_t size = cut_at_end(reader->handle->file, start, next);
        bool second = ahead->first == ahead->last;
        if (size == 0 || (!second && start + (off_t)size > farthest(reader)) ||
            !begin(reader, start, size))
            return;
        ahead->size = next;
    }
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
    uint64_t clock = files_clock(reader->channel);
    int error = channel_ask(reader->channel, reader->req, &message, &out, sizeof(out));
    if (!error)
        files_told(reader->channel, reader->ino, &out.attr, out.attr_valid, out.attr_valid_nsec,
                   clock);
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

    return window_short(window) && (files_holds(file) || ask_attributes(reader)) &&
           files_size(file) == window->in.offset + window->parcel.ask.got;
}

/* ---- answering --------------------------------------------------------------------------------
 */

/* What the windows have of it, the first of which covers its begin. False: some of it has to be
 * asked for. */
static bool gather(struct reader *reader, struct iovec parts[PARTS])
{
    struct window *window = reader->ahead->first, *last = NULL;
    size_t rest = reader->size;

    for (int i = 0; i < PARTS && window && rest > 0; i++, window = window->next) {
        if (!arrive(reader, window))
            return false;
        parts[i] = window_part(window, reader->offset + (off_t)(reader->size - rest), rest);
        rest -= parts[i].iov_len;
        last = window;
        if (window_short(window))
            break;
    }
    if (rest > 0 ? !ends_there(reader, last) : !believed(reader))
        return false;
    for (window = reader->ahead->first; unchanged(reader, window); window = window->next)
        if (window == last)
            return true;
    return false;
}

static void answer(struct reader *reader, const struct iovec parts[PARTS], bool goes_on)
{
    struct ahead *ahead = reader->ahead;

    ahead->next = reader->offset;
    for (int i = 0; i < PARTS; i++) {
        ahead->next += (off_t)parts[i].iov_len;
        ahead->run += parts[i].iov_len;
    }
    if (goes_on)
        send_ahead(reader);
    fuse_reply_iov(reader->req, parts, PARTS);
}

/* Goes on to the window that the read begins in. False: there is none. */
static bool find(struct reader *reader)
{
    struct ahead *ahead = reader->ahead;

    if (!ahead->first || reader->offset < (off_t)ahead->first->in.offset ||
        reader->offset >= window_end(ahead->last))
        return false;
    while (!window_covers(ahead->first, reader->offset))
        retire(reader->channel, ahead);
    return true;
}

/* Out of what is here, or under way. */
static bool repeat(struct reader *reader)
{
    struct iovec parts[PARTS] = {{0}};

    if (!find(reader))
        return false;
    if (reader->offset + (off_t)reader->size > window_end(reader->ahead->last))
        send_ahead(reader); /* the rest of it */
    if (!gather(reader, parts))
        return false;
    answer(reader, parts, true);
    return true;
}

static bool goes_on(const struct reader *reader)
{
    off_t next = reader->ahead->next;

    return reader->offset == 0 || reader->offset == next ||
           (reader->offset / PAGE == next / PAGE && next % PAGE != 0);
}

/* As the kernel, which reads nothing from where attributes say that the file has ended. */
static bool answer_end(struct reader *reader)
{
    const struct file *file = reader->handle->file;

    if (!files_holds(file) || reader->offset < (off_t)files_size(file))
        return false;
    fuse_reply_iov(reader->req, NULL, 0);
    return true;
}

/* Its reader knows that the file ends before this. */
static bool behind_end(const struct reader *reader)
{
    struct window *first = reader->ahead->first;

    return first && ends_in(first) && window_covers(first, reader->offset) &&
           reader->offset >= (off_t)(first->in.offset + first->parcel.ask.got);
}

/* A first window, and the answer out of it. */
static bool start_over(struct reader *reader)
{
    struct ahead *ahead = reader->ahead;
    off_t start = reader->offset - reader->offset % PAGE;
    size_t lead = (size_t)(reader->offset - start), most = largest(reader->channel);
    struct iovec parts[PARTS] = {{0}};

    if (!goes_on(reader) || lead + reader->size > most || behind_end(reader))
        return false;
    ahead->size = ahead->first && start == window_end(ahead->last)
                      ? next_size(ahead->size, most)
                      : first_size(lead + reader->size, most);
    retire_all(reader->channel, ahead);
    reap(reader->channel, ahead);
    size_t cut = cut_at_end(reader->handle->file, start, ahead->size);
    if (ahead->left || cut < lead + 1 || !begin(reader, start, cut) ||
        !arrive(reader, ahead->first))
        return false;
    parts[0] = window_part(ahead->first, reader->offset, reader->size);
    size_t rest = cut - lead - parts[0].iov_len;
    answer(reader, parts, rest < reader->size); /* who reads no more costs no more */
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
    if (free && offset != ahead->next)
        ahead->run = 0;
    bool done = answer_end(&reader) || (free && read_windows(&reader));
    if (free && !done) {
        ahead->next = offset + (off_t)size;
        ahead->run = 0;
        retire_all(channel, ahead);
        reap(channel, ahead);
    }
    pthread_mutex_unlock(&ahead->lock);
    return done;
}

static void settle(fuse_req_t req, struct channel *channel, struct window *window)
{
    for (; window; window = window->next)
        exchange_await(channel, req, &window->parcel);
}

void ahead_settle(fuse_req_t req, struct ahead *ahead)
{
    struct channel *channel = fuse_req_userdata(req);

    if (!channel_is_ours(channel))
        return;
    settle(req, channel, ahead->first);
    settle(req, channel, ahead->left);
}
