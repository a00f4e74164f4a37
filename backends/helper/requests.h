/*
 * requests.h - libfuse's low-level operations as messages of the protocol.
 */
#ifndef HELPER_REQUESTS_H
#define HELPER_REQUESTS_H

#include <fcntl.h>
#include <string.h>

#include "channel.h"

extern const struct later_ops request_ops; /* the userdata is a struct channel */

/* An argument struct and up to two texts (with their NULs) or data behind it. */
#define REQUEST(code, id, ...)                                                                     \
    (struct message)                                                                               \
    {                                                                                              \
        .opcode = (code), .node = (id), .count = 1, __VA_ARGS__                                    \
    }

static inline void request_add(struct message *message, const void *data, size_t size)
{
    message->part[message->count++] = (struct iovec){(void *)(uintptr_t)data, size};
}

static inline void request_add_name(struct message *message, const char *name)
{
    request_add(message, name, strlen(name) + 1);
}

static inline void request_send(fuse_req_t req, struct message *message)
{
    channel_send(fuse_req_userdata(req), req, message);
}

/* ---- requests_node.c: names, attributes, extended attributes ---- */

/* Sends a request that makes something in its node. */
void request_make(fuse_req_t, struct message *);

void request_lookup(fuse_req_t, fuse_ino_t, const char *);
void request_forget(fuse_req_t, fuse_ino_t, uint64_t);
void request_forget_multi(fuse_req_t, size_t, struct fuse_forget_data *);
void request_getattr(fuse_req_t, fuse_ino_t, struct fuse_file_info *);
void request_statx(fuse_req_t, fuse_ino_t, int flags, int mask, struct fuse_file_info *);
void request_setattr(fuse_req_t, fuse_ino_t, struct stat *, int, struct fuse_file_info *);
void request_readlink(fuse_req_t, fuse_ino_t);
void request_mknod(fuse_req_t, fuse_ino_t, const char *, mode_t, dev_t);
void request_mkdir(fuse_req_t, fuse_ino_t, const char *, mode_t);
void request_unlink(fuse_req_t, fuse_ino_t, const char *);
void request_rmdir(fuse_req_t, fuse_ino_t, const char *);
void request_symlink(fuse_req_t, const char *, fuse_ino_t, const char *);
void request_rename(fuse_req_t, fuse_ino_t, const char *, fuse_ino_t, const char *, unsigned);
void request_link(fuse_req_t, fuse_ino_t, fuse_ino_t, const char *);
void request_statfs(fuse_req_t, fuse_ino_t);
void request_setxattr(fuse_req_t, fuse_ino_t, const char *, const char *, size_t, int);
void request_getxattr(fuse_req_t, fuse_ino_t, const char *, size_t);
void request_listxattr(fuse_req_t, fuse_ino_t, size_t);
void request_removexattr(fuse_req_t, fuse_ino_t, const char *);
void request_access(fuse_req_t, fuse_ino_t, int);

/* ---- requests_file.c: open files and directories ---- */

/* As the kernel hands open(2)'s flags on: a descriptor's own is not among them, and every file of a
 * 64-bit process is large, which the C library does not say. */
static inline uint32_t file_flags(const struct fuse_file_info *fi)
{
    const uint32_t large = 0100000; /* O_LARGEFILE of asm-generic/fcntl.h */

    return ((uint32_t)fi->flags & ~(uint32_t)O_CLOEXEC) | large;
}

void request_open(fuse_req_t, fuse_ino_t, struct fuse_file_info *);
void request_create(fuse_req_t, fuse_ino_t, const char *, mode_t, struct fuse_file_info *);
void request_tmpfile(fuse_req_t, fuse_ino_t, mode_t, struct fuse_file_info *);
void request_read(fuse_req_t, fuse_ino_t, size_t, off_t, struct fuse_file_info *);
void request_write(fuse_req_t, fuse_ino_t, const char *, size_t, off_t, struct fuse_file_info *);
void request_flush(fuse_req_t, fuse_ino_t, struct fuse_file_info *);
void request_release(fuse_req_t, fuse_ino_t, struct fuse_file_info *);
void request_fsync(fuse_req_t, fuse_ino_t, int, struct fuse_file_info *);
void request_fallocate(fuse_req_t, fuse_ino_t, int, off_t, off_t, struct fuse_file_info *);
void request_copy(fuse_req_t, fuse_ino_t, off_t, struct fuse_file_info *, fuse_ino_t, off_t,
                  struct fuse_file_info *, size_t, int);
void request_lseek(fuse_req_t, fuse_ino_t, off_t, int, struct fuse_file_info *);
void request_opendir(fuse_req_t, fuse_ino_t, struct fuse_file_info *);
void request_readdir(fuse_req_t, fuse_ino_t, size_t, off_t, struct fuse_file_info *);
void request_readdirplus(fuse_req_t, fuse_ino_t, size_t, off_t, struct fuse_file_info *);
void request_releasedir(fuse_req_t, fuse_ino_t, struct fuse_file_info *);
void request_fsyncdir(fuse_req_t, fuse_ino_t, int, struct fuse_file_info *);

/* ---- requests_control.c: locks, ioctl, poll ---- */

void request_getlk(fuse_req_t, fuse_ino_t, struct fuse_file_info *, struct flock *);
void request_setlk(fuse_req_t, fuse_ino_t, struct fuse_file_info *, struct flock *, int);
void request_flock(fuse_req_t, fuse_ino_t, struct fuse_file_info *, int);
void request_ioctl(fuse_req_t, fuse_ino_t, unsigned, void *, struct fuse_file_info *, unsigned,
                   const void *, size_t, size_t);
void request_poll(fuse_req_t, fuse_ino_t, struct fuse_file_info *, struct fuse_pollhandle *);

#endif
