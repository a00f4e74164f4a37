/*
 * node.c - FIFOs: a name in a mount, a real FIFO in the shadow directory. Devices that every root
 * has: a name in a mount, the kernel's device.
 */
#include "ways/node.h"

#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "core/calls.h"
#include "intercept/brief.h"
#include "shadows/linger.h"

void dfi_node_name(const struct dfi_files *files, const struct stat *st,
                   char name[DFI_SHADOW_NAME_MAX])
{
    dfi_shadow_name(files, S_ISFIFO(st->st_mode) ? 'n' : 's', st->st_dev, st->st_ino, name);
}

static int wanted_access(int flags)
{
    switch (flags & O_ACCMODE) {
    case O_RDONLY:
        return R_OK;
    case O_WRONLY:
        return W_OK;
    default:
        return R_OK | W_OK;
    }
}

/* The device by the name that it has outside: what is behind it is nobody's secret. NULL: another
 * one, as of a disk, which a name in a mount does not make anybody's. */
static const char *device_name(const struct stat *st)
{
    static const struct {
        unsigned major, minor;
        const char name[16];
    } devices[] = {{1, 3, "/dev/null"},   {1, 5, "/dev/zero"},    {1, 7, "/dev/full"},
                   {1, 8, "/dev/random"}, {1, 9, "/dev/urandom"}, {5, 0, "/dev/tty"}};

    if (!S_ISCHR(st->st_mode))
        return NULL;
    for (size_t i = 0; i < sizeof(devices) / sizeof(devices[0]); i++)
        if (st->st_rdev == makedev(devices[i].major, devices[i].minor))
            return devices[i].name;
    return NULL;
}

/* Flags of an open that makes or empties: there is nothing to make, and no bytes are kept. */
#define NEW (O_CREAT | O_EXCL | O_TRUNC)

/* On the open file description, so who has got the descriptor from others knows it, too. Nothing
 * comes of it: signals of input, for which it is, are sent where O_ASYNC is set. */
#define LENT 64 /* F_SETSIG: the last signal */

static int open_device(const char *name, int flags)
{
    int fd = (int)dfi_kernel_wait(__NR_open, name, flags, 0);

    if (fd >= 0)
        dfi_kernel(__NR_fcntl, fd, F_SETSIG, LENT);
    return fd;
}

bool dfi_node_is_lent(unsigned long fd)
{
    struct stat st;

    return dfi_kernel(__NR_fcntl, fd, F_GETSIG) == LENT && dfi_kernel(__NR_fstat, fd, &st) == 0 &&
           device_name(&st);
}

/* Of the object of that handle, be it open by O_PATH: a call of native/core, which may have used up
 * the files of the record around it. wanted: of access(2), if it can be opened; F_OK: as it is. */
static int look(uint64_t handle, int wanted, struct stat *st)
{
    struct dfi_record record;
    int ret;

    dfi_record_begin_of(&record, handle);
    ret = df_call_fstat(DF_FD_BASE + DFI_FD_FOREIGN, st);
    if (ret == 0 && wanted != F_OK && (S_ISFIFO(st->st_mode) || device_name(st)))
        ret =
            df_call_faccessat(DF_FD_BASE + DFI_FD_FOREIGN, "", wanted, AT_EMPTY_PATH | AT_EACCESS);
    dfi_record_end(&record);
    return ret;
}

/* O_NOATIME is for the owner, whatever is opened: may_open() of the kernel. */
static int check_noatime(const struct dfi_way *way, int flags, const struct stat *st)
{
    const struct df_caller *caller = dfi_caller(way->record.files);

    return !(flags & O_NOATIME) || caller->capable || caller->uid == st->st_uid ? 0 : -EPERM;
}

int dfi_node_open(struct dfi_way *way, int flags)
{
    struct stat st;
    int ret = (int)dfi_way_open(way, &way->leg[0], O_PATH);

    if (ret < 0)
        return ret;
    ret = look(way->record.foreign, wanted_access(flags), &st);
    if (ret == 0)
        ret = check_noatime(way, flags, &st);
    if (ret == 0 && S_ISFIFO(st.st_mode)) {
        dfi_way_keep(way);
        return DF_FD_BASE;
    }
    dfi_way_shut(way);
    if (ret < 0)
        return ret;
    if (!device_name(&st))
        return -ENXIO;
    dfi_linger_end(way->record.files);
    return open_device(device_name(&st), flags & ~NEW);
}

/* ---- FIFOs ----------------------------------------------------------------------------------- */

/* A lock of who makes FIFOs, and of who begins to open one. < 0: no descriptor is left for it. */
static long lock_fifos(const struct dfi_files *files, int how)
{
    char directory[DFI_SHADOW_NAME_MAX];
    long fd;

    strcpy(mempcpy(directory, files->shadow, files->shadow_len), "/n");
    fd = dfi_brief_open(directory, O_RDONLY | O_DIRECTORY);
    while (fd >= 0 && dfi_kernel(__NR_flock, fd, how) == -EINTR)
        ;
    return fd;
}

/* A child of another thread may have a copy of the descriptor. */
static void unlock_fifos(long lock)
{
    if (lock >= 0)
        dfi_kernel(__NR_flock, lock, LOCK_UN);
    dfi_brief_close(lock);
}

static long make_named_fifo(struct dfi_way *way, mode_t mode)
{
    const struct dfi_leg *leg = &way->leg[0];
    char before[DFI_SHADOW_NAME_MAX];
    struct stat st;
    long ret = df_call_mknodat(leg->dirfd, leg->path, mode, 0);

    if (ret < 0 || df_call_fstatat(leg->dirfd, leg->path, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return ret;
    dfi_node_name(way->record.files, &st, before);
    dfi_kernel(__NR_unlink, before);
    return 0;
}

/* Nobody opens it before what stood for another one of its inode number is out of the way. */
long dfi_node_make(struct dfi_way *way, mode_t mode, dev_t device)
{
    long ret, lock;

    if (!S_ISFIFO(mode))
        return df_call_mknodat(way->leg[0].dirfd, way->leg[0].path, mode, device);
    lock = lock_fifos(way->record.files, LOCK_EX);
    ret = make_named_fifo(way, mode);
    unlock_fifos(lock);
    return ret;
}

/* The real one, made when it is missing. */
static void make_fifo(const struct dfi_files *files, const struct stat *st,
                      char name[DFI_SHADOW_NAME_MAX])
{
    dfi_node_name(files, st, name);
    if (dfi_kernel(__NR_mknod, name, S_IFIFO | 0666, 0) == 0)
        dfi_kernel(__NR_chmod, name, 0666);
}

long dfi_node_open_fifo(struct dfi_files *files, uint64_t handle, int flags)
{
    char fifo[DFI_SHADOW_NAME_MAX], name[DFI_SHADOW_NAME_MAX];
    struct stat st;
    long ret = look(handle, F_OK, &st), lock;
    bool named;

    if (ret < 0)
        return ret;
    dfi_linger_end(files);
    lock = lock_fifos(files, LOCK_SH);
    make_fifo(files, &st, fifo);
    dfi_shadow_name(files, DFI_SHADOW_PATH, 0, handle, name);
    named = dfi_kernel(__NR_link, fifo, name) == 0;
    unlock_fifos(lock);
    ret = dfi_kernel_wait(__NR_open, named ? name : fifo, flags & ~NEW, 0);
    if (named)
        dfi_kernel(__NR_unlink, name);
    return dfi_shadow_result(ret);
}
