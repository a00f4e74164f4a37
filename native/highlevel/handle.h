/*
 * handle.h - an open file of the path lane: what is kept of it in df_file.host[].
 */
#ifndef DF_HIGHLEVEL_HANDLE_H
#define DF_HIGHLEVEL_HANDLE_H

#include <fcntl.h>

#include "highlevel/frame.h"

enum {
    DF_HANDLE_PLUGIN = 1 << 0,  /* the plugin's open, create or opendir has made it */
    DF_HANDLE_RELEASE = 1 << 1, /* release or releasedir is due: not after ENOSYS or with O_PATH */
    DF_HANDLE_COUNTED = 1 << 2, /* is in its node's `opens` */
    DF_HANDLE_PATH = 1 << 3,    /* O_PATH: names an object, no more */
    DF_HANDLE_FLOCKED = 1 << 4, /* flock(2) was handed to the plugin */
    DF_HANDLE_STRIPS = 1 << 5,  /* the first write takes setuid and setgid away */
};

/* Laid over the host words of a df_file; zero before open. */
struct df_handle {
    uint64_t fh; /* the plugin's */
    struct df_open_path *node;
    _Atomic uint32_t bits;        /* DF_HANDLE_*; the last two change while it is open */
    int32_t flags;                /* as the plugin saw them in open */
    _Atomic off_t vouched;        /* a size that getattr told since it was opened; 0: none yet */
    _Atomic(void *) attachment;   /* struct df_dirstream or df_pollnode, made when needed */
    _Atomic uint64_t flock_owner; /* of flock(2), with DF_HANDLE_FLOCKED */
};

_Static_assert(sizeof(struct df_handle) <= DF_FILE_HOST_WORDS * sizeof(uint64_t), "fits");

static inline struct df_handle *df_handle_of(struct df_file *file)
{
    return (struct df_handle *)file->host;
}

/* A program built with the longer structure may write all of it. */
union df_file_info {
    struct fuse_file_info info;
    char room[DF_FILE_INFO_4];
};

/* Status flags that fcntl(2) can change: the open file description has the present ones. */
#define DF_SETTABLE_FLAGS (O_APPEND | O_NONBLOCK | O_DIRECT | O_NOATIME | O_ASYNC)

/* A copy for one operation: what the plugin writes into it is forgotten. */
static inline void df_handle_info(const struct df_frame *frame, struct df_file *file,
                                  union df_file_info *fi)
{
    const struct df_handle *handle = df_handle_of(file);
    int flags = atomic_load_explicit(&file->flags, memory_order_relaxed);

    memset(fi, 0, sizeof(*fi));
    fi->info.flags = (handle->flags & ~DF_SETTABLE_FLAGS) | (flags & DF_SETTABLE_FLAGS);
    fi->info.fh = handle->fh;
    fi->info.lock_owner = frame->caller->lock_owner;
}

/* The path to tell the plugin beside a handle: NULL with nullpath_ok or when it is gone. Ended by
 * df_handle_unhold(). */
static inline const char *df_handle_hold(struct df_frame *frame, struct df_file *file)
{
    if (frame->hl->config.nullpath_ok)
        return NULL;
    return df_frame_hold(frame, df_handle_of(file)->node);
}

static inline void df_handle_unhold(struct df_frame *frame, struct df_file *file)
{
    if (!frame->hl->config.nullpath_ok)
        df_frame_unhold(frame, df_handle_of(file)->node);
}

/* A file may be without a path, as after a removal with hard_remove. libfuse 3 calls what takes a
 * handle with NULL then; libfuse 2 only where the program says that it bears that. */
static inline bool df_handle_lost(const struct df_frame *frame, const char *path)
{
    return DF_UNLIKELY(!path) && !frame->hl->bears_null && frame->hl->needs_paths;
}

/* df_highlevel_stat_file() could not ask about such a file: getattr is called with NULL only where
 * the program bears it. What goes by the answer goes on without. */
static inline bool df_handle_is_mute(const struct df_frame *frame, struct df_file *file, int result)
{
    return result == -ENOENT && !frame->hl->bears_null &&
           atomic_load(&df_handle_of(file)->node->removed);
}

/* The same for chmod, chown and utimens, which in FUSE 2 take no handle: then `by_path` is true. */
static inline const char *df_handle_hold_to_set(struct df_frame *frame, struct df_file *file,
                                                bool by_path)
{
    if (frame->hl->config.nullpath_ok && !by_path)
        return NULL;
    return df_frame_hold(frame, df_handle_of(file)->node);
}

static inline void df_handle_unhold_to_set(struct df_frame *frame, struct df_file *file,
                                           bool by_path)
{
    if (!frame->hl->config.nullpath_ok || by_path)
        df_frame_unhold(frame, df_handle_of(file)->node);
}

/* An open file has changed: its cached attributes are void. */
static inline void df_handle_changed(const struct df_frame *frame, struct df_file *file)
{
    if (frame->hl->attr_ns)
        df_entry_cache_forget_attributes(&frame->hl->cache,
                                         df_open_path_key(df_handle_of(file)->node));
}
/* Attributes of an open file through its handle. */
int df_highlevel_stat_file(struct df_frame *frame, struct df_file *file, struct stat *st);

/* The size of an open file that is believed for its time, without asking the plugin; a read that
 * has aged the file's times has not changed it. False: none is. */
bool df_highlevel_kept_size(struct df_frame *frame, struct df_file *file, off_t *size);

/* Frees what readdir has kept of an open directory. */
void df_highlevel_end_dirstream(struct df_file *file);

#endif
