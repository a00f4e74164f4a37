/*
 * server_private.h - one running server, shared by server.c, served.c, ended.c, unmount.c,
 * control*.c and execute*.c.
 */
#ifndef DF_SERVER_PRIVATE_H
#define DF_SERVER_PRIVATE_H

#include "channel/room.h"
#include "core/call.h"
#include "core/check.h"
#include "core/gate.h"
#include "core/mount.h"
#include "ledger/bells.h"
#include "ledger/epolls.h"
#include "ledger/files.h"
#include "segment/cache.h"
#include "segment/frames.h"
#include "segment/segment.h"
#include "server/patience.h"
#include "server/server.h"
#include "watch/watch.h"
#include "workers/pool.h"
#include "writeback/writeback.h"

/* May it be kept that a name is absent? */
enum df_absences { DF_ABSENCES_UNKNOWN, DF_ABSENCES_KEPT, DF_ABSENCES_NEVER };

/* A mount that is served. Fixed but for `id`, `ending` and what is atomic. */
struct df_served {
    int id;                               /* 0: it is unmounted */
    int counted;                          /* its id for ever */
    struct df_mount *mount;               /* type-stable; pinned with its id */
    struct df_shared_mount *shared;       /* its entry in the segment */
    bool ending;                          /* under server->lock: unmount it with its last file */
    struct df_writeback_server writeback; /* its `made` is NULL: writes go through */
    _Atomic uint32_t reads;   /* how surely opens are followed by reads (execute_open.c) */
    _Atomic bool lends;       /* bytes of its files were found lent */
    _Atomic uint8_t absences; /* enum df_absences */
    _Atomic uint32_t watched; /* events ever asked for, of anything in it (watch/watch.h) */
};

struct df_server {
    const struct df_serve_options *options;
    struct df_own_segment own;
    struct df_pool pool;
    struct df_files files;
    struct df_cacher cacher;
    struct df_framer framer;
    struct df_writeback_room dirty;
    struct df_patience patience;
    struct df_watcher watcher;
    struct { /* data files that were closed since those kept were looked at: shadow_kept.h */
        unsigned files;
        uint64_t bytes;
        uint64_t often;                     /* bytes after which they are; 0: not known yet */
    } kept;                                 /* under the lock of the run */
    struct df_unremoved *_Atomic unremoved; /* data files that are to go: mapped.c */
    struct df_bells bells;
    struct df_epolls epolls;
    int news;                 /* eventfd: something may be over: look */
    _Atomic uint32_t rounds;  /* futex: how often the control loop has seen all there was to see */
    _Atomic uint32_t burials; /* futex: threads that close what clients had that are gone */
    _Atomic int sockets;      /* the control loop's epoll; -1: there is none */
    _Atomic bool looking;     /* the control loop is at what it has found there */

    pthread_mutex_t lock; /* protects the mounts' `ending` and `live`; held during an unmount */
    struct df_served mounts[DF_MOUNT_COUNT];
    unsigned mount_count;          /* fixed */
    _Atomic unsigned live_count;   /* mounts that are left */
    _Atomic unsigned ending_count; /* of these, those that end with their last file */
};

/* One message being executed; on the worker's stack. */
struct df_work {
    struct df_server *server;
    struct df_slot *slot;
    struct df_area *area;
    uint32_t client;
    struct df_message message; /* a copy of the question */
    struct df_thread *thread;
    struct df_caller caller;
    struct df_call call;
    unsigned index;   /* of the mount, for the cache; DF_MOUNT_COUNT: it has gone from there */
    struct df_fs *fs; /* whose op it is */
    struct df_file *files[2]; /* with references */
    struct df_where wheres[2];
    uint64_t opened;                 /* handle of the file that it has opened; 0: none */
    struct df_frames_changing bytes; /* what becomes of what is known of a file's bytes */
    struct df_changes changes;       /* of names, as the host tells */
    bool reads_are_told;             /* those of the file that it opens (watch/watch.h) */
    size_t listed;                   /* bytes of records that a readdir has answered with */
    char names[2][PATH_MAX];
    char key[DF_KEY_SIZE];
};

/* ---- execute_check.c ---- */

/* Before the op of a message, whose objects are taken. 0, or the error of who asks for that. */
int df_execute_check(struct df_work *w);

/* Nor is another file read in a batch. */
bool df_execute_may_read(const struct df_file *file);

/* ---- execute_data.c ---- */

/* Bytes from page `page` on that were lent at `since` or later (segment/lent.h) can be found where
 * they lie. False: not all of them. */
bool df_execute_keep_lent(struct df_work *w, const struct df_frames_ticket *ticket, uint64_t page,
                          const char *at, size_t size, bool end, uint64_t since);

/* ---- execute.c ---- */

/* df_pool_serve; arg is the server. */
void df_execute(void *arg, struct df_slot *slot, struct df_area *area);

/* A reference on the file of the message that is the first, and the file system that it is of. 0;
 * -EBADF, or -ESTALE: it was lost with a server that has ended. */
int df_execute_take(struct df_work *w, uint64_t handle);

/* The number that stat shows of a file of the message, asked for once; df_file.ino may be another.
 * 0: nothing is kept under it, or it is not known. */
uint64_t df_execute_ino(struct df_work *w, unsigned file);

/* The same of an open file of the mount of w->index. */
uint64_t df_execute_ino_of(struct df_work *w, struct df_file *file, uint64_t handle);

/* ---- execute_gone.c ---- */

/* The last reference of a client to the file has gone: releases it. */
void df_execute_close(struct df_server *server, struct df_thread *thread,
                      const struct df_last_file *last);

/* Nobody waits for the answer that df_execute() gave: what it opened is closed again. */
void df_execute_unheard(void *arg, struct df_slot *slot);

/* A process has closed the file: it is flushed, and its POSIX locks go. In the gate. */
void df_execute_flush(struct df_thread *thread, struct df_file *file, uint64_t owner);

/* The slots that threads of the client had claimed, submitted, or not looked at again; all its
 * threads but the one that waits for `but` (NULL: that one, too) are gone. */
void df_execute_reap(struct df_server *server, uint32_t client, const struct df_slot *but);

/* A client process is gone: its slots, its locks, its files. Any thread, outside the gate. */
void df_execute_gone(struct df_server *server, uint32_t client);

/* The same without waiting for the file system, which may hang: what had files is left to a thread,
 * one of server->burials. */
void df_execute_bury(struct df_server *server, uint32_t client);

/* ---- mapped.c ---- */

/* Before the files of a client that is gone are closed (their set): what it stored in memory of
 * mapped files is written back. Outside the gate. */
void df_mapped_gone(struct df_server *server, uint32_t client, const uint64_t *had);

/* What the client has stored in memory of that open file is written back, as if it were gone. 0 or
 * -errno. Outside the gate. */
int64_t df_mapped_write_back(struct df_server *server, uint32_t client, uint64_t handle);

/* A client is gone, and what it stored is written back: it holds nothing of mapped files. */
void df_mapped_forget(struct df_server *server, uint32_t client);

/* An open file description of a mapped file is no more. */
void df_mapped_closed(struct df_server *server, int mount, uint64_t ino);

/* Removes the data files that could not be removed then. By the control loop. */
void df_mapped_settle(struct df_server *server);

/* Whether any program of the run has ever held memory of them. */
bool df_mapped_has_holders(const struct df_server *server);

/* ---- execute_ops.c: each op of ops.def ---- */

/* The client has the file no more. 0, -EBADF. In the gate. */
int64_t df_execute_drop(struct df_work *w, uint64_t handle);

typedef int64_t df_execute_op(struct df_work *w);
extern df_execute_op *const df_execute_ops[DF_MESSAGE_COUNT];

/* The answer's own part of the message. */
static inline union df_results *df_execute_out(struct df_work *w)
{
    return &w->slot->message.out;
}

/* Keeps what getattr has answered to a question, if nothing has changed since the ticket. */
void df_execute_keep(struct df_work *w, struct df_cacher_ticket ticket,
                     const struct df_trip_where *question, int64_t result, const struct stat *st);

/* Calls the op: w->fs and w->call are its first arguments. */
#define DF_EXECUTE_CALL(op, ...)                                                                   \
    df_call_result(&w->call, w->fs->ops->op(w->fs, &w->call, __VA_ARGS__))

static inline size_t df_execute_at_most(uint64_t size, size_t limit)
{
    return size < limit ? size : limit;
}

/* How many of `size` bytes the payload has room for. */
static inline size_t df_execute_room(struct df_work *w, uint64_t size)
{
    return df_room_for(w->server->own.segment, w->slot, size);
}

/* ---- ahead.c ---- */

/* After a readdir has ended: keeps what is known of the names that it told. */
void df_execute_ahead(struct df_work *w);

/* ---- execute_watch.c ---- */

/* Around an op, where something is watched; `look`: NULL if nothing was before it. */
void df_execute_watch_before(struct df_work *w, struct df_watch_look *look);
void df_execute_watch_after(struct df_work *w, struct df_watch_look *look, int64_t result);

df_execute_op df_execute_watch;

/* ---- execute_epoll.c ---- */

/* The op poll. A file system that cannot tell is not asked again. */
int64_t df_execute_poll(struct df_work *w, int events, struct df_wake *wake);

df_execute_op df_execute_epoll;

/* The file is closed: no epoll instance watches it any more. */
void df_execute_unwatch(struct df_server *server, uint64_t handle);

/* ---- execute_lock.c, execute_client.c: more of the table ---- */

df_execute_op df_execute_lock, df_execute_flock, df_execute_adopt, df_execute_keep_files,
    df_execute_fork, df_execute_unfork;

/* ---- execute_data.c, execute_batch.c, execute_list.c: bytes of files and listings ---- */

df_execute_op df_execute_read, df_execute_write, df_execute_read_batch, df_execute_readdir,
    df_execute_advise;

/* The ticket by which what is read now may be kept; *size: of the file. */
struct df_frames_ticket df_execute_ask(struct df_work *w, uint32_t content, off_t *size);

/* The file was read, which the next opens want to know, where it counts (execute_open.c). */
void df_execute_note_read(struct df_work *w, uint64_t handle);

/* What the message may change of what is known of bytes: fills in w->bytes. */
void df_execute_bytes(struct df_work *w);

/* What a read may change of what stat shows: the time of access, but not on a read-only mount, as
 * in the kernel. */
static inline enum df_cache_change df_execute_reading(const struct df_work *w)
{
    return df_check_read_only(w->call.mount) ? DF_CACHE_NOTHING : DF_CACHE_FILE;
}

/* The content of a file just opened, which is closed with it; 0: nothing of it is kept. */
uint32_t df_execute_content(struct df_work *w, struct df_file *file);

/* The content of an open file, by its handle; 0: it has none. */
uint32_t df_execute_content_of(struct df_work *w, uint64_t handle);

/* Asks the plugin how the file is, and for how long that holds (call.valid_ns): its content is
 * believed for that time. False: it does not say. */
bool df_execute_look(struct df_work *w, struct df_file *file, uint32_t content, struct stat *st);

/* ---- execute_open.c: what an open brings with it ---- */

/* After w->opened has been opened and what the open changes has ended, before it is answered. */
void df_execute_bring(struct df_work *w);

/* The answer to fstat alone, after what the op changes has ended. Copying ends with a call that
 * finds the source's size reached. */
void df_execute_bring_answer(struct df_work *w, uint64_t handle, struct df_file *file);

/* It is closed: was it read? */
void df_execute_judge(struct df_server *server, const struct df_last_file *last);

/* The owner under which a client's POSIX locks stand here. */
static inline uint64_t df_execute_owner(uint32_t client)
{
    return (uint64_t)client << 1 | 1;
}

/* ---- served.c ---- */

/* The place of a mount in the tables, or DF_MOUNT_COUNT. */
unsigned df_server_index(struct df_server *server, int id);

/* The served mount of that id, or NULL. */
struct df_served *df_server_mount(struct df_server *server, int id);

/* How many calls its file systems have had. Any thread. */
uint64_t df_server_calls(const struct df_server *server);

/* ---- ended.c ---- */

/* Something may be over: the control loop is to look. */
void df_server_tell_news(struct df_server *server);

/* The control loop has seen who came and who ended. */
void df_server_seen(struct df_server *server);

/* For a call that is about to be refused for what another process has. True: there were processes
 * that had ended, and what they had is closed now (or hangs): look again. */
bool df_server_see_the_dead(struct df_server *server);

/* The same, for who has waited for somebody who was killed, and until what that one had begun to
 * change is changed: on Linux it would not have ended before. */
void df_server_finish_the_dead(struct df_server *server);

/* The same, and until closes are done that somebody has given up waiting for. */
void df_server_see_the_closed(struct df_server *server);

/* Until nobody closes any more what clients had that are gone, however long that takes. */
void df_server_await_burials(struct df_server *server);

/* ---- unmount.c ---- */

/* A client asks to unmount; lazily: it goes from the table now, and ends with its last file. */
int df_server_unmount(struct df_server *server, int id, bool lazy);

/* A file of the mount was closed: perhaps it was the last. */
void df_server_closed(struct df_server *server);

/* Unmounts those that are ending and have no file any more. */
void df_server_end_unused(struct df_server *server);

/* Unmounts all that are left, the last first; nobody else is there any more. */
void df_server_unmount_at_end(struct df_server *server);

#endif
