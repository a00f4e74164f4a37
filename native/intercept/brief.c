/*
 * brief.c - the numbers of descriptors that the core has for less than a call.
 *
 * Who makes or closes one counts itself in `word`; who must not meet a change sets ALONE there and
 * waits until nobody is left inside. That may take as long as open(2) looks for a path on a slow
 * disk, which nobody else is to wait for: after PATIENCE it is done without.
 */
#include "intercept/brief.h"

#include <linux/fcntl.h>

#define FUTEX_WAIT 0
#define FUTEX_WAKE 1

#define ALONE      (1u << 31)
#define WAITED     (1u << 30) /* somebody sleeps until ALONE is gone */
#define INSIDE     (WAITED - 1)

#define PATIENCE   100000000 /* ns: for those inside */

#define SHORTEST   50000   /* ns: between two looks at a number that is noted */
#define LONGEST    5000000 /* ns */
#define LOOKS      1000    /* about five seconds: as much as a slow file system needs for a read */

#define NUMBERS    (1u << 20) /* higher ones are not noted; the kernel gives none by itself */
#define WORDS      (NUMBERS / 64)

/* Of a process that has had more than one thread. Zero pages, of which one is touched. */
struct dfi_brief {
    struct dfi_lock alone; /* of who has set ALONE */
    unsigned word;
    unsigned top;          /* no number from here on is noted; never sinks */
    uint64_t noted[WORDS]; /* bits, changed by those inside */
};

static struct dfi_brief *mine(void)
{
    return dfi_process()->brief;
}

/* ---- inside, alone --------------------------------------------------------------------------- */

/* patience: NULL: for ever. */
static long wait_while(struct dfi_brief *brief, unsigned seen, const long *patience)
{
    return dfi_kernel(__NR_futex, &brief->word, FUTEX_WAIT, seen, patience);
}

static void wake_all(struct dfi_brief *brief)
{
    dfi_kernel(__NR_futex, &brief->word, FUTEX_WAKE, INT_MAX);
}

static void enter(struct dfi_brief *brief)
{
    unsigned seen = __atomic_load_n(&brief->word, __ATOMIC_RELAXED);
    for (;;) {
        unsigned wanted = (seen & ALONE) != 0 ? seen | WAITED : seen + 1;
        if (seen != wanted && !__atomic_compare_exchange_n(&brief->word, &seen, wanted, true,
                                                           __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            continue;
        if ((wanted & ALONE) == 0)
            return;
        wait_while(brief, wanted, NULL);
        seen = __atomic_load_n(&brief->word, __ATOMIC_RELAXED);
    }
}

static void leave(struct dfi_brief *brief)
{
    unsigned left = __atomic_sub_fetch(&brief->word, 1, __ATOMIC_RELEASE);
    if ((left & ALONE) != 0 && (left & INSIDE) == 0)
        wake_all(brief);
}

static void be_alone(struct dfi_brief *brief)
{
    static const long patience[2] = {0, PATIENCE};
    dfi_lock(&brief->alone);
    unsigned seen = __atomic_or_fetch(&brief->word, ALONE, __ATOMIC_ACQUIRE);
    for (long result = 0; (seen & INSIDE) != 0 && result != -ETIMEDOUT;) {
        result = wait_while(brief, seen, patience);
        seen = __atomic_load_n(&brief->word, __ATOMIC_ACQUIRE);
    }
}

static void let_in(struct dfi_brief *brief)
{
    unsigned before = __atomic_fetch_and(&brief->word, ~(ALONE | WAITED), __ATOMIC_RELEASE);
    if ((before & WAITED) != 0)
        wake_all(brief);
    dfi_unlock(&brief->alone);
}

/* ---- numbers --------------------------------------------------------------------------------- */

static void note(struct dfi_brief *brief, long fd)
{
    if (fd < 0 || fd >= NUMBERS)
        return;
    __atomic_fetch_or(&brief->noted[fd / 64], UINT64_C(1) << fd % 64, __ATOMIC_RELAXED);
    unsigned top = __atomic_load_n(&brief->top, __ATOMIC_RELAXED);
    while (top <= fd && !__atomic_compare_exchange_n(&brief->top, &top, (unsigned)fd + 1, true,
                                                     __ATOMIC_RELEASE, __ATOMIC_RELAXED))
        ;
}

static void forget(struct dfi_brief *brief, long fd)
{
    if (fd < NUMBERS)
        __atomic_fetch_and(&brief->noted[fd / 64], ~(UINT64_C(1) << fd % 64), __ATOMIC_RELAXED);
}

static bool is_noted(const struct dfi_brief *brief, unsigned fd)
{
    return fd < NUMBERS &&
           (__atomic_load_n(&brief->noted[fd / 64], __ATOMIC_RELAXED) >> fd % 64 & 1) != 0;
}

static unsigned next(const struct dfi_brief *brief, unsigned first, unsigned last)
{
    unsigned top = __atomic_load_n(&brief->top, __ATOMIC_ACQUIRE);
    for (unsigned fd = first; fd < top && fd <= last; fd++) {
        if (is_noted(brief, fd))
            return fd;
    }
    return UINT_MAX;
}

/* ---- for the core ---------------------------------------------------------------------------- */

void dfi_brief_enter(void)
{
    struct dfi_brief *brief = mine();
    if (brief != NULL)
        enter(brief);
}

long dfi_brief_leave(long fd)
{
    struct dfi_brief *brief = mine();
    if (brief == NULL)
        return fd;
    note(brief, fd);
    leave(brief);
    return fd;
}

long dfi_brief_pipe(int pipe[2], int flags)
{
    dfi_brief_enter();
    long result = dfi_kernel(__NR_pipe2, pipe, flags);
    if (result == 0 && mine() != NULL)
        note(mine(), pipe[0]);
    return dfi_brief_leave(result < 0 ? result : pipe[1]) < 0 ? result : 0;
}

long dfi_brief6(long nr, unsigned long a, unsigned long b, unsigned long c, unsigned long d,
                unsigned long e, unsigned long f)
{
    long fd = dfi_brief_if_left(nr, a, b, c, d, e, f);
    if (fd != -EMFILE)
        return fd;
    unsigned long limit = dfi_limit_raise();
    fd = dfi_brief_if_left(nr, a, b, c, d, e, f);
    dfi_limit_restore(limit);
    return fd;
}

long dfi_brief_open(const char *path, int flags)
{
    return dfi_brief(__NR_open, path, flags | O_CLOEXEC, 0666);
}

void dfi_brief_close(long fd)
{
    struct dfi_brief *brief = mine();
    if (fd < 0)
        return;
    if (brief != NULL) {
        enter(brief);
        forget(brief, fd); /* first: another thread may be given the number at once, and note it */
    }
    dfi_kernel(__NR_close, fd);
    if (brief != NULL)
        leave(brief);
}

/* ---- for the program's calls ----------------------------------------------------------------- */

/* dfi_brief_claim(), without a wait: -EBUSY. */
static long try_claim(struct dfi_brief *brief, int fd)
{
    be_alone(brief);
    bool ours = is_noted(brief, (unsigned)fd);
    if (!ours && dfi_kernel(__NR_fcntl, fd, F_GETFD) < 0)
        return 1;
    let_in(brief);
    return ours ? -EBUSY : 0;
}

long dfi_brief_claim(int fd)
{
    struct dfi_brief *brief = mine();
    long pause[2] = {0, SHORTEST};
    long result = brief == NULL ? 0 : try_claim(brief, fd);
    for (unsigned look = 1; result == -EBUSY && look < LOOKS; look++) {
        if (dfi_kernel_wait(__NR_nanosleep, pause, NULL) == -EINTR)
            return -EINTR;
        if (pause[1] < LONGEST)
            pause[1] *= 2;
        result = try_claim(brief, fd);
    }
    return result;
}

void dfi_brief_release(void)
{
    let_in(mine());
}

/* One that is just being closed may be the program's already. */
bool dfi_brief_is(int fd)
{
    struct dfi_brief *brief = mine();
    if (brief == NULL || !is_noted(brief, (unsigned)fd))
        return false;
    be_alone(brief);
    bool is = is_noted(brief, (unsigned)fd);
    let_in(brief);
    return is;
}

unsigned dfi_brief_next(unsigned first, unsigned last)
{
    struct dfi_brief *brief = mine();
    return brief == NULL ? UINT_MAX : next(brief, first, last);
}

/* ---- threads, fork --------------------------------------------------------------------------- */

bool dfi_brief_begin(struct dfi_process *process)
{
    if (process->brief == NULL)
        process->brief = dfi_alloc(sizeof *process->brief);
    return process->brief != NULL;
}

void dfi_brief_fork_prepare(void)
{
    if (mine() != NULL)
        be_alone(mine());
}

void dfi_brief_fork_parent(void)
{
    if (mine() != NULL)
        let_in(mine());
}

/* A copy of a lock's descriptor would hold it as long as the child lives. */
void dfi_brief_fork_child(struct dfi_process *process)
{
    struct dfi_brief *brief = process->brief;
    if (brief == NULL)
        return;
    for (unsigned fd = 0; (fd = next(brief, fd, UINT_MAX)) != UINT_MAX; fd++)
        dfi_kernel(__NR_close, fd);
    process->brief = NULL;
    dfi_free(brief);
}
