/*
 * exec_check.c - execveat(2) with AT_EXECVE_CHECK: may the file be executed, and nothing more.
 */
#include "intercept/brief.h"
#include "intercept/exec_private.h"

#include <linux/fcntl.h>

static long ask(long fd, unsigned long argv, unsigned long envp)
{
    return dfi_kernel(__NR_execveat, fd, "", argv, envp, AT_EMPTY_PATH | AT_EXECVE_CHECK);
}

/* Linux before 6.14 does not know the flag, and says so before it looks at anything else. What
 * stands for a file of a mount has no rights that count: those have been asked for already. */
long dfi_exec_check(const struct dfi_exec *asked)
{
    bool virtual = false;
    if (ask(-1, 0, 0) == -EINVAL)
        return -EINVAL;
    int flags = asked->flags & ~AT_EXECVE_CHECK;
    long fd = dfi_files_program(asked->dirfd, asked->path, flags, &virtual, NULL);
    if (fd < 0)
        return fd;
    long result = ask(fd, asked->argv, asked->envp);
    dfi_brief_close(fd);
    return virtual && result == -EACCES ? 0 : result;
}
