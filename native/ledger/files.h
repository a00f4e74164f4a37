/*
 * files.h - the files that are open on the server, and which client processes have them.
 *
 * A file is an entry of the df_ofd table in the segment and one of ours, at the same index. It is
 * open as long as some client has it. Each client has a set of files; a file counts its clients.
 *
 * The sets, the ids of clients and the paths of files lie in a ledger, which outlives a server that
 * may be started again. Nothing in it is more than one store away from being whole;
 * what can be counted is counted again by the next server (df_files_take()).
 *
 * One lock, held for a few instructions, protects sets, counts and the table. Lookups of a handle
 * take no lock: inside the gate a df_file may be looked at whatever became of it (core/file.h).
 */
#ifndef DF_LEDGER_FILES_H
#define DF_LEDGER_FILES_H

#include <pthread.h>
#include <stdbool.h>

#include "channel/layout.h"
#include "core/file.h"

#define DF_FILES_RANDOM UINT32_MAX /* of ahead: never */

#define DF_CLIENT_MAX   4096 /* client processes at once; a power of two */

struct df_thread;

#define DF_SET_WORDS (DF_OFD_COUNT / 64)

struct df_ledger {
    struct {
        uint32_t id, parent, generation; /* as in df_client */
        uint64_t socket;
    } clients[DF_CLIENT_MAX];
    struct {
        uint32_t generation;
        int32_t flags;        /* of open(2) */
        uint32_t where_flags; /* DF_WHERE_* */
        uint32_t path_len;    /* 0: not known, it cannot be opened again */
    } files[DF_OFD_COUNT];
    uint32_t used;                 /* no file of that index or a higher one ever was */
    uint16_t locked[DF_OFD_COUNT]; /* by df_open_inode: placeholders that were locked, and are not
                                      used again */
    _Alignas(4096) uint64_t sets[DF_CLIENT_MAX][DF_SET_WORDS]; /* sparse */
    char paths[DF_OFD_COUNT][PATH_MAX]; /* from the root of its mount; sparse */
};

struct df_client {
    uint32_t id;      /* generation << 12 | index; 0: free */
    uint32_t parent;  /* of one that has not been born yet, itself if it has none; 0: it has */
    int64_t expected; /* ns, CLOCK_MONOTONIC: when it must be born at the latest */
    uint64_t socket;  /* by which it is to say so (process/unborn.h); 0: by none */
    uint32_t generation;
    bool nobody;     /* offered, and not yet taken; or keeps files that are on their way */
    uint32_t count;  /* files it has */
    uint64_t *files; /* bit: it has the file of that index; in the ledger. NULL: has had none */
};

/* A file that is open, by whatever descriptions: found by its mount and inode number. */
struct df_open_inode {
    int mount;
    uint32_t count; /* descriptions; 0: free */
    uint64_t ino;
    uint32_t next; /* of its chain, or of the free ones; 0: none */
    bool locked;   /* some description was */
    uint32_t last; /* index of the description that came last; the others are linked to it */
};

#define DF_INODE_CHAINS 4096 /* a power of two */

struct df_open_file {
    _Atomic(struct df_file *) file; /* NULL: free */
    _Atomic uint64_t st_ino;        /* of stat; 0: not known yet (segment/cache.h, stripes) */
    _Atomic int64_t ahead_of;       /* up to there it was read, or read ahead */
    _Atomic uint32_t ahead;         /* bytes read ahead the last time, or DF_FILES_RANDOM */
    _Atomic bool judged;            /* a read of it is expected (server/execute_open.c) */
    _Atomic bool scattered;         /* pieces of it were not lent (server/execute_data.c) */
    char *called; /* of a directory, under the lock: the path from the root of its mount by which
                     it was opened; malloc()ed. NULL: from another one, or not known */
    int place;    /* 1 + descriptor of its placeholder (place.c); 0: none */
    uint32_t generation;   /* of the handle */
    uint32_t number;       /* as its df_ofd has it */
    uint32_t older, newer; /* descriptions of the same inode: their indices; 0: none */
    uint32_t content;      /* that it was added with */
    uint32_t clients;      /* that have it */
    uint32_t next_free;
};

struct df_files {
    struct df_segment *segment;
    struct df_ledger *ledger;
    bool noted;                   /* fixed: paths of files are */
    bool over;                    /* the server ends: clients are to find it gone, not the files */
    pthread_mutex_t lock;         /* protects what follows but df_open_file.file, which it writes */
    struct df_open_file *open;    /* DF_OFD_COUNT */
    uint32_t first_free;          /* index; 0 is never used */
    _Atomic uint32_t expected;    /* the same for who asks without the lock: a guess */
    struct df_open_inode *inodes; /* DF_OFD_COUNT, by df_ofd.number modulo that; 0 is never used */
    uint32_t chains[DF_INODE_CHAINS];
    uint32_t first_number; /* free one; behind the last of the list, those never used */
    uint32_t count;        /* open files */
    uint32_t made;         /* entries of the df_ofd table that have memory (channel/room.h) */
    uint32_t client_count; /* clients there are, unborn ones too, without those that are nobody */
    struct df_client clients[DF_CLIENT_MAX];
};

/* ledger: zeroes, or that of a server that has died; without `noted` it has no paths. 0, -ENOMEM.
 */
int df_files_init(struct df_files *files, struct df_segment *segment, struct df_ledger *ledger,
                  bool noted);
void df_files_free(struct df_files *files);

/* After init with the ledger and the segment of a server that has died: its clients and files are
 * there; the df_files are still to be opened (df_files_restore()). */
void df_files_take(struct df_files *files);

/* ---- clients ---- */

/* A new client without files: its id, or 0: there are too many. It is born when it knows. */
uint32_t df_files_client_new(struct df_files *files);

/* A new client for whoever takes it (df_segment.offers), or 0. It is born when it was taken. */
uint32_t df_files_client_offer(struct df_files *files);

/* A client that is to be born of `parent`, with the parent's files. Its id, or 0. `announced` has
 * it before the ledger says that it waits to be born, as in df_files_add(). socket: the parent's
 * (process/unborn.h), or 0. */
uint32_t df_files_client_fork(struct df_files *files, uint32_t parent, _Atomic uint64_t *announced,
                              uint64_t socket);

/* The same for no child: it has the files of which descriptors were sent, if any, and ends when a
 * child would have come too late. */
uint32_t df_files_client_leave(struct df_files *files, uint32_t parent,
                               _Atomic uint64_t *announced);

/* It has been born. False: it came too late, and is none. */
bool df_files_client_born(struct df_files *files, uint32_t id);

/* Takes away the client; its files are left in *had (DF_OFD_COUNT bits, or NULL: it has none), for
 * the caller to df_files_drop_gone() and df_files_free_set(). False: there is no such client. */
bool df_files_client_gone(struct df_files *files, uint32_t id, uint64_t **had);
void df_files_free_set(struct df_files *files, uint64_t *had);

/* False: there is none, or it is gone. */
bool df_files_client_is_there(struct df_files *files, uint32_t id);

/* False: it is still to be born, or there is none. */
bool df_files_client_is_born(struct df_files *files, uint32_t id);

/* True: of those still to be born, one that df_files_client_new() made. */
bool df_files_client_is_new(struct df_files *files, uint32_t id);

/* The id of the client that comes after that of `id` (0: of the first); 0: there is none. */
uint32_t df_files_client_next(struct df_files *files, uint32_t id);

/* An unborn client that was not born in time, and in *socket by which it was to say so (0: by none,
 * or that one has ended); or 0. */
uint32_t df_files_client_overdue(struct df_files *files, int64_t now, uint64_t *socket);

/* It may still be born: it has as long again. */
void df_files_client_await(struct df_files *files, uint32_t id);

uint32_t df_files_client_count(struct df_files *files);

/* ---- files ---- */

/* A file just opened (one reference, which passes to the table) for a client: fills in its df_ofd.
 * The handle, or 0: the client is gone, or there are too many files; the caller puts the file.
 * `content`: of segment/frames.h. `announced` has the handle before the ledger says who has it: if
 * this server dies before it has answered, the next one takes the file back (unanswered.h). */
uint64_t df_files_add(struct df_files *files, uint32_t client, struct df_file *file, int mount,
                      uint32_t content, _Atomic uint64_t *announced);

/* A file is about to be opened: its df_ofd, in which a client has written last, is sent for. */
void df_files_foresee(struct df_files *files);

/* The file of the handle with a reference for the caller, or NULL: it is closed. In the gate. */
struct df_file *df_files_get(struct df_files *files, uint64_t handle);

/* Of a server that may be started again: by which path from the root of its mount, and how, the
 * file was opened. base: the handle the name starts at, or 0. */
void df_files_note(struct df_files *files, uint64_t handle, uint64_t base, const char *name,
                   uint32_t len, uint32_t where_flags, int flags);

/* A directory was opened by that path from the root of its mount: a hint what is asked for next. */
void df_files_call(struct df_files *files, uint64_t handle, const char *path, size_t len);

/* That path; its length, 0: there is none. */
size_t df_files_called(struct df_files *files, uint64_t handle, char path[PATH_MAX]);

/* After df_files_take(): the file of that index, opened again (one reference, which passes to the
 * table). */
void df_files_restore(struct df_files *files, uint32_t index, struct df_file *file);

/* True if the handle is open, but could not be opened again. */
bool df_files_lost(struct df_files *files, uint64_t handle);

/* One more client has it. 0, -EBADF. */
int df_files_adopt(struct df_files *files, uint32_t client, uint64_t handle);

/* A file that nobody has any more, with the reference that was the table's; NULL: somebody has. */
struct df_last_file {
    struct df_file *file;
    uint64_t handle;
    uint32_t content; /* what it was added with */
    bool mapped;      /* some program had mapped it: then which file it is */
    bool judged;      /* a read of it was expected; */
    bool read;        /* and came */
    uint32_t locked;  /* df_ofd.number that no file will have again; 0: none */
    int32_t mount;
    uint64_t ino;
};

/* The client has it no more. 0, -EBADF. */
int df_files_drop(struct df_files *files, uint32_t client, uint64_t handle,
                  struct df_last_file *last);

/* The same for a client that is gone, by index. */
void df_files_drop_gone(struct df_files *files, uint32_t index, struct df_last_file *last);

/* The client holds the position of no file any more (channel/ofd.h). */
void df_files_break(struct df_files *files, uint32_t client);

/* Handles that the client has, but for those listed; at most `room`. Returns how many. */
size_t df_files_others(struct df_files *files, uint32_t client, const uint64_t kept[], size_t count,
                       uint64_t others[], size_t room);

/* Handles of files of the mount that are open, at most `room` at a time: *from is 0 at first, and
 * none is found when all have been. */
size_t df_files_of_mount(struct df_files *files, int mount, uint32_t *from, uint64_t handles[],
                         size_t room);

/* The placeholder of a client's file in the directory `shadow` of runs, a descriptor that is the
 * caller's: of one open file description for all clients that have the file. -EBADF, -EMFILE, and
 * others of open(2). place.c. */
int df_files_place(struct df_files *files, const char *shadow, uint32_t client, uint64_t handle);

/* Removes the name of the placeholders with a number that was df_last_file.locked. place.c. */
void df_files_unplace(const char *shadow, uint32_t number);

/* What is kept of a file beside its df_file, by its handle. */
struct df_open_file *df_files_entry(struct df_files *files, uint64_t handle);

/* True if a file of that mount is open. */
bool df_files_any(struct df_files *files, int mount);

/* True if that file is, by whatever description. */
bool df_files_is_open(struct df_files *files, int mount, uint64_t ino);

#endif
