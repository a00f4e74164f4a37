/*
 * exec.h - starting another program inside: what execve checks, and what the loader is told.
 */
#ifndef DF_INTERCEPT_EXEC_H
#define DF_INTERCEPT_EXEC_H

#include "intercept/intercept.h"

/*
 * The last string of the environment that a loader finds, and takes out: DFI_MARKER, then
 * "<run> <1 + loader> <program> <1 + interpreter> <mask> <size of text> <text><path>": descriptors
 * of the run, the loader, the program's file and its interpreter's, the program's signal mask
 * (execve is made with all blocked: a signal that the core held back would be lost), what
 * dfi_files_exec() wrote, and the path for AT_EXECFN.
 */
#define DFI_MARKER "DIRECTFUSE_EXEC="

/* What an image is to execve(2). */
enum dfi_image {
    DFI_IMAGE_ELF,     /* for this machine, 64 bits: ours to load */
    DFI_IMAGE_SCRIPT,  /* "#!" */
    DFI_IMAGE_FOREIGN, /* an ELF file for another ABI, which the kernel may know */
    DFI_IMAGE_UNKNOWN,
};

#define DFI_SEGMENTS_MAX 128 /* program headers; more are refused: ENOEXEC */
#define DFI_LINE         256 /* bytes of a script that are its first line: BINPRM_BUF_SIZE */

/* The beginning of a file, by one read: of most programs all headers and the interpreter's name. */
struct dfi_head {
    size_t size; /* bytes of the file */
    _Alignas(8) char bytes[1024];
};

/* Fills in the head; a script's first line ends with NUL. interpreter: PATH_MAX + 1 bytes for the
 * name in an ELF file, empty for a static program; NULL: it is not looked for. */
enum dfi_image dfi_image_look(int fd, struct dfi_head *head, char *interpreter);

/* The program headers of an ELF file that was looked at. They lie in the head, or in *memory, which
 * is the caller's to dfi_free(). NULL: they are not there, or too many. */
struct elf64_phdr;
const struct elf64_phdr *dfi_image_segments(int fd, const struct dfi_head *head, void **memory);

/*
 * The loader, as a descriptor that all programs of a run have: the very file, whatever has become
 * of its path, in a chroot too, and without a look into /proc. -1: there is none.
 */
extern int dfi_loader_fd;
void dfi_loader_keep(const char *path);

/* Whether /proc/self/exe is the loader; not so in a program that was entered by LD_PRELOAD. */
extern bool dfi_loader_is_self;

/* What dfi_exec() is asked for. */
struct dfi_exec {
    struct dfi_process *process;
    int dirfd, flags;
    const char *path;
    unsigned long argv, envp; /* of the program's memory */
    unsigned long mask;       /* the program's signal mask; all are blocked */
};

/* execve as asked; returns only when it failed, or DFI_PASS: it is to be left to the kernel. */
long dfi_exec(const struct dfi_exec *asked);

/* Frees what an execve of that thread has allocated. One that succeeded in a child which shares its
 * parent's memory has left it behind: the parent's to free. */
void dfi_exec_free(struct dfi_thread *thread);

#endif
