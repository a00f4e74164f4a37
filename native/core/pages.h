/*
 * pages.h - memory by the page, for what is large and mostly not touched, or wants to lie on a line
 * of the caches or on a page: malloc(3) gives multiples of 16.
 */
#ifndef DF_CORE_PAGES_H
#define DF_CORE_PAGES_H

#include <stddef.h>
#include <sys/mman.h>

/* Zero pages, which cost nothing until they are touched. NULL: there are none. */
static inline void *df_pages_new(size_t size)
{
    void *pages = mmap(NULL, size, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    return pages == MAP_FAILED ? NULL : pages;
}

/* pages: of that size, or NULL. */
static inline void df_pages_free(void *pages, size_t size)
{
    if (pages)
        munmap(pages, size);
}

#endif
