/*
 * control_offers.c - clients that nobody is yet, offered in the segment: who starts there takes one
 * without waiting for an answer (decision 069).
 */
#include "server/control_private.h"

static _Atomic uint32_t *offer_at(const struct df_control *c, uint32_t place)
{
    return &c->server->own.segment->offers[place];
}

/* Not where the server may be started again: the next one would not know who has taken what. */
void df_control_offer(struct df_control *c)
{
    for (uint32_t i = 0; i < DF_OFFERS && !c->server->options->kept; i++)
        if (c->offers[i] == 0) {
            c->offers[i] = df_files_client_offer(&c->server->files);
            atomic_store(offer_at(c, i), c->offers[i]);
        }
}

static void forget_taker(struct df_control *c, struct df_connection *taker)
{
    struct df_connection **at = &c->takers;

    while (*at != taker)
        at = &(*at)->next;
    *at = taker->next;
    taker->ticket = 0;
}

/* False: somebody else has taken it, or will. */
static bool may_take(const struct df_control *c, const struct df_connection *taker)
{
    uint32_t now = atomic_load(offer_at(c, taker->place));

    return taker->client == c->offers[taker->place] &&
           (now == taker->client || now == taker->ticket);
}

/* Whether it has done what it was about to do; then the place is free for another offer. */
static bool has_taken(struct df_control *c, struct df_connection *taker)
{
    if (!may_take(c, taker) || atomic_load(offer_at(c, taker->place)) != taker->ticket)
        return false;
    c->offers[taker->place] = 0;
    df_files_client_born(&c->server->files, taker->client);
    return true;
}

void df_control_end_taker(struct df_control *c, struct df_connection *taker)
{
    if (!has_taken(c, taker))
        taker->client = 0;
    forget_taker(c, taker);
}

void df_control_refuse_taker(struct df_control *c, uint32_t place, uint32_t client, uint32_t ticket)
{
    uint32_t offered = client;

    if (client != c->offers[place] ||
        (!atomic_compare_exchange_strong(offer_at(c, place), &offered, 0) && offered != ticket))
        return;
    c->offers[place] = 0;
    df_files_client_born(&c->server->files, client);
    df_execute_bury(c->server, client);
}

void df_control_settle(struct df_control *c)
{
    struct df_connection *next;

    for (struct df_connection *taker = c->takers; taker; taker = next) {
        next = taker->next;
        if (has_taken(c, taker))
            forget_taker(c, taker);
        else if (!may_take(c, taker))
            df_control_end(c, taker);
    }
}
