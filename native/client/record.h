/*
 * record.h - what a call into native/core needs of its thread while it lasts: the record of the
 * gate and the files it uses. On the stack of the handler; nothing of it outlives the call.
 */
#ifndef DF_CLIENT_RECORD_H
#define DF_CLIENT_RECORD_H

#include "client/files.h"
#include "core/fd.h"
#include "core/gate.h"

#define DFI_RECORD_FILES 4 /* in use by one call at a time */

struct dfi_record {
    struct df_thread thread; /* only what a call reads is set; the first member */
    struct dfi_files *files; /* of the process */
    struct dfi_record *outer;
    struct df_file file[DFI_RECORD_FILES];
    struct df_file *opened; /* by df_call_openat(); in file[] */
    unsigned char used;     /* of file[]. This and the next three are cleared in one store: */
    bool changes;           /* that open makes or empties a file */
    bool lent;              /* the foreign file is open for its attributes, whatever it is for */
    bool gone;              /* a descriptor that was looked at is of no mount, or no more */
    uint64_t foreign;       /* handles of the files that DFI_FD_FOREIGN and DFI_FD_HERE are; */
    uint64_t here;          /* 0: none. A use by this process, which ends with the record */
    uint64_t root;          /* that DFI_FD_ROOT is: set by dfi_root_begin() alone */
};

/* Numbers that are no descriptors: to native/core they are files of which the call knows the
 * handle, that of another process or one that is open for this call alone; the working directory;
 * and the root, if it is in a mount. */
#define DFI_FD_FOREIGN DFI_FD_MAX
#define DFI_FD_HERE    (DFI_FD_MAX + 1)
#define DFI_FD_ROOT    (DFI_FD_MAX + 2)

/* A directory's descriptor as the program gives it, to native/core: of ours, or the kernel's. What
 * would mean a file there, and is no descriptor, is none here either. */
static inline int dfi_fd_given(const struct dfi_files *files, int fd)
{
    if (dfi_file_of(files, fd))
        return DF_FD_BASE + fd;
    return fd < DF_FD_BASE ? fd : -1;
}

/* Words of df_file.host[]. */
enum {
    DFI_HOST_HANDLE, /* of the channel */
    DFI_HOST_FD,     /* the placeholder; -1: none */
    DFI_HOST_OFD,    /* struct df_ofd *; 0: none yet */
    DFI_HOST_HELD,   /* while its position is locked: 1: this is a use of the file */
};

/* From here to dfi_record_end() this thread may call df_call_*(). Nests. */
void dfi_record_begin(struct dfi_record *record);

/* The same, and DF_FD_BASE + DFI_FD_FOREIGN is the file of that handle, whoever has it open. */
void dfi_record_begin_of(struct dfi_record *record, uint64_t handle);
void dfi_record_end(struct dfi_record *record);

/* The same of a call that is here because its descriptor was of a mount, and what it has come to.
 * If another thread had given the number to a file of the kernel's before it was used, that is the
 * kernel's to say: DFI_PASS. */
long dfi_record_end_of_fd(struct dfi_record *record, long ret);

/* The handle of what is to native/core the descriptor fd; 0: none of ours. */
uint64_t dfi_record_handle(const struct dfi_record *record, int fd);

/* The innermost record of this thread. */
struct dfi_record *dfi_record_now(void);

#endif
