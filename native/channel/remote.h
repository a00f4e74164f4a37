/*
 * remote.h - a df_fs whose file system lives in a mount server: each op is one trip. Freestanding,
 * so the calls of the core run above it in a program without libc as they do in the library.
 *
 * A df_file of it has in host[] (DF_REMOTE_*) the server's handle, and where its df_ofd is: there
 * are the position and the status flags, which forked processes share (ofd.h).
 */
#ifndef DF_CHANNEL_REMOTE_H
#define DF_CHANNEL_REMOTE_H

#include "channel/trip.h"
#include "core/file.h"

enum { /* df_file.host[] */
       DF_REMOTE_HANDLE,
       DF_REMOTE_OFD,    /* struct df_ofd * */
       DF_REMOTE_LINK,   /* struct df_link * */
       DF_REMOTE_TRAITS, /* the plugin's; those of the df_file lack DF_FILE_NOFLUSH */
};

enum df_remote_trouble {
    DF_REMOTE_GONE,  /* the server is gone: calls end in ENOTCONN */
    DF_REMOTE_AGAIN, /* it was gone, and has been started again */
    DF_REMOTE_LATE,  /* a call has waited in vain: ETIMEDOUT */
    DF_REMOTE_FULL,  /* there is no memory for more of the segment (room.h) */
};

struct df_remote {
    struct df_fs fs;
    struct df_link *link;           /* the process's; longer-lived than this */
    int32_t mount;                  /* id on the server */
    struct df_shared_mount *shared; /* its entry in the segment; NULL: it is gone from there */
    /* Told once of each trouble, in the thread and inside the call that met it; may be NULL. */
    void (*tell)(struct df_remote *self, enum df_remote_trouble trouble);
    void (*end)(struct df_remote *self); /* ops->destroy; may be NULL */
};

/* Fills in `remote`; its `tell` and `end` are NULL. */
void df_remote_init(struct df_remote *remote, struct df_link *link, int32_t mount);

#endif
