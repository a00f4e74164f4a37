/*
 * test_core_failure.c - the n-th allocation fails, for every n: each call either works or says
 * ENOMEM (or what Linux says for it), and nothing is lost.
 */
#include <directfuse.h>
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "core/caller.h"
#include "core/fd.h"
#include "core/gate.h"
#include "core/mount.h"
#include "core/table.h"
#include "ramfs.h"
#include "wrap/count.h"

#define POINT "/df-test-failure"

/* ---- allocation: linked with -Wl,--wrap for each of these ---- */

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_aligned_alloc(size_t alignment, size_t size);
char *__real_strdup(const char *text);

static _Atomic long countdown = -1; /* 0: this one fails; negative: none does */

static bool fails(void)
{
    return countdown >= 0 && countdown-- == 0;
}

void *__wrap_malloc(size_t size)
{
    return fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    return fails() ? NULL : __real_calloc(count, size);
}

void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
    return fails() ? NULL : __real_aligned_alloc(alignment, size);
}

char *__wrap_strdup(const char *text)
{
    return fails() ? NULL : __real_strdup(text);
}

/* ---- groups that somebody else sets between two questions, which takes a right of root's ---- */

int __real_getgroups(int size, gid_t list[]);

static unsigned questions; /* left, which are answered here */

int __wrap_getgroups(int size, gid_t list[])
{
    if (questions == 0)
        return __real_getgroups(size, list);
    return --questions % 2 ? 0 : 3; /* of no room: how many there are */
}

static void groups_that_grow_from_none_are_not_made_up(void **state)
{
    (void)state;
    questions = 2;
    assert_int_equal(df_identity_refresh(), 0);
    assert_int_equal(atomic_load(&df_caller_process)->group_count, 0);
    questions = 0;
    assert_int_equal(df_identity_refresh(), 0);
}

/* ---- the scenario ---- */

static struct ramfs_probe probe;
static int refusals;

/* Works, or fails for want of memory. */
static bool works(bool ok)
{
    if (ok)
        return true;
    if (errno != ENOMEM && errno != ENOLCK && errno != ENOSPC)
        fail_msg("%s", strerror(errno));
    refusals++;
    return false;
}

static void use_file(int fd)
{
    struct flock range = {.l_type = F_WRLCK, .l_start = 10, .l_len = 10};
    struct df_read reads[] = {{.fd = fd, .size = 0}};
    off_t from = 0, to = 100;
    void *p = NULL;

    works(df_pwrite(fd, "0123456789", 10, 0) == 10);
    works(df_fcntl(fd, F_SETLK, (long)&range) == 0);
    range.l_type = F_UNLCK;
    range.l_start = 12;
    range.l_len = 2;
    works(df_fcntl(fd, F_SETLK, (long)&range) == 0);
    works(df_flock(fd, LOCK_EX) == 0);
    works(df_copy_file_range(fd, &from, fd, &to, 5, 0) >= 0);
    works(df_read_batch(reads, 1) == 0);
    if (works(df_mmap(&p, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) == 0)) {
        strcpy(p, "mapped");
        works(df_munmap(p, 8192) == 0);
    }
    works(df_close(fd) == 0);
}

static void use_names(void)
{
    gid_t groups[] = {1, 2};
    struct df_identity identity = {.privileged = 1, .group_count = 2, .groups = groups};
    df_dir *dir;

    if (works(df_identity_set(&identity) == 0))
        works(df_identity_set(NULL) == 0);
    works(df_identity_refresh() == 0);
    works(df_mkdir(POINT "/d", 0755) == 0);
    works(df_symlink("d", POINT "/l") == 0);
    if (works((dir = df_opendir(POINT)) != NULL)) {
        while (df_readdir(dir))
            ;
        works(df_closedir(dir) == 0);
    }
}

static struct df_fs *count(struct df_fs *below, void *counters)
{
    return df_count_wrap(below, counters);
}

static void use_mount(int id)
{
    struct df_counters *counters = df_count_new(true);
    int fd;

    errno = ENOMEM;
    if (works(counters != NULL)) {
        errno = -df_mount_wrap(id, count, counters);
        works(errno == 0);
        df_count_drop(counters);
    }
    if (works((fd = df_open(POINT "/f", O_CREAT | O_RDWR, 0644)) >= 0))
        use_file(fd);
    use_names();
}

/* On a thread of its own, so that a thread's first call is swept too. */
static void *scenario(void *arg)
{
    struct df_mount_spec spec = {.point = POINT, .fsname = "ram", .subtype = "test"};
    struct df_fs *fs;
    struct df_mount *mount;

    countdown = *(long *)arg;
    fs = ramfs_new(&probe);
    errno = ENOMEM;
    if (!works(fs != NULL))
        return arg;
    errno = -df_mount_attach(&spec, fs, &mount);
    if (!works(errno == 0)) {
        fs->ops->destroy(fs);
        return arg;
    }
    use_mount(mount->id);
    while (!works(df_unmount(mount->id, 0) == 0))
        ;
    return arg;
}

static void run(long n)
{
    pthread_t thread;

    memset(&probe, 0, sizeof(probe));
    refusals = 0;
    assert_int_equal(pthread_create(&thread, NULL, scenario, &n), 0);
    pthread_join(thread, NULL);
}

static bool is_any(const struct df_retired *retired, const void *owner)
{
    (void)retired, (void)owner;
    return true;
}

static void every_allocation_may_fail(void **state)
{
    long n = 0, left;

    (void)state;
    do {
        run(n++);
        left = countdown;
        countdown = -1;
        assert_int_equal(probe.opened, probe.released);
        assert_int_equal(probe.nodes, 0);
        assert_int_equal(probe.borrowed, 0);
        assert_int_equal(df_fd_count(), 0);
        assert_false(df_table_any());
        df_gate_reclaim(is_any, NULL);
    } while (left < 0); /* until there are fewer than n */
    assert_in_range(n, 30, 1000);
    assert_int_equal(refusals, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(groups_that_grow_from_none_are_not_made_up),
        cmocka_unit_test(every_allocation_may_fail),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
