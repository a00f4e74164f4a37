/*
 * epolls.c - files that epoll instances of clients watch.
 */
#include "ledger/epolls.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>

#include "channel/layout.h"
#include "channel/room.h"

void df_epolls_init(struct df_epolls *epolls, struct df_segment *segment)
{
    *epolls = (struct df_epolls){.segment = segment, .lock = PTHREAD_MUTEX_INITIALIZER};
}

/* ---- in the segment: under the lock ---------------------------------------------------------- */

/* Where there is no room, who waits there does not hear of our end by this file. */
static unsigned free_place(const struct df_epolls *epolls)
{
    struct df_shared_epoll *shared = df_segment_epolls(epolls->segment);
    unsigned i = 0;

    if (!df_room_make(epolls->segment, shared, DF_EPOLL_COUNT * sizeof(*shared)))
        return DF_EPOLL_COUNT;
    while (i < DF_EPOLL_COUNT && atomic_load(&shared[i].set) != 0)
        i++;
    return i;
}

/* set: 0 for none any more. */
static void share(const struct df_epolls *epolls, const struct df_epoll *epoll, uint64_t set)
{
    struct df_shared_epoll *shared = df_segment_epolls(epolls->segment);

    if (epoll->place == DF_EPOLL_COUNT)
        return;
    atomic_store(&shared[epoll->place].data, epoll->data);
    atomic_store(&shared[epoll->place].set, set);
}

/* ---- entries --------------------------------------------------------------------------------- */

static bool is_same(const struct df_epoll *a, const struct df_epoll *b)
{
    return a->handle == b->handle && a->set == b->set && a->fd == b->fd;
}

static struct df_epoll *find(const struct df_epolls *epolls, const struct df_epoll *wanted)
{
    struct df_epoll *at = epolls->first;

    while (at && !is_same(at, wanted))
        at = at->next;
    return at;
}

static struct df_epoll *find_token(const struct df_epolls *epolls, uint64_t token)
{
    struct df_epoll *at = epolls->first;

    while (at && at->token != token)
        at = at->next;
    return at;
}

static void insert(struct df_epolls *epolls, struct df_epoll *epoll)
{
    epoll->place = free_place(epolls);
    epoll->next = epolls->first;
    epolls->first = epoll;
    if (epolls->newest < epoll->token)
        epolls->newest = epoll->token;
    atomic_fetch_add(&epolls->count, 1);
    share(epolls, epoll, epoll->set);
}

int df_epolls_add(struct df_epolls *epolls, const struct df_epoll *added)
{
    struct df_epoll *epoll = malloc(sizeof(*epoll));
    int ret = 0;

    if (!epoll)
        return -ENOMEM;
    *epoll = *added;
    pthread_mutex_lock(&epolls->lock);
    if (find(epolls, added))
        ret = -EEXIST;
    else
        insert(epolls, epoll);
    pthread_mutex_unlock(&epolls->lock);
    if (ret < 0)
        free(epoll);
    return ret;
}

int df_epolls_modify(struct df_epolls *epolls, struct df_epoll *changed)
{
    struct df_epoll *epoll;
    int ret = 0;

    pthread_mutex_lock(&epolls->lock);
    epoll = find(epolls, changed);
    if (!epoll)
        ret = -ENOENT;
    else if (epoll->events & EPOLLEXCLUSIVE)
        ret = -EINVAL;
    if (ret == 0) {
        epoll->events = changed->events;
        epoll->data = changed->data;
        epoll->off = false;
        share(epolls, epoll, epoll->set);
        *changed = *epoll;
    }
    pthread_mutex_unlock(&epolls->lock);
    return ret;
}

/* Under the lock. Its token; 0: it is NULL. */
static uint64_t take_out(struct df_epolls *epolls, struct df_epoll *epoll)
{
    struct df_epoll **at = &epolls->first;
    uint64_t token;

    if (!epoll)
        return 0;
    while (*at != epoll)
        at = &(*at)->next;
    *at = epoll->next;
    share(epolls, epoll, 0);
    atomic_fetch_sub(&epolls->count, 1);
    token = epoll->token;
    free(epoll);
    return token;
}

uint64_t df_epolls_remove(struct df_epolls *epolls, const struct df_epoll *removed)
{
    uint64_t token;

    pthread_mutex_lock(&epolls->lock);
    token = take_out(epolls, find(epolls, removed));
    pthread_mutex_unlock(&epolls->lock);
    return token;
}

uint64_t df_epolls_remove_any(struct df_epolls *epolls, uint64_t handle)
{
    struct df_epoll *at;
    uint64_t token;

    if (atomic_load_explicit(&epolls->count, memory_order_relaxed) == 0)
        return 0;
    pthread_mutex_lock(&epolls->lock);
    for (at = epolls->first; at && at->handle != handle;)
        at = at->next;
    token = take_out(epolls, at);
    pthread_mutex_unlock(&epolls->lock);
    return token;
}

int df_epolls_find(struct df_epolls *epolls, uint64_t token, struct df_epoll *found)
{
    struct df_epoll *epoll;
    int ret = 0;

    pthread_mutex_lock(&epolls->lock);
    epoll = find_token(epolls, token);
    if (epoll)
        *found = *epoll;
    else
        ret = token != 0 && token <= epolls->newest ? -ENOENT : -EINVAL;
    pthread_mutex_unlock(&epolls->lock);
    return ret;
}

bool df_epolls_tell(struct df_epolls *epolls, const struct df_epoll *found)
{
    struct df_epoll *epoll;
    bool tells;

    pthread_mutex_lock(&epolls->lock);
    epoll = find_token(epolls, found->token);
    tells = epoll && !epoll->off && epoll->events == found->events && epoll->data == found->data;
    if (tells && epoll->events & EPOLLONESHOT)
        epoll->off = true;
    pthread_mutex_unlock(&epolls->lock);
    return tells;
}
