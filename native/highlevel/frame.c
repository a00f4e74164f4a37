/*
 * frame.c - the turn of an op in a directory (paths/name_turn.h).
 */
#include "highlevel/place.h"

bool df_frame_takes_turns(const struct df_frame *frame)
{
    if (frame->in_turn || !df_highlevel_takes_turns(frame->hl))
        return false;
    for (const struct df_frame *outer = df_frame_outside(frame); outer;
         outer = df_frame_outside(outer))
        if (outer->hl == frame->hl)
            return false;
    return true;
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
