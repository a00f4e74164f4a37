/*
 * lend.c - memory for contents from whoever hosts this file system, if he has some to lend.
 *
 * A mount server's clients read such memory where it lies (directfuse's docs/decisions/014); what
 * is given back is nobody's to read any more. Behind the kernel, and where the host is the only
 * reader, there is none.
 */
#include "data.h"

static void *(*take_lent)(size_t size);
static void (*give_lent)(void *mem);

void directfuse_lend(void *(*take)(size_t size), void (*give)(void *mem))
{
    take_lent = take;
    give_lent = give;
}

void *lend_take(size_t size)
{
    return take_lent ? take_lent(size) : NULL;
}

void lend_give(void *mem)
{
    give_lent(mem);
}
