/*
 * hooks_library.c - what a guest loads itself: never with the real libfuse behind it.
 */
#include <dlfcn.h>
#include <stdio.h>

#include "loader/guest.h"
#include "loader/hooks.h"
#include "loader/library.h"
#include "loader/plugin.h"

/* What dlerror(3) is to say next on this thread; empty: what the dynamic linker says. */
static _Thread_local char last_error[512];

static void *hook_dlopen(const char *name, int flags)
{
    struct df_guest *guest = df_guest_current();
    last_error[0] = '\0';
    if (!guest)
        return dlopen(name, flags);
    void *handle = df_library_open(guest, name, flags, last_error, sizeof(last_error));
    if (!handle && !(flags & RTLD_NOLOAD))
        df_plugin_log(guest->plugin, last_error);
    return handle;
}

/* A name space of its own would hold a second libc, and the real libfuse. */
static void *hook_dlmopen(Lmid_t space, const char *name, int flags)
{
    if (!df_guest_current())
        return dlmopen(space, name, flags);
    snprintf(last_error, sizeof(last_error),
             "%s cannot be loaded into a name space of its own here", name ? name : "the program");
    return NULL;
}

static char *hook_dlerror(void)
{
    static _Thread_local char said[sizeof(last_error)];
    if (last_error[0] == '\0')
        return dlerror();
    snprintf(said, sizeof(said), "%s", last_error);
    last_error[0] = '\0';
    return said;
}

const struct df_hook df_hooks_library[] = {
    {"dlopen", hook_dlopen},
    {"dlmopen", hook_dlmopen},
    {"dlerror", hook_dlerror},
    {NULL, NULL},
};
