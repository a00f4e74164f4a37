/*
 * image.h - a private copy of an ELF file: a memfd that can be read, patched and loaded.
 */
#ifndef DF_LOADER_IMAGE_H
#define DF_LOADER_IMAGE_H

#include <stddef.h>

/* Returns the descriptor of a memfd with the bytes of the regular file `path`, or -errno. */
int df_image_copy(const char *path);

/* Maps the copy, shared: what is written there is what will be loaded. *data is NULL when it is
 * empty. Returns 0 or -errno; munmap(2) is the caller's. */
int df_image_map(int fd, void **data, size_t *size);

/* dlopen(3) of the copy, as an object of its own also if the same was loaded before. One call at a
 * time. */
void *df_image_load(int fd, int flags);

#endif
