/*
 * later_high.c - a file system of libfuse 3.17 and later (libfuse3.so.4), for machines whose
 * libfuse is older: what its headers say otherwise is declared here by hand. It answers reads with
 * several buffers, checks what it is handed, and shows in / what it found wrong: one directory
 * entry each.
 */
#ifndef FUSE_USE_VERSION
#define FUSE_USE_VERSION 312
#endif
/* As far as the headers are later ones themselves, these are declared by hand all the same. */
#define fuse_main_real_versioned their_main
#define fuse_set_feature_flag    their_set_feature_flag
#define fuse_get_feature_flag    their_get_feature_flag
#include <errno.h>
#include <fuse.h>
#undef fuse_main_real_versioned
#undef fuse_set_feature_flag
#undef fuse_get_feature_flag
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct version {
    uint32_t major, minor, hotfix, padding;
};

struct conn_info { /* to time_gran as in <fuse_common.h> */
    uint32_t proto_major, proto_minor, max_write, max_read, max_readahead, capable, want;
    uint32_t max_background, congestion_threshold, time_gran, max_backing_stack_depth, bits;
    uint64_t capable_ext, want_ext;
    uint16_t request_timeout, reserved[31];
};

struct config {
    int32_t set_gid;
    uint32_t gid;
    int32_t set_uid;
    uint32_t uid;
    int32_t set_mode;
    uint32_t umask;
    double entry_timeout, negative_timeout, attr_timeout;
    int32_t intr, intr_signal, remember, hard_remove, use_ino, readdir_ino, direct_io, kernel_cache;
    int32_t auto_cache, ac_attr_timeout_set;
    double ac_attr_timeout;
    int32_t nullpath_ok, show_help;
    char *modules;
    int32_t debug;
    uint32_t fmask, dmask;
    int32_t no_rofd_flush, parallel_direct_writes;
    uint32_t flags;
    uint64_t reserved[48];
};

struct file_info { /* to poll_events as in <fuse_common.h> */
    int32_t flags;
    uint32_t bits, padding[2];
    uint64_t fh, lock_owner;
    uint32_t poll_events;
    int32_t backing_id;
    uint64_t compat_flags, reserved[2];
};

struct buf {
    size_t size;
    enum fuse_buf_flags flags;
    void *mem;
    int fd;
    off_t pos;
    size_t mem_size;
};

struct bufvec {
    size_t count, idx, off;
    struct buf buf[4];
};

struct operations {
    struct fuse_operations base;
#if FUSE_VERSION >= FUSE_MAKE_VERSION(3, 18)
#define STATX base.statx
#else
#define STATX statx
    int (*statx)(const char *, int, int, struct statx *, struct fuse_file_info *);
#endif
};

int fuse_main_real_versioned(int argc, char *argv[], const void *op, size_t op_size,
                             struct version *version, void *user_data);
bool fuse_set_feature_flag(struct conn_info *conn, uint64_t flag);
bool fuse_get_feature_flag(struct conn_info *conn, uint64_t flag);
int fuse_fs_statx(struct fuse_fs *, const char *, int, int, struct statx *,
                  struct fuse_file_info *);
#define buf_size(vector)   fuse_buf_size((const struct fuse_bufvec *)(vector))
#define buf_copy(dst, src) fuse_buf_copy((void *)(dst), (void *)(src), 0)

static const char *wrong[16];
static int wrong_count;
static char data[64] = "one two three four\n";
static size_t size = 19;
static int marker, user_data;

static void check(bool right, const char *what)
{
    if (!right && wrong_count < 16)
        wrong[wrong_count++] = what;
}

static void *do_init(struct fuse_conn_info *given_conn, struct fuse_config *given_config)
{
    struct conn_info *conn = (void *)given_conn;
    struct config *config = (void *)given_config;
    check(conn->capable_ext == conn->capable && conn->want_ext == conn->want, "negotiation");
    check(fuse_get_feature_flag(conn, FUSE_CAP_EXPORT_SUPPORT), "get_feature_flag");
    check(fuse_set_feature_flag(conn, FUSE_CAP_DONT_MASK), "set_feature_flag");
    check(!fuse_set_feature_flag(conn, 1ULL << 40), "a feature nobody has");
    check(conn->request_timeout == 0, "request_timeout");
    check(config->no_rofd_flush == 1, "no_rofd_flush");
    check(config->ac_attr_timeout == 7.5, "ac_attr_timeout");
    check(config->set_mode && config->fmask == 0137 && config->dmask == 027, "masks");
    check(fuse_get_context()->private_data == &user_data, "user data");
    config->entry_timeout = config->attr_timeout = 0;
    config->fmask = 0177;
    return &marker;
}

static void do_destroy(void *private_data)
{
    if (private_data != &marker)
        abort();
}

static int do_getattr(const char *path, struct stat *st, struct fuse_file_info *fi)
{
    (void)fi;
    check(fuse_get_context()->private_data == &marker, "private data");
    memset(st, 0, sizeof(*st));
    st->st_mode = strcmp(path, "/") == 0 ? S_IFDIR | 0777 : S_IFREG | 0777;
    st->st_size = S_ISREG(st->st_mode) ? (off_t)size : 0;
    st->st_nlink = 1;
    return 0;
}

static int do_readdir(const char *path, void *buf, fuse_fill_dir_t fill, off_t off,
                      struct fuse_file_info *fi, enum fuse_readdir_flags flags)
{
    (void)path;
    (void)off;
    (void)fi;
    (void)flags;
    for (int i = 0; i < wrong_count; i++)
        fill(buf, wrong[i], NULL, 0, 0);
    return 0;
}

static int do_open(const char *path, struct fuse_file_info *given)
{
    struct file_info *fi = (void *)given;
    (void)path;
    check(fi->compat_flags == 0 && fi->backing_id == 0, "what was added to fuse_file_info");
    memset(fi->reserved, 0x55, sizeof(fi->reserved)); /* it is the program's to write */
    fi->fh = 4711;
    return 0;
}

/* As many buffers as there are words. */
static int do_read_buf(const char *path, struct fuse_bufvec **out, size_t wanted, off_t off,
                       struct fuse_file_info *fi)
{
    struct bufvec *vector = calloc(1, sizeof(*vector));
    (void)path;
    check(fi->fh == 4711, "fh");
    for (vector->count = 0; vector->count < 4 && (size_t)off < size && wanted > 0;
         vector->count++) {
        size_t left = size - (size_t)off, piece = left < 5 ? left : 5;
        if (vector->count == 3)
            piece = left;
        if (piece > wanted)
            piece = wanted;
        struct buf *buf = &vector->buf[vector->count];
        *buf = (struct buf){.size = piece, .mem = malloc(piece), .fd = -1, .mem_size = piece};
        memcpy(buf->mem, data + off, piece);
        off += (off_t)piece;
        wanted -= piece;
    }
    *out = (void *)vector;
    return 0;
}

static int do_write_buf(const char *path, struct fuse_bufvec *given, off_t off,
                        struct fuse_file_info *fi)
{
    struct bufvec *vector = (void *)given;
    struct bufvec to = {.count = 2};
    (void)path;
    check(fi->fh == 4711, "fh");
    size_t all = buf_size(vector);
    if ((size_t)off + all > sizeof(data))
        return -EFBIG;
    to.buf[0] = (struct buf){.size = 3, .mem = data + off, .fd = -1};
    to.buf[1] =
        (struct buf){.size = sizeof(data) - (size_t)off - 3, .mem = data + off + 3, .fd = -1};
    for (size_t i = 0; i < vector->count; i++)
        check(vector->buf[i].mem_size == 0, "mem_size");
    ssize_t count = buf_copy(&to, vector);
    check(count == (ssize_t)all && vector->idx == vector->count, "fuse_buf_copy");
    check(all <= 3 || to.idx == 1, "how far it has come");
    if (size < (size_t)off + all)
        size = (size_t)off + all;
    return (int)count;
}

/* ENOSYS for one file, as by a program that cannot after all. */
static int do_statx(const char *path, int flags, int mask, struct statx *stx,
                    struct fuse_file_info *fi)
{
    check(flags == 0 && mask == (STATX_BASIC_STATS | STATX_BTIME), "what statx is asked for");
    check(!fi || fi->fh == 4711, "fh of statx");
    check(fuse_get_context()->private_data == &marker, "private data of statx");
    if (strcmp(path, "/plain") == 0)
        return -ENOSYS;
    if (strcmp(path, "/broken") == 0)
        return 0; /* of no type */
    stx->stx_mask = STATX_BASIC_STATS | STATX_BTIME | STATX_MNT_ID;
    stx->stx_mode = strcmp(path, "/") == 0 ? S_IFDIR | 0777 : S_IFREG | 0777;
    stx->stx_nlink = 1;
    stx->stx_size = 4321;
    stx->stx_btime.tv_sec = 1000;
    stx->stx_btime.tv_nsec = 5;
    return 0;
}

static int answer_42(const char *path, int flags, int mask, struct statx *stx,
                     struct fuse_file_info *fi)
{
    (void)path, (void)flags, (void)mask, (void)stx, (void)fi;
    return 42;
}

static int do_access(const char *path, int mask)
{
    static const struct operations below = {.STATX = answer_42};
    struct fuse_fs *fs = fuse_fs_new(&below.base, sizeof(below), NULL);
    (void)path;
    (void)mask;
    check(fuse_fs_statx(fs, "/", 0, 0, NULL, NULL) == 42, "fuse_fs_statx");
    fuse_fs_destroy(fs);
    return 0;
}

static const struct operations ops = {
    .base =
        {
            .init = do_init,
            .destroy = do_destroy,
            .getattr = do_getattr,
            .readdir = do_readdir,
            .open = do_open,
            .read_buf = do_read_buf,
            .write_buf = do_write_buf,
            .access = do_access,
        },
    .STATX = do_statx,
};

int main(int argc, char *argv[])
{
    struct version version = {3, 18, 2, 0};
    return fuse_main_real_versioned(argc, argv, &ops, sizeof(ops), &version, &user_data);
}
