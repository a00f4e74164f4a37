/*
 * image_head.h - what a file is to execve(2), and the headers of one that is an ELF program.
 */
#ifndef DF_INTERCEPT_IMAGE_HEAD_H
#define DF_INTERCEPT_IMAGE_HEAD_H

#include "intercept/intercept.h"

/* What an image is to execve(2). */
enum dfi_image {
    DFI_IMAGE_ELF,     /* for this machine, 64 bits: ours to load */
    DFI_IMAGE_SCRIPT,  /* "#!" */
    DFI_IMAGE_FOREIGN, /* an ELF file for another ABI, which the kernel may know */
    DFI_IMAGE_UNKNOWN,
    DFI_IMAGE_UNREADABLE, /* it may be executed, but not read */
};

#define DFI_SEGMENTS_MAX 128 /* program headers; more are refused: ENOEXEC */
#define DFI_HEAD_MIN     64  /* bytes of an ELF file's own header */
#define DFI_LINE         256 /* bytes of a script that are its first line: BINPRM_BUF_SIZE */

/* The beginning of a file, by one read: of most programs all headers and the interpreter's name. */
struct dfi_head {
    size_t size; /* bytes of the file */
    _Alignas(8) char bytes[1024];
};

/* Fills in the head; behind a short file there are zeros to the end of a first line. interpreter:
 * PATH_MAX + 1 bytes for the name in an ELF file, empty for a static program; NULL: it is not
 * looked for. */
enum dfi_image dfi_image_look(int fd, struct dfi_head *head, char *interpreter);

/* The program headers of an ELF file that was looked at. They lie in the head, or in *memory, which
 * is the caller's to dfi_free(). NULL: they are not there, or too many. */
struct elf64_phdr;
const struct elf64_phdr *dfi_image_segments(int fd, const struct dfi_head *head, void **memory);

#endif
