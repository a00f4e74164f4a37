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

int main(void)
{
    page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    signal(SIGUSR1, block);
    signal(SIGSEGV, allow);
    for (int i = 1; i <= 3; i++) {
        syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), SIGUSR1);
        page[i] = 1;
        mprotect(page, 4096, PROT_READ);
        printf("handled %d\n", (int)faults);
        fflush(stdout);
    }
    return 0;
}
