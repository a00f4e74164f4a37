/* linked.c - a library that is linked to the real libfuse, for unruly.c to load. */
#define FUSE_USE_VERSION 31
#include <fuse.h>

void *where_fuse_is(void);
void *where_fuse_is(void)
{
    return (void *)fuse_version;
}
