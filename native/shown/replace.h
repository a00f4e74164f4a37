/*
 * replace.h - another text in the place of one that the kernel has opened.
 */
#ifndef DF_SHOWN_REPLACE_H
#define DF_SHOWN_REPLACE_H

/* What is written in `memory`, a memfd, takes the place of what fd is, read-only, unless error is
 * one; memory (< 0: none) is closed. fd, or -errno, and then fd is closed. */
long dfi_proc_replace(int fd, long memory, long error);

#endif
