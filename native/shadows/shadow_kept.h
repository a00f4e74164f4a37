/*
 * shadow_kept.h - data files that outlive the last who has their file open, for the next who maps
 * it: as the kernel's page cache, which costs no copy when a file is mapped again.
 *
 *   k/<mount>.<ino>.<id>.<written>   the data file by another name, as long as these are true of
 *                                    the file: df_content_id() and df_content.written
 *   l/<mount>.<ino>.<id>.<written>   the list of its chunks, of a large one
 *
 * Ids are never used twice, and every write counts: so what somebody has changed since is not found
 * any more, whoever it was. Names that lead nowhere any more, and more than there is room for, the
 * server removes (server/mapped.c).
 *
 * The lock of the run is held for dfi_kept_now(), dfi_kept_take() and dfi_kept_leave(), which are
 * about data files. A copy of code gets its name when it is complete, and is never changed.
 */
#ifndef DF_SHADOWS_SHADOW_KEPT_H
#define DF_SHADOWS_SHADOW_KEPT_H

#include "client/files.h"
#include "shadows/shadow.h"

#define DFI_KEPT_LEAST ((off_t)64 << 10) /* bytes: to copy fewer is as cheap as a name */

/* Which bytes a file has. */
struct dfi_kept {
    uint64_t id; /* 0: that is not known; dfi_kept_now(): or somebody may be writing to it */
    uint64_t written;
};

struct dfi_kept dfi_kept_of(const struct dfi_files *files, const struct df_ofd *ofd,
                            uint64_t handle);

/* The same, for who is about to keep them: a write that was counted may not have been made yet. */
struct dfi_kept dfi_kept_now(const struct dfi_files *files, const struct df_ofd *ofd,
                             uint64_t handle);

/* Whether some program of the run has asked this before, of the same bytes by another open file,
 * and what is made of them would be kept. Who asks is about to copy them. */
bool dfi_kept_again(const struct dfi_files *files, const struct df_ofd *ofd, uint64_t handle);

/* No byte of it has changed since. */
bool dfi_kept_holds(const struct dfi_files *files, const struct df_ofd *ofd, uint64_t handle,
                    const struct dfi_kept *kept);

/* What is kept of these bytes, which are so many, becomes the data file, and the list of chunks
 * (`chunked`). False: nothing is. */
bool dfi_kept_take(const struct dfi_files *files, const struct df_ofd *ofd,
                   const struct dfi_kept *kept, off_t size, bool chunked);

/* The data file, and the list of chunks, are kept as those of these bytes. */
void dfi_kept_leave(const struct dfi_files *files, const struct df_ofd *ofd,
                    const struct dfi_kept *kept, bool chunked);

/* Memory is short: nothing is kept. True: something was. */
bool dfi_kept_drop(const struct dfi_files *files);

/* ---- for code_file.c ---- */

#define DFI_KEPT_CODE     'x'
#define DFI_KEPT_NAME_MAX (DFI_SHADOW_NAME_MAX + 2 * 21)

/* <shadow>/<letter>/<mount>.<ino>.<id>.<written> */
void dfi_kept_name(const struct dfi_files *files, char letter, const struct df_ofd *ofd,
                   const struct dfi_kept *kept, char name[DFI_KEPT_NAME_MAX]);

/* How much those of a letter take, in bytes. */
uint64_t dfi_kept_bytes(const struct dfi_files *files, char letter);

/* Those of code have no name any more; who runs them goes on. */
bool dfi_kept_drop_code(const struct dfi_files *files);

#endif
