/*
 * frame.h - an op under way on this thread: what fuse_get_context() shows, who calls, and what the
 * op needs throughout.
 */
#ifndef DF_HIGHLEVEL_FRAME_H
#define DF_HIGHLEVEL_FRAME_H

#include "core/clock.h"
#include "highlevel/private.h"
#include "host/on_stack.h"

struct df_place;

/* One op of ours on this thread: what fuse_get_context() shows, and what the op needs throughout.
 */
struct df_frame {
    struct df_on_stack stacked; /* first: df_frame_of() */
    struct fuse_context context;
    struct df_highlevel *hl;
    struct df_call *call;
    const struct df_caller *caller;
    uint64_t now;  /* ns of CLOCK_MONOTONIC_COARSE, read when first needed; else 0 */
    uint32_t held; /* nodes of open_paths.h that this thread has read-locked */
    bool writes;   /* this op has some write-locked, or its turn in a directory (name_turn.h) */
    bool in_turn;  /* this op has its turn */
    bool renames;  /* this op has rename_lock */
    bool inside;   /* of another op of the mount on this thread, which has any of these: its plugin
                      has called into its own mount */
    const struct df_open_path *changes; /* whose data_lock this op has */
};

/* The attributes that are kept answer the call. */
static inline bool df_frame_believes(const struct df_frame *frame, const struct df_entry *entry)
{
    return entry->attributes || (DF_UNLIKELY(frame->call->of_content) && entry->lasting);
}

/* Only this lane keeps such records. NULL stays NULL. */
static inline struct df_frame *df_frame_of(struct df_on_stack *record)
{
    return (struct df_frame *)record;
}

static inline struct df_frame *df_frame_outside(const struct df_frame *frame)
{
    return df_frame_of(frame->stacked.outer);
}

/* frame.c: sets `inside` of an op that is not the outermost of its thread. */
void df_frame_look_outside(struct df_frame *frame);

static inline void df_frame_enter(struct df_frame *frame, struct df_highlevel *hl,
                                  struct df_call *call)
{
    const struct df_caller *caller = call->caller;
    const struct df_frame *outer;

    frame->context = (struct fuse_context){
        .fuse = hl->fuse,
        .uid = caller->uid,
        .gid = caller->gid,
        .pid = caller->pid,
        .private_data = hl->private_data,
        .umask = caller->umask,
    };
    frame->hl = hl;
    frame->call = call;
    frame->caller = caller;
    frame->now = 0;
    outer = df_frame_of(df_ops_on_stack);
    frame->held = outer ? outer->held : 0;
    frame->writes = false;
    frame->in_turn = false;
    frame->renames = false;
    frame->inside = false;
    frame->changes = NULL;
    df_on_stack_push(&df_ops_on_stack, &frame->stacked);
    if (DF_UNLIKELY(outer != NULL))
        df_frame_look_outside(frame);
    if (DF_UNLIKELY(hl->serial))
        df_serial_enter(&hl->serial_lock);
}

static inline void df_frame_leave(struct df_frame *frame)
{
    df_on_stack_pop(&df_ops_on_stack, &frame->stacked);
    if (DF_UNLIKELY(frame->hl->serial))
        df_serial_leave(&frame->hl->serial_lock);
}

static inline void df_frame_clock(struct df_frame *frame)
{
    if (!frame->now && frame->hl->caches)
        frame->now = (uint64_t)df_clock_coarse();
}

/* An op further out removes or renames the node, which therefore keeps its path meanwhile. */
static inline bool df_frame_has(const struct df_frame *frame, const struct df_open_path *node)
{
    return DF_UNLIKELY(frame->inside) && df_open_path_is_mine(node);
}

/* Read-locks a node's path, NULL when it is gone; passes by waiting writers when the thread holds
 * another already. */
static inline const char *df_frame_hold(struct df_frame *frame, struct df_open_path *node)
{
    bool alone = frame->held++ == 0;

    if (df_frame_has(frame, node))
        return node->removed ? NULL : node->path;
    return df_open_path_hold(node, alone);
}

static inline void df_frame_unhold(struct df_frame *frame, struct df_open_path *node)
{
    frame->held--;
    if (!df_frame_has(frame, node))
        df_open_path_unhold(node);
}

/* It has read-locked nodes itself. */
static inline bool df_frame_holds(const struct df_frame *frame)
{
    const struct df_frame *outer = df_frame_outside(frame);

    return frame->held != (outer ? outer->held : 0);
}

/* How the op may wait for a path. */
static inline enum df_path_waiter df_frame_waiter(const struct df_frame *frame)
{
    if (DF_UNLIKELY(frame->inside))
        return DF_PATH_INSIDE;
    return df_frame_holds(frame) ? DF_PATH_HOLDS : DF_PATH_ALONE;
}

/* It may wait until nobody holds a path: it holds none, nor does an op further out. */
static inline bool df_frame_may_wait(const struct df_frame *frame)
{
    return df_frame_waiter(frame) == DF_PATH_ALONE;
}

/* Waits for the data_lock of a node: 0, or -EDEADLK where an op further out has it. */
int df_frame_await_data(struct df_frame *frame, struct df_open_path *node);

static inline int df_frame_lock_data(struct df_frame *frame, struct df_open_path *node)
{
    if (DF_UNLIKELY(pthread_mutex_trylock(&node->data_lock) != 0)) {
        int result = df_frame_await_data(frame, node);

        if (result)
            return result;
    }
    frame->changes = node;
    return 0;
}

static inline void df_frame_unlock_data(struct df_frame *frame, struct df_open_path *node)
{
    frame->changes = NULL;
    pthread_mutex_unlock(&node->data_lock);
}

/* -EACCES for those whom the kernel keeps out of a mount without allow_other. */
static inline int df_frame_admit(const struct df_frame *frame)
{
    const struct df_highlevel *hl = frame->hl;
    const struct df_caller *caller = frame->caller;

    if (hl->everybody ||
        (caller->uid == hl->session->owner_uid && caller->gid == hl->session->owner_gid) ||
        (hl->root_too && caller->uid == 0))
        return 0;
    return -EACCES;
}

/* The mode bits are ours to check for this caller. */
static inline bool df_frame_checks(const struct df_frame *frame)
{
    return frame->hl->check && !frame->caller->capable;
}

/* Names need not be looked at before the plugin makes, removes or moves them for this caller. */
static inline bool df_frame_goes_unseen(const struct df_frame *frame)
{
    return frame->hl->checks_names && !df_frame_checks(frame);
}

static inline uint64_t df_frame_until(const struct df_frame *frame, uint64_t timeout)
{
    if (timeout == 0)
        return 0;
    return timeout == DF_ENTRY_FOREVER ? timeout : frame->now + timeout;
}

/* The mode of an object that the caller makes. */
static inline mode_t df_frame_mode(const struct df_frame *frame, mode_t mode)
{
    return frame->hl->want & FUSE_CAP_DONT_MASK ? mode : mode & ~frame->caller->umask;
}

/* Takes setuid and setgid from what somebody else than root writes to or truncates, unless the
 * plugin does (FUSE_CAP_HANDLE_KILLPRIV). */
static inline bool df_frame_strips(const struct df_frame *frame)
{
    return !frame->caller->capable && !(frame->hl->want & FUSE_CAP_HANDLE_KILLPRIV);
}

/*
 * An op that walks, done once more after ESTALE with nothing believed, as the kernel's
 * retry_estale() does.
 */
#define DF_RETRY_STALE(hl, expression)                                                             \
    ({                                                                                             \
        __typeof__(expression) result_;                                                            \
        for (int try_ = 0;; try_++) {                                                              \
            result_ = (expression);                                                                \
            if (DF_LIKELY(result_ != -ESTALE) || try_ == 1)                                        \
                break;                                                                             \
            df_entry_cache_flush(&(hl)->cache);                                                    \
        }                                                                                          \
        result_;                                                                                   \
    })

/* A whole op that walks: `expression` in a frame of its own, which it calls `frame`. */
#define DF_IN_FRAME(fs, call, expression)                                                          \
    ({                                                                                             \
        struct df_frame frame;                                                                     \
        df_frame_enter(&frame, df_highlevel_of(fs), call);                                         \
        __auto_type outcome_ = DF_RETRY_STALE(frame.hl, expression);                               \
        df_frame_leave(&frame);                                                                    \
        outcome_;                                                                                  \
    })
/* ---- whose turn it is: frame.c ---- */

/* Waits until no other operation changes names, looks them up or lists them in the directory of
 * `place`, or in those with the given keys, until df_frame_turn_over(). Takes nothing where nobody
 * needs it: see above, and inside of another operation on the same mount. */
void df_frame_turn(struct df_frame *frame, struct df_name_turn *turn, const struct df_place *place);
void df_frame_turn_of(struct df_frame *frame, struct df_name_turn *turn,
                      const struct df_path_hash *directories, int count);

/* The same of one directory for a lookup or a listing: beside others of these if the plugin wants
 * that. */
void df_frame_turn_to_look(struct df_frame *frame, struct df_name_turn *turn,
                           struct df_path_hash directory);

void df_frame_turn_over(struct df_frame *frame, struct df_name_turn *turn);

/* Whether these take anything, for who would rather not make the keys. */
bool df_frame_takes_turns(const struct df_frame *frame);

/* ---- rename_lock (paths/open_paths.h): frame.c ---- */

/* Waits for it: 0; or -EDEADLK, `inside`: a rename is under way that may wait for this thread, or
 * is its own. */
int df_frame_lock_renames(struct df_frame *frame);
void df_frame_unlock_renames(struct df_frame *frame);

/* ---- what is told of changes ---- */

#define DF_PATHS_STILL UINT64_MAX /* df_changes.mark; else how many renames had ended */

/* An op that changes names begins: in which directories is told to who wants to know
 * (core/changes.h). `still`: under rename_lock, so that paths stay where they are meanwhile. */
static inline void df_frame_tells(const struct df_frame *frame, bool still)
{
    struct df_changes *changes = frame->call->changes;

    if (DF_LIKELY(!changes))
        return;
    changes->listings = true;
    changes->mark = still ? DF_PATHS_STILL : atomic_load(&frame->hl->open_paths.renames);
}

/* This one's listing changes, too: it is removed, or moved. */
static inline void df_frame_tell_node(const struct df_frame *frame, const struct df_open_path *node)
{
    if (DF_UNLIKELY(frame->call->changes))
        df_changes_directory(frame->call->changes, node->serial);
}

#endif
