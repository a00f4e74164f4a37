/*
 * needed.c - the libraries that a program brings with it; see needed.h.
 */
#include "loader/needed.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "loader/hooks.h"
#include "loader/image.h"
#include "loader/library.h"

/* A directory of ld.so.cache is known to the dynamic linker alone: it is asked by loading. */
static char *ask(const char *name)
{
    struct link_map *map;
    void *handle = dlopen(name, RTLD_LAZY | RTLD_LOCAL);
    if (!handle)
        return NULL;
    char *path = dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 ? strdup(map->l_name) : NULL;
    dlclose(handle);
    return path;
}

static char *locate(const char *name)
{
    char path[PATH_MAX];
    if (strchr(name, '/'))
        return strdup(name);
    if (df_library_search(df_library_map_of((const void *)locate), name, path))
        return strdup(path);
    return ask(name);
}

static void view(struct df_elf *elf, const char *path)
{
    struct stat st;
    void *data = MAP_FAILED;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0)
        data = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (fd >= 0)
        close(fd);
    *elf = (struct df_elf){0};
    if (data != MAP_FAILED)
        df_elf_inspect(elf, data, (size_t)st.st_size);
}

static bool is_known(const struct df_needed *needed, const char *name)
{
    for (size_t i = 0; i < needed->count; i++)
        if (strcmp(needed->list[i].name, name) == 0)
            return true;
    return false;
}

static void add(struct df_needed *needed, const char *name)
{
    if (needed->count == DF_NEEDED_MAX || df_hooks_is_exempt(name) || is_known(needed, name))
        return;
    struct df_needed_library *library = &needed->list[needed->count];
    *library = (struct df_needed_library){.name = name, .path = locate(name)};
    if (!library->path)
        return;
    view(&library->elf, library->path);
    needed->count++;
}

static void add_all(struct df_needed *needed, const struct df_elf *elf)
{
    for (size_t i = 0; i < elf->dynamic_count; i++) {
        const char *name = elf->dynamic[i].d_tag == DT_NEEDED
                               ? df_elf_string(elf, elf->dynamic[i].d_un.d_val)
                               : NULL;
        if (name)
            add(needed, name);
    }
}

void df_needed_find(struct df_needed *needed, const struct df_elf *program)
{
    needed->count = 0;
    add_all(needed, program);
    for (size_t i = 0; i < needed->count; i++)
        add_all(needed, &needed->list[i].elf);
}

void df_needed_forget(struct df_needed *needed)
{
    while (needed->count > 0) {
        struct df_needed_library *library = &needed->list[--needed->count];
        df_image_release(&library->elf);
        free(library->path);
    }
}

static bool has_unique_symbol(const struct df_needed_library *library)
{
    const struct df_elf *elf = &library->elf;
    if (strncmp(library->name, "libstdc++.so.", strlen("libstdc++.so.")) == 0)
        return false;
    for (size_t i = 0, count = df_elf_symbol_count(elf); i < count; i++) {
        const Elf64_Sym *symbol = &elf->symbols[i];
        if (ELF64_ST_BIND(symbol->st_info) == STB_GNU_UNIQUE && symbol->st_shndx != SHN_UNDEF)
            return true;
    }
    return false;
}

bool df_needed_stays(const struct df_elf *program)
{
    struct df_needed *needed = calloc(1, sizeof(*needed));
    bool stays = !needed;
    if (!needed)
        return stays;
    df_needed_find(needed, program);
    for (size_t i = 0; i < needed->count && !stays; i++)
        stays = has_unique_symbol(&needed->list[i]);
    df_needed_forget(needed);
    free(needed);
    return stays;
}
