/*
 * exec_private.h - one execve under way, shared by exec*.c.
 */
#ifndef DF_INTERCEPT_EXEC_PRIVATE_H
#define DF_INTERCEPT_EXEC_PRIVATE_H

#include "intercept/exec.h"
#include "intercept/image_head.h"

#define DFI_SCRIPT_DEPTH 5 /* as the kernel: interpreters of interpreters */
#define DFI_MARKER_SIZE  (3 * PATH_MAX)

/* One execution: what was asked, and what it became on the way through scripts. */
struct dfi_order {
    const struct dfi_exec *asked;
    int fd;             /* of the image; -1: none */
    int interpreter_fd; /* of its interpreter's; < 0: none */
    char *path;         /* PATH_MAX; of a script that of its interpreter */
    char *name;         /* PATH_MAX; of the image's file in a mount; "": it lies in none */
    char **head;        /* words of interpreters that come before argv; argv[0] is dropped then */
    size_t head_count;
    char *words; /* the memory of head's strings */
    size_t words_used;
    bool outside; /* to be run by the kernel alone */
};

#define DFI_HEAD_WORDS (3 * DFI_SCRIPT_DEPTH)
#define DFI_WORDS_SIZE (2 * PATH_MAX + DFI_SCRIPT_DEPTH * DFI_LINE)

/* ---- exec_check.c ---- */

#ifndef AT_EXECVE_CHECK
#define AT_EXECVE_CHECK 0x10000 /* linux/fcntl.h since 6.14 */
#endif

/* The call with that flag: 0 or -errno. */
long dfi_exec_check(const struct dfi_exec *asked);

/* ---- exec_script.c ---- */

/* The interpreter that the script's first line names becomes the program; its words go in front of
 * the script's path. 0 or -errno. */
long dfi_exec_script(struct dfi_order *order, char *line);

/* ---- exec_words.c: the words of the next program ---- */

/* Zeroed memory, until dfi_exec_free(). */
void *dfi_exec_take(size_t size);

/* Strings of an array that ends with NULL, in the program's memory; -EFAULT, -E2BIG. */
long dfi_exec_count(unsigned long array);

/* argv of `count` strings with the interpreters' words in front of it, envp of `count` strings with
 * the marker behind it. NULL: no memory, or the program's cannot be read. */
char **dfi_exec_argv(const struct dfi_order *order, long count);
char **dfi_exec_envp(const struct dfi_order *order, long count, char *marker);

/* Writes the marker (exec.h), DFI_MARKER_SIZE bytes at most; scratch: PATH_MAX. 0 or -errno. */
long dfi_exec_marker(const struct dfi_order *order, char *marker, char *scratch);

#endif
