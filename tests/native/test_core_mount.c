/*
 * test_core_mount.c - attaching, detaching, waiting, wrapping; and the gate that all of it stands
 * on.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/call.h"
#include "core/calls.h"
#include "core/fd.h"
#include "core/gate.h"
#include "core/mount.h"
#include "core/table.h"
#include "ramfs.h"

#define POINT "/df-test-mount"

static struct ramfs_probe probe;

static int setup(void **state)
{
    (void)state;
    memset(&probe, 0, sizeof(probe));
    return 0;
}

static int try_attach(const char *point)
{
    struct df_mount_spec spec = {.point = point, .fsname = "ram", .subtype = "test"};
    struct df_fs *fs = ramfs_new(&probe);
    struct df_mount *mount;
    int ret = df_mount_attach(&spec, fs, &mount);

    if (ret < 0)
        fs->ops->destroy(fs);
    return ret < 0 ? ret : mount->id;
}

static int attach(const char *point)
{
    int id = try_attach(point);

    assert_true(id > 0);
    return id;
}

static bool exists(const char *path)
{
    struct stat st;
    int ret = df_call_fstatat(AT_FDCWD, path, &st, 0);

    assert_true(ret == 0 || ret == DF_NOT_OURS);
    return ret == 0;
}

/* ---- mountpoints ---- */

static void attaches_and_detaches(void **state)
{
    int id = attach(POINT), second;

    (void)state;
    assert_true(exists(POINT));
    assert_int_equal(df_mount_detach(id, 0), 0);
    assert_int_equal(probe.destroyed, 1);
    assert_false(exists(POINT));
    assert_int_equal(df_mount_detach(id, 0), -EINVAL);
    second = attach(POINT);
    assert_int_not_equal(second, id);
    assert_int_equal(df_mount_detach(second, DF_DETACH_LAZY), 0);
    assert_int_equal(probe.destroyed, 2);
    df_mount_wait(second);
}

static void refuses_mountpoints(void **state)
{
    char file[] = "/tmp/df-test-XXXXXX", below[64], longest[5000];
    int fd = mkstemp(file), id = attach(POINT);

    (void)state;
    assert_int_equal(try_attach(POINT), -EBUSY);
    assert_int_equal(try_attach(POINT "/./"), -EBUSY);
    assert_int_equal(try_attach("/x/.." POINT), -EBUSY);
    assert_int_equal(try_attach(""), -EINVAL);
    assert_int_equal(try_attach(NULL), -EINVAL);
    memset(longest, 'x', sizeof(longest) - 1);
    longest[0] = '/';
    longest[sizeof(longest) - 1] = '\0';
    assert_int_equal(try_attach(longest), -ENAMETOOLONG);
    snprintf(below, sizeof(below), "%s-directory", file);
    assert_int_equal(df_mount_detach(attach(below), 0), 0);
    assert_int_equal(df_mount_detach(attach(file), 0), 0); /* a root may be a file */
    assert_int_equal(df_mount_detach(id, 0), 0);
    close(fd);
    unlink(file);
}

static void takes_a_relative_mountpoint(void **state)
{
    char home[4096];
    int id;

    (void)state;
    assert_non_null(getcwd(home, sizeof(home)));
    assert_int_equal(chdir("/tmp"), 0);
    id = attach("df-test-relative");
    assert_true(exists("/tmp/df-test-relative"));
    assert_true(exists("df-test-relative"));
    assert_int_equal(chdir("/"), 0);
    assert_false(exists("df-test-relative"));
    assert_int_equal(chdir(home), 0);
    assert_int_equal(df_mount_detach(id, 0), 0);
}

static void each_mount_has_a_device(void **state)
{
    int a = attach(POINT), b = attach(POINT "-b");
    struct stat one, two;

    (void)state;
    assert_int_equal(df_call_fstatat(AT_FDCWD, POINT, &one, 0), 0);
    assert_int_equal(df_call_fstatat(AT_FDCWD, POINT "-b", &two, 0), 0);
    assert_true(one.st_dev != two.st_dev);
    assert_true(major(one.st_dev) >= 512); /* no kernel's */
    assert_true(one.st_dev <= UINT32_MAX);
    assert_int_equal(df_mount_detach(b, 0), 0);
    assert_int_equal(df_mount_detach(a, 0), 0);
}

static void holds_many(void **state)
{
    int ids[50];
    char path[64];

    (void)state;
    for (int i = 0; i < 50; i++) {
        snprintf(path, sizeof(path), POINT "/%d/x", i);
        ids[i] = attach(path);
    }
    for (int i = 0; i < 50; i++) {
        snprintf(path, sizeof(path), POINT "/%d/x", i);
        assert_true(exists(path));
        snprintf(path, sizeof(path), POINT "/%d", i);
        assert_false(exists(path));
        assert_int_equal(df_mount_detach(ids[i], 0), 0);
    }
    assert_int_equal(probe.destroyed, 50);
    assert_false(df_table_any());
}

/* ---- busy and lazy ---- */

static void open_files_keep_it(void **state)
{
    int id = attach(POINT), fd = df_call_openat(AT_FDCWD, POINT "/f", O_CREAT | O_RDWR, 0644);

    (void)state;
    assert_true(fd >= 0);
    assert_int_equal(df_mount_detach(id, 0), -EBUSY);
    assert_true(exists(POINT));
    assert_int_equal(df_mount_detach(id, DF_DETACH_LAZY), 0);
    assert_false(exists(POINT));
    assert_int_equal(df_mount_detach(id, DF_DETACH_LAZY), -EINVAL);
    assert_int_equal(probe.destroyed, 0);
    assert_int_equal(df_call_write(fd, "still", 5), 5);
    assert_int_equal(df_call_close(fd), 0);
    assert_int_equal(probe.destroyed, 1);
    df_mount_wait(id);
}

/* The place is free at once. */
static void a_detached_mount_makes_room(void **state)
{
    int old = attach(POINT), fd = df_call_openat(AT_FDCWD, POINT "/f", O_CREAT | O_RDWR, 0644);
    int id;

    (void)state;
    assert_int_equal(df_mount_detach(old, DF_DETACH_LAZY), 0);
    id = attach(POINT);
    assert_true(exists(POINT));
    assert_int_equal(df_call_openat(AT_FDCWD, POINT "/f", O_RDWR, 0), -ENOENT);
    assert_int_equal(df_call_close(fd), 0);
    assert_int_equal(probe.destroyed, 1);
    assert_int_equal(df_mount_detach(id, 0), 0);
}

/* ---- calls in flight ---- */

/* A file system whose getattr waits for the test, and may call back. */
struct slow {
    struct df_fs fs;
    struct df_ops ops;
    pthread_barrier_t inside, go_on;
    bool waits;
    int (*inside_op)(void);
    int result;
    _Atomic int destroyed;
};

static int slow_getattr(struct df_fs *fs, struct df_call *call, const struct df_where *where,
                        struct stat *st)
{
    struct slow *slow = (struct slow *)fs;

    (void)call, (void)where;
    memset(st, 0, sizeof(*st));
    st->st_mode = S_IFDIR | 0755;
    if (slow->inside_op)
        slow->result = slow->inside_op();
    if (slow->waits) {
        pthread_barrier_wait(&slow->inside);
        pthread_barrier_wait(&slow->go_on);
    }
    return 0;
}

static void slow_destroy(struct df_fs *fs)
{
    ((struct slow *)fs)->destroyed++;
}

static int attach_slow(struct slow *slow)
{
    struct df_ops given = {.version = DF_OPS_VERSION,
                           .size = sizeof(given),
                           .getattr = slow_getattr,
                           .destroy = slow_destroy};
    struct df_mount_spec spec = {.point = POINT "-slow"};
    struct df_mount *mount;

    assert_int_equal(df_ops_complete(&slow->ops, &given), 0);
    slow->fs.ops = &slow->ops;
    pthread_barrier_init(&slow->inside, NULL, 2);
    pthread_barrier_init(&slow->go_on, NULL, 2);
    assert_int_equal(df_mount_attach(&spec, &slow->fs, &mount), 0);
    return mount->id;
}

static void *stat_slow(void *arg)
{
    struct stat st;

    *(int *)arg = df_call_fstatat(AT_FDCWD, POINT "-slow", &st, 0);
    return NULL;
}

struct detaching {
    pthread_t thread;
    int id;
    int result;
};

static void *detach_it(void *arg)
{
    struct detaching *detaching = arg;

    detaching->result = df_mount_detach(detaching->id, 0);
    return NULL;
}

static bool is_closing(const struct df_mount *mount, void *arg)
{
    if (mount->id == *(int *)arg && atomic_load(&mount->live) == 0)
        *(int *)arg = 0;
    return true;
}

/* Until the other thread waits in df_mount_detach(). */
static void await_closing(int id)
{
    while (id != 0)
        df_mount_each(is_closing, &id);
}

static void waits_for_calls_in_flight(void **state)
{
    struct slow slow = {.waits = true};
    struct detaching detaching = {.id = attach_slow(&slow)};
    pthread_t thread, late;
    int result = -1, late_result = -1;

    (void)state;
    pthread_create(&thread, NULL, stat_slow, &result);
    pthread_barrier_wait(&slow.inside);
    pthread_create(&detaching.thread, NULL, detach_it, &detaching);
    await_closing(detaching.id);
    assert_int_equal(df_mount_detach(detaching.id, 0), -EBUSY); /* one is enough */
    pthread_create(&late, NULL, stat_slow, &late_result);       /* waits for the verdict */
    assert_int_equal(slow.destroyed, 0);
    slow.waits = false;
    pthread_barrier_wait(&slow.go_on);
    pthread_join(thread, NULL);
    pthread_join(detaching.thread, NULL);
    pthread_join(late, NULL);
    assert_int_equal(result, 0);
    assert_int_equal(detaching.result, 0);
    assert_int_equal(slow.destroyed, 1);
    assert_int_equal(late_result, DF_NOT_OURS);
}

static int detached_id;

static int detach_inside(void)
{
    return df_mount_detach(detached_id, 0);
}

static int detach_inside_lazily(void)
{
    return df_mount_detach(detached_id, DF_DETACH_LAZY);
}

static void a_call_of_its_own_cannot_wait_for_itself(void **state)
{
    struct slow slow = {.inside_op = detach_inside};
    int result;

    (void)state;
    detached_id = attach_slow(&slow);
    stat_slow(&result);
    assert_int_equal(result, 0);
    assert_int_equal(slow.result, -EBUSY);
    slow.inside_op = detach_inside_lazily;
    stat_slow(&result);
    assert_int_equal(result, 0);
    assert_int_equal(slow.result, 0);
    assert_int_equal(slow.destroyed, 1); /* when its call had ended */
}

static int stat_inside(void)
{
    struct stat st;

    return df_call_fstatat(AT_FDCWD, POINT, &st, 0);
}

/* A plugin may call df_* itself; only so deep. */
static int recurse(void)
{
    int result;

    stat_slow(&result);
    return result;
}

static void calls_nest(void **state)
{
    struct slow slow = {.inside_op = stat_inside};
    int id = attach(POINT), slow_id = attach_slow(&slow), result;

    (void)state;
    stat_slow(&result);
    assert_int_equal(result, 0);
    assert_int_equal(slow.result, 0);
    slow.inside_op = recurse;
    stat_slow(&result);
    assert_int_equal(result, 0);
    assert_int_equal(df_mount_detach(id, 0), 0);
    assert_int_equal(df_mount_detach(slow_id, 0), 0);
}

/* ---- wrapping ---- */

static struct df_fs wrapper;
static struct df_ops wrapper_ops;
static struct df_fs *wrapped;
static int wrapper_calls;

static int wrapper_getattr(struct df_fs *fs, struct df_call *call, const struct df_where *where,
                           struct stat *st)
{
    (void)fs;
    wrapper_calls++;
    return wrapped->ops->getattr(wrapped, call, where, st);
}

static void wrapper_destroy(struct df_fs *fs)
{
    (void)fs;
    wrapped->ops->destroy(wrapped);
}

static struct df_fs *wrap(struct df_fs *below, void *arg)
{
    struct df_ops given = {.version = DF_OPS_VERSION,
                           .size = sizeof(given),
                           .getattr = wrapper_getattr,
                           .destroy = wrapper_destroy};

    if (arg)
        return NULL;
    wrapped = below;
    df_ops_complete(&wrapper_ops, &given);
    wrapper.ops = &wrapper_ops;
    return &wrapper;
}

static void wraps_a_live_mount(void **state)
{
    int id = attach(POINT);

    (void)state;
    assert_int_equal(df_mount_wrap(id, wrap, &id), -ENOMEM);
    assert_int_equal(df_mount_wrap(id, wrap, NULL), 0);
    assert_true(exists(POINT));
    assert_int_equal(wrapper_calls, 1);
    assert_int_equal(df_mount_detach(id, 0), 0);
    assert_int_equal(probe.destroyed, 1);
    assert_int_equal(df_mount_wrap(id, wrap, NULL), -EINVAL);
}

/* ---- late completion ---- */

static void *complete(void *arg)
{
    df_call_complete(arg, -EIO);
    return NULL;
}

static pthread_t completer;

static int late_getattr(struct df_fs *fs, struct df_call *call, const struct df_where *where,
                        struct stat *st)
{
    (void)fs, (void)where, (void)st;
    return pthread_create(&completer, NULL, complete, call) == 0 ? DF_PENDING : -EAGAIN;
}

static void an_op_may_complete_late(void **state)
{
    struct slow slow = {0};
    int id = attach_slow(&slow), result;

    (void)state;
    slow.ops.getattr = late_getattr;
    for (int i = 0; i < 200; i++) {
        stat_slow(&result);
        assert_int_equal(result, -EIO);
        pthread_join(completer, NULL);
    }
    assert_int_equal(df_mount_detach(id, 0), 0);
}

/* ---- retired objects ---- */

static _Atomic int freed;

static void count_free(struct df_retired *retired)
{
    free(retired);
    freed++;
}

static bool is_counted(const struct df_retired *retired, const void *owner)
{
    return retired->free == count_free && owner == &freed;
}

static struct df_retired *new_retired(void)
{
    struct df_retired *retired = calloc(1, sizeof(*retired));

    assert_non_null(retired);
    return retired;
}

static void retire_one(void)
{
    df_gate_retire(new_retired(), count_free);
}

/* How many of a hundred are freed at once. */
static int retire_nodes(void)
{
    int before = freed;

    for (int i = 0; i < 100; i++)
        df_gate_retire_nodes(new_retired(), count_free, 1);
    return freed - before;
}

/* This thread is inside, with a hundred objects that wait for that to end. */
static struct df_thread *retire_inside(void)
{
    int error;
    struct df_thread *self = df_gate_enter(&error);

    freed = 0;
    for (int i = 0; i < 100; i++)
        retire_one();
    return self;
}

static void retired_objects_wait_for_readers(void **state)
{
    struct df_thread *self = retire_inside();

    (void)state;
    assert_int_equal(freed, 0);
    df_gate_leave(self);
    for (int i = 0; i < 100; i++)
        retire_one();
    assert_in_range(freed, 130, 200);
    df_gate_reclaim(is_counted, &freed);
    assert_int_equal(freed, 200);
}

static void their_owner_does_not_wait(void **state)
{
    struct df_thread *self = retire_inside();

    (void)state;
    df_gate_reclaim(is_counted, NULL); /* somebody else's */
    assert_int_equal(freed, 0);
    df_gate_reclaim(is_counted, &freed);
    assert_int_equal(freed, 100);
    df_gate_leave(self);
}

static void nodes_do_not_wait_for_who_rests(void **state)
{
    int error;
    struct df_thread *self = df_gate_enter(&error);

    (void)state;
    freed = 0;
    assert_int_equal(retire_nodes(), 0);
    df_gate_rest(self);
    assert_in_range(retire_nodes(), 130, 200); /* those before, too */
    for (int i = 0; i < 100; i++)
        retire_one(); /* what is no node waits */
    assert_in_range(freed, 130, 200);
    assert_ptr_equal(df_gate_enter(&error), self); /* a call within reads what it likes */
    df_gate_rest(self);
    assert_int_equal(retire_nodes(), 0);
    df_gate_rise(self);
    df_gate_leave(self);
    assert_in_range(retire_nodes(), 130, 200);
    df_gate_rise(self);
    assert_int_equal(retire_nodes(), 0);
    df_gate_leave(self);
    df_gate_reclaim(is_counted, &freed);
    assert_int_equal(freed, 600);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, setup)
    const struct CMUnitTest tests[] = {
        TEST(attaches_and_detaches),
        TEST(refuses_mountpoints),
        TEST(takes_a_relative_mountpoint),
        TEST(each_mount_has_a_device),
        TEST(holds_many),
        TEST(open_files_keep_it),
        TEST(a_detached_mount_makes_room),
        TEST(waits_for_calls_in_flight),
        TEST(a_call_of_its_own_cannot_wait_for_itself),
        TEST(calls_nest),
        TEST(wraps_a_live_mount),
        TEST(an_op_may_complete_late),
        TEST(retired_objects_wait_for_readers),
        TEST(their_owner_does_not_wait),
        TEST(nodes_do_not_wait_for_who_rests),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
