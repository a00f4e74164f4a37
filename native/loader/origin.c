/*
 * origin.c - loads the libraries that lie beside a program; see origin.h.
 */
#include "loader/origin.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Its run path; NULL: it has none. */
static const char *run_path_of(const struct df_elf *elf)
{
    const Elf64_Dyn *entry = df_elf_dynamic(elf, DT_RUNPATH);

    if (!entry)
        entry = df_elf_dynamic(elf, DT_RPATH);
    return entry ? df_elf_string(elf, entry->d_un.d_val) : NULL;
}

/* What follows $ORIGIN, with which the directory begins; NULL: it does not. */
static const char *behind_origin(const char *directory)
{
    static const char *const spellings[] = {"$ORIGIN", "${ORIGIN}"};

    for (size_t i = 0; i < sizeof(spellings) / sizeof(spellings[0]); i++) {
        size_t length = strlen(spellings[i]);
        if (strncmp(directory, spellings[i], length) == 0 && strchr("/:", directory[length]))
            return directory + length;
    }
    return NULL;
}

/* The first of the directories that has it. False: none has, or one that the linker finds. */
static bool find(const char *run_path, const char *here, const char *name, char path[PATH_MAX])
{
    while (*run_path) {
        const char *rest = behind_origin(run_path), *from = rest ? rest : run_path;
        size_t length = strcspn(from, ":");
        int used = snprintf(path, PATH_MAX, "%s%.*s/%s", rest ? here : "", (int)length, from, name);
        if (used < PATH_MAX && access(path, R_OK) == 0)
            return rest != NULL;
        run_path = from + length + (from[length] == ':');
    }
    return false;
}

static bool is_loaded(const char *name)
{
    void *handle = dlopen(name, RTLD_LAZY | RTLD_NOLOAD);

    if (handle)
        dlclose(handle);
    return handle;
}

void df_origin_load(struct df_origin *origin, const struct df_elf *elf, const char *path)
{
    const char *run_path = run_path_of(elf);
    char here[PATH_MAX], found[PATH_MAX];

    origin->count = 0;
    if (!run_path || !strstr(run_path, "ORIGIN") || !realpath(path, here))
        return;
    *strrchr(here, '/') = '\0';
    for (size_t i = 0; i < elf->dynamic_count && origin->count < DF_ORIGIN_MAX; i++) {
        const Elf64_Dyn *entry = &elf->dynamic[i];
        const char *name = entry->d_tag == DT_NEEDED ? df_elf_string(elf, entry->d_un.d_val) : NULL;
        if (!name || is_loaded(name) || !find(run_path, here, name, found))
            continue;
        void *handle = dlopen(found, RTLD_NOW | RTLD_LOCAL);
        if (handle)
            origin->handles[origin->count++] = handle;
    }
}

void df_origin_close(struct df_origin *origin)
{
    while (origin->count > 0)
        dlclose(origin->handles[--origin->count]);
}
