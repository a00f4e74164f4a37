/*
 * image_head.c - what a file is to execve(2), by one read of its beginning.
 */
#include "intercept/image_head.h"

#include "intercept/mem.h"

#include <linux/elf.h>

_Static_assert(sizeof(Elf64_Ehdr) == DFI_HEAD_MIN, "image_head.h");

static const Elf64_Ehdr *elf_of(const struct dfi_head *head)
{
    return (const Elf64_Ehdr *)head->bytes;
}

/* The kernel asks for no class and no byte order. */
static bool is_native_elf(const struct dfi_head *head)
{
    const Elf64_Ehdr *elf = elf_of(head);
    return elf->e_machine == EM_X86_64 && (elf->e_type == ET_EXEC || elf->e_type == ET_DYN) &&
           elf->e_phentsize == sizeof(Elf64_Phdr);
}

/* A part of the file, if it lies in the head. */
static const void *part_of(const struct dfi_head *head, unsigned long offset, size_t size)
{
    bool there = offset <= head->size && size <= head->size - offset;
    return there ? head->bytes + offset : NULL;
}

const Elf64_Phdr *dfi_image_segments(int fd, const struct dfi_head *head, void **memory)
{
    const Elf64_Ehdr *elf = elf_of(head);
    size_t size = elf->e_phnum * sizeof(Elf64_Phdr);
    const void *there = part_of(head, elf->e_phoff, size);
    *memory = NULL;
    if (elf->e_phnum == 0 || elf->e_phnum > DFI_SEGMENTS_MAX)
        return NULL;
    if (there != NULL && elf->e_phoff % sizeof(unsigned long) == 0)
        return there;
    *memory = dfi_alloc(size);
    if (*memory == NULL || dfi_kernel(__NR_pread64, fd, *memory, size, elf->e_phoff) == (long)size)
        return *memory;
    dfi_free(*memory);
    *memory = NULL;
    return NULL;
}

static long read_interpreter(int fd, const struct dfi_head *head, const Elf64_Phdr *segment,
                             char *interpreter)
{
    size_t size = segment->p_filesz;
    if (size < 2 || size > PATH_MAX)
        return -ENOEXEC;
    const void *there = part_of(head, segment->p_offset, size);
    if (there != NULL)
        memcpy(interpreter, there, size);
    else if (dfi_kernel(__NR_pread64, fd, interpreter, size, segment->p_offset) != (long)size)
        return -ENOEXEC;
    return interpreter[size - 1] == '\0' && interpreter[0] != '\0' ? 0 : -ENOEXEC;
}

/* Finds PT_INTERP; no interpreter is an empty string. */
static long find_interpreter(int fd, const struct dfi_head *head, char *interpreter)
{
    void *memory;
    const Elf64_Phdr *segments = dfi_image_segments(fd, head, &memory);
    long result = segments == NULL ? -ENOEXEC : 0;
    interpreter[0] = '\0';
    for (unsigned i = 0; result == 0 && i < elf_of(head)->e_phnum; i++) {
        if (segments[i].p_type != PT_INTERP)
            continue;
        result = read_interpreter(fd, head, &segments[i], interpreter);
        break;
    }
    dfi_free(memory);
    return result;
}

enum dfi_image dfi_image_look(int fd, struct dfi_head *head, char *interpreter)
{
    char *bytes = head->bytes;
    long got = dfi_kernel(__NR_pread64, fd, bytes, sizeof head->bytes, 0);
    if (got < 0)
        return DFI_IMAGE_UNREADABLE;
    head->size = (size_t)got;
    if (got < DFI_LINE)
        memset(bytes + got, 0, DFI_LINE - (size_t)got);
    if (bytes[0] == '#' && bytes[1] == '!')
        return DFI_IMAGE_SCRIPT;
    if (got < DFI_HEAD_MIN || memcmp(bytes, ELFMAG, SELFMAG) != 0)
        return DFI_IMAGE_UNKNOWN;
    if (!is_native_elf(head))
        return DFI_IMAGE_FOREIGN;
    if (interpreter != NULL && find_interpreter(fd, head, interpreter) < 0)
        return DFI_IMAGE_UNKNOWN;
    return DFI_IMAGE_ELF;
}
