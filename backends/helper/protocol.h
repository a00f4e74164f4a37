/*
 * protocol.h - what FUSE 7.38 to 7.45 have added of which we make use (fuse.h of Linux 6.18);
 * Debian's linux/fuse.h ends with the beginnings of 7.38. The names are ours: a newer header has
 * its own.
 */
#ifndef HELPER_PROTOCOL_H
#define HELPER_PROTOCOL_H

#include <linux/fuse.h>
#include <stdint.h>
#include <sys/stat.h>

/* INIT; bits from 32 on are those of flags2 (FUSE_INIT_EXT). */
#define PROTOCOL_CREATE_SUPP_GROUP (UINT64_C(1) << 34) /* 7.38 */
#define PROTOCOL_NO_EXPORT_SUPPORT (UINT64_C(1) << 38) /* 7.40 */
#define PROTOCOL_HAS_RESEND        (UINT64_C(1) << 39) /* 7.40 */

/* 7.40: set in the number of a request that is sent a second time, because of NOTIFY_RESEND. */
#define PROTOCOL_UNIQUE_RESEND (UINT64_C(1) << 63)

/* Notifications. */
enum {
    PROTOCOL_NOTIFY_RESEND = 7,    /* 7.40; no body */
    PROTOCOL_NOTIFY_INC_EPOCH = 8, /* 7.44; no body */
    PROTOCOL_NOTIFY_PRUNE = 9,     /* 7.45; ids of nodes that the server would like forgotten */
};

struct protocol_prune_out { /* the ids follow, 64 bits each */
    uint32_t count;
    uint32_t padding;
    uint64_t spare;
};

/* 7.38: type of an extension, supplementary groups. */
enum { PROTOCOL_EXT_GROUPS = 32 };

struct protocol_extension {
    uint32_t size; /* bytes, this header included */
    uint32_t type;
};

/* 7.39; of the answer Linux takes over the basic attributes and the time of birth. */
enum { PROTOCOL_STATX = 52 };

struct protocol_statx_in {
    uint32_t getattr_flags;
    uint32_t reserved;
    uint64_t fh;
    uint32_t sx_flags; /* AT_STATX_*: 0 */
    uint32_t sx_mask;  /* STATX_* */
};

struct protocol_statx_out {
    uint64_t attr_valid; /* seconds */
    uint32_t attr_valid_nsec;
    uint32_t flags;
    uint64_t spare[2];
    struct statx stat; /* struct fuse_statx has the same layout */
};

/* 7.45: as COPY_FILE_RANGE, but for the reply. */
enum { PROTOCOL_COPY_FILE_RANGE_64 = 53 };

struct protocol_copy_out {
    uint64_t bytes;
};

#endif
