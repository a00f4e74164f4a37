/*
 * proc.h - other names of descriptors and of the program: /proc/self/fd, /dev/fd, /proc/self/exe.
 */
#ifndef DF_WAYS_PROC_H
#define DF_WAYS_PROC_H

#include "client/files.h"

enum dfi_proc {
    DFI_PROC_NONE, /* nothing of ours */
    DFI_PROC_FD,   /* the descriptor *fd, which is a file of a mount */
    DFI_PROC_CWD,  /* the working directory, which is in a mount */
    DFI_PROC_EXE,  /* the program */
};

/* A name of nothing: what else is wrong with a call the kernel says before it looks. */
#define DFI_PROC_NOTHING "/proc/self/none/none"

/* What an absolute path begins with; *rest is where the path goes on behind it ('/' or the end). */
enum dfi_proc dfi_proc_look(struct dfi_files *files, const char *path, int *fd, const char **rest);

/* Whether an absolute path begins with the name of a descriptor of this process that is ours: of
 * what it is (fd/5), or of what is told of it (fdinfo/5). */
bool dfi_proc_hides(const char *path);

/*
 * dfi_proc_look() for another process, and for threads by their numbers: a path that begins with
 * its /proc/<pid>/fd/5 or /proc/<pid>/cwd, which is of a mount, or with its /proc/<pid>/exe, which
 * is the loader. DFI_PROC_FD: *handle is that of the file; the other two: out is the name that the
 * link has. The kernel is asked for the link, and finds none where the process has no such thread.
 */
enum dfi_proc dfi_proc_other(const struct dfi_files *files, const char *path, char out[PATH_MAX],
                             uint64_t *handle, const char **rest);

/*
 * The same for the end of a link that was read: `link` is its absolute name, `text` what the kernel
 * has said, a string of len bytes. The length of what is to be said, in text, which is as it was
 * where the kernel is right; or -ENAMETOOLONG. Inside a record.
 */
long dfi_proc_shown(const struct dfi_files *files, const char *link, char text[PATH_MAX],
                    size_t len);

/* Whether what is open there is called by that word in the directory of this process, or of one of
 * its threads. */
bool dfi_proc_is_own(int fd, const char *word);

/* Whether what is open there lists this process's descriptors: /proc/<pid>/fd or fdinfo, or those
 * of one of its threads. */
bool dfi_proc_lists_fds(int fd);

/* What follows the directory of a process, whichever it is; NULL: the path is another. */
const char *dfi_proc_behind_process(const char *path);

/* What follows the number of a process or a descriptor, of a text that begins at a slash; NULL: it
 * is no such name. */
const char *dfi_proc_behind_number(const char *text, int *number);

/* What /proc/self/exe shows: the program's file by its own name, whatever links led to it. */
void dfi_proc_exe(char out[PATH_MAX]);

/* readlink(2) of such a path, if it ends there. The length, or -errno; at most PATH_MAX - 1. Inside
 * a record. */
long dfi_proc_readlink(struct dfi_files *files, enum dfi_proc what, int fd, char out[PATH_MAX]);

#endif
