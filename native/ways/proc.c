/*
 * proc.c - /proc/self, /proc/<pid>, /proc/thread-self and /dev: what of them leads to a mount.
 *
 * Descriptors are known by their handles, those of other processes too.
 */
#include "ways/proc.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#include "client/number.h"
#include "client/record.h"
#include "core/fd.h"
#include "intercept/proc_link.h"
#include "intercept/shown.h"
#include "shadows/shadow.h"
#include "ways/cwd.h"
#include "ways/name.h"

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

/* Written as the kernel writes it, which knows no other name. */
const char *dfi_proc_behind_number(const char *text, int *number)
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
    *rest = dfi_proc_behind_number(number, fd);
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
    rest = dfi_proc_behind_number(text, &number);
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
    if (!text || (!(rest = behind_self(text)) && !(rest = dfi_proc_behind_number(text, pid))))
        return NULL;
    return (task = behind(rest, "task")) ? dfi_proc_behind_number(task, thread) : rest;
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
    return number && pid == dfi_process()->pid && dfi_proc_behind_number(number, &fd) &&
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
        return dfi_proc_behind_number(rest, &number);
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
