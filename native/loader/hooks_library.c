/*
 * hooks_library.c - what a guest loads itself: never with the real libfuse behind it.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "loader/guest.h"
#include "loader/hooks.h"
#include "loader/library.h"
#include "loader/plugin.h"

/* Of a thread. Not in thread-local variables, for which glibc has some 1.6 KiB for all libraries
 * like ours (cmake/flags.cmake). */
struct errors {
    char next[512]; /* what dlerror(3) is to say; empty: what the dynamic linker says */
    char said[512];
};

static pthread_key_t errors_key;
static bool have_key;

static void make_key(void)
{
    have_key = pthread_key_create(&errors_key, free) == 0;
}

/* Those of this thread; NULL without memory. */
static struct errors *errors_here(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_key);
    struct errors *errors = have_key ? pthread_getspecific(errors_key) : NULL;
    if (errors || !have_key)
        return errors;
    errors = calloc(1, sizeof(*errors));
    if (errors && pthread_setspecific(errors_key, errors) == 0)
        return errors;
    free(errors);
    return NULL;
}

static void *hook_dlopen(const char *name, int flags)
{
    struct df_guest *guest = df_guest_current();
    struct errors lost, *errors = errors_here();
    if (!errors)
        errors = &lost;
    errors->next[0] = '\0';
    if (!guest)
        return dlopen(name, flags);
    void *handle = df_library_open(guest, name, flags, errors->next, sizeof(errors->next));
    if (!handle && !(flags & RTLD_NOLOAD))
        df_plugin_log(guest->plugin, errors->next);
    return handle;
}

/* A name space of its own would hold a second libc, and the real libfuse. */
static void *hook_dlmopen(Lmid_t space, const char *name, int flags)
{
    struct errors *errors = errors_here();
    if (!df_guest_current())
        return dlmopen(space, name, flags);
    if (errors)
        snprintf(errors->next, sizeof(errors->next),
                 "%s cannot be loaded into a name space of its own here",
                 name ? name : "the program");
    return NULL;
}

static char *hook_dlerror(void)
{
    struct errors *errors = errors_here();
    if (!errors || errors->next[0] == '\0')
        return dlerror();
    snprintf(errors->said, sizeof(errors->said), "%s", errors->next);
    errors->next[0] = '\0';
    return errors->said;
}

const struct df_hook df_hooks_library[] = {
    {"dlopen", hook_dlopen},
    {"dlmopen", hook_dlmopen},
    {"dlerror", hook_dlerror},
    {NULL, NULL},
};
