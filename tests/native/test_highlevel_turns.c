/*
 * test_highlevel_turns.c - the plugin never sees two changes of names in one directory at the same
 * time, and a name that two threads create is created once, as behind the kernel's i_rwsem.
 */
#include <sched.h>

#include "ram_rig.h"

#define THREADS 4
#define ROUNDS  100
#define YIELDS  8 /* while an operation runs: others have the time to come in */

/* ---- a plugin that looks around ---- */

static const char *const directories[] = {"/dir", "/dir/sub"};
static _Atomic int inside[2];
static _Atomic int overlaps;

/* Which of the directories a name is in, or is. */
static int index_of(const char *path, bool itself)
{
    size_t len = itself ? strlen(path) : (size_t)(strrchr(path, '/') - path);

    for (int i = 0; i < 2; i++)
        if (strlen(directories[i]) == len && memcmp(directories[i], path, len) == 0)
            return i;
    return -1;
}

static void come_in(int index)
{
    if (index < 0)
        return;
    if (atomic_fetch_add(&inside[index], 1) != 0)
        atomic_fetch_add(&overlaps, 1);
    for (int i = 0; i < YIELDS; i++)
        sched_yield();
}

static void go_out(int index)
{
    if (index >= 0)
        atomic_fetch_sub(&inside[index], 1);
}

#define WATCHED(index, expression)                                                                 \
    ({                                                                                             \
        int index_ = (index);                                                                      \
        come_in(index_);                                                                           \
        int result_ = (expression);                                                                \
        go_out(index_);                                                                            \
        result_;                                                                                   \
    })

static int watched_create(const char *path, mode_t mode, struct fuse_file_info *fi)
{
    return WATCHED(index_of(path, false), ram_ops.create(path, mode, fi));
}

static int watched_mknod(const char *path, mode_t mode, dev_t rdev)
{
    return WATCHED(index_of(path, false), ram_ops.mknod(path, mode, rdev));
}

static int watched_mkdir(const char *path, mode_t mode)
{
    return WATCHED(index_of(path, false), ram_ops.mkdir(path, mode));
}

static int watched_symlink(const char *target, const char *path)
{
    return WATCHED(index_of(path, false), ram_ops.symlink(target, path));
}

static int watched_link(const char *from, const char *to)
{
    return WATCHED(index_of(to, false), ram_ops.link(from, to));
}

static int watched_unlink(const char *path)
{
    return WATCHED(index_of(path, false), ram_ops.unlink(path));
}

/* A directory that goes has its turn, too. */
static int watched_rmdir(const char *path)
{
    return WATCHED(index_of(path, true), WATCHED(index_of(path, false), ram_ops.rmdir(path)));
}

static int watched_rename(const char *from, const char *to, unsigned flags)
{
    int a = index_of(from, false), b = index_of(to, false);
    return WATCHED(a, WATCHED(b == a ? -1 : b, ram_ops.rename(from, to, flags)));
}

static struct rig *watched_rig(void)
{
    struct rig *rig = rig_new();

    rig->ops.create = watched_create;
    rig->ops.mknod = watched_mknod;
    rig->ops.mkdir = watched_mkdir;
    rig->ops.symlink = watched_symlink;
    rig->ops.link = watched_link;
    rig->ops.unlink = watched_unlink;
    rig->ops.rmdir = watched_rmdir;
    rig->ops.rename = watched_rename;
    rig->config.hard_remove =
        1; /* hidden files go with a close, which has no turn in Linux either */
    rig->ram.yields = true;
    atomic_store(&overlaps, 0);
    return rig;
}

static void run(struct rig *rig, void *(*work)(void *))
{
    pthread_t threads[THREADS];
    void *result;

    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, work, rig);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], &result);
        assert_null(result);
    }
}

/* ---- what the threads do ---- */

static int open_name(struct rig *rig, struct df_call *call, const char *path, int flags,
                     struct df_file *file)
{
    struct rig_where where;

    memset(file, 0, sizeof(*file));
    atomic_init(&file->flags, flags & O_ACCMODE);
    return rig->fs->ops->open(rig->fs, call, rig_where(&where, NULL, path, 0), file, flags, 0600);
}

static void create_and_close(struct rig *rig, struct df_call *call, const char *path)
{
    struct df_file file;

    if (open_name(rig, call, path, O_RDWR | O_CREAT, &file) == 0)
        rig->fs->ops->release(rig->fs, call, &file);
}

/* Every operation that changes names, over and over, on the few names that all threads share. */
static void *change_names(void *arg)
{
    struct rig *rig = arg;
    struct df_call call = {.mount = &rig->mount, .caller = &rig->caller};
    const struct df_ops *ops = rig->fs->ops;
    struct rig_where a, b, up;

    for (int i = 0; i < ROUNDS; i++) {
        rig_where(&a, NULL, i % 2 ? "/dir/x" : "/dir/sub/x", DF_WHERE_PARENT);
        rig_where(&b, NULL, i % 2 ? "/dir/sub/x" : "/dir/x", DF_WHERE_PARENT);
        rig_where(&up, NULL, "/dir/sub", DF_WHERE_PARENT);
        create_and_close(rig, &call, a.name);
        ops->rename(rig->fs, &call, &a.where, &b.where, 0);
        ops->mkdir(rig->fs, &call, &up.where, 0700);
        ops->symlink(rig->fs, &call, "file", &a.where);
        ops->link(rig->fs, &call, &b.where, &a.where);
        ops->unlink(rig->fs, &call, &a.where);
        ops->mknod(rig->fs, &call, &a.where, S_IFREG | 0600, 0);
        ops->unlink(rig->fs, &call, &b.where);
        ops->unlink(rig->fs, &call, &a.where);
        ops->rmdir(rig->fs, &call, &up.where);
    }
    return NULL;
}

static void names_of_a_directory_change_one_after_the_other(void **state)
{
    (void)state;
    struct rig *rig = watched_rig();

    assert_int_equal(rig_start(rig), 0);
    run(rig, change_names);
    assert_int_equal(atomic_load(&overlaps), 0);
    rig_end(rig);
}

static _Atomic int created, winners;

/* As SFTP: it makes the file, or finds it. */
static int create_or_find(const char *path, mode_t mode, struct fuse_file_info *fi)
{
    atomic_fetch_add(&created, 1);
    for (int i = 0; i < YIELDS; i++)
        sched_yield();
    fi->flags &= ~O_EXCL;
    return ram_ops.create(path, mode, fi);
}

static pthread_barrier_t together;
static int how; /* O_EXCL or 0 */

static void *create_at_once(void *arg)
{
    struct rig *rig = arg;
    struct df_call call = {.mount = &rig->mount, .caller = &rig->caller};
    struct rig_where where;
    struct df_file file;

    for (int i = 0; i < ROUNDS; i++) {
        pthread_barrier_wait(&together);
        int result = open_name(rig, &call, "/dir/new", O_RDWR | O_CREAT | how, &file);
        if (result == 0) {
            atomic_fetch_add(&winners, 1);
            rig->fs->ops->release(rig->fs, &call, &file);
        } else if (!how || result != -EEXIST) {
            return "something else went wrong";
        }
        if (pthread_barrier_wait(&together) == PTHREAD_BARRIER_SERIAL_THREAD)
            rig->fs->ops->unlink(rig->fs, &call, rig_where(&where, NULL, "/dir/new", 0));
    }
    return NULL;
}

static void create_everywhere(int flags, int winners_expected)
{
    struct rig *rig = watched_rig();

    how = flags;
    rig->ops.create = create_or_find;
    atomic_store(&created, 0);
    atomic_store(&winners, 0);
    pthread_barrier_init(&together, NULL, THREADS);
    assert_int_equal(rig_start(rig), 0);
    run(rig, create_at_once);
    assert_int_equal(atomic_load(&created), ROUNDS);
    assert_int_equal(atomic_load(&winners), winners_expected);
    pthread_barrier_destroy(&together);
    rig_end(rig);
}

static void exclusive_create_has_one_winner(void **state)
{
    (void)state;
    create_everywhere(O_EXCL, ROUNDS);
}

static void create_makes_a_file_once_and_opens_it_for_all(void **state)
{
    (void)state;
    create_everywhere(0, ROUNDS * THREADS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_of_a_directory_change_one_after_the_other),
        cmocka_unit_test(exclusive_create_has_one_winner),
        cmocka_unit_test(create_makes_a_file_once_and_opens_it_for_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
