/*
 * crash.c - notes the signal of a crash and lets the process end by it.
 */
#include "process/crash.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

static _Atomic(struct df_segment *) watched; /* NULL: nobody is told */
static _Atomic int report_to = -1;

static const int crashes[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGSYS};

/* Signal numbers have at most two digits. */
static void write_report(int fd, int number)
{
    char line[] = "crash 00\n";

    line[6] = (char)('0' + number / 10);
    line[7] = (char)('0' + number % 10);
    if (write(fd, line, sizeof(line) - 1) < 0)
        return; /* nobody is left to hear it */
}

/* Its disposition is the default again: the process ends as soon as the handler has returned, or by
 * the signal that is raised here, for one that was sent. */
static void last_words(int number)
{
    struct df_segment *segment = atomic_load(&watched);
    int fd = atomic_load(&report_to);
    int none = DF_END_NONE;

    if (segment && atomic_compare_exchange_strong(&segment->end, &none, number) && fd >= 0)
        write_report(fd, number);
    raise(number);
}

void df_crash_watch(struct df_segment *segment, int report)
{
    struct sigaction action = {.sa_handler = last_words,
                               .sa_flags = (int)(SA_RESETHAND | SA_NODEFER | SA_ONSTACK)};

    atomic_store(&report_to, report);
    atomic_store(&watched, segment);
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; segment && i < sizeof(crashes) / sizeof(crashes[0]); i++)
        sigaction(crashes[i], &action, NULL);
}

void df_crash_stand_by(void *room, stack_t *before)
{
    const stack_t stack = {.ss_sp = room, .ss_size = DF_CRASH_ROOM};

    sigaltstack(&stack, before); /* without it, only the end by a full stack has no name */
}

void df_crash_stand_down(const stack_t *before)
{
    sigaltstack(before, NULL);
}
