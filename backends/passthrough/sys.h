/*
 * sys.h - the system calls of the hot operations, made where they are needed.
 *
 * libc's pread(2), say, is a function and a cancellation point. Neither is wanted: a thread that
 * serves a file system is not cancelled, and where the kernel guards its own returns (safe RET, RSB
 * filling) each function that a system call returns through costs a mispredicted return, as much as
 * all of what this file system adds. libc's fstat(2) moreover is newfstatat(2) with an empty path.
 *
 * All return a count or 0, or a negative errno, as operations do. Elsewhere than on x86-64 they are
 * libc's.
 */
#ifndef PASSTHROUGH_SYS_H
#define PASSTHROUGH_SYS_H

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__) && defined(__LP64__)

static inline __attribute__((always_inline)) long sys_call4(long number, long a, long b, long c,
                                                            long d)
{
    register long fourth __asm__("r10") = d;
    long result;

    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "0"(number), "D"(a), "S"(b), "d"(c), "r"(fourth)
                     : "rcx", "r11", "memory");
    return result;
}

#define SYS_CALL(name, libc, a, b, c, d)                                                           \
    sys_call4(SYS_##name, (long)(a), (long)(b), (long)(c), (long)(d))

#else

#define SYS_CALL(name, libc, a, b, c, d)                                                           \
    ({                                                                                             \
        long result_ = (libc);                                                                     \
        result_ < 0 ? -(long)errno : result_;                                                      \
    })

#endif

static inline int sys_fstat(int fd, struct stat *st)
{
    return (int)SYS_CALL(fstat, fstat(fd, st), fd, st, 0, 0);
}

static inline int sys_fstatat(int dirfd, const char *path, struct stat *st, int flags)
{
    return (int)SYS_CALL(newfstatat, fstatat(dirfd, path, st, flags), dirfd, path, st, flags);
}

/* Without O_CREAT: what is made may need the care of libc's openat, see passthrough_create(). */
static inline int sys_openat(int dirfd, const char *path, int flags)
{
    return (int)SYS_CALL(openat, openat(dirfd, path, flags), dirfd, path, flags, 0);
}

static inline int sys_close(int fd)
{
    return (int)SYS_CALL(close, close(fd), fd, 0, 0, 0);
}

static inline ssize_t sys_pread(int fd, void *buf, size_t size, off_t offset)
{
    return SYS_CALL(pread64, pread(fd, buf, size, offset), fd, buf, size, offset);
}

static inline ssize_t sys_pwrite(int fd, const void *buf, size_t size, off_t offset)
{
    return SYS_CALL(pwrite64, pwrite(fd, buf, size, offset), fd, buf, size, offset);
}

static inline int sys_unlinkat(int dirfd, const char *path, int flags)
{
    return (int)SYS_CALL(unlinkat, unlinkat(dirfd, path, flags), dirfd, path, flags, 0);
}

#endif
