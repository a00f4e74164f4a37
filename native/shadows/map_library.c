/*
 * map_library.c - the first segment of an ELF file, found in its headers.
 */
#include "shadows/map_library.h"

#include <linux/elf.h>
#include <stdint.h>
#include <sys/mman.h>

#define PAGE 4096ul

static uint64_t down(uint64_t at)
{
    return at & ~(PAGE - 1);
}

static uint64_t up(uint64_t at)
{
    return down(at + PAGE - 1);
}

/* The program headers, if all of them are in the head; else none. */
static const Elf64_Phdr *segments_of(const char *head, size_t size, unsigned *count)
{
    const Elf64_Ehdr *elf = (const Elf64_Ehdr *)head;

    *count = 0;
    if (size < sizeof(*elf) || __builtin_memcmp(elf->e_ident, ELFMAG, SELFMAG) != 0 ||
        elf->e_ident[EI_CLASS] != ELFCLASS64 || elf->e_phentsize != sizeof(Elf64_Phdr))
        return NULL;
    if (elf->e_phoff > size || elf->e_phoff % _Alignof(Elf64_Phdr) != 0 ||
        elf->e_phnum > (size - elf->e_phoff) / sizeof(Elf64_Phdr))
        return NULL;
    *count = elf->e_phnum;
    return (const Elf64_Phdr *)(head + elf->e_phoff);
}

bool dfi_map_may_be_library(unsigned long flags, unsigned long offset)
{
    return flags & MAP_DENYWRITE && offset == 0;
}

size_t dfi_map_first_segment(size_t length, const char *head, size_t size)
{
    const Elf64_Phdr *first = NULL, *last = NULL;
    unsigned count;
    const Elf64_Phdr *segments = segments_of(head, size, &count);
    uint64_t start, end;

    for (unsigned i = 0; i < count; i++) {
        if (segments[i].p_type != PT_LOAD)
            continue;
        first = first ? first : &segments[i];
        last = &segments[i];
    }
    if (first == last || down(first->p_offset) != 0 || first->p_filesz != first->p_memsz)
        return length;
    start = down(first->p_vaddr);
    end = up(first->p_vaddr + first->p_filesz);
    if (last->p_vaddr + last->p_memsz - start != length || end <= start || end - start > length)
        return length;
    return end - start;
}
