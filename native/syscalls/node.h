/*
 * node.h - FIFOs and sockets of mounts: the name is in the mount, the object is a real one in the
 * shadow directory, s/<device>.<ino>. And devices.
 */
#ifndef DF_SYSCALLS_NODE_H
#define DF_SYSCALLS_NODE_H

#include <sys/stat.h>

#include "syscalls/shadow.h"
#include "syscalls/way.h"

void dfi_node_name(const struct dfi_files *files, const struct stat *st,
                   char name[DFI_SHADOW_NAME_MAX]);

/* open(2) of the way's path, which a mount has answered with ENXIO: a descriptor of the kernel's if
 * it is a FIFO, or /dev/null, zero, full, random, urandom or tty; else -ENXIO. May block. */
int dfi_node_open(struct dfi_way *way, int flags);

/* Whether a descriptor of the kernel's is such a device: whose mode, owner and times are those of
 * the real one, for all the machine. */
bool dfi_node_is_lent(unsigned long fd);

#endif
