/*
 * elf.h - reads and patches the image of a FUSE program, in memory, before anything of it runs.
 *
 * dlopen(3) loads shared objects; a FUSE program is a position-independent executable, linked to
 * the real libfuse. Three things stand between them, and all three are fields of the file:
 *   - DF_1_PIE, for which glibc (2.30 and later) refuses to dlopen an executable;
 *   - the DT_NEEDED name of libfuse, which must become ours: with the real library behind it the
 *     program would make a real mount;
 *   - COPY relocations. glibc skips the object itself in the look-up only for the main program, so
 *     in a dlopen'ed one a COPY finds its own zeros (a NULL stdout). Marked undefined, the symbol
 * is found where it was meant to be. The image is hostile until proven otherwise: every offset is
 * checked against its size.
 */
#ifndef DF_LOADER_ELF_H
#define DF_LOADER_ELF_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What an image is. Everything but DF_ELF_PROGRAM and DF_ELF_OBJECT is refused, before anything
 * runs. */
enum df_elf_kind {
    DF_ELF_PROGRAM,   /* dynamic PIE linked to libfuse: can be loaded once patched */
    DF_ELF_OBJECT,    /* shared object linked to our libfuse ABI */
    DF_ELF_NOT_ELF,   /* neither ELF nor a script */
    DF_ELF_SCRIPT,    /* "#!": its interpreter is the program */
    DF_ELF_MALFORMED, /* truncated, or headers that contradict themselves */
    DF_ELF_FOREIGN,   /* another machine, class or byte order */
    DF_ELF_STATIC,    /* no interpreter or no dynamic section: libfuse, if any, is inside */
    DF_ELF_FIXED,     /* ET_EXEC: must run at the addresses it was linked for */
    DF_ELF_TLS,       /* PT_TLS: local-exec code would read and overwrite the host's own TLS */
    DF_ELF_NO_FUSE,   /* does not link to libfuse: no FUSE program, or libfuse is inside */
    DF_ELF_REAL_FUSE, /* a shared object linked to the real libfuse: would make a real mount */
    DF_ELF_UNLINKED,  /* ET_REL: what `gcc -c` makes */
};

/* Which libfuse it links to. */
enum df_elf_abi {
    DF_ELF_ABI_NONE,
    DF_ELF_ABI_FUSE2,  /* libfuse.so.2 */
    DF_ELF_ABI_FUSE3,  /* libfuse3.so.3 */
    DF_ELF_ABI_FUSE34, /* libfuse3.so.4 */
};

/* A view of an image; the image belongs to the caller and outlives the view. */
struct df_elf {
    unsigned char *data;
    size_t size; /* bytes */
    enum df_elf_kind kind;
    enum df_elf_abi abi;  /* the real libfuse that it links to */
    enum df_elf_abi ours; /* our libfuse that it links to, as a shared object built for us does */
    bool executable;      /* a program, not a shared object; known once its tables were read */
    const Elf64_Phdr *segments;
    size_t segment_count;
    Elf64_Dyn *dynamic;
    size_t dynamic_count; /* entries before DT_NULL */
    char *strings;
    size_t strings_size;
    Elf64_Sym *symbols; /* symbols_room entries fit before the end of the image */
    size_t symbols_room;
    size_t needed; /* offset in `strings` of the libfuse name; valid when abi is not NONE */
};

/* Looks at an image and says in elf->kind what it is. Never fails, never writes. */
void df_elf_inspect(struct df_elf *elf, void *data, size_t size);

/* Whether it names that library among those it needs. */
bool df_elf_needs(const struct df_elf *elf, const char *library);

/* Calls visit() for each COPY relocation of a program until it returns true; what it returned. */
typedef bool df_elf_visitor(void *argument, const Elf64_Rela *relocation, const Elf64_Sym *symbol,
                            const char *name);
bool df_elf_visit_copies(const struct df_elf *program, df_elf_visitor *visit, void *argument);

/* Makes a DF_ELF_PROGRAM loadable: see above. Of a DF_ELF_REAL_FUSE, a library that such a program
 * loads, libfuse becomes ours. Writes to the image.
 * Returns 0, or -ENOEXEC when a relocation or name points outside the image. */
int df_elf_patch(struct df_elf *elf);

/* The relocation table of a DT_RELA/DT_RELASZ or DT_JMPREL/DT_PLTRELSZ pair; count 0 when there is
 * none. Returns 0, or -ENOEXEC when it is not inside the image. */
int df_elf_relocations(const struct df_elf *elf, int64_t table_tag, int64_t size_tag,
                       const Elf64_Rela **table, size_t *count);

/* The dynamic entry with this tag; NULL if there is none. */
Elf64_Dyn *df_elf_dynamic(const struct df_elf *elf, int64_t tag);

/* The NUL-terminated name at an offset of the string table; NULL if it does not end inside. */
char *df_elf_string(const struct df_elf *elf, uint64_t offset);

/* How many dynamic symbols there are. */
size_t df_elf_symbol_count(const struct df_elf *elf);

/* The dynamic symbol of this name, defined by the image or not, as asked; NULL if there is none. */
const Elf64_Sym *df_elf_symbol(const struct df_elf *elf, const char *name, bool defined);

/* Whether code may write to this address of the image once it is loaded. */
bool df_elf_is_variable(const struct df_elf *elf, uint64_t address);

/* One clause for a message: "is statically linked", "has thread-local storage ...". */
const char *df_elf_reason(enum df_elf_kind kind);

/* "libfuse3.so.3" and so on; NULL for DF_ELF_ABI_NONE. */
const char *df_elf_library(enum df_elf_abi abi);

/* The SONAME of our library for that ABI, never longer than the real one. */
const char *df_elf_our_library(enum df_elf_abi abi);

#endif
