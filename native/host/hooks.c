/*
 * hooks.c - points a loaded program's GOT at the hook tables; see hooks.h.
 */
#include "host/hooks.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#if defined(__x86_64__)
#define SLOT_RELOCATION(type) ((type) == R_X86_64_JUMP_SLOT || (type) == R_X86_64_GLOB_DAT)
#define POINTER_RELOCATION    R_X86_64_64
#define COPY_RELOCATION       R_X86_64_COPY
#elif defined(__aarch64__)
#define SLOT_RELOCATION(type) ((type) == R_AARCH64_JUMP_SLOT || (type) == R_AARCH64_GLOB_DAT)
#define POINTER_RELOCATION    R_AARCH64_ABS64
#define COPY_RELOCATION       R_AARCH64_COPY
#endif

static const struct df_hook *const tables[] = {
    df_hooks_process, df_hooks_child,  df_hooks_signal, df_hooks_connection,
    df_hooks_library, df_hooks_getopt, df_hooks_path,   df_hooks_output,
};

static void *find_hook(const char *name)
{
    for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
        for (const struct df_hook *hook = tables[i]; hook->name; hook++)
            if (strcmp(hook->name, name) == 0)
                return hook->function;
    return NULL;
}

/* The page may be read-only by now (RELRO); it is made so again. */
static int write_slot(uintptr_t address, void *value, const struct link_map *map,
                      const struct df_elf *elf)
{
    uintptr_t page = address & ~((uintptr_t)getpagesize() - 1);
    if (mprotect((void *)page, getpagesize(), PROT_READ | PROT_WRITE) != 0)
        return -errno;
    *(void **)address = value;
    for (size_t i = 0; i < elf->segment_count; i++) {
        const Elf64_Phdr *relro = &elf->segments[i];
        uintptr_t start = map->l_addr + relro->p_vaddr;
        if (relro->p_type == PT_GNU_RELRO && address >= start && address < start + relro->p_memsz &&
            page >= (start & ~(uintptr_t)4095) && page + getpagesize() <= start + relro->p_memsz)
            mprotect((void *)page, getpagesize(), PROT_READ);
    }
    return 0;
}

static const char *name_of(const struct df_elf *elf, const Elf64_Rela *relocation)
{
    size_t index = ELF64_R_SYM(relocation->r_info);
    if (index == 0 || index >= elf->symbols_room)
        return NULL;
    size_t name = elf->symbols[index].st_name;
    return name < elf->strings_size ? elf->strings + name : NULL;
}

static void note_global(struct df_guest_globals *globals, const char *name, void *address)
{
    if (strcmp(name, "optarg") == 0)
        globals->optarg = address;
    else if (strcmp(name, "optind") == 0)
        globals->optind = address;
    else if (strcmp(name, "opterr") == 0)
        globals->opterr = address;
    else if (strcmp(name, "optopt") == 0)
        globals->optopt = address;
    else if (strcmp(name, "stdout") == 0)
        globals->stdout_stream = address;
    else if (strcmp(name, "stderr") == 0)
        globals->stderr_stream = address;
    else if (strcmp(name, "_ZSt4cout") == 0)
        globals->cxx_streams[0] = address;
    else if (strcmp(name, "_ZSt4cerr") == 0)
        globals->cxx_streams[1] = address;
    else if (strcmp(name, "_ZSt4clog") == 0)
        globals->cxx_streams[2] = address;
}

/* What the slot of an imported name is to hold; NULL: what it holds. Code that reaches `stdout`
 * through the GOT, as all of a shared object does, finds the guest's own pointer. */
static void *replacement(const char *name, struct df_guest *guest)
{
    if (strcmp(name, "stdout") == 0 || strcmp(name, "stderr") == 0)
        return &guest->output;
    return find_hook(name);
}

static int apply_table(const struct link_map *map, const struct df_elf *elf,
                       const Elf64_Rela *table, size_t count, struct df_guest *guest)
{
    for (size_t i = 0; i < count; i++) {
        const char *name = name_of(elf, &table[i]);
        uint32_t type = ELF64_R_TYPE(table[i].r_info);
        uintptr_t address = map->l_addr + table[i].r_offset;
        if (!name)
            continue;
        if (type == COPY_RELOCATION)
            note_global(&guest->globals, name, (void *)address);
        if (!SLOT_RELOCATION(type) && type != POINTER_RELOCATION)
            continue;
        void *value = replacement(name, guest);
        int error = value ? write_slot(address, value, map, elf) : 0;
        if (error)
            return error;
    }
    return 0;
}

int df_hooks_apply(const struct link_map *map, const struct df_elf *elf, struct df_guest *guest)
{
    static const struct {
        int64_t table, size;
    } kinds[] = {{DT_RELA, DT_RELASZ}, {DT_JMPREL, DT_PLTRELSZ}};

    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        const Elf64_Rela *table;
        size_t count;
        int error = df_elf_relocations(elf, kinds[i].table, kinds[i].size, &table, &count);
        if (!error)
            error = apply_table(map, elf, table, count, guest);
        if (error)
            return error;
    }
    return 0;
}
