/*
 * program.c - opening a real file to execute it, with the errors of execve(2).
 */
#include "intercept/brief.h"
#include "intercept/intercept.h"
#include "intercept/proc_link.h"

#include <asm/stat.h>
#include <linux/fcntl.h>

#define X_OK    1
#define S_IFMT  0170000 /* linux/stat.h hides them where glibc is installed */
#define S_IFREG 0100000

/* By the effective ids, as execve(2) asks. Kernels before 5.8 and filters that are as old do not
 * know the call; the one before it goes by the real ids, which seldom differ. */
static long check_executable(int fd)
{
    char name[DFI_PROC_LINK_MAX];
    long result = dfi_kernel(__NR_faccessat2, fd, "", X_OK, AT_EMPTY_PATH | AT_EACCESS);
    if (result != -ENOSYS && result != -EPERM)
        return result;
    dfi_proc_link(fd, name);
    return dfi_kernel(__NR_faccessat, AT_FDCWD, name, X_OK);
}

/* EACCES for what is no regular file, as execve(2) says. */
static long check_file(int fd)
{
    struct stat st;
    long result = dfi_kernel(__NR_fstat, fd, &st);
    if (result < 0)
        return result;
    return (st.st_mode & S_IFMT) == S_IFREG ? check_executable(fd) : -EACCES;
}

static long open_file(int dirfd, const char *path, int flags, long how)
{
    if (path[0] == '\0' && (flags & AT_EMPTY_PATH) != 0) {
        if (dfi_kernel(__NR_fcntl, dirfd, F_GETFD) < 0)
            return -EBADF;
        char name[DFI_PROC_LINK_MAX];
        dfi_proc_link(dirfd, name);
        return dfi_brief(__NR_openat, AT_FDCWD, name, how, 0);
    }
    if ((flags & AT_SYMLINK_NOFOLLOW) != 0)
        how |= O_NOFOLLOW;
    return dfi_brief(__NR_openat, dirfd, path, how, 0);
}

long dfi_program_open(int dirfd, const char *path, int flags)
{
    if ((flags & ~(AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW)) != 0)
        return -EINVAL;
    long fd = open_file(dirfd, path, flags, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd == -EACCES) /* it may be one that can be executed, but not read */
        fd = open_file(dirfd, path, flags, O_PATH | O_CLOEXEC);
    if (fd < 0)
        return fd;
    long result = check_file((int)fd);
    if (result < 0) {
        dfi_brief_close(fd);
        return result;
    }
    return fd;
}
