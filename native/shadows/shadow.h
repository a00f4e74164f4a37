/*
 * shadow.h - the shadow directory of a job: real files that stand in for those of mounts.
 *
 *   f/0.<number>     regular file, one for each file of a mount that is open (df_ofd.number).
 *                    A placeholder is an open() of it: a descriptor that the kernel can
 *                    duplicate, pass on and lock. Its position in the kernel is the handle of
 *                    the open file, so whoever comes by the descriptor finds the file. When
 *                    nobody has the file open any more the next one gets its number, for
 *                    making files is what costs.
 *   p/0.<handle>     the same for O_PATH and of FIFOs, which have no position; gone when it is
 *                    opened
 *   t/<path>         a directory for each working directory, and above mountpoints (cwd.h)
 *   c/0.<handle>     a working directory by its handle; gone when it is entered (cwd.h)
 *   n/<mount>.<ino>  FIFOs (node.h)
 *   s/<mount>.<ino>  sockets: apart, for they stay, and the next object may have their number
 *   d/<mount>.<ino>  the bytes of a file that some program has mapped (shadow_map.c)
 *   b/<mount>.<ino>  which chunks of d/ are there, for a large one
 *   k/, l/           the same two, kept for the next who maps the file (shadow_kept.h)
 *   x/               copies of programs and libraries (code_file.h)
 *   w/<serial>       what is watched by inotify(7) (watch/watch.h)
 *   held             who may touch which of these (channel/held.h)
 *   lock             flock(2) of who brings the bytes of d/, and of the server that removes them
 */
#ifndef DF_SHADOWS_SHADOW_H
#define DF_SHADOWS_SHADOW_H

#include <string.h>

#include "channel/held.h"
#include "client/files.h"
#include "client/record.h"
#include "core/file.h"

#define DFI_SHADOW_MAPPED   DF_OFD_MAPPED  /* of df_ofd.marks: bytes are those of the data file */
#define DFI_SHADOW_CHUNKED  DF_OFD_CHUNKED /* as far as they are there */
#define DFI_SHADOW_FILLED   DF_OFD_FILLED

#define DFI_SHADOW_WHOLE    ((off_t)16 << 20) /* a larger file is copied by chunks */

#define DFI_SHADOW_DATA     'd' /* letters of the directory, above */
#define DFI_SHADOW_CHUNKS   'b'
#define DFI_SHADOW_PATH     'p'

#define DFI_SHADOW_NAME_MAX 160 /* bytes: files->shadow, a letter, two numbers */

/* What the name has behind that of the shadow directory; NULL: it does not begin with it. */
static inline const char *dfi_shadow_behind(const struct dfi_files *files, const char *name)
{
    return strncmp(name, files->shadow, files->shadow_len) == 0 ? name + files->shadow_len : NULL;
}

struct dfi_dirent { /* of getdents64(2) */
    uint64_t ino, next;
    unsigned short size;
    unsigned char type;
    char name[];
};

/* Makes the shadow directory's parts, for the first program. 0 or -errno. It may go with a server
 * that has a name, though programs run. */
long dfi_shadow_begin(struct dfi_files *files);

/* <shadow>/<letter>/<mount>.<number> */
void dfi_shadow_name(const struct dfi_files *files, char letter, uint64_t mount, uint64_t number,
                     char name[DFI_SHADOW_NAME_MAX]);

/* Of an open of what was made before, or is made by it. Where even that finds nothing, somebody has
 * removed the run's directory, systemd at a logout perhaps: it is not the caller's file that is not
 * there. */
static inline long dfi_shadow_result(long fd)
{
    return fd == -ENOENT ? -EIO : fd;
}

/* A descriptor that stands in for the open file; flags are those of its open(2). Or -errno. */
long dfi_shadow_open(struct dfi_files *files, uint64_t handle, int flags);

/* The handle of a file of which /proc/<pid>/fd (`link`) shows the placeholder `target`; 0: it is no
 * placeholder. */
uint64_t dfi_shadow_linked(const struct dfi_files *files, const char *link, const char *target);

/* Whether that is the device on which placeholders lie, among other files. */
static inline bool dfi_shadow_is_device(const struct dfi_files *files, dev_t device)
{
    return device == atomic_load_explicit(&files->shared->device, memory_order_relaxed);
}

/* The entry (dfi_entry_of()) of a descriptor if it is a placeholder of this job, else 0. */
uint64_t dfi_shadow_entry(const struct dfi_files *files, int fd);

/* ---- shared mappings: shadow_map.c ---- */

static inline bool dfi_shadow_mapped(const struct df_file *file)
{
    const struct df_ofd *ofd = (const struct df_ofd *)file->host[DFI_HOST_OFD];

    return ofd && (__atomic_load_n(&ofd->marks, __ATOMIC_ACQUIRE) & DFI_SHADOW_MAPPED);
}

/* Behind a change of the mount alone: whether it is to come to the data file as well. What is being
 * copied there is waited for, since it may be of before the change. */
bool dfi_shadow_mapped_by_now(const struct df_file *file);

struct dfi_shadow_look { /* {0}: from the first on */
    uint32_t next;       /* index */
    uint64_t handle;     /* of the one that was found: by now its place may be another's */
};

/* The next description that is open of the file of `of`; NULL: there is none. */
struct df_ofd *dfi_shadow_next(const struct dfi_files *files, const struct df_ofd *of,
                               struct dfi_shadow_look *look);

/* A mapped file that is found by its number, not by a descriptor. */
struct dfi_shadow_named {
    struct df_ofd ofd; /* a copy: who has it open may close it meanwhile */
    struct df_file file;
};

/* The same of that file, whoever has it open; *out is it then, for the ops below. */
bool dfi_shadow_find(const struct dfi_files *files, int mount, uint64_t ino,
                     struct dfi_shadow_named *out);

/* From now on the file's bytes are those of its data file: for every process. 0 or -errno. */
long dfi_shadow_map(struct dfi_files *files, uint64_t handle);

/* A descriptor of the file of that letter, or -errno. */
long dfi_shadow_beside(const struct dfi_files *files, int mount, uint64_t ino, char letter,
                       int flags);

/* A file that nobody has mapped has no data file from now on, and no list of chunks. */
void dfi_shadow_forget(const struct dfi_files *files, const struct df_ofd *ofd);

/* A descriptor of the data file of a mapped file, or -errno. */
long dfi_shadow_data(const struct dfi_files *files, const struct df_ofd *ofd, int flags);

/* After an open with O_TRUNC: the file may be mapped by others. */
void dfi_shadow_emptied(struct dfi_files *files, uint64_t handle);

/* flock(2) of a file of the shadow directory; -1: of none. */
long dfi_shadow_lock(long fd, int operation);

/*
 * What an op changes of a mapped file it changes between these two, on the mount and in the data
 * file: nobody else changes either meanwhile, and of a large one no chunk comes or goes
 * (shadow_chunks.h). The lock is of the data file, or of the list of chunks. -EIO: it cannot be
 * done, and nothing was.
 */
struct dfi_chunks;
int dfi_shadow_change(struct df_file *file, struct dfi_chunks *chunks);
void dfi_shadow_changed(struct dfi_chunks *chunks);

/* As the ops of these names, for a mapped file: on its data file. */
ssize_t dfi_shadow_read(struct df_trip *trip, struct df_file *file, const struct iovec *iov,
                        int iovcnt, off_t offset);
void dfi_shadow_write(const struct dfi_chunks *chunks, const struct iovec *iov, int iovcnt,
                      off_t offset, ssize_t size);
/* `shrink`: as it is now on the mount; else it only grows, before the mount knows of it. */
void dfi_shadow_resize(const struct dfi_chunks *chunks, off_t size, bool shrink);
/* `mode`: one of fallocate(2) that keeps the size, and that tmpfs knows. */
void dfi_shadow_allocate(const struct dfi_chunks *chunks, int mode, off_t offset, off_t end);
/* What the mount has not taken is again as it is there, up to its end. */
void dfi_shadow_refill(struct df_file *file, const struct dfi_chunks *chunks, off_t offset,
                       off_t end);

#endif
