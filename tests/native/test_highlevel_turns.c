/*
 * test_highlevel_turns.c - the plugin never sees two changes of names in one directory at the same
 * time, nor a lookup or a listing beside one, and a name that two threads create is created once,
 * as behind the kernel's i_rwsem; nor two lookups or listings, as behind its fuse_lock_inode().
 */
#include <sched.h>

#include "ram_rig.h"

#define THREADS 4
#define ROUNDS  100
#define YIELDS  8 /* while an operation runs: others have the time to come in */

/* ---- a plugin that looks around ---- */

static const char *const directories[] = {"/dir", "/dir/sub"};
static _Atomic int changing[2], looking[2];
static _Atomic int overlaps; /* of a change with anything */
static _Atomic int beside;   /* of lookups and listings with each other */

/* Which of the directories a name is in, or is. */
static int index_of(const char *path, bool itself)
{
    size_t len = itself ? strlen(path) : (size_t)(strrchr(path, '/') - path);

    for (int i = 0; i < 2; i++)
        if (strlen(directories[i]) == len && memcmp(directories[i], path, len) == 0)
            return i;
    return -1;
}

static void come_in(int index, bool changes)
{
    if (index < 0)
        return;
    _Atomic int *mine = changes ? changing : looking, *others = changes ? looking : changing;
    if (atomic_fetch_add(&mine[index], 1) != 0)
        atomic_fetch_add(changes ? &overlaps : &beside, 1);
    if (atomic_load(&others[index]) != 0)
        atomic_fetch_add(&overlaps, 1);
    for (int i = 0; i < YIELDS; i++)
        sched_yield();
}

static void go_out(int index, bool changes)
{
    if (index >= 0)
        atomic_fetch_sub(changes ? &changing[index] : &looking[index], 1);
}

#define WATCHED_AS(index, changes, expression)                                                     \
    ({                                                                                             \
        int index_ = (index);                                                                      \
        come_in(index_, changes);                                                                  \
        int result_ = (expression);                                                                \
        go_out(index_, changes);                                                                   \
        result_;                                                                                   \
    })
#define WATCHED(index, expression) WATCHED_AS(index, true, expression)

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

/* Only of names that are never there: of others the kernel asks attributes without a lock. */
static int watched_getattr(const char *path, struct stat *st, struct fuse_file_info *fi)
{
    bool lookup = strstr(path, "/absent");
    return WATCHED_AS(lookup ? index_of(path, false) : -1, false, ram_ops.getattr(path, st, fi));
}

static int watched_readdir(const char *path, void *buf, fuse_fill_dir_t fill, off_t offset,
                           struct fuse_file_info *fi, enum fuse_readdir_flags flags)
{
    return WATCHED_AS(index_of(path, true), false,
                      ram_ops.readdir(path, buf, fill, offset, fi, flags));
}

static struct rig *watched_rig(void)
{
    struct rig *rig = rig_new();

    rig->ops.getattr = watched_getattr;
    rig->ops.readdir = watched_readdir;
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
    atomic_store(&beside, 0);
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

static void list(struct rig *rig, struct df_call *call, const char *path)
{
    char memory[4096];
    struct df_dirbuf buf = {.data = memory, .size = sizeof(memory)};
    struct df_file file;

    if (open_name(rig, call, path, O_RDONLY | O_DIRECTORY, &file) != 0)
        return;
    rig->fs->ops->readdir(rig->fs, call, &file, 0, &buf);
    rig->fs->ops->release(rig->fs, call, &file);
}

static int look_up(struct rig *rig, struct df_call *call, const char *path)
{
    struct rig_where where;
    struct stat st;

    return rig->fs->ops->getattr(rig->fs, call, rig_where(&where, NULL, path, 0), &st);
}

/* Every operation that changes names, over and over, on the few names that all threads share. */
static void *change_names(void *arg)
{
    struct rig *rig = arg;
    struct df_call call = rig_own_call(rig);
    const struct df_ops *ops = rig->fs->ops;
    struct rig_where a, b, up;

    for (int i = 0; i < ROUNDS; i++) {
        rig_where(&a, NULL, i % 2 ? "/dir/x" : "/dir/sub/x", DF_WHERE_PARENT);
        rig_where(&b, NULL, i % 2 ? "/dir/sub/x" : "/dir/x", DF_WHERE_PARENT);
        rig_where(&up, NULL, "/dir/sub", DF_WHERE_PARENT);
        create_and_close(rig, &call, a.name);
        look_up(rig, &call, i % 2 ? "/dir/absent" : "/dir/sub/absent");
        list(rig, &call, i % 2 ? "/dir/sub" : "/dir");
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

static void names_of_a_directory_are_looked_up_one_after_the_other(void **state)
{
    (void)state;
    struct rig *rig = watched_rig();

    assert_int_equal(rig_start(rig), 0);
    run(rig, change_names);
    assert_int_equal(atomic_load(&beside), 0);
    rig_end(rig);
}

static void parallel_lookups_are_kept_from_changes(void **state)
{
    (void)state;
    struct rig *rig = watched_rig();

    rig->want = FUSE_CAP_PARALLEL_DIROPS;
    assert_int_equal(rig_start(rig), 0);
    run(rig, change_names);
    assert_int_equal(atomic_load(&overlaps), 0);
    rig_end(rig);
}

static pthread_barrier_t meeting; /* of two, inside of the plugin */

static int meeting_getattr(const char *path, struct stat *st, struct fuse_file_info *fi)
{
    if (strstr(path, "/absent"))
        pthread_barrier_wait(&meeting);
    return ram_ops.getattr(path, st, fi);
}

static int meeting_readdir(const char *path, void *buf, fuse_fill_dir_t fill, off_t offset,
                           struct fuse_file_info *fi, enum fuse_readdir_flags flags)
{
    pthread_barrier_wait(&meeting);
    return ram_ops.readdir(path, buf, fill, offset, fi, flags);
}

static void *look_up_absent(void *arg)
{
    struct rig *rig = arg;
    struct df_call call = rig_own_call(rig);

    return look_up(rig, &call, "/dir/absent") == -ENOENT ? NULL : "found";
}

/* Would wait for ever if one of the two had to end first. */
static void parallel_lookups_and_listings_meet(void **state)
{
    (void)state;
    struct rig *rig = rig_new();
    pthread_t thread;
    void *result;

    rig->want = FUSE_CAP_PARALLEL_DIROPS;
    rig->ops.getattr = meeting_getattr;
    rig->ops.readdir = meeting_readdir;
    pthread_barrier_init(&meeting, NULL, 2);
    assert_int_equal(rig_start(rig), 0);
    pthread_create(&thread, NULL, look_up_absent, rig);
    list(rig, rig_call(rig), "/dir");
    pthread_join(thread, &result);
    assert_null(result);
    pthread_barrier_destroy(&meeting);
    rig_end(rig);
}

static int meeting_mkdir(const char *path, mode_t mode)
{
    pthread_barrier_wait(&meeting);
    pthread_barrier_wait(&meeting);
    return ram_ops.mkdir(path, mode);
}

static void *make_directory(void *arg)
{
    struct rig *rig = arg;
    struct df_call call = rig_own_call(rig);
    struct rig_where where;

    rig_where(&where, NULL, "/dir/new", DF_WHERE_PARENT);
    return rig->fs->ops->mkdir(rig->fs, &call, &where.where, 0700) ? "not made" : NULL;
}

/* As GETATTR, and LOOKUP of a dentry whose time is over: these take no i_rwsem. */
static void attributes_of_a_known_name_wait_for_no_change(void **state)
{
    (void)state;
    struct rig *rig = rig_new();
    pthread_t thread;
    struct stat st;
    void *result;

    rig->config.attr_timeout = 0;
    rig->ops.mkdir = meeting_mkdir;
    pthread_barrier_init(&meeting, NULL, 2);
    assert_int_equal(rig_start(rig), 0);
    assert_int_equal(rig_stat(rig, "/dir/file", &st), 0);
    pthread_create(&thread, NULL, make_directory, rig);
    pthread_barrier_wait(&meeting); /* mkdir has begun */
    rig_total(rig);
    assert_int_equal(rig_stat(rig, "/dir/file", &st), 0);
    assert_int_equal(rig_count(rig, RAM_GETATTR), 1);
    pthread_barrier_wait(&meeting); /* and may end */
    pthread_join(thread, &result);
    assert_null(result);
    pthread_barrier_destroy(&meeting);
    rig_end(rig);
}

/* A plugin that uses its own mount. */
static int nested_getattr(const char *path, struct stat *st, struct fuse_file_info *fi)
{
    struct df_call call = rig_own_call(rig_here);

    if (strcmp(path, "/dir/absent") == 0) {
        look_up(rig_here, &call, "/dir/other");
        list(rig_here, &call, "/dir");
        create_and_close(rig_here, &call, "/dir/made");
    }
    return ram_ops.getattr(path, st, fi);
}

static int nested_readdir(const char *path, void *buf, fuse_fill_dir_t fill, off_t offset,
                          struct fuse_file_info *fi, enum fuse_readdir_flags flags)
{
    struct df_call call = rig_own_call(rig_here);

    look_up(rig_here, &call, "/dir/more");
    create_and_close(rig_here, &call, "/dir/listed");
    return ram_ops.readdir(path, buf, fill, offset, fi, flags);
}

static void look_and_list_inside(bool serial)
{
    struct rig *rig = rig_new();
    struct stat st;

    rig->ops.getattr = nested_getattr;
    rig->ops.readdir = nested_readdir;
    rig->session.serial = serial;
    assert_int_equal(rig_start(rig), 0);
    assert_int_equal(rig_stat(rig, "/dir/absent", &st), -ENOENT);
    assert_int_equal(rig_stat(rig, "/dir/made", &st), 0);
    assert_int_equal(rig_stat(rig, "/dir/listed", &st), 0);
    rig->ram.nested = false; /* ram_table.h counts these as a fault of the lane */
    rig_end(rig);
}

static void plugin_may_look_and_list_inside_of_its_own_lookup(void **state)
{
    (void)state;
    look_and_list_inside(false);
}

static void plugin_of_one_operation_at_a_time_may_do_so_too(void **state)
{
    (void)state;
    look_and_list_inside(true);
}

/* ---- a directory that is removed ---- */

static int meeting_rmdir(const char *path)
{
    pthread_barrier_wait(&meeting);
    pthread_barrier_wait(&meeting);
    return ram_ops.rmdir(path);
}

static void *remove_sub(void *arg)
{
    struct rig *rig = arg;
    struct df_call call = rig_own_call(rig);
    struct rig_where where;

    rig_where(&where, NULL, "/dir/sub", DF_WHERE_PARENT);
    return rig->fs->ops->rmdir(rig->fs, &call, &where.where) ? "not removed" : NULL;
}

static void *make_in_sub(void *arg)
{
    struct rig *rig = arg;
    struct df_call call = rig_own_call(rig);
    struct rig_where where;

    rig_where(&where, NULL, "/dir/sub/new", DF_WHERE_PARENT);
    return rig->fs->ops->mkdir(rig->fs, &call, &where.where, 0700) == -ENOENT ? NULL : "made";
}

static void *create_in_sub(void *arg)
{
    struct rig *rig = arg;
    struct df_call call = rig_own_call(rig);
    struct df_file file;

    return open_name(rig, &call, "/dir/sub/new", O_RDWR | O_CREAT, &file) == -ENOENT ? NULL
                                                                                     : "made";
}

static void await_waiter(struct rig *rig, const char *directory)
{
    struct df_highlevel *hl = df_highlevel_of(rig->fs);
    struct df_path_hash key = df_entry_cache_key(&hl->cache, directory, strlen(directory));

    while (!atomic_load(&hl->turns.of[key.low % DF_NAME_TURNS].lock.writers))
        sched_yield();
}

/* Its thread has walked to the directory while that is there, and waits for its turn. */
static void make_while_removed(void *(*work)(void *), enum ram_op op)
{
    struct rig *rig = rig_new();
    pthread_t removing, making;
    void *removed, *made;
    struct stat st;

    rig->ops.rmdir = meeting_rmdir;
    pthread_barrier_init(&meeting, NULL, 2);
    assert_int_equal(rig_start(rig), 0);
    assert_int_equal(rig_stat(rig, "/dir/sub", &st), 0);
    pthread_create(&removing, NULL, remove_sub, rig);
    pthread_barrier_wait(&meeting); /* rmdir has begun */
    pthread_create(&making, NULL, work, rig);
    await_waiter(rig, "/dir/sub");
    pthread_barrier_wait(&meeting); /* and may end */
    pthread_join(removing, &removed);
    pthread_join(making, &made);
    assert_null(removed);
    assert_null(made);
    assert_int_equal(rig_count(rig, op), 0);
    pthread_barrier_destroy(&meeting);
    rig_end(rig);
}

static void nothing_is_made_in_a_removed_directory(void **state)
{
    (void)state;
    make_while_removed(make_in_sub, RAM_MKDIR);
}

static void nothing_is_created_in_a_removed_directory(void **state)
{
    (void)state;
    make_while_removed(create_in_sub, RAM_CREATE);
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
    struct df_call call = rig_own_call(rig);
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
        cmocka_unit_test(names_of_a_directory_are_looked_up_one_after_the_other),
        cmocka_unit_test(parallel_lookups_are_kept_from_changes),
        cmocka_unit_test(parallel_lookups_and_listings_meet),
        cmocka_unit_test(attributes_of_a_known_name_wait_for_no_change),
        cmocka_unit_test(plugin_may_look_and_list_inside_of_its_own_lookup),
        cmocka_unit_test(plugin_of_one_operation_at_a_time_may_do_so_too),
        cmocka_unit_test(nothing_is_made_in_a_removed_directory),
        cmocka_unit_test(nothing_is_created_in_a_removed_directory),
        cmocka_unit_test(exclusive_create_has_one_winner),
        cmocka_unit_test(create_makes_a_file_once_and_opens_it_for_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
