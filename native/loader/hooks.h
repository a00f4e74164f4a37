/*
 * hooks.h - what a loaded program calls instead of libc where libc would reach the whole process.
 *
 * A FUSE program believes that it owns its process: it exits, daemonizes, changes directory and
 * umask, installs signal handlers. Its own GOT (and nobody else's) is pointed at functions that
 * give it what it expects and leave the host process alone.
 */
#ifndef DF_LOADER_HOOKS_H
#define DF_LOADER_HOOKS_H

#include <link.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>

#include "loader/elf.h"
#include "loader/guest.h"

/* Redirects the GOT entries of the loaded object `map`, whose patched image is `elf`, for
 * `guest`, and notes where it keeps its copies of libc's globals.
 * Returns 0, or -ENOEXEC when a relocation table points outside the image. */
int df_hooks_apply(const struct link_map *map, const struct df_elf *elf, struct df_guest *guest);

/* The same for libraries that came with the guest. They are everybody's, and what is hooked is the
 * real function for everybody but a guest. libstdc++, whoever has loaded it, has its abort hooked,
 * which is how an exception that nobody catches ends. */
struct df_hooks_before {
    uintptr_t *bases; /* of what was loaded before the guest */
    size_t count;
};
int df_hooks_look_before(struct df_hooks_before *before);   /* 0 or -ENOMEM */
void df_hooks_apply_to_new(struct df_hooks_before *before); /* frees what `before` holds */

/* The C library, what belongs to it or to the toolchain, and ours: shared with everybody, unhooked.
 */
bool df_hooks_is_exempt(const char *name);

/* What stands for an imported name; NULL: nothing does. */
void *df_hooks_find(const char *name);

/* Writes a slot of the object loaded at `base`. The page may be read-only by now (RELRO); it is
 * made so again. 0 or -errno. */
int df_hooks_write_slot(uintptr_t address, void *value, uintptr_t base, const Elf64_Phdr *segments,
                        size_t count);

#if defined(__x86_64__)
#define SLOT_RELOCATION(type) ((type) == R_X86_64_JUMP_SLOT || (type) == R_X86_64_GLOB_DAT)
#define POINTER_RELOCATION    R_X86_64_64
#define COPY_RELOCATION       R_X86_64_COPY
#elif defined(__aarch64__)
#define SLOT_RELOCATION(type) ((type) == R_AARCH64_JUMP_SLOT || (type) == R_AARCH64_GLOB_DAT)
#define POINTER_RELOCATION    R_AARCH64_ABS64
#define COPY_RELOCATION       R_AARCH64_COPY
#endif

/* One row of a hook table: a name as the program imports it, and what it gets. */
struct df_hook {
    const char *name;
    void *function;
};

extern const struct df_hook df_hooks_process[];     /* hooks_process.c; ends with a NULL name */
extern const struct df_hook df_hooks_child[];       /* hooks_child.c */
extern const struct df_hook df_hooks_signal[];      /* hooks_signal.c */
extern const struct df_hook df_hooks_connection[];  /* hooks_connection.c */
extern const struct df_hook df_hooks_environment[]; /* hooks_environment.c */
extern const struct df_hook df_hooks_library[];     /* hooks_library.c */
extern const struct df_hook df_hooks_getopt[];      /* hooks_getopt.c */
extern const struct df_hook df_hooks_argp[];        /* hooks_argp.c */
extern const struct df_hook df_hooks_path[];        /* hooks_path.c */
extern const struct df_hook df_hooks_output[];      /* hooks_output.c */

/*
 * The guest's process ends: the mount, and what this thread does for it. Inside an op, on a thread
 * of the application, the op fails; on the thread of main df_program_run() returns `status`; else
 * it is a thread of the guest's own.
 */
_Noreturn void df_hooks_end(struct df_guest *guest, int status);

/* exit(3): of a guest, of a child that it has forked, or of the host, by a library of a guest's. */
_Noreturn void df_hooks_exit(int status);

/* chdir(2): of a guest, or of the host, by a library of a guest's. */
int df_hooks_chdir(const char *path);

/* close(2) as the guest means it: not of what is the host's. */
int df_hooks_close(int fd);

/* When its main has returned or called exit(3): what it has given to on_exit(3). */
void df_hooks_run_endings(struct df_guest *guest, int status);

/* The guest's environment, as environ(7) would list it: free it, and not the texts in it. */
char **df_hooks_list_environment(struct df_guest *guest);

/* Of the guest's changes of its environment: makes them real, in a child; frees them. */
void df_hooks_apply_environment(const struct df_guest *guest);
void df_hooks_forget_environment(struct df_guest *guest);

/* Of a guest that may have ended in the middle of getopt(3). */
void df_hooks_forget_scan(const struct df_guest *guest);

/* Says to `out` what getopt_long(3) would refuse first in argv, if it were given `letters` and
 * `names`. False: nothing. */
struct option;
bool df_hooks_complain(FILE *out, int argc, char *const *argv, const char *letters,
                       const struct option *names, bool long_only);

/* write(2), writev(2) and vdprintf(3) without SIGPIPE, where fd is one of the guest's sockets or
 * pipes. */
struct iovec;
ssize_t df_hooks_write_connection(int fd, const void *data, size_t size);
ssize_t df_hooks_writev_connection(int fd, const struct iovec *iov, int count);
int df_hooks_print_connection(int fd, const char *format, va_list arguments);

#endif
