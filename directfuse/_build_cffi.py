"""Writes the C source of `directfuse._cffi`, the control side of the package (API mode of cffi).

python directfuse/_build_cffi.py FILE

The calls are declared from the rows of `native/core/calls.def`, so a new call needs no second list
here; what concerns mounts is written out below and checked by the C compiler against the headers.
"""

import re
import sys
from pathlib import Path

import cffi

NATIVE = Path(__file__).resolve().parent.parent / "native"

SOURCE = """
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <directfuse.h>
#include "api/joined.h"
#include "api/served.h"
#include "core/build.h"
#include "core/calls.h"
#include "core/fd.h"
#include "core/route.h"
#include "process/abandoned.h"
#include "process/memory_limit.h"
#include "server/process.h"
#include "process/size.h"

/* A signal's handler of Python may run, and fail, before errno could be asked for. */
static int with_errno(int result)
{
    return result < 0 ? -errno : result;
}
"""

#: Functions that set errno: here a failure is a negative errno, as of the raw calls.
SETTING_ERRNO = (
    "mount",
    "mount_launch",
    "mount_served",
    "unmount",
    "identity_refresh",
    "fallocate",
    "statx",
    "renameat2",
)

DECLARATIONS = """
typedef int... mode_t;
typedef int... uid_t;
typedef int... gid_t;
typedef int... dev_t;
typedef int... off_t;
typedef int... nfds_t;
typedef int... time_t;

struct timespec { time_t tv_sec; long tv_nsec; };
struct pollfd { int fd; short events; short revents; };
struct statvfs {
    unsigned long f_bsize, f_frsize;
    unsigned long f_blocks, f_bfree, f_bavail, f_files, f_ffree, f_favail;
    unsigned long f_fsid, f_flag, f_namemax;
    ...;
};
struct stat;
struct statx_timestamp { int64_t tv_sec; uint32_t tv_nsec; ...; };
struct statx {
    uint32_t stx_mask, stx_blksize;
    uint32_t stx_nlink, stx_uid, stx_gid;
    uint16_t stx_mode;
    uint64_t stx_ino, stx_size, stx_blocks;
    struct statx_timestamp stx_atime, stx_btime, stx_ctime, stx_mtime;
    uint32_t stx_rdev_major, stx_rdev_minor, stx_dev_major, stx_dev_minor;
    ...;
};
struct iovec;
struct df_read;

#define DF_FD_BASE ...
#define DF_NOT_OURS ...
#define DF_MOUNT_TIMING ...
#define DF_MOUNT_NOSTATS ...
#define DF_MOUNT_SERVER ...
#define DF_MOUNT_RESTART ...
#define DF_UNMOUNT_LAZY ...
#define DF_UNMOUNT_LEAVE ...

int df_mount(const char *library, int argc, char *const argv[], unsigned flags, char *message,
             size_t size);
extern const char df_build[];
int df_mount_launch(const char *library, int argc, char *const argv[], unsigned flags,
                    char *message, size_t size);
int df_mount_served(int socket, unsigned flags, char *message, size_t size);
#define DF_SOCKET_PATH_SIZE ...
int df_joined_points(const char *name, char *points, size_t room, char *message, size_t size);
int df_joined_socket_path(const char *name, bool make, char *path);
int df_size_of(const char *variable, uint64_t *bytes, char *message, size_t size);
struct df_memory_limit {
    uint64_t bytes;
    char directory[...];
};
bool df_memory_limit_find(struct df_memory_limit *limit);
int df_server_process_configure(char *message, size_t size);
void df_abandoned_watch(int control);
void df_abandoned_over(void);
struct df_kept;
int df_server_process(int control, int listener, bool stay, int report,
                      const struct df_kept *kept);
int df_unmount(int mount, unsigned flags);

struct df_mount_info {
    int id;
    unsigned read_only;
    dev_t dev;
    char fsname[64];
    char subtype[64];
    char mountpoint[4096];
};
int df_mounts(struct df_mount_info *list, size_t count);

struct df_op_stats {
    const char *name;
    uint64_t calls, errors, bytes, nanoseconds;
};
int df_stats(int mount, struct df_op_stats *stats, size_t count);

struct df_trip_stats {
    uint64_t trips, spun, slept, hits;
};
int df_set_call_timeout(int mount, unsigned milliseconds);
int df_trip_stats(int mount, struct df_trip_stats *stats);

struct df_call_stats {
    const char *name;
    uint64_t passed, refused;
};
int df_call_stats(struct df_call_stats *stats, size_t count);

mode_t df_umask(mode_t mask);
int df_identity_refresh(void);

int df_fallocate(int fd, int mode, off_t offset, off_t length);
int df_statx(int dirfd, const char *path, int flags, unsigned mask, struct statx *stx);
int df_renameat2(int from_dirfd, const char *from, int to_dirfd, const char *to, unsigned flags);
"""

_ROW = re.compile(r"^DF_CALL\((\w+),\s*(\w+),\s*\(([^()]*)\)", re.MULTILINE)


def read_calls(table: str) -> str:
    """The prototype of df_call_<name> for each row of calls.def."""
    return "\n".join(f"{kind} df_call_{name}({args});" for kind, name, args in _ROW.findall(table))


def returning_errno(name: str) -> str:
    """The lines of C by which df_<name>() returns what it has set."""
    return f"#define df_{name}(...) with_errno(df_{name}(__VA_ARGS__))\n"


def builder() -> cffi.FFI:
    """The declarations and the source, ready to be written out."""
    source = SOURCE + "".join(map(returning_errno, SETTING_ERRNO))
    ffi = cffi.FFI()
    ffi.cdef(DECLARATIONS + read_calls((NATIVE / "core/calls.def").read_text()))
    ffi.set_source("directfuse._cffi", source, py_limited_api=True)
    return ffi


if __name__ == "__main__":
    builder().emit_c_code(sys.argv[1])
