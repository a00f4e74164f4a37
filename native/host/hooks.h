/*
 * hooks.h - what a loaded program calls instead of libc where libc would reach the whole process.
 *
 * A FUSE program believes that it owns its process: it exits, daemonizes, changes directory and
 * umask, installs signal handlers. Its own GOT (and nobody else's) is pointed at functions that
 * give it what it expects and leave the host process alone.
 */
#ifndef DF_HOST_HOOKS_H
#define DF_HOST_HOOKS_H

#include <link.h>

#include "host/elf.h"
#include "host/guest.h"

/* Redirects the GOT entries of the loaded object `map`, whose patched image is `elf`, for
 * `guest`, and notes where it keeps its copies of libc's globals.
 * Returns 0, or -ENOEXEC when a relocation table points outside the image. */
int df_hooks_apply(const struct link_map *map, const struct df_elf *elf, struct df_guest *guest);

/* One row of a hook table: a name as the program imports it, and what it gets. */
struct df_hook {
    const char *name;
    void *function;
};

extern const struct df_hook df_hooks_process[];    /* hooks_process.c; ends with a NULL name */
extern const struct df_hook df_hooks_child[];      /* hooks_child.c */
extern const struct df_hook df_hooks_signal[];     /* hooks_signal.c */
extern const struct df_hook df_hooks_connection[]; /* hooks_connection.c */
extern const struct df_hook df_hooks_library[];    /* hooks_library.c */
extern const struct df_hook df_hooks_getopt[];     /* hooks_getopt.c */
extern const struct df_hook df_hooks_path[];       /* hooks_path.c */
extern const struct df_hook df_hooks_output[];     /* hooks_output.c */

/*
 * The guest's process ends: the mount, and what this thread does for it. Inside an op, on a thread
 * of the application, the op fails; on the thread of main df_program_run() returns `status`; else
 * it is a thread of the guest's own.
 */
_Noreturn void df_hooks_end(struct df_guest *guest, int status);

/* write(2) without SIGPIPE, where fd is one of the guest's sockets. */
ssize_t df_hooks_write_connection(int fd, const void *data, size_t size);

#endif
