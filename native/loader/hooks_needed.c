/*
 * hooks_needed.c - the libraries that a guest brings with it get the hooks, too: they print, exit,
 * close standard output and start threads for the guest as it would itself. They stay loaded.
 *
 * Their tables are read from memory, where the dynamic linker has checked and relocated them, and
 * under its lock (dl_iterate_phdr), so that none of them goes meanwhile.
 */
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>

#include "loader/hooks.h"

/* The C library and what belongs to it or to the toolchain: their calls are not the guest's. */
static const char *const exempt[] = {
    "ld-linux", "libc.so",    "libm.so",       "libpthread", "libdl.so",  "librt.so",
    "libgcc_s", "libresolv",  "libnss_",       "libanl",     "libasan",   "libtsan",
    "libubsan", "linux-vdso", "libdirectfuse", "libdf",      "libpython", NULL,
};

bool df_hooks_is_exempt(const char *name)
{
    const char *slash = strrchr(name, '/');
    const char *base = slash ? slash + 1 : name;
    if (base[0] == '\0' || strncmp(name, "/proc/", 6) == 0)
        return true; /* the main program; a guest itself, hooked by its image */
    for (const char *const *prefix = exempt; *prefix; prefix++)
        if (strncmp(base, *prefix, strlen(*prefix)) == 0)
            return true;
    return false;
}

/* ---- what was there before -------------------------------------------------------------- */

static int note_base(struct dl_phdr_info *info, size_t size, void *argument)
{
    struct df_hooks_before *before = argument;
    (void)size;
    uintptr_t *bases = realloc(before->bases, (before->count + 1) * sizeof(*bases));
    if (!bases)
        return 1;
    bases[before->count++] = info->dlpi_addr;
    before->bases = bases;
    return 0;
}

int df_hooks_look_before(struct df_hooks_before *before)
{
    *before = (struct df_hooks_before){0};
    if (dl_iterate_phdr(note_base, before) == 0)
        return 0;
    free(before->bases);
    return -ENOMEM;
}

static bool was_before(const struct df_hooks_before *before, uintptr_t base)
{
    for (size_t i = 0; i < before->count; i++)
        if (before->bases[i] == base)
            return true;
    return false;
}

/* ---- tables of a loaded object ----------------------------------------------------------- */

struct tables {
    uintptr_t base;
    const Elf64_Phdr *segments;
    size_t segment_count;
    const Elf64_Sym *symbols;
    const char *strings;
    const Elf64_Rela *relocations[2]; /* DT_RELA, DT_JMPREL */
    size_t sizes[2];                  /* bytes */
};

/* The dynamic linker of glibc relocates the pointers in place; others leave them as they were. */
static const void *pointer(const struct tables *tables, Elf64_Addr address)
{
    return (const void *)(address < tables->base ? tables->base + address : address);
}

static void read_tables(struct tables *tables, const Elf64_Dyn *entry)
{
    for (; entry->d_tag != DT_NULL; entry++) {
        switch (entry->d_tag) {
        case DT_SYMTAB:
            tables->symbols = pointer(tables, entry->d_un.d_ptr);
            break;
        case DT_STRTAB:
            tables->strings = pointer(tables, entry->d_un.d_ptr);
            break;
        case DT_RELA:
            tables->relocations[0] = pointer(tables, entry->d_un.d_ptr);
            break;
        case DT_RELASZ:
            tables->sizes[0] = entry->d_un.d_val;
            break;
        case DT_JMPREL:
            tables->relocations[1] = pointer(tables, entry->d_un.d_ptr);
            break;
        case DT_PLTRELSZ:
            tables->sizes[1] = entry->d_un.d_val;
            break;
        }
    }
}

static void hook_table(const struct tables *tables, int which, const char *only)
{
    size_t count = tables->relocations[which] ? tables->sizes[which] / sizeof(Elf64_Rela) : 0;
    for (size_t i = 0; i < count; i++) {
        const Elf64_Rela *relocation = &tables->relocations[which][i];
        const Elf64_Sym *symbol = &tables->symbols[ELF64_R_SYM(relocation->r_info)];
        if (!SLOT_RELOCATION(ELF64_R_TYPE(relocation->r_info)) || symbol->st_shndx != SHN_UNDEF)
            continue;
        const char *name = tables->strings + symbol->st_name;
        void *value = !only || strcmp(name, only) == 0 ? df_hooks_find(name) : NULL;
        if (value)
            df_hooks_write_slot(tables->base + relocation->r_offset, value, tables->base,
                                tables->segments, tables->segment_count);
    }
}

static int hook_object(struct dl_phdr_info *info, size_t size, void *argument)
{
    struct tables tables = {
        .base = info->dlpi_addr, .segments = info->dlpi_phdr, .segment_count = info->dlpi_phnum};
    bool cxx = strstr(info->dlpi_name, "/libstdc++.so") != NULL;
    (void)size;
    if (!cxx && (df_hooks_is_exempt(info->dlpi_name) || was_before(argument, info->dlpi_addr)))
        return 0;
    for (size_t i = 0; i < tables.segment_count; i++)
        if (tables.segments[i].p_type == PT_DYNAMIC)
            read_tables(&tables, (const void *)(tables.base + tables.segments[i].p_vaddr));
    if (!tables.symbols || !tables.strings)
        return 0;
    hook_table(&tables, 0, cxx ? "abort" : NULL);
    hook_table(&tables, 1, cxx ? "abort" : NULL);
    return 0;
}

/* ---- they stay --------------------------------------------------------------------------- */

enum { NAME_ROOM = 512, NAMES_MAX = 256 };

struct names {
    const struct df_hooks_before *before;
    char (*list)[NAME_ROOM];
    size_t count;
};

static int note_name(struct dl_phdr_info *info, size_t size, void *argument)
{
    struct names *names = argument;
    (void)size;
    if (names->count < NAMES_MAX && strlen(info->dlpi_name) < NAME_ROOM &&
        !df_hooks_is_exempt(info->dlpi_name) && !was_before(names->before, info->dlpi_addr))
        strcpy(names->list[names->count++], info->dlpi_name);
    return 0;
}

/* A library may leave behind what leads back into its code: threads, destructors of
 * thread-specific values, handlers in other libraries. All mounts share it, so it is kept once. */
static void keep_new(const struct df_hooks_before *before)
{
    struct names names = {.before = before, .list = malloc(NAMES_MAX * sizeof(*names.list))};
    if (!names.list)
        return;
    dl_iterate_phdr(note_name, &names);
    for (size_t i = 0; i < names.count; i++) {
        void *handle = dlopen(names.list[i], RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
        if (handle)
            dlclose(handle);
    }
    free(names.list);
}

void df_hooks_apply_to_new(struct df_hooks_before *before)
{
    df_hooks_find("abort"); /* sorts the tables, before the linker's lock is taken */
    dl_iterate_phdr(hook_object, before);
    keep_new(before);
    free(before->bases);
}
