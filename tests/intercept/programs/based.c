/*
 * based.c - threads and processes with bases of their own for %gs: based FILE
 *
 * Some threads set it by arch_prctl(2), some by the instruction (which Linux allows where AT_HWCAP2
 * says so, and who has set one by the call may try anyway), one sets none. All read and write FILE,
 * start children, and are interrupted by handlers that do the same; each looks again and again
 * whether %gs is its own. Prints what must be the same everywhere.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define ARCH_SET_GS 0x1001
#define ARCH_GET_GS 0x1004

#define THREADS     4
#define ROUNDS      400

static const char *path;
static atomic_long wrong, handled;
static atomic_int working;

/* What %gs points to: a number that is the thread's. */
struct box {
    unsigned long number;
    char room[48]; /* writes to where the core's thread would be must not come here */
};

static _Thread_local struct box *own; /* NULL: none is set */

static long base_of(void)
{
    unsigned long base = 1;
    if (syscall(SYS_arch_prctl, ARCH_GET_GS, &base) != 0)
        abort();
    return (long)base;
}

static void set_by_instruction(const struct box *box)
{
    __asm__ volatile("wrgsbase %0" : : "r"(box) : "memory");
}

static void expect(int good, const char *what)
{
    if (!good && atomic_fetch_add(&wrong, 1) < 10)
        printf("wrong: %s (errno %d)\n", what, errno);
}

static void look(const char *where)
{
    static const char clean[sizeof own->room];
    unsigned long found;
    if (own == NULL)
        return;
    __asm__ volatile("movq %%gs:0, %0" : "=r"(found));
    expect(found == own->number, where);
    expect(memcmp(own->room, clean, sizeof clean) == 0, "what is behind it");
}

static void use_file(void)
{
    char text[8];
    struct stat status;
    int fd = open(path, O_RDWR | O_CLOEXEC);
    expect(fd >= 0, "open");
    look("behind open");
    expect(pread(fd, text, sizeof text, 0) == (ssize_t)sizeof text, "pread");
    look("behind pread");
    expect(pwrite(fd, "0123456789", 10, 0) == 10, "pwrite");
    expect(fstat(fd, &status) == 0 && status.st_size == 10, "fstat");
    expect(stat("/", &status) == 0 && getppid() > 0, "calls of the kernel's");
    look("behind fstat");
    expect(close(fd) == 0, "close");
    look("behind close");
}

static void on_signal(int signal)
{
    int error = errno;
    (void)signal;
    look("in a handler");
    use_file();
    atomic_fetch_add(&handled, 1);
    errno = error;
}

static void on_fault(int signal, siginfo_t *info, void *context)
{
    (void)signal;
    (void)info;
    look("in a handler of a fault");
    ((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP] += 2;
}

static void start_children(void)
{
    int status = -1;
    pid_t child = fork();
    if (child == 0) {
        look("in a child");
        use_file();
        _exit(wrong != 0);
    }
    expect(waitpid(child, &status, 0) == child && status == 0, "fork");
    char *argv[] = {(char *)"true", NULL};
    expect(posix_spawnp(&child, "true", NULL, NULL, argv, argv + 1) == 0, "spawn");
    look("behind spawn");
    expect(waitpid(child, &status, 0) == child && status == 0, "the spawned one");
}

static void *work(void *argument)
{
    static struct box boxes[THREADS][2];
    long index = (long)argument;
    for (int i = 0; i < 2; i++)
        boxes[index][i].number = (unsigned long)(100 + 10 * index + i);
    use_file();
    if (index != 0) {
        expect(syscall(SYS_arch_prctl, ARCH_SET_GS, &boxes[index][0]) == 0, "ARCH_SET_GS");
        own = &boxes[index][0];
    }
    for (int i = 0; i < ROUNDS; i++) {
        sigset_t all, before;
        use_file();
        if (index >= 2) { /* as who calls functions of two libraries by turns */
            sigfillset(&all);
            pthread_sigmask(SIG_BLOCK, &all, &before);
            own = &boxes[index][i % 2];
            set_by_instruction(own);
            pthread_sigmask(SIG_SETMASK, &before, NULL);
        }
        expect(base_of() == (long)own, "ARCH_GET_GS");
        if (i % 50 == 0)
            start_children();
        if (i % 20 == 0) /* movb (%rax), %al */
            __asm__ volatile("xorl %%eax, %%eax\n\tmovb (%%rax), %%al" : : : "rax", "memory");
    }
    atomic_fetch_sub(&working, 1);
    return NULL;
}

static void *born_later(void *argument)
{
    own = argument;
    look("in a thread that inherits it");
    return NULL;
}

int main(int argc, char **argv)
{
    static struct box box = {.number = 99};
    pthread_t threads[THREADS], late;
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    struct sigaction fault = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
    path = argc > 1 ? argv[1] : "file";
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (fd < 0 || write(fd, "0123456789", 10) != 10)
        return 2;
    close(fd);
    printf("at first: %ld\n", base_of());
    long refused = syscall(SYS_arch_prctl, ARCH_SET_GS, 1ul << 63);
    printf("no address: %ld, errno %d\n", refused, errno);
    sigaction(SIGALRM, &action, NULL);
    sigaction(SIGUSR1, &action, NULL);
    sigaction(SIGSEGV, &fault, NULL);
    atomic_store(&working, THREADS);
    for (long i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, work, (void *)i);
    struct itimerval often = {{0, 700}, {0, 700}}, never = {{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &often, NULL);
    while (atomic_load(&working) == THREADS) {
        for (int i = 0; i < THREADS; i++)
            pthread_kill(threads[i], SIGUSR1);
        usleep(500);
    }
    setitimer(ITIMER_REAL, &never, NULL);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    printf("set: %ld\n", syscall(SYS_arch_prctl, ARCH_SET_GS, &box));
    own = &box;
    pthread_create(&late, NULL, born_later, &box);
    pthread_join(late, NULL);
    look("in the end");
    printf("handled %s, wrong %ld\n", atomic_load(&handled) > 0 ? "some" : "none",
           atomic_load(&wrong));
    return wrong != 0;
}
