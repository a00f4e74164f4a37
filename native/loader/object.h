/*
 * object.h - the code of a plugin: found fit, copied, loaded. Either a shared object linked to our
 * libfuse ABI, or an unmodified FUSE program, whose copy is patched (elf.h).
 *
 * Each load maps a copy of its own (a memfd), so two mounts of one plugin share no globals. Whether
 * an object can be loaded is read from its bytes (elf.h) before the dynamic linker sees it.
 */
#ifndef DF_LOADER_OBJECT_H
#define DF_LOADER_OBJECT_H

#include <stdbool.h>
#include <stddef.h>

#include "loader/companion.h"
#include "loader/constructors.h"
#include "loader/elf.h"
#include "loader/guest.h"
#include "loader/program.h"

struct df_object {
    int fd;                /* the memfd; open as long as it is loaded, see object.c */
    enum df_elf_kind kind; /* DF_ELF_OBJECT or DF_ELF_PROGRAM */
    enum df_elf_abi abi;   /* of a program: which libfuse it was linked to */
    size_t entry;          /* of a program: its _start, from the load address on */
    bool cxx;              /* needs libstdc++: see cxx.h */
    bool checks_names;     /* it states that: docs/decisions/014 */
    bool shortens;         /* the same, of its copy_file_range: df_fs.shortens */
    void *getattr_at;      /* its function of that name, or NULL: likewise */
    bool main_moves;       /* it states that: docs/decisions/015 */
    bool lingers;          /* it may be used after main has returned: threads, keys, libraries */
    void *handle;          /* of dlopen */
    struct df_companions companions;
    struct df_constructors constructors; /* held back: df_program_run() runs them */
    const void *map;       /* its struct link_map: which object an address belongs to */
    df_main_function main; /* of an object */
    void *start;           /* of a program: its _start */
};

/*
 * Reads the file into a private copy and checks that it is a plugin for this machine: a shared
 * object, linked to our libfuse ABI and not to the real one, with a main(); or a dynamic
 * position-independent program linked to the real one, whose copy is made ours. Nothing of it runs.
 * Returns 0, or -errno with one line in `message` that names the file, the reason and the remedy:
 * as open(2); -ENOEXEC; -ENOMEM.
 */
int df_object_read(struct df_object *object, const char *path, char *message, size_t size);

/*
 * Loads the copy, after our libfuse ABI library; the constructors of its libraries run, its own do
 * not. Then its imports are hooked for `guest` (hooks.h). `path` is for messages.
 * Returns 0, or -ENOEXEC with a message: a symbol is missing, or the real libfuse would come first.
 */
int df_object_open(struct df_object *object, struct df_guest *guest, const char *path,
                   char *message, size_t size);

/* Whether code of the image may run after main has returned: threads of others, destructors of
 * thread-specific values, timers. */
bool df_object_lingers(const struct df_elf *elf);

/* Unloads what is loaded (destructors and atexit handlers run) and drops the copy. One that lingers
 * stays mapped until the process ends. */
void df_object_close(struct df_object *object);

#endif
