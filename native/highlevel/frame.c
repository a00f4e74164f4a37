/*
 * frame.c - what an op waits for, unless its thread is in another op of the mount: its turn in a
 * directory (paths/name_turn.h) and the lock of renames (paths/open_paths.h).
 */
#include "highlevel/place.h"

/* The op whose plugin has called into its own mount, so that `frame` came to be; NULL: none has. */
static const struct df_frame *outer_of_mount(const struct df_frame *frame)
{
    const struct df_frame *outer = df_frame_outside(frame);

    while (outer && outer->hl != frame->hl)
        outer = df_frame_outside(outer);
    return outer;
}

bool df_frame_takes_turns(const struct df_frame *frame)
{
    return !frame->in_turn && df_highlevel_takes_turns(frame->hl) && !outer_of_mount(frame);
}

void df_frame_look_outside(struct df_frame *frame)
{
    const struct df_frame *outer = outer_of_mount(frame);

    frame->inside = outer && (outer->inside || df_frame_holds(outer) || outer->writes ||
                              outer->renames || outer->changes);
}

int df_frame_await_data(struct df_frame *frame, struct df_open_path *node)
{
    const struct df_frame *outer = frame;

    while ((outer = outer_of_mount(outer)))
        if (outer->changes == node)
            return -EDEADLK;
    pthread_mutex_lock(&node->data_lock);
    return 0;
}

int df_frame_lock_renames(struct df_frame *frame)
{
    pthread_mutex_t *lock = &frame->hl->open_paths.rename_lock;

    if (!frame->inside)
        pthread_mutex_lock(lock);
    else if (pthread_mutex_trylock(lock) != 0)
        return -EDEADLK;
    frame->renames = true;
    return 0;
}

void df_frame_unlock_renames(struct df_frame *frame)
{
    frame->renames = false;
    pthread_mutex_unlock(&frame->hl->open_paths.rename_lock);
}

static void take_turn(struct df_frame *frame, struct df_name_turn *turn,
                      enum df_name_turn_kind kind, const struct df_path_hash *directories,
                      int count)
{
    turn->count = 0;
    if (!df_frame_takes_turns(frame))
        return;
    df_name_turn_begin(&frame->hl->turns, turn, kind, directories, count);
    turn->wrote = frame->writes;
    frame->writes = true;
    frame->in_turn = true;
}

void df_frame_turn_of(struct df_frame *frame, struct df_name_turn *turn,
                      const struct df_path_hash *directories, int count)
{
    take_turn(frame, turn, DF_NAME_TURN_CHANGE, directories, count);
}

void df_frame_turn(struct df_frame *frame, struct df_name_turn *turn, const struct df_place *place)
{
    struct df_path_hash directory = df_place_parent_key(frame, place);

    df_frame_turn_of(frame, turn, &directory, 1);
}

void df_frame_turn_to_look(struct df_frame *frame, struct df_name_turn *turn,
                           struct df_path_hash directory)
{
    bool parallel = frame->hl->want & FUSE_CAP_PARALLEL_DIROPS;

    take_turn(frame, turn, parallel ? DF_NAME_TURN_SHARE : DF_NAME_TURN_LOOK, &directory, 1);
}

void df_frame_turn_over(struct df_frame *frame, struct df_name_turn *turn)
{
    if (turn->count == 0)
        return;
    frame->writes = turn->wrote;
    frame->in_turn = false;
    df_name_turn_end(&frame->hl->turns, turn);
}
