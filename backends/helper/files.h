/*
 * files.h - the server's open files: the handle that it gave for each, and for each node that is
 * open what ends belief in its bytes, whoever read them.
 *
 * Bytes that were read before they were asked for are believed as the kernel believes pages: until
 * something that may have changed them was sent (counted when it is sent and when it is answered),
 * the server says so, attributes show another size or modification time, or the file is opened
 * again without FOPEN_KEEP_CACHE. With FUSE_AUTO_INVAL_DATA, only as long as the attributes hold.
 */
#ifndef HELPER_FILES_H
#define HELPER_FILES_H

#ifndef FUSE_USE_VERSION
#define FUSE_USE_VERSION 312
#endif
#include <fuse_lowlevel.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "ahead.h"
#include "protocol.h"

struct channel;

/* What the server told of a node. */
struct told {
    uint64_t node;
    uint64_t mtime; /* seconds */
    uint32_t mtime_ns;
    _Atomic uint64_t size;   /* bytes */
    _Atomic uint64_t expiry; /* ns of CLOCK_MONOTONIC_COARSE; 0: nothing was heard of it yet */
};

/* A node that somebody has open. */
struct file {
    struct file *next; /* in its chain; as what follows up to told, under the lock of files */
    uint32_t handles;
    uint64_t changed; /* the clock at its last change */
    struct told told;
    _Atomic uint32_t changes;
};

enum { FILES_CHAINS = 256, FILES_RECENT = 256 };

struct files {
    pthread_mutex_t lock; /* protects what follows; taken last of all */
    uint64_t clock;       /* counts changes of all nodes: a reply to what was sent before the last
                             may be older than it (the kernel's attr_version) */
    struct file *chain[FILES_CHAINS];
    struct told recent[FILES_RECENT]; /* of nodes that are not open: what OPEN will want to know */
};

/* What fuse_file_info.fh leads to. */
struct handle {
    uint64_t fh;       /* the server's */
    bool opened;       /* the server has given it */
    struct file *file; /* NULL: a directory, direct_io, or no memory: nothing is read ahead */
    struct ahead ahead;
};

static inline struct handle *handle_of(const struct fuse_file_info *fi)
{
    return (struct handle *)(uintptr_t)fi->fh;
}

/* The server's handle; 0 for a file whose opening it does not want to hear of. */
static inline uint64_t handle_fh(const struct fuse_file_info *fi)
{
    return fi->fh ? handle_of(fi)->fh : 0;
}

/* Before OPEN, OPENDIR or CREATE. NULL: no memory. */
struct handle *handle_new(void);

/* After it, or after RELEASE. */
void handle_free(struct channel *channel, struct handle *handle);

/* The server has answered. `node` is 0 for a directory. */
void handle_opened(struct channel *channel, struct handle *handle, uint64_t node, int flags,
                   const struct fuse_open_out *out);

/* The bytes of the node may have changed, or are about to, and with them its attributes. */
void files_changed(struct channel *channel, uint64_t node);

/* For a request that is sent now: what files_told() wants to know when it is answered. */
uint64_t files_clock(struct channel *channel);

/* The server has told the node's attributes, for `valid` seconds and `valid_ns`, in reply to what
 * was sent at `clock`. */
void files_told(struct channel *channel, uint64_t node, const struct fuse_attr *attr,
                uint64_t valid, uint32_t valid_ns, uint64_t clock);

/* READDIRPLUS tells those of many. */
void files_told_many(struct channel *channel, const char *body, size_t size, uint64_t clock);

/* The attributes of an open file still hold. */
bool files_holds(const struct file *file);

static inline uint64_t files_size(const struct file *file)
{
    return atomic_load(&file->told.size);
}

#endif
