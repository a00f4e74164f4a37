/*
 * returns.c - a handler that blocks every signal and returns has blocked none for longer: faults
 * and signals that come then are handled. Nothing but the return says so: no call changes the mask.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static char *page;
static volatile sig_atomic_t faults;

static void block(int signal)
{
    unsigned long all = ~0ul;
    (void)signal;
    syscall(SYS_rt_sigprocmask, SIG_BLOCK, &all, NULL, sizeof all);
}

static void allow(int signal)
{
    (void)signal;
    faults++;
    mprotect(page, 4096, PROT_READ | PROT_WRITE);
}

static void be_blocked(void)
{
    syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), SIGUSR1);
}

static int executed(void)
{
    unsigned long mask = 0;
    syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, &mask, sizeof mask);
    printf("executed with %lx blocked\n", mask);
    return 0;
}

int main(int count, char **words)
{
    if (count > 1)
        return executed();
    page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    signal(SIGUSR1, block);
    signal(SIGSEGV, allow);
    for (int i = 1; i <= 3; i++) {
        be_blocked();
        page[i] = 1;
        mprotect(page, 4096, PROT_READ);
        printf("handled %d\n", (int)faults);
        fflush(stdout);
    }
    be_blocked();
    execl(words[0], words[0], "executed", (char *)NULL);
    return 1;
}
