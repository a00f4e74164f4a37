/*
 * library.h - shared libraries around a loaded program: ours, which stand in for libfuse, and those
 * that the program loads itself. The real libfuse is kept out.
 */
#ifndef DF_LOADER_LIBRARY_H
#define DF_LOADER_LIBRARY_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "loader/elf.h"
#include "loader/guest.h"

/* One object is loaded or unloaded at a time, as in the dynamic linker itself. Recursive: a
 * constructor may load another one. */
void df_library_lock(void);
void df_library_unlock(void);

/* Loads our library for that ABI (DF_ELF_ABI_NONE: libfuse 3's), once. Under the lock. Returns 0,
 * or -ENOEXEC with a message; `plugin` is who needs it. */
int df_library_need(enum df_elf_abi abi, const char *plugin, char *message, size_t size);

/* True unless the handle (or RTLD_DEFAULT) leads to an entry point of libfuse that is not ours.
 * Under the lock. */
bool df_library_leads_to_us(void *handle);

/*
 * dlopen(3) for a guest. A library that is linked to the real libfuse is given ours, in a copy that
 * is this guest's own, and its imports are hooked as the program's are; one that would bring the
 * real libfuse in by a library of its own is not loaded. NULL, with the reason in `message`.
 */
void *df_library_open(struct df_guest *guest, const char *name, int flags, char *message,
                      size_t size);

/* Where the dynamic linker would look for a name without a slash that the object `map` needs: the
 * directories of its DT_RUNPATH, of LD_LIBRARY_PATH and of the system (without ld.so.cache). */
bool df_library_search(const void *map, const char *name, char path[PATH_MAX]);

/* The struct link_map of the object that holds `address`; NULL if none does. */
const void *df_library_map_of(const void *address);

#endif
