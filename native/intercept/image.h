/*
 * image.h - mapping an ELF program or its interpreter, as execve(2) does.
 */
#ifndef DF_INTERCEPT_IMAGE_H
#define DF_INTERCEPT_IMAGE_H

#include "intercept/intercept.h"

/* A mapped file, and what the auxiliary vector says of it. */
struct dfi_map {
    uintptr_t base;       /* added to its addresses */
    uintptr_t start, end; /* of all its segments */
    uintptr_t first_end;  /* of the first one, as far as the file goes */
    uintptr_t entry;      /* where it begins */
    uintptr_t headers;
    unsigned long headers_count;
    bool executable_stack;
};

/* Maps the file of a descriptor, which may be closed then. 0 or a negative errno. */
long dfi_map_image(int fd, struct dfi_map *map);

#endif
