/*
 * loader.c - directfuse-exec: maps a program and its interpreter and starts it inside.
 *
 * The kernel has made the stack: arguments and environment as the program shall find them, but for
 * the marker (exec.h), the last string of the environment. Without a marker the program is started
 * by `directfuse run`: directfuse-exec RUN COMMAND [ARGUMENT...], RUN the descriptor of the run;
 * then COMMAND is executed as execvp(3) would, which comes back here with a marker.
 * directfuse-exec --calls lists the system calls it knows: number and name.
 */
#include "intercept/exec.h"
#include "intercept/filter.h"
#include "intercept/gs.h"
#include "intercept/image.h"
#include "intercept/mem.h"
#include "intercept/proc_link.h"
#include "intercept/rewrite.h"
#include "intercept/run.h"
#include "intercept/shown.h"
#include "intercept/signal.h"
#include "intercept/start.h"
#include "intercept/text.h"
#include "intercept/thread.h"
#include "intercept/tracer.h"

#include <linux/auxvec.h>
#include <linux/elf.h>
#include <linux/fcntl.h>
#include <linux/openat2.h>
#include <linux/prctl.h>

#define OWN_FAILURE    125 /* env(1), timeout(1) */
#define NOT_EXECUTABLE 126
#define NOT_FOUND      127

#define PR_SET_NAME    15
#define PR_GET_NAME    16
#define PROT_RWX_GROWS 0x01000007 /* PROT_READ | PROT_WRITE | PROT_EXEC | PROT_GROWSDOWN */

struct stack {
    unsigned long *top; /* argc, argv, NULL, environment, NULL, auxiliary vector */
    char **argv, **envp;
    unsigned long argc, envc;
    struct dfi_auxv *auxv;
};

/* What the marker says. */
struct marker {
    int run_fd, loader_fd, program_fd, interpreter_fd; /* -1: it has none */
    unsigned long words, unnamed, mask, ignored;
    const char *start, *text, *name, *path; /* name: of a file in a mount; else "" */
    size_t text_size;
};

#ifndef DFI_FIXED
#define DFI_FIXED 0 /* 1 in directfuse-exec-fixed: linked to a fixed address, for filter.c */
#endif

extern const char __ehdr_start[] __attribute__((visibility("hidden")));
extern const Elf64_Dyn _DYNAMIC[] __attribute__((visibility("hidden")));

_Noreturn void dfi_loader_jump(uintptr_t sp, uintptr_t entry, unsigned long traced);

/* Nobody has relocated this image: pointers in data hold addresses as if it began at 0. */
static void relocate(void)
{
#if !DFI_FIXED
    uintptr_t base = (uintptr_t)__ehdr_start;
    const Elf64_Rela *rela = NULL;
    size_t size = 0;
    for (const Elf64_Dyn *at = _DYNAMIC; at->d_tag != DT_NULL; at++) {
        if (at->d_tag == DT_RELA)
            rela = (const Elf64_Rela *)(base + at->d_un.d_ptr);
        if (at->d_tag == DT_RELASZ)
            size = at->d_un.d_val;
    }
    for (size_t i = 0; i < size / sizeof *rela; i++)
        *(uintptr_t *)(base + rela[i].r_offset) = base + (uintptr_t)rela[i].r_addend;
#endif
}

static struct stack read_stack(unsigned long *top)
{
    struct stack stack = {.top = top, .argc = top[0], .argv = (char **)top + 1};
    stack.envp = stack.argv + stack.argc + 1;
    while (stack.envp[stack.envc] != NULL)
        stack.envc++;
    stack.auxv = (struct dfi_auxv *)(stack.envp + stack.envc + 1);
    return stack;
}

static void say(const char *subject, const char *what)
{
    char line[PATH_MAX + 128];
    struct dfi_text text = DFI_TEXT(line);
    dfi_text_add(&text, "directfuse: ");
    dfi_text_add(&text, subject);
    dfi_text_add(&text, ": ");
    dfi_text_add(&text, what);
    dfi_text_add(&text, "\n");
    dfi_kernel(__NR_write, 2, line, text.used);
}

static _Noreturn void end(int status)
{
    for (;;)
        dfi_kernel(__NR_exit_group, status);
}

static void say_error(const char *subject, const char *what, long error)
{
    char line[128];
    struct dfi_text text = DFI_TEXT(line);
    dfi_text_add(&text, what);
    dfi_text_add(&text, " (errno ");
    dfi_text_add_number(&text, (unsigned long)-error);
    dfi_text_add(&text, ")");
    say(subject, line);
}

static _Noreturn void fail(const char *subject, const char *what, long error)
{
    say_error(subject, what, error);
    end(OWN_FAILURE);
}

/* ---- a program that was executed: with a marker ---- */

static struct marker read_marker(char *string)
{
    struct marker marker = {.start = string};
    const char *text = string + strlen(DFI_MARKER);
    marker.run_fd = (int)dfi_text_number(&text);
    marker.loader_fd = (int)dfi_text_number(&text) - 1;
    marker.program_fd = (int)dfi_text_number(&text);
    marker.interpreter_fd = (int)dfi_text_number(&text) - 1;
    marker.words = dfi_text_number(&text);
    marker.unnamed = dfi_text_number(&text);
    marker.mask = dfi_text_number(&text);
    marker.ignored = dfi_text_number(&text);
    marker.text_size = dfi_text_number(&text);
    size_t name_size = dfi_text_number(&text);
    marker.text = text;
    marker.name = text + marker.text_size;
    marker.path = marker.name + name_size + 1;
    string[marker.path - 1 - marker.start] = '\0';
    return marker;
}

/* The environment ends one string earlier, and what lies behind it moves down. */
static void hide_marker(struct stack *stack)
{
    size_t count = 0;
    while (stack->auxv[count++].type != AT_NULL)
        continue;
    stack->envp[--stack->envc] = NULL;
    struct dfi_auxv *auxv = (struct dfi_auxv *)(stack->envp + stack->envc + 1);
    memmove(auxv, stack->auxv, count * sizeof *auxv);
    stack->auxv = auxv;
}

static void set_auxv(const struct stack *stack, const struct dfi_map *program, uintptr_t base,
                     const char *path)
{
    for (struct dfi_auxv *at = stack->auxv; at->type != AT_NULL; at++) {
        switch (at->type) {
        case AT_PHDR:
            at->value = program->headers;
            break;
        case AT_PHNUM:
            at->value = program->headers_count;
            break;
        case AT_ENTRY:
            at->value = program->entry;
            break;
        case AT_BASE:
            at->value = base;
            break;
        case AT_EXECFN:
            at->value = (uintptr_t)path;
            break;
        case AT_HWCAP2:
            at->value = dfi_gs_hide(at->value);
            break;
        default:
            break;
        }
    }
}

/* What execve(2) was given: a script's own path, where the program is its interpreter. */
static const char *path_executed(const struct stack *stack, const struct marker *marker)
{
    return marker->words > 0 ? stack->argv[marker->words - 1] : marker->path;
}

/* Since Linux 6.14 a program that is given by a descriptor is called as its file, and no more by
 * the number. So are we. */
static bool is_called_by_file(void)
{
    char comm[16];
    dfi_kernel(__NR_prctl, PR_GET_NAME, comm, 0, 0, 0);
    return comm[0] < '0' || comm[0] > '9';
}

/* The name that the program's file has, or had. False: there is no /proc. */
static bool find_file_name(const struct marker *marker, char name[PATH_MAX])
{
    static const char deleted[] = " (deleted)";
    char link[DFI_PROC_LINK_MAX];
    long size = (long)strlen(marker->name);
    if (size > 0) {
        memcpy(name, marker->name, (size_t)size);
    } else {
        dfi_proc_link(marker->program_fd, link);
        size = dfi_kernel(__NR_readlink, link, name, PATH_MAX - 1);
    }
    if (size <= 0)
        return false;
    name[size] = '\0';
    size -= (long)sizeof deleted - 1;
    if (size > 0 && dfi_text_equal(name + size, deleted))
        name[size] = '\0';
    return true;
}

/* As it was called. The name that /proc/self/exe shows is looked for when somebody asks: a look
 * into /proc costs a new process 25 microseconds. */
static void name_program(const struct stack *stack, const struct marker *marker)
{
    bool found = marker->name[0] != '\0';
    dfi_files_name(dfi_process(), found ? marker->name : marker->path, found);
    const char *called = path_executed(stack, marker);
    char name[PATH_MAX];
    if (marker->unnamed && is_called_by_file() && find_file_name(marker, name))
        called = name;
    dfi_kernel(__NR_prctl, PR_SET_NAME, dfi_text_base(called), 0, 0, 0);
}

/* The program that executed this one is gone, and cannot be told: as the kernel does then. */
static _Noreturn void end_by_signal(void)
{
    static const struct sigaction by_default;
    static const unsigned long none;
    dfi_kernel(__NR_rt_sigaction, SIGSEGV, &by_default, 0, sizeof none);
    dfi_kernel(__NR_rt_sigprocmask, SIG_SETMASK, &none, 0, sizeof none);
    dfi_kernel(__NR_kill, dfi_kernel(__NR_getpid), SIGSEGV);
    end(OWN_FAILURE);
}

static void map_or_fail(int fd, struct dfi_map *map, const char *path)
{
    long result = dfi_map_image(fd, map);
    if (result < 0) {
        say_error(path, "cannot be loaded", result);
        end_by_signal();
    }
    dfi_kernel(__NR_close, fd);
}

/* Maps what is executed; where it begins. */
static uintptr_t load(struct stack *stack, const struct marker *marker)
{
    struct dfi_map program, interpreter;
    map_or_fail(marker->program_fd, &program, marker->path);
    struct dfi_exe *exe = dfi_process()->exe;
    if (exe != NULL) {
        exe->start = program.start;
        exe->end = program.first_end;
    }
    bool dynamic = marker->interpreter_fd >= 0;
    if (dynamic) {
        map_or_fail(marker->interpreter_fd, &interpreter, marker->path);
        dfi_rewrite_linker(interpreter.start, interpreter.end);
    }
    if (program.executable_stack)
        dfi_kernel(__NR_mprotect, (uintptr_t)stack->top & -DFI_PAGE, DFI_PAGE, PROT_RWX_GROWS);
    set_auxv(stack, &program, dynamic ? interpreter.base : 0, path_executed(stack, marker));
    dfi_show(
        &(struct dfi_shown){&program, stack->argv, stack->envp, marker->start, stack->auxv, exe});
    return dynamic ? interpreter.entry : program.entry;
}

struct starting {
    struct stack *stack;
    const struct marker *marker;
    uintptr_t entry; /* start()'s result */
};

/* On the core's stack, whose pages the program's calls need anyway. */
static bool start(uintptr_t first, unsigned long second)
{
    struct starting *starting = (struct starting *)first;
    const struct marker *marker = starting->marker;
    (void)second;
    name_program(starting->stack, marker);
    starting->entry = load(starting->stack, marker);

    dfi_filtered = DFI_FIXED;
    long error = dfi_thread_arm();
    if (error < 0)
        fail(marker->path, "this kernel has no Syscall User Dispatch", error);
    return true;
}

static _Noreturn void run(struct stack *stack, const struct marker *marker, unsigned long traced)
{
    struct starting starting = {.stack = stack, .marker = marker};
    long error;
    dfi_loader_fd = marker->loader_fd;
    struct dfi_thread *self = dfi_start(marker->run_fd, marker->text, marker->text_size, &error);
    if (self == NULL)
        fail(marker->path, dfi_start_refusal(error), error);
    self->trace_me = traced == DFI_TRACED ? DFI_TRACE_BEGUN : 0;
    dfi_signals_ignore(dfi_process(), marker->ignored);
    hide_marker(stack);
    dfi_on_core_stack((uintptr_t)&starting, 0, start);
    dfi_signals_open(marker->mask); /* a SIGSYS that waits comes here, and wants that stack */
    dfi_loader_jump((uintptr_t)stack->top, starting.entry, traced);
}

/* ---- the first program of a run: without ---- */

struct command {
    struct dfi_exec exec;
    char **argv;
    char path[PATH_MAX];
};

/* One place where the command may be; as execvp(3), a file that is no program is a shell's. */
static long try(struct command *command)
{
    command->exec.path = command->path;
    command->exec.argv = (unsigned long)command->argv;
    long error = dfi_exec(&command->exec);
    if (error != DFI_PASS && error != -ENOEXEC)
        return error;
    if (error == DFI_PASS) {
        dfi_count(DFI_EVENT_ESCAPED);
        dfi_signals_unblock(command->exec.mask);
        error = dfi_kernel(__NR_execve, command->path, command->argv, command->exec.envp);
        if (error != -ENOEXEC)
            return error;
        __atomic_fetch_sub(&dfi_run->events[DFI_EVENT_ESCAPED], 1, __ATOMIC_RELAXED);
    }
    char **words = command->argv - 1; /* RUN's place: the arguments move up by the script's path */
    words[0] = (char *)"sh";
    words[1] = command->path;
    command->exec.path = "/bin/sh";
    command->exec.argv = (unsigned long)words;
    return dfi_exec(&command->exec);
}

static const char *search_path(const struct stack *stack)
{
    for (unsigned long i = 0; i < stack->envc; i++) {
        if (dfi_text_begins(stack->envp[i], "PATH="))
            return stack->envp[i] + 5;
    }
    return "/usr/local/bin:/usr/bin:/bin";
}

static long search(struct command *command, const char *name, const char *places)
{
    long result = -ENOENT;
    for (;;) {
        struct dfi_text text = DFI_TEXT(command->path);
        size_t size = 0;
        while (places[size] != '\0' && places[size] != ':')
            size++;
        dfi_text_add_size(&text, places, size);
        dfi_text_add(&text, size > 0 ? "/" : "");
        dfi_text_add(&text, name);
        long error = text.full ? -ENAMETOOLONG : try(command);
        if (error == -EACCES)
            result = error;
        else if (error != -ENOENT && error != -ENOTDIR && error != -ENAMETOOLONG)
            return error;
        if (places[size] == '\0')
            return result;
        places += size + 1;
    }
}

static bool has_slash(const char *name)
{
    return dfi_text_base(name) != name;
}

static _Noreturn void list_calls(void)
{
    for (unsigned long nr = 0; nr < DFI_CALLS_MAX; nr++) {
        char line[80];
        struct dfi_text text = DFI_TEXT(line);
        if (dfi_calls[nr].name[0] == '\0')
            continue;
        dfi_text_add_number(&text, nr);
        dfi_text_add(&text, " ");
        dfi_text_add(&text, dfi_calls[nr].name);
        dfi_text_add(&text, "\n");
        dfi_kernel(__NR_write, 1, line, text.used);
    }
    end(0);
}

/* `directfuse run` asks before it begins, by the end of this program: a filter may kill it. */
static _Noreturn void try_openat2(void)
{
    const struct open_how how = {.flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_NO_SYMLINKS};
    dfi_kernel(__NR_prctl, PR_SET_DUMPABLE, 0, 0, 0, 0); /* no core file of that */
    long fd = dfi_kernel(__NR_openat2, AT_FDCWD, "/", &how, sizeof how);
    end(fd < 0 ? 1 : 0);
}

/*
 * How calls are trapped is decided once for a run, here. Without Syscall User Dispatch the loader
 * at a fixed address takes over: it has the same arguments, and comes here too.
 */
static void choose_trap(struct stack *stack)
{
    bool forced = dfi_run_has(DFI_RUN_SECCOMP);
    if (!forced && dfi_dispatch_supported()) {
        dfi_note("calls trap by Syscall User Dispatch");
        return;
    }
    if (!DFI_FIXED) {
        char path[PATH_MAX];
        struct dfi_text text = DFI_TEXT(path);
        dfi_text_add(&text, dfi_run->loader);
        dfi_text_add(&text, "-fixed");
        long error = dfi_kernel(__NR_execve, path, stack->argv, stack->envp);
        fail(path, "is needed without Syscall User Dispatch, and cannot be started", error);
    }
    long error = dfi_filter_install();
    if (error < 0)
        fail(stack->argv[2], "cannot be interposed: neither Syscall User Dispatch nor seccomp",
             error);
    dfi_note(forced ? "calls trap by seccomp, as asked"
                    : "calls trap by seccomp: this kernel has no Syscall User Dispatch");
}

/* Of a command that is there. */
static const char *why(long error)
{
    if (error == -EMFILE)
        return "too many open files; allow more, for example `ulimit -n 1024`";
    return error == -EACCES ? "permission denied" : "cannot be executed";
}

static _Noreturn void begin(struct stack *stack)
{
    if (stack->argc == 2 && dfi_text_equal(stack->argv[1], "--calls"))
        list_calls();
    if (stack->argc == 2 && dfi_text_equal(stack->argv[1], "--openat2"))
        try_openat2();
    if (stack->argc == 2 && dfi_text_equal(stack->argv[1], "--dispatch"))
        end(dfi_dispatch_supported() ? 0 : 1);
    if (stack->argc < 3) {
        say("directfuse-exec", "is started by directfuse run");
        end(OWN_FAILURE);
    }
    const char *number = stack->argv[1], *name = stack->argv[2];
    int run_fd = (int)dfi_text_number(&number);
    long error = dfi_run_open(run_fd);
    if (error < 0)
        fail(name, dfi_start_refusal(error), error);
    choose_trap(stack);
    dfi_loader_keep("/proc/self/exe");
    struct dfi_thread *self = dfi_start(run_fd, NULL, 0, &error);
    if (self == NULL)
        fail(name, dfi_start_refusal(error), error);
    struct command *command = dfi_alloc(sizeof *command);
    if (command == NULL)
        fail(name, "cannot be started", -ENOMEM);
    command->argv = stack->argv + 2;
    command->exec = (struct dfi_exec){.process = self->process,
                                      .dirfd = AT_FDCWD,
                                      .envp = (unsigned long)stack->envp,
                                      .mask = dfi_signals_found()};
    if (has_slash(name) && strlen(name) < sizeof command->path) {
        memcpy(command->path, name, strlen(name) + 1);
        error = try(command);
    } else {
        error = name[0] == '\0' ? -ENOENT : search(command, name, search_path(stack));
    }
    if (error == -ENOENT || error == -ENOTDIR) {
        say(name, "command not found");
        end(NOT_FOUND);
    }
    say(name, why(error));
    end(NOT_EXECUTABLE);
}

_Noreturn void dfi_loader(unsigned long *top, unsigned long traced);
_Noreturn void dfi_loader(unsigned long *top, unsigned long traced)
{
    relocate();
    struct stack stack = read_stack(top);
    char *last = stack.envc > 0 ? stack.envp[stack.envc - 1] : (char *)"";
    if (!dfi_text_begins(last, DFI_MARKER))
        begin(&stack);
    struct marker marker = read_marker(last);
    run(&stack, &marker, traced);
}
