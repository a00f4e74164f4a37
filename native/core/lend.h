/*
 * lend.h - memory for the contents of files that others read where it lies.
 *
 * A file system that keeps contents in memory can have that memory from us, if it exports
 *
 *     void directfuse_lend(void *(*take)(size_t size), void (*give)(void *memory));
 *
 * (docs/decisions/014): called once, before its main. What it answers a read with out of such
 * memory (fuse_reply_buf(3)) is not copied by a mount server: clients read it there, until the file
 * system changes the file by a request, or gives the memory back.
 *
 * There is one lender in a process at most, the mount server's (segment/lent.h). Without one `take`
 * gives nothing, and the file system uses memory of its own, as it does behind the kernel.
 */
#ifndef DF_CORE_LEND_H
#define DF_CORE_LEND_H

#include <stdbool.h>
#include <stddef.h>

struct df_lender {
    const char *begin; /* of all that it lends */
    size_t size;
    void *(*take)(struct df_lender *lender, size_t size);
    void (*give)(struct df_lender *lender, void *memory);
};

/* Who lends from now on; NULL: nobody, and no plugin has anything any more. */
void df_lend_by(struct df_lender *lender);

/* What plugins call, from any thread. `size` bytes, at a page's beginning, of undefined contents;
 * NULL: there are none to be had. `give` takes what `take` gave. */
void *df_lend_take(size_t size);
void df_lend_give(void *memory);

/* True if these bytes are lent memory. */
bool df_lend_has(const void *bytes, size_t size);

#endif
