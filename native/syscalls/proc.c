/*
 * proc.c - /proc/self, /proc/<pid>, /proc/thread-self and /dev: what of them leads to a mount.
 *
 * Descriptors are known by their handles, those of other processes too.
 */
#include "syscalls/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "core/calls.h"
#include "core/fd.h"
#include "intercept/brief.h"
#include "intercept/shown.h"
#include "intercept/text.h"
#include "syscalls/cwd.h"
#include "syscalls/mounts.h"
#include "syscalls/name.h"
#include "syscalls/number.h"
#include "syscalls/record.h"
#include "syscalls/shadow.h"

void dfi_proc_link(int fd, char out[DFI_PROC_LINK_MAX])
{
    static const char directory[] = "/proc/self/fd/";

    *dfi_number_put(mempcpy(out, directory, sizeof(directory) - 1), (unsigned)fd) = '\0';
}

/* Where the next component begins: what lies before it stands for one slash. */
static const char *next(const char *text)
{
    while (*text == '/' || (text[0] == '.' && text[1] == '/'))
        text++;
    return text;
}

/* If that is the word, of a text that begins at a slash: what follows. */
static const char *behind(const char *text, const char *word)
{
    if (*text != '/')
        return NULL;
    text = next(text);
    while (*word != '\0' && *text == *word)
        text++, word++;
    return *word == '\0' && (*text == '/' || *text == '\0') ? text : NULL;
}

#define DIGITS_MAX 10 /* of an int */

/* The same of a number, written as the kernel writes it, which knows no other name. */
static const char *behind_number(const char *text, int *number)
{
    const char *first = next(text), *end = first;
    uint64_t value = dfi_number_get(&end);

    if (end == first || end - first > DIGITS_MAX || value > INT_MAX ||
        (*end != '/' && *end != '\0') || (*first == '0' && end - first > 1))
        return NULL;
    *number = (int)value;
    return end;
}

static enum dfi_proc look_fd(struct dfi_files *files, const char *number, int *fd,
                             const char **rest)
{
    *rest = behind_number(number, fd);
    return *rest && dfi_file_of(files, *fd) ? DFI_PROC_FD : DFI_PROC_NONE;
}

static enum dfi_proc look_dev(struct dfi_files *files, const char *text, int *fd, const char **rest)
{
    static const char *const standard[] = {"stdin", "stdout", "stderr"};
    const char *number = behind(text, "fd");

    if (number)
        return look_fd(files, number, fd, rest);
    for (int i = 0; i < 3; i++)
        if ((*rest = behind(text, standard[i]))) {
            *fd = i;
            return dfi_file_of(files, i) ? DFI_PROC_FD : DFI_PROC_NONE;
        }
    return DFI_PROC_NONE;
}

/* The process's own directory: what follows it. */
static const char *behind_self(const char *text)
{
    const char *rest;
    int number;

    if ((rest = behind(text, "self")) || (rest = behind(text, "thread-self")))
        return rest;
    rest = behind_number(text, &number);
    return rest && number == dfi_process()->pid ? rest : NULL;
}

enum dfi_proc dfi_proc_look(struct dfi_files *files, const char *path, int *fd, const char **rest)
{
    const char *text = behind(path, "dev"), *number;

    if (text)
        return look_dev(files, text, fd, rest);
    text = behind(path, "proc");
    if (!text || !(text = behind_self(text)))
        return DFI_PROC_NONE;
    if ((number = behind(text, "fd")))
        return look_fd(files, number, fd, rest);
    if ((*rest = behind(text, "cwd")))
        return files->cwd.ours ? DFI_PROC_CWD : DFI_PROC_NONE;
    if ((*rest = behind(text, "exe")))
        return dfi_process()->exe ? DFI_PROC_EXE : DFI_PROC_NONE;
    return DFI_PROC_NONE;
}

/* What follows /proc/<pid>, or (thread is not 0) the directory there of what may be one of its
 * threads; NULL: another path. */
static const char *behind_process(const char *path, int *pid, int *thread)
{
    const char *text = behind(path, "proc"), *rest, *task;

    *pid = dfi_process()->pid;
    *thread = 0;
    if (!text || (!(rest = behind_self(text)) && !(rest = behind_number(text, pid))))
        return NULL;
    return (task = behind(rest, "task")) ? behind_number(task, thread) : rest;
}

const char *dfi_proc_behind_process(const char *path)
{
    int pid, thread;

    return behind_process(path, &pid, &thread);
}

bool dfi_proc_hides(const char *path)
{
    const char *text = behind(path, "dev"), *number;
    int pid = dfi_process()->pid, thread, fd;

    if (!text && !(text = behind_process(path, &pid, &thread)))
        return false;
    number = behind(text, "fd");
    if (!number)
        number = behind(text, "fdinfo");
    return number && pid == dfi_process()->pid && behind_number(number, &fd) &&
           dfi_is_hidden(dfi_process(), fd);
}

static bool ends_with(const char *text, const char *word)
{
    return (text = behind(text, word)) && *text == '\0';
}

bool dfi_proc_is_own(int fd, const char *word)
{
    char name[DFI_PROC_LINK_MAX], link[64];
    const char *text;
    int pid, thread;
    long len;

    dfi_proc_link(fd, name);
    len = dfi_kernel(__NR_readlink, name, link, sizeof(link) - 1);
    if (len <= 0)
        return false;
    link[len] = '\0';
    text = behind_process(link, &pid, &thread);
    return text && pid == dfi_process()->pid && ends_with(text, word);
}

bool dfi_proc_lists_fds(int fd)
{
    return dfi_proc_is_own(fd, "fd") || dfi_proc_is_own(fd, "fdinfo");
}

/* The name of its program, if the kernel shows the loader in its place. */
static bool other_exe(const char *link, char out[PATH_MAX])
{
    int pid, thread;
    const char *text = behind_process(link, &pid, &thread);

    return text && ends_with(text, "exe") && dfi_shown_exe(pid, out) >= 0;
}

/* What follows /proc/<pid>/fd/5, /proc/<pid>/cwd or /proc/<pid>/exe. NULL: another path, as one
 * that dfi_proc_look() knows. */
static const char *behind_link(const char *path)
{
    int pid, number;
    const char *text = behind_process(path, &pid, &number), *rest;

    if (!text || (pid == dfi_process()->pid && number == 0))
        return NULL;
    if ((rest = behind(text, "fd")))
        return behind_number(rest, &number);
    return (rest = behind(text, "cwd")) ? rest : behind(text, "exe");
}

/* The name of a file that is another process's, perhaps. */
static long show_foreign(uint64_t handle, char out[PATH_MAX])
{
    dfi_record_now()->foreign = handle;
    return dfi_name_show(DF_FD_BASE + DFI_FD_FOREIGN, out);
}

long dfi_proc_shown(const struct dfi_files *files, const char *link, char text[PATH_MAX],
                    size_t len)
{
    size_t shown = dfi_cwd_shown(files, text, len);
    uint64_t handle;

    if (shown < len)
        return (long)shown;
    handle = dfi_shadow_linked(files, link, text);
    if (handle)
        return show_foreign(handle, text);
    return (long)(other_exe(link, text) ? strlen(text) : len);
}

enum dfi_proc dfi_proc_other(const struct dfi_files *files, const char *path, char out[PATH_MAX],
                             uint64_t *handle, const char **rest)
{
    const char *end = behind_link(path);
    char link[64];
    size_t shown;
    long len;

    if (!end || (size_t)(end - path) >= sizeof(link))
        return DFI_PROC_NONE;
    *(char *)mempcpy(link, path, (size_t)(end - path)) = '\0';
    len = dfi_kernel(__NR_readlink, link, out, PATH_MAX - 1);
    if (len <= 0)
        return DFI_PROC_NONE;
    out[len] = '\0';
    *rest = end;
    if (other_exe(link, out))
        return DFI_PROC_EXE;
    shown = dfi_cwd_shown(files, out, (size_t)len);
    if (shown == (size_t)len)
        return (*handle = dfi_shadow_linked(files, link, out)) ? DFI_PROC_FD : DFI_PROC_NONE;
    out[shown] = '\0';
    return DFI_PROC_CWD;
}

void dfi_proc_exe(char out[PATH_MAX])
{
    dfi_shown_name(0, dfi_process()->exe, out);
}

static long copy(char out[PATH_MAX], const char *text)
{
    size_t len = strnlen(text, PATH_MAX - 1);

    memcpy(out, text, len);
    out[len] = '\0';
    return (long)len;
}

long dfi_proc_readlink(struct dfi_files *files, enum dfi_proc what, int fd, char out[PATH_MAX])
{
    int ret;

    switch (what) {
    case DFI_PROC_FD:
        return dfi_name_show(DF_FD_BASE + fd, out);
    case DFI_PROC_CWD:
        if (dfi_cwd_take(dfi_record_now()))
            return dfi_name_show(DF_FD_BASE + DFI_FD_HERE, out);
        ret = dfi_cwd_join(files, "", out);
        return ret < 0 ? ret : ret == 0 ? dfi_cwd_show(files, out) : copy(out, out);
    case DFI_PROC_EXE:
        dfi_proc_exe(out);
        return (long)strlen(out);
    default:
        return -EINVAL;
    }
}

/* ---- fdinfo ---------------------------------------------------------------------------------- */

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

    if (!info || !behind_number(info + 7, &fd))
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

long dfi_proc_replace(int fd, long memory, long error)
{
    char link[DFI_PROC_LINK_MAX];
    long flags = dfi_kernel(__NR_fcntl, fd, F_GETFD) > 0 ? O_CLOEXEC : 0, other = error;

    if (error >= 0) {
        dfi_kernel(__NR_fchmod, memory, 0444); /* whatever the umask has left of it */
        dfi_proc_link((int)memory, link);
        other = dfi_brief(__NR_open, link, O_RDONLY | flags, 0);
    }
    dfi_brief_close(memory);
    if (other >= 0) {
        error = dfi_kernel(__NR_dup3, other, fd, flags);
        dfi_brief_close(other);
        other = error;
    }
    if (other < 0)
        dfi_kernel(__NR_close, fd);
    return other;
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
