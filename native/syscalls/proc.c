/*
 * proc.c - /proc/self, /proc/<pid>, /proc/thread-self and /dev: what of them leads to a mount.
 */
#include "syscalls/proc.h"

#include <string.h>

#include "syscalls/cwd.h"
#include "syscalls/number.h"

/* If text begins with the word, which ends a component: what follows. */
static const char *behind(const char *text, const char *word)
{
    size_t len = strlen(word);

    if (strncmp(text, word, len) != 0 || (text[len] != '/' && text[len] != '\0'))
        return NULL;
    return text + len;
}

static enum dfi_proc look_fd(struct dfi_files *files, const char *number, int *fd,
                             const char **rest)
{
    const char *end = number;
    uint64_t value = dfi_number_get(&end);

    if (end == number || (*end != '/' && *end != '\0') || value >= DFI_FD_MAX ||
        !dfi_file_of(files, (long)value))
        return DFI_PROC_NONE;
    *fd = (int)value;
    *rest = end;
    return DFI_PROC_FD;
}

static enum dfi_proc look_dev(struct dfi_files *files, const char *text, int *fd, const char **rest)
{
    static const char *const standard[] = {"/stdin", "/stdout", "/stderr"};

    if (strncmp(text, "/fd/", 4) == 0)
        return look_fd(files, text + 4, fd, rest);
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
    const char *rest, *digits;

    if ((rest = behind(text, "/self")) || (rest = behind(text, "/thread-self")))
        return rest;
    digits = text + 1;
    if (*text != '/' || dfi_number_get(&digits) != (uint64_t)dfi_process()->pid)
        return NULL;
    if (strncmp(digits, "/task/", 6) == 0) {
        digits += 6;
        dfi_number_get(&digits);
    }
    return *digits == '/' ? digits : NULL;
}

enum dfi_proc dfi_proc_look(struct dfi_files *files, const char *path, int *fd, const char **rest)
{
    const char *text = behind(path, "/dev");

    if (text)
        return look_dev(files, text, fd, rest);
    text = behind(path, "/proc");
    if (!text || !(text = behind_self(text)))
        return DFI_PROC_NONE;
    if (strncmp(text, "/fd/", 4) == 0)
        return look_fd(files, text + 4, fd, rest);
    if ((*rest = behind(text, "/cwd")))
        return files->cwd.ours ? DFI_PROC_CWD : DFI_PROC_NONE;
    if ((*rest = behind(text, "/exe")))
        return dfi_process()->exe[0] ? DFI_PROC_EXE : DFI_PROC_NONE;
    return DFI_PROC_NONE;
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
    uint64_t handle;
    int ret;

    switch (what) {
    case DFI_PROC_FD:
        handle = dfi_file_of(files, fd);
        return handle ? copy(out, files->shared->names[df_handle_index(handle)]) : -ENOENT;
    case DFI_PROC_CWD:
        ret = dfi_cwd_join(files, "", out);
        return ret < 0 ? ret : copy(out, out);
    case DFI_PROC_EXE:
        return copy(out, dfi_process()->exe);
    default:
        return -EINVAL;
    }
}
