/*
 * remote.h - a df_fs whose file system lives in a mount server: each op is one trip. Freestanding,
 * so the calls of the core run above it in a program without libc as they do in the library.
 *
 * A df_file of it has in host[] (DF_REMOTE_*) the server's handle, and where its df_ofd is.
 * Position and locks of the df_file itself are the core's; processes that share an open file have
 * the df_ofd (ofd.h).
 */
#ifndef DF_CHANNEL_REMOTE_H
#define DF_CHANNEL_REMOTE_H

#include "channel/trip.h"
#include "core/file.h"

enum { /* df_file.host[] */
       DF_REMOTE_HANDLE,
       DF_REMOTE_TRAITS, /* the plugin's; those of the df_file lack DF_FILE_NOFLUSH */
};

struct df_remote {
    struct df_fs fs;
    struct df_link *link;           /* the process's; longer-lived than this */
    int32_t mount;                  /* id on the server */
    struct df_shared_mount *shared; /* its entry in the segment; NULL: it is gone from there */
    void (*gone)(struct df_remote *self); /* told once that the server is gone; may be NULL */
    void (*end)(struct df_remote *self);  /* ops->destroy; may be NULL */
};

/* Complete: every op is there but those whose default is meant (borrow). */
extern const struct df_ops df_remote_ops;

/* Fills in `remote`; its `gone` and `end` are NULL. */
void df_remote_init(struct df_remote *remote, struct df_link *link, int32_t mount);

#endif
