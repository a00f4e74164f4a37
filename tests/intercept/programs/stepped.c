/*
 * stepped.c - a signal at every instruction: what it finds, and what it leaves behind.
 *
 *   stepped trace CONTROL SIGNALS [STRIDE [GAP]]   outside: steps the other one by ptrace(2)
 *   stepped CALL CONTROL                  inside: makes a call again and again, between two marks
 *   stepped gs:CALL CONTROL               the same with a base of its own for %gs
 *
 * The first time the tracer only writes down which instructions come. Then, for each of the core's
 * (STRIDE: each so many; and one of every other), the call is made anew, goes as far as that
 * instruction, and the signals are sent there: all at once, or with GAP the second so many
 * instructions behind the first. The program looks whether each was handled once, by itself and not
 * by a child, on a stack of its own, with its own mask in the frame, and whether the call's result
 * and the mask afterwards are what they are without. What is wrong is printed, with the place.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

/* Both have it mapped; nothing that is looked at needs a call. */
struct control {
    volatile int pid, traced, end;
    volatile int sent;               /* signals of this round */
    volatile unsigned wrong;         /* WRONG_* of the last round */
    volatile unsigned long mask;     /* that was found */
    volatile int handled, strangers; /* handlers that ran, those in a child */
    volatile long result;
    volatile uintptr_t begin, done; /* behind the two marks */
};

enum {
    WRONG_MASK = 1,
    WRONG_COUNT = 2,
    WRONG_FRAME = 4,
    WRONG_STACK = 8,
    WRONG_RESULT = 16,
    WRONG_BASE = 32
};

static struct control *control;

static void fail(const char *what)
{
    perror(what);
    exit(2);
}

static struct control *map_control(const char *path)
{
    int fd = open(path, O_RDWR | O_CREAT, 0600);
    if (fd < 0 || ftruncate(fd, sizeof *control) < 0)
        fail(path);
    struct control *mapped = mmap(NULL, sizeof *control, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (mapped == MAP_FAILED)
        fail("mmap");
    close(fd);
    return mapped;
}

/* ---- inside ---- */

#define KERNELS_SIGSET 8

static const int handled[] = {SIGSEGV, SIGBUS, SIGUSR1, SIGSYS};
#define HANDLED (sizeof handled / sizeof *handled)

static volatile unsigned long own;    /* mask of the program */
static volatile unsigned long closed; /* its other mask, for a time */
static unsigned long theirs;          /* bits of the signals that are handled */
static char *lowest, *highest;        /* of the program's stack */
static char other[64 << 10];

#define ARCH_SET_GS 0x1001

static const unsigned long based = 0x6762617365643a29; /* what %gs:0 is, where it is set */
static bool has_base;

static bool is_base_right(void)
{
    unsigned long found;
    if (!has_base)
        return true;
    __asm__ volatile("movq %%gs:0, %0" : "=r"(found));
    return found == based;
}

static unsigned long bit(int signal)
{
    return 1ul << (signal - 1);
}

static unsigned long mask_now(void)
{
    unsigned long mask = 0;
    syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, &mask, KERNELS_SIGSET);
    return mask;
}

static void handle(int signal, siginfo_t *info, void *context)
{
    unsigned long mask;
    char *here = (char *)&mask;
    if (!is_base_right())
        control->wrong |= WRONG_BASE;
    (void)signal;
    (void)info;
    memcpy(&mask, &((ucontext_t *)context)->uc_sigmask, sizeof mask);
    if (syscall(SYS_getpid) != control->pid) {
        __atomic_fetch_add(&control->strangers, 1, __ATOMIC_RELAXED);
        return;
    }
    if ((mask & ~theirs) != (own & ~theirs) && (mask & ~theirs) != (closed & ~theirs)) {
        control->wrong |= WRONG_FRAME;
        control->mask = mask;
    }
    if ((here < lowest || here > highest) && (here < other || here > other + sizeof other))
        control->wrong |= WRONG_STACK;
    __atomic_fetch_add(&control->handled, 1, __ATOMIC_RELAXED);
}

/* As musl or a runtime of its own: the handler goes back by itself. */
static void return_by_itself(int signal, siginfo_t *info, void *context)
{
    (void)signal;
    (void)info;
    __asm__ volatile("movq %0, %%rsp\n\tmovl $15, %%eax\n\tsyscall" : : "r"(context));
}

static void install(int signal, void (*handler)(int, siginfo_t *, void *), int flags)
{
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | flags};
    sigaction(signal, &action, NULL);
}

static long call_pass(void)
{
    return syscall(SYS_getpid) == control->pid ? 0 : 1;
}

/* A step in a thread that has SIGTRAP blocked opens it. */
static long call_mask(void)
{
    unsigned long all = ~0ul, before = 0, within = 0;
    closed = all & ~(bit(SIGKILL) | bit(SIGSTOP) | bit(SIGTRAP));
    syscall(SYS_rt_sigprocmask, SIG_BLOCK, &all, &before, KERNELS_SIGSET);
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before, &within, KERNELS_SIGSET);
    bool right = before == own && (within & ~bit(SIGTRAP)) == closed;
    closed = own;
    return right ? 0 : 1;
}

static long call_action(void)
{
    struct sigaction action;
    return sigaction(SIGBUS, NULL, &action);
}

static long end_of(pid_t child)
{
    int status;
    return child < 0 || waitpid(child, &status, 0) != child || status != 0;
}

static long call_fork(void)
{
    pid_t child = (pid_t)syscall(SYS_fork);
    if (child == 0)
        _exit(is_base_right() && mask_now() == own && is_base_right() ? 0 : 1);
    return end_of(child);
}

static long call_vfork(void)
{
    pid_t child = vfork();
    if (child == 0)
        _exit(0);
    return end_of(child);
}

static int life(void *unused)
{
    (void)unused;
    return is_base_right() ? 0 : 1;
}

static long call_clone(void)
{
    static char stack[64 << 10];
    return end_of(clone(life, stack + sizeof stack, CLONE_VM | SIGCHLD, NULL));
}

static long call_execfails(void)
{
    char *argv[] = {(char *)"none", NULL};
    return execve("/no/such/program", argv, argv) == -1 && errno == ENOENT ? 0 : 1;
}

static long call_return(void)
{
    return syscall(SYS_tgkill, control->pid, control->pid, SIGUSR2);
}

static long call_open(void)
{
    int fd = open("file", O_RDWR | O_CREAT, 0600);
    char text[4];
    if (fd < 0 || pwrite(fd, "text", 4, 0) != 4 || pread(fd, text, 4, 0) != 4)
        return 1;
    return close(fd);
}

static const struct {
    const char *name;
    long (*call)(void);
} calls[] = {
    {"pass", call_pass},           {"mask", call_mask},     {"action", call_action},
    {"fork", call_fork},           {"vfork", call_vfork},   {"clone", call_clone},
    {"execfails", call_execfails}, {"return", call_return}, {"open", call_open},
};

static void check(long result)
{
    if (!is_base_right())
        control->wrong |= WRONG_BASE;
    unsigned long mask = mask_now();
    if (mask != own) {
        control->wrong |= WRONG_MASK;
        control->mask = mask;
        syscall(SYS_rt_sigprocmask, SIG_SETMASK, &own, NULL, KERNELS_SIGSET);
    }
    if (control->handled != control->sent || control->strangers != 0)
        control->wrong |= WRONG_COUNT;
    control->result = result;
    if (result != 0)
        control->wrong |= WRONG_RESULT;
}

#define MARK(where)                                                                                \
    __asm__ volatile("leaq 1f(%%rip), %%rax\n\tmovq %%rax, %0\n\tint3\n1:"                         \
                     : "=m"(where)                                                                 \
                     :                                                                             \
                     : "rax", "memory")

static int work(long (*call)(void))
{
    char here;
    lowest = &here - (64 << 10);
    highest = &here + (64 << 10);
    stack_t stack = {.ss_sp = other, .ss_size = sizeof other};
    sigaltstack(&stack, NULL);
    for (size_t i = 0; i < HANDLED; i++) {
        install(handled[i], handle, SA_RESTART);
        theirs |= bit(handled[i]);
    }
    install(SIGUSR2, return_by_itself, SA_RESTART);
    theirs |= bit(SIGUSR2) | bit(SIGTRAP);
    own = closed = bit(SIGHUP) | bit(SIGALRM);
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &own, NULL, KERNELS_SIGSET);
    control->pid = getpid();
    while (!control->traced)
        sched_yield();
    while (!control->end) {
        MARK(control->begin);
        long result = call();
        MARK(control->done);
        check(result);
    }
    return 0;
}

/* ---- outside ---- */

#define STEPS_MAX 200000
#define OFTEN     3 /* looks at an instruction of the core that comes again */

static pid_t program;
static uintptr_t steps[STEPS_MAX];
static unsigned char is_chosen[STEPS_MAX];
static int list[4], stride = 1, gap;
static size_t listed;

static uintptr_t core_start, core_end;
static char core_path[256];

static void find_core(void)
{
    char name[64], line[512], path[256], rights[8];
    unsigned long start, end, offset;
    snprintf(name, sizeof name, "/proc/%d/maps", (int)program);
    FILE *maps = fopen(name, "r");
    while (maps != NULL && fgets(line, sizeof line, maps) != NULL) {
        path[0] = '\0';
        if (sscanf(line, "%lx-%lx %7s %lx %*s %*s %255s", &start, &end, rights, &offset, path) < 4)
            continue;
        if (rights[2] == 'x' && strstr(path, "directfuse") != NULL &&
            strstr(path, "stepped") == NULL) {
            core_start = start - offset;
            core_end = end;
            strcpy(core_path, path);
        }
    }
    if (maps != NULL)
        fclose(maps);
}

static bool in_core(uintptr_t ip)
{
    return ip >= core_start && ip < core_end;
}

static uintptr_t ip_of(void)
{
    return (uintptr_t)ptrace(PTRACE_PEEKUSER, program, offsetof(struct user_regs_struct, rip), 0);
}

static void died(int status)
{
    printf("ended: %s %d\n", WIFSIGNALED(status) ? "signal" : "status",
           WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
}

/* Goes on until the next stop that is no signal of the program's. False: it has ended. */
static bool go(enum __ptrace_request how)
{
    long signal = 0;
    int status;
    for (;;) {
        if (ptrace(how, program, 0, signal) < 0 || waitpid(program, &status, 0) != program)
            return false;
        if (!WIFSTOPPED(status)) {
            died(status);
            return false;
        }
        signal = WSTOPSIG(status);
        if (signal == SIGTRAP && status >> 16 == 0)
            return true;
        if (status >> 16 != 0)
            signal = 0;
    }
}

static bool go_to(const volatile uintptr_t *mark)
{
    do {
        if (!go(PTRACE_CONT))
            return false;
    } while (ip_of() != *mark);
    return true;
}

static size_t write_down(void)
{
    size_t count = 0;
    while (ip_of() != control->done && count < STEPS_MAX) {
        steps[count++] = ip_of();
        if (!go(PTRACE_SINGLESTEP))
            exit(1);
    }
    return count;
}

static void choose(size_t count)
{
    for (size_t i = 0; i < count; i++) {
        int seen = 0, often = in_core(steps[i]) ? OFTEN : 1;
        for (size_t k = i; k-- > 0 && seen < often;)
            seen += steps[k] == steps[i];
        is_chosen[i] = seen < often;
    }
}

static void report(size_t at, uintptr_t ip)
{
    unsigned wrong = control->wrong;
    printf(
        "step %zu, %s+%#lx:%s%s%s%s%s%s mask %#lx, handled %d of %d, in children %d, result %ld\n",
        at, in_core(ip) ? "core" : "program", in_core(ip) ? ip - core_start : ip,
        wrong & WRONG_MASK ? " mask" : "", wrong & WRONG_COUNT ? " count" : "",
        wrong & WRONG_FRAME ? " frame" : "", wrong & WRONG_STACK ? " stack" : "",
        wrong & WRONG_RESULT ? " result" : "", wrong & WRONG_BASE ? " base" : "", control->mask,
        control->handled, control->sent, control->strangers, control->result);
}

/* The processor's breakpoint before the instruction at ip; 0: none. Children do not have it. */
static void stop_at(uintptr_t ip)
{
    size_t address = offsetof(struct user, u_debugreg[0]),
           how = offsetof(struct user, u_debugreg[7]);
    if (ptrace(PTRACE_POKEUSER, program, how, 0) < 0 ||
        (ip != 0 && (ptrace(PTRACE_POKEUSER, program, address, ip) < 0 ||
                     ptrace(PTRACE_POKEUSER, program, how, 1) < 0)))
        fail("no breakpoint");
}

/* As many steps, but none behind the mark at the end: not each round has as many as the first. */
static bool make_steps(size_t count)
{
    for (size_t i = 0; i < count && ip_of() != control->done; i++) {
        if (!go(PTRACE_SINGLESTEP))
            return false;
    }
    return true;
}

/* As many steps further from the mark at the beginning. Of thousands, each two changes of context,
 * only the last few are made: an instruction is tried when it comes for the first times. One that
 * repeats itself has a step for each time, and one stop. Some come only when all steps are made. */
static bool advance(size_t at)
{
    size_t first = at, hits = 0;
    while (first > 0 && steps[first - 1] == steps[at])
        first--;
    for (size_t i = 1; i <= first; i++)
        hits += steps[i] == steps[at] && steps[i - 1] != steps[at];
    stop_at(steps[at]);
    while (hits > 0) {
        if (!go(PTRACE_CONT))
            return false;
        if (ip_of() == control->done) {
            stop_at(0);
            return go_to(&control->begin) && make_steps(at);
        }
        hits -= ip_of() == steps[at];
    }
    stop_at(0);
    return make_steps(at - first);
}

/* From the mark at the beginning to the next one; the place of the first signal. */
static bool round_of(size_t at, uintptr_t *ip)
{
    size_t next = 0;
    control->wrong = 0;
    control->sent = control->handled = control->strangers = 0;
    if (!advance(at))
        return false;
    *ip = ip_of();
    while (next < listed && ip_of() != control->done) {
        do {
            kill(program, list[next++]);
            control->sent++;
        } while (gap == 0 && next < listed);
        for (int i = 0; i < gap && ip_of() != control->done; i++) {
            if (!make_steps(1))
                return false;
        }
    }
    if (ip_of() != control->done && !go_to(&control->done))
        return false;
    return go_to(&control->begin);
}

/* A step is two changes of context, and waking another processor costs much more. */
static void stay_together(void)
{
    cpu_set_t here;
    CPU_ZERO(&here);
    CPU_SET(sched_getcpu(), &here);
    sched_setaffinity(0, sizeof here, &here);
    sched_setaffinity(program, sizeof here, &here);
}

static int trace(void)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    while (control->pid == 0)
        usleep(1000);
    program = control->pid;
    if (ptrace(PTRACE_SEIZE, program, 0, PTRACE_O_EXITKILL) < 0)
        fail("ptrace");
    find_core();
    stay_together();
    ptrace(PTRACE_INTERRUPT, program, 0, 0);
    waitpid(program, NULL, __WALL);
    control->traced = 1;
    for (int warm = 0; warm < 3; warm++) {
        if (!go_to(&control->begin))
            return 1;
    }
    size_t count = write_down(), wrong = 0, tried = 0, nth = 0;
    choose(count);
    if (!go_to(&control->begin))
        return 1;
    for (size_t i = 0; i < count; i++) {
        uintptr_t ip = 0;
        if (!is_chosen[i] || nth++ % stride != 0)
            continue;
        tried++;
        if (!round_of(i, &ip)) {
            printf("step %zu, %s+%#lx: the end\n", i, in_core(ip) ? "core" : "program",
                   in_core(ip) ? ip - core_start : ip);
            return 1;
        }
        if (control->wrong != 0) {
            wrong++;
            report(i, ip);
        }
    }
    control->end = 1;
    if (!go_to(&control->done))
        return 1;
    ptrace(PTRACE_DETACH, program, 0, 0);
    printf("%zu steps, %zu tried, %zu wrong, core %s\n", count, tried, wrong, core_path);
    return wrong != 0;
}

static int number_of(const char *name)
{
    static const struct {
        const char *name;
        int number;
    } names[] = {{"SEGV", SIGSEGV}, {"BUS", SIGBUS}, {"USR1", SIGUSR1}, {"SYS", SIGSYS}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(names[i].name, name) == 0)
            return names[i].number;
    }
    fprintf(stderr, "no such signal: %s\n", name);
    exit(2);
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    control = map_control(argv[2]);
    if (strcmp(argv[1], "trace") == 0 && argc >= 4) {
        for (char *name = strtok(argv[3], ","); name != NULL && listed < 4;
             name = strtok(NULL, ","))
            list[listed++] = number_of(name);
        stride = argc > 4 ? atoi(argv[4]) : 1;
        gap = argc > 5 ? atoi(argv[5]) : 0;
        return trace();
    }
    const char *name = argv[1];
    has_base = strncmp(name, "gs:", 3) == 0;
    if (has_base && syscall(SYS_arch_prctl, ARCH_SET_GS, &based) != 0)
        fail("ARCH_SET_GS");
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        if (strcmp(calls[i].name, has_base ? name + 3 : name) == 0)
            return work(calls[i].call);
    }
    return 2;
}
