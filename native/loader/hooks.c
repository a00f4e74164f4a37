/*
 * hooks.c - points a loaded program's GOT at the hook tables; see hooks.h.
 */
#include "loader/hooks.h"

#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static const struct df_hook *const tables[] = {
    df_hooks_environment, df_hooks_process, df_hooks_child, df_hooks_signal, df_hooks_connection,
    df_hooks_library,     df_hooks_getopt,  df_hooks_argp,  df_hooks_path,   df_hooks_output,
};

/* All rows, by name. */
enum { HOOKS_MAX = 512 };
static const struct df_hook *sorted[HOOKS_MAX];
static size_t sorted_count;
static pthread_once_t sorted_once = PTHREAD_ONCE_INIT;

static int compare_rows(const void *one, const void *other)
{
    return strcmp((*(const struct df_hook *const *)one)->name,
                  (*(const struct df_hook *const *)other)->name);
}

static void sort_hooks(void)
{
    for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
        for (const struct df_hook *hook = tables[i]; hook->name && sorted_count < HOOKS_MAX; hook++)
            sorted[sorted_count++] = hook;
    qsort(sorted, sorted_count, sizeof(sorted[0]), compare_rows);
}

static int compare_name(const void *name, const void *row)
{
    return strcmp(name, (*(const struct df_hook *const *)row)->name);
}

void *df_hooks_find(const char *name)
{
    pthread_once(&sorted_once, sort_hooks);
    const struct df_hook *const *row =
        bsearch(name, sorted, sorted_count, sizeof(sorted[0]), compare_name);
    return row ? (*row)->function : NULL;
}

int df_hooks_write_slot(uintptr_t address, void *value, uintptr_t base, const Elf64_Phdr *segments,
                        size_t count)
{
    uintptr_t page = address & ~((uintptr_t)getpagesize() - 1);
    if (mprotect((void *)page, getpagesize(), PROT_READ | PROT_WRITE) != 0)
        return -errno;
    *(void *volatile *)address = value;
    for (size_t i = 0; i < count; i++) {
        const Elf64_Phdr *relro = &segments[i];
        uintptr_t start = base + relro->p_vaddr;
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
    else if (strcmp(name, "environ") == 0 || strcmp(name, "__environ") == 0)
        globals->environment = address;
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
    return df_hooks_find(name);
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
        int error = value ? df_hooks_write_slot(address, value, map->l_addr, elf->segments,
                                                elf->segment_count)
                          : 0;
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
