/*
 * cxx.c - the standard streams of a C++ program; see cxx.h. libstdc++ is reached by its names (the
 * Itanium C++ ABI's), for this library does not link to it.
 */
#include "loader/cxx.h"

#include <dlfcn.h>
#include <stddef.h>

#define LIBRARY "libstdc++.so.6"

/* std::ios_base::Init::Init() and ~Init() */
#define INIT_CONSTRUCT "_ZNSt8ios_base4InitC1Ev"
#define INIT_DESTROY   "_ZNSt8ios_base4InitD1Ev"
/* __gnu_cxx::stdio_sync_filebuf<char>::stdio_sync_filebuf(FILE *): no buffer of its own */
#define BUFFER_CONSTRUCT "_ZN9__gnu_cxx18stdio_sync_filebufIcSt11char_traitsIcEEC1EP8_IO_FILE"
/* std::ios::rdbuf(std::streambuf *) */
#define SET_BUFFER "_ZNSt9basic_iosIcSt11char_traitsIcEE5rdbufEPSt15basic_streambufIcS1_E"

void df_cxx_begin(struct df_cxx *cxx)
{
    void (*construct)(void *);
    *cxx = (struct df_cxx){.library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL)};
    if (!cxx->library)
        return;
    *(void **)&construct = dlsym(cxx->library, INIT_CONSTRUCT);
    *(void **)&cxx->destroy = dlsym(cxx->library, INIT_DESTROY);
    if (construct && cxx->destroy)
        construct(cxx->init);
    else
        cxx->destroy = NULL;
}

void df_cxx_end(struct df_cxx *cxx)
{
    if (!cxx->library)
        return;
    if (cxx->destroy)
        cxx->destroy(cxx->init);
    dlclose(cxx->library);
}

/* The std::ios in a std::ostream is a virtual base: its offset stands before the virtual table. */
static void *ios_of(void *stream)
{
    const char *table = *(const char **)stream;
    return table ? (char *)stream + *(const ptrdiff_t *)(table - 3 * sizeof(ptrdiff_t)) : NULL;
}

void df_cxx_redirect(void *stream, void *room, FILE *to)
{
    void (*construct)(void *, FILE *);
    void *(*set_buffer)(void *, void *);
    void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
    if (!library)
        return;
    *(void **)&construct = dlsym(library, BUFFER_CONSTRUCT);
    *(void **)&set_buffer = dlsym(library, SET_BUFFER);
    void *ios = ios_of(stream);
    if (construct && set_buffer && ios) {
        construct(room, to);
        set_buffer(ios, room);
    }
    dlclose(library);
}
