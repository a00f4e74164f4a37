/*
 * needed.h - the libraries that a program brings with it, looked at before any of them is loaded.
 */
#ifndef DF_LOADER_NEEDED_H
#define DF_LOADER_NEEDED_H

#include <stdbool.h>
#include <stddef.h>

#include "loader/elf.h"

enum { DF_NEEDED_MAX = 128 };

struct df_needed_library {
    const char *name; /* as DT_NEEDED says; in the image of who needs it */
    char *path;
    struct df_elf elf; /* a view of the file, private and not loaded */
};

struct df_needed {
    struct df_needed_library list[DF_NEEDED_MAX];
    size_t count;
};

/* Finds what `program` needs, and what that needs. The C library and what belongs to it are left
 * out, and what cannot be found: that is the dynamic linker's to name. */
void df_needed_find(struct df_needed *needed, const struct df_elf *program);
void df_needed_forget(struct df_needed *needed);

/* A library of `program` is C++ and stays loaded for ever: the dynamic linker unloads none whose
 * symbols are STB_GNU_UNIQUE. (libstdc++ is left out, it is of the system.) True, too, when memory
 * is short. */
bool df_needed_stays(const struct df_elf *program);

#endif
