/*
 * execute_epoll.c - epoll_ctl(2) of clients, of files of mounts; and whether one that was rung for
 * is ready.
 */
#include <errno.h>
#include <poll.h>
#include <sys/epoll.h>

#include "server/server_private.h"

#define CALL     DF_EXECUTE_CALL
#define ALL_POLL 0xffff /* of events; above them is how they are told */

int64_t df_execute_poll(struct df_work *w, int events, struct df_wake *wake)
{
    struct df_served *served = df_server_mount(w->server, w->call.mount->id);
    int64_t ready;

    w->call.untold = false;
    ready = CALL(poll, w->files[0], events, wake);
    if (w->call.untold && served)
        atomic_store(&served->shared->polls, 0);
    return ready;
}

/* What the file is ready for; the bell will ring when that changes. At the edge also if it is ready
 * already: by the next notification, as the kernel's FUSE. */
static uint32_t ask(struct df_work *w, const struct df_epoll *epoll)
{
    uint32_t events = (epoll->events & ALL_POLL) | POLLERR | POLLHUP;
    struct df_wake *wake = df_bell_wake(&w->server->bells, epoll->token, epoll->events & EPOLLET);
    int64_t ready;

    if (!wake)
        return POLLERR;
    ready = df_execute_poll(w, (int)events, wake);
    return ready < 0 ? POLLERR : (uint32_t)ready & events;
}

static void look(struct df_work *w, const struct df_epoll *epoll)
{
    if (ask(w, epoll))
        df_bell_ring(&w->server->bells, epoll->token);
}

static int64_t removed(struct df_work *w, const struct df_epoll *epoll)
{
    uint64_t token = df_epolls_remove(&w->server->epolls, epoll);

    if (token)
        df_bell_end(&w->server->bells, token);
    return token ? 0 : -ENOENT;
}

static int64_t add(struct df_work *w, const struct df_epoll *epoll)
{
    int ret = df_epolls_add(&w->server->epolls, epoll);

    if (ret < 0)
        return ret;
    look(w, epoll);
    if (!w->call.untold)
        return 0;
    removed(w, epoll); /* as a file of one that never could */
    return -EPERM;
}

static int64_t modify(struct df_work *w, struct df_epoll *epoll)
{
    int ret = df_epolls_modify(&w->server->epolls, epoll);

    if (ret == 0) {
        df_bell_hear(&w->server->bells, epoll->token);
        look(w, epoll);
    }
    return ret;
}

/* Of those who hear a bell one finds that it was rung. At a level it is rung again, until somebody
 * finds the file not ready. It is heard before the entry is looked at: who changes that rings
 * afterwards, so what was rung for is what stands there. */
static int64_t answer(struct df_work *w, uint64_t token)
{
    union df_results *out = &w->slot->message.out;
    bool rung = df_bell_hear(&w->server->bells, token);
    struct df_epoll epoll;
    uint32_t ready;
    int ret = df_epolls_find(&w->server->epolls, token, &epoll);

    if (ret < 0)
        return ret;
    if (!rung || epoll.off || df_execute_take(w, epoll.handle) < 0)
        return 0;
    ready = ask(w, &epoll);
    if (ready) /* by the last of whose files it may be watched no more */
        df_server_see_the_dead(w->server);
    if (!ready || !df_epolls_tell(&w->server->epolls, &epoll))
        return 0;
    if (!(epoll.events & (EPOLLET | EPOLLONESHOT)))
        df_bell_ring(&w->server->bells, token);
    out->epoll.events = ready;
    out->epoll.data = epoll.data;
    return 1;
}

int64_t df_execute_epoll(struct df_work *w)
{
    const __typeof__(w->message.args.epoll) *args = &w->message.args.epoll;
    struct df_epoll epoll = {
        .token = args->token,
        .handle = w->message.files[0],
        .set = args->set,
        .fd = args->fd,
        .events = args->events,
        .data = args->data,
    };
    int ret;

    if (args->what == DF_EPOLL_ASK)
        return answer(w, args->token);
    if (args->what == DF_EPOLL_HUNG)
        return df_bell_await(&w->server->bells, args->token) ? 0 : -EAGAIN;
    if ((ret = df_execute_take(w, epoll.handle)) < 0)
        return ret;
    switch (args->what) {
    case EPOLL_CTL_ADD:
        return add(w, &epoll);
    case EPOLL_CTL_MOD:
        return modify(w, &epoll);
    case EPOLL_CTL_DEL:
        return removed(w, &epoll);
    default:
        return -EINVAL;
    }
}

void df_execute_unwatch(struct df_server *server, uint64_t handle)
{
    uint64_t token;

    while ((token = df_epolls_remove_any(&server->epolls, handle)))
        df_bell_end(&server->bells, token);
}
