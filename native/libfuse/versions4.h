/*
 * versions4.h - structures of libfuse3.so.4 that are not those of our headers, and their
 * conversion; for versions4.c and versions4_buf.c.
 */
#ifndef DF_LIBFUSE_VERSIONS4_H
#define DF_LIBFUSE_VERSIONS4_H

#include <stdint.h>

#include "libfuse/abi.h"

#define VERSION(function, name) __asm__(".symver " #function "," name)

struct statx;
struct libfuse_version; /* of the headers: 3.17 and 3.18 differ in the length of the tables alone */

struct fuse4_conn_info {
    uint32_t proto_major;
    uint32_t proto_minor;
    uint32_t max_write;
    uint32_t max_read;
    uint32_t max_readahead;
    uint32_t capable;
    uint32_t want;
    uint32_t max_background;
    uint32_t congestion_threshold;
    uint32_t time_gran;
    uint32_t max_backing_stack_depth;
    uint32_t no_interrupt : 1;
    uint32_t padding : 31;
    uint64_t capable_ext;
    uint64_t want_ext;
    uint16_t request_timeout;
    uint16_t reserved[31];
};
_Static_assert(sizeof(struct fuse4_conn_info) == sizeof(struct fuse_conn_info), "128 bytes");
_Static_assert(offsetof(struct fuse4_conn_info, time_gran) ==
                   offsetof(struct fuse_conn_info, time_gran),
               "the same to here");

struct fuse4_config {
    int32_t set_gid;
    uint32_t gid;
    int32_t set_uid;
    uint32_t uid;
    int32_t set_mode;
    uint32_t umask;
    double entry_timeout;
    double negative_timeout;
    double attr_timeout;
    int32_t intr;
    int32_t intr_signal;
    int32_t remember;
    int32_t hard_remove;
    int32_t use_ino;
    int32_t readdir_ino;
    int32_t direct_io;
    int32_t kernel_cache;
    int32_t auto_cache;
    int32_t ac_attr_timeout_set;
    double ac_attr_timeout;
    int32_t nullpath_ok;
    int32_t show_help;
    char *modules;
    int32_t debug;
    uint32_t fmask;
    uint32_t dmask;
    int32_t no_rofd_flush;
    int32_t parallel_direct_writes;
    uint32_t flags;
    uint64_t reserved[48];
};

struct fuse4_buf {
    size_t size;
    enum fuse_buf_flags flags;
    void *mem;
    int fd;
    off_t pos;
    size_t mem_size;
};

struct fuse4_bufvec {
    size_t count;
    size_t idx;
    size_t off;
    struct fuse4_buf buf[1];
};
_Static_assert(offsetof(struct fuse4_bufvec, buf) == offsetof(struct fuse_bufvec, buf) &&
                   offsetof(struct fuse4_buf, pos) == offsetof(struct fuse_buf, pos),
               "a vector of one is the same");

struct fuse4_operations {
    struct fuse_operations same; /* init, read_buf, write_buf: with the structures above */
    df_highlevel_statx_op *statx;
};

typedef void *init4_function(struct fuse4_conn_info *conn, struct fuse4_config *config);
typedef int read_buf4_function(const char *path, struct fuse4_bufvec **bufp, size_t size, off_t off,
                               struct fuse_file_info *fi);
typedef int write_buf4_function(const char *path, struct fuse4_bufvec *buf, off_t off,
                                struct fuse_file_info *fi);
typedef void low_init4_function(void *userdata, struct fuse4_conn_info *conn);
typedef void low_write_buf4_function(fuse_req_t req, fuse_ino_t ino, struct fuse4_bufvec *buf,
                                     off_t off, struct fuse_file_info *fi);

/* ---- versions4_buf.c ------------------------------------------------------------------------- */

/* On the heap, with what the other version's vector points to; NULL when memory is short. */
struct fuse_bufvec *df4_vector_3(const struct fuse4_bufvec *from);
struct fuse4_bufvec *df4_vector_4(const struct fuse_bufvec *from);

#endif
