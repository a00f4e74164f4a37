/*
 * door.h - between FUSE requests and the store: what the files of the door share.
 */
#ifndef MEMFS_DOOR_H
#define MEMFS_DOOR_H

#define FUSE_USE_VERSION 314
#include <fuse_lowlevel.h>

#include "../later.h"
#include "store.h"

#pragma GCC visibility push(hidden)

/* The session's user data. Constant once the session has begun (FUSE_INIT). */
struct door {
    struct store *store;
    double timeout;  /* of entries, absent entries and attributes, seconds; 0: not cached */
    bool direct_io;  /* no page cache */
    bool keep_cache; /* the page cache survives close */
    bool writeback;  /* the kernel may collect writes */
    bool acls;       /* it consults access control lists, and leaves the umask to us */
    struct fuse_entry_param absent; /* how a name that is not there is answered */
};

extern const struct later_ops door_ops;

/* door_data.c, its part of door_ops */
void door_data_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
void door_data_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off,
                    struct fuse_file_info *fi);
void door_data_write_buf(fuse_req_t req, fuse_ino_t ino, struct fuse_bufvec *bufv, off_t off,
                         struct fuse_file_info *fi);
void door_data_fallocate(fuse_req_t req, fuse_ino_t ino, int mode, off_t off, off_t len,
                         struct fuse_file_info *fi);
void door_data_copy(fuse_req_t req, fuse_ino_t in, off_t off_in, struct fuse_file_info *fi_in,
                    fuse_ino_t out, off_t off_out, struct fuse_file_info *fi_out, size_t len,
                    int flags);
void door_data_lseek(fuse_req_t req, fuse_ino_t ino, off_t off, int whence,
                     struct fuse_file_info *fi);

/* door_list.c, its part of door_ops */
void door_list_opendir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
void door_list_readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off,
                       struct fuse_file_info *fi);
void door_list_readdirplus(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off,
                           struct fuse_file_info *fi);

/* door_xattr.c, its part of door_ops */
void door_xattr_set(fuse_req_t req, fuse_ino_t ino, const char *name, const char *value,
                    size_t size, int flags);
void door_xattr_get(fuse_req_t req, fuse_ino_t ino, const char *name, size_t size);
void door_xattr_list(fuse_req_t req, fuse_ino_t ino, size_t size);
void door_xattr_remove(fuse_req_t req, fuse_ino_t ino, const char *name);

/* What open and create say to the kernel about a file. */
void door_data_file_info(const struct door *door, struct fuse_file_info *fi);
/* Truncates for O_TRUNC in `flags`. */
int door_data_truncate(fuse_req_t req, struct inode *inode, int flags);
/* An entry as lookup answers it; its reference belongs to the kernel once the reply is sent. */
void door_entry(const struct door *door, struct inode *inode, struct fuse_entry_param *entry);

static inline const struct door *door_of(fuse_req_t req)
{
    return fuse_req_userdata(req);
}

/* A node id is the inode's address, save for the root's. */
static inline struct inode *door_inode(const struct door *door, fuse_ino_t ino)
{
    return ino == FUSE_ROOT_ID ? door->store->root : (struct inode *)(uintptr_t)ino;
}

#pragma GCC visibility pop
#endif
