/*
 * trip.h - every op of struct df_ops as one trip to the server. Freestanding.
 *
 *     struct df_trip trip = {.link = link, .mount = mount, .caller = &who};
 *     struct df_trip_where where = {.name = "/a/b", .len = 4};
 *     int64_t ret = df_trip_getattr(&trip, &where, &st);
 *
 * What core/ops.h says of an op holds here, with a handle in the place of a df_file. Beside the
 * op's own results:
 *   DF_LEAVE    the path leads out of the mount: trip->leave has the rest, as df_call.leave
 *   -ENOTCONN   the server is gone
 *   -ETIMEDOUT  no answer within link->patience
 *   -EBADF      the handle is closed
 *   -EFAULT     memory of the caller's is not there (with DF_CHANNEL_USER_COPY only, sys.h)
 * st_dev is filled in, as the core does.
 *
 * A transfer larger than DF_PAYLOAD_SIZE takes one trip for each such piece, and is not atomic
 * against others then. Files are counted by process: open counts the caller's process, df_trip_drop
 * or df_trip_flush(drop) takes it back.
 */
#ifndef DF_CHANNEL_TRIP_H
#define DF_CHANNEL_TRIP_H

#include "channel/link.h"
#include "core/call.h"

struct df_trip {
    struct df_link *link;
    const struct df_caller *caller; /* on whose behalf */
    int32_t mount;                  /* id: where paths from the root go */
    uint32_t links;                 /* symlinks followed so far: as df_call.links; in and out */
    uint32_t second_links;          /* as df_call.second_links */
    bool leave_second;              /* out: rename, link */
    char *leave; /* out: room for PATH_MAX bytes; NULL: DF_LEAVE becomes -EXDEV */
    /* readdir: the path from the root of the mount by which programs call the directory, as far as
     * is known: a hint which questions come next. An empty one: not known. */
    const char *called;
    uint32_t called_len;
};

/* A df_where. */
struct df_trip_where {
    uint64_t base; /* handle; 0: the root of the mount */
    const char *name;
    uint32_t len;   /* strlen(name), < PATH_MAX */
    uint32_t flags; /* DF_WHERE_* */
};

/* --- by name, or by handle with an empty name --- */
/* getattr without a trip: what lies in shared memory. False: nothing, and *st may hold anything.
 * Here *st may be memory of the program's own. */
bool df_trip_known(struct df_trip *trip, const struct df_trip_where *where, int *result,
                   struct stat *st);
/* The same of an open file itself: true for its attributes only. */
bool df_trip_known_open(struct df_link *link, uint64_t file, struct stat *st);
int df_trip_getattr(struct df_trip *trip, const struct df_trip_where *where, struct stat *st);
int df_trip_statx(struct df_trip *trip, const struct df_trip_where *where, struct df_statx *out);
int df_trip_setattr(struct df_trip *trip, const struct df_trip_where *where,
                    const struct df_setattr *set, struct stat *st);
int df_trip_access(struct df_trip *trip, const struct df_trip_where *where, int mask);
/* access without a trip: the caller may, or there is no such file. False: nothing is known. */
bool df_trip_known_access(struct df_trip *trip, const struct df_trip_where *where, int mask,
                          int *result);
ssize_t df_trip_readlink(struct df_trip *trip, const struct df_trip_where *where, char *buf,
                         size_t size);
ssize_t df_trip_getxattr(struct df_trip *trip, const struct df_trip_where *where, const char *name,
                         void *value, size_t size);
ssize_t df_trip_listxattr(struct df_trip *trip, const struct df_trip_where *where, char *list,
                          size_t size);
int df_trip_setxattr(struct df_trip *trip, const struct df_trip_where *where, const char *name,
                     const void *value, size_t size, int flags);
int df_trip_removexattr(struct df_trip *trip, const struct df_trip_where *where, const char *name);
int df_trip_statfs(struct df_trip *trip, const struct df_trip_where *where, struct statvfs *out);
int df_trip_mknod(struct df_trip *trip, const struct df_trip_where *where, mode_t mode, dev_t rdev);
int df_trip_mkdir(struct df_trip *trip, const struct df_trip_where *where, mode_t mode);
int df_trip_symlink(struct df_trip *trip, const char *target, const struct df_trip_where *where);
int df_trip_unlink(struct df_trip *trip, const struct df_trip_where *where);
int df_trip_rmdir(struct df_trip *trip, const struct df_trip_where *where);
int df_trip_rename(struct df_trip *trip, const struct df_trip_where *from,
                   const struct df_trip_where *to, unsigned flags);
int df_trip_link(struct df_trip *trip, const struct df_trip_where *from,
                 const struct df_trip_where *to);

/* --- open files --- */

/* The file's df_ofd is ready; *out says what it is. */
int df_trip_open(struct df_trip *trip, const struct df_trip_where *where, int flags, mode_t mode,
                 struct df_message_file *out);
int df_trip_tmpfile(struct df_trip *trip, const struct df_trip_where *where, int flags, mode_t mode,
                    struct df_message_file *out);
/* close(2) of a descriptor; with `drop`, of the process's last. The file is dropped also when the
 * result is an error. */
int df_trip_flush(struct df_trip *trip, uint64_t file, uint64_t owner, bool drop);
ssize_t df_trip_read(struct df_trip *trip, uint64_t file, const struct iovec *iov, int iovcnt,
                     off_t offset);

/* The beginning of such a read in two halves: a message that is on its way, while this thread does
 * what needs none. */
struct df_trip_early {
    struct df_slot *slot; /* NULL: none is; df_trip_read() it */
    size_t size;
    unsigned woken; /* this and behind: as df_asked has it (link.h) */
    uint32_t behind;
};

/* Sends the question, unless something of the file is kept that may make it needless. size, offset:
 * bytes. */
void df_trip_read_ask(struct df_trip *trip, uint64_t file, size_t size, off_t offset,
                      struct df_trip_early *early);

/* Waits for the answer. Returns how many bytes have come to `to`, at most early->size; 0 also where
 * they can be found without a message now; or a negative errno. to: NULL if they are not wanted any
 * more. */
ssize_t df_trip_read_take(struct df_trip *trip, const struct df_trip_early *early, void *to);

/* The same for who needs no copy of them: they are used where they have come, and are gone then.
 * use() is not called for none; what it returns is returned. */
typedef ssize_t df_trip_user(void *with, const void *bytes, size_t size);
ssize_t df_trip_read_use(struct df_trip *trip, const struct df_trip_early *early, df_trip_user *use,
                         void *with);

/* flags: the file's status flags at this moment. */
ssize_t df_trip_write(struct df_trip *trip, uint64_t file, int flags, enum df_placing placing,
                      const struct iovec *iov, int iovcnt, off_t *offset);

/* One read of a batch. */
struct df_trip_extent {
    uint64_t file;
    void *buf;
    size_t size; /* bytes, as offset */
    off_t offset;
    ssize_t result; /* out: bytes, or a negative errno */
};
/* Fills in the results. 0, or a negative errno as above: the results behind are not filled in. */
int df_trip_read_batch(struct df_trip *trip, struct df_trip_extent *extents, size_t count);
ssize_t df_trip_path(struct df_trip *trip, uint64_t file, char *buf, size_t size);
off_t df_trip_lseek(struct df_trip *trip, uint64_t file, off_t offset, int whence);
int df_trip_fsync(struct df_trip *trip, uint64_t file, bool datasync);
int df_trip_fallocate(struct df_trip *trip, uint64_t file, int mode, off_t offset, off_t length);
ssize_t df_trip_copy_file_range(struct df_trip *trip, uint64_t in, off_t offset_in, uint64_t out,
                                off_t offset_out, size_t size, unsigned flags);
int df_trip_readdir(struct df_trip *trip, uint64_t file, off_t offset, struct df_dirbuf *buf);
int df_trip_ioctl(struct df_trip *trip, uint64_t file, unsigned long request, void *arg);
/* Never sleeps and wakes nobody. */
/* bell: token of who waits (ledger/bells.h); 0: nobody. */
int df_trip_poll(struct df_trip *trip, uint64_t file, int events, uint64_t bell);
/* file: 0 with DF_EPOLL_ASK. 1: events and data of *epoll are the answer. */
int df_trip_epoll(struct df_trip *trip, uint64_t file, struct df_message_epoll *epoll);
/* The server keeps the locks of a file system that has none. */
int df_trip_lock(struct df_trip *trip, uint64_t file, struct df_lock *lock);
int df_trip_flock(struct df_trip *trip, uint64_t file, int operation, uint64_t owner);
/* A program is about to watch it for these events of inotify(7): the serial of its stand-in. */
int64_t df_trip_watch(struct df_trip *trip, uint64_t file, uint32_t events);
int df_trip_advise(struct df_trip *trip, uint64_t file, off_t offset, off_t length, int advice);

/* --- processes: trip->mount is not looked at, trip->caller by df_trip_keep() only --- */

/* This process has one more file: its descriptor came by SCM_RIGHTS. 0, -EBADF. */
int df_trip_adopt(struct df_trip *trip, uint64_t file);
/* This process has no descriptor of the file any more. 0, -EBADF. */
int df_trip_drop(struct df_trip *trip, uint64_t file);
/* The same without waiting for it; what the process asks for later comes after it. Nobody learns
 * its result. */
void df_trip_drop_soon(struct df_trip *trip, uint64_t file);
/* The files that it has, and no others; at most DF_PAYLOAD_SIZE / 8 of them (NULL: none).
 * `executed`: after execve, which has closed the others, as close(2) does, and ended all threads,
 * whatever they were at. 0. */
int df_trip_keep(struct df_trip *trip, const uint64_t files[], size_t count, bool executed);
/* Before fork: > 0, the client id of the child, or -errno. The child has the files that the parent
 * has at this moment. */
int64_t df_trip_fork(struct df_trip *trip);
/* At the end of a process that has sent descriptors: who receives them in some seconds finds their
 * files open. As df_trip_fork(), but for a child that is none. */
int64_t df_trip_leave(struct df_trip *trip);
/* The fork failed. */
int df_trip_unfork(struct df_trip *trip, uint32_t client);
/* A child was killed: whoever is gone has nothing any more (within about a second). 0. */
int df_trip_bury(struct df_trip *trip);
/* What this process has stored in memory that shows the file is written back by the server. 0, or
 * the first error. */
int df_trip_write_back(struct df_trip *trip, uint64_t file);
/* Unmounts trip->mount, on the server, for everybody. 0, -EBUSY, -EINVAL; -EUSERS: `alone`, and
 * there are other clients. patience: ns that it may take, < 0: for ever. */
int df_trip_unmount(struct df_trip *trip, bool lazy, bool alone, int64_t patience);
/* What was written to any mount of the server, and kept there, is handed to its file system; what
 * fails then is told by fsync and close of the files. 0. */
int df_trip_sync(struct df_trip *trip);
/* Does nothing on the server: for what a trip costs, and whether the server answers. 0; -ETIMEDOUT:
 * within five seconds it does not. */
int df_trip_nothing(struct df_trip *trip);

#endif
