/*
 * elf_check.h - whether the dynamic linker may be given a file; for elf.c.
 */
#ifndef DF_LOADER_ELF_CHECK_H
#define DF_LOADER_ELF_CHECK_H

#include "loader/elf.h"

/* True if all that is mapped of the file is in it: to touch what is not would be SIGBUS. */
bool df_elf_is_whole(const struct df_elf *elf);

/* True if what the headers and the dynamic section of a program say of the file is so. Its tables
 * have been found (df_elf_inspect). */
bool df_elf_is_sound(const struct df_elf *elf);

#endif
