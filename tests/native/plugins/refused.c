/*
 * refused.c - must never run, not even its constructor, for test_plugin.c. Built without a main(),
 * against the real libfuse, and without any libfuse.
 */
#define FUSE_USE_VERSION 312
#include <fuse.h>
#include <stdlib.h>

__attribute__((constructor)) static void run(void)
{
    abort();
}

#ifdef WITH_FUSE
int use_libfuse(void)
{
    return fuse_version();
}
#endif

#ifdef WITH_MAIN
int main(void)
{
    abort();
}
#endif
