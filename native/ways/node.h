/*
 * node.h - FIFOs and sockets of mounts: the name is in the mount, the object is a real one in the
 * shadow directory, n/ or s/<device>.<ino>. And devices.
 */
#ifndef DF_WAYS_NODE_H
#define DF_WAYS_NODE_H

#include <sys/stat.h>

#include "shadows/shadow.h"
#include "ways/way.h"

void dfi_node_name(const struct dfi_files *files, const struct stat *st,
                   char name[DFI_SHADOW_NAME_MAX]);

/* open(2) of the way's path, which a mount has answered with ENXIO. /dev/null, zero, full, random,
 * urandom or tty: a descriptor of the kernel's. A FIFO: DF_FD_BASE, as of any file, which is open
 * for attributes then. Else -ENXIO, or another error. May block. */
int dfi_node_open(struct dfi_way *way, int flags);

/* mknod(2) of the way's path. A file system may give a FIFO the inode number of one that is gone:
 * who has that one open has nothing to do with the new one. */
long dfi_node_make(struct dfi_way *way, mode_t mode, dev_t device);

/*
 * A descriptor of the real FIFO that stands in for that of the handle, by a link to it whose name
 * is the handle: so whoever comes by the descriptor finds what it is (DFI_FIFO). Where another user
 * has made the real one, Linux may forbid the link (fs.protected_hardlinks in proc_sys_fs(5)): then
 * only this process and those that it starts know. Blocks as open(2) does, -EINTR too.
 */
long dfi_node_open_fifo(struct dfi_files *files, uint64_t handle, int flags);

/* Whether a descriptor of the kernel's is such a device: whose mode, owner and times are those of
 * the real one, for all the machine. */
bool dfi_node_is_lent(unsigned long fd);

#endif
