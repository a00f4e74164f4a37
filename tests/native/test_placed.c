/*
 * test_placed.c - locks that the kernel keeps on placeholders, asked for by many threads.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/caller.h"
#include "core/gate.h"
#include "core/lock.h"
#include "core/mount.h"
#include "core/placed.h"

#define INODES  3
#define THREADS 4
#define ROUNDS  2000

static struct df_mount mount;
static int shadows[INODES + 1]; /* of the inode numbers from 1 on */
static int refuses;             /* an error that there is instead of a placeholder; 0: none */

static int open_shadow(const struct df_file *file)
{
    char path[64];

    snprintf(path, sizeof(path), "/proc/self/fd/%d", shadows[file->ino]);
    return open(path, O_RDWR | O_CLOEXEC);
}

static ino_t hangs; /* the inode whose server does not answer before `answers`; 0: none */
static sem_t asked, answers;

static int place(struct df_file *file)
{
    if (file->ino == hangs) {
        sem_post(&asked);
        sem_wait(&answers);
    }
    return refuses ? refuses : open_shadow(file);
}

static const struct df_file_far far = {.place = place};

static struct df_file file_of(unsigned inode)
{
    return (struct df_file){.mount = &mount, .ino = inode, .far = &far};
}

static int set_up(void **state)
{
    (void)state;
    for (unsigned i = 1; i <= INODES; i++)
        shadows[i] = memfd_create("shadow", MFD_CLOEXEC);
    return 0;
}

/* Nothing is left. */
static int tear_down(void **state)
{
    (void)state;
    assert_int_equal(mount.lock_count, 0);
    for (unsigned i = 1; i <= INODES; i++)
        close(shadows[i]);
    return 0;
}

static int lock(struct df_file *file, int type, off_t start, bool ofd, bool wait)
{
    struct df_lock lock = {.type = (int16_t)type,
                           .start = start,
                           .end = start,
                           .pid = ofd ? -1 : getpid(),
                           .wait = wait};
    struct df_call call;
    int ret;
    struct df_thread *thread = df_gate_enter(&ret);

    assert_non_null(thread);
    df_call_start(&call, thread, &mount);
    ret = df_lock_range(&call, file, &lock);
    df_gate_leave(thread);
    return ret;
}

static int whole(struct df_file *file, int operation)
{
    struct df_call call;
    int ret;
    struct df_thread *thread = df_gate_enter(&ret);

    df_call_start(&call, thread, &mount);
    ret = df_lock_flock(&call, file, operation);
    df_gate_leave(thread);
    return ret;
}

/* close(2) of one of several descriptors. */
static void close_one(struct df_file *file)
{
    struct df_call call;
    int error;
    struct df_thread *thread = df_gate_enter(&error);

    df_call_start(&call, thread, &mount);
    df_lock_close(&call, file, 1);
    df_gate_leave(thread);
}

/* What another process meets. */
static bool is_free(unsigned inode)
{
    struct flock wanted = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    int status;
    pid_t child = fork();

    if (child == 0)
        _exit(fcntl(shadows[inode], F_GETLK, &wanted) < 0 || wanted.l_type != F_UNLCK);
    waitpid(child, &status, 0);
    return status == 0;
}

static void locks_are_of_the_description_or_the_process(void **state)
{
    struct df_file one = file_of(1), two = file_of(1), other = file_of(2);

    (void)state;
    assert_int_equal(lock(&one, F_WRLCK, 0, true, false), 0);
    assert_int_equal(lock(&two, F_RDLCK, 0, true, false), -EAGAIN);
    assert_int_equal(lock(&other, F_WRLCK, 0, true, false), 0);
    assert_int_equal(lock(&one, F_WRLCK, 5, false, false), 0);
    assert_int_equal(lock(&two, F_WRLCK, 5, false, false), 0);
    assert_int_equal(whole(&one, LOCK_EX), 0);
    assert_int_equal(whole(&two, LOCK_SH | LOCK_NB), -EWOULDBLOCK);
    assert_int_equal(mount.lock_count, 3);
    df_lock_release(&one);
    assert_int_equal(whole(&two, LOCK_SH | LOCK_NB), 0);
    df_lock_release(&two);
    df_lock_release(&other);
    assert_true(is_free(1));
}

static void a_close_drops_the_processs_locks_of_that_inode(void **state)
{
    struct df_file one = file_of(1), two = file_of(1), other = file_of(2);

    (void)state;
    assert_int_equal(lock(&one, F_WRLCK, 0, false, false), 0);
    assert_int_equal(lock(&other, F_WRLCK, 0, false, false), 0);
    close_one(&two); /* it has no placeholder of its own */
    assert_true(is_free(1));
    assert_false(is_free(2));
    df_lock_release(&one);
    df_lock_release(&other);
}

static void without_a_placeholder_nothing_is_locked(void **state)
{
    struct df_file file = file_of(1);

    (void)state;
    refuses = -EMFILE;
    assert_int_equal(lock(&file, F_WRLCK, 0, false, false), -ENOLCK);
    refuses = -ENOTCONN;
    assert_int_equal(whole(&file, LOCK_EX), -ENOTCONN);
    refuses = 0;
    df_lock_release(&file);
}

static void *wait_for(void *file)
{
    return (void *)(intptr_t)lock(file, F_WRLCK, 0, true, true);
}

static void a_wait_holds_up_no_fork(void **state)
{
    struct df_file one = file_of(1), two = file_of(1);
    pthread_t thread;
    void *ended;

    (void)state;
    assert_int_equal(lock(&one, F_WRLCK, 0, true, false), 0);
    assert_int_equal(pthread_create(&thread, NULL, wait_for, &two), 0);
    assert_false(is_free(1));
    assert_int_equal(lock(&one, F_UNLCK, 0, true, false), 0);
    pthread_join(thread, &ended);
    assert_int_equal((intptr_t)ended, 0);
    df_lock_release(&one);
    df_lock_release(&two);
}

/* In a child, which does not have the thread that asks. */
static bool a_child_locks(struct df_file *file)
{
    int status;
    pid_t child = fork();

    if (child == 0) {
        alarm(20);
        hangs = 0;
        _exit(lock(file, F_WRLCK, 1, true, false) != 0);
    }
    waitpid(child, &status, 0);
    return status == 0;
}

static void a_server_that_hangs_holds_up_its_own_files(void **state)
{
    struct df_file hung = file_of(1), other = file_of(2);
    pthread_t thread;
    void *ended;

    (void)state;
    sem_init(&asked, 0, 0);
    sem_init(&answers, 0, 0);
    hangs = hung.ino;
    assert_int_equal(pthread_create(&thread, NULL, wait_for, &hung), 0);
    sem_wait(&asked);
    assert_int_equal(lock(&other, F_WRLCK, 0, true, false), 0);
    df_lock_release(&other);
    assert_true(a_child_locks(&hung));
    sem_post(&answers);
    pthread_join(thread, &ended);
    assert_int_equal((intptr_t)ended, 0);
    df_lock_release(&hung);
    hangs = 0;
}

/* Each file is one thread's, as an open file is that of who closes it last; the list is all's. */
static void *churn(void *argument)
{
    unsigned seed = (unsigned)(uintptr_t)argument;

    for (int round = 0; round < ROUNDS; round++) {
        struct df_file file = file_of(1 + (unsigned)rand_r(&seed) % INODES);

        for (int i = rand_r(&seed) % 3; i >= 0; i--)
            lock(&file, rand_r(&seed) % 2 ? F_WRLCK : F_RDLCK, rand_r(&seed) % 4, rand_r(&seed) % 2,
                 false);
        if (rand_r(&seed) % 2)
            whole(&file, LOCK_SH | LOCK_NB);
        close_one(&file);
        df_lock_release(&file);
    }
    return NULL;
}

static void many_threads_leave_nothing_locked(void **state)
{
    pthread_t threads[THREADS];

    (void)state;
    for (uintptr_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, churn, (void *)(i + 1)), 0);
    for (int i = 0; i < 20; i++)
        is_free(1); /* forks */
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (unsigned i = 1; i <= INODES; i++)
        assert_true(is_free(i));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(locks_are_of_the_description_or_the_process),
        TEST(a_close_drops_the_processs_locks_of_that_inode),
        TEST(without_a_placeholder_nothing_is_locked),
        TEST(a_wait_holds_up_no_fork),
        TEST(a_server_that_hangs_holds_up_its_own_files),
        TEST(many_threads_leave_nothing_locked),
    };

    alarm(100); /* a hang is a failure */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
