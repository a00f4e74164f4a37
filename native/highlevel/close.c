/*
 * close.c - flush and release: what a close asks of the plugin.
 */
#include <fcntl.h>
#include <unistd.h>

#include "highlevel/open.h"
#include "host/pollhandle.h"

static int flush(struct df_frame *frame, struct df_file *file, uint64_t owner)
{
    struct df_highlevel *hl = frame->hl;
    bool locks = hl->ops.lock && hl->want & FUSE_CAP_POSIX_LOCKS;
    struct flock all = {.l_type = F_UNLCK, .l_whence = SEEK_SET};
    union df_file_info fi;
    int result = 0;

    df_handle_info(frame, file, &fi);
    fi.info.flush = 1;
    fi.info.lock_owner = owner;
    const char *path = df_handle_hold(frame, file);
    bool lost = df_handle_lost(frame, path);
    if (lost)
        result = -ENOENT;
    else if (hl->ops.flush && !df_highlevel_lacks(hl, DF_MISSING_FLUSH)) {
        union df_file_info copy = fi;
        result = df_answer_error(hl->ops.flush(path, &copy.info));
        if (result == -ENOSYS) {
            df_highlevel_miss(hl, DF_MISSING_FLUSH);
            result = 0;
        }
    }
    if (locks && !lost)
        hl->ops.lock(path, &fi.info, F_SETLK, &all);
    df_handle_unhold(frame, file);
    return result;
}

int df_highlevel_flush(struct df_fs *fs, struct df_call *call, struct df_file *file, uint64_t owner)
{
    struct df_frame frame;

    if (file->kind != DF_KIND_REGULAR || df_handle_of(file)->bits & DF_HANDLE_PATH)
        return 0;
    df_frame_enter(&frame, df_highlevel_of(fs), call);
    int result = flush(&frame, file, owner);
    df_frame_leave(&frame);
    return result;
}

static void end_attachment(struct df_file *file)
{
    if (file->kind == DF_KIND_DIRECTORY)
        df_highlevel_end_dirstream(file);
    else
        df_pollnode_release(atomic_load(&df_handle_of(file)->attachment));
}

/* The last of a hidden file was closed: now it goes. */
static void unlink_hidden(struct df_frame *frame, struct df_open_path *node)
{
    struct df_entry_cache *cache = &frame->hl->cache;
    const char *path = df_frame_hold(frame, node);

    if (path && df_open_path_is_hidden(node) && frame->hl->ops.unlink) {
        frame->hl->ops.unlink(path);
        df_entry_cache_forget(cache, df_open_path_key(node));
        df_call_tell_change(); /* a name is gone with a close */
    }
    df_frame_unhold(frame, node);
}

static DF_FLAT void release(struct df_frame *frame, struct df_file *file)
{
    struct df_handle *handle = df_handle_of(file);
    union df_file_info fi;

    if (handle->bits & DF_HANDLE_RELEASE) {
        df_handle_info(frame, file, &fi);
        fi.info.flock_release = !!(handle->bits & DF_HANDLE_FLOCKED);
        fi.info.lock_owner = atomic_load(&handle->flock_owner); /* 0, as the kernel's, without */
        const char *path = df_handle_hold(frame, file);
        df_highlevel_release_handle(frame->hl, path, file->kind == DF_KIND_DIRECTORY, &fi.info);
        df_handle_unhold(frame, file);
    }
    end_attachment(file);
    if (handle->bits & DF_HANDLE_COUNTED && df_open_path_closed(handle->node))
        unlink_hidden(frame, handle->node);
    /* Only a mount server keeps bytes beyond the last close. */
    if (file->counted && atomic_load(&frame->hl->open_paths.keeps))
        df_open_paths_keep(&frame->hl->open_paths, handle->node);
    else
        df_open_paths_put(&frame->hl->open_paths, handle->node);
}

void df_highlevel_release(struct df_fs *fs, struct df_call *call, struct df_file *file)
{
    struct df_frame frame;

    df_frame_enter(&frame, df_highlevel_of(fs), call);
    release(&frame, file);
    df_frame_leave(&frame);
}
