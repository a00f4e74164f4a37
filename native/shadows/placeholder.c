/*
 * placeholder.c - placeholders that come from elsewhere, and their end.
 */
#include "shadows/placeholder.h"

#include <errno.h>

#include "channel/trip.h"
#include "shadows/linger.h"
#include "shadows/shadow.h"

long dfi_placeholder_close(struct dfi_files *files, int fd)
{
    uint64_t handle = dfi_handle_in(atomic_exchange(&files->map[fd], 0));

    if (!handle)
        return -EBADF;
    if (!dfi_linger_closed(files, fd, handle)) /* first: its shadow may become another file's */
        dfi_kernel(__NR_close, fd);
    dfi_linger_freed(files, (unsigned)fd);
    return dfi_fd_drop(files, handle, true);
}

void dfi_placeholder_adopt(struct dfi_files *files, int fd)
{
    struct df_trip trip = dfi_trip_of(files);
    uint64_t entry, handle;
    bool held;

    if (fd < 0 || fd >= DFI_FD_MAX || !(entry = dfi_shadow_entry(files, fd)) || !dfi_fd_room(files))
        return;
    handle = dfi_handle_in(entry);
    dfi_linger_never_at(files, handle);
    held = dfi_fd_hold_open(files, handle);
    if (held || df_trip_adopt(&trip, handle) == 0)
        dfi_fd_enter(files, fd, entry);
    if (held)
        dfi_fd_drop(files, handle, false);
}
