/*
 * fd.h - virtual descriptors: numbers from DF_FD_BASE up, far above any number the kernel hands
 * out, so that "is it ours?" is one compare and a real call given one fails with EBADF.
 *
 * A slot holds a pointer to the df_file and the close-on-exec bit in one word. Readers take the
 * file without a lock, keep it (by a use or a reference), and look again whether the slot still
 * holds it.
 */
#ifndef DF_CORE_FD_H
#define DF_CORE_FD_H

#include <stdbool.h>
#include <stdint.h>

#include "core/export.h"
#include "core/file.h"

struct df_thread;

#define DF_FD_BASE (1 << 30)
#define DF_FD_MAX  (1 << 20) /* descriptors open at a time in one process; then EMFILE */

static inline bool df_fd_ours(int fd)
{
    return fd >= DF_FD_BASE;
}

/* The file of a descriptor, in use by the thread's innermost call until that ends (or
 * df_gate_unuse()); that call uses no other yet. NULL: EBADF. */
struct df_file *df_fd_use(struct df_thread *thread, int fd);

/* The same with a reference, which lasts (give it back with df_file_put). */
struct df_file *df_fd_get(struct df_thread *thread, int fd);

/* A free descriptor, kept for the caller until he installs a file or gives it back; as Linux does,
 * before the file is opened. Returns it, or -EMFILE. */
int df_fd_reserve(struct df_thread *thread);
void df_fd_install(int fd, struct df_file *file, bool cloexec); /* takes over the reference */
void df_fd_give_back(struct df_thread *thread, int fd);

/* Installs the file, with the caller's reference, at the lowest free descriptor >= least (itself
 * virtual), for F_DUPFD. Returns it, or -EMFILE or -EINVAL (out of range): the reference stays. */
int df_fd_install_from(struct df_file *file, int least, bool cloexec);

/* Puts the file, with the caller's reference, at fd; *old is what was there, with its reference,
 * or NULL. For dup3(2). Returns fd, or (the reference stays) -EBADF: out of range, -EBUSY: reserved
 * by an open in progress. */
int df_fd_replace(int fd, struct df_file *file, bool cloexec, struct df_file **old);

/* Takes the file out of the table, with its reference; NULL: EBADF. */
struct df_file *df_fd_take(struct df_thread *thread, int fd);

/* Close-on-exec: 0 or 1, or -EBADF. Kept for F_GETFD; exec drops every virtual descriptor. */
int df_fd_cloexec(int fd);
int df_fd_set_cloexec(int fd, bool cloexec);

/* Number of open descriptors (slow: counts). */
DF_PRIVATE_EXPORT unsigned df_fd_count(void);

/* The free descriptors kept by a thread that ends go back to all. */
void df_fd_unstash(struct df_thread *thread);

void df_fd_lock(void); /* for fork.c */
void df_fd_unlock(void);

#endif
