/*
 * open.h - what opening what is there and creating what is not have in common.
 */
#ifndef DF_LOWLEVEL_OPEN_H
#define DF_LOWLEVEL_OPEN_H

#include "lowlevel/private.h"

/* An open(2) under way. */
struct df_opening {
    struct df_lowlevel *lane;
    struct df_call *call;
    struct df_file *file;
    int flags;
    mode_t mode;
};

/* OPEN or OPENDIR of a node that needs no check (it was just made). The file takes over the
 * reference if that goes well. */
int df_lowlevel_open_node(const struct df_opening *opening, struct df_node *node);

/* The same after may_open() of the kernel. */
int df_lowlevel_open_existing(const struct df_opening *opening, struct df_node *node);

/* open(2) with O_CREAT of a name that is not known to be there; create.c. */
int df_lowlevel_open_creating(const struct df_opening *opening, const struct df_where *where,
                              bool revalidate);

/* What the open file keeps. It takes over the caller's reference. */
void df_lowlevel_fill_file(const struct df_opening *opening, struct df_node *node, int flags,
                           const struct fuse_file_info *fi, bool has_handle);

/* RELEASE or RELEASEDIR. */
void df_lowlevel_send_release(struct df_lowlevel *lane, struct df_call *call, uint64_t id, bool dir,
                              struct fuse_file_info *fi);

#endif
