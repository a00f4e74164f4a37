/*
 * unresolved.c - needs a function that nobody has, for test_plugin.c.
 */
#define FUSE_USE_VERSION 312
#include <fuse.h>

int function_that_nobody_has(void);

int main(void)
{
    return fuse_version() + function_that_nobody_has();
}
