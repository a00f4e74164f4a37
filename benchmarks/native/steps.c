/*
 * steps.c - df-steps: which instructions a program executes for one call, one by one, for what no
 * clock shows beside other load: benchmarks/steps.py.
 *
 *   df-steps call NAME FILE        says its process id; after a line of input it makes the call,
 *                                  which is warm by then, between two breakpoints
 *   df-steps trace PID             says when it may be told to; prints the address of each
 *                                  instruction between the two, in hex, and ends the process
 *   df-steps once NAME FILE        the same call, and no breakpoints: for who traces the server
 *   df-steps serve PID ADDRESS     says when the call may be made; prints the address of each
 *                                  instruction of the function at ADDRESS, on whichever thread of
 *                                  the server it is called, and of what it calls
 *
 * The process is traced from outside of the run: within, a tracer is shown the program alone (docs/
 * decisions/074). Waits for a server are part of what is printed: their spins turn more rarely than
 * at full speed.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#define WARM       100
#define STEPS_MAX  1000000
#define BREAKPOINT 0xccul

static _Noreturn void die(const char *what)
{
    fprintf(stderr, "df-steps: %s: %s\n", what, strerror(errno));
    exit(1);
}

/* ---- the call ------------------------------------------------------------------------------- */

struct place {
    const char *path;
    int fd; /* of the file at path */
    int directory;
    const char *name; /* of the file, in there */
};

static char bytes[4096];

static void call_fstat(const struct place *at)
{
    struct stat st;

    fstat(at->fd, &st);
}

static void call_stat(const struct place *at)
{
    struct stat st;

    stat(at->path, &st);
}

static void call_fstatat(const struct place *at)
{
    struct stat st;

    fstatat(at->directory, at->name, &st, AT_SYMLINK_NOFOLLOW);
}

static void call_access(const struct place *at)
{
    if (access(at->path, R_OK) < 0)
        die(at->path);
}

static void call_open(const struct place *at)
{
    close(open(at->path, O_RDONLY));
}

static void call_pread(const struct place *at)
{
    if (pread(at->fd, bytes, sizeof(bytes), 0) < 0)
        die(at->path);
}

static void call_chmod(const struct place *at)
{
    fchmodat(at->directory, at->name, 0600, 0);
}

static void call_utimens(const struct place *at)
{
    futimens(at->fd, NULL);
}

static void call_create(const struct place *at)
{
    close(openat(at->directory, "made", O_WRONLY | O_CREAT, 0600));
    unlinkat(at->directory, "made", 0);
}

static const struct {
    const char *name;
    void (*make)(const struct place *at);
} calls[] = {
    {"fstat", call_fstat},   {"stat", call_stat},       {"fstatat", call_fstatat},
    {"access", call_access}, {"open", call_open},       {"pread", call_pread},
    {"chmod", call_chmod},   {"utimens", call_utimens}, {"create", call_create},
};

static void (*call_of(const char *name))(const struct place *at)
{
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
        if (strcmp(calls[i].name, name) == 0)
            return calls[i].make;
    errno = EINVAL;
    die(name);
}

static int open_directory(const char *path)
{
    char directory[4096];
    const char *slash = strrchr(path, '/');

    snprintf(directory, sizeof(directory), "%.*s", (int)(slash - path), path);
    return open(directory, O_RDONLY | O_DIRECTORY);
}

static int make_call(const char *name, const char *path, bool between_breakpoints)
{
    void (*make)(const struct place *at) = call_of(name);
    struct place at = {.path = path, .fd = open(path, O_RDWR | O_CREAT, 0600)};

    if (path[0] != '/' || at.fd < 0 || pwrite(at.fd, bytes, sizeof(bytes), 0) < 0)
        die(path);
    at.directory = open_directory(path);
    at.name = strrchr(path, '/') + 1;
    for (int i = 0; i < WARM; i++)
        make(&at);
    printf("%d\n", getpid());
    fflush(stdout);
    getchar();
    if (!between_breakpoints) {
        make(&at);
        return 0;
    }
    for (int i = 0; i < WARM; i++)
        make(&at);
    __asm__ volatile("int3");
    make(&at);
    __asm__ volatile("int3");
    return 0;
}

/* ---- the trace ------------------------------------------------------------------------------ */

/* What it stopped for; signals of the program's own are let through. */
static void await_stop(pid_t pid)
{
    int status;

    if (waitpid(pid, &status, __WALL) < 0)
        die("waitpid");
    if (!WIFSTOPPED(status)) {
        errno = ESRCH;
        die("the traced program has ended");
    }
}

static void go_to_breakpoint(pid_t pid)
{
    siginfo_t info = {0};
    long signal = 0;

    do {
        if (ptrace(PTRACE_CONT, pid, 0, signal) < 0)
            die("PTRACE_CONT");
        await_stop(pid);
        ptrace(PTRACE_GETSIGINFO, pid, 0, &info);
        signal = info.si_signo;
    } while (signal != SIGTRAP);
}

static int trace(pid_t pid)
{
    struct user_regs_struct registers;

    if (ptrace(PTRACE_ATTACH, pid, 0, 0) < 0)
        die("PTRACE_ATTACH");
    await_stop(pid);
    printf("ready\n");
    fflush(stdout);
    go_to_breakpoint(pid);
    for (int i = 0; i < STEPS_MAX; i++) {
        ptrace(PTRACE_GETREGS, pid, 0, &registers);
        if ((ptrace(PTRACE_PEEKTEXT, pid, registers.rip, 0) & 0xff) == BREAKPOINT)
            break;
        printf("%llx\n", registers.rip);
        ptrace(PTRACE_SINGLESTEP, pid, 0, 0);
        await_stop(pid);
    }
    return kill(pid, SIGKILL) == 0 ? 0 : 1;
}

/* ---- the server ----------------------------------------------------------------------------- */

static void attach(pid_t thread)
{
    if (ptrace(PTRACE_ATTACH, thread, 0, 0) < 0)
        die("PTRACE_ATTACH");
    await_stop(thread);
}

static void let_go(pid_t thread)
{
    ptrace(PTRACE_CONT, thread, 0, 0);
}

static void each_thread(pid_t pid, void (*visit)(pid_t thread))
{
    char path[64];
    const struct dirent *entry;
    DIR *threads;

    snprintf(path, sizeof(path), "/proc/%d/task", pid);
    if (!(threads = opendir(path)))
        die(path);
    while ((entry = readdir(threads)))
        if (entry->d_name[0] != '.')
            visit(atoi(entry->d_name));
    closedir(threads);
}

/* A thread that has come to a breakpoint. Others may end meanwhile. */
static pid_t await_breakpoint(void)
{
    pid_t thread;
    int status;

    while ((thread = waitpid(-1, &status, __WALL)) >= 0) {
        if (WIFSTOPPED(status) && WSTOPSIG(status) == SIGTRAP)
            return thread;
        if (WIFSTOPPED(status))
            ptrace(PTRACE_CONT, thread, 0, WSTOPSIG(status));
    }
    die("the server has ended");
}

/* From the beginning of a function to its end, which leaves less on the stack. */
static void trace_function(pid_t thread, unsigned long address)
{
    struct user_regs_struct registers;
    unsigned long stack;

    ptrace(PTRACE_GETREGS, thread, 0, &registers);
    registers.rip = address;
    stack = registers.rsp;
    ptrace(PTRACE_SETREGS, thread, 0, &registers);
    for (int i = 0; i < STEPS_MAX && registers.rsp <= stack; i++) {
        printf("%llx\n", registers.rip);
        ptrace(PTRACE_SINGLESTEP, thread, 0, 0);
        await_stop(thread);
        ptrace(PTRACE_GETREGS, thread, 0, &registers);
    }
}

/* The end of this process lets go of the server's threads, which go on. */
static int serve(pid_t pid, unsigned long address)
{
    pid_t thread;
    long word;

    each_thread(pid, attach); /* all: one that is not traced would die of a breakpoint */
    word = ptrace(PTRACE_PEEKTEXT, pid, address, 0);
    if (ptrace(PTRACE_POKETEXT, pid, address, (word & ~0xffl) | (long)BREAKPOINT) < 0)
        die("PTRACE_POKETEXT");
    each_thread(pid, let_go);
    printf("ready\n");
    fflush(stdout);
    thread = await_breakpoint();
    ptrace(PTRACE_POKETEXT, thread, address, word);
    trace_function(thread, address);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 4 && (strcmp(argv[1], "call") == 0 || strcmp(argv[1], "once") == 0))
        return make_call(argv[2], argv[3], strcmp(argv[1], "call") == 0);
    if (argc == 4 && strcmp(argv[1], "serve") == 0)
        return serve(atoi(argv[2]), strtoul(argv[3], NULL, 16));
    if (argc == 3 && strcmp(argv[1], "trace") == 0)
        return trace(atoi(argv[2]));
    fprintf(stderr, "usage: df-steps call|once NAME FILE | trace PID | serve PID ADDRESS\n");
    return 2;
}
