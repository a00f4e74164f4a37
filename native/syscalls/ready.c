/*
 * ready.c - asks file systems whether files are ready; the bell by which they tell.
 */
#include "syscalls/ready.h"

#include <fcntl.h>
#include <poll.h>

#include "channel/join.h"
#include "channel/sys.h"
#include "intercept/brief.h"

#define HIGH 900 /* numbers that programs have no use for, below RLIMIT_NOFILE as it mostly is */
#define NS   INT64_C(1000000000)
#define FOR_EVER INT64_MAX

/* ---- files ----------------------------------------------------------------------------------- */

static bool is_told(const struct df_segment *segment, const struct df_ofd *ofd)
{
    unsigned mount = df_segment_mount_index(segment, ofd->mount);

    return mount < DF_MOUNT_COUNT && atomic_load(&df_segment_mounts(segment)[mount].polls);
}

/* Linux asks no file system about directories, and finds no file in a descriptor of O_PATH. */
static const struct df_ofd *find(const struct dfi_files *files, long fd)
{
    uint64_t entry = dfi_entry_of(files, fd);
    const struct df_ofd *ofd = entry == 0 || entry & DFI_FIFO ? NULL : dfi_ofd(files, entry);

    if (!ofd || ofd->kind != DF_KIND_REGULAR ||
        atomic_load_explicit(&ofd->flags, memory_order_relaxed) & O_PATH)
        return NULL;
    return ofd;
}

uint64_t dfi_ready_file(const struct dfi_files *files, long fd)
{
    const struct df_ofd *ofd = find(files, fd);

    return ofd && is_told(files->link.segment, ofd) ? atomic_load(&ofd->handle) : 0;
}

void dfi_ready_hold(struct dfi_files *files, const uint64_t handles[], unsigned long count)
{
    for (unsigned long i = 0; i < count; i++)
        if (handles[i])
            dfi_fd_hold(files, handles[i]);
}

void dfi_ready_let_go(struct dfi_files *files, const uint64_t handles[], unsigned long count)
{
    for (unsigned long i = 0; i < count; i++)
        if (handles[i])
            dfi_fd_drop(files, handles[i], false);
}

/* What a file system answers with an error is ready, as the next call on it will show. One that has
 * said meanwhile that it cannot tell has the server answer. */
unsigned dfi_ready_ask(struct dfi_waiter *waiter, int fd, unsigned events, bool rings)
{
    struct df_trip trip = dfi_trip_of(waiter->files);
    const struct df_ofd *ofd = find(waiter->files, fd);
    int ready;

    if (!ofd)
        return POLLNVAL;
    events |= POLLERR | POLLHUP;
    ready = df_trip_poll(&trip, atomic_load(&ofd->handle), (int)events, rings ? waiter->token : 0);
    return ready < 0 ? POLLERR : (unsigned)ready & events;
}

/* ---- the bell -------------------------------------------------------------------------------- */

static long make_pipe(int pipe[2])
{
    long ret = dfi_brief_pipe(pipe, O_CLOEXEC | O_NONBLOCK);
    unsigned long limit;

    if (ret != -EMFILE)
        return ret;
    limit = dfi_limit_raise();
    ret = dfi_brief_pipe(pipe, O_CLOEXEC | O_NONBLOCK);
    dfi_limit_restore(limit);
    return ret;
}

/* It may be there for long: at a number that the program does not expect to get. */
static int move_high(int fd)
{
    long high = dfi_brief_if_left(__NR_fcntl, fd, F_DUPFD_CLOEXEC, HIGH);

    if (high < 0)
        return fd;
    dfi_brief_close(fd);
    return (int)high;
}

/* Makes the bell, if there is none, before the first question that wants it. 0 or -errno. */
static long hang(struct dfi_waiter *waiter)
{
    int pipe[2];
    long ret;

    if (waiter->bell >= 0)
        return 0;
    if ((ret = make_pipe(pipe)) < 0)
        return ret;
    waiter->token = atomic_fetch_add(&waiter->files->shared->bells, 1) + 1;
    waiter->bell = move_high(pipe[0]);
    ret = df_join_bell(&waiter->files->link, DF_JOIN_BELL, waiter->token, pipe[1]);
    dfi_brief_close(pipe[1]); /* a server that is gone has broken it */
    return ret == -ENOTCONN ? 0 : ret;
}

void dfi_ready_end(struct dfi_waiter *waiter)
{
    if (waiter->bell >= 0)
        dfi_brief_close(waiter->bell);
    waiter->bell = -1;
}

/* It is broken when the server is gone, which may be started again: who waits on gets a new one. */
void dfi_ready_hear(struct dfi_waiter *waiter)
{
    char rings[64];
    long ret;

    do
        ret = dfi_kernel(__NR_read, waiter->bell, rings, sizeof(rings));
    while (ret == sizeof(rings));
    if (ret == 0)
        dfi_ready_end(waiter);
}

static long ask(struct dfi_waiter *waiter, const struct dfi_ready_ways *ways, bool rings)
{
    long ret = rings ? hang(waiter) : 0;

    return ret < 0 ? ret : ways->ask(waiter, rings);
}

/* As the kernel's do_poll(): all are asked once more when the time is over. A bell is made when it
 * is known to be waited for. */
long dfi_ready_run(struct dfi_waiter *waiter, struct dfi_ready_ways ways)
{
    long others = ways.look(waiter), mine;
    bool over = !waiter->until.waits;

    if (others < 0)
        return others;
    mine = ask(waiter, &ways, false);
    if (others == 0 && mine == 0 && !over)
        mine = ask(waiter, &ways, true);
    while (others == 0 && mine == 0 && !over) {
        if ((others = ways.wait(waiter, &over)) < 0)
            return others;
        mine = ask(waiter, &ways, others == 0 && !over);
    }
    return mine < 0 ? mine : others + mine;
}

bool dfi_ready_masks(unsigned long mask, unsigned long size)
{
    uint64_t word;

    return !mask ||
           (size == sizeof(word) && dfi_copy_from(&word, (const void *)mask, sizeof(word)) == 0);
}

/* ---- time ------------------------------------------------------------------------------------ */

long dfi_ready_until(struct dfi_until *until, int64_t seconds, int64_t nanoseconds)
{
    int64_t now = df_sys_now();

    if (seconds < 0 || nanoseconds < 0 || nanoseconds >= NS)
        return -EINVAL;
    until->waits = seconds > 0 || nanoseconds > 0;
    until->at = seconds > (FOR_EVER - now) / NS - 1 ? FOR_EVER : now + seconds * NS + nanoseconds;
    return 0;
}

struct timespec *dfi_ready_left(const struct dfi_until *until, struct timespec *left)
{
    int64_t ns = until->waits ? until->at - df_sys_now() : 0;

    if (until->waits && until->at == FOR_EVER)
        return NULL;
    *left = ns > 0 ? (struct timespec){ns / NS, ns % NS} : (struct timespec){0, 0};
    return left;
}
