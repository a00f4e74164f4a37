/*
 * way.h - one system call that names paths: first the mounts, then the kernel, then once more the
 * mounts, if the kernel has found nothing and a real symlink may lead to one.
 *
 *     struct dfi_way way;
 *     long ret = dfi_way_begin(&way, frame);
 *     while (dfi_way_next(&way, &ret))
 *         ret = df_call_mkdirat(way.leg[0].dirfd, way.leg[0].path, mode);
 *     return dfi_way_end(&way, ret);
 *
 * Which arguments are paths and directories is read from the call's row of syscalls.def.
 */
#ifndef DF_WAYS_WAY_H
#define DF_WAYS_WAY_H

#include <string.h>

#include "client/files.h"
#include "client/record.h"

/* One path of the call. */
struct dfi_leg {
    int dirfd;        /* for native/core: AT_FDCWD, the kernel's, or DF_FD_BASE + one of ours */
    const char *path; /* text, or NULL as the caller gave it */
    bool empty;       /* it was another name for the descriptor in dirfd, as /dev/fd/5: the call is
                         to be made with AT_EMPTY_PATH */
    bool changed;     /* text is not what the caller wrote */
    uint32_t len;     /* of text, if it is */
    signed char at;   /* argument with the directory; -1: the call has none */
    signed char name; /* argument with the path */
    char text[PATH_MAX];
};

struct dfi_way {
    struct dfi_frame *frame;
    unsigned legs;
    unsigned char state;
    unsigned char turns; /* how often links in mounts have led to links of /proc that led back */
    unsigned char moves; /* how often the working directory was renamed meanwhile */
    bool blocks;         /* the kernel's call may block: set it after begin */
    bool ours;           /* the result is a mount's */
    bool held;           /* record.root is the root of the process */
    bool unwalked; /* paths are as the caller wrote them, whatever root and working directory are */
    bool refused;  /* a path could not be taken from the program's memory */
    bool rooted;   /* a path is below a root of the process (root.h): never the kernel's */
    bool missing;  /* the kernel has found nothing, and no symlink is on the path */
    bool back;     /* the path is another one, which leads to a mount: way_disk.c */
    mode_t mode;   /* of a file that it makes */
    uint32_t moved; /* dfi_cwd_count_moved() before the name of the working directory was taken */
    int opens;      /* the flags of an open, set after begin; -1: another call */
    long first;     /* what the kernel said, or why the second path was refused */
    struct dfi_leg leg[2];
    struct dfi_record record;
};

/* Of leg->path, which is not NULL. */
static inline size_t dfi_leg_len(const struct dfi_leg *leg)
{
    return leg->changed ? strlen(leg->path) : leg->len;
}

/* Takes the paths. 0, or -errno, which dfi_way_next() takes as the end. */
long dfi_way_begin(struct dfi_way *way, struct dfi_frame *frame);

/* The same for who walks the path itself: one that begins at the working directory, and any in a
 * process with a root in a mount (root.h), is not yet what it leads to. */
long dfi_way_begin_unwalked(struct dfi_way *way, struct dfi_frame *frame);

/* True: make the call of native/core. False: *ret is the result. */
bool dfi_way_next(struct dfi_way *way, long *ret);

long dfi_way_end(struct dfi_way *way, long ret);

/* AT_EMPTY_PATH if the path was another name for a descriptor. */
int dfi_way_flags(const struct dfi_leg *leg);

/* Permission was denied for a path that begins at the working directory. True: it was for the way
 * there by its name, and it is open for this call now, whatever lies above it. */
bool dfi_way_open_cut_off(struct dfi_way *way);

/* Absolute path of a leg as it is written, with what dots there are. False: it has none. */
bool dfi_way_written(const struct dfi_way *way, const struct dfi_leg *leg, char out[PATH_MAX]);

/* The same without dots, by the text alone, for the names of shadows. */
bool dfi_way_absolute(struct dfi_way *way, const struct dfi_leg *leg, char out[PATH_MAX]);

/* The same, walked in the mounts: without links, ".." and a slash at its end. The last component
 * may be missing, and no link there is followed. False: it leads to no mount. */
bool dfi_way_physical(struct dfi_way *way, const struct dfi_leg *leg, char out[PATH_MAX]);

/*
 * The object of a leg that begins at a descriptor, open for this call alone, as DFI_FD_FOREIGN: for
 * calls that native/core knows by a whole path or by a descriptor. `flags` are of open(2); with
 * O_PATH the descriptor serves for attributes all the same. 0, -errno or DF_NOT_OURS.
 */
long dfi_way_open(struct dfi_way *way, const struct dfi_leg *leg, int flags);
void dfi_way_shut(struct dfi_way *way);

/* It stays open beyond the call: it is record.opened, as what df_call_openat() opens. */
void dfi_way_keep(struct dfi_way *way);

#endif
