/*
 * image.c - a private copy of an ELF file; see image.h.
 *
 * The name given to dlopen. glibc compares it with the names of everything loaded before it opens
 * anything, so a name used twice gives back the older object; and a dlopen that fails because
 * memory is short leaves a name that is never good again. So no name is used twice: the copy is
 * opened as /proc/PID/fd/N, with a serial number spelled into it as "/./" and "//", which mean
 * nothing to the kernel. (Not /proc/self, so that debuggers and profilers can follow the name; for
 * them the descriptor of a program stays open as long as it is loaded.)
 */
#include "loader/image.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* What is written in part: a limit of this process, or memory. */
static int why_short(int to)
{
    off_t size = lseek(to, 0, SEEK_CUR);
    struct rlimit limit;
    bool limited = getrlimit(RLIMIT_FSIZE, &limit) == 0 && (rlim_t)size >= limit.rlim_cur;
    return limited ? -EFBIG : -ENOSPC;
}

/* In the kernel where both file systems allow it, else through a buffer. Returns 0 or -errno. */
static int copy_bytes(int from, int to)
{
    char buffer[65536];
    ssize_t count;
    do
        count = copy_file_range(from, NULL, to, NULL, 1 << 30, 0);
    while (count > 0);
    if (count < 0 && lseek(from, 0, SEEK_CUR) == 0) {
        while ((count = read(from, buffer, sizeof(buffer))) > 0) {
            ssize_t put = write(to, buffer, (size_t)count);
            if (put != count)
                return put < 0 ? -errno : why_short(to);
        }
    }
    return count < 0 ? -errno : 0;
}

int df_image_copy(const char *path)
{
    struct stat st;
    int from = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a FIFO must not keep us */
    if (from < 0)
        return -errno;
    int result = fstat(from, &st) != 0 ? -errno : S_ISREG(st.st_mode) ? 0 : -EACCES;
    int to = result == 0 ? memfd_create("directfuse-plugin", MFD_CLOEXEC) : -1;
    if (result == 0)
        result = to < 0 ? -errno : copy_bytes(from, to);
    close(from);
    if (result == 0)
        return to;
    if (to >= 0)
        close(to);
    return result;
}

int df_image_inspect(int fd, struct df_elf *elf)
{
    struct stat st;
    void *data = NULL;
    if (fstat(fd, &st) != 0)
        return -errno;
    size_t size = (size_t)st.st_size;
    if (size > 0)
        data = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (data == MAP_FAILED)
        return -errno;
    df_elf_inspect(elf, data, size);
    return 0;
}

void df_image_release(const struct df_elf *elf)
{
    if (elf->data)
        munmap(elf->data, elf->size);
}

/* The number by which /proc knows this process: another one than getpid() where /proc is that of
 * another PID namespace (`unshare -p` without --mount-proc). */
static int own_number(void)
{
    char text[16];
    ssize_t length = readlink("/proc/self", text, sizeof(text) - 1);

    text[length > 0 ? length : 0] = '\0';
    return length > 0 ? atoi(text) : (int)getpid();
}

void *df_image_load(int fd, int flags)
{
    static unsigned long last_serial;
    char name[256];
    int used = snprintf(name, sizeof(name), "/proc/%d/fd/", own_number());
    for (unsigned long serial = ++last_serial; serial > 0; serial >>= 1)
        used += snprintf(name + used, sizeof(name) - (size_t)used, "%s", serial & 1 ? "./" : "/");
    snprintf(name + used, sizeof(name) - (size_t)used, "%d", fd);
    return dlopen(name, flags);
}
