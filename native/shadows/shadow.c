/*
 * shadow.c - placeholders: real descriptors for files of mounts.
 */
#include "shadows/shadow.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "client/number.h"
#include "intercept/brief.h"
#include "intercept/proc_link.h"
#include "shadows/linger.h"

/* What an open(2) of a placeholder takes over from that of the file: by its mode the kernel judges
 * locks and mappings. fcntl(F_GETFL) shows the file's own flags. */
#define KEPT_FLAGS (O_ACCMODE | O_CLOEXEC)

void dfi_shadow_name(const struct dfi_files *files, char letter, uint64_t mount, uint64_t number,
                     char name[DFI_SHADOW_NAME_MAX])
{
    char *end = mempcpy(name, files->shadow, files->shadow_len);

    *end++ = '/';
    *end++ = letter;
    *end++ = '/';
    end = dfi_number_put(end, mount);
    *end++ = '.';
    end = dfi_number_put(end, number);
    *end = '\0';
}

/* ---- the directory ------------------------------------------------------------------------- */

/* Programs of the job may run under other ids: the name of the directory, which nobody else can
 * list, is what protects it (directfuse/_shadow.py). */
static long make(const struct dfi_files *files, const char *name, bool directory)
{
    char path[DFI_SHADOW_NAME_MAX];
    long ret;

    strcpy(mempcpy(path, files->shadow, files->shadow_len), name);
    if (directory)
        ret = dfi_kernel(__NR_mkdir, path, 0777);
    else
        ret = dfi_kernel(__NR_open, path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (ret == -EEXIST)
        return 0;
    if (ret < 0)
        return ret;
    dfi_kernel(__NR_chmod, path, directory ? 0777 : 0666);
    if (!directory)
        dfi_kernel(__NR_close, ret);
    return 0;
}

long dfi_shadow_begin(struct dfi_files *files)
{
    static const char *const directories[] = {"/f", "/p", "/t", "/c", "/n", "/s",
                                              "/d", "/b", "/k", "/l", "/x"};
    struct stat st;
    long ret;

    files->shared = df_segment_programs(files->link.segment);
    if (atomic_load_explicit(&files->shared->made, memory_order_relaxed))
        return 0;
    if ((ret = dfi_kernel(__NR_stat, files->shadow, &st)) < 0)
        return ret;
    atomic_store_explicit(&files->shared->device, st.st_dev, memory_order_relaxed);
    dfi_kernel(__NR_chmod, files->shadow, 0711);
    for (unsigned i = 0; i < sizeof(directories) / sizeof(directories[0]); i++)
        if ((ret = make(files, directories[i], true)) < 0)
            return ret;
    ret = make(files, "/lock", false);
    if (ret == 0)
        atomic_store_explicit(&files->shared->made, 1, memory_order_relaxed);
    return ret;
}

/* ---- placeholders -------------------------------------------------------------------------- */

/* Programs under other ids of the job open it too. */
static long open_shadow(const char *name, int flags)
{
    long fd = dfi_kernel(__NR_open, name, flags | O_NOFOLLOW, 0);

    if (fd != -ENOENT)
        return fd;
    fd = dfi_kernel(__NR_open, name, flags | O_CREAT | O_NOFOLLOW, 0666);
    if (fd >= 0)
        dfi_kernel(__NR_fchmod, fd, 0666);
    return dfi_shadow_result(fd);
}

static long open_file(struct dfi_files *files, const struct df_ofd *ofd, uint64_t handle, int flags)
{
    char name[DFI_SHADOW_NAME_MAX];
    long fd, position;

    fd = dfi_linger_take(files, ofd, flags & KEPT_FLAGS);
    if (fd < 0) {
        dfi_shadow_name(files, 'f', 0, ofd->number, name);
        fd = open_shadow(name, flags & KEPT_FLAGS);
    }
    if (fd < 0)
        return fd;
    position = dfi_kernel(__NR_lseek, fd, handle, SEEK_SET);
    if (position < 0) {
        dfi_kernel(__NR_close, fd);
        return position;
    }
    return fd;
}

/* Its name is its handle: a descriptor of O_PATH has no position. */
static long open_path(struct dfi_files *files, uint64_t handle, int flags)
{
    char name[DFI_SHADOW_NAME_MAX];
    long made, fd;

    dfi_linger_end(files);
    dfi_shadow_name(files, DFI_SHADOW_PATH, 0, handle, name);
    made = dfi_brief_if_left(__NR_open, name, O_RDONLY | O_CREAT | O_CLOEXEC, 0600);
    if (made < 0)
        return dfi_shadow_result(made);
    dfi_brief_close(made);
    fd = dfi_kernel(__NR_open, name, O_PATH | (flags & O_CLOEXEC), 0);
    dfi_kernel(__NR_unlink, name);
    return fd;
}

long dfi_shadow_open(struct dfi_files *files, uint64_t handle, int flags)
{
    struct df_ofd *ofd = dfi_ofd(files, handle);
    long fd;

    if (!ofd)
        return -EBADF;
    if (flags & O_PATH)
        return open_path(files, handle, flags);
    fd = open_file(files, ofd, handle, flags);
    if (fd >= 0)
        dfi_linger_opened(files, (int)fd, ofd, flags);
    return fd;
}

/* ---- finding ------------------------------------------------------------------------------- */

static uint64_t handle_in_name(const struct dfi_files *files, int fd)
{
    char link[DFI_PROC_LINK_MAX], name[DFI_SHADOW_NAME_MAX];
    const char *text = name + files->shadow_len;
    long len;

    dfi_proc_link(fd, link);
    len = dfi_kernel(__NR_readlink, link, name, sizeof(name) - 1);
    if (len < 0)
        return 0;
    name[len] = '\0';
    if (strncmp(name, files->shadow, files->shadow_len) != 0 || strncmp(text, "/p/0.", 5) != 0)
        return 0;
    text += 5;
    return dfi_number_get(&text);
}

/* Its position, by the directory fdinfo beside fd: proc(5). */
static uint64_t position_of(const char *link)
{
    const char *fd = strstr(link, "/fd/");
    char path[DFI_SHADOW_NAME_MAX], text[64];
    long file, size;

    if (!fd || strlen(link) + sizeof("info") > sizeof(path))
        return 0;
    strcpy(mempcpy(mempcpy(path, link, (size_t)(fd - link)), "/fdinfo/", 8), fd + 4);
    file = dfi_brief(__NR_open, path, O_RDONLY | O_CLOEXEC, 0);
    if (file < 0)
        return 0;
    size = dfi_kernel(__NR_read, file, text, sizeof(text) - 1);
    dfi_brief_close(file);
    if (size < 6 || strncmp(text, "pos:\t", 5) != 0)
        return 0;
    text[size] = '\0';
    fd = text + 5;
    return dfi_number_get(&fd);
}

uint64_t dfi_shadow_linked(const struct dfi_files *files, const char *link, const char *target)
{
    const char *name = target + files->shadow_len;
    uint64_t handle = 0;

    if (strncmp(target, files->shadow, files->shadow_len) != 0)
        return 0;
    if (strncmp(name, "/f/", 3) == 0) {
        handle = position_of(link);
    } else if (strncmp(name, "/p/0.", 5) == 0 || strncmp(name, "/c/0.", 5) == 0) {
        name += 5;
        handle = dfi_number_get(&name);
    }
    return dfi_ofd(files, handle) ? handle : 0;
}

/* libc makes newfstatat(2) of fstat(2), so a filter of the program's may refuse the latter: what is
 * received under it is a file of a mount all the same. */
static long look_at(int fd, struct stat *st)
{
    long ret = dfi_kernel(__NR_fstat, fd, st);

    if (ret == -EPERM || ret == -ENOSYS)
        ret = dfi_kernel(__NR_newfstatat, fd, "", st, AT_EMPTY_PATH);
    return ret;
}

uint64_t dfi_shadow_entry(const struct dfi_files *files, int fd)
{
    uint64_t handle;
    struct stat st;
    long position;

    if (look_at(fd, &st) < 0 || !dfi_shadow_is_device(files, st.st_dev))
        return 0;
    if (S_ISFIFO(st.st_mode))
        return (handle = handle_in_name(files, fd)) ? handle | DFI_FIFO : 0;
    if (!S_ISREG(st.st_mode))
        return 0;
    position = dfi_kernel(__NR_lseek, fd, 0, SEEK_CUR);
    if (position == -EBADF)
        return handle_in_name(files, fd);
    return position > 0 && dfi_ofd(files, (uint64_t)position) ? (uint64_t)position : 0;
}
