/*
 * translator.h - what libdf2.so.2, a translator above this library, needs beside libfuse's own
 * functions (libfuse2/real.h). Exported as DIRECTFUSE_3; nobody else's business.
 */
#ifndef DF_LIBFUSE_TRANSLATOR_H
#define DF_LIBFUSE_TRANSLATOR_H

#include <stdbool.h>
#include <stddef.h>

struct fuse;
struct fuse_args;
struct fuse_fs;
struct fuse_operations;
struct fuse_session;

/* fuse_fs_new() with a function that frees user_data when the layer goes before its init has run,
 * so that no destroy is due. */
struct fuse_fs *df3_layer_new(const struct fuse_operations *op, size_t op_size, void *user_data,
                              void (*discard)(void *user_data));

/* Says that `f` is a FUSE 2 file system, whose own handle is `above`: its chmod, chown and utimens
 * need paths. `bears_null`: that of a file which has none any more may be NULL. Before its loop. */
void df3_adopt(struct fuse *f, void *above, bool bears_null);

/* fuse_session_fd(se) is readable when `fd` is, an eventfd(2) with EFD_SEMAPHORE that can be read
 * once. Before the session's loop. 0 or -errno. */
int df3_session_share_fd(struct fuse_session *se, int fd);

/* What df3_adopt() was given. */
void *df3_adopter(const struct fuse *f);

/* A module that a FUSE 2 program brings with it. The program owns it; <fuse.h> of FUSE 2 has it so.
 */
struct df3_module {
    const char *name;
    /* Makes a layer above layers[0], of the options in args; NULL when it cannot. */
    struct fuse_fs *(*factory)(struct fuse_args *args, struct fuse_fs *layers[]);
    struct df3_module *next; /* of the same plugin; under translator.c's lock */
    void *object;
    int uses;
};

/* Makes the module known to -o modules= of the plugin whose code or thread this is. */
void df3_register_module(struct df3_module *module);

/* A module of this thread's plugin by its name; NULL. */
const struct df3_module *df3_find_module(const char *name);

#endif
