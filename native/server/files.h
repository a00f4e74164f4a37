/*
 * files.h - the files that are open on the server, and which client processes have them.
 *
 * A file is an entry of the df_ofd table in the segment and one of ours, at the same index. It is
 * open as long as some client has it. Each client has a set of files; a file counts its clients.
 *
 * One lock, held for a few instructions, protects sets, counts and the table. Lookups of a handle
 * take no lock: inside the gate a df_file may be looked at whatever became of it (core/file.h).
 */
#ifndef DF_SERVER_FILES_H
#define DF_SERVER_FILES_H

#include <pthread.h>
#include <stdbool.h>

#include "channel/layout.h"
#include "core/file.h"

#define DF_CLIENT_MAX 4096 /* client processes at once; a power of two */

struct df_thread;

struct df_client {
    uint32_t id;      /* generation << 12 | index; 0: free */
    uint32_t parent;  /* of one that has not been born yet; 0: it has */
    int64_t expected; /* ns, CLOCK_MONOTONIC: when it must be born at the latest */
    uint32_t generation;
    uint32_t count;  /* files it has */
    uint64_t *files; /* bit: it has the file of that index; DF_OFD_COUNT bits, made when needed */
};

struct df_open_file {
    _Atomic(struct df_file *) file; /* NULL: free */
    _Atomic uint64_t st_ino;        /* of stat; 0: not known yet (cache.h, stripes) */
    uint32_t generation;            /* of the handle */
    uint32_t clients;               /* that have it */
    uint32_t next_free;
};

struct df_files {
    struct df_segment *segment;
    pthread_mutex_t lock;      /* protects what follows but df_open_file.file, which it writes */
    struct df_open_file *open; /* DF_OFD_COUNT */
    uint32_t first_free;       /* index; 0 is never used */
    uint32_t count;            /* open files */
    uint32_t client_count;     /* clients there are, unborn ones too */
    struct df_client clients[DF_CLIENT_MAX];
};

int df_files_init(struct df_files *files, struct df_segment *segment); /* 0, -ENOMEM */
void df_files_free(struct df_files *files);

/* ---- clients ---- */

/* A new client without files: its id, or 0: there are too many. */
uint32_t df_files_client_new(struct df_files *files);

/* A client that is to be born of `parent`, with the parent's files. Its id, or 0. */
uint32_t df_files_client_fork(struct df_files *files, uint32_t parent);

/* It has been born. False: it came too late, and is none. */
bool df_files_client_born(struct df_files *files, uint32_t id);

/* Takes away the client; its files are left in *had (DF_OFD_COUNT bits, or NULL: none), for the
 * caller to df_files_drop_gone() and free. False: there is no such client. */
bool df_files_client_gone(struct df_files *files, uint32_t id, uint64_t **had);

/* An unborn client that was not born in time, or 0. */
uint32_t df_files_client_overdue(struct df_files *files, int64_t now);

uint32_t df_files_client_count(struct df_files *files);

/* ---- files ---- */

/* A file just opened (one reference, which passes to the table) for a client: fills in its df_ofd.
 * The handle, or 0: the client is gone, or there are too many files; the caller puts the file. */
uint64_t df_files_add(struct df_files *files, uint32_t client, struct df_file *file, int mount);

/* The file of the handle with a reference for the caller, or NULL: it is closed. In the gate. */
struct df_file *df_files_get(struct df_files *files, uint64_t handle);

/* One more client has it. 0, -EBADF, -ENOMEM. */
int df_files_adopt(struct df_files *files, uint32_t client, uint64_t handle);

/* The client has it no more. *last: the file when nobody has it any more, with the reference that
 * was the table's, else NULL. 0, -EBADF. */
int df_files_drop(struct df_files *files, uint32_t client, uint64_t handle, struct df_file **last);

/* The same for a client that is gone, by index. */
void df_files_drop_gone(struct df_files *files, uint32_t index, struct df_file **last);

/* Handles that the client has, but for those listed; at most `room`. Returns how many. */
size_t df_files_others(struct df_files *files, uint32_t client, const uint64_t kept[], size_t count,
                       uint64_t others[], size_t room);

/* Where st_ino of a file is kept, by its handle. */
_Atomic uint64_t *df_files_st_ino(struct df_files *files, uint64_t handle);

/* True if a file of that mount is open. */
bool df_files_any(struct df_files *files, int mount);

#endif
