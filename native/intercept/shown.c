/*
 * shown.c - what others see of a program in /proc: not the loader that the kernel has started.
 */
#include "intercept/shown.h"

#include "intercept/brief.h"
#include "intercept/mem.h"
#include "intercept/proc_link.h"
#include "intercept/run.h"
#include "intercept/text.h"

#include <linux/fcntl.h>
#include <linux/prctl.h>
#include <linux/stat.h>

#define AUXV_MAX 32 /* more than the kernel keeps of any process */

/* Linux's ELF_ET_DYN_BASE: the loader's heap begins there, moved on at random by less than this. */
#define HEAP_BASE      0x555555555000ul
#define HEAP_MOVED_MAX (1ul << 30)

/* The vector with one entry more, as far as there is room: bytes. */
static unsigned copy_auxv(struct dfi_auxv *to, const struct dfi_shown *shown)
{
    unsigned count = 0;
    while (count < AUXV_MAX - 2 && shown->auxv[count].type != AT_NULL) {
        to[count] = shown->auxv[count];
        count++;
    }
    to[count++] = (struct dfi_auxv){DFI_AT_EXE, (uintptr_t)shown->exe};
    to[count++] = (struct dfi_auxv){AT_NULL, 0};
    return count * (unsigned)sizeof *to;
}

/*
 * Where brk(2) begins. Behind a program with an address of its own, as without us: one that was
 * dumped with its heap (GNU Common Lisp's are) goes on where that ended. It is moved at random as
 * far as the kernel has moved the loader's, which is not at all under ADDR_NO_RANDOMIZE. Elsewhere
 * there is no room behind the program, and the loader's is as good.
 */
static uintptr_t heap_of(const struct dfi_map *program)
{
    uintptr_t loaders = (uintptr_t)dfi_kernel(__NR_brk, 0), moved = loaders - HEAP_BASE;
    if (program->base != 0)
        return loaders;
    return program->end + (moved < HEAP_MOVED_MAX ? moved & -DFI_PAGE : 0);
}

void dfi_show(const struct dfi_shown *shown)
{
    struct dfi_auxv auxv[AUXV_MAX];
    uintptr_t brk = heap_of(shown->program), env_end = (uintptr_t)shown->env_end;
    uintptr_t env = shown->envp[0] != NULL ? (uintptr_t)shown->envp[0] : env_end;
    struct prctl_mm_map map = {
        .start_code = shown->program->start,
        .end_code = shown->program->end,
        .start_data = shown->program->start, /* none: RLIMIT_DATA counts brk's memory alone */
        .end_data = shown->program->start,
        .start_brk = brk, /* nobody has moved it yet */
        .brk = brk,
        .start_stack = (uintptr_t)(shown->argv - 1),
        .arg_start = (uintptr_t)shown->argv[0],
        .arg_end = env,
        .env_start = env,
        .env_end = env_end,
        .auxv = (__u64 *)auxv,
        .auxv_size = copy_auxv(auxv, shown),
        .exe_fd = (__u32)-1,
    };
    dfi_kernel(__NR_prctl, PR_SET_MM, PR_SET_MM_MAP, &map, sizeof map, 0);
}

/* ---- of another process ---- */

static long name_in_proc(char *path, size_t size, int pid, const char *name)
{
    struct dfi_text text = {.start = path, .size = size};
    dfi_text_add(&text, "/proc/");
    dfi_text_add_number(&text, (unsigned long)pid);
    dfi_text_add(&text, name);
    return text.full ? -ENAMETOOLONG : 0;
}

long dfi_shown_read(int pid, const char *name, void *to, size_t size, uint64_t at)
{
    char path[40];
    if (name_in_proc(path, sizeof path, pid, name) < 0)
        return -ENAMETOOLONG;
    long fd = dfi_brief_open(path, O_RDONLY);
    if (fd < 0)
        return fd;
    long result = dfi_kernel(__NR_pread64, fd, to, size, at);
    dfi_brief_close(fd);
    return result;
}

unsigned long dfi_shown_auxv(int pid, unsigned long type)
{
    struct dfi_auxv auxv[48];
    long size = dfi_shown_read(pid, "/auxv", auxv, sizeof auxv, 0);
    for (long i = 0; (i + 1) * (long)sizeof *auxv <= size && auxv[i].type != AT_NULL; i++) {
        if (auxv[i].type == type)
            return auxv[i].value;
    }
    return 0;
}

static bool look(const char *path, struct statx *st)
{
    return dfi_kernel(__NR_statx, AT_FDCWD, path, 0, STATX_INO, st) == 0;
}

/* By device and inode, not by a name that may lead through links. */
static bool is_file(const struct statx *st, const char *path)
{
    struct statx other;
    return look(path, &other) && other.stx_ino == st->stx_ino &&
           other.stx_dev_major == st->stx_dev_major && other.stx_dev_minor == st->stx_dev_minor;
}

bool dfi_shown_is_loaded(int pid)
{
    char path[40], fixed[PATH_MAX];
    struct dfi_text text = DFI_TEXT(fixed);
    struct statx st;
    if (name_in_proc(path, sizeof path, pid, "/exe") < 0 || !look(path, &st))
        return false;
    dfi_text_add(&text, dfi_run->loader);
    dfi_text_add(&text, "-fixed");
    return is_file(&st, dfi_run->loader) || is_file(&st, fixed);
}

/* A program of a mount is a copy to the kernel: in memory, or one that others share. */
static bool is_copy(const char *name)
{
    return dfi_text_begins(name, "/memfd:") || dfi_files_stands_in(dfi_self()->process, name);
}

static bool read_link(const char *link, char name[PATH_MAX])
{
    long size = dfi_kernel(__NR_readlink, link, name, PATH_MAX - 1);
    name[size < 0 ? 0 : size] = '\0';
    return name[0] == '/' && !is_copy(name);
}

/* What the kernel has mapped first of it. */
static bool ask_by_mapping(int pid, const struct dfi_exe *exe, char name[PATH_MAX])
{
    char link[80];
    struct dfi_text text = DFI_TEXT(link);
    dfi_text_add(&text, "/proc/");
    if (pid == 0)
        dfi_text_add(&text, "self");
    else
        dfi_text_add_number(&text, (unsigned long)pid);
    dfi_text_add(&text, "/map_files/");
    dfi_text_add_hex(&text, exe->start);
    dfi_text_add(&text, "-");
    dfi_text_add_hex(&text, exe->end);
    return read_link(link, name);
}

/* Where the name that it was called by leads to now. */
static bool ask_by_name(const struct dfi_exe *exe, char name[PATH_MAX])
{
    char link[DFI_PROC_LINK_MAX];
    long fd = dfi_brief(__NR_open, exe->name, O_PATH | O_CLOEXEC, 0);
    if (fd < 0)
        return false;
    dfi_proc_link((int)fd, link);
    bool shown = read_link(link, name);
    dfi_brief_close(fd);
    return shown;
}

/* The same in the mounts, of which the kernel knows nothing. */
static bool ask_mounts(const struct dfi_exe *exe, char name[PATH_MAX])
{
    memcpy(name, exe->name, strlen(exe->name) + 1);
    return dfi_files_straighten(name);
}

long dfi_shown_name(int pid, const struct dfi_exe *exe, char name[PATH_MAX])
{
    if (!ask_by_mapping(pid, exe, name) && !ask_mounts(exe, name) && !ask_by_name(exe, name))
        memcpy(name, exe->name, strlen(exe->name) + 1);
    return (long)strlen(name);
}

static bool ends(const char *text, size_t size)
{
    size_t at = 0;
    while (at < size && text[at] != '\0')
        at++;
    return at < size;
}

long dfi_shown_exe(int pid, char name[PATH_MAX])
{
    union {
        struct dfi_exe exe;
        char bytes[sizeof(struct dfi_exe) + PATH_MAX];
    } other;
    if (!dfi_shown_is_loaded(pid))
        return -ENOENT;
    uintptr_t at = dfi_shown_auxv(pid, DFI_AT_EXE);
    if (at == 0)
        return -ENOENT;
    long size = dfi_shown_read(pid, "/mem", &other, sizeof other, at);
    if (size < 0)
        return size;
    size -= (long)sizeof other.exe;
    if (size <= 0 || other.exe.name[0] != '/' || !ends(other.exe.name, (size_t)size))
        return -ENOENT;
    return dfi_shown_name(pid, &other.exe, name);
}
