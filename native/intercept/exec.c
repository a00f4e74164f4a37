/*
 * exec.c - execve and execveat: whatever is started is started through the loader.
 *
 * Everything that can be refused is refused here, while the old program still lives: the loader's
 * failures would come too late. The image is opened (by the handlers of paths: it may lie in a
 * mount), looked at, and handed to the loader as a descriptor. The loader is this very file: by the
 * descriptor that is kept, as /proc/self/exe, or by the name that the run gives. One string is
 * added behind the program's environment (exec.h).
 */
#include "intercept/brief.h"
#include "intercept/exec_private.h"

#include "intercept/mem.h"
#include "intercept/run.h"
#include "intercept/signal.h"
#include "intercept/text.h"
#include "intercept/tracer.h"

#include <asm/statfs.h>
#include <linux/fcntl.h>
#include <linux/prctl.h>

#define S_ISUID       04000 /* linux/stat.h hides them where glibc is installed */
#define S_ISGID       02000
#define S_IXGRP       00010

#define ST_NOSUID     2           /* statfs(2) */
#define NOBODY        65534       /* /proc/sys/kernel/overflowuid, overflowgid */
#define FIRST_USER_NS 0xeffffffdu /* PROC_USER_INIT_INO of the kernel */

struct kernel_stat { /* struct stat of asm/stat.h, as newfstatat fills it */
    unsigned long dev, ino, nlink;
    unsigned mode, uid, gid, pad;
    unsigned long rest[16];
};

int dfi_loader_fd = -1;
bool dfi_loader_is_self = true;

/* ---- may we ---- */

static bool has_bits(const struct kernel_stat *st)
{
    return ((st->mode & S_ISUID) != 0 && (long)st->uid != dfi_kernel(__NR_geteuid)) ||
           ((st->mode & S_ISGID) != 0 && (st->mode & S_IXGRP) != 0 &&
            (long)st->gid != dfi_kernel(__NR_getegid));
}

/* Whose owner or group has no id in the user namespace of the process: then bits do not count. */
static bool is_nobodys(const struct kernel_stat *st)
{
    struct kernel_stat ns;
    return (st->uid == NOBODY || st->gid == NOBODY) &&
           dfi_kernel(__NR_stat, "/proc/self/ns/user", &ns) == 0 && ns.ino != FIRST_USER_NS;
}

static bool has_capabilities(int fd)
{
    char byte;
    return dfi_kernel(__NR_geteuid) != 0 &&
           dfi_kernel(__NR_fgetxattr, fd, "security.capability", &byte, 0) > 0;
}

static bool is_nosuid(int fd)
{
    struct statfs fs;
    return dfi_kernel(__NR_fstatfs, fd, &fs) == 0 && (fs.f_flags & ST_NOSUID) != 0;
}

/* Whether the kernel would give the program rights that this process has not. */
static bool gains_rights(int fd)
{
    struct kernel_stat st;
    if (dfi_kernel(__NR_prctl, PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1)
        return false;
    if (dfi_kernel(__NR_fstat, fd, &st) < 0)
        return false;
    bool has_rights = (has_bits(&st) && !is_nobodys(&st)) || has_capabilities(fd);
    return has_rights && !is_nosuid(fd);
}

static long leave_outside(struct dfi_order *order, const char *why)
{
    if (dfi_run_has(DFI_RUN_STRICT) || dfi_files_rooted(order->asked->process))
        return -EPERM; /* its root would be the kernel's */
    char line[PATH_MAX + 64];
    struct dfi_text text = DFI_TEXT(line);
    dfi_text_add(&text, "run without its mounts (");
    dfi_text_add(&text, why);
    dfi_text_add(&text, "): ");
    dfi_text_add(&text, order->path);
    dfi_note(line);
    order->outside = true;
    return 0;
}

/* What execve(2) says of an interpreter before the old program is given up. */
static long check_interpreter(struct dfi_order *order, struct dfi_head *head)
{
    void *memory = NULL;
    bool there;
    switch (dfi_image_look(order->interpreter_fd, head, NULL)) {
    case DFI_IMAGE_ELF:
        there = dfi_image_segments(order->interpreter_fd, head, &memory) != NULL;
        dfi_free(memory);
        return there ? 0 : -ELIBBAD;
    case DFI_IMAGE_UNREADABLE:
        return leave_outside(order, "its interpreter cannot be read");
    default:
        return head->size < DFI_HEAD_MIN ? -EIO : -ELIBBAD;
    }
}

/* Takes the place of the program's head. */
static long open_interpreter(struct dfi_order *order, struct dfi_head *head,
                             const char *interpreter)
{
    bool virtual;
    if (interpreter[0] == '\0')
        return 0;
    order->interpreter_fd = dfi_files_program(AT_FDCWD, interpreter, 0, &virtual, NULL);
    return order->interpreter_fd < 0 ? order->interpreter_fd : check_interpreter(order, head);
}

/* From the opened file to an ELF program that can be loaded; or order->outside. */
static long resolve(struct dfi_order *order, struct dfi_head *head, char *interpreter)
{
    for (int depth = 0; depth <= DFI_SCRIPT_DEPTH; depth++) {
        bool gains = gains_rights(order->fd);
        long result;
        if (gains && depth == 0)
            return leave_outside(order, "set-user-id, set-group-id or capabilities");
        switch (dfi_image_look(order->fd, head, interpreter)) {
        case DFI_IMAGE_ELF:
            if (gains)
                return leave_outside(order, "its interpreter gains rights");
            return open_interpreter(order, head, interpreter);
        case DFI_IMAGE_SCRIPT:
            result = dfi_exec_script(order, head->bytes);
            if (result < 0)
                return result;
            break;
        case DFI_IMAGE_FOREIGN:
            return leave_outside(order, "a program for another ABI");
        case DFI_IMAGE_UNKNOWN: /* shells take it for a script, if it is no program */
            result = leave_outside(order, "not an ELF program");
            return result == -EPERM ? -ENOEXEC : result;
        case DFI_IMAGE_UNREADABLE:
            return leave_outside(order, "it may be executed, but not read");
        }
    }
    return -ELOOP;
}

/* ---- do it ---- */

#define F_SETFD 2

void dfi_loader_keep(const char *path)
{
    long fd = dfi_kernel(__NR_openat, AT_FDCWD, path, O_PATH, 0);
    dfi_loader_fd = fd < 0 ? -1 : dfi_move_high((int)fd);
}

void dfi_loader_leave(struct dfi_process *process)
{
    if (dfi_loader_fd < 0)
        return;
    dfi_kernel(__NR_close, dfi_loader_fd);
    dfi_unhide_fd(process, dfi_loader_fd);
    dfi_loader_fd = -1;
}

void dfi_loader_return(struct dfi_process *process)
{
    dfi_loader_keep(dfi_loader_is_self ? "/proc/self/exe" : dfi_run->loader);
    if (dfi_loader_fd >= 0)
        dfi_hidden_add(process, dfi_loader_fd);
}

static bool is_refused(long result)
{
    return result == -ENOENT || result == -EACCES || result == -EPERM || result == -ENOSYS;
}

/* A filter of the program's own may end who calls execveat(2). */
static long enter_loader(char **argv, char **envp)
{
    long result = -ENOENT;
    if (dfi_loader_fd >= 0 && dfi_kernel(__NR_prctl, PR_GET_SECCOMP, 0, 0, 0, 0) == 0)
        result = dfi_kernel(__NR_execveat, dfi_loader_fd, "", argv, envp, AT_EMPTY_PATH);
    if (is_refused(result) && dfi_loader_is_self)
        result = dfi_kernel(__NR_execve, "/proc/self/exe", argv, envp);
    if (is_refused(result)) /* or there is no /proc */
        result = dfi_kernel(__NR_execve, dfi_run->loader, argv, envp);
    return result;
}

static long kernel_exec(struct dfi_order *order, char **argv, char **envp)
{
    dfi_kernel(__NR_fcntl, order->fd, F_SETFD, 0); /* the loader needs it */
    if (order->interpreter_fd >= 0)
        dfi_kernel(__NR_fcntl, order->interpreter_fd, F_SETFD, 0);
    dfi_signals_return(); /* what was sent meanwhile is for the next program */
    dfi_parked_release(DFI_NEVER_BLOCKED);
    dfi_count(DFI_EVENT_EXECS);
    dfi_counts_leave(dfi_self());
    dfi_tracer_execute(dfi_self(), order->asked->mask);
    bool held = dfi_limit_hold();
    long result = enter_loader(argv, envp);
    dfi_limit_release(held);
    dfi_counts_take_again(dfi_self());
    return result;
}

static long load(struct dfi_order *order, char *marker, char *scratch)
{
    long argc = dfi_exec_count(order->asked->argv), envc = dfi_exec_count(order->asked->envp);
    if (argc < 0 || envc < 0)
        return argc < 0 ? argc : envc;
    long result = dfi_exec_marker(order, marker, scratch);
    if (result < 0)
        return result;
    char **argv = dfi_exec_argv(order, argc), **envp = dfi_exec_envp(order, envc, marker);
    return argv == NULL || envp == NULL ? -ENOMEM : kernel_exec(order, argv, envp);
}

/* The name by which the kernel calls a program that was given by descriptor: execveat(2). */
static void name_image(struct dfi_order *order, int dirfd, const char *path)
{
    struct dfi_text text = {.start = order->path, .size = PATH_MAX};
    if (dirfd == AT_FDCWD || path[0] == '/') {
        dfi_text_add(&text, path);
        return;
    }
    dfi_text_add(&text, "/dev/fd/");
    dfi_text_add_number(&text, (unsigned long)dirfd);
    if (path[0] != '\0') {
        dfi_text_add(&text, "/");
        dfi_text_add(&text, path);
    }
}

/* Memory of one execution, taken at once: no larger than what dfi_alloc() keeps for the next. */
struct room {
    struct dfi_head head;
    char *head_words[DFI_HEAD_WORDS + 3];
    char path[PATH_MAX], interpreter[PATH_MAX + 1], marker[DFI_MARKER_SIZE], words[DFI_WORDS_SIZE];
};

static long execute(struct dfi_order *order, struct room *room)
{
    long result = resolve(order, &room->head, room->interpreter);
    if (result < 0)
        return result;
    if (!order->outside)
        return load(order, room->marker, room->interpreter); /* which has been looked at */
    return DFI_PASS;
}

static long exec_file(const struct dfi_exec *asked)
{
    bool virtual = false;
    char name[PATH_MAX];
    long fd = dfi_files_program(asked->dirfd, asked->path, asked->flags, &virtual, name);
    if (fd < 0)
        return fd;
    struct room *room = dfi_exec_take(sizeof *room);
    if (room == NULL) {
        dfi_brief_close(fd);
        return -ENOMEM;
    }
    struct dfi_order order = {.asked = asked,
                              .fd = (int)fd,
                              .interpreter_fd = -1,
                              .path = room->path,
                              .name = name,
                              .head = room->head_words,
                              .words = room->words};
    name_image(&order, asked->dirfd, asked->path);
    long result = execute(&order, room);
    if (result == DFI_PASS && virtual)
        result = -ENOEXEC; /* the kernel cannot run it for us */
    dfi_brief_close(order.fd);
    dfi_brief_close(order.interpreter_fd);
    return result;
}

long dfi_exec(const struct dfi_exec *asked)
{
    long result = exec_file(asked);
    dfi_exec_free(dfi_self());
    return result;
}

/* A program left to the kernel is counted as escaped; when it does not start, it has not. A signal
 * that comes before has the core's mask set, which is not for that program: once more, then. */
static long outside(const struct dfi_frame *frame)
{
    dfi_count(DFI_EVENT_ESCAPED);
    dfi_tracer_begin(dfi_self());
    bool held = dfi_limit_hold();
    long result = dfi_kernel_wait6(frame->nr, frame->args[0], frame->args[1], frame->args[2],
                                   frame->args[3], frame->args[4], 0);
    dfi_limit_release(held);
    __atomic_fetch_sub(&dfi_run->events[DFI_EVENT_ESCAPED], 1, __ATOMIC_RELAXED);
    return result == -EINTR && dfi_self()->deferred ? DFI_PASS : result;
}

static long exec_call(struct dfi_frame *frame, unsigned long path, struct dfi_exec asked)
{
    struct dfi_thread *self = dfi_self();
    char name[PATH_MAX];
    asked.process = self->process;
    asked.path = name;
    long result = dfi_copy_path(name, (const char *)path, PATH_MAX);
    asked.mask = dfi_signals_block();
    if (result >= 0)
        result = (asked.flags & AT_EXECVE_CHECK) != 0 ? dfi_exec_check(&asked) : dfi_exec(&asked);
    if (result == DFI_PASS)
        dfi_signals_return(); /* what the program lets in comes back at once, the rest later */
    dfi_signals_unblock(asked.mask);
    return result == DFI_PASS ? outside(frame) : result;
}

long dfi_do_execve(struct dfi_frame *frame)
{
    return exec_call(
        frame, frame->args[0],
        (struct dfi_exec){.dirfd = AT_FDCWD, .argv = frame->args[1], .envp = frame->args[2]});
}

long dfi_do_execveat(struct dfi_frame *frame)
{
    return exec_call(frame, frame->args[1],
                     (struct dfi_exec){.dirfd = (int)frame->args[0],
                                       .flags = (int)frame->args[4],
                                       .argv = frame->args[2],
                                       .envp = frame->args[3]});
}
