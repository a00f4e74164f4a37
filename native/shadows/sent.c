/*
 * sent.c - files whose descriptors are on their way to other processes.
 *
 * How many are, each open file counts for all processes (df_ofd.sent): who sends adds, who has
 * received subtracts. A sender holds what it has sent, as if it had it open, and lets go of what
 * has arrived when it sends the next. What nobody receives, it holds until it ends, and so what was
 * on its way for longer than there is a place for it.
 */
#include "shadows/sent.h"

#include "channel/trip.h"

void dfi_sent_arrived(struct dfi_files *files, uint64_t handle)
{
    struct df_ofd *ofd = handle ? dfi_ofd(files, handle) : NULL;
    uint32_t sent = ofd ? atomic_load(&ofd->sent) : 0;

    /* Not below zero: what comes without having been counted does not arrive for another. */
    while (sent > 0 && !atomic_compare_exchange_weak(&ofd->sent, &sent, sent - 1))
        ;
}

static bool has_arrived(const struct dfi_files *files, uint64_t handle)
{
    const struct df_ofd *ofd = dfi_ofd(files, handle);

    return !ofd || atomic_load(&ofd->sent) == 0;
}

static void let_go_of_arrived(struct dfi_files *files)
{
    for (int i = 0; i < DFI_SENT; i++) {
        uint64_t handle = atomic_load_explicit(&files->on_their_way[i], memory_order_relaxed);

        if (handle && has_arrived(files, handle) &&
            atomic_compare_exchange_strong(&files->on_their_way[i], &handle, 0))
            dfi_fd_drop(files, handle, false);
    }
}

static void note(struct dfi_files *files, uint64_t handle)
{
    for (int i = 0; i < DFI_SENT; i++) {
        uint64_t none = 0;

        if (atomic_compare_exchange_strong(&files->on_their_way[i], &none, handle))
            return;
    }
    atomic_store(&files->on_their_way[atomic_fetch_add(&files->sent_last, 1) % DFI_SENT], handle);
}

void dfi_sent_hold(struct dfi_files *files, uint64_t handle)
{
    struct df_ofd *ofd = dfi_ofd(files, handle);

    if (!ofd) { /* the server is gone */
        dfi_fd_drop(files, handle, false);
        return;
    }
    let_go_of_arrived(files);
    files->sent = true;
    atomic_fetch_add(&ofd->sent, 1); /* first: what is noted has not arrived */
    note(files, handle);
}

void dfi_sent_forget(struct dfi_files *files)
{
    files->sent = false;
    for (int i = 0; i < DFI_SENT; i++)
        atomic_store_explicit(&files->on_their_way[i], 0, memory_order_relaxed);
}

void dfi_sent_leave(struct dfi_files *files)
{
    struct df_trip trip = dfi_trip_of(files);

    if (files->sent)
        df_trip_leave(&trip);
    files->sent = false;
}
