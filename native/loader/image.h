/*
 * image.h - a private copy of an ELF file: a memfd that can be read, patched and loaded.
 */
#ifndef DF_LOADER_IMAGE_H
#define DF_LOADER_IMAGE_H

#include "loader/elf.h"

/* Returns the descriptor of a memfd with the bytes of the regular file `path`, or -errno. */
int df_image_copy(const char *path);

/* Maps the copy, shared: what is written there is what will be loaded; and says in *elf what it is.
 * Returns 0 or -errno; df_image_release() is the caller's. */
int df_image_inspect(int fd, struct df_elf *elf);

/* Of an inspected file: its mapping. Of one that is all zeros: nothing. */
void df_image_release(const struct df_elf *elf);

/* dlopen(3) of the copy, as an object of its own also if the same was loaded before. One call at a
 * time. */
void *df_image_load(int fd, int flags);

#endif
