/*
 * companion.h - libraries that share variables with a program, by COPY relocations.
 *
 * An executable is linked to reach a variable of a library at an address of its own. The dynamic
 * linker copies the variable there, once, before any constructor runs, and points the library at
 * the copy, too: both see one variable. For an object that dlopen() loads it makes the copy only.
 * So the library is loaded anew for this one program, as a companion: a private image under a name
 * of its own, as are the libraries that need it. Their constructors are held back; once all is
 * relocated, their references are pointed at the program's copy, the copy is taken again, and the
 * constructors run, in the order that they would have run in (docs/decisions/028); the program's
 * own when it begins (program.h).
 *
 * Constants need none of that: a copy of a constant is as good as the constant.
 */
#ifndef DF_LOADER_COMPANION_H
#define DF_LOADER_COMPANION_H

#include <stdbool.h>
#include <stddef.h>

#include "loader/elf.h"
#include "loader/guest.h"

enum { DF_COMPANIONS_MAX = 16 };

struct df_companions {
    void *handles[DF_COMPANIONS_MAX]; /* of dlopen, in the order of loading */
    size_t count;
    bool linger; /* their code may run after main has returned: df_object_lingers() */
};

/*
 * Loads the patched image of a program, with its companions; their imports are hooked for `guest`.
 * Its handle, or NULL with the reason in `reason`: what dlerror() says, or that its libraries
 * cannot be made companions, found out before anything of it or them ran.
 */
void *df_companions_load(struct df_companions *companions, int image, struct df_guest *guest,
                         char *reason, size_t size);

/* After the program's own dlclose(). */
void df_companions_close(struct df_companions *companions);

#endif
