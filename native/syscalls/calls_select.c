/*
 * calls_select.c - select(2) and pselect6(2) of files in mounts, among others.
 */
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <sys/select.h>

#include "client/number.h"
#include "intercept/brief.h"
#include "syscalls/ready.h"

#define BITS      64            /* of a word */
#define SIZE_TEXT "\nFDSize:\t" /* in /proc/<pid>/status */

struct selected {
    struct dfi_waiter waiter;  /* the first member */
    int count;                 /* of descriptors that the program asks for */
    unsigned long words, room; /* of its sets; of those for the kernel, which has the bell, too */
    unsigned long *program[3]; /* for reading, for writing, exceptions; NULL: none */
    unsigned long *given[3];   /* copies */
    unsigned long *asked[3];   /* for the kernel, and its answer */
    uint64_t *files;           /* by descriptor: handle of a file of a mount; 0: another */
    unsigned limit;            /* of these */
    unsigned long *ready[3];   /* the answer for files of mounts */
    unsigned long pair;        /* for the kernel: pselect6's last argument */
};

static const unsigned events_of[3] = {
    POLLRDNORM | POLLRDBAND | POLLIN | POLLHUP | POLLERR | POLLNVAL,
    POLLWRBAND | POLLWRNORM | POLLOUT | POLLERR | POLLNVAL,
    POLLPRI | POLLNVAL,
};

/* ---- sets ------------------------------------------------------------------------------------ */

static bool has(const unsigned long *set, unsigned fd)
{
    return set[fd / BITS] >> fd % BITS & 1;
}

static void add(unsigned long *set, unsigned fd)
{
    set[fd / BITS] |= 1UL << fd % BITS;
}

static bool wanted(const struct selected *s, unsigned fd)
{
    return has(s->given[0], fd) || has(s->given[1], fd) || has(s->given[2], fd);
}

/* The next descriptor of a mount from fd on; the limit: there is none. */
static unsigned next_file(const struct selected *s, unsigned fd)
{
    while (fd < s->limit && !s->files[fd])
        fd++;
    return fd;
}

/* Whether there are any. */
static bool sort(struct selected *s)
{
    unsigned top = (unsigned)atomic_load_explicit(&s->waiter.files->top, memory_order_acquire);
    bool any = false;

    s->limit = top < (unsigned)s->count ? top : (unsigned)s->count;
    if (s->limit == 0 || !(s->files = dfi_alloc(s->limit * sizeof(*s->files))))
        return false;
    for (unsigned fd = 0; fd < s->limit; fd++) {
        s->files[fd] = wanted(s, fd) ? dfi_ready_file(s->waiter.files, fd) : 0;
        any = any || s->files[fd];
    }
    return any;
}

/* Room for a descriptor of that number among those that the kernel is asked for. */
static bool make_room(struct selected *s, unsigned fd)
{
    unsigned long words = fd / BITS + 1, *memory;

    if (words <= s->room)
        return true;
    if (!(memory = dfi_alloc(3 * words * sizeof(*memory))))
        return false;
    dfi_free(s->asked[0]);
    for (unsigned i = 0; i < 3; i++)
        s->asked[i] = memory + i * words;
    s->room = words;
    return true;
}

/* Without what lies in the last word behind those asked for. */
static bool copy_set(struct selected *s, unsigned i)
{
    unsigned behind = (unsigned)(s->words * BITS - (unsigned long)s->count);

    if (s->program[i] &&
        dfi_copy_from(s->given[i], s->program[i], s->words * sizeof(unsigned long)) < 0)
        return false;
    s->given[i][s->words - 1] &= ~0UL >> behind;
    return true;
}

/* For how many descriptors the process has room by now, as /proc says. INT_MAX: it does not. */
static int room_for_files(void)
{
    char text[512] = ""; /* lines before that of the groups, which may be many */
    long file = dfi_brief_open("/proc/thread-self/status", O_RDONLY);
    const char *at;

    if (file >= 0)
        dfi_kernel(__NR_read, file, text, sizeof(text) - 1);
    dfi_brief_close(file);
    if (!(at = strstr(text, SIZE_TEXT)))
        return INT_MAX;
    at += sizeof(SIZE_TEXT) - 1;
    return (int)dfi_number_get(&at);
}

/* Whoever asks for all that getdtablesize(3) says may have smaller sets. Linux looks at no more of
 * them than there is room for descriptors. */
static int count_kept(int count)
{
    int room = count > FD_SETSIZE ? room_for_files() : count;

    return count < room ? count : room;
}

/* False: the kernel's, which may have something to say. */
static bool take(struct selected *s)
{
    unsigned long *memory;

    s->count = count_kept(s->count);
    if (s->count <= 0 || s->count > DFI_FD_MAX)
        return false;
    s->words = ((unsigned long)s->count + BITS - 1) / BITS;
    if (!(memory = dfi_alloc(6 * s->words * sizeof(*memory))))
        return false;
    for (unsigned i = 0; i < 3; i++) {
        s->given[i] = memory + i * s->words;
        s->ready[i] = memory + (3 + i) * s->words;
    }
    return copy_set(s, 0) && copy_set(s, 1) && copy_set(s, 2) &&
           make_room(s, (unsigned)s->count - 1);
}

/* ---- asking ---------------------------------------------------------------------------------- */

static unsigned ask(struct selected *s, unsigned fd, bool rings)
{
    unsigned events = POLLPRI, ready = 0, found;

    for (unsigned i = 0; i < 2; i++)
        if (has(s->given[i], fd))
            events |= events_of[i];
    found = dfi_ready_ask(&s->waiter, (int)fd, events, rings);
    for (unsigned i = 0; i < 3; i++)
        if (has(s->given[i], fd) && found & events_of[i]) {
            add(s->ready[i], fd);
            ready++;
        }
    return ready;
}

static long ask_mounts(struct dfi_waiter *waiter, bool rings)
{
    struct selected *s = (struct selected *)waiter;
    long ready = 0;

    if (rings && !make_room(s, (unsigned)s->waiter.bell))
        return -ENOMEM;
    for (unsigned fd = 0; (fd = next_file(s, fd)) < s->limit; fd++)
        ready += ask(s, fd, rings && ready == 0);
    return ready;
}

/* Of what the program has given, without files of mounts. */
static void put_asked(struct selected *s)
{
    memset(s->asked[0], 0, 3 * s->room * sizeof(unsigned long));
    for (unsigned i = 0; i < 3; i++)
        memcpy(s->asked[i], s->given[i], s->words * sizeof(unsigned long));
    for (unsigned fd = 0; (fd = next_file(s, fd)) < s->limit; fd++)
        for (unsigned i = 0; i < 3; i++)
            s->asked[i][fd / BITS] &= ~(1UL << fd % BITS);
}

static long look_at_others(struct dfi_waiter *waiter)
{
    struct selected *s = (struct selected *)waiter;
    struct timespec none = {0, 0};

    put_asked(s);
    return dfi_kernel(__NR_pselect6, s->count, s->asked[0], s->asked[1], s->asked[2], &none, 0);
}

static long wait_for_others(struct dfi_waiter *waiter, bool *over)
{
    struct selected *s = (struct selected *)waiter;
    unsigned bell = (unsigned)s->waiter.bell;
    unsigned count = (unsigned)s->count > bell ? (unsigned)s->count : bell + 1;
    struct timespec left;
    long ret;

    put_asked(s);
    add(s->asked[0], bell);
    ret = dfi_kernel_wait(__NR_pselect6, count, s->asked[0], s->asked[1], s->asked[2],
                          dfi_ready_left(&s->waiter.until, &left), s->pair);
    *over = ret == 0;
    if (ret > 0 && has(s->asked[0], bell)) {
        s->asked[0][bell / BITS] &= ~(1UL << bell % BITS);
        dfi_ready_hear(&s->waiter);
        ret--;
    }
    return ret;
}

static long run(struct selected *s)
{
    return dfi_ready_run(&s->waiter,
                         (struct dfi_ready_ways){look_at_others, ask_mounts, wait_for_others});
}

/* ---- the answer ------------------------------------------------------------------------------ */

/* What the kernel was not asked for, a time that was over, has no answer of its. */
static long tell(struct selected *s, long ret)
{
    for (unsigned i = 0; i < 3 && ret >= 0; i++) {
        for (unsigned long word = 0; word < s->words; word++)
            s->ready[i][word] |= s->asked[i][word];
        if (s->program[i] &&
            dfi_copy_to(s->program[i], s->ready[i], s->words * sizeof(unsigned long)) < 0)
            return -EFAULT;
    }
    return ret;
}

/* DFI_PASS: there is none of ours. */
static long select_by(struct dfi_frame *frame, struct selected *s)
{
    long ret = DFI_PASS;

    s->count = (int)frame->args[0];
    s->waiter.bell = -1;
    for (unsigned i = 0; i < 3; i++)
        s->program[i] = (unsigned long *)frame->args[1 + i];
    if (take(s) && sort(s)) {
        dfi_ready_hold(s->waiter.files, s->files, s->limit);
        ret = tell(s, run(s));
        dfi_ready_let_go(s->waiter.files, s->files, s->limit);
        dfi_ready_end(&s->waiter);
    }
    dfi_free(s->files);
    dfi_free(s->given[0]);
    dfi_free(s->asked[0]);
    return ret;
}

/* What is left of the time is told if it can be. */
static void tell_left(const struct selected *s, unsigned long program, bool micro)
{
    struct timespec left;

    if (!program || !s->waiter.until.waits || !dfi_ready_left(&s->waiter.until, &left))
        return;
    if (micro)
        left.tv_nsec /= 1000;
    if (dfi_copy_to((void *)program, &left, sizeof(left)) < 0)
        return;
}

/* micro: the time is a struct timeval, whose microseconds may be more than a second. */
static long select_told(struct dfi_frame *frame, struct selected *s, bool micro)
{
    struct timespec given;
    long ret;

    s->waiter.until = (struct dfi_until){true, INT64_MAX};
    if (frame->args[4]) {
        if (dfi_copy_from(&given, (void *)frame->args[4], sizeof(given)) < 0)
            return DFI_PASS; /* the kernel says what is wrong */
        if (micro)
            given = (struct timespec){given.tv_sec + given.tv_nsec / 1000000,
                                      given.tv_nsec % 1000000 * 1000};
        if (dfi_ready_until(&s->waiter.until, given.tv_sec, given.tv_nsec) < 0)
            return DFI_PASS;
    }
    ret = select_by(frame, s);
    if (ret != DFI_PASS)
        tell_left(s, frame->args[4], micro);
    return ret;
}

static bool is_in(const unsigned long *program, int fd)
{
    unsigned long word;

    return program && dfi_copy_from(&word, program + fd / BITS, sizeof(word)) == 0 &&
           word >> fd % BITS & 1;
}

/* -EBADF if a descriptor of ours is in some set. */
static long check(const struct dfi_frame *frame)
{
    const struct dfi_process *process = dfi_process();

    if ((int)frame->args[0] <= process->hidden_from)
        return DFI_PASS;
    for (int i = 0; i < process->hidden_count; i++)
        for (int set = 1; set <= 3; set++)
            if (process->hidden[i] < (int)frame->args[0] &&
                is_in((const unsigned long *)frame->args[set], process->hidden[i]))
                return -EBADF;
    return DFI_PASS;
}

long dfi_do_select(struct dfi_frame *frame)
{
    struct selected s = {.waiter.files = dfi_process()->files};
    long ret = check(frame);

    return ret != DFI_PASS || !dfi_ready_told(s.waiter.files) ? ret : select_told(frame, &s, true);
}

/* The kernel takes the mask of a pair (pointer, size). */
static bool masks(unsigned long program)
{
    unsigned long pair[2];

    return !program || (dfi_copy_from(pair, (const void *)program, sizeof(pair)) == 0 &&
                        dfi_ready_masks(pair[0], pair[1]));
}

long dfi_do_pselect6(struct dfi_frame *frame)
{
    struct selected s = {.waiter.files = dfi_process()->files};
    long ret = check(frame);
    unsigned long mask = 0;

    if (ret == DFI_PASS)
        ret = dfi_wait_with_pair(frame, 5);
    if (ret != DFI_PASS || !dfi_ready_told(s.waiter.files))
        return ret;
    s.pair = frame->args[5];
    if (!masks(s.pair))
        return DFI_PASS;
    ret = select_told(frame, &s, false);
    if (ret != -EINTR)
        return ret;
    if (s.pair && dfi_copy_from(&mask, (void *)s.pair, sizeof(mask)) < 0)
        mask = 0;
    return dfi_wait_ended(frame, mask);
}
