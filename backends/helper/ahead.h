/*
 * ahead.h - readahead: a file that is read from front to back is asked for in larger pieces than
 * its reader takes, and the next pieces are under way while the reader is busy with this one.
 *
 * As in the kernel (mm/readahead.c): reading at the front or where the last read ended begins with
 * two to four times what was read, and each next piece has two to four times the size of the last,
 * up to max_readahead of INIT. Anything else is read as it is asked for, and so is the end of the
 * file: only the server says where that is.
 *
 * Beyond the kernel, which has one piece under way: as much as was read already, up to
 * AHEAD_PIECES. Waking a server costs more than many of them take to read a piece; one that finds
 * the next request when it has answered the last does not sleep.
 */
#ifndef HELPER_AHEAD_H
#define HELPER_AHEAD_H

#ifndef FUSE_USE_VERSION
#define FUSE_USE_VERSION 312
#endif
#include <fuse_lowlevel.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

enum { AHEAD_PIECES = 8 };

struct channel;
struct window;

struct ahead {
    pthread_mutex_t lock;        /* not held while anybody waits for the server */
    bool busy;                   /* somebody does, and owns the windows */
    bool useless;                /* the server's attributes never hold */
    off_t next;                  /* where the last read ended */
    size_t size;                 /* bytes of the last window */
    size_t run;                  /* bytes that were read one after the other up to there */
    struct window *first, *last; /* what is read, and what follows it; NULL: none */
    struct window *left;         /* under way still, and not wanted any more */
};

void ahead_init(struct ahead *ahead);

/* Nothing is under way. */
void ahead_free(struct channel *channel, struct ahead *ahead);

/* Answers a READ out of a window, or with what a new one brings. False: it is still to be sent. */
bool ahead_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset,
                const struct fuse_file_info *fi);

/* Before RELEASE: no READ of the handle is under way any more. */
void ahead_settle(fuse_req_t req, struct ahead *ahead);

#endif
