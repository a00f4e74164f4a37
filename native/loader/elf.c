/*
 * elf.c - reads and patches the image of a FUSE program; see elf.h for what and why.
 */
#include "loader/elf.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "loader/elf_check.h"

#if defined(__x86_64__)
#define OUR_MACHINE     EM_X86_64
#define COPY_RELOCATION R_X86_64_COPY
#elif defined(__aarch64__)
#define OUR_MACHINE     EM_AARCH64
#define COPY_RELOCATION R_AARCH64_COPY
#else
#error "no ELF machine known for this architecture"
#endif

static const struct {
    const char *real;
    const char *ours;
} libraries[] = {
    [DF_ELF_ABI_FUSE2] = {"libfuse.so.2", "libdf2.so.2"},
    [DF_ELF_ABI_FUSE3] = {"libfuse3.so.3", "libdf3.so.3"},
    [DF_ELF_ABI_FUSE34] = {"libfuse3.so.4", "libdf4.so.4"},
};

enum { ABI_COUNT = sizeof(libraries) / sizeof(libraries[0]) };

const char *df_elf_library(enum df_elf_abi abi)
{
    return libraries[abi].real;
}

const char *df_elf_our_library(enum df_elf_abi abi)
{
    return libraries[abi].ours;
}

const char *df_elf_reason(enum df_elf_kind kind)
{
    switch (kind) {
    case DF_ELF_PROGRAM:
    case DF_ELF_OBJECT:
        return "can be loaded";
    case DF_ELF_NOT_ELF:
        return "is no program (neither ELF nor a script)";
    case DF_ELF_SCRIPT:
        return "is a script, whose interpreter cannot be loaded into this process";
    case DF_ELF_MALFORMED:
        return "is truncated or damaged (its ELF headers contradict themselves)";
    case DF_ELF_FOREIGN:
        return "is built for another machine";
    case DF_ELF_STATIC:
        return "is statically linked";
    case DF_ELF_FIXED:
        return "is not position-independent";
    case DF_ELF_TLS:
        return "has thread-local storage of an executable, which would overwrite this process's";
    case DF_ELF_NO_FUSE:
        return "does not link to libfuse";
    case DF_ELF_REAL_FUSE:
        return "is a shared object linked to the real libfuse, which would make a kernel mount";
    case DF_ELF_UNLINKED:
        return "is an object file that has not been linked";
    }
    return "is unknown";
}

/* ---- the image, with every access checked ----------------------------------------------- */

/* `count` elements of `each` bytes at file offset `offset`, suitably aligned; NULL if not inside.
 */
static void *at_offset(const struct df_elf *elf, uint64_t offset, uint64_t count, size_t each,
                       size_t align)
{
    if (offset > elf->size || count > (elf->size - offset) / each || offset % align != 0)
        return NULL;
    return elf->data + offset;
}

/* The same for a virtual address, through the PT_LOAD that holds it; *room is how many bytes of
 * file stand behind it in that segment. */
static void *at_address(const struct df_elf *elf, uint64_t address, size_t align, size_t *room)
{
    for (size_t i = 0; i < elf->segment_count; i++) {
        const Elf64_Phdr *load = &elf->segments[i];
        if (load->p_type != PT_LOAD || address < load->p_vaddr ||
            address - load->p_vaddr >= load->p_filesz)
            continue;
        uint64_t into = address - load->p_vaddr;
        *room = load->p_filesz - into;
        if (load->p_offset > UINT64_MAX - into)
            return NULL;
        return at_offset(elf, load->p_offset + into, *room, 1, align);
    }
    return NULL;
}

static const Elf64_Phdr *find_segment(const struct df_elf *elf, uint32_t type)
{
    for (size_t i = 0; i < elf->segment_count; i++)
        if (elf->segments[i].p_type == type)
            return &elf->segments[i];
    return NULL;
}

Elf64_Dyn *df_elf_dynamic(const struct df_elf *elf, int64_t tag)
{
    for (size_t i = 0; i < elf->dynamic_count; i++)
        if (elf->dynamic[i].d_tag == tag)
            return &elf->dynamic[i];
    return NULL;
}

char *df_elf_string(const struct df_elf *elf, uint64_t offset)
{
    if (offset >= elf->strings_size ||
        !memchr(elf->strings + offset, '\0', elf->strings_size - offset))
        return NULL;
    return elf->strings + offset;
}

/* ---- inspecting ------------------------------------------------------------------------- */

static enum df_elf_kind read_header(struct df_elf *elf, const Elf64_Ehdr **out)
{
    if (elf->size >= 2 && memcmp(elf->data, "#!", 2) == 0)
        return DF_ELF_SCRIPT;
    if (elf->size < SELFMAG || memcmp(elf->data, ELFMAG, SELFMAG) != 0)
        return DF_ELF_NOT_ELF;
    const Elf64_Ehdr *header = at_offset(elf, 0, 1, sizeof(*header), 1);
    if (!header)
        return DF_ELF_MALFORMED;
    if (header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_ident[EI_DATA] != ELFDATA2LSB ||
        header->e_machine != OUR_MACHINE)
        return DF_ELF_FOREIGN;
    if (header->e_type == ET_REL)
        return DF_ELF_UNLINKED;
    if (header->e_phentsize != sizeof(Elf64_Phdr))
        return DF_ELF_MALFORMED;
    elf->segments = at_offset(elf, header->e_phoff, header->e_phnum, sizeof(Elf64_Phdr), 8);
    if (!elf->segments)
        return DF_ELF_MALFORMED;
    elf->segment_count = header->e_phnum;
    *out = header;
    return DF_ELF_PROGRAM;
}

static bool read_dynamic(struct df_elf *elf, const Elf64_Phdr *segment)
{
    size_t room = segment->p_filesz / sizeof(Elf64_Dyn);
    elf->dynamic = at_offset(elf, segment->p_offset, room, sizeof(Elf64_Dyn), 8);
    if (!elf->dynamic)
        return false;
    while (elf->dynamic_count < room && elf->dynamic[elf->dynamic_count].d_tag != DT_NULL)
        elf->dynamic_count++;
    return elf->dynamic_count < room;
}

static bool read_tables(struct df_elf *elf)
{
    const Elf64_Dyn *strings = df_elf_dynamic(elf, DT_STRTAB);
    const Elf64_Dyn *strings_size = df_elf_dynamic(elf, DT_STRSZ);
    const Elf64_Dyn *symbols = df_elf_dynamic(elf, DT_SYMTAB);
    if (!strings || !strings_size || !symbols)
        return false;
    size_t room;
    elf->strings = at_address(elf, strings->d_un.d_ptr, 1, &room);
    if (!elf->strings || strings_size->d_un.d_val > room)
        return false;
    elf->strings_size = strings_size->d_un.d_val;
    elf->symbols = at_address(elf, symbols->d_un.d_ptr, 8, &room);
    elf->symbols_room = elf->symbols ? room / sizeof(Elf64_Sym) : 0;
    return elf->symbols;
}

/* Finds the libfuse among the needed libraries. Returns false when a name is not inside. */
static bool read_needed(struct df_elf *elf)
{
    for (size_t i = 0; i < elf->dynamic_count; i++) {
        if (elf->dynamic[i].d_tag != DT_NEEDED)
            continue;
        const char *name = df_elf_string(elf, elf->dynamic[i].d_un.d_val);
        if (!name)
            return false;
        for (size_t abi = DF_ELF_ABI_FUSE2; abi < ABI_COUNT; abi++) {
            if (strcmp(name, libraries[abi].ours) == 0)
                elf->ours = (enum df_elf_abi)abi;
            if (strcmp(name, libraries[abi].real) == 0) {
                elf->abi = (enum df_elf_abi)abi;
                elf->needed = elf->dynamic[i].d_un.d_val;
            }
        }
    }
    return true;
}

/* A PIE says so in DT_FLAGS_1; linkers before binutils 2.26 did not, but gave it an interpreter. */
static bool is_executable(const struct df_elf *elf)
{
    const Elf64_Dyn *flags = df_elf_dynamic(elf, DT_FLAGS_1);
    return (flags && (flags->d_un.d_val & DF_1_PIE)) || find_segment(elf, PT_INTERP);
}

static enum df_elf_kind inspect(struct df_elf *elf)
{
    const Elf64_Ehdr *header;
    enum df_elf_kind kind = read_header(elf, &header);
    if (kind != DF_ELF_PROGRAM)
        return kind;
    const Elf64_Phdr *dynamic = find_segment(elf, PT_DYNAMIC);
    if (header->e_type == ET_EXEC)
        return find_segment(elf, PT_INTERP) ? DF_ELF_FIXED : DF_ELF_STATIC;
    if (header->e_type != ET_DYN)
        return DF_ELF_MALFORMED;
    if (!dynamic)
        return DF_ELF_STATIC;
    if (!read_dynamic(elf, dynamic) || !read_tables(elf) || !read_needed(elf))
        return DF_ELF_MALFORMED;
    elf->executable = is_executable(elf);
    if (!elf->executable) {
        if (!df_elf_is_whole(elf))
            return DF_ELF_MALFORMED;
        if (elf->abi != DF_ELF_ABI_NONE)
            return DF_ELF_REAL_FUSE;
        return elf->ours != DF_ELF_ABI_NONE ? DF_ELF_OBJECT : DF_ELF_NO_FUSE;
    }
    if (!find_segment(elf, PT_INTERP))
        return DF_ELF_STATIC;
    if (elf->abi == DF_ELF_ABI_NONE)
        return DF_ELF_NO_FUSE;
    if (find_segment(elf, PT_TLS))
        return DF_ELF_TLS;
    return df_elf_is_sound(elf) ? DF_ELF_PROGRAM : DF_ELF_MALFORMED;
}

void df_elf_inspect(struct df_elf *elf, void *data, size_t size)
{
    *elf = (struct df_elf){.data = data, .size = size};
    elf->kind = inspect(elf);
}

bool df_elf_needs(const struct df_elf *elf, const char *name)
{
    for (size_t i = 0; i < elf->dynamic_count; i++) {
        const char *found = elf->dynamic[i].d_tag == DT_NEEDED
                                ? df_elf_string(elf, elf->dynamic[i].d_un.d_val)
                                : NULL;
        if (found && strcmp(found, name) == 0)
            return true;
    }
    return false;
}

bool df_elf_visit_copies(const struct df_elf *program, df_elf_visitor *visit, void *argument)
{
    const Elf64_Rela *table;
    size_t count;
    if (df_elf_relocations(program, DT_RELA, DT_RELASZ, &table, &count) != 0)
        return false;
    for (size_t i = 0; i < count; i++) {
        size_t index = ELF64_R_SYM(table[i].r_info);
        if (ELF64_R_TYPE(table[i].r_info) != COPY_RELOCATION || index >= program->symbols_room)
            continue;
        const Elf64_Sym *symbol = &program->symbols[index];
        const char *name = df_elf_string(program, symbol->st_name);
        if (name && visit(argument, &table[i], symbol, name))
            return true;
    }
    return false;
}

/* ---- patching --------------------------------------------------------------------------- */

/* The version-needs entry names the library by the same string, so both follow. The string may
 * also be the tail of no other: a DT_NEEDED name is never a suffix of a symbol's. */
static int rename_library(struct df_elf *elf)
{
    char *name = df_elf_string(elf, elf->needed);
    const char *ours = libraries[elf->abi].ours;
    if (!name || strlen(ours) > strlen(name))
        return -ENOEXEC;
    strcpy(name, ours);
    return 0;
}

int df_elf_relocations(const struct df_elf *elf, int64_t table_tag, int64_t size_tag,
                       const Elf64_Rela **table, size_t *count)
{
    const Elf64_Dyn *where = df_elf_dynamic(elf, table_tag);
    const Elf64_Dyn *table_size = df_elf_dynamic(elf, size_tag);
    *count = 0;
    if (!where || !table_size)
        return 0;
    size_t room;
    *table = at_address(elf, where->d_un.d_ptr, 8, &room);
    if (!*table || table_size->d_un.d_val > room)
        return -ENOEXEC;
    *count = table_size->d_un.d_val / sizeof(Elf64_Rela);
    return 0;
}

/* The symbols end where their names begin: every linker lays the two tables out so. */
size_t df_elf_symbol_count(const struct df_elf *elf)
{
    const char *first = (const char *)elf->symbols;
    size_t count = elf->strings > first ? (size_t)(elf->strings - first) / sizeof(Elf64_Sym) : 0;

    return count < elf->symbols_room ? count : elf->symbols_room;
}

/* `size`: bytes of the name and its NUL. */
static bool is_named(const struct df_elf *elf, const Elf64_Sym *symbol, const char *name,
                     size_t size)
{
    return symbol->st_name < elf->strings_size && elf->strings_size - symbol->st_name >= size &&
           memcmp(elf->strings + symbol->st_name, name, size) == 0;
}

const Elf64_Sym *df_elf_symbol(const struct df_elf *elf, const char *name, bool defined)
{
    size_t size = strlen(name) + 1;

    for (size_t i = 0, count = df_elf_symbol_count(elf); i < count; i++) {
        const Elf64_Sym *symbol = &elf->symbols[i];

        if ((symbol->st_shndx != SHN_UNDEF) == defined && is_named(elf, symbol, name, size))
            return symbol;
    }
    return NULL;
}

bool df_elf_is_variable(const struct df_elf *elf, uint64_t address)
{
    bool writable = false;
    for (size_t i = 0; i < elf->segment_count; i++) {
        const Elf64_Phdr *segment = &elf->segments[i];
        if (address < segment->p_vaddr || address - segment->p_vaddr >= segment->p_memsz)
            continue;
        if (segment->p_type == PT_GNU_RELRO)
            return false;
        writable |= segment->p_type == PT_LOAD && (segment->p_flags & PF_W);
    }
    return writable;
}

static int undefine_copies(struct df_elf *elf)
{
    const Elf64_Rela *table;
    size_t count;
    int error = df_elf_relocations(elf, DT_RELA, DT_RELASZ, &table, &count);
    for (size_t i = 0; !error && i < count; i++) {
        if (ELF64_R_TYPE(table[i].r_info) != COPY_RELOCATION)
            continue;
        size_t index = ELF64_R_SYM(table[i].r_info);
        if (index >= elf->symbols_room)
            return -ENOEXEC;
        elf->symbols[index].st_shndx = SHN_UNDEF;
        elf->symbols[index].st_value = 0;
    }
    return error;
}

int df_elf_patch(struct df_elf *elf)
{
    if (elf->kind == DF_ELF_REAL_FUSE)
        return rename_library(elf);
    if (elf->kind != DF_ELF_PROGRAM)
        return -ENOEXEC;
    Elf64_Dyn *flags = df_elf_dynamic(elf, DT_FLAGS_1);
    if (flags)
        flags->d_un.d_val &= ~(Elf64_Xword)DF_1_PIE;
    int error = rename_library(elf);
    return error ? error : undefine_copies(elf);
}
