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

#include "host/elf.h"

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

static const char *const getopt_functions[] = {
    "getopt",
    "getopt_long",
    "getopt_long_only",
    NULL,
};

/* What leaves a way into a program's code behind: a thread, a destructor of thread-specific values,
 * a signal's handler, a timer. The kernel ends all of them with the process; dlclose ends none. */
static const char *const lingering_functions[] = {
    "pthread_create",
    "thrd_create",
    "_ZNSt6thread15_M_start_threadESt10unique_ptrINS_6_StateESt14default_deleteIS1_EEPFvvE",
    "pthread_key_create",
    "tss_create",
    "signal",
    "sigaction",
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

static int refuse(const struct df_elf *elf, const char *path, char *message, size_t size)
{
    char list[256];
    switch (elf->kind) {
    case DF_ELF_PROGRAM:
        snprintf(message, size, "%s is an executable linked to %s: %s", path,
                 df_elf_library(elf->abi), BUILD_IT);
        break;
    case DF_ELF_REAL_FUSE:
        snprintf(message, size, "%s is linked to %s, which would make a kernel mount: %s", path,
                 df_elf_library(elf->abi), BUILD_IT);
        break;
    case DF_ELF_NO_FUSE:
        list_needed(elf, list, sizeof(list));
        snprintf(message, size, "%s is not linked to %s but to %s: %s", path, OUR_LIBRARY,
                 list[0] ? list : "nothing", BUILD_IT);
        break;
    case DF_ELF_MALFORMED:
    case DF_ELF_NOT_ELF:
        snprintf(message, size, "%s %s: name a plugin's shared object", path,
                 df_elf_reason(elf->kind));
        break;
    default:
        snprintf(message, size, "%s %s: %s", path, df_elf_reason(elf->kind), BUILD_IT);
    }
    return -ENOEXEC;
}

static int check(struct df_object *object, const char *path, char *message, size_t size)
{
    struct stat st;
    struct df_elf elf;
    if (fstat(object->fd, &st) != 0)
        return -errno;
    void *data = st.st_size == 0
                     ? NULL
                     : mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, object->fd, 0);
    if (data == MAP_FAILED)
        return -errno;
    df_elf_inspect(&elf, data, (size_t)st.st_size);
    int error = 0;
    if (elf.kind != DF_ELF_OBJECT) {
        error = refuse(&elf, path, message, size);
    } else if (!has_symbol(&elf, "main", true)) {
        snprintf(message, size, "%s has no main(): it must be a whole FUSE program; %s", path,
                 BUILD_IT);
        error = -ENOEXEC;
    } else {
        object->uses_getopt = imports_one_of(&elf, getopt_functions);
        object->lingers = imports_one_of(&elf, lingering_functions);
    }
    if (data)
        munmap(data, (size_t)st.st_size);
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

/* ---- our library before it ---------------------------------------------------------------- */

/* One object is loaded or unloaded at a time, as in the dynamic linker itself. Recursive: a
 * constructor may load another one. */
static pthread_mutex_t load_lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static void *library; /* under load_lock: our ABI library; loaded once and never unloaded */

/* It lies beside this library. Test programs that contain this code find it by their run path. */
static void *load_library(void)
{
    char path[PATH_MAX];
    Dl_info here;
    if (dladdr((void *)load_library, &here) && here.dli_fname) {
        const char *slash = strrchr(here.dli_fname, '/');
        int dir_len = slash ? (int)(slash + 1 - here.dli_fname) : 0;
        snprintf(path, sizeof(path), "%.*s%s", dir_len, here.dli_fname, OUR_LIBRARY);
        if (access(path, R_OK) == 0)
            return dlopen(path, RTLD_NOW | RTLD_LOCAL);
    }
    return dlopen(OUR_LIBRARY, RTLD_NOW | RTLD_LOCAL);
}

static int need_library(const char *plugin, char *message, size_t size)
{
    if (!library)
        library = load_library();
    if (library)
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
    static const char *const entries[] = {"fuse_main_real", "fuse_session_new"};
    for (size_t i = 0; i < sizeof(entries) / sizeof(entries[0]); i++) {
        void *found = dlsym(scope, entries[i]);
        if (found && df_object_map_of(found) != df_object_map_of(dlsym(library, entries[i])))
            return false;
    }
    return true;
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
    return dlopen(name, RTLD_NOW | RTLD_LOCAL);
}

static int load(struct df_object *object, const char *path, char *message, size_t size)
{
    int error = need_library(path, message, size);
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
    *(void **)&object->main = dlsym(object->handle, "main");
    return object->main ? 0 : -ENOEXEC;
}

int df_object_open(struct df_object *object, const char *path, char *message, size_t size)
{
    pthread_mutex_lock(&load_lock);
    int error = load(object, path, message, size);
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
