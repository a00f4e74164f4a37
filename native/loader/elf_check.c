/*
 * elf_check.c - whether what the dynamic linker believes of a program is so: it checks next to
 * nothing, maps what it is told and follows what it finds. See elf.h.
 *
 * Refused are tables outside the segments, segments outside the file or over each other, sizes that
 * overflow. A program whose code is damaged is beyond any check.
 */
#include "loader/elf_check.h"

#include <stdint.h>

#if defined(__x86_64__)
#define LAST_RELOCATION R_X86_64_NUM
#elif defined(__aarch64__)
#define LAST_RELOCATION (R_AARCH64_IRELATIVE + 1)
#endif

enum { ADDRESS_BITS = 40 }; /* a program that spans more is none */

/* ---- segments ---------------------------------------------------------------------------- */

static bool is_sound_load(const struct df_elf *elf, const Elf64_Phdr *load)
{
    const uint64_t limit = (uint64_t)1 << ADDRESS_BITS;
    return load->p_offset <= elf->size && load->p_filesz <= elf->size - load->p_offset &&
           load->p_filesz <= load->p_memsz && load->p_memsz < limit && load->p_vaddr < limit &&
           load->p_align < limit && (load->p_align & (load->p_align - 1)) == 0 &&
           (load->p_align == 0 || (load->p_vaddr - load->p_offset) % load->p_align == 0);
}

bool df_elf_is_whole(const struct df_elf *elf)
{
    for (size_t i = 0; i < elf->segment_count; i++)
        if (elf->segments[i].p_type == PT_LOAD && !is_sound_load(elf, &elf->segments[i]))
            return false;
    return true;
}

/* In ascending order, as the ELF specification has it, in memory and in the file. */
static bool are_sound_loads(const struct df_elf *elf)
{
    const Elf64_Phdr *before = NULL;
    if (!df_elf_is_whole(elf))
        return false;
    for (size_t i = 0; i < elf->segment_count; i++) {
        const Elf64_Phdr *load = &elf->segments[i];
        if (load->p_type != PT_LOAD)
            continue;
        if (before && (load->p_vaddr < before->p_vaddr + before->p_memsz ||
                       load->p_offset < before->p_offset + before->p_filesz))
            return false;
        before = load;
    }
    return before;
}

/* The segment of memory that holds [address, address + size) and has the flags; NULL if none. */
static const Elf64_Phdr *holder(const struct df_elf *elf, uint64_t address, uint64_t size,
                                uint32_t flags)
{
    for (size_t i = 0; i < elf->segment_count; i++) {
        const Elf64_Phdr *load = &elf->segments[i];
        if (load->p_type == PT_LOAD && (load->p_flags & flags) == flags &&
            address >= load->p_vaddr && address - load->p_vaddr < load->p_memsz &&
            size <= load->p_memsz - (address - load->p_vaddr))
            return load;
    }
    return NULL;
}

/* What it names in memory must be there; the dynamic section also where the file has it. */
static bool are_sound_parts(const struct df_elf *elf)
{
    for (size_t i = 0; i < elf->segment_count; i++) {
        const Elf64_Phdr *part = &elf->segments[i];
        bool read = part->p_type == PT_DYNAMIC || part->p_type == PT_GNU_RELRO ||
                    part->p_type == PT_GNU_PROPERTY || part->p_type == PT_NOTE;
        if (!read)
            continue;
        const Elf64_Phdr *load = holder(elf, part->p_vaddr, part->p_memsz, PF_R);
        if (!load)
            return false;
        if (part->p_type == PT_DYNAMIC &&
            (part->p_offset - load->p_offset != part->p_vaddr - load->p_vaddr ||
             !(load->p_flags & PF_W)))
            return false;
        if (part->p_align > 4096 || part->p_filesz > part->p_memsz)
            return false;
    }
    return true;
}

/* ---- the dynamic section ----------------------------------------------------------------- */

static uint64_t value_of(const struct df_elf *elf, int64_t tag, uint64_t otherwise)
{
    for (size_t i = 0; i < elf->dynamic_count; i++)
        if (elf->dynamic[i].d_tag == tag)
            return elf->dynamic[i].d_un.d_val;
    return otherwise;
}

/* We take the first of a tag, the dynamic linker the last. */
static bool has_doubles(const struct df_elf *elf)
{
    for (size_t i = 0; i < elf->dynamic_count; i++)
        for (size_t j = 0; j < i; j++)
            if (elf->dynamic[i].d_tag == elf->dynamic[j].d_tag &&
                elf->dynamic[i].d_tag != DT_NEEDED)
                return true;
    return false;
}

/* A pointer and the size of what it points to. */
static const struct {
    int64_t tag, size_tag; /* size_tag 0: `least` bytes */
    uint64_t least;
    uint32_t flags;
} places[] = {
    {DT_STRTAB, DT_STRSZ, 0, PF_R},
    {DT_SYMTAB, 0, sizeof(Elf64_Sym), PF_R},
    {DT_RELA, DT_RELASZ, 0, PF_R},
    {DT_JMPREL, DT_PLTRELSZ, 0, PF_R},
    {DT_RELR, DT_RELRSZ, 0, PF_R},
    {DT_HASH, 0, 8, PF_R},
    {DT_GNU_HASH, 0, 16, PF_R},
    {DT_VERSYM, 0, 2, PF_R},
    {DT_VERNEED, 0, sizeof(Elf64_Verneed), PF_R},
    {DT_VERDEF, 0, sizeof(Elf64_Verdef), PF_R},
    {DT_PLTGOT, 0, 8, PF_R},
    {DT_INIT, 0, 1, PF_X},
    {DT_FINI, 0, 1, PF_X},
    {DT_INIT_ARRAY, DT_INIT_ARRAYSZ, 0, PF_R},
    {DT_FINI_ARRAY, DT_FINI_ARRAYSZ, 0, PF_R},
    {DT_PREINIT_ARRAY, DT_PREINIT_ARRAYSZ, 0, PF_R},
};

static bool are_sound_places(const struct df_elf *elf)
{
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        uint64_t address = value_of(elf, places[i].tag, 0);
        uint64_t size = places[i].size_tag ? value_of(elf, places[i].size_tag, 0) : places[i].least;
        if (address && !holder(elf, address, size ? size : 1, places[i].flags))
            return false;
    }
    return value_of(elf, DT_SYMENT, sizeof(Elf64_Sym)) == sizeof(Elf64_Sym) &&
           value_of(elf, DT_RELAENT, sizeof(Elf64_Rela)) == sizeof(Elf64_Rela) &&
           value_of(elf, DT_RELRENT, sizeof(Elf64_Relr)) == sizeof(Elf64_Relr) &&
           value_of(elf, DT_PLTREL, DT_RELA) == DT_RELA &&
           value_of(elf, DT_RELACOUNT, 0) <= value_of(elf, DT_RELASZ, 0) / sizeof(Elf64_Rela);
}

/* Names that the dynamic linker reads from the table. */
static bool are_sound_names(const struct df_elf *elf)
{
    static const int64_t tags[] = {DT_SONAME, DT_RPATH, DT_RUNPATH};
    for (size_t i = 0; i < sizeof(tags) / sizeof(tags[0]); i++)
        if (value_of(elf, tags[i], 0) >= elf->strings_size)
            return false;
    return elf->strings_size > 0 && elf->strings[elf->strings_size - 1] == '\0';
}

/* The list of versions: each entry inside, and the list's end in sight. */
static bool are_sound_versions(const struct df_elf *elf)
{
    uint64_t at = value_of(elf, DT_VERNEED, 0), count = value_of(elf, DT_VERNEEDNUM, 0);
    if (!at)
        return count == 0;
    return count < 1000 && holder(elf, at, count * sizeof(Elf64_Verneed), PF_R);
}

/* ---- relocations ------------------------------------------------------------------------- */

static bool is_sound_relocation(const struct df_elf *elf, const Elf64_Rela *relocation)
{
    size_t symbol = ELF64_R_SYM(relocation->r_info);
    return ELF64_R_TYPE(relocation->r_info) < LAST_RELOCATION && symbol < elf->symbols_room &&
           elf->symbols[symbol].st_name < elf->strings_size &&
           holder(elf, relocation->r_offset, 1, PF_W); /* a COPY may be of one byte */
}

static bool are_sound_relocations(const struct df_elf *elf, int64_t table_tag, int64_t size_tag)
{
    const Elf64_Rela *table;
    size_t count;
    if (df_elf_relocations(elf, table_tag, size_tag, &table, &count) != 0)
        return false;
    for (size_t i = 0; i < count; i++)
        if (!is_sound_relocation(elf, &table[i]))
            return false;
    return true;
}

bool df_elf_is_sound(const struct df_elf *elf)
{
    const Elf64_Ehdr *header = (const Elf64_Ehdr *)elf->data;
    return header->e_version == EV_CURRENT && are_sound_loads(elf) && are_sound_parts(elf) &&
           !has_doubles(elf) && are_sound_places(elf) && are_sound_names(elf) &&
           are_sound_versions(elf) && holder(elf, header->e_entry, 1, PF_X) &&
           are_sound_relocations(elf, DT_RELA, DT_RELASZ) &&
           are_sound_relocations(elf, DT_JMPREL, DT_PLTRELSZ);
}
