/*
 * map_request.h - one mmap(2) of a file of a mount: shared by calls_map.c, which chooses how it is
 * mapped, and map_private.c.
 */
#ifndef DF_SYSCALLS_MAP_REQUEST_H
#define DF_SYSCALLS_MAP_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "client/files.h"

struct dfi_map_request {
    unsigned long address, length, prot, flags, offset;
    int fd;
    bool links; /* it is the dynamic linker that asks */
    uint64_t handle;
};

/* Of an address that mmap(2) answers with. */
#define DFI_MAP_IS_ERROR(value) ((value) < 0 && (value) > -4096)

static inline size_t dfi_map_whole_pages(size_t length)
{
    return (length + DFI_PAGE - 1) & ~(DFI_PAGE - 1);
}

/* ---- calls_map.c ---- */

/* mmap(2) of the kernel, where something may lie already. */
long dfi_map_there(struct dfi_files *files, unsigned long at, size_t length, unsigned long prot,
                   unsigned long flags, long fd, unsigned long offset);

/* ---- map_private.c ---- */

/* A copy of the file's bytes, in anonymous memory. Its address, or -errno. */
long dfi_map_private(struct dfi_files *files, const struct dfi_map_request *r);

/* Pages behind the end of a file give SIGBUS, mmap(2): those of an empty file do. Its address. */
long dfi_map_empty(struct dfi_files *files, unsigned long from, size_t size, unsigned long prot,
                   unsigned long flags);

/* The attributes of the file. False: it could not be asked. */
bool dfi_map_look(struct dfi_files *files, const struct dfi_map_request *r, struct stat *st);

/* By which the programs of the run know the file whose code is mapped. */
int dfi_map_learnt(struct dfi_files *files, const struct dfi_map_request *r);

#endif
