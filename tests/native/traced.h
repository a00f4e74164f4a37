/*
 * traced.h - a small file system in memory on libfuse's low-level API that writes down every
 * request and checks that lookup counts balance. Built twice: answered through our node lane, and
 * (KERNEL_ROUTE) linked to libfuse3 for a mount of the kernel, so that an expectation about
 * requests is first checked against Linux.
 */
#ifndef DF_TESTS_TRACED_H
#define DF_TESTS_TRACED_H

#ifdef KERNEL_ROUTE
#define FUSE_USE_VERSION 312
#include <fuse_lowlevel.h>
#else
#include "host/libfuse.h"
#endif
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#define TRACED_NODES   512
#define TRACED_ENTRIES 512
#define TRACED_LOG     65536

struct traced_node {
    bool alive;
    uint64_t generation;
    struct stat st;
    uint64_t lookups;
    int opens; /* OPEN, CREATE and OPENDIR without their RELEASE */
    char data[4096];
    char target[256];
};

struct traced_entry {
    uint64_t parent; /* 0: free */
    uint64_t child;
    char name[256];
};

struct traced {
    pthread_mutex_t lock;                   /* protects all */
    pthread_cond_t asked;                   /* a request was written down, or is held, or let go */
    struct traced_node nodes[TRACED_NODES]; /* index: number */
    struct traced_entry entries[TRACED_ENTRIES];
    uint64_t next; /* number of the next node */

    /* how it answers */
    double entry_timeout, attr_timeout;
    double negative_timeout;    /* < 0: ENOENT; else a negative entry */
    unsigned want_off, want_on; /* capabilities changed in init */
    bool late;                  /* answer from another thread, after the operation has returned */
    bool quiet;                 /* write nothing down */
    int fail_after;             /* fail the n-th request from now on; 0: none */
    int fail_error;
    const char *fail_name; /* fail requests of this name, NULL: none */
    struct traced_hold {   /* traced_hold(); request NULL: free */
        const char *request;
        bool held;
    } holds[4];
    const char *inside_of; /* the next request of this name calls inside(), unlocked; NULL: none */
    void (*inside)(void);
    unsigned open_flags; /* bit 0: direct_io, 1: nonseekable, 2: noflush */

    /* what it saw */
    char log[TRACED_LOG];
    size_t log_size;
    int requests; /* that could fail */
    int errors;   /* contradictions: forgotten too often, unknown nodes */
    char error[256];
    uint32_t capable, wanted; /* in init, before and after */
    int destroyed;
    pthread_t workers[64]; /* of late answers */
    int worker_count;
};

extern const struct fuse_lowlevel_ops traced_ops;

/* A root directory; time-outs are a day, absent names ENOENT. */
struct traced *traced_new(void);
void traced_free(struct traced *traced);

/*
 * The requests since the last time, as "LOOKUP 1/a, GETATTR 2"; valid until the next. FORGETs are
 * not among them: the kernel sends them when it likes. RELEASE it sends in the background: if the
 * log is not `expected` yet, waits up to two seconds for it to become that.
 */
const char *traced_log(struct traced *traced, const char *expected);

/* Changes that do not come through the mount. They return the number of the node. */
uint64_t traced_make(struct traced *traced, uint64_t parent, const char *name, mode_t mode);
void traced_drop(struct traced *traced, uint64_t parent, const char *name);
void traced_move(struct traced *traced, uint64_t parent, const char *name, uint64_t to);

/* The next request that is written down as `request` will wait, before anything is looked at, until
 * it is let go. Four in a test. */
void traced_hold(struct traced *traced, const char *request);
void traced_await_held(struct traced *traced, const char *request);
void traced_let_go(struct traced *traced, const char *request);

/* Lookups that are not forgotten, over all nodes but the root. */
uint64_t traced_lookups(struct traced *traced);
uint64_t traced_lookups_of(struct traced *traced, uint64_t node);
int traced_opens(struct traced *traced);

#endif
