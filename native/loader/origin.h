/*
 * origin.h - libraries that lie beside a program: what $ORIGIN means in its run path (ld.so(8)).
 *
 * What is loaded is a copy, which lies elsewhere (image.h), so the dynamic linker would look there.
 * They are loaded before it, by their paths: the linker finds them by their names then.
 */
#ifndef DF_LOADER_ORIGIN_H
#define DF_LOADER_ORIGIN_H

#include <stddef.h>

#include "loader/elf.h"

enum { DF_ORIGIN_MAX = 64 };

struct df_origin {
    void *handles[DF_ORIGIN_MAX]; /* of dlopen */
    size_t count;
};

/* Loads those that the object, which lies at `path`, would find so. What cannot be loaded is the
 * dynamic linker's to name, when it comes to the object. */
void df_origin_load(struct df_origin *origin, const struct df_elf *elf, const char *path);

/* When the object is loaded, or is not: it has those that it needs itself. */
void df_origin_close(struct df_origin *origin);

#endif
