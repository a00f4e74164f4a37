/*
 * map.h - mappings of the data files of mounts (shadow_map.c): which memory shows which file, so
 * that what programs change there finds its way back, and what is not there yet is brought.
 *
 * The mapping itself is the kernel's: coherent between the programs of a job. It is a use of the
 * file: the open file description lives until munmap(2). A shared one is written back by msync,
 * fsync, munmap, exec and the end of the process, comparing with what the mount has, so that what
 * nobody changed is not written.
 *
 * Memory of a file that is copied by chunks is PROT_NONE until it is touched. A touch is SIGSEGV,
 * which dfi_maps_fault() answers; a system call must not fault in the kernel, so before each call
 * of a process with such memory dfi_files_touch() brings what its arguments point to, and pins it
 * until the call is done.
 *
 * Where memory is short chunks are given up again, the oldest first (map_reclaim.c): those of this
 * process, which makes them PROT_NONE before it lets go of them. A chunk that other processes hold
 * stays for them.
 */
#ifndef DF_SHADOWS_MAP_H
#define DF_SHADOWS_MAP_H

#include "shadows/held.h"

/* Memory [start, end) shows the file from offset on. */
struct dfi_mapping {
    uintptr_t start, end;
    uint64_t handle;
    off_t offset;
    int prot;    /* as the program wants it; of a late one */
    bool shared; /* MAP_SHARED: written back, if it is or was */
    bool stored; /* writable: else nothing was stored there, and what differs others have changed */
    bool late;   /* brought when it is touched */
    bool locked; /* mlock(2): not given up */
    bool torn;   /* of a child of fork(2): some of it may not be there */
};

struct dfi_maps {
    size_t count, room;
    uintptr_t brought, brought_end; /* last for a system call: it is there */
    struct dfi_pins *pins;          /* of all calls under way */
    struct dfi_mapping list[];
};

/* False: the process has never mapped a file of a mount. */
static inline bool dfi_maps_are_there(const struct dfi_files *files)
{
    return __atomic_load_n(&files->maps, __ATOMIC_ACQUIRE) != NULL;
}

void dfi_maps_lock(struct dfi_files *files);
void dfi_maps_unlock(struct dfi_files *files);

/* Takes over one use of the file. 0 or -ENOMEM. */
long dfi_maps_add(struct dfi_files *files, const struct dfi_mapping *mapping);

/* The range shows nothing of ours any more. What was stored there was written back before. */
void dfi_maps_cut(struct dfi_files *files, uintptr_t start, uintptr_t end);

/* Whether something of ours shows in the range. */
bool dfi_maps_any(struct dfi_files *files, uintptr_t start, uintptr_t end);

/* The kernel's call, by which the range shows nothing of ours any more: written back first. What is
 * refused leaves all as it is. Its result. */
long dfi_maps_replace(struct dfi_files *files, long nr, const unsigned long a[6], uintptr_t start,
                      uintptr_t end);

/* A mapping that reaches across the address becomes two. Under the lock. 0, or -ENOMEM: it stays
 * one. */
long dfi_maps_split(struct dfi_files *files, uintptr_t at);

/* What was at [from, from + old) is at [to, to + size) now: mremap(2). What it cuts off was written
 * back before. */
void dfi_maps_move(struct dfi_files *files, uintptr_t from, size_t old, uintptr_t to, size_t size);

/* What is at [from, from + old) is at [to, to + size) as well: mremap(2) with MREMAP_DONTUNMAP, or
 * with an old size of 0, of the mapping at `from`. */
void dfi_maps_repeat(struct dfi_files *files, uintptr_t from, size_t old, uintptr_t to,
                     size_t size);

/* remap_file_pages(2): the range, in which something of ours shows, shows other pages of its file.
 * What the kernel says. */
long dfi_maps_turn(struct dfi_files *files, const unsigned long a[6], uintptr_t start,
                   uintptr_t end);

/* A shared mapping of a file that is open for reading and writing. */
bool dfi_maps_may_write(const struct dfi_files *files, const struct dfi_mapping *m);

/* One through which something may have been stored: to be written back. */
static inline bool dfi_maps_may_have_stored(const struct dfi_files *files,
                                            const struct dfi_mapping *m)
{
    return m->stored && dfi_maps_may_write(files, m);
}

/* Memory of the range is about to become writable: mprotect(2). */
void dfi_maps_store(struct dfi_files *files, uintptr_t start, uintptr_t end);

/* A fault of the program at that address: true when the memory is there now, or will give SIGBUS.
 * `error` is the processor's: what was tried. */
bool dfi_maps_fault(struct dfi_files *files, uintptr_t at, unsigned long error);

/* The chunk is there and held by us, though others have to be given up for it; `patient`: by other
 * processes too, which may take time. Under the lock. 0 or -errno; -ENOSPC: there is no room. */
long dfi_maps_hold(struct dfi_files *files, const struct dfi_mapping *m, uint64_t chunk,
                   bool patient);

/* Gives up the oldest of what is held that may go, unless that is all it takes to go on. Under the
 * lock. */
bool dfi_maps_give_up_one(struct dfi_files *files);

/* Gives up half of what is held if another process wants it. Under the lock. */
void dfi_maps_oblige(struct dfi_files *files);

/* What no memory of ours shows any more is not held. Under the lock. */
void dfi_maps_let_go(struct dfi_files *files);

/* The chunk of a shared mapping is written back from its data file. 0 or -errno. */
long dfi_maps_write_chunk(struct dfi_files *files, const struct dfi_mapping *m, long data,
                          uint64_t chunk);

/* The mapping shows that chunk of the file. */
bool dfi_maps_shows(const struct dfi_files *files, const struct dfi_mapping *m, uint64_t ino,
                    uint64_t key);

/* Memory [*start, *end) of the mapping is that of the chunk, which it shows. */
void dfi_maps_part(const struct dfi_mapping *m, uint64_t chunk, uintptr_t *start, uintptr_t *end);

/* mprotect(2) or pkey_mprotect(2), of a range up to `end` in which there is late memory; else
 * DFI_PASS. */
long dfi_maps_protect(struct dfi_files *files, const struct dfi_frame *frame, uintptr_t end);

/* A child that shared our memory is gone, perhaps killed during calls: what they looked at may be
 * given up. */
void dfi_maps_unpin(struct dfi_files *files, const struct dfi_files *of);

/* A child with a copy of our memory: what it touches it holds itself. */
void dfi_maps_born(struct dfi_files *files);

/* The same, when it has files of its own: what its parent alone has (MADV_DONTFORK) is forgotten.
 */
void dfi_maps_settle(struct dfi_files *files);

/* Late memory of the range becomes PROT_NONE throughout, as one mapping: for mremap(2). */
void dfi_maps_unready(struct dfi_files *files, uintptr_t start, uintptr_t end);

/* Writes back what shows in the range; `sync`: and has the server hand it over, as fsync(2). 0 or
 * the first error. */
long dfi_maps_write_back(struct dfi_files *files, uintptr_t start, uintptr_t end, bool sync);

/* df_call_fsync() or the like, by a descriptor of core/fd.h: what was stored in memory that shows
 * the file is written as well, as by the kernel. */
long dfi_maps_sync_file(struct dfi_files *files, int fd, int (*sync)(int fd));

/* All of it. */
void dfi_maps_sync(struct dfi_files *files);

void dfi_maps_free(struct dfi_maps *maps);

#endif
