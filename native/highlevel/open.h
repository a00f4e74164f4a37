/*
 * open.h - what opening (open.c), creating (create.c) and closing (close.c) a file have in common.
 */
#ifndef DF_HIGHLEVEL_OPEN_H
#define DF_HIGHLEVEL_OPEN_H

#include "highlevel/walk.h"

#define DF_COME_AGAIN (-5100) /* no answer of a plugin: begin with the name again */

/* Adds bits before anybody else knows the handle. */
static inline void df_handle_add_bits(struct df_handle *handle, uint32_t bits)
{
    bits |= atomic_load_explicit(&handle->bits, memory_order_relaxed);
    atomic_store_explicit(&handle->bits, bits, memory_order_relaxed);
}

/* The node of the place's path for the handle, read-locked until df_highlevel_leave_node(). */
static inline int df_highlevel_enter_node(struct df_frame *frame, const struct df_place *place,
                                          struct df_handle *handle)
{
    return df_open_paths_enter(&frame->hl->open_paths, place->path, place->len, place->key,
                               df_frame_waiter(frame), place->held, &handle->node);
}

/* The handle keeps its node only if the open has succeeded. */
static inline int df_highlevel_leave_node(struct df_frame *frame, struct df_handle *handle,
                                          int result)
{
    df_frame_unhold(frame, handle->node);
    if (result) {
        df_open_paths_put(&frame->hl->open_paths, handle->node);
        memset(handle, 0, sizeof(*handle));
    }
    return result;
}

/* Takes over what the plugin said about the open file. */
void df_highlevel_settle(struct df_frame *frame, const struct df_place *place, struct df_file *file,
                         const struct fuse_file_info *fi);

/* open or opendir of what was made a moment ago, and needs no check; under the node's read lock. */
int df_highlevel_open_made(struct df_frame *frame, struct df_place *place, struct df_file *file,
                           int flags);

/* O_CREAT where there is nothing. DF_COME_AGAIN: perhaps that is no longer so. `unseen`: nobody has
 * looked. */
__attribute__((noinline)) int df_highlevel_create(struct df_frame *frame, struct df_place *place,
                                                  struct df_file *file, int flags, mode_t mode,
                                                  bool unseen);

/* The same without a look: what is there already, of whatever type, is EEXIST. */
__attribute__((noinline)) int df_highlevel_create_unseen(struct df_frame *frame,
                                                         const struct df_where *where,
                                                         struct df_file *file, int flags,
                                                         mode_t mode);

/* The plugin's release or releasedir. */
static DF_FLAT int df_highlevel_release_handle(struct df_highlevel *hl, const char *path,
                                               bool directory, struct fuse_file_info *fi)
{
    int (*op)(const char *, struct fuse_file_info *) =
        directory ? hl->ops.releasedir : hl->ops.release;
    return op ? op(path, fi) : 0;
}

#endif
