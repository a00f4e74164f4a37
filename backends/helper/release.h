/*
 * release.h - RELEASE and RELEASEDIR, for which close(2) does not wait, as in the kernel.
 *
 * Who has written waits, and who held a lock: what the server does then is likely to be looked at.
 * Names are changed, and nodes forgotten, when all that were sent have been answered: a server with
 * several threads might still take the file to be open.
 */
#ifndef HELPER_RELEASE_H
#define HELPER_RELEASE_H

#ifndef FUSE_USE_VERSION
#define FUSE_USE_VERSION 312
#endif
#include <fuse_lowlevel.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

struct channel;
struct release;

struct releases {
    pthread_mutex_t lock; /* protects list; held while their replies are waited for */
    struct release *list;
    _Atomic uint32_t count;
};

/* Sends it, and answers req. */
void release_send(struct channel *channel, fuse_req_t req, uint32_t opcode, fuse_ino_t ino,
                  const struct fuse_file_info *fi);

/* Before a request that must not overtake any: waits, on behalf of req. */
void release_settle(struct channel *channel, fuse_req_t req);

/* At the channel's end. */
void release_free(struct channel *channel);

#endif
