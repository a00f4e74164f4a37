/*
 * test_lowlevel_threads.c - many threads on one mount: names are made, moved, removed and looked at
 * by all of them at once. The file system itself says when a request is about a node that was
 * forgotten; at the end every lookup has been forgotten exactly once. For thread sanitizer above
 * all.
 */
#include <dirent.h>
#include <stdatomic.h>

#include "lowlevel/private.h"
#include "requests_route.h"

#define THREADS 4
#define ROUNDS  20000

static pthread_barrier_t start;
static _Atomic int unexpected;

/* What may happen to one thread because of the others. */
static void check(int result)
{
    switch (result < 0 ? errno : 0) {
    case 0:
    case ENOENT:
    case EEXIST:
    case ENOTDIR:
    case EISDIR:
    case ENOTEMPTY:
    case EINVAL:
    case EPERM: /* a hard link to a directory */
    case ELOOP:
    case ENXIO:
    case ENOSPC:
        return;
    default:
        print_error("unexpected: %s\n", strerror(errno));
        unexpected++;
    }
}

static const char *name(unsigned *seed, char text[64])
{
    static const char *const dirs[] = {"", "/d0", "/d1", "/d0/d2", "/d1/d2"};
    static const char *const names[] = {"d0", "d1", "d2", "a", "b", "c", "link"};

    snprintf(text, 64, "%s%s/%s", point, dirs[rand_r(seed) % 5], names[rand_r(seed) % 7]);
    return text;
}

static void list(const char *path)
{
    int fd = df_open(path, O_RDONLY | O_DIRECTORY, 0);
    char buf[4096];

    check(fd);
    if (fd < 0)
        return;
    while (df_getdents(fd, buf, sizeof(buf)) > 0)
        ;
    df_close(fd);
}

static void use_file(const char *path, int flags)
{
    int fd = df_open(path, flags, 0644);
    struct stat st;
    char byte;

    check(fd);
    if (fd < 0)
        return;
    check((int)df_pwrite(fd, "x", 1, 10));
    check((int)df_pread(fd, &byte, 1, 0));
    check(df_fstat(fd, &st));
    check(df_close(fd));
}

static void do_something(unsigned *seed)
{
    char a[64], b[64];
    struct stat st;

    name(seed, a);
    name(seed, b);
    switch (rand_r(seed) % 14) {
    case 0:
    case 1:
    case 2:
        check(df_stat(a, &st));
        return;
    case 3:
        check(df_lstat(a, &st));
        return;
    case 4:
        check(df_mkdir(a, 0755));
        return;
    case 5:
        check(df_rmdir(a));
        return;
    case 6:
        check(df_unlink(a));
        return;
    case 7:
        check(df_rename(a, b));
        return;
    case 8:
        check(df_renameat2(AT_FDCWD, a, AT_FDCWD, b, RENAME_EXCHANGE));
        return;
    case 9:
        check(df_link(a, b));
        return;
    case 10:
        check(df_symlink("a", a));
        return;
    case 11:
        use_file(a, O_RDWR | O_CREAT);
        return;
    case 12:
        use_file(a, O_RDWR);
        return;
    default:
        list(a);
    }
}

static void *work(void *arg)
{
    unsigned seed = (unsigned)(uintptr_t)arg * 7919;

    pthread_barrier_wait(&start);
    for (int i = 0; i < ROUNDS; i++)
        do_something(&seed);
    return NULL;
}

static void hammer(void)
{
    pthread_t threads[THREADS];

    pthread_barrier_init(&start, NULL, THREADS);
    for (uintptr_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, work, (void *)(i + 1)), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&start);
    assert_int_equal(unexpected, 0);
}

static void with_long_timeouts(void **state)
{
    (void)state;
    fs->quiet = true;
    fs->negative_timeout = 1e9;
    fs->entry_timeout = fs->attr_timeout = 1e9;
    mount_options("rw");
    hammer();
}

static void with_no_timeouts(void **state)
{
    (void)state;
    fs->quiet = true;
    fs->entry_timeout = fs->attr_timeout = 0;
    mount_options("rw");
    hammer();
}

static void with_few_entries(void **state)
{
    (void)state;
    fs->quiet = true;
    mount_options("rw");
    df_nodes_set_capacity(&lane_of_mount()->nodes, 8);
    hammer();
}

static void with_default_permissions(void **state)
{
    (void)state;
    fs->quiet = true;
    fs->want_off = FUSE_CAP_PARALLEL_DIROPS;
    mount_options("default_permissions");
    hammer();
}

static void one_operation_at_a_time(void **state)
{
    (void)state;
    fs->quiet = true;
    mount_options("serial");
    hammer();
}

/* Meanwhile the file system takes entries back. */
static _Atomic bool stop;

static void *notify(void *arg)
{
    static const char *const names[] = {"d0", "d1", "d2", "a", "b", "c"};
    unsigned seed = 1;

    while (!stop) {
        const char *text = names[rand_r(&seed) % 6];
        fuse_ino_t ino = 1 + (fuse_ino_t)(rand_r(&seed) % 40);

        df_notify_inval_entry(arg, ino, text, strlen(text));
        df_notify_inval_inode(arg, ino, 0, 0);
        sched_yield();
    }
    return NULL;
}

static void under_invalidation(void **state)
{
    pthread_t thread;

    (void)state;
    fs->quiet = true;
    mount_options("rw");
    stop = false;
    assert_int_equal(pthread_create(&thread, NULL, notify, &lane_of_mount()->fs), 0);
    hammer();
    stop = true;
    pthread_join(thread, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        test(with_long_timeouts),       test(with_no_timeouts),        test(with_few_entries),
        test(with_default_permissions), test(one_operation_at_a_time), test(under_invalidation),
    };

    return cmocka_run_group_tests(tests, can_mount, end_mounts);
}
