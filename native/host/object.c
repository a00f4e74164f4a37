/*
 * object.c - reads, checks and loads a plugin's shared object; see object.h.
 *
 * The name given to dlopen. glibc compares it with the names of everything loaded before it opens
 * anything, so a name used twice gives back the older object; and a dlopen that fails because
 * memory is short leaves a name that is never good again. So no name is used twice: the copy is
 * opened as /proc/PID/fd/N, with a serial number spelled into it as "/./" and "//", which mean
 * nothing to the kernel. (Not /proc/self, so that debuggers and profilers can follow the name; for
 * them the descriptor stays open as long as the object is loaded.)
 */
#include "host/object.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host/cxx.h"
#include "host/elf.h"
#include "host/hooks.h"

#define OUR_LIBRARY "libdf3.so.3"
#define BUILD_IT                                                                                   \
    "build it as a shared object (-shared -fPIC) with `pkg-config --cflags --libs "                \
    "directfuse-plugin` in place of fuse3"

/* ---- the private copy -------------------------------------------------------------------- */

/* In the kernel where both file systems allow it, else through a buffer. Returns 0 or -errno. */
static int copy_bytes(int from, int to)
{
    char buffer[65536];
    ssize_t count;
    do
        count = copy_file_range(from, NULL, to, NULL, 1 << 30, 0);
    while (count > 0);
    if (count < 0 && lseek(from, 0, SEEK_CUR) == 0) {
        while ((count = read(from, buffer, sizeof(buffer))) > 0)
            if (write(to, buffer, (size_t)count) != count)
                return -ENOSPC;
    }
    return count < 0 ? -errno : 0;
}

/* Returns the descriptor of a memfd with the file's bytes, or -errno. */
static int copy_file(const char *path)
{
    struct stat st;
    int from = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a FIFO must not keep us */
    if (from < 0)
        return -errno;
    int result = fstat(from, &st) != 0 ? -errno : S_ISREG(st.st_mode) ? 0 : -EACCES;
    int to = result == 0 ? memfd_create("directfuse-plugin", MFD_CLOEXEC) : -1;
    if (result == 0)
        result = to < 0 ? -errno : copy_bytes(from, to);
    close(from);
    if (result == 0)
        return to;
    if (to >= 0)
        close(to);
    return result;
}

/* ---- what it is, from its bytes ----------------------------------------------------------- */

/* Finds a dynamic symbol that has this name, defined or not as asked. The symbols end where their
 * names begin: every linker lays the two tables out so. */
static bool has_symbol(const struct df_elf *elf, const char *name, bool defined)
{
    const char *end = elf->strings;
    for (size_t i = 0; i < elf->symbols_room && (char *)(elf->symbols + i + 1) <= end; i++) {
        const Elf64_Sym *symbol = &elf->symbols[i];
        if ((symbol->st_shndx != SHN_UNDEF) == defined && symbol->st_name < elf->strings_size &&
            strncmp(elf->strings + symbol->st_name, name, elf->strings_size - symbol->st_name) == 0)
            return true;
    }
    return false;
}

static bool imports_one_of(const struct df_elf *elf, const char *const names[])
{
    for (; *names; names++)
        if (has_symbol(elf, *names, false))
            return true;
    return false;
}

/* What leaves a way into a program's code behind: a thread, a destructor of thread-specific values,
 * a timer. The kernel ends all of them with the process; dlclose ends none. (Signal handlers never
 * come so far: hooks_process.c.) */
static const char *const lingering_functions[] = {
    "pthread_create",
    "thrd_create",
    "_ZNSt6thread15_M_start_threadESt10unique_ptrINS_6_StateESt14default_deleteIS1_EEPFvvE",
    "pthread_key_create",
    "tss_create",
    "timer_create",
    NULL,
};

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

static bool needs(const struct df_elf *elf, const char *library)
{
    for (size_t i = 0; i < elf->dynamic_count; i++) {
        const Elf64_Dyn *entry = &elf->dynamic[i];
        if (entry->d_tag == DT_NEEDED && entry->d_un.d_val < elf->strings_size &&
            strcmp(elf->strings + entry->d_un.d_val, library) == 0)
            return true;
    }
    return false;
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
                     "a library or has a libfuse of its own inside; the latter two can be mounted "
                     "through the kernel with `directfuse "
                     "mount`",
                     path);
            break;
        }
        list_needed(elf, list, sizeof(list));
        snprintf(message, size, "%s is not linked to %s but to %s: %s", path, OUR_LIBRARY,
                 list[0] ? list : "nothing", BUILD_IT);
        break;
    case DF_ELF_MALFORMED:
    case DF_ELF_NOT_ELF:
        snprintf(message, size, "%s %s: name a FUSE program or a plugin's shared object", path,
                 df_elf_reason(elf->kind));
        break;
    default:
        snprintf(message, size,
                 "%s %s: it cannot be loaded into a process; mount it through the kernel with "
                 "`directfuse mount`",
                 path, df_elf_reason(elf->kind));
    }
    return -ENOEXEC;
}

/* The copy is mapped shared: patching writes to it. */
static int map_copy(const struct df_object *object, void **data, size_t *size)
{
    struct stat st;
    if (fstat(object->fd, &st) != 0)
        return -errno;
    *size = (size_t)st.st_size;
    *data = NULL;
    if (*size == 0)
        return 0;
    *data = mmap(NULL, *size, PROT_READ | PROT_WRITE, MAP_SHARED, object->fd, 0);
    return *data == MAP_FAILED ? -errno : 0;
}

static int check_elf(struct df_object *object, struct df_elf *elf, const char *path, char *message,
                     size_t size)
{
    object->kind = elf->kind;
    object->abi = elf->abi;
    if (elf->kind == DF_ELF_PROGRAM) {
        object->entry = ((const Elf64_Ehdr *)elf->data)->e_entry;
        if (df_elf_patch(elf) == 0)
            return 0;
        elf->kind = DF_ELF_MALFORMED;
    }
    if (elf->kind != DF_ELF_OBJECT)
        return refuse(elf, path, message, size);
    if (has_symbol(elf, "main", true))
        return 0;
    snprintf(message, size, "%s has no main(): it must be a whole FUSE program; %s", path,
             BUILD_IT);
    return -ENOEXEC;
}

static int check(struct df_object *object, const char *path, char *message, size_t size)
{
    void *data;
    size_t length;
    struct df_elf elf;
    int error = map_copy(object, &data, &length);
    if (error)
        return error;
    df_elf_inspect(&elf, data, length);
    error = check_elf(object, &elf, path, message, size);
    object->cxx = !error && needs(&elf, "libstdc++.so.6");
    if (!error)
        object->lingers = imports_one_of(&elf, lingering_functions);
    if (data)
        munmap(data, length);
    return error;
}

int df_object_read(struct df_object *object, const char *path, char *message, size_t size)
{
    *object = (struct df_object){.fd = copy_file(path)};
    int error = object->fd < 0 ? object->fd : 0;
    message[0] = '\0';
    if (!error)
        error = check(object, path, message, size);
    if (error && message[0] == '\0')
        snprintf(message, size, "%s cannot be read: %s", path, strerror(-error));
    if (error)
        df_object_close(object);
    return error;
}

/* ---- our libraries before it --------------------------------------------------------------- */

/* One object is loaded or unloaded at a time, as in the dynamic linker itself. Recursive: a
 * constructor may load another one. */
static pthread_mutex_t load_lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
/* Under load_lock: our ABI libraries by df_elf_abi; loaded once and never unloaded. */
static void *libraries[DF_ELF_ABI_FUSE34 + 1];

/* It lies beside this library. Test programs that contain this code find it by their run path. */
static void *load_library(const char *name)
{
    char path[PATH_MAX];
    Dl_info here;
    if (dladdr((void *)load_library, &here) && here.dli_fname) {
        const char *slash = strrchr(here.dli_fname, '/');
        int dir_len = slash ? (int)(slash + 1 - here.dli_fname) : 0;
        snprintf(path, sizeof(path), "%.*s%s", dir_len, here.dli_fname, name);
        if (access(path, R_OK) == 0)
            return dlopen(path, RTLD_NOW | RTLD_LOCAL);
    }
    return dlopen(name, RTLD_NOW | RTLD_LOCAL);
}

/* Objects are linked to that of FUSE 3; the others are translators above it. */
static int need_library(enum df_elf_abi abi, const char *plugin, char *message, size_t size)
{
    if (abi == DF_ELF_ABI_NONE)
        abi = DF_ELF_ABI_FUSE3;
    if (!libraries[abi])
        libraries[abi] = load_library(df_elf_our_library(abi));
    if (libraries[abi])
        return 0;
    snprintf(message, size, "%s cannot be loaded, for our own library cannot: %s", plugin,
             dlerror());
    return -ENOEXEC;
}

const void *df_object_map_of(const void *address)
{
    Dl_info info;
    void *map;
    return dladdr1(address, &info, &map, RTLD_DL_LINKMAP) ? map : NULL;
}

/* True unless `scope` leads to an entry point of libfuse that is not ours. */
static bool leads_to_us(void *scope)
{
    void *found = dlsym(scope, "fuse_main_real");
    for (size_t abi = 0; found && abi < sizeof(libraries) / sizeof(libraries[0]); abi++)
        if (libraries[abi] &&
            df_object_map_of(found) == df_object_map_of(dlsym(libraries[abi], "fuse_main_real")))
            return true;
    return !found;
}

/* ---- loading ------------------------------------------------------------------------------ */

static void *open_copy(const struct df_object *object)
{
    static unsigned long last_serial; /* under load_lock */
    char name[256];
    int used = snprintf(name, sizeof(name), "/proc/%d/fd/", (int)getpid());
    for (unsigned long serial = ++last_serial; serial > 0; serial >>= 1)
        used += snprintf(name + used, sizeof(name) - (size_t)used, "%s", serial & 1 ? "./" : "/");
    snprintf(name + used, sizeof(name) - (size_t)used, "%d", object->fd);
    struct df_cxx cxx = {0};
    if (object->cxx)
        df_cxx_begin(&cxx);
    void *handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (object->cxx)
        df_cxx_end(&cxx);
    return handle;
}

/* Points the imports of the loaded object at the hooks. */
static int hook(const struct df_object *object, struct df_guest *guest)
{
    void *data;
    size_t length;
    struct df_elf elf;
    int error = map_copy(object, &data, &length);
    if (error)
        return error;
    df_elf_inspect(&elf, data, length);
    error = df_hooks_apply(object->map, &elf, guest);
    if (!error)
        df_guest_redirect(guest);
    munmap(data, length);
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

static int load(struct df_object *object, struct df_guest *guest, const char *path, char *message,
                size_t size)
{
    int error = need_library(object->abi, path, message, size);
    if (error)
        return error;
    if (!leads_to_us(RTLD_DEFAULT)) {
        snprintf(message, size,
                 "%s cannot be loaded into a process that is itself linked to libfuse3, whose "
                 "functions would come first: start the process without it",
                 path);
        return -ENOEXEC;
    }
    object->handle = open_copy(object);
    if (!object->handle) {
        snprintf(message, size, "%s cannot be loaded: %s", path, dlerror());
        return -ENOEXEC;
    }
    struct link_map *map;
    if (dlinfo(object->handle, RTLD_DI_LINKMAP, &map) == 0)
        object->map = map;
    if (!leads_to_us(object->handle)) {
        snprintf(message, size,
                 "%s needs a library that is linked to the real libfuse, which would make a kernel "
                 "mount: link that library to %s too",
                 path, OUR_LIBRARY);
        return -ENOEXEC;
    }
    error = hook(object, guest);
    return error ? error : find_start(object);
}

int df_object_open(struct df_object *object, struct df_guest *guest, const char *path,
                   char *message, size_t size)
{
    pthread_mutex_lock(&load_lock);
    int error = load(object, guest, path, message, size);
    pthread_mutex_unlock(&load_lock);
    return error;
}

void df_object_close(struct df_object *object)
{
    if (object->handle && !object->lingers) {
        pthread_mutex_lock(&load_lock);
        dlclose(object->handle);
        pthread_mutex_unlock(&load_lock);
    }
    if (object->fd >= 0)
        close(object->fd);
    *object = (struct df_object){.fd = -1};
}
