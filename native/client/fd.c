/*
 * fd.c - which descriptors of the process are files of mounts.
 *
 * To native/core such a descriptor is its number plus DF_FD_BASE. A df_file is made anew for each
 * call from the open file description that all processes share: there is nothing to keep in step.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

#include "client/files.h"
#include "client/record.h"
#include "client/remote.h"
#include "client/table.h"
#include "core/call.h"
#include "core/fd.h"
#include "core/lock.h"
#include "core/mount.h"
#include "intercept/brief.h"

/* ---- the map ------------------------------------------------------------------------------- */

#define MAP_SIZE  (DFI_FD_MAX * sizeof(uint64_t))
#define USES_SIZE (DF_OFD_COUNT * sizeof(uint32_t))
#define TOLD_SIZE (DFI_FD_MAX / 8)
#define ALL_SIZE  (MAP_SIZE + USES_SIZE + TOLD_SIZE)

/* Zero pages, which cost nothing until they are touched. Most processes have no file of a mount. */
bool dfi_fd_room(struct dfi_files *files)
{
    _Atomic uint64_t *none = NULL;
    long at;

    if (__atomic_load_n(&files->map, __ATOMIC_ACQUIRE))
        return true;
    at = dfi_kernel(__NR_mmap, 0, ALL_SIZE, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at < 0 && at > -4096)
        return false;
    if (!__atomic_compare_exchange_n(&files->map, &none, (_Atomic uint64_t *)at, false,
                                     __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        dfi_kernel(__NR_munmap, at, ALL_SIZE); /* another thread has been faster */
    return true;
}

void dfi_fd_free(struct dfi_files *files)
{
    if (files->map)
        dfi_kernel(__NR_munmap, files->map, ALL_SIZE);
}

void dfi_fd_hold(struct dfi_files *files, uint64_t handle)
{
    atomic_fetch_add(&dfi_uses(files)[df_handle_index(handle)], 1);
}

bool dfi_fd_hold_open(struct dfi_files *files, uint64_t handle)
{
    _Atomic uint32_t *uses = &dfi_uses(files)[df_handle_index(handle)];
    uint32_t before = atomic_load_explicit(uses, memory_order_relaxed);

    while (before > 0)
        if (atomic_compare_exchange_weak(uses, &before, before + 1))
            return true;
    return false;
}

bool dfi_fd_hold_beside_others(struct dfi_files *files, uint64_t handle)
{
    return !dfi_is_alone() && files->map && dfi_fd_hold_open(files, handle);
}

/* A number whose file is closed meanwhile is of none by then, or of another file. */
uint64_t dfi_fd_take(struct dfi_files *files, int fd)
{
    uint64_t entry = dfi_entry_of(files, fd), now;

    while (entry && !dfi_fd_hold_open(files, dfi_handle_in(entry))) {
        now = dfi_entry_of(files, fd);
        entry = now != entry ? now : 0;
    }
    return entry;
}

/* The file is closed by close(2), of which FLUSH is part; by munmap(2) it is only dropped. */
long dfi_fd_drop(struct dfi_files *files, uint64_t handle, bool flush)
{
    bool last = atomic_fetch_sub(&dfi_uses(files)[df_handle_index(handle)], 1) == 1;
    const struct df_ofd *ofd = last || flush ? dfi_ofd(files, handle) : NULL;
    struct df_trip trip;
    long ret = 0;

    if (!ofd)
        return 0;
    trip = dfi_trip_of(files);
    if (ofd->traits & DF_FILE_NOFLUSH ||
        atomic_load_explicit(&ofd->flags, memory_order_relaxed) & O_PATH)
        flush = false;
    if (flush)
        ret = df_trip_flush(&trip, handle, files->caller.lock_owner, last);
    else if (last)
        df_trip_drop_soon(&trip, handle);
    return dfi_as_told(ret);
}

static void raise_top(struct dfi_files *files, int fd)
{
    int top = atomic_load_explicit(&files->top, memory_order_relaxed);

    while (top <= fd && !atomic_compare_exchange_weak(&files->top, &top, fd + 1))
        ;
}

void dfi_fd_enter(struct dfi_files *files, int fd, uint64_t entry)
{
    dfi_fd_hold(files, dfi_handle_in(entry));
    raise_top(files, fd);
    atomic_store_explicit(&files->map[fd], entry, memory_order_release);
}

void dfi_fd_replace(struct dfi_files *files, int fd, uint64_t entry)
{
    uint64_t old;

    if (entry) {
        dfi_fd_hold(files, dfi_handle_in(entry));
        raise_top(files, fd);
    }
    old = dfi_handle_in(atomic_exchange(&files->map[fd], entry));
    if (old)
        dfi_fd_drop(files, old, true);
}

/* ---- fd.h and file.h of native/core ---------------------------------------------------------- */

/* Whether what is open by O_PATH serves for attributes all the same. */
static bool is_lent(const struct dfi_record *record, int fd)
{
    if (fd == DFI_FD_FOREIGN)
        return record->lent;
    return dfi_entry_of(record->files, fd) & DFI_FIFO;
}

/* A df_file for the length of the record. NULL: the handle is closed. */
static struct df_file *make_file(struct dfi_record *record, uint64_t handle, int fd)
{
    struct df_ofd *ofd = dfi_ofd(record->files, handle);
    struct df_mount *mount;
    struct df_file *file;
    int flags;

    if (!ofd || record->used == DFI_RECORD_FILES || !(mount = dfi_table_mount(ofd->mount)))
        return NULL;
    file = &record->file[record->used++];
    flags = (int)atomic_load_explicit(&ofd->flags, memory_order_relaxed);
    if (DF_UNLIKELY(flags & O_PATH) && is_lent(record, fd))
        flags &= ~O_PATH;
    atomic_init(&file->flags, flags);
    file->kind = ofd->kind;
    file->traits = ofd->traits;
    file->far = NULL;
    file->fs = &dfi_remote;
    atomic_init(&file->mount, mount);
    file->ino = ofd->ino;
    file->host[DFI_HOST_HANDLE] = handle;
    file->host[DFI_HOST_FD] = (uint64_t)fd;
    file->host[DFI_HOST_OFD] = (uintptr_t)ofd;
    return file;
}

uint64_t dfi_record_handle(const struct dfi_record *record, int fd)
{
    switch (fd - DF_FD_BASE) {
    case DFI_FD_FOREIGN:
        return record->foreign;
    case DFI_FD_HERE:
        return record->here;
    case DFI_FD_ROOT:
        return record->root;
    default:
        return dfi_file_of(record->files, fd - DF_FD_BASE);
    }
}

struct df_file *df_fd_use(struct df_thread *thread, int fd)
{
    struct dfi_record *record = (struct dfi_record *)thread;
    uint64_t handle = dfi_record_handle(record, fd);

    if (DF_UNLIKELY(!handle)) {
        record->gone = true;
        return NULL;
    }
    return make_file(record, handle, fd - DF_FD_BASE);
}

/* The file lasts as long as the record, and so does a reference. */
struct df_file *df_fd_get(struct df_thread *thread, int fd)
{
    return df_fd_use(thread, fd);
}

/* The placeholder is made when the server has opened the file: calls_open.c. Linux
 * takes a descriptor before it looks at the path; so here, for those whose path would be changed.
 */
int df_fd_reserve(struct df_thread *thread)
{
    long fd;

    if (!((struct dfi_record *)thread)->changes || dfi_process()->lingers)
        return DF_FD_BASE;
    fd = dfi_brief_if_left(__NR_fcntl, ((struct dfi_record *)thread)->files->link.memory,
                           F_DUPFD_CLOEXEC, 0);
    dfi_brief_close(fd);
    return fd < 0 ? (int)fd : DF_FD_BASE;
}

void df_fd_install(int fd, struct df_file *file, bool cloexec)
{
    (void)fd, (void)file, (void)cloexec;
}

void df_fd_give_back(struct df_thread *thread, int fd)
{
    (void)thread, (void)fd;
}

struct df_file *df_file_new(struct df_thread *thread, struct df_mount *mount, struct df_fs *fs,
                            int flags)
{
    struct dfi_record *record = (struct dfi_record *)thread;
    struct df_file *file;

    if (record->used == DFI_RECORD_FILES)
        return NULL;
    file = &record->file[record->used++];
    *file = (struct df_file){.flags = flags, .fs = fs};
    atomic_init(&file->mount, mount);
    return record->opened = file;
}

void df_file_opened(struct df_file *file)
{
    (void)file;
}

void df_file_discard(struct df_thread *thread, struct df_file *file)
{
    struct dfi_record *record = (struct dfi_record *)thread;

    if (file == &record->file[record->used - 1])
        record->used--;
    record->opened = NULL;
}

int df_fd_set_cloexec(int fd, bool cloexec)
{
    return (int)dfi_kernel(__NR_fcntl, fd - DF_FD_BASE, F_SETFD, cloexec ? FD_CLOEXEC : 0);
}

/* References are counted by process and handle, above; those of a record mean nothing. */
void df_file_end(struct df_thread *thread, struct df_file *file)
{
    (void)thread, (void)file;
}

/* A position whose lock cannot be had (the server is gone) is moved without: its file is lost. */
void df_file_lock_position(struct df_file *file)
{
    struct dfi_files *files = dfi_record_now()->files;
    struct df_ofd *ofd = (struct df_ofd *)file->host[DFI_HOST_OFD];

    file->host[DFI_HOST_HELD] = dfi_fd_hold_beside_others(files, file->host[DFI_HOST_HANDLE]);
    df_ofd_lock(&files->link, ofd, false);
    file->position = ofd->position;
}

void df_file_unlock_position(struct df_file *file)
{
    struct dfi_files *files = dfi_record_now()->files;
    struct df_ofd *ofd = (struct df_ofd *)file->host[DFI_HOST_OFD];

    ofd->position = file->position;
    df_ofd_unlock(&files->link, ofd);
    if (DF_UNLIKELY(file->host[DFI_HOST_HELD]))
        dfi_fd_drop(files, file->host[DFI_HOST_HANDLE], false);
}

/* Locks are the kernel's, on placeholders. */
void df_lock_close(struct df_call *call, struct df_file *file, uint64_t owner)
{
    (void)call, (void)file, (void)owner;
}
