/*
 * host_fds.h - descriptors that were open before a program began: the host's. Many a program closes
 * all that it finds, as daemons do, before it mounts.
 *
 * Each is remembered by its number and by what it is, for the host may close it meanwhile, and the
 * program be given the number. No file system is asked for that: it might wait for this thread.
 */
#ifndef DF_LOADER_HOST_FDS_H
#define DF_LOADER_HOST_FDS_H

#include <stdbool.h>
#include <stddef.h>

struct df_host_fd;

struct df_host_fds {
    struct df_host_fd *list; /* by number; fixed once found */
    size_t count;
};

/* Those of this process. 0 or -errno. */
int df_host_fds_find(struct df_host_fds *fds);
void df_host_fds_forget(struct df_host_fds *fds);

/* errno is kept. */
bool df_host_fds_have(const struct df_host_fds *fds, int fd);

#endif
