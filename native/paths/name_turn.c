/*
 * name_turn.c - taking the locks of one to three directories in one order.
 */
#include "paths/name_turn.h"

/* Keeps the numbers ascending and each once. */
static void insert(struct df_name_turn *turn, uint8_t number)
{
    int at = turn->count;

    while (at > 0 && turn->numbers[at - 1] > number)
        at--;
    if (at > 0 && turn->numbers[at - 1] == number)
        return;
    for (int i = turn->count++; i > at; i--)
        turn->numbers[i] = turn->numbers[i - 1];
    turn->numbers[at] = number;
}

/* Who shares holds no other turn, so it may let those go first who wait for theirs. */
static void lock(struct df_path_lock *lock, enum df_name_turn_kind kind)
{
    if (kind == DF_NAME_TURN_SHARE)
        df_path_lock_read(lock, true);
    else if (!df_path_lock_try_write(lock))
        df_path_lock_write(lock);
}

void df_name_turn_begin(struct df_name_turns *turns, struct df_name_turn *turn,
                        enum df_name_turn_kind kind, const struct df_path_hash *directories,
                        int count)
{
    turn->kind = (uint8_t)kind;
    turn->count = 0;
    for (int i = 0; i < count; i++)
        insert(turn, (uint8_t)(directories[i].low % DF_NAME_TURNS));
    for (int i = 0; i < turn->count; i++)
        lock(&turns->of[turn->numbers[i]].lock, kind);
}

void df_name_turn_end(struct df_name_turns *turns, struct df_name_turn *turn)
{
    while (turn->count) {
        uint8_t number = turn->numbers[--turn->count];
        if (turn->kind == DF_NAME_TURN_CHANGE)
            atomic_fetch_add(&turns->of[number].changes, 1);
        if (turn->kind == DF_NAME_TURN_SHARE)
            df_path_lock_end_read(&turns->of[number].lock);
        else
            df_path_lock_end_write(&turns->of[number].lock);
    }
}
