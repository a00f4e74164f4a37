/*
 * name_turn.c - taking the locks of one to three directories in one order.
 */
#include "paths/name_turn.h"

#include <string.h>

void df_name_turns_init(struct df_name_turns *turns)
{
    for (int i = 0; i < DF_NAME_TURNS; i++)
        pthread_mutex_init(&turns->of[i].lock, NULL);
}

void df_name_turns_destroy(struct df_name_turns *turns)
{
    for (int i = 0; i < DF_NAME_TURNS; i++)
        pthread_mutex_destroy(&turns->of[i].lock);
}

/* Keeps the numbers ascending and each once. */
static void insert(struct df_name_turn *turn, uint8_t number)
{
    int at = 0;

    while (at < turn->count && turn->numbers[at] < number)
        at++;
    if (at < turn->count && turn->numbers[at] == number)
        return;
    memmove(turn->numbers + at + 1, turn->numbers + at, (size_t)(turn->count - at));
    turn->numbers[at] = number;
    turn->count++;
}

void df_name_turn_begin(struct df_name_turns *turns, struct df_name_turn *turn,
                        const struct df_path_hash *directories, int count)
{
    turn->count = 0;
    for (int i = 0; i < count; i++)
        insert(turn, (uint8_t)(directories[i].low % DF_NAME_TURNS));
    for (int i = 0; i < turn->count; i++)
        pthread_mutex_lock(&turns->of[turn->numbers[i]].lock);
}

void df_name_turn_end(struct df_name_turns *turns, struct df_name_turn *turn)
{
    while (turn->count) {
        uint8_t number = turn->numbers[--turn->count];
        atomic_fetch_add(&turns->of[number].changes, 1);
        pthread_mutex_unlock(&turns->of[number].lock);
    }
}
