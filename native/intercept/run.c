/*
 * run.c - the memory that all processes of a run share: events, counters, the log.
 */
#include "intercept/run.h"

#include "intercept/mem.h"
#include "intercept/text.h"

#include <asm/stat.h>

#define PROT_RW       3 /* PROT_READ | PROT_WRITE */
#define MAP_SHARED    1
#define MADV_DONTDUMP 16

struct dfi_run *dfi_run DFI_HOT;
int dfi_run_fd = -1;
int dfi_run_socket = -1;

/* A thread before it has counters, or beyond the number of slots. */
static struct dfi_counts nobodys;

/* With the spare behind it, where no file is. */
static size_t mapped_size(size_t size)
{
    return ((size + DFI_PAGE - 1) & -DFI_PAGE) + DFI_RUN_SPARE;
}

static void *map(int fd, size_t size)
{
    long at = dfi_kernel(__NR_mmap, 0, size, PROT_RW, MAP_SHARED, fd, 0);
    if (at < 0 && at > -4096)
        return NULL;
    dfi_kernel(__NR_madvise, at, size, MADV_DONTDUMP); /* core files are about the program */
    return (void *)at;
}

int dfi_run_open(int fd)
{
    struct stat st;
    long result = dfi_kernel(__NR_fstat, fd, &st);
    if (result < 0)
        return (int)result;
    if (st.st_size < (long)sizeof(struct dfi_run))
        return -EINVAL;
    struct dfi_run *run = map(fd, mapped_size((size_t)st.st_size));
    if (run == NULL)
        return -ENOMEM;
    bool same = memcmp(run->build, df_build, DF_BUILD_SIZE) == 0;
    if (run->magic != DFI_RUN_MAGIC || !same || run->size != (unsigned long)st.st_size) {
        dfi_kernel(__NR_munmap, run, mapped_size((size_t)st.st_size));
        return -EPROTO;
    }
    dfi_run = run;
    dfi_run_fd = fd;
    return 0;
}

uintptr_t dfi_run_memory(unsigned long *size)
{
    *size = mapped_size(dfi_run->size);
    return (uintptr_t)dfi_run;
}

uintptr_t dfi_run_spare(void)
{
    return (uintptr_t)dfi_run + mapped_size(dfi_run->size) - DFI_RUN_SPARE;
}

int dfi_run_server_fd(void)
{
    const char *config = (const char *)dfi_run + dfi_run->config_offset, *key = "server=";
    if (dfi_run->config_size == 0 || !dfi_text_begins(config, key)) /* it is the first line */
        return -1;
    config += strlen(key);
    return (int)dfi_text_number(&config);
}

void dfi_run_filtered(void)
{
    __atomic_and_fetch(&dfi_run->flags, ~(unsigned long)DFI_RUN_OPENAT2, __ATOMIC_SEQ_CST);
}

static struct dfi_counts *slots(void)
{
    return (struct dfi_counts *)((char *)dfi_run + dfi_run->slots_offset);
}

/* Whether the owner of a slot still lives; threads that were killed do not give theirs back. */
static bool is_left(int owner)
{
    return owner != 0 && dfi_kernel(__NR_tkill, owner, 0) == -ESRCH;
}

static bool change_owner(unsigned slot, int owner, int next)
{
    return __atomic_compare_exchange_n(&dfi_run->owners[slot], &owner, next, false,
                                       __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

/* The first slot that is free (its memory has been used), or whose owner was killed. */
static unsigned take(int tid)
{
    const unsigned shared = DFI_RUN_SLOTS - 1;
    for (unsigned at = 0; at < shared; at++) {
        if (dfi_run->owners[at] == 0 && change_owner(at, 0, tid))
            return at;
    }
    for (unsigned at = 0; at < shared; at++) {
        int owner = dfi_run->owners[at];
        if (is_left(owner) && change_owner(at, owner, tid))
            return at;
    }
    return shared; /* may lose counts, which beats stopping the program */
}

void dfi_counts_take(struct dfi_thread *thread)
{
    thread->counts = dfi_run == NULL ? &nobodys : slots() + take(thread->tid);
}

void dfi_counts_take_again(struct dfi_thread *thread)
{
    for (unsigned at = 0; dfi_run != NULL && at < DFI_RUN_SLOTS - 1; at++)
        if (dfi_run->owners[at] == thread->tid) {
            thread->counts = slots() + at;
            return;
        }
    dfi_counts_take(thread);
}

void dfi_counts_give(struct dfi_thread *thread)
{
    const struct dfi_counts *counts = thread->counts;
    thread->counts = &nobodys;
    if (counts != NULL && counts != &nobodys)
        change_owner((unsigned)(counts - slots()), thread->tid, 0);
}

void dfi_counts_leave(struct dfi_thread *thread)
{
    if (thread->tid == thread->process->pid)
        thread->counts = &nobodys;
    else
        dfi_counts_give(thread); /* the first one's is there still */
}

void dfi_count_more(enum dfi_event event, unsigned long count)
{
    if (dfi_run != NULL)
        __atomic_fetch_add(&dfi_run->events[event], count, __ATOMIC_RELAXED);
}

void dfi_count(enum dfi_event event)
{
    dfi_count_more(event, 1);
}

void dfi_note(const char *text)
{
    if (!dfi_run_has(DFI_RUN_VERBOSE))
        return;
    size_t size = strlen(text);
    size_t at = __atomic_fetch_add(&dfi_run->log_used, size + 1, __ATOMIC_RELAXED);
    if (at + size + 1 > dfi_run->log_size)
        return;
    char *line = (char *)dfi_run + dfi_run->log_offset + at;
    memcpy(line, text, size);
    line[size] = '\n';
}
