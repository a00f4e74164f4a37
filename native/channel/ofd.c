/*
 * ofd.c - the lock of a shared file position: a futex whose word names the process that holds it.
 */
#include "channel/ofd.h"

#include <errno.h>

#include "channel/sys.h"

#define LOOK_NS                                                                                    \
    INT64_C(100000000) /* between two looks whether the server, who would free it, lives */

/* Marks the word as waited for and sleeps. `word` was seen, and is held. */
static int await(struct df_link *link, struct df_ofd *ofd, uint32_t word, bool interruptible)
{
    uint32_t waited = word | DF_OFD_WAITED;
    long ret;

    if (word != waited && !atomic_compare_exchange_strong(&ofd->position_lock, &word, waited))
        return 0;
    ret = df_sys_wait(&ofd->position_lock, waited, LOOK_NS);
    if (ret == -EINTR && interruptible)
        return -EINTR;
    return ret < 0 && df_link_lost(link) ? -ENOTCONN : 0;
}

/* Who has slept takes it as waited for: it does not know whether others sleep too. */
int df_ofd_lock(struct df_link *link, struct df_ofd *ofd, bool interruptible)
{
    uint32_t mine = link->client;
    int ret;

    if (mine == 0)
        return -ENOTCONN;
    for (;;) {
        uint32_t word = 0;

        if (atomic_compare_exchange_strong_explicit(&ofd->position_lock, &word, mine,
                                                    memory_order_acquire, memory_order_relaxed))
            return 0;
        ret = await(link, ofd, word, interruptible);
        if (ret < 0)
            return ret;
        mine = link->client | DF_OFD_WAITED;
    }
}

/* Who is nobody has not taken it, and may be a client by now. */
void df_ofd_unlock(struct df_link *link, struct df_ofd *ofd)
{
    uint32_t word = atomic_load_explicit(&ofd->position_lock, memory_order_relaxed);

    if ((word & ~DF_OFD_WAITED) != link->client || word == 0)
        return;
    if (atomic_exchange(&ofd->position_lock, 0) & DF_OFD_WAITED)
        df_sys_wake(&ofd->position_lock, 1);
}

uint64_t df_ofd_mark(struct df_ofd *ofd, uint64_t handle, uint64_t set, uint64_t clear)
{
    uint64_t had = __atomic_load_n(&ofd->marks, __ATOMIC_SEQ_CST);

    do
        if (DF_OFD_UNMARKED(had) != DF_OFD_UNMARKED(handle))
            return set;
    while (!__atomic_compare_exchange_n(&ofd->marks, &had, (had | set) & ~clear, true,
                                        __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));
    return had;
}

void df_ofd_break(struct df_ofd *ofd, uint32_t client)
{
    uint32_t word = atomic_load(&ofd->position_lock);

    while ((word & ~DF_OFD_WAITED) == client)
        if (atomic_compare_exchange_weak(&ofd->position_lock, &word, 0)) {
            if (word & DF_OFD_WAITED)
                df_sys_wake(&ofd->position_lock, 1);
            return;
        }
}
