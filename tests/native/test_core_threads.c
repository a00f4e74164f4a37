/*
 * test_core_threads.c - many threads at once: calls against mount, unmount and fork. Under thread
 * sanitizer this is where the gate's protocol is put to the test.
 */
#include <directfuse.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/export.h"
#include "core/fd.h"
#include "core/gate.h"
#include "core/mount.h"
#include "core/table.h"
#include "ramfs.h"

#define POINT "/df-test-threads"
#ifdef DF_TSAN
#define SCALE 1
#else
#define SCALE 10
#endif
#define WORKERS 4

static struct ramfs_probe probe;
static _Atomic bool stop;
static _Atomic int served; /* calls that a mount answered */

static int attach(void)
{
    struct df_mount_spec spec = {.point = POINT};
    struct df_mount *mount;

    assert_int_equal(df_mount_attach(&spec, ramfs_new(&probe), &mount), 0);
    return mount->id;
}

static void assert_clean(void)
{
    assert_int_equal(probe.opened, probe.released);
    assert_int_equal(probe.nodes, 0);
    assert_int_equal(df_fd_count(), 0);
    assert_false(df_table_any());
}

/* ---- workers ---- */

/* One error that is right while mounts come and go; anything else ends the test. */
static void check(long ret, int allowed)
{
    if (ret >= 0) {
        served++;
        return;
    }
    if (errno == allowed || errno == ENOENT)
        return;
    fprintf(stderr, "unexpected: %s\n", strerror(errno));
    abort();
}

static void *work(void *arg)
{
    char path[64], text[8];
    unsigned round = 0;
    struct stat st;

    snprintf(path, sizeof(path), POINT "/file-%ld", (long)arg);
    while (!stop) {
        int fd = df_open(path, O_CREAT | O_RDWR, 0644), copy;

        check(fd, ENOENT);
        if (++round % 64 == 0)
            check(df_identity_refresh(), 0);
        check(df_stat(POINT, &st), ENOENT);
        if (fd < 0)
            continue;
        check(df_pwrite(fd, "text", 4, 0), 0);
        copy = df_dup(fd);
        check(copy, 0);
        check(df_close(fd), 0);
        check(df_pread(copy, text, sizeof(text), 0), 0);
        check(df_fstat(copy, &st), 0);
        check(df_stat(path, &st), ENOENT);
        check(df_close(copy), 0);
    }
    return NULL;
}

static void start(pthread_t *threads, void *(*run)(void *))
{
    stop = false;
    for (long i = 0; i < WORKERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, run, (void *)i), 0);
}

static void join(pthread_t *threads)
{
    stop = true;
    for (int i = 0; i < WORKERS; i++)
        pthread_join(threads[i], NULL);
}

/* ---- tests ---- */

/* Some file is open nearly always: after so many refusals it goes lazily. */
static void unmount(int id, int tries)
{
    while (tries-- > 0) {
        if (df_unmount(id, 0) == 0)
            return;
        assert_int_equal(errno, EBUSY);
    }
    assert_int_equal(df_unmount(id, DF_UNMOUNT_LAZY), 0);
}

static void mounts_come_and_go(void **state)
{
    pthread_t threads[WORKERS];

    (void)state;
    start(threads, work);
    for (int i = 0; i < 100 * SCALE; i++) {
        int id = attach(), before = served;

        while (served < before + 20)
            sched_yield();
        unmount(id, i % 2 ? 50 : 0);
    }
    join(threads);
    assert_int_equal(probe.destroyed, 100 * SCALE);
    probe.destroyed = 0;
    assert_clean();
}

/* Where membarrier(2) is refused both sides of the gate use fences. */
static void mounts_come_and_go_without_membarrier(void **state)
{
    bool asymmetric = df_gate.asymmetric;

    df_gate.asymmetric = false;
    mounts_come_and_go(state);
    df_gate.asymmetric = asymmetric;
}

/* Threads share descriptors, and close them under each other. */
static _Atomic int shared_fds[4];

static void *share(void *arg)
{
    unsigned seed = (unsigned)(long)arg;
    char byte;

    while (!stop) {
        _Atomic int *at = &shared_fds[rand_r(&seed) % 4];
        int fd = atomic_load(at), fresh;

        switch (rand_r(&seed) % 8) {
        case 0:
            fresh = df_open(POINT "/shared", O_CREAT | O_RDWR, 0644);
            check(fresh, 0);
            fd = atomic_exchange(at, fresh);
            if (fd)
                check(df_close(fd), EBADF);
            break;
        case 1:
            check(df_dup2(fd, DF_FD_BASE + 3000), EBADF);
            break;
        case 2:
            fresh = df_dup(fd);
            check(fresh, EBADF);
            if (fresh >= 0)
                check(df_close(fresh), 0);
            break;
        case 3:
            check(df_write(fd, "x", 1), EBADF);
            break;
        default:
            check(df_pread(fd, &byte, 1, 0), EBADF);
        }
    }
    return NULL;
}

static void threads_share_descriptors(void **state)
{
    pthread_t threads[WORKERS];
    int id = attach();

    (void)state;
    for (int i = 0; i < 4; i++)
        shared_fds[i] = df_open(POINT "/shared", O_CREAT | O_RDWR, 0644);
    start(threads, share);
    for (int from = served; served < from + 20000 * SCALE;)
        sched_yield();
    join(threads);
    for (int i = 0; i < 4; i++)
        assert_int_equal(df_close(shared_fds[i]), 0);
    df_close(DF_FD_BASE + 3000);
    assert_int_equal(df_unmount(id, 0), 0);
    assert_clean();
}

/* Many short lives: records and what threads keep for themselves are handed on. */
static void *open_some(void *arg)
{
    int fds[40];

    for (int i = 0; i < 40; i++)
        check(fds[i] = df_open(POINT "/f", O_CREAT | O_RDWR, 0644), 0);
    for (int i = 0; i < 40; i++)
        check(df_close(fds[i]), 0);
    return arg;
}

static void threads_end(void **state)
{
    int id = attach();

    (void)state;
    for (int i = 0; i < 30 * SCALE; i++) {
        pthread_t threads[WORKERS];

        for (int j = 0; j < WORKERS; j++)
            assert_int_equal(pthread_create(&threads[j], NULL, open_some, NULL), 0);
        for (int j = 0; j < WORKERS; j++)
            pthread_join(threads[j], NULL);
    }
    assert_int_equal(df_unmount(id, 0), 0);
    assert_clean();
}

/* ---- fork ---- */

/* In the child: everything works, and what the parent's threads had open does not matter. */
static int in_child(int fd)
{
    char text[8] = "";
    struct stat st;
    int copy;

    if (df_pread(fd, text, 4, 0) != 4 || strcmp(text, "kept") != 0)
        return 1;
    if (df_stat(POINT, &st) < 0)
        return 2;
    copy = df_open(POINT "/child", O_CREAT | O_RDWR, 0644);
    if (copy < 0 || df_write(copy, "x", 1) != 1 || df_close(copy) < 0)
        return 3;
    if (df_close(fd) < 0)
        return 4;
    return df_mkdir(POINT "/d", 0755) < 0 ? 5 : 0;
}

static void forks_while_others_call(void **state)
{
    pthread_t threads[WORKERS];
    int id = attach(), fd = df_open(POINT "/kept", O_CREAT | O_RDWR, 0644);

    (void)state;
    assert_int_equal(df_write(fd, "kept", 4), 4);
    start(threads, work);
    for (int i = 0; i < 10 * SCALE; i++) {
        int status, before = served;
        pid_t pid = fork();

        assert_true(pid >= 0);
        if (pid == 0)
            _exit(in_child(fd));
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
        while (served < before + 20) /* the parent's threads go on */
            sched_yield();
    }
    join(threads);
    assert_int_equal(df_close(fd), 0);
    assert_int_equal(df_unmount(id, 0), 0);
    assert_clean();
}

/* A call that sits in its plugin holds a fork up for some time only. */
static pthread_barrier_t inside;

static int stuck_getattr(struct df_fs *fs, struct df_call *call, const struct df_where *where,
                         struct stat *st)
{
    (void)fs, (void)call, (void)where;
    memset(st, 0, sizeof(*st));
    pthread_barrier_wait(&inside); /* it is in here, and the test has forked */
    pthread_barrier_wait(&inside);
    return 0;
}

static void *stat_stuck(void *arg)
{
    struct stat st;

    return df_stat(POINT "-stuck", &st) == 0 ? NULL : arg;
}

static void a_stuck_call_does_not_stop_a_fork(void **state)
{
    struct df_ops ops,
        given = {.version = DF_OPS_VERSION, .size = sizeof(given), .getattr = stuck_getattr};
    struct df_fs fs = {.ops = &ops};
    struct df_mount_spec spec = {.point = POINT "-stuck"};
    int id = attach(), fd = df_open(POINT "/kept", O_CREAT | O_RDWR, 0644), status;
    struct df_mount *mount;
    pthread_t thread;
    void *failed;
    pid_t pid;

    (void)state;
    assert_int_equal(df_write(fd, "kept", 4), 4);
    assert_int_equal(df_ops_complete(&ops, &given), 0);
    assert_int_equal(df_mount_attach(&spec, &fs, &mount), 0);
    pthread_barrier_init(&inside, NULL, 2);
    pthread_create(&thread, NULL, stat_stuck, &inside);
    pthread_barrier_wait(&inside);
    pid = fork();
    if (pid == 0) /* nobody is inside here */
        _exit(in_child(fd) == 0 && df_unmount(mount->id, 0) == 0 ? 0 : 1);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    pthread_barrier_wait(&inside);
    pthread_join(thread, &failed);
    assert_null(failed);
    pthread_barrier_destroy(&inside);
    assert_int_equal(df_unmount(mount->id, 0), 0);
    assert_int_equal(df_close(fd), 0);
    assert_int_equal(df_unmount(id, 0), 0);
    assert_clean();
}

static void free_slowly(struct df_retired *self)
{
    (void)self;
    pthread_barrier_wait(&inside); /* it is in here, and the test has forked */
    pthread_barrier_wait(&inside);
}

/* Every so often who retires frees at once. */
static void *retire_many(void *retired)
{
    df_gate_retire_nodes(retired, free_slowly, 1000);
    return NULL;
}

static bool is_nobodys(const struct df_retired *object, const void *owner)
{
    return object == owner;
}

/* What a thread had in hand that does not exist in the child is not waited for there. */
static void a_child_does_not_wait_for_what_a_thread_was_freeing(void **state)
{
    int id = attach(), status;
    struct df_retired retired;
    pthread_t thread;
    pid_t pid;

    (void)state;
    pthread_barrier_init(&inside, NULL, 2);
    pthread_create(&thread, NULL, retire_many, &retired);
    pthread_barrier_wait(&inside);
    pid = fork();
    if (pid == 0) {
        alarm(20);
        df_gate_reclaim(is_nobodys, NULL);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    pthread_barrier_wait(&inside);
    pthread_join(thread, NULL);
    pthread_barrier_destroy(&inside);
    assert_int_equal(df_unmount(id, 0), 0);
    assert_clean();
}

/* POSIX locks stay with the parent; the child is another process to them. */
static void a_child_inherits_no_lock(void **state)
{
    int id = attach(), fd = df_open(POINT "/f", O_CREAT | O_RDWR, 0644), status;
    struct flock all = {.l_type = F_WRLCK};
    pid_t pid;

    (void)state;
    assert_int_equal(df_fcntl(fd, F_SETLK, (long)&all), 0);
    pid = fork();
    if (pid == 0)
        _exit(df_fcntl(fd, F_OFD_SETLK, (long)&all) == 0 ? 0 : 1);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_int_equal(df_fcntl(fd, F_OFD_SETLK, (long)&all), -1);
    assert_int_equal(df_close(fd), 0);
    assert_int_equal(df_unmount(id, 0), 0);
    assert_clean();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mounts_come_and_go),
        cmocka_unit_test(mounts_come_and_go_without_membarrier),
        cmocka_unit_test(threads_share_descriptors),
        cmocka_unit_test(threads_end),
        cmocka_unit_test(forks_while_others_call),
        cmocka_unit_test(a_stuck_call_does_not_stop_a_fork),
        cmocka_unit_test(a_child_does_not_wait_for_what_a_thread_was_freeing),
        cmocka_unit_test(a_child_inherits_no_lock),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
