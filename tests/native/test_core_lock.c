/*
 * test_core_lock.c - the locks the core keeps, and poll.
 */
#include <directfuse.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/call.h"
#include "core/caller.h"
#include "core/mount.h"
#include "ramfs.h"

#define POINT "/df-test-lock"

static int mount_id;
static struct ramfs_probe probe;

static int setup(void **state)
{
    struct df_mount_spec spec = {.point = POINT};
    struct df_mount *mount;

    (void)state;
    if (df_mount_attach(&spec, ramfs_new(&probe), &mount) < 0)
        return -1;
    mount_id = mount->id;
    return 0;
}

static bool no_locks(const struct df_mount *mount, void *arg)
{
    (void)arg;
    assert_int_equal(mount->lock_count, 0);
    return true;
}

static int teardown(void **state)
{
    (void)state;
    df_mount_each(no_locks, NULL);
    return df_unmount(mount_id, 0);
}

static int open_f(void)
{
    int fd = df_open(POINT "/f", O_CREAT | O_RDWR, 0644);

    assert_true(fd >= 0);
    return fd;
}

/* Calls of this thread belong to another process, for POSIX locks. */
static _Thread_local struct df_caller others[2];

static void be_owner(int n)
{
    if (n == 0) {
        df_caller_set(NULL);
        return;
    }
    df_caller_copy_process(&others[n - 1]);
    others[n - 1].lock_owner = (uint64_t)n * 1000 + 1;
    others[n - 1].pid = 1000 + n;
    df_caller_set(&others[n - 1]);
}

/* One lock call; 0 or the error number. */
static int lock(int fd, int command, short type, off_t start, off_t length)
{
    struct flock f = {.l_type = type, .l_whence = SEEK_SET, .l_start = start, .l_len = length};

    return df_fcntl(fd, command, (long)&f) == 0 ? 0 : errno;
}

/* What stands in the way of a write lock of another owner, as type, start, length, pid. */
static void assert_blocked_by(int fd, off_t start, off_t length, short type, off_t by_start,
                              off_t by_length)
{
    struct flock f = {.l_type = F_WRLCK, .l_start = start, .l_len = length};

    be_owner(2);
    assert_int_equal(df_fcntl(fd, F_GETLK, (long)&f), 0);
    be_owner(0);
    assert_int_equal(f.l_type, type);
    if (type == F_UNLCK)
        return;
    assert_int_equal(f.l_start, by_start);
    assert_int_equal(f.l_len, by_length);
    assert_int_equal(f.l_pid, getpid());
}

/* ---- ranges ---- */

static void ranges_split_and_merge(void **state)
{
    int fd = open_f();

    (void)state;
    assert_int_equal(lock(fd, F_SETLK, F_WRLCK, 0, 100), 0);
    assert_int_equal(lock(fd, F_SETLK, F_UNLCK, 40, 20), 0); /* cut in two */
    assert_blocked_by(fd, 0, 0, F_WRLCK, 0, 40);
    assert_blocked_by(fd, 40, 20, F_UNLCK, 0, 0);
    assert_blocked_by(fd, 50, 0, F_WRLCK, 60, 40);
    assert_int_equal(lock(fd, F_SETLK, F_RDLCK, 30, 40), 0); /* another type over both ends */
    assert_blocked_by(fd, 30, 1, F_RDLCK, 30, 40);
    assert_blocked_by(fd, 70, 1, F_WRLCK, 70, 30);
    assert_int_equal(lock(fd, F_SETLK, F_WRLCK, 30, 40), 0); /* all one again */
    assert_blocked_by(fd, 50, 1, F_WRLCK, 0, 100);
    assert_int_equal(lock(fd, F_SETLK, F_WRLCK, 100, 0), 0); /* touches: to the end */
    assert_blocked_by(fd, 1000000, 1, F_WRLCK, 0, 0);
    assert_int_equal(lock(fd, F_SETLK, F_UNLCK, 10, 0), 0);
    assert_blocked_by(fd, 0, 0, F_WRLCK, 0, 10);
    assert_int_equal(df_close(fd), 0);
}

static void owners_conflict(void **state)
{
    int fd = open_f();

    (void)state;
    assert_int_equal(lock(fd, F_SETLK, F_RDLCK, 0, 10), 0);
    be_owner(1);
    assert_int_equal(lock(fd, F_SETLK, F_RDLCK, 5, 10), 0);
    assert_int_equal(lock(fd, F_SETLK, F_WRLCK, 5, 1), EAGAIN);
    assert_int_equal(lock(fd, F_SETLK, F_WRLCK, 10, 5), 0);
    be_owner(0);
    assert_int_equal(lock(fd, F_SETLK, F_WRLCK, 0, 5), 0);
    assert_int_equal(lock(fd, F_SETLK, F_WRLCK, 0, 6), EAGAIN);
    be_owner(1);
    assert_int_equal(df_close(open_f()), 0); /* any close drops them: fcntl(2) */
    be_owner(0);
    assert_int_equal(lock(fd, F_SETLK, F_WRLCK, 0, 0), 0);
    assert_int_equal(df_close(fd), 0);
}

static void checks_what_is_asked(void **state)
{
    int fd = open_f(), rd = df_open(POINT "/f", O_RDONLY, 0);
    struct flock f = {.l_type = F_WRLCK, .l_whence = SEEK_END, .l_start = -5, .l_len = 0};

    (void)state;
    assert_int_equal(lock(rd, F_SETLK, F_WRLCK, 0, 0), EBADF);
    assert_int_equal(lock(fd, F_SETLK, 17, 0, 0), EINVAL);
    assert_int_equal(lock(fd, F_GETLK, F_UNLCK, 0, 0), EINVAL);
    assert_int_equal(lock(fd, F_SETLK, F_RDLCK, -1, 0), EINVAL);
    assert_int_equal(lock(fd, F_SETLK, F_RDLCK, 5, -6), EINVAL);
    assert_int_equal(lock(fd, F_SETLK, F_RDLCK, INT64_MAX, 10), EOVERFLOW);
    assert_int_equal(df_fcntl(fd, F_SETLK, (long)&f), -1); /* before the start */
    assert_int_equal(df_pwrite(fd, "0123456789", 10, 0), 10);
    assert_int_equal(df_fcntl(fd, F_SETLK, (long)&f), 0);
    assert_blocked_by(fd, 0, 0, F_WRLCK, 5, 0);
    assert_int_equal(lock(fd, F_SETLK, F_UNLCK, 0, 0), 0);
    assert_int_equal(lock(fd, F_SETLK, F_WRLCK, 10, -4), 0);
    assert_blocked_by(fd, 0, 0, F_WRLCK, 6, 4);
    assert_int_equal(df_fcntl(fd, F_SETLK, 0), -1);
    assert_int_equal(errno, EFAULT);
    assert_int_equal(df_close(rd), 0);
    assert_int_equal(df_close(fd), 0);
}

static void open_file_locks_belong_to_the_file(void **state)
{
    int a = open_f(), b = open_f(), copy;

    (void)state;
    assert_int_equal(lock(a, F_OFD_SETLK, F_WRLCK, 0, 10), 0);
    assert_int_equal(lock(b, F_OFD_SETLK, F_RDLCK, 5, 1), EAGAIN);
    assert_int_equal(lock(b, F_SETLK, F_RDLCK, 5, 1), EAGAIN); /* they conflict with POSIX locks */
    copy = df_dup(a);
    assert_int_equal(df_close(a), 0);
    assert_int_equal(lock(b, F_OFD_SETLK, F_RDLCK, 5, 1), EAGAIN);
    assert_int_equal(df_close(copy), 0); /* the last descriptor */
    assert_int_equal(lock(b, F_OFD_SETLK, F_RDLCK, 5, 1), 0);
    assert_int_equal(df_close(b), 0);
}

static void flock_belongs_to_the_file(void **state)
{
    int a = open_f(), b = open_f();

    (void)state;
    assert_int_equal(df_flock(a, LOCK_SH), 0);
    assert_int_equal(df_flock(b, LOCK_SH | LOCK_NB), 0);
    assert_int_equal(df_flock(a, LOCK_EX | LOCK_NB), -1);
    assert_int_equal(errno, EWOULDBLOCK);
    assert_int_equal(df_flock(b, LOCK_EX | LOCK_NB), 0);  /* a lost its own: flock(2) */
    assert_int_equal(lock(a, F_SETLK, F_WRLCK, 0, 0), 0); /* they do not see each other */
    assert_int_equal(df_flock(b, LOCK_UN), 0);
    assert_int_equal(df_flock(a, LOCK_EX | LOCK_NB), 0);
    assert_int_equal(df_flock(a, 17), -1);
    assert_int_equal(errno, EINVAL);
    assert_int_equal(df_close(a), 0);
    assert_int_equal(df_flock(b, LOCK_EX | LOCK_NB), 0);
    assert_int_equal(df_close(b), 0);
}

/* ---- waiting ---- */

struct waiter {
    pthread_t thread;
    int fd;
    int owner;
    off_t start;
    int result;
    _Atomic bool done;
};

static void *wait_for_range(void *arg)
{
    struct waiter *w = arg;

    be_owner(w->owner);
    w->result = lock(w->fd, F_SETLKW, F_WRLCK, w->start, 1);
    be_owner(0);
    w->done = true;
    return NULL;
}

static void *wait_for_flock(void *arg)
{
    struct waiter *w = arg;

    w->result = df_flock(w->fd, LOCK_EX) == 0 ? 0 : errno;
    w->done = true;
    return NULL;
}

static void start(struct waiter *w, void *(*run)(void *))
{
    w->result = -1;
    w->done = false;
    assert_int_equal(pthread_create(&w->thread, NULL, run, w), 0);
}

static void a_waiter_gets_the_lock(void **state)
{
    int a = open_f(), b = open_f();
    struct waiter w = {.fd = b, .owner = 1};

    (void)state;
    for (int i = 0; i < 300; i++) {
        assert_int_equal(lock(a, F_SETLK, F_WRLCK, 0, 1), 0);
        start(&w, wait_for_range);
        assert_int_equal(lock(a, F_SETLK, F_UNLCK, 0, 1), 0);
        pthread_join(w.thread, NULL);
        assert_int_equal(w.result, 0);
        be_owner(1);
        assert_int_equal(lock(b, F_SETLK, F_UNLCK, 0, 1), 0);
        be_owner(0);

        assert_int_equal(df_flock(a, LOCK_EX), 0);
        start(&w, wait_for_flock);
        assert_int_equal(df_flock(a, LOCK_UN), 0);
        pthread_join(w.thread, NULL);
        assert_int_equal(w.result, 0);
        assert_int_equal(df_flock(b, LOCK_UN), 0);
    }
    assert_int_equal(df_close(a), 0);
    assert_int_equal(df_close(b), 0);
}

/* It is EBADF whether the wait had begun by then or not. */
static void who_waits_for_a_lock_of_a_descriptor_that_is_closed_has_none(void **state)
{
    int a = open_f();

    (void)state;
    for (int i = 0; i < 300; i++) {
        struct waiter w = {.fd = open_f(), .owner = 1};

        assert_int_equal(lock(a, F_SETLK, F_WRLCK, 0, 1), 0);
        start(&w, wait_for_range);
        for (int yields = 0; yields < i % 30; yields++)
            sched_yield();
        be_owner(1);
        assert_int_equal(df_close(w.fd), 0);
        be_owner(0);
        assert_int_equal(lock(a, F_SETLK, F_UNLCK, 0, 1), 0);
        pthread_join(w.thread, NULL);
        assert_int_equal(w.result, EBADF);
        assert_int_equal(lock(a, F_SETLK, F_WRLCK, 0, 1), 0);
        assert_int_equal(lock(a, F_SETLK, F_UNLCK, 0, 1), 0);
    }
    assert_int_equal(df_close(a), 0);
}

static void on_signal(int number)
{
    (void)number;
}

/* Signals are sent until the wait has ended: the first ones may come before it began. */
static void interrupt(struct waiter *w)
{
    while (!w->done) {
        pthread_kill(w->thread, SIGUSR1);
        sched_yield();
    }
    pthread_join(w->thread, NULL);
}

static void a_signal_ends_the_wait(void **state)
{
    struct sigaction action = {.sa_handler = on_signal}, old;
    int a = open_f(), b = open_f();
    struct waiter w = {.fd = b, .owner = 1};

    (void)state;
    sigaction(SIGUSR1, &action, &old);
    assert_int_equal(lock(a, F_SETLK, F_WRLCK, 0, 1), 0);
    assert_int_equal(df_flock(a, LOCK_EX), 0);
    start(&w, wait_for_range);
    interrupt(&w);
    assert_int_equal(w.result, EINTR);
    start(&w, wait_for_flock);
    interrupt(&w);
    assert_int_equal(w.result, EINTR);
    sigaction(SIGUSR1, &old, NULL);
    assert_int_equal(df_close(a), 0);
    assert_int_equal(df_close(b), 0);
}

/* Whoever comes second is told; the first one gets what it waits for. */
static void a_deadlock_is_found(void **state)
{
    int a = open_f(), b = open_f(), lost, won;
    struct waiter w[2] = {{.fd = a, .owner = 1, .start = 20}, {.fd = b, .owner = 2, .start = 10}};

    (void)state;
    be_owner(1);
    assert_int_equal(lock(a, F_SETLK, F_WRLCK, 10, 1), 0);
    be_owner(2);
    assert_int_equal(lock(b, F_SETLK, F_WRLCK, 20, 1), 0);
    be_owner(0);
    start(&w[0], wait_for_range);
    start(&w[1], wait_for_range);
    while (!w[0].done && !w[1].done)
        sched_yield();
    lost = w[0].done ? 0 : 1;
    won = 1 - lost;
    pthread_join(w[lost].thread, NULL);
    assert_int_equal(w[lost].result, EDEADLK);
    be_owner(w[lost].owner);
    assert_int_equal(lock(w[lost].fd, F_SETLK, F_UNLCK, 0, 0), 0);
    be_owner(0);
    pthread_join(w[won].thread, NULL);
    assert_int_equal(w[won].result, 0);
    be_owner(w[won].owner);
    assert_int_equal(lock(w[won].fd, F_SETLK, F_UNLCK, 0, 0), 0);
    be_owner(0);
    assert_int_equal(df_close(a), 0);
    assert_int_equal(df_close(b), 0);
}

/* ---- poll ---- */

/* Every file of it is a gate that the test opens. */
static _Atomic bool ready;
static _Atomic(struct df_wake *) waiting;

static int gate_getattr(struct df_fs *fs, struct df_call *call, const struct df_where *where,
                        struct stat *st)
{
    (void)fs, (void)call, (void)where;
    memset(st, 0, sizeof(*st));
    return 0;
}

static int gate_open(struct df_fs *fs, struct df_call *call, const struct df_where *where,
                     struct df_file *file, int flags, mode_t mode)
{
    (void)fs, (void)call, (void)where, (void)file, (void)flags, (void)mode;
    return 0;
}

static void wake_all(void)
{
    struct df_wake *wake = atomic_exchange(&waiting, NULL);

    if (wake)
        df_wake(wake);
}

static void gate_release(struct df_fs *fs, struct df_call *call, struct df_file *file)
{
    (void)fs, (void)call, (void)file;
    wake_all();
}

static int gate_poll(struct df_fs *fs, struct df_call *call, struct df_file *file, int events,
                     struct df_wake *wake)
{
    (void)fs, (void)call, (void)file;
    if (ready) {
        df_wake_drop(wake);
        return POLLIN & events;
    }
    if (wake) {
        struct df_wake *old = atomic_exchange(&waiting, wake);

        if (old)
            df_wake(old);
        if (ready) /* opened meanwhile: who opened it may have missed the wake */
            wake_all();
    }
    return 0;
}

static struct df_ops gate_ops;
static struct df_fs gate_fs = {.ops = &gate_ops};

static int open_gate(int *fd)
{
    struct df_ops given = {.version = DF_OPS_VERSION,
                           .size = sizeof(given),
                           .getattr = gate_getattr,
                           .open = gate_open,
                           .release = gate_release,
                           .poll = gate_poll};
    struct df_mount_spec spec = {.point = POINT "-gate"};
    struct df_mount *mount;

    assert_int_equal(df_ops_complete(&gate_ops, &given), 0);
    assert_int_equal(df_mount_attach(&spec, &gate_fs, &mount), 0);
    *fd = df_open(POINT "-gate/f", O_RDONLY, 0);
    assert_true(*fd >= 0);
    return mount->id;
}

static void poll_answers_at_once(void **state)
{
    int gate, id = open_gate(&gate), fd = open_f(), pipes[2];
    struct pollfd fds[3] = {{fd, POLLIN | POLLOUT, 0}, {-1, POLLIN, 7}, {gate, POLLIN, 7}};

    (void)state;
    ready = false;
    assert_int_equal(df_poll(fds, 3, -1), 1);
    assert_int_equal(fds[0].revents, POLLIN | POLLOUT);
    assert_int_equal(fds[1].revents, 0);
    assert_int_equal(fds[2].revents, 0);
    assert_int_equal(df_poll(fds + 2, 1, 0), 0);
    assert_int_equal(df_poll(fds + 2, 1, 1), 0);
    assert_int_equal(df_close(fd), 0);
    assert_int_equal(df_poll(fds, 1, -1), 1);
    assert_int_equal(fds[0].revents, POLLNVAL);
    assert_int_equal(pipe(pipes), 0);
    fds[0].fd = pipes[1];
    assert_int_equal(df_poll(fds, 1, 0), 1); /* the kernel's */
    assert_int_equal(df_poll(fds, 3, 0), -1);
    assert_int_equal(errno, EINVAL);
    close(pipes[0]);
    close(pipes[1]);
    assert_int_equal(df_close(gate), 0);
    assert_int_equal(df_unmount(id, 0), 0);
}

static void *poll_for_ever(void *arg)
{
    struct waiter *w = arg;
    struct pollfd p = {w->fd, POLLIN, 0};

    w->result = df_poll(&p, 1, -1);
    if (w->result < 0)
        w->result = -errno;
    w->done = true;
    return NULL;
}

static void poll_sleeps_until_woken(void **state)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART}, old;
    int gate, id = open_gate(&gate);
    struct waiter w = {.fd = gate};

    (void)state;
    for (int i = 0; i < 300; i++) {
        ready = false;
        start(&w, poll_for_ever);
        ready = true;
        wake_all();
        pthread_join(w.thread, NULL);
        assert_int_equal(w.result, 1);
    }
    ready = false;
    sigaction(SIGUSR1, &action, &old);
    start(&w, poll_for_ever);
    interrupt(&w); /* not restarted: signal(7) */
    assert_int_equal(w.result, -EINTR);
    sigaction(SIGUSR1, &old, NULL);
    assert_int_equal(df_close(gate), 0);
    assert_int_equal(df_unmount(id, 0), 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(ranges_split_and_merge),
        TEST(owners_conflict),
        TEST(checks_what_is_asked),
        TEST(open_file_locks_belong_to_the_file),
        TEST(flock_belongs_to_the_file),
        TEST(a_waiter_gets_the_lock),
        TEST(who_waits_for_a_lock_of_a_descriptor_that_is_closed_has_none),
        TEST(a_signal_ends_the_wait),
        TEST(a_deadlock_is_found),
        TEST(poll_answers_at_once),
        TEST(poll_sleeps_until_woken),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
