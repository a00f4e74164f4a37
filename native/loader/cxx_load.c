/*
 * cxx_load.c - loading a C++ program; see cxx_load.h.
 */
#include "loader/cxx_load.h"

#include <dlfcn.h>
#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "loader/cxx.h"
#include "loader/elf.h"
#include "loader/hooks.h"
#include "loader/image.h"

enum { LIBRARIES_MAX = 64 }; /* of one program */

struct libraries {
    void *handles[LIBRARIES_MAX];
    size_t count;
};

/* A library that cannot be loaded is the dynamic linker's to name, when it comes to the program. */
static void load_libraries(const struct df_elf *elf, struct libraries *libraries)
{
    for (size_t i = 0; i < elf->dynamic_count && libraries->count < LIBRARIES_MAX; i++) {
        const Elf64_Dyn *entry = &elf->dynamic[i];
        if (entry->d_tag != DT_NEEDED || entry->d_un.d_val >= elf->strings_size)
            continue;
        void *handle = dlopen(elf->strings + entry->d_un.d_val, RTLD_NOW | RTLD_LOCAL);
        if (handle)
            libraries->handles[libraries->count++] = handle;
    }
}

static void close_libraries(struct libraries *libraries)
{
    while (libraries->count > 0)
        dlclose(libraries->handles[--libraries->count]);
}

static const void *find(const struct libraries *libraries, const char *name)
{
    const void *found = NULL;
    for (size_t i = 0; i < libraries->count && !found; i++)
        found = dlsym(libraries->handles[i], name);
    return found;
}

/* libstdc++'s layout: data, size, and room for the data of a short one. */
static bool is_constant_string(uintptr_t begin, size_t size)
{
    uintptr_t words[4];
    if (size != sizeof(words))
        return false;
    memcpy(words, (const void *)begin, sizeof(words));
    return words[0] == begin + 2 * sizeof(words[0]) && words[1] != 0;
}

static bool points_into_itself(const void *object)
{
    Dl_info info;
    const Elf64_Sym *symbol;
    if (!dladdr1(object, &info, (void **)&symbol, RTLD_DL_SYMENT) || !symbol)
        return false;
    const uintptr_t begin = (uintptr_t)object, end = begin + symbol->st_size;
    if (is_constant_string(begin, symbol->st_size))
        return false;
    for (uintptr_t at = begin; at + sizeof(at) <= end; at += sizeof(at)) {
        uintptr_t word;
        memcpy(&word, (const void *)at, sizeof(word));
        if (word >= begin && word < end)
            return true;
    }
    return false;
}

/* The standard streams do, too, and are seen to: cxx.h. */
static bool is_of_the_standard_library(const char *name)
{
    return strncmp(name, "_ZSt", 4) == 0;
}

struct search {
    const struct libraries *libraries;
    const char *broken; /* the name of an object that cannot be copied; NULL: there is none */
};

static bool is_broken_copy(void *argument, const Elf64_Rela *relocation, const Elf64_Sym *symbol,
                           const char *name)
{
    struct search *search = argument;
    const void *object = is_of_the_standard_library(name) ? NULL : find(search->libraries, name);
    (void)relocation;
    (void)symbol;
    if (!object || !points_into_itself(object))
        return false;
    search->broken = name;
    return true;
}

static void *load(int image, const struct df_elf *elf, struct libraries *libraries, char *reason,
                  size_t size)
{
    load_libraries(elf, libraries);
    struct search search = {.libraries = libraries};
    if (df_elf_visit_copies(elf, is_broken_copy, &search)) {
        snprintf(reason, size,
                 "it has a copy of a variable of one of its libraries, %s, which points into "
                 "itself: mount it with placement \"helper\", in a process of its own",
                 search.broken);
        return NULL;
    }
    void *handle = df_image_load(image, RTLD_NOW | RTLD_LOCAL);
    if (!handle)
        snprintf(reason, size, "%s", dlerror());
    return handle;
}

void *df_cxx_load(int image, char *reason, size_t size)
{
    struct libraries libraries = {.count = 0};
    struct df_cxx cxx;
    struct df_elf elf;
    int error = df_image_inspect(image, &elf);
    if (error) {
        snprintf(reason, size, "%s", strerror(-error));
        return NULL;
    }
    df_cxx_begin(&cxx);
    void *handle = load(image, &elf, &libraries, reason, size);
    close_libraries(&libraries);
    df_cxx_end(&cxx);
    df_image_release(&elf);
    return handle;
}
