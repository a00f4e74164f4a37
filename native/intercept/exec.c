/*
 * exec.c - execve and execveat: whatever is started is started through the loader.
 *
 * Everything that can be refused is refused here, while the old program still lives: the loader's
 * failures would come too late. The image is opened (by the handlers of paths: it may lie in a
 * mount), looked at, and handed to the loader as a descriptor. The loader is this very file: by the
 * descriptor that is kept, as /proc/self/exe, or by the name that the run gives. One string is
 * added behind the program's environment (exec.h).
 */
#include "intercept/exec.h"

#include "intercept/mem.h"
#include "intercept/run.h"
#include "intercept/signal.h"
#include "intercept/text.h"
#include "intercept/tracer.h"

#include <linux/elf.h>
#include <linux/fcntl.h>
#include <linux/prctl.h>

#define S_ISUID      04000 /* linux/stat.h hides them where glibc is installed */
#define S_ISGID      02000
#define S_IXGRP      00010

#define SCRIPT_DEPTH 5 /* as the kernel: interpreters of interpreters */
#define ARGS_MAX     (1ul << 20)
#define MARKER_SIZE  (3 * PATH_MAX)

struct kernel_stat { /* struct stat of asm/stat.h, as newfstatat fills it */
    unsigned long dev, ino, nlink;
    unsigned mode, uid, gid, pad;
    unsigned long rest[16];
};

/* One execution: what was asked, and what it became on the way through scripts. */
struct order {
    const struct dfi_exec *asked;
    int fd;             /* of the image; -1: none */
    int interpreter_fd; /* of its interpreter's; < 0: none */
    char *path;         /* PATH_MAX: for AT_EXECFN, and of a script for its interpreter */
    char **head;        /* words of interpreters that come before argv; argv[0] is dropped then */
    size_t head_count;
    char *words; /* the memory of head's strings */
    size_t words_used;
    bool outside; /* to be run by the kernel alone */
};

#define HEAD_WORDS (3 * SCRIPT_DEPTH)
#define WORDS_SIZE (2 * PATH_MAX + SCRIPT_DEPTH * DFI_LINE)

int dfi_loader_fd = -1;
bool dfi_loader_is_self = true;

/* ---- memory ---- */

struct dfi_exec_block {
    _Alignas(16) struct dfi_exec_block *next;
};

/* Zeroed; until dfi_exec_free(). */
static void *take(size_t size)
{
    struct dfi_thread *self = dfi_self();
    struct dfi_exec_block *block = dfi_alloc(sizeof *block + size);
    if (block == NULL)
        return NULL;
    block->next = self->exec;
    self->exec = block;
    return block + 1;
}

void dfi_exec_free(struct dfi_thread *thread)
{
    while (thread->exec != NULL) {
        struct dfi_exec_block *block = thread->exec;
        thread->exec = block->next;
        dfi_free(block);
    }
}

/* ---- what is it ---- */

static const Elf64_Ehdr *elf_of(const struct dfi_head *head)
{
    return (const Elf64_Ehdr *)head->bytes;
}

static bool is_native_elf(const struct dfi_head *head)
{
    const Elf64_Ehdr *elf = elf_of(head);
    return elf->e_ident[EI_CLASS] == ELFCLASS64 && elf->e_ident[EI_DATA] == ELFDATA2LSB &&
           elf->e_machine == EM_X86_64 && (elf->e_type == ET_EXEC || elf->e_type == ET_DYN) &&
           elf->e_phentsize == sizeof(Elf64_Phdr);
}

/* A part of the file, if it lies in the head. */
static const void *part_of(const struct dfi_head *head, unsigned long offset, size_t size)
{
    bool there = offset <= head->size && size <= head->size - offset;
    return there ? head->bytes + offset : NULL;
}

const Elf64_Phdr *dfi_image_segments(int fd, const struct dfi_head *head, void **memory)
{
    const Elf64_Ehdr *elf = elf_of(head);
    size_t size = elf->e_phnum * sizeof(Elf64_Phdr);
    const void *there = part_of(head, elf->e_phoff, size);
    *memory = NULL;
    if (elf->e_phnum == 0 || elf->e_phnum > DFI_SEGMENTS_MAX)
        return NULL;
    if (there != NULL && elf->e_phoff % sizeof(unsigned long) == 0)
        return there;
    *memory = dfi_alloc(size);
    if (*memory == NULL || dfi_kernel(__NR_pread64, fd, *memory, size, elf->e_phoff) == (long)size)
        return *memory;
    dfi_free(*memory);
    *memory = NULL;
    return NULL;
}

static long read_interpreter(int fd, const struct dfi_head *head, const Elf64_Phdr *segment,
                             char *interpreter)
{
    size_t size = segment->p_filesz;
    if (size < 2 || size > PATH_MAX)
        return -ENOEXEC;
    const void *there = part_of(head, segment->p_offset, size);
    if (there != NULL)
        memcpy(interpreter, there, size);
    else if (dfi_kernel(__NR_pread64, fd, interpreter, size, segment->p_offset) != (long)size)
        return -ENOEXEC;
    return interpreter[size - 1] == '\0' ? 0 : -ENOEXEC;
}

/* Finds PT_INTERP; no interpreter is an empty string. */
static long find_interpreter(int fd, const struct dfi_head *head, char *interpreter)
{
    void *memory;
    const Elf64_Phdr *segments = dfi_image_segments(fd, head, &memory);
    long result = segments == NULL ? -ENOEXEC : 0;
    interpreter[0] = '\0';
    for (unsigned i = 0; result == 0 && i < elf_of(head)->e_phnum; i++) {
        if (segments[i].p_type != PT_INTERP)
            continue;
        result = read_interpreter(fd, head, &segments[i], interpreter);
        break;
    }
    dfi_free(memory);
    return result;
}

enum dfi_image dfi_image_look(int fd, struct dfi_head *head, char *interpreter)
{
    char *bytes = head->bytes;
    long got = dfi_kernel(__NR_pread64, fd, bytes, sizeof head->bytes, 0);
    head->size = got < 0 ? 0 : (size_t)got;
    if (got >= 2 && bytes[0] == '#' && bytes[1] == '!') {
        bytes[got < DFI_LINE - 1 ? got : DFI_LINE - 1] = '\0';
        return DFI_IMAGE_SCRIPT;
    }
    if (got < (long)sizeof(Elf64_Ehdr) || memcmp(bytes, ELFMAG, SELFMAG) != 0)
        return DFI_IMAGE_UNKNOWN;
    if (!is_native_elf(head))
        return DFI_IMAGE_FOREIGN;
    if (interpreter != NULL && find_interpreter(fd, head, interpreter) < 0)
        return DFI_IMAGE_UNKNOWN;
    return DFI_IMAGE_ELF;
}

/* Whether the kernel would give the program rights that this process has not. */
static bool gains_rights(int fd)
{
    struct kernel_stat st;
    char byte;
    if (dfi_kernel(__NR_prctl, PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1)
        return false;
    if (dfi_kernel(__NR_fstat, fd, &st) < 0)
        return false;
    if ((st.mode & S_ISUID) != 0 && (long)st.uid != dfi_kernel(__NR_geteuid))
        return true;
    if ((st.mode & S_ISGID) != 0 && (st.mode & S_IXGRP) != 0 &&
        (long)st.gid != dfi_kernel(__NR_getegid))
        return true;
    return dfi_kernel(__NR_geteuid) != 0 &&
           dfi_kernel(__NR_fgetxattr, fd, "security.capability", &byte, 0) > 0;
}

/* ---- scripts ---- */

static char *keep_word(struct order *order, const char *word, size_t size)
{
    if (size + 1 > WORDS_SIZE - order->words_used)
        return NULL;
    char *kept = order->words + order->words_used;
    memcpy(kept, word, size);
    kept[size] = '\0';
    order->words_used += size + 1;
    return kept;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

/* Takes "#! interpreter [argument]" apart: execve(2). */
static long split_script(struct order *order, char *line, char **words)
{
    char *at = line + 2, *end = line + 2;
    while (*end != '\0' && *end != '\n')
        end++;
    bool cut = *end == '\0'; /* the line is longer than what the kernel reads */
    while (end > at && is_blank(end[-1]))
        end--;
    while (at < end && is_blank(*at))
        at++;
    char *name = at;
    while (at < end && !is_blank(*at))
        at++;
    if (at == name || (cut && at == end && end - line >= DFI_LINE - 1))
        return -ENOEXEC;
    words[0] = keep_word(order, name, (size_t)(at - name));
    while (at < end && is_blank(*at))
        at++;
    words[1] = at < end ? keep_word(order, at, (size_t)(end - at)) : NULL;
    return words[0] == NULL ? -E2BIG : 0;
}

/* The interpreter becomes the program; its words go in front of the script's path. */
static long enter_script(struct order *order, char *line)
{
    char *words[2];
    char *script = keep_word(order, order->path, strlen(order->path));
    long result = script == NULL ? -E2BIG : split_script(order, line, words);
    if (result < 0)
        return result;
    size_t count = words[1] == NULL ? 1 : 2;
    if (order->head_count == 0)
        order->head[order->head_count++] = script; /* in place of argv[0] */
    else
        order->head[0] = script;
    memmove(order->head + count, order->head, order->head_count * sizeof *order->head);
    memcpy(order->head, words, count * sizeof *words);
    order->head_count += count;
    memcpy(order->path, words[0], strlen(words[0]) + 1);
    dfi_kernel(__NR_close, order->fd);
    bool virtual;
    order->fd = dfi_files_program(AT_FDCWD, order->path, 0, &virtual);
    return order->fd < 0 ? order->fd : 0;
}

/* ---- may we ---- */

static long open_interpreter(struct order *order, const char *interpreter)
{
    bool virtual;
    if (interpreter[0] != '\0')
        order->interpreter_fd = dfi_files_program(AT_FDCWD, interpreter, 0, &virtual);
    return interpreter[0] != '\0' && order->interpreter_fd < 0 ? order->interpreter_fd : 0;
}

static long leave_outside(struct order *order, const char *why)
{
    if ((dfi_run->flags & DFI_RUN_STRICT) != 0)
        return -EPERM;
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

/* From the opened file to an ELF program that can be loaded; or order->outside. */
static long resolve(struct order *order, struct dfi_head *head, char *interpreter)
{
    for (int depth = 0; depth <= SCRIPT_DEPTH; depth++) {
        if (gains_rights(order->fd) && depth == 0)
            return leave_outside(order, "set-user-id, set-group-id or capabilities");
        long result;
        switch (dfi_image_look(order->fd, head, interpreter)) {
        case DFI_IMAGE_ELF:
            if (gains_rights(order->fd))
                return leave_outside(order, "its interpreter gains rights");
            return open_interpreter(order, interpreter);
        case DFI_IMAGE_SCRIPT:
            result = enter_script(order, head->bytes);
            if (result < 0)
                return result;
            break;
        case DFI_IMAGE_FOREIGN:
            return leave_outside(order, "a program for another ABI");
        case DFI_IMAGE_UNKNOWN:
            return leave_outside(order, "not an ELF program");
        }
    }
    return -ELOOP;
}

/* ---- words ---- */

static long count_words(unsigned long array)
{
    unsigned long word;
    for (unsigned long count = 0; array != 0; count++) {
        if (dfi_copy_from(&word, (const void *)(array + count * sizeof word), sizeof word) < 0)
            return -EFAULT;
        if (word == 0)
            return (long)count;
        if (count == ARGS_MAX)
            return -E2BIG;
    }
    return 0;
}

/* argv with the interpreters' words in front of it; NULL: no memory. */
static char **make_argv(const struct order *order, long count)
{
    size_t skip = order->head_count > 0 && count > 0 ? 1 : 0;
    char **argv = take((order->head_count + (size_t)count - skip + 1) * sizeof *argv);
    if (argv == NULL)
        return NULL;
    memcpy(argv, order->head, order->head_count * sizeof *argv);
    size_t size = ((size_t)count - skip) * sizeof *argv;
    if (dfi_copy_from(argv + order->head_count, (char **)order->asked->argv + skip, size) < 0)
        return NULL;
    return argv;
}

static char **make_envp(const struct order *order, long count, char *marker)
{
    char **envp = take(((size_t)count + 2) * sizeof *envp);
    if (envp == NULL)
        return NULL;
    if (dfi_copy_from(envp, (const void *)order->asked->envp, (size_t)count * sizeof *envp) < 0)
        return NULL;
    envp[count] = marker;
    return envp;
}

static long make_marker(const struct order *order, char *marker, char *scratch)
{
    long size = dfi_files_exec(order->asked->process, scratch, PATH_MAX);
    if (size < 0)
        return size;
    struct dfi_text text = {.start = marker, .size = MARKER_SIZE};
    dfi_text_add(&text, DFI_MARKER);
    dfi_text_add_number(&text, (unsigned long)dfi_run_fd);
    dfi_text_add(&text, " ");
    dfi_text_add_number(&text, (unsigned long)(dfi_loader_fd + 1));
    dfi_text_add(&text, " ");
    dfi_text_add_number(&text, (unsigned long)order->fd);
    dfi_text_add(&text, " ");
    dfi_text_add_number(&text, (unsigned long)(order->interpreter_fd + 1));
    dfi_text_add(&text, " ");
    dfi_text_add_number(&text, order->asked->mask | dfi_self()->pending->believed);
    dfi_text_add(&text, " ");
    dfi_text_add_number(&text, (unsigned long)size);
    dfi_text_add(&text, " ");
    dfi_text_add_size(&text, scratch, (size_t)size);
    dfi_text_add(&text, order->path);
    return text.full ? -ENAMETOOLONG : 0;
}

/* ---- do it ---- */

#define F_SETFD 2

void dfi_loader_keep(const char *path)
{
    long fd = dfi_kernel(__NR_openat, AT_FDCWD, path, O_PATH, 0);
    dfi_loader_fd = fd < 0 ? -1 : dfi_move_high((int)fd);
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

static long kernel_exec(struct order *order, char **argv, char **envp)
{
    dfi_kernel(__NR_fcntl, order->fd, F_SETFD, 0); /* the loader needs it */
    if (order->interpreter_fd >= 0)
        dfi_kernel(__NR_fcntl, order->interpreter_fd, F_SETFD, 0);
    dfi_signals_return(); /* what was sent meanwhile is for the next program */
    dfi_signals_exec(order->asked->process, true);
    dfi_count(DFI_EVENT_EXECS);
    dfi_counts_give(dfi_self());
    dfi_tracer_begin(dfi_self());
    long result = enter_loader(argv, envp);
    dfi_counts_take(dfi_self());
    dfi_signals_exec(order->asked->process, false);
    return result;
}

static long load(struct order *order, char *marker, char *scratch)
{
    long argc = count_words(order->asked->argv), envc = count_words(order->asked->envp);
    if (argc < 0 || envc < 0)
        return argc < 0 ? argc : envc;
    long result = make_marker(order, marker, scratch);
    if (result < 0)
        return result;
    char **argv = make_argv(order, argc), **envp = make_envp(order, envc, marker);
    return argv == NULL || envp == NULL ? -ENOMEM : kernel_exec(order, argv, envp);
}

/* The name by which the kernel calls a program that was given by descriptor: execveat(2). */
static void name_image(struct order *order, int dirfd, const char *path)
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
    char *head_words[HEAD_WORDS + 3];
    char path[PATH_MAX], interpreter[PATH_MAX + 1], marker[MARKER_SIZE], words[WORDS_SIZE];
};

static long execute(struct order *order, struct room *room)
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
    long fd = dfi_files_program(asked->dirfd, asked->path, asked->flags, &virtual);
    if (fd < 0)
        return fd;
    struct room *room = take(sizeof *room);
    if (room == NULL) {
        dfi_kernel(__NR_close, fd);
        return -ENOMEM;
    }
    struct order order = {.asked = asked,
                          .fd = (int)fd,
                          .interpreter_fd = -1,
                          .path = room->path,
                          .head = room->head_words,
                          .words = room->words};
    name_image(&order, asked->dirfd, asked->path);
    long result = execute(&order, room);
    if (result == DFI_PASS && virtual)
        result = -ENOEXEC; /* the kernel cannot run it for us */
    if (order.fd >= 0)
        dfi_kernel(__NR_close, order.fd);
    if (order.interpreter_fd >= 0)
        dfi_kernel(__NR_close, order.interpreter_fd);
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
    long result = dfi_kernel_wait6(frame->nr, frame->args[0], frame->args[1], frame->args[2],
                                   frame->args[3], frame->args[4], 0);
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
        result = dfi_exec(&asked);
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
