/*
 * fdinfo.c - /proc/<pid>/fdinfo/5 of a file of a mount.
 */
#include "shown/fdinfo.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "client/number.h"
#include "client/record.h"
#include "core/calls.h"
#include "core/fd.h"
#include "intercept/brief.h"
#include "intercept/proc_link.h"
#include "intercept/text.h"
#include "shadows/shadow.h"
#include "shown/mounts.h"
#include "shown/replace.h"
#include "ways/proc.h"

#define FDINFO 4096 /* bytes; with record locks there may be more */

/* What the kernel says there, all at once, as a string; NULL: nothing, or there is no memory. */
static char *read_all(int fd)
{
    for (size_t size = FDINFO;; size *= 2) {
        char *text = dfi_alloc(size);
        long len = text ? dfi_kernel(__NR_pread64, fd, text, size - 1, 0) : 0;

        if (len > 0 && (size_t)len < size - 1) {
            text[len] = '\0';
            return text;
        }
        dfi_free(text);
        if (len <= 0)
            return NULL;
    }
}

/* What that descriptor is of, however it was called: "" if that is longer. */
static void name_opened(int fd, char name[64])
{
    char link[DFI_PROC_LINK_MAX];
    long len;

    dfi_proc_link(fd, link);
    len = dfi_kernel(__NR_readlink, link, name, 64);
    name[len > 0 && len < 64 ? len : 0] = '\0';
}

/* The name in fd/ for one in fdinfo/. False: it is no name there. */
static bool name_in_fd(const char *path, char link[64])
{
    const char *info = strstr(path, "/fdinfo/");
    size_t before = info ? (size_t)(info - path) : 0;
    int fd;

    if (!info || !dfi_proc_behind_number(info + 7, &fd))
        return false;
    strcpy(mempcpy(mempcpy(link, path, before), "/fd/", 4), info + 8);
    return true;
}

static uint64_t get_octal(const char *text)
{
    uint64_t number = 0;

    while (*text >= '0' && *text <= '7')
        number = number * 8 + (uint64_t)(*text++ - '0');
    return number;
}

static const char *last_word(const char *line, const char *end)
{
    while (end > line && end[-1] != ' ')
        end--;
    return end;
}

/* Where the line says of which file it is, which is what stands in for ours: the inode of "ino",
 * device and inode of a lock. *end, that of the line, is where this ends. NULL: nowhere. */
static const char *find_id(const char *line, const char **end)
{
    if (strncmp(line, "ino:\t", 5) == 0)
        return line + 5;
    if (strncmp(line, "lock:\t", 6) != 0)
        return NULL;
    for (int behind = 0; behind < 2; behind++) /* where what is locked begins and ends */
        *end = last_word(line, *end) - 1;
    return last_word(line, *end);
}

static void add_id(struct dfi_text *out, const struct stat *st, bool of_lock)
{
    if (of_lock) {
        dfi_text_add_digits(out, major(st->st_dev), 2);
        dfi_text_add(out, ":");
        dfi_text_add_digits(out, minor(st->st_dev), 2);
        dfi_text_add(out, ":");
    }
    dfi_text_add_number(out, st->st_ino);
}

/* Whole lines. */
static void add_lines(struct dfi_text *out, const char *line, const struct stat *st)
{
    const char *next, *end, *id;

    for (; (next = strstr(line, "\n")); line = next + 1) {
        end = next;
        if ((id = find_id(line, &end))) {
            dfi_text_add_size(out, line, (size_t)(id - line));
            add_id(out, st, line[0] == 'l');
            line = end;
        }
        dfi_text_add_size(out, line, (size_t)(next + 1 - line));
    }
}

/* Of the file of that handle, be it another process's. */
static int look(uint64_t handle, struct stat *st)
{
    struct dfi_record record;
    int ret;

    dfi_record_begin_of(&record, handle);
    ret = df_call_fstat(DF_FD_BASE + DFI_FD_FOREIGN, st);
    dfi_record_end(&record);
    return ret;
}

/* What the text says, first position, flags and mount, for that file; st is NULL where its server
 * is gone. False: it says something else. */
static bool tell(struct dfi_text *out, const char *text, const struct df_ofd *ofd,
                 const struct stat *st)
{
    const uint64_t kept = O_CLOEXEC | 0100000,
                   once = O_CREAT | O_EXCL | O_TRUNC | O_NOCTTY | O_CLOEXEC;
    const char *at = strstr(text, "\nflags:\t"), *rest = strstr(text, "\nmnt_id:\t");
    uint64_t flags;

    if (strncmp(text, "pos:\t", 5) != 0 || !at || !rest)
        return false;
    flags = get_octal(at + 8);
    if (flags & O_PATH || !(atomic_load(&ofd->flags) & O_PATH)) /* not a FIFO's, which are so */
        flags = (flags & kept) | (atomic_load(&ofd->flags) & ~once);
    dfi_text_add(out, "pos:\t");
    dfi_text_add_number(out, (uint64_t)ofd->position);
    dfi_text_add(out, "\nflags:\t0");
    dfi_text_add_octal(out, flags);
    dfi_text_add_size(out, rest, 9);
    dfi_text_add_number(out, dfi_mounts_id(ofd->mount));
    rest += 9;
    dfi_number_get(&rest);
    if (st)
        add_lines(out, rest, st);
    else
        dfi_text_add(out, rest);
    return true;
}

/* Numbers are longer at most than they were by what they have before them in their line. */
static long replace_by(int fd, const char *text, const struct df_ofd *ofd, const struct stat *st)
{
    size_t size = FDINFO + 2 * strlen(text);
    struct dfi_text out = {.start = dfi_alloc(size), .size = size};
    long len = -ENOMEM, memory = -1;

    if (out.start && !tell(&out, text, ofd, st)) {
        dfi_free(out.start);
        return fd;
    }
    if (out.start)
        len = memory = dfi_brief(__NR_memfd_create, "fdinfo", MFD_CLOEXEC);
    if (memory >= 0)
        len = dfi_kernel(__NR_write, memory, out.start, out.used);
    dfi_free(out.start);
    return dfi_proc_replace(fd, memory, len);
}

static long replace(const struct dfi_files *files, int fd, uint64_t handle)
{
    const struct df_ofd *ofd = dfi_ofd(files, handle);
    char *text = ofd ? read_all(fd) : NULL;
    struct stat st;
    long ret = fd;

    if (text)
        ret = replace_by(fd, text, ofd, look(handle, &st) < 0 ? NULL : &st);
    dfi_free(text);
    return ret;
}

long dfi_proc_fdinfo(const struct dfi_files *files, int fd)
{
    char name[64], link[64], target[PATH_MAX];
    uint64_t handle;
    long len;

    name_opened(fd, name);
    if (!name_in_fd(name, link))
        return fd;
    len = dfi_kernel(__NR_readlink, link, target, sizeof(target) - 1);
    target[len > 0 ? len : 0] = '\0';
    handle = dfi_shadow_linked(files, link, target);
    return handle ? replace(files, fd, handle) : fd;
}
