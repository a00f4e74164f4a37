/*
 * program.c - opening a real file to execute it, with the errors of execve(2).
 */
#include "intercept/intercept.h"

#include <linux/fcntl.h>
#include <linux/stat.h>

#define X_OK 1
#ifndef S_IFMT /* linux/stat.h hides them where glibc is installed */
#define S_IFMT  0170000
#define S_IFREG 0100000
#endif

/* The file type and mode, by statx(2): EACCES for what is no regular file, as execve says. */
static long check_file(long fd)
{
    struct statx st;
    long result = dfi_kernel(__NR_statx, fd, "", AT_EMPTY_PATH, STATX_TYPE | STATX_MODE, &st);
    if (result < 0)
        return result;
    if ((st.stx_mode & S_IFMT) != S_IFREG)
        return -EACCES;
    return dfi_kernel(__NR_faccessat2, fd, "", X_OK, AT_EMPTY_PATH | AT_EACCESS);
}

static long open_file(int dirfd, const char *path, int flags, long how)
{
    if (path[0] == '\0' && (flags & AT_EMPTY_PATH) != 0) {
        if (dirfd < 0)
            return -EBADF;
        char name[32] = "/proc/self/fd/", digits[12];
        int at = 14, count = 0;
        for (int number = dirfd; count == 0 || number != 0; number /= 10)
            digits[count++] = (char)('0' + number % 10);
        while (count > 0)
            name[at++] = digits[--count];
        name[at] = '\0';
        return dfi_kernel(__NR_openat, AT_FDCWD, name, how, 0);
    }
    if ((flags & AT_SYMLINK_NOFOLLOW) != 0)
        how |= O_NOFOLLOW;
    return dfi_kernel(__NR_openat, dirfd, path, how, 0);
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
    long result = check_file(fd);
    if (result < 0) {
        dfi_kernel(__NR_close, fd);
        return result;
    }
    return fd;
}
