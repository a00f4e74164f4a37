/*
 * object.c - checks and loads a plugin's shared object or a program; see object.h.
 */
#include "loader/object.h"
#include "core/lend.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "loader/cxx_load.h"
#include "loader/elf.h"
#include "loader/hooks.h"
#include "loader/image.h"
#include "loader/library.h"
#include "loader/needed.h"
#include "loader/origin.h"

#define OUR_LIBRARY "libdf3.so.3"
#define BUILD_IT                                                                                   \
    "build it as a shared object (-shared -fPIC) with `pkg-config --cflags --libs "                \
    "directfuse-plugin` in place of fuse3"

/* ---- what it is, from its bytes ----------------------------------------------------------- */

/* What leaves a way into a program's code behind, unseen: threads that a library makes for it,
 * destructors of thread-specific values, timers. The kernel ends all of them with the process;
 * dlclose ends none. (Signal handlers never come so far, and its own threads are counted: hooks_*.)
 */
static const char *const lingering_functions[] = {
    "_ZNSt6thread15_M_start_threadESt10unique_ptrINS_6_StateESt14default_deleteIS1_EEPFvvE",
    "pthread_key_create",
    "tss_create",
    "timer_create",
    "g_thread_new",
    "g_thread_try_new",
    "g_thread_pool_new",
    "g_main_loop_new",
    NULL,
};

bool df_object_lingers(const struct df_elf *elf)
{
    for (const char *const *name = lingering_functions; *name; name++)
        if (df_elf_symbol(elf, *name, false))
            return true;
    return false;
}

/* AddressSanitizer ends a process that it comes into later than other libraries. The one that it is
 * linked to, if this process was not begun with it; else NULL. */
static const char *late_sanitizer(const struct df_elf *elf)
{
    for (size_t i = 0; i < elf->dynamic_count; i++) {
        const Elf64_Dyn *entry = &elf->dynamic[i];
        const char *name = entry->d_tag == DT_NEEDED ? df_elf_string(elf, entry->d_un.d_val) : NULL;
        if (!name || (strncmp(name, "libasan.so", 10) != 0 && strncmp(name, "libhwasan.so", 12)))
            continue;
        void *there = dlopen(name, RTLD_LAZY | RTLD_NOLOAD);
        if (!there)
            return name;
        dlclose(there);
    }
    return NULL;
}

static int refuse_sanitizer(const struct df_elf *elf, const char *path, const char *name,
                            char *message, size_t size)
{
    if (elf->executable)
        snprintf(message, size,
                 "%s is linked to %s, which would end this process, because it is not its first "
                 "library: mount it with placement \"helper\", in a process of its own",
                 path, name);
    else
        snprintf(message, size,
                 "%s is linked to %s, which would end this process, because it is not its first "
                 "library: start the process with LD_PRELOAD=%s",
                 path, name, name);
    return -ENOEXEC;
}

/* Objects of Qt belong to the thread that makes them and hear of events by that thread's loop. A
 * program with a loop of its own has one such thread, and its operations run on their callers'
 * (docs/decisions/159). Qt, if it is such a program; else NULL. */
static const char *qt_of_own_loop(const struct df_elf *elf)
{
    static const char *const libraries[] = {"libQt5Core.so.5", "libQt6Core.so.6"};

    if (!df_elf_symbol(elf, "fuse_session_process_buf", false))
        return NULL;
    for (size_t i = 0; i < sizeof(libraries) / sizeof(libraries[0]); i++)
        if (df_elf_needs(elf, libraries[i]))
            return libraries[i];
    return NULL;
}

static int refuse_qt(const char *path, const char *name, char *message, size_t size)
{
    snprintf(message, size,
             "%s is linked to %s, whose objects belong to the thread of its loop; its operations "
             "would run on other threads: mount it with placement \"helper\", in a process of its "
             "own",
             path, name);
    return -ENOEXEC;
}

/* "libm.so.6, libc.so.6": what it is linked to. */
static void list_needed(const struct df_elf *elf, char *list, size_t size)
{
    size_t used = 0;
    list[0] = '\0';
    for (size_t i = 0; i < elf->dynamic_count && used < size; i++) {
        const Elf64_Dyn *entry = &elf->dynamic[i];
        if (entry->d_tag != DT_NEEDED || entry->d_un.d_val >= elf->strings_size)
            continue;
        used += (size_t)snprintf(list + used, size - used, "%s%s", used ? ", " : "",
                                 elf->strings + entry->d_un.d_val);
    }
}

static int refuse(const struct df_elf *elf, const char *path, char *message, size_t size)
{
    char list[256];
    switch (elf->kind) {
    case DF_ELF_REAL_FUSE:
        snprintf(message, size, "%s is linked to %s, which would make a kernel mount: %s", path,
                 df_elf_library(elf->abi), BUILD_IT);
        break;
    case DF_ELF_NO_FUSE:
        if (elf->executable) {
            snprintf(message, size,
                     "%s does not link to libfuse: it is no FUSE program, or leaves FUSE to "
                     "a library or has a libfuse of its own inside; the latter two run with "
                     "placement \"helper\", in a process of their own",
                     path);
            break;
        }
        list_needed(elf, list, sizeof(list));
        snprintf(message, size, "%s is not linked to %s but to %s: %s", path, OUR_LIBRARY,
                 list[0] ? list : "nothing", BUILD_IT);
        break;
    case DF_ELF_UNLINKED:
        snprintf(message, size, "%s %s: %s", path, df_elf_reason(elf->kind), BUILD_IT);
        break;
    case DF_ELF_MALFORMED:
    case DF_ELF_NOT_ELF:
        snprintf(message, size, "%s %s: name a FUSE program or a plugin's shared object", path,
                 df_elf_reason(elf->kind));
        break;
    default:
        snprintf(message, size,
                 "%s %s: it cannot be loaded into a process; mount it with placement "
                 "\"helper\", in a process of its own",
                 path, df_elf_reason(elf->kind));
    }
    return -ENOEXEC;
}

static int check_elf(struct df_object *object, struct df_elf *elf, const char *path, char *message,
                     size_t size)
{
    object->kind = elf->kind;
    object->abi = elf->abi != DF_ELF_ABI_NONE ? elf->abi : elf->ours;
    if (elf->kind == DF_ELF_PROGRAM) {
        object->entry = ((const Elf64_Ehdr *)elf->data)->e_entry;
        if (df_elf_patch(elf) == 0)
            return 0;
        elf->kind = DF_ELF_MALFORMED;
    }
    if (elf->kind != DF_ELF_OBJECT)
        return refuse(elf, path, message, size);
    if (df_elf_symbol(elf, "main", true))
        return 0;
    snprintf(message, size, "%s has no main(): it must be a whole FUSE program; %s", path,
             BUILD_IT);
    return -ENOEXEC;
}

static int check(struct df_object *object, const char *path, char *message, size_t size)
{
    struct df_elf elf;
    int error = df_image_inspect(object->fd, &elf);
    if (error)
        return error;
    error = check_elf(object, &elf, path, message, size);
    const char *sanitizer = error ? NULL : late_sanitizer(&elf);
    if (sanitizer)
        error = refuse_sanitizer(&elf, path, sanitizer, message, size);
    const char *qt = error ? NULL : qt_of_own_loop(&elf);
    if (qt)
        error = refuse_qt(path, qt, message, size);
    object->cxx = !error && df_elf_needs(&elf, "libstdc++.so.6");
    if (!error)
        object->lingers = df_object_lingers(&elf);
    if (!error)
        object->constructors = df_constructors_hold_back(&elf);
    object->main_moves = object->kind == DF_ELF_OBJECT && !error &&
                         df_elf_symbol(&elf, "directfuse_main_moves", true);
    df_image_release(&elf);
    return error;
}

int df_object_read(struct df_object *object, const char *path, char *message, size_t size)
{
    *object = (struct df_object){.fd = df_image_copy(path)};
    int error = object->fd < 0 ? object->fd : 0;
    message[0] = '\0';
    if (!error)
        error = check(object, path, message, size);
    if ((error == -EPERM || error == -ENOSYS) && access(path, R_OK) == 0)
        snprintf(message, size, "%s cannot be loaded: memfd_create(2) is refused here: %s", path,
                 strerror(-error));
    else if (error && message[0] == '\0')
        snprintf(message, size, "%s cannot be read: %s", path, strerror(-error));
    if (error)
        df_object_close(object);
    return error;
}

/* ---- loading ------------------------------------------------------------------------------ */

static void *open_copy(struct df_object *object, struct df_guest *guest, char *reason, size_t size)
{
    if (object->cxx)
        return df_cxx_load(object->fd, reason, size);
    return df_companions_load(&object->companions, object->fd, guest, reason, size);
}

/* The libraries that lie beside `path` first. */
static void *open_beside(struct df_object *object, struct df_guest *guest, const char *path,
                         char *reason, size_t size)
{
    struct df_origin origin;
    struct df_elf elf;
    int error = df_image_inspect(object->fd, &elf);
    if (error) {
        snprintf(reason, size, "%s", strerror(-error));
        return NULL;
    }
    df_origin_load(&origin, &elf, path);
    df_image_release(&elf);
    void *handle = open_copy(object, guest, reason, size);
    df_origin_close(&origin);
    return handle;
}

/* Loads it with the libraries it needs, and hooks those that it brings. */
static int open_with_libraries(struct df_object *object, struct df_guest *guest, const char *path,
                               char *message, size_t size)
{
    struct df_hooks_before before;
    char reason[512] = "";
    if (df_hooks_look_before(&before) != 0) {
        snprintf(message, size, "%s cannot be loaded: memory is short", path);
        return -ENOMEM;
    }
    object->handle = open_beside(object, guest, path, reason, sizeof(reason));
    object->lingers |= object->companions.linger;
    df_hooks_apply_to_new(&before);
    if (object->handle)
        return 0;
    if (access("/proc/self/fd", F_OK) != 0) /* where the loader opens its copy: see image.c */
        snprintf(message, size, "%s cannot be loaded: /proc is not mounted", path);
    else
        snprintf(message, size, "%s cannot be loaded: %s", path, reason);
    return -ENOEXEC;
}

/* Points the imports of the loaded object at the hooks. A program gives its libraries pointers into
 * itself without a thought (literals, functions, vtables), for it is the last to go: one of a
 * library that stays has to stay as well (docs/decisions/054). */
static int hook(struct df_object *object, struct df_guest *guest)
{
    struct df_elf elf;
    int error = df_image_inspect(object->fd, &elf);
    if (error)
        return error;
    error = df_hooks_apply(object->map, &elf, guest);
    if (!error)
        df_guest_redirect(guest);
    if (!error && !object->lingers && object->kind == DF_ELF_PROGRAM)
        object->lingers = df_needed_stays(&elf);
    df_image_release(&elf);
    return error;
}

/* Where it begins. */
static int find_start(struct df_object *object)
{
    const struct link_map *map = object->map;
    if (object->kind == DF_ELF_PROGRAM)
        object->start = (void *)(map->l_addr + object->entry);
    else
        *(void **)&object->main = dlsym(object->handle, "main");
    return object->start || object->main ? 0 : -ENOEXEC;
}

static bool states(const struct df_object *object, const char *constant)
{
    const unsigned *stated = dlsym(object->handle, constant);
    return stated && *stated == 1;
}

/* What it exports for us: docs/decisions/014. */
static void find_extras(struct df_object *object)
{
    object->checks_names = states(object, "directfuse_posix_names");
    object->shortens = states(object, "directfuse_posix_copies");
    object->getattr_at = dlsym(object->handle, "directfuse_getattr_at");
    void (*lend)(void *(*take)(size_t size), void (*give)(void *memory));
    *(void **)&lend = dlsym(object->handle, "directfuse_lend");
    if (lend)
        lend(df_lend_take, df_lend_give);
}

static int load(struct df_object *object, struct df_guest *guest, const char *path, char *message,
                size_t size)
{
    int error = df_library_need(object->abi, path, message, size);
    if (error)
        return error;
    if (!df_library_leads_to_us(RTLD_DEFAULT)) {
        snprintf(message, size,
                 "%s cannot be loaded into a process that is itself linked to libfuse3, whose "
                 "functions would come first: start the process without it",
                 path);
        return -ENOEXEC;
    }
    error = open_with_libraries(object, guest, path, message, size);
    if (error)
        return error;
    struct link_map *map;
    if (dlinfo(object->handle, RTLD_DI_LINKMAP, &map) == 0)
        guest->map = object->map = map;
    if (!df_library_leads_to_us(object->handle)) {
        snprintf(message, size,
                 "%s needs a library that is linked to the real libfuse, which would make a kernel "
                 "mount: link that library to %s too",
                 path, OUR_LIBRARY);
        return -ENOEXEC;
    }
    find_extras(object);
    error = hook(object, guest);
    return error ? error : find_start(object);
}

int df_object_open(struct df_object *object, struct df_guest *guest, const char *path,
                   char *message, size_t size)
{
    df_library_lock();
    int error = load(object, guest, path, message, size);
    df_library_unlock();
    return error;
}

void df_object_close(struct df_object *object)
{
    if (object->handle && !object->lingers) {
        df_library_lock();
        dlclose(object->handle);
        df_companions_close(&object->companions);
        df_library_unlock();
    }
    if (object->fd >= 0)
        close(object->fd);
    *object = (struct df_object){.fd = -1};
}
