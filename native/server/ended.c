/*
 * ended.c - processes that have ended, and what they had: Linux closes their files before wait(2)
 * tells of their end, here both go different ways.
 */
#include <fcntl.h>
#include <limits.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "channel/sys.h"
#include "server/server_private.h"

#define SEEN_NS    INT64_C(10000000) /* between two looks whether the control loop has been round */
#define SEEN_TRIES 100

void df_server_tell_news(struct df_server *server)
{
    const uint64_t one = 1;

    if (write(server->news, &one, sizeof(one)) < 0)
        return; /* the counter is full: it will be read */
}

void df_server_seen(struct df_server *server)
{
    atomic_fetch_add(&server->rounds, 1);
    df_sys_wake(&server->rounds, INT_MAX);
}

/* Until a round of the control loop that began after now has ended: so that processes that have
 * ended hold nothing any more. Not for ever: the loop ends with the last mount. */
static void see_the_ended(struct df_server *server)
{
    uint32_t begin = atomic_load(&server->rounds), seen = begin;

    for (int tries = 0; seen - begin < 2 && tries < SEEN_TRIES; tries++) {
        df_server_tell_news(server);
        df_sys_wait(&server->rounds, seen, SEEN_NS);
        seen = atomic_load(&server->rounds);
    }
}

/* In the order in which an end goes on, so that none is missed. */
static bool has_dead(struct df_server *server)
{
    struct epoll_event event;

    return epoll_wait(atomic_load(&server->sockets), &event, 1, 0) > 0 ||
           atomic_load(&server->looking) || atomic_load(&server->burials) > 0;
}

/* Somebody who has given up waiting for a close, or is gone, has the file until it is done. */
static bool is_closing(struct df_server *server)
{
    struct df_segment *segment = server->own.segment;

    for (unsigned i = 0; i < DF_SLOT_COUNT; i++) {
        const struct df_slot *slot = &df_segment_slots(segment)[i];
        enum df_slot_state state = df_slot_state(atomic_load(&slot->word));

        if ((state == DF_SLOT_POSTED || state == DF_SLOT_ABANDONED) &&
            df_message_lets_go(&slot->message))
            return true;
    }
    return atomic_load(&server->burials) > 0;
}

static void pause_briefly(void)
{
    nanosleep(&(struct timespec){.tv_nsec = SEEN_NS}, NULL);
}

bool df_server_see_the_dead(struct df_server *server)
{
    uint32_t burials;

    if (!has_dead(server))
        return false;
    see_the_ended(server);
    for (int i = 0; (burials = atomic_load(&server->burials)) > 0 && i < SEEN_TRIES; i++)
        df_sys_wait(&server->burials, burials, SEEN_NS);
    return true;
}

/* Whether others may find later what it does. */
static bool alters(const struct df_message *m)
{
    switch (m->op) {
    case DF_MESSAGE_setattr:
    case DF_MESSAGE_setxattr:
    case DF_MESSAGE_removexattr:
    case DF_MESSAGE_write:
    case DF_MESSAGE_fallocate:
    case DF_MESSAGE_copy_file_range:
        return true;
    case DF_MESSAGE_open:
        return m->args.open.flags & (O_CREAT | O_TRUNC);
    default:
        return df_watch_changes_names(m->op);
    }
}

/* What somebody had begun who is gone by now. */
static bool alters_for_the_dead(struct df_server *server)
{
    for (unsigned i = 0; i < DF_SLOT_COUNT; i++) {
        const struct df_slot *slot = &df_segment_slots(server->own.segment)[i];
        uint32_t word = atomic_load(&slot->word);

        if (df_slot_state(word) == DF_SLOT_ABANDONED && alters(&slot->message) &&
            !df_files_client_is_born(&server->files, df_slot_client(word)))
            return true;
    }
    return false;
}

void df_server_finish_the_dead(struct df_server *server)
{
    df_server_see_the_dead(server);
    for (int i = 0; alters_for_the_dead(server) && i < SEEN_TRIES; i++)
        pause_briefly();
}

/* With a patience for ever: it ends the process. */
void df_server_see_the_closed(struct df_server *server)
{
    see_the_ended(server);
    df_patience_begin(server);
    for (int i = 0; is_closing(server) && (i < SEEN_TRIES || df_patience_of(server) > 0); i++)
        pause_briefly();
    df_patience_end(server);
}

void df_server_await_burials(struct df_server *server)
{
    while (atomic_load(&server->burials) > 0)
        pause_briefly();
}
