/*
 * cxx.h - the standard streams of a C++ program.
 *
 * std::cout and its kin are objects in libstdc++, and a program reaches them through COPY
 * relocations: its own copies, taken when it is loaded. libstdc++ constructs the originals in the
 * first std::ios_base::Init. In a process of its own that is later, and works on the copies; here
 * the originals must be whole before they are copied, or the copies stay zeros.
 */
#ifndef DF_LOADER_CXX_H
#define DF_LOADER_CXX_H

#include <stdio.h>

/* What keeps libstdc++ and its streams alive while a program is loaded. */
struct df_cxx {
    void *library;           /* of dlopen; NULL: there is none, and the others mean nothing */
    void (*destroy)(void *); /* ~Init */
    char init[16];           /* a std::ios_base::Init, one byte in libstdc++ */
};

/* Constructs the streams, if nobody has. A libstdc++ that is not there is for the program's own
 * loading to report. */
void df_cxx_begin(struct df_cxx *cxx);

/* The program has taken a reference of its own, or was not loaded. */
void df_cxx_end(struct df_cxx *cxx);

enum { DF_CXX_BUFFER_ROOM = 128 }; /* bytes; a stdio_sync_filebuf<char> has 80 */

/* Makes an output stream of the program, copied from libstdc++'s, write to `to`. `room` becomes its
 * buffer: aligned as a pointer, DF_CXX_BUFFER_ROOM bytes, there as long as the program is. */
void df_cxx_redirect(void *stream, void *room, FILE *to);

#endif
