/*
 * calls_epoll.c - epoll(7) of files in mounts, among others.
 *
 * A placeholder is no file that the kernel would watch. So in its place the epoll instance gets an
 * eventfd(2) of the mount server, the file's bell (ledger/bells.h), which nobody has but the
 * server: it goes from the instance when the server closes it. What it is for, the server knows
 * (ledger/epolls.h). So instances can be inherited and sent, and used by any program of the run.
 *
 * What the kernel is told as the data of a bell is its token, with TOKEN above it. Events that come
 * back with that are asked for by the token, and told as the program wants them, or not at all.
 *
 * In each instance with bells is also the socket by which the run's processes join, at which the
 * kernel tells the end of the server. Its data is MARK, and below it the number that we know the
 * instance by: /proc shows it.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>

#include "channel/join.h"
#include "client/number.h"
#include "intercept/brief.h"
#include "syscalls/ready.h"

#define TOKEN     0xdfe90002u /* no address and no small number begins so */
#define MARK      0xdfe90001u
#define MARK_TEXT "data: dfe90001" /* as /proc shows it, in 16 digits */

#define EXCLUSIVE_OK                                                                               \
    (EPOLLIN | EPOLLOUT | EPOLLRDNORM | EPOLLWRNORM | EPOLLRDBAND | EPOLLWRBAND | EPOLLERR |       \
     EPOLLHUP | EPOLLWAKEUP | EPOLLET | EPOLLEXCLUSIVE)

static uint64_t data_of(uint32_t what, uint64_t number)
{
    return (uint64_t)what << 32 | (uint32_t)number;
}

static uint64_t new_number(const struct dfi_files *files)
{
    return (uint32_t)(atomic_fetch_add(&files->shared->bells, 1) + 1);
}

/* ---- which instance -------------------------------------------------------------------------- */

static long open_info(int epoll)
{
    char path[64] = "/proc/self/fdinfo/";

    *dfi_number_put(path + strlen(path), (unsigned)epoll) = '\0';
    return dfi_brief_open(path, O_RDONLY);
}

/* The number behind the mark in what /proc says, of which `kept` bytes may be its beginning. 0: it
 * is not there. */
static uint64_t find_mark(long file)
{
    char text[1024];
    size_t kept = 0;
    const char *at;
    long got;

    while ((got = dfi_kernel(__NR_read, file, text + kept, sizeof(text) - 1 - kept)) > 0) {
        text[kept + (size_t)got] = '\0';
        at = strstr(text, MARK_TEXT);
        if (at && strlen(at) >= sizeof(MARK_TEXT) - 1 + 8) {
            at += strlen("data: ");
            return (uint32_t)dfi_number_get_hex(&at);
        }
        kept = strlen(text) < 32 ? strlen(text) : 32;
        memmove(text, text + strlen(text) - kept, kept);
    }
    return 0;
}

/* The number of an instance that has one; 0: it has none, or there is no /proc to show it. */
static uint64_t set_of(int epoll)
{
    long file = open_info(epoll);
    uint64_t set = file < 0 ? 0 : find_mark(file);

    dfi_brief_close(file);
    return set;
}

/* The same, or a new one. 0 and *error: EINVAL, it is no such instance, and others of epoll_ctl(2);
 * EPERM, as for a file that cannot be watched: it cannot be told from others. */
static uint64_t mark(struct dfi_files *files, int epoll, long *error)
{
    uint64_t set = new_number(files);
    struct epoll_event event = {.data.u64 = data_of(MARK, set)};

    *error = dfi_kernel(__NR_epoll_ctl, epoll, EPOLL_CTL_ADD, files->entry, &event);
    if (*error == 0)
        return set;
    if (*error != -EEXIST)
        return 0;
    set = set_of(epoll);
    *error = set ? 0 : -EPERM;
    return set;
}

/* ---- epoll_ctl ------------------------------------------------------------------------------- */

struct control {
    struct dfi_files *files;
    int epoll, fd;
    uint64_t handle, set;
    struct epoll_event event;
};

static int tell(struct control *c, int what, uint64_t token)
{
    struct df_trip trip = dfi_trip_of(c->files);
    struct df_message_epoll told = {
        .what = what,
        .fd = c->fd,
        .token = token,
        .set = c->set,
        .events = c->event.events,
        .data = c->event.data.u64,
    };

    return df_trip_epoll(&trip, c->handle, &told);
}

/* The server has the eventfd before the program goes on: what has changed then, it finds. */
static long hang(struct control *c, uint64_t token)
{
    struct epoll_event event = {
        .events = EPOLLIN | (c->event.events & (EPOLLEXCLUSIVE | EPOLLWAKEUP)),
        .data.u64 = data_of(TOKEN, token),
    };
    long bell = dfi_brief(__NR_eventfd2, 0, O_CLOEXEC | O_NONBLOCK), ret = bell;

    if (bell >= 0)
        ret = dfi_kernel(__NR_epoll_ctl, c->epoll, EPOLL_CTL_ADD, bell, &event);
    if (ret == 0)
        ret = df_join_bell(&c->files->link, DF_JOIN_EPOLL, token, (int)bell);
    dfi_brief_close(bell);
    return ret < 0 ? ret : tell(c, DF_EPOLL_HUNG, token);
}

static long add(struct control *c)
{
    uint64_t token = new_number(c->files);
    long ret;

    if (c->event.events & EPOLLEXCLUSIVE && c->event.events & ~(unsigned)EXCLUSIVE_OK)
        return -EINVAL;
    if (!(c->set = mark(c->files, c->epoll, &ret)))
        return ret;
    if ((ret = tell(c, EPOLL_CTL_ADD, token)) < 0)
        return ret;
    if ((ret = hang(c, token)) < 0)
        tell(c, EPOLL_CTL_DEL, token);
    return ret == -EAGAIN ? -ENOMEM : ret;
}

/* Whether it is an instance, the kernel says of a socket that none watches. */
static long change(struct control *c, int what)
{
    struct epoll_event none = {0};
    long ret = dfi_kernel(__NR_epoll_ctl, c->epoll, EPOLL_CTL_MOD, c->files->link.control, &none);

    if (ret != -ENOENT)
        return ret;
    if (what == EPOLL_CTL_MOD && c->event.events & EPOLLEXCLUSIVE)
        return -EINVAL;
    c->set = set_of(c->epoll);
    return c->set ? tell(c, what, 0) : -ENOENT;
}

/* A server that is started again would know nothing of it. */
static bool is_kept(const struct dfi_files *files)
{
    return atomic_load_explicit(&files->link.segment->keeper, memory_order_relaxed) != 0;
}

/* What no file system tells of is a file as on a disk, which the kernel refuses. */
static bool is_watched(struct control *c)
{
    if (!dfi_ready_told(c->files) || c->files->entry < 0 || is_kept(c->files))
        return false;
    c->handle = dfi_ready_file(c->files, c->fd);
    return c->handle && !dfi_is_hidden(dfi_process(), c->epoll);
}

long dfi_do_epoll_ctl(struct dfi_frame *frame)
{
    int what = (int)frame->args[1];
    struct control c = {
        .files = dfi_process()->files,
        .epoll = (int)frame->args[0],
        .fd = (int)frame->args[2],
    };

    if (!is_watched(&c))
        return dfi_pass_fd(frame);
    if (what != EPOLL_CTL_DEL &&
        dfi_copy_from(&c.event, (const void *)frame->args[3], sizeof(c.event)) < 0)
        return -EFAULT;
    if (what == EPOLL_CTL_ADD)
        return dfi_as_told(add(&c));
    return what == EPOLL_CTL_MOD || what == EPOLL_CTL_DEL ? dfi_as_told(change(&c, what)) : -EINVAL;
}

/* ---- epoll_wait --------------------------------------------------------------------------------
 *
 * Made here wherever a file system of the run can tell of its files, whether one is watched or not:
 * another thread, or another program, may add the first while this one waits.
 */

struct waited {
    struct dfi_files *files;
    struct dfi_until until;
    int epoll, room;
    struct epoll_event *program;
    unsigned long mask, masked; /* for the kernel: a signal mask and its size */
    uint64_t ended;             /* the instance, whose server has ended; 0: it has not */
};

/* 1: it is told, perhaps as another; 0: it is not; -EFAULT. */
static long sort(struct waited *w, struct epoll_event *event)
{
    struct df_trip trip = dfi_trip_of(w->files);
    uint32_t what = (uint32_t)(event->data.u64 >> 32), number = (uint32_t)event->data.u64;
    struct df_message_epoll asked = {.what = DF_EPOLL_ASK, .token = number};
    int ret;

    if (what == MARK) {
        w->ended = number;
        return 0;
    }
    if (what != TOKEN || (ret = df_trip_epoll(&trip, 0, &asked)) == -EINVAL)
        return 1;
    if (ret > 0)
        *event = (struct epoll_event){.events = asked.events, .data.u64 = asked.data};
    return ret > 0;
}

/* Of `count` events that the kernel has told, those that the program gets: their number. */
static long sort_all(struct waited *w, long count)
{
    struct epoll_event event;
    long told = 0, ret;

    for (long i = 0; i < count; i++) {
        if (dfi_copy_from(&event, &w->program[i], sizeof(event)) < 0)
            return -EFAULT;
        if ((ret = sort(w, &event)) == 0)
            continue;
        if (dfi_copy_to(&w->program[told++], &event, sizeof(event)) < 0)
            return -EFAULT;
    }
    return told;
}

/* A server that has ended has left in the segment what was watched. Each is told once, as an error;
 * behind the last, the instance is left alone. */
static long tell_end(struct waited *w, long told)
{
    struct df_shared_epoll *shared = df_segment_epolls(w->files->link.segment);
    uint64_t set;

    for (unsigned i = 0; i < DF_EPOLL_COUNT; i++) {
        struct epoll_event event = {.events = EPOLLERR};

        set = w->ended;
        event.data.u64 = atomic_load(&shared[i].data);
        if (atomic_load(&shared[i].set) != set)
            continue;
        if (told == w->room)
            return told;
        if (!atomic_compare_exchange_strong(&shared[i].set, &set, 0))
            continue;
        if (dfi_copy_to(&w->program[told++], &event, sizeof(event)) < 0)
            return -EFAULT;
    }
    dfi_kernel(__NR_epoll_ctl, w->epoll, EPOLL_CTL_DEL, w->files->entry, 0);
    return told;
}

/* By the older call, whose milliseconds are rounded up. */
static long wait_once(const struct waited *w)
{
    struct timespec left;
    int64_t ms = -1;

    if (dfi_ready_left(&w->until, &left)) {
        ms = left.tv_sec * INT64_C(1000) + (left.tv_nsec + 999999) / 1000000;
        ms = ms < INT_MAX ? ms : INT_MAX;
    }
    return dfi_kernel_wait(__NR_epoll_pwait, w->epoll, w->program, w->room, ms, w->mask, w->masked);
}

/* What is not told is silent now, or no more: behind it there may be others, also when the time is
 * over. */
static long run(struct waited *w)
{
    long ret;

    do {
        w->ended = 0;
        if ((ret = wait_once(w)) <= 0)
            return ret;
        ret = sort_all(w, ret);
        if (ret >= 0 && w->ended)
            ret = tell_end(w, ret);
    } while (ret == 0);
    return ret;
}

static long wait_by(struct dfi_frame *frame, struct dfi_until until, bool masked)
{
    struct waited w = {
        .files = dfi_process()->files,
        .until = until,
        .epoll = (int)frame->args[0],
        .program = (struct epoll_event *)frame->args[1],
        .room = (int)frame->args[2],
        .mask = masked ? frame->args[4] : 0,
        .masked = masked ? frame->args[5] : 0,
    };
    long ret = run(&w);

    return ret == -EINTR ? dfi_wait_ended(frame, w.mask) : ret;
}

static struct dfi_until until_ms(unsigned long argument)
{
    struct dfi_until until;
    int ms = (int)argument;

    if (dfi_ready_until(&until, ms / 1000, ms % 1000 * 1000000) < 0)
        until = (struct dfi_until){true, INT64_MAX};
    return until;
}

long dfi_do_epoll_wait(struct dfi_frame *frame)
{
    long ret = dfi_other_fd(frame->args[0]);

    if (ret != DFI_PASS || !dfi_ready_told(dfi_process()->files))
        return ret;
    return wait_by(frame, until_ms(frame->args[3]), false);
}

/* With the signal mask, if it is not ours that is waited for. */
static long wait_as_asked(struct dfi_frame *frame)
{
    long ret = dfi_other_fd(frame->args[0]);

    return ret == DFI_PASS ? dfi_wait_with(frame, 4) : ret;
}

long dfi_do_epoll_pwait(struct dfi_frame *frame)
{
    long ret = wait_as_asked(frame);

    if (ret != DFI_PASS || !dfi_ready_told(dfi_process()->files))
        return ret;
    return wait_by(frame, until_ms(frame->args[3]), true);
}

long dfi_do_epoll_pwait2(struct dfi_frame *frame)
{
    struct dfi_until until = {true, INT64_MAX};
    long ret = wait_as_asked(frame);
    struct timespec given;

    if (ret != DFI_PASS || !dfi_ready_told(dfi_process()->files))
        return ret;
    if (frame->args[3] && (dfi_copy_from(&given, (void *)frame->args[3], sizeof(given)) < 0 ||
                           dfi_ready_until(&until, given.tv_sec, given.tv_nsec) < 0))
        return DFI_PASS; /* the kernel says what is wrong */
    return wait_by(frame, until, true);
}
