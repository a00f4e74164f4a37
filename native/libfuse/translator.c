/*
 * translator.c - the other half of libdf2.so.2: see translator.h.
 */
#include "libfuse/translator.h"

#include <string.h>

#include "highlevel/highlevel.h"
#include "libfuse/abi.h"

struct fuse_fs *df3_layer_new(const struct fuse_operations *op, size_t op_size, void *user_data,
                              void (*discard)(void *user_data))
{
    struct fuse_fs *fs = df_abi_fs_new(op, op_size, user_data);
    if (fs)
        fs->discard = discard;
    return fs;
}

void df3_adopt(struct fuse *f, void *above, bool bears_null)
{
    f->above = above;
    df_highlevel_need_paths(f->session->fs);
    if (bears_null)
        df_highlevel_bear_null(f->session->fs);
}

void *df3_adopter(const struct fuse *f)
{
    return f->above;
}

/* ---- modules ------------------------------------------------------------------------------ */

/* Each plugin has its own list, through its own memory: with the plugin the list is gone. */
static pthread_mutex_t modules_lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic(void *) outside; /* the list of a program started by hand */

static _Atomic(void *) *list_of(struct df_plugin *plugin)
{
    return plugin ? df_plugin_word(plugin, DF_PLUGIN_MODULES) : &outside;
}

/* Called by constructors of the program, on its main thread. */
void df3_register_module(struct df3_module *module)
{
    _Atomic(void *) *list = list_of(df_abi_plugin(module));
    pthread_mutex_lock(&modules_lock);
    module->next = atomic_load(list);
    atomic_store(list, module);
    pthread_mutex_unlock(&modules_lock);
}

const struct df3_module *df3_find_module(const char *name)
{
    pthread_mutex_lock(&modules_lock);
    const struct df3_module *module = atomic_load(list_of(df_plugin_self()));
    while (module && strcmp(module->name, name) != 0)
        module = module->next;
    pthread_mutex_unlock(&modules_lock);
    return module;
}
