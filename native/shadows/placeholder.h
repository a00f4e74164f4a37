/*
 * placeholder.h - the real descriptors that stand for open files: those that come from elsewhere,
 * and their end. How one is opened: shadow.h.
 */
#ifndef DF_SHADOWS_PLACEHOLDER_H
#define DF_SHADOWS_PLACEHOLDER_H

#include "client/files.h"

/* Closes the descriptor, that of the kernel too. Returns close's error. */
long dfi_placeholder_close(struct dfi_files *files, int fd);

/* A descriptor that came from elsewhere (SCM_RIGHTS, pidfd_getfd): enters it if it is a
 * placeholder of this job. */
void dfi_placeholder_adopt(struct dfi_files *files, int fd);

#endif
