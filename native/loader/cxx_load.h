/*
 * cxx_load.h - loading a C++ program: its libraries first, and no copies of what cannot be copied.
 *
 * A program reaches data of its libraries through COPY relocations, which take the bytes when the
 * program is loaded. In a process of its own the libraries then construct, and use, the program's
 * copy; here their constructors have run before, on the original. A constant or a pointer is right
 * in both places. A variable that points into itself, as an empty std::string or list does, is not:
 * the copy points into the original, which the next assignment would free. A program that has one
 * is refused. Whether an object is a constant nobody has written down; a std::string that is made
 * with something in it is taken for one.
 */
#ifndef DF_LOADER_CXX_LOAD_H
#define DF_LOADER_CXX_LOAD_H

#include <stddef.h>

/* Loads the image that df_elf_patch() has made; its handle, or NULL with the reason in `reason`. */
void *df_cxx_load(int image, char *reason, size_t size);

#endif
