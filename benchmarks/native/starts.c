/*
 * starts.c - df-starts: which instructions a program executes from its start to its end:
 * benchmarks/order.py.
 *
 *   df-starts N COMMAND...   of the Nth program that COMMAND starts through directfuse-exec: prints
 *                            its process id and waits for a line of input; then prints the address
 *                            of each instruction, in hex, of the program and of what it forks
 *
 * From outside of the run, as df-steps.
 */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#define EXECUTED (SIGTRAP | PTRACE_EVENT_EXEC << 8)

static _Noreturn void die(const char *what)
{
    fprintf(stderr, "df-starts: %s: %s\n", what, strerror(errno));
    exit(1);
}

static bool is_loader(pid_t pid)
{
    char link[64], name[4096];
    ssize_t size;

    snprintf(link, sizeof(link), "/proc/%d/exe", pid);
    size = readlink(link, name, sizeof(name) - 1);
    name[size < 0 ? 0 : size] = '\0';
    return strstr(name, "/directfuse-exec") != NULL;
}

static void begin_traced(char **command)
{
    const long options = PTRACE_O_TRACEEXEC | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK |
                         PTRACE_O_TRACECLONE | PTRACE_O_EXITKILL;
    pid_t pid = fork();

    if (pid == 0) {
        ptrace(PTRACE_TRACEME, 0, 0, 0);
        raise(SIGSTOP);
        execvp(command[0], command);
        die(command[0]);
    }
    if (waitpid(pid, NULL, __WALL) != pid)
        die("waitpid");
    if (ptrace(PTRACE_SETOPTIONS, pid, 0, options) < 0 || ptrace(PTRACE_CONT, pid, 0, 0) < 0)
        die("PTRACE_SETOPTIONS");
}

static void print_instruction(pid_t pid)
{
    struct user_regs_struct registers;

    if (ptrace(PTRACE_GETREGS, pid, 0, &registers) == 0)
        printf("%llx\n", registers.rip);
}

/* Programs beside it run on: what is a stop of ours is theirs no signal. */
static void go_on(pid_t pid, int status, bool stepped)
{
    bool ours = status >> 16 != 0 || WSTOPSIG(status) == SIGTRAP || WSTOPSIG(status) == SIGSTOP;

    ptrace(stepped ? PTRACE_SINGLESTEP : PTRACE_CONT, pid, 0, ours ? 0L : (long)WSTOPSIG(status));
}

/* Its first stop may come ahead of the one by which its parent tells of it. */
static bool is_child_of(pid_t parent, pid_t pid)
{
    char name[64];
    int found = 0;
    FILE *file;

    snprintf(name, sizeof(name), "/proc/%d/stat", pid);
    file = fopen(name, "r");
    if (file && fscanf(file, "%*d (%*[^)]) %*c %d", &found) != 1)
        found = 0;
    if (file)
        fclose(file);
    return found == parent;
}

static int trace(int number, char **command)
{
    int status, executed = 0;
    pid_t pid, found = 0, child = 0;

    begin_traced(command);
    while ((pid = waitpid(-1, &status, __WALL)) > 0) {
        if (!WIFSTOPPED(status))
            continue;
        if (status >> 8 == EXECUTED && is_loader(pid) && ++executed == number) {
            found = pid;
            printf("%d\n", pid);
            fflush(stdout);
            getchar();
        }
        if (found && pid != found && pid != child && is_child_of(found, pid))
            child = pid;
        bool stepped = pid == found || pid == child;
        if (stepped)
            print_instruction(pid);
        go_on(pid, status, stepped);
    }
    return found ? 0 : 1;
}

int main(int argc, char **argv)
{
    if (argc > 2 && atoi(argv[1]) > 0)
        return trace(atoi(argv[1]), argv + 2);
    fprintf(stderr, "usage: df-starts N COMMAND...\n");
    return 2;
}
