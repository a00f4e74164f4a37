/*
 * library.c - shared libraries around a loaded program; see library.h.
 */
#include "loader/library.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loader/hooks.h"
#include "loader/image.h"

static pthread_mutex_t load_lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;

/* ---- fork(2): who loads does not exist in the child, and libc's own lock would stay with it ----
 */

static void before_fork(void)
{
    pthread_mutex_lock(&load_lock);
}

static void in_parent(void)
{
    pthread_mutex_unlock(&load_lock);
}

/* Its owner is a thread of the parent. */
static void in_child(void)
{
    static const pthread_mutex_t fresh = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;

    load_lock = fresh;
}

static void register_fork(void)
{
    pthread_atfork(before_fork, in_parent, in_child);
}

void df_library_lock(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, register_fork);
    pthread_mutex_lock(&load_lock);
}

void df_library_unlock(void)
{
    pthread_mutex_unlock(&load_lock);
}

/* ---- ours ----------------------------------------------------------------------------------- */

/* Under load_lock: our ABI libraries by df_elf_abi; loaded once and never unloaded. */
static void *libraries[DF_ELF_ABI_FUSE34 + 1];

/* It lies beside this library. Test programs that contain this code find it by their run path. */
static void *load_library(const char *name, int flags)
{
    char path[PATH_MAX];
    Dl_info here;
    if (dladdr((void *)load_library, &here) && here.dli_fname) {
        const char *slash = strrchr(here.dli_fname, '/');
        int dir_len = slash ? (int)(slash + 1 - here.dli_fname) : 0;
        snprintf(path, sizeof(path), "%.*s%s", dir_len, here.dli_fname, name);
        if (access(path, R_OK) == 0)
            return dlopen(path, RTLD_NOW | RTLD_LOCAL | flags);
    }
    return dlopen(name, RTLD_NOW | RTLD_LOCAL | flags);
}

static bool have_library(enum df_elf_abi abi, int flags)
{
    if (!libraries[abi])
        libraries[abi] = load_library(df_elf_our_library(abi), flags);
    return libraries[abi] != NULL;
}

/* Objects are linked to that of FUSE 3; the others are translators above it. */
int df_library_need(enum df_elf_abi abi, const char *plugin, char *message, size_t size)
{
    if (have_library(DF_ELF_ABI_FUSE3, 0) && (abi == DF_ELF_ABI_NONE || have_library(abi, 0)))
        return 0;
    snprintf(message, size, "%s cannot be loaded, for our own library cannot: %s", plugin,
             dlerror());
    return -ENOEXEC;
}

const void *df_library_map_of(const void *address)
{
    Dl_info info;
    void *map;
    return dladdr1(address, &info, &map, RTLD_DL_LINKMAP) ? map : NULL;
}

/* RTLD_NOLOAD: a Python file system may have brought along one that no program has needed yet. */
static bool is_of(enum df_elf_abi abi, const void *address)
{
    return have_library(abi, RTLD_NOLOAD) &&
           df_library_map_of(address) == df_library_map_of(dlsym(libraries[abi], "fuse_main_real"));
}

bool df_library_leads_to_us(void *scope)
{
    const void *found = dlsym(scope, "fuse_main_real");
    return !found || is_of(DF_ELF_ABI_FUSE2, found) || is_of(DF_ELF_ABI_FUSE3, found) ||
           is_of(DF_ELF_ABI_FUSE34, found);
}

/* ---- those of a guest ------------------------------------------------------------------------ */

bool df_library_search(const void *map, const char *name, char path[PATH_MAX])
{
    Dl_serinfo sizes, *directories;
    bool found = false;
    if (dlinfo((void *)map, RTLD_DI_SERINFOSIZE, &sizes) != 0 ||
        !(directories = malloc(sizes.dls_size)))
        return false;
    *directories = sizes;
    if (dlinfo((void *)map, RTLD_DI_SERINFO, directories) == 0)
        for (unsigned i = 0; i < directories->dls_cnt && !found; i++)
            found = snprintf(path, PATH_MAX, "%s/%s", directories->dls_serpath[i].dls_name, name) <
                        PATH_MAX &&
                    access(path, R_OK) == 0;
    free(directories);
    return found;
}

/* A copy of the library at `path` with our libfuse in the place of the real one, which is elf->abi.
 * Returns its descriptor; -1: it is of elf->kind, which is not linked to libfuse, or the dynamic
 * linker may say what is wrong with it. */
static int copy_linked_to_us(const char *path, struct df_elf *elf)
{
    int fd = df_image_copy(path);
    if (fd < 0 || df_image_inspect(fd, elf) != 0) {
        if (fd >= 0)
            close(fd);
        return -1;
    }
    bool patched = elf->kind == DF_ELF_REAL_FUSE && df_elf_patch(elf) == 0;
    df_image_release(elf);
    if (patched)
        return fd;
    close(fd);
    return -1;
}

static void hook(void *handle, int fd, struct df_guest *guest)
{
    struct df_elf elf;
    struct link_map *map;
    if (dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0 || df_image_inspect(fd, &elf) != 0)
        return;
    df_hooks_apply(map, &elf, guest);
    df_image_release(&elf);
}

static void *load_copy(struct df_guest *guest, int fd, enum df_elf_abi abi, const char *name,
                       int flags, char *message, size_t size)
{
    void *handle = NULL;
    if (df_library_need(abi, name, message, size) == 0) {
        handle = df_image_load(fd, flags & ~RTLD_GLOBAL);
        if (handle)
            hook(handle, fd, guest);
        else
            snprintf(message, size, "%s", dlerror());
    }
    close(fd);
    return handle;
}

static void *load_as_it_is(const char *name, int flags, char *message, size_t size)
{
    void *handle = dlopen(name, flags);
    if (!handle) {
        const char *reason = dlerror(); /* NULL: RTLD_NOLOAD, and it is not loaded */
        snprintf(message, size, "%s", reason ? reason : "");
        return NULL;
    }
    if (df_library_leads_to_us(handle))
        return handle;
    dlclose(handle);
    snprintf(message, size,
             "%s needs a library that is linked to the real libfuse, which would make a kernel "
             "mount: mount the program with placement \"helper\", in a process of its own",
             name);
    return NULL;
}

/* What is to touch a library that is cut short would be ended by SIGBUS. */
static void *load_at(struct df_guest *guest, const char *name, int flags, char *message,
                     size_t size)
{
    struct df_elf elf = {.kind = DF_ELF_NO_FUSE};
    bool is_path = strchr(name, '/') && !(flags & RTLD_NOLOAD);
    int fd = is_path ? copy_linked_to_us(name, &elf) : -1;
    if (fd >= 0)
        return load_copy(guest, fd, elf.abi, name, flags, message, size);
    if (elf.kind != DF_ELF_MALFORMED)
        return load_as_it_is(name, flags, message, size);
    snprintf(message, size, "%s %s", name, df_elf_reason(elf.kind));
    return NULL;
}

void *df_library_open(struct df_guest *guest, const char *name, int flags, char *message,
                      size_t size)
{
    char found[PATH_MAX], room[DF_GUEST_PATH_ROOM];
    message[0] = '\0';
    if (!name || !name[0]) /* the program itself: to the dynamic linker that is the host */
        name = ((const struct link_map *)guest->map)->l_name;
    else if (strchr(name, '/'))
        name = df_guest_path(guest, name, room);
    else if (df_library_search(guest->map, name, found))
        name = found;
    df_library_lock();
    void *handle = load_at(guest, name, flags, message, size);
    df_library_unlock();
    return handle;
}
