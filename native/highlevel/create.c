/*
 * create.c - open with O_CREAT of what is not there: the plugin's create, or its mknod and open.
 */
#include <fcntl.h>

#include "highlevel/open.h"

/* A name that the plugin's create has made: a regular file, or the answer is EIO. `unseen`: it
 * vouches for that. */
static int learn_created(struct df_frame *frame, struct df_place *place, mode_t mode, bool unseen,
                         const struct fuse_file_info *fi)
{
    if (unseen) {
        place->entry.mode = mode;
        place->entry.ino = 0;
        df_place_made(frame, place, mode, 0, df_frame_until(frame, frame->hl->entry_ns));
        return 0;
    }
    union df_file_info copy = {.info = *fi};
    int result = df_walk_learn(frame, place, &copy.info);
    return result == 0 && !S_ISREG(place->entry.mode) ? -EIO : result;
}

/* The plugin's create. */
static int create_node(struct df_frame *frame, struct df_place *place, struct df_file *file,
                       int flags, mode_t mode, bool unseen)
{
    struct df_highlevel *hl = frame->hl;
    struct df_handle *handle = df_handle_of(file);
    union df_file_info fi;

    memset(&fi, 0, sizeof(fi));
    fi.info.flags = flags & ~O_NOCTTY;
    int result = df_answer_error(hl->ops.create(place->path, mode, &fi.info));
    if (result)
        return result;
    handle->fh = fi.info.fh;
    handle->flags = flags & ~(O_CREAT | O_EXCL | O_NOCTTY | O_TRUNC);
    df_handle_add_bits(handle, DF_HANDLE_PLUGIN | DF_HANDLE_RELEASE);
    result = learn_created(frame, place, mode, unseen, &fi.info);
    if (result) {
        df_highlevel_release_handle(hl, place->path, false, &fi.info);
        return result;
    }
    file->kind = DF_KIND_REGULAR;
    df_highlevel_settle(frame, place, file, &fi.info);
    return 0;
}

static int make_closed(struct df_frame *frame, struct df_place *place, mode_t mode)
{
    struct df_highlevel *hl = frame->hl;
    int result = hl->ops.mknod ? df_answer_error(hl->ops.mknod(place->path, mode, 0)) : -ENOSYS;

    if (result == 0)
        result = df_walk_learn(frame, place, NULL);
    return result == 0 && !S_ISREG(place->entry.mode) ? -EIO : result;
}

/* In the turn of the directory. Somebody else may have made the name after it was looked at, or
 * removed the directory. */
static int look_again(struct df_frame *frame, struct df_place *place)
{
    if (place->changes ==
        df_name_turn_changes(&frame->hl->turns, df_place_parent_key(frame, place)))
        return 0;
    if (place->removed != df_name_turn_removed(&frame->hl->turns))
        return DF_COME_AGAIN;
    int result = df_walk_look(frame, place, false);
    return result == 0 && place->entry.kind == DF_ENTRY_PRESENT ? DF_COME_AGAIN : result;
}

/* *closed: it is made, and to be opened still. */
static int create_in_turn(struct df_frame *frame, struct df_place *place, struct df_file *file,
                          int flags, mode_t mode, bool unseen, bool *closed)
{
    struct df_highlevel *hl = frame->hl;
    struct df_name_turn turn;

    df_frame_turn(frame, &turn, place);
    int result = turn.count ? look_again(frame, place) : 0;
    bool tries = result == 0 && hl->ops.create && !df_highlevel_lacks(hl, DF_MISSING_CREATE);
    if (tries) {
        result = create_node(frame, place, file, flags, mode, unseen);
        if (result == -ENOSYS)
            df_highlevel_miss(hl, DF_MISSING_CREATE);
    }
    *closed = tries ? result == -ENOSYS : result == 0;
    if (*closed)
        result = make_closed(frame, place, mode);
    df_frame_turn_over(frame, &turn);
    return result;
}

int df_highlevel_create(struct df_frame *frame, struct df_place *place, struct df_file *file,
                        int flags, mode_t mode, bool unseen)
{
    struct df_handle *handle = df_handle_of(file);
    bool closed;
    int result = flags & O_DIRECTORY ? -EINVAL : df_walk_may_create(frame, place);

    if (result == 0) {
        df_open_paths_forget(&frame->hl->open_paths, place->path, place->len, place->key);
        result = df_highlevel_enter_node(frame, place, handle);
    }
    if (result)
        return result;
    mode = S_IFREG | (df_frame_mode(frame, mode) & 07777);
    result = create_in_turn(frame, place, file, flags, mode, unseen, &closed);
    if (result == 0 && closed)
        result = df_highlevel_open_made(frame, place, file, flags & ~(O_CREAT | O_EXCL | O_TRUNC));
    return df_highlevel_leave_node(frame, handle, result);
}

int df_highlevel_create_unseen(struct df_frame *frame, const struct df_where *where,
                               struct df_file *file, int flags, mode_t mode)
{
    struct df_place place;
    int result = df_walk(frame, where, DF_WALK_PARENT, &place, NULL);

    if (result == 0 && place.special)
        result = -EEXIST;
    if (result == 0) {
        df_walk_recall(frame, &place);
        if (!(flags & O_EXCL) && place.entry.kind == DF_ENTRY_PRESENT)
            result = -EEXIST;
        else
            result = df_highlevel_create(frame, &place, file, flags | O_EXCL, mode, true);
    }
    df_walk_end(frame, &place);
    return result;
}
