/*
 * call.h - one POSIX-like call in flight. Lives on the caller's stack; belongs to its thread.
 */
#ifndef DF_CORE_CALL_H
#define DF_CORE_CALL_H

#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>

#include "core/changes.h"
#include "core/export.h"
#include "core/file.h"
#include "core/ops.h"

#define DF_LINKS_MAX 40 /* symlinks in one call before ELOOP: MAXSYMLINKS of the kernel */

/* On whose behalf the call is made: what fuse_get_context() shows, what permissions are checked
 * against. See caller.h for where it comes from. */
struct df_caller {
    uid_t uid; /* file system ids */
    gid_t gid;
    pid_t pid;
    mode_t umask;
    uint32_t group_count;
    const gid_t *groups; /* supplementary groups */
    uint64_t lock_owner; /* owner of its POSIX locks */
    union {
        struct {
            bool capable; /* root's override of permission checks (CAP_DAC_OVERRIDE, CAP_FOWNER) */
            bool overrides_own; /* a namespace's root: over files of its own user and group */
        };
        uint16_t rights; /* both */
    };
    off_t size_limit; /* RLIMIT_FSIZE, bytes; INT64_MAX: none */
    uid_t real_uid;   /* access(2) asks for these, not for the file system ids */
    gid_t real_gid;
};

/* Where a write goes. */
enum df_placing {
    DF_PLACED_BY_FLAGS, /* to the end of the file if its flags have O_APPEND, else to its offset */
    DF_PLACED_LAST,     /* to the end, whatever they say: RWF_APPEND */
    DF_PLACED_THERE,    /* to its offset: RWF_NOAPPEND, and bytes that were kept */
};

struct df_call {
    struct df_mount *mount;         /* whose op runs; pinned by the gate */
    struct df_thread *thread;       /* record of the thread that made the call (gate.h) */
    const struct df_caller *caller; /* valid for the length of the call */
    uint32_t links;        /* symlinks of the path followed before this op, over all mounts; after
                              DF_LEAVE: of the path that left, by now */
    uint32_t second_links; /* the same of the second path of rename and link */
    bool leave_second;     /* rename, link: it was the second path that left */
    _Atomic uint32_t
        state;          /* completion word: 0 running, 1 complete, 2 a thread sleeps; starts at 0 */
    ssize_t result;     /* valid once complete; written before `state` */
    bool writes_back;   /* write: bytes that were kept */
    bool asks_validity; /* getattr: somebody would repeat the answer to others */
    bool of_content;    /* getattr: size and modification time alone count; a read leaves these */
    uint8_t placing;    /* write: enum df_placing */
    bool untold;        /* poll, out: the file system cannot tell, of no file, now and later */
    uint64_t valid_ns; /* then: for how long the plugin allows that, also of -ENOENT; 0: not at all;
                          UINT64_MAX: until something changes */
    uint32_t absent; /* and of -ENOENT: df_changes_name() of the name, if only that is missing, in a
                        directory that is there; 0: it is not known what is missing */
    struct df_changes *changes; /* names, owners, modes: where to tell what the op changes; all zero
                                   at first. NULL: nobody wants to know */
    char leave[PATH_MAX];       /* absolute path to go on with after DF_LEAVE; uninitialised */
};

/* Whether a write goes to the end of the file, whose flags these are. */
static inline bool df_call_appends(const struct df_call *call, int flags)
{
    if (DF_LIKELY(call->placing == DF_PLACED_BY_FLAGS))
        return flags & O_APPEND;
    return call->placing == DF_PLACED_LAST;
}

/*
 * For a host whose walk leaves the mount: goes on at `target` (absolute) with `rest` (what remains
 * of the name, may be empty) behind it. Counts one link when `link`; returns DF_LEAVE, -ELOOP or
 * -ENAMETOOLONG.
 */
int df_call_leave(struct df_call *call, const char *target, size_t target_len, const char *rest,
                  bool link);

/* ".." above the root of the mount: goes on at the mountpoint's parent with `rest`. */
int df_call_leave_up(struct df_call *call, const char *rest);

/* Rename and link, around the walk of the second path: each path may follow DF_LINKS_MAX links. */
static inline void df_call_begin_second(struct df_call *call)
{
    uint32_t links = call->links;

    call->links = call->second_links;
    call->second_links = links;
}

/* `result` is the walk's, and is returned. */
static inline ssize_t df_call_end_second(struct df_call *call, ssize_t result)
{
    if (__builtin_expect(result == DF_LEAVE, 0))
        call->leave_second = true;
    else
        df_call_begin_second(call);
    return result;
}

/* Set by who repeats answers of getattr (native/server), told by hosts: the plugin has notified
 * that something is no longer as it said. Any thread. NULL: nobody listens. */
extern _Atomic(void (*)(void)) df_call_listener;

/* Set, before it mounts, by a process that will keep writes of its file systems (native/server):
 * hosts may offer FUSE_CAP_WRITEBACK_CACHE. */
extern _Atomic bool df_call_keeps_writes;

/* Which plugins' words are for standard error, too; set by mount servers (docs/decisions/117). */
enum df_heard {
    DF_HEARD_NONE,
    DF_HEARD_FOREGROUND, /* of those that were told to stay in the foreground (-f, -d) */
    DF_HEARD_ALL,
};
extern _Atomic(enum df_heard) df_heard;

static inline void df_call_tell_change(void)
{
    void (*listener)(void) = atomic_load_explicit(&df_call_listener, memory_order_acquire);

    if (listener)
        listener();
}

/* Set by who makes calls for other processes (native/server): until it is called with NULL, signals
 * of the process whose call the calling thread is in are told; at once if there was one already.
 * Once or more often, from any thread, but not after the call with NULL. NULL: the thread's signals
 * are its caller's. */
typedef void df_call_tell(void *data);
extern _Atomic(void (*)(df_call_tell *tell, void *data)) df_call_signals;

static inline void df_call_hear_signals(df_call_tell *tell, void *data)
{
    void (*hear)(df_call_tell *, void *) =
        atomic_load_explicit(&df_call_signals, memory_order_acquire);

    if (hear)
        hear(tell, data);
}

/* Ends a call whose op returned DF_PENDING. Any thread, exactly once. */
void df_call_complete(struct df_call *call, ssize_t result);

/* Sleeps until df_call_complete(); returns its result. Not interrupted by signals: the op's own
 * host decides what a signal means. */
DF_COLD ssize_t df_call_wait(struct df_call *call);

/* The result of an op, whether it came at once or late. */
static inline ssize_t df_call_result(struct df_call *call, ssize_t result)
{
    return __builtin_expect(result == DF_PENDING, 0) ? df_call_wait(call) : result;
}

/* Before file->ino is used: asks for it by getattr if the host left it out of open. 0, or what
 * getattr says. */
static inline int df_call_know_ino(struct df_call *call, struct df_file *file)
{
    const struct df_where itself = {.base = file, .name = ""};
    struct stat st;
    ssize_t ret;

    if (DF_LIKELY(atomic_load_explicit(&file->ino, memory_order_relaxed) != 0))
        return 0;
    ret = df_call_result(call, file->fs->ops->getattr(file->fs, call, &itself, &st));
    if (ret == 0)
        atomic_store_explicit(&file->ino, st.st_ino, memory_order_relaxed);
    return (int)ret;
}

#endif
