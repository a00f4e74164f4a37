/*
 * constructors.h - the constructors of an object, held back from the dynamic linker.
 *
 * dlopen() runs them before it returns, and so before the object's imports can be hooked: what they
 * do to the process would be done to the host. Held back, they run when the loader says so, as the
 * dynamic linker would have run them.
 */
#ifndef DF_LOADER_CONSTRUCTORS_H
#define DF_LOADER_CONSTRUCTORS_H

#include <stddef.h>
#include <stdint.h>

#include "loader/elf.h"

/* As its dynamic section names them; addresses from the load address on. All zeros: there are none.
 */
struct df_constructors {
    uint64_t init; /* DT_INIT; 0: none */
    uint64_t array;
    size_t count;
};

/* Hides them from the dynamic linker, in the image. Of an image that was seen to before: none. */
struct df_constructors df_constructors_hold_back(const struct df_elf *elf);

/* Runs those of the object loaded at `base`. */
void df_constructors_run(const struct df_constructors *held, uintptr_t base, int argc, char **argv,
                         char **environment);

#endif
