/*
 * test_highlevel_name.c - making, removing and moving names through the path lane.
 */
#include <semaphore.h>
#include <sys/stat.h>

#include "ram_rig.h"

static struct stat st;
static struct df_file file;

static void making_needs_a_free_name(void **state)
{
    (void)state;
    struct rig *rig = rig_default();

    assert_int_equal(rig_mkdir(rig, "/dir", 0755), -EEXIST);
    assert_int_equal(rig_mkdir(rig, "/", 0755), -EEXIST);
    assert_int_equal(rig_mkdir(rig, "/dir/..", 0755), -EEXIST);
    assert_int_equal(rig_mkdir(rig, "/none/x", 0755), -ENOENT);
    assert_int_equal(rig_mkdir(rig, "/dir/file/x", 0755), -ENOTDIR);
    assert_int_equal(rig_symlink(rig, "t", "/link"), -EEXIST); /* not followed */
    assert_int_equal(rig_symlink(rig, "t", "/s/"), -ENOENT);
    assert_int_equal(rig_mknod(rig, "/n/", S_IFIFO | 0600), -ENOENT);
    assert_int_equal(rig_link(rig, "/dir", "/l"), -EPERM);
    assert_int_equal(rig_link(rig, "/none", "/l"), -ENOENT);
    assert_int_equal(rig_link(rig, "/dir/file", "/link"), -EEXIST);
    assert_int_equal(rig->ram.count[RAM_MKDIR] + rig->ram.count[RAM_SYMLINK] +
                         rig->ram.count[RAM_MKNOD] + rig->ram.count[RAM_LINK],
                     0);
    rig_end(rig);
}

static void what_is_made_is_there(void **state)
{
    (void)state;
    struct rig *rig = rig_default();

    assert_int_equal(rig_stat(rig, "/new", &st), -ENOENT);
    assert_int_equal(rig_mkdir(rig, "/new/", 0777), 0);
    assert_int_equal(rig_stat(rig, "/new", &st), 0);
    assert_int_equal(st.st_mode, S_IFDIR | 0755);
    assert_int_equal(rig_symlink(rig, "../dir", "/new/s"), 0);
    assert_int_equal(rig_stat(rig, "/new/s/file", &st), 0);
    assert_int_equal(st.st_nlink, 1);
    assert_int_equal(rig_link(rig, "/dir/file", "/new/hard"), 0);
    rig_stat(rig, "/dir/file", &st);
    assert_int_equal(st.st_nlink, 2); /* the cached one was forgotten */
    assert_int_equal(rig_mknod(rig, "/new/pipe", S_IFIFO | 0666), 0);
    rig_stat(rig, "/new/pipe", &st);
    assert_int_equal(st.st_mode, S_IFIFO | 0644);
    rig_end(rig);
}

static void mknod_of_a_regular_file_prefers_create(void **state)
{
    (void)state;
    struct rig *rig = rig_default();

    assert_int_equal(rig_mknod(rig, "/m", S_IFREG | 0666), 0);
    assert_int_equal(rig_count(rig, RAM_CREATE), 1);
    assert_int_equal(rig_count(rig, RAM_RELEASE), 1);
    assert_int_equal(rig_count(rig, RAM_MKNOD), 0);
    rig_end(rig);
}

static void removing_knows_what_it_removes(void **state)
{
    (void)state;
    struct rig *rig = rig_default();

    assert_int_equal(rig_unlink(rig, "/dir"), -EISDIR);
    assert_int_equal(rig_rmdir(rig, "/dir/file"), -ENOTDIR);
    assert_int_equal(rig_unlink(rig, "/dir/file/"), -ENOTDIR);
    assert_int_equal(rig_unlink(rig, "/none"), -ENOENT);
    assert_int_equal(rig_rmdir(rig, "/"), -EBUSY);
    assert_int_equal(rig_unlink(rig, "/"), -EISDIR);
    assert_int_equal(rig_rmdir(rig, "/dir/.."), -ENOTEMPTY);
    assert_int_equal(rig->ram.count[RAM_UNLINK] + rig->ram.count[RAM_RMDIR], 0);
    assert_int_equal(rig_rmdir(rig, "/dir"), -ENOTEMPTY); /* the plugin's own word */
    assert_int_equal(rig_unlink(rig, "/link"), 0);        /* the link, not the directory */
    assert_int_equal(rig_rmdir(rig, "/dir/sub/"), 0);
    assert_int_equal(rig_stat(rig, "/dir/sub", &st), -ENOENT);
    rig_end(rig);
}

/* EAGAIN is no sign between the lane's own functions. */
static void a_plugin_that_says_to_try_again_is_asked_once(void **state)
{
    (void)state;
    struct rig *rig = rig_default();
    struct rig_where where;
    struct df_file dir;

    assert_int_equal(rig_open(rig, "/dir", O_RDONLY | O_DIRECTORY, 0, &dir), 0);
    rig->ram.fail_error[RAM_UNLINK] = -EAGAIN;
    rig_where(&where, &dir, "file", DF_WHERE_PARENT);
    assert_int_equal(rig->fs->ops->unlink(rig->fs, rig_call(rig), &where.where), -EAGAIN);
    assert_int_equal(rig_count(rig, RAM_UNLINK), 1);
    rig_close(rig, &dir);
    rig_end(rig);
}

static void a_sticky_directory_protects_its_files(void **state)
{
    (void)state;
    struct rig *rig = rig_new();

    rig->session.default_permissions = true;
    ram_find("/dir")->inode->st.st_mode = S_IFDIR | 01777;
    assert_int_equal(rig_start(rig), 0);
    rig->caller = (struct df_caller){.uid = 1000};
    assert_int_equal(rig_unlink(rig, "/dir/file"), -EPERM);
    assert_int_equal(rig_rename(rig, "/dir/file", "/dir/mine", 0), -EPERM);
    ram_find("/dir/file")->inode->st.st_uid = 1000;
    df_highlevel_invalidate(rig->fs, "/dir/file");
    assert_int_equal(rig_rename(rig, "/dir/file", "/dir/mine", 0), 0);
    assert_int_equal(rig_unlink(rig, "/dir/mine"), 0);
    rig_end(rig);
}

static void rename_refuses_in_linuxs_order(void **state)
{
    (void)state;
    struct rig *rig = rig_default();

    assert_int_equal(rig_rename(rig, "/none", "/x", 0), -ENOENT);
    assert_int_equal(rig_rename(rig, "/dir", "/dir/sub/x", 0), -EINVAL);
    assert_int_equal(rig_rename(rig, "/dir/sub", "/dir", 0), -ENOTEMPTY);
    assert_int_equal(rig_rename(rig, "/dir/file", "/dir/sub", 0), -EISDIR);
    assert_int_equal(rig_rename(rig, "/dir/sub", "/dir/file", 0), -ENOTDIR);
    assert_int_equal(rig_rename(rig, "/dir/file/", "/x", 0), -ENOTDIR);
    assert_int_equal(rig_rename(rig, "/dir/file", "/x/", 0), -ENOTDIR);
    assert_int_equal(rig_rename(rig, "/dir/file", "/fifo", RENAME_NOREPLACE), -EEXIST);
    assert_int_equal(rig_rename(rig, "/dir/file", "/none", RENAME_EXCHANGE), -ENOENT);
    assert_int_equal(rig_rename(rig, "/dir", "/dir/sub", RENAME_EXCHANGE), -EINVAL);
    assert_int_equal(rig_rename(rig, "/none", "/x", RENAME_WHITEOUT), -ENOENT);
    assert_int_equal(rig_rename(rig, "/", "/x", 0), -EBUSY);
    assert_int_equal(rig_rename(rig, "/dir/..", "/x", 0), -EBUSY);
    assert_int_equal(rig_rename(rig, "/dir/file", "/dir/file", 0), 0);
    assert_int_equal(rig_rename(rig, "/dir/file", "/dir/file", RENAME_NOREPLACE), -EEXIST);
    assert_int_equal(rig_count(rig, RAM_RENAME), 0);
    rig->ram.fail_error[RAM_RENAME] = -ENOSYS;
    assert_int_equal(rig_rename(rig, "/dir/file", "/x", RENAME_NOREPLACE), -EINVAL);
    assert_int_equal(rig_rename(rig, "/dir/file", "/x", 0), -ENOSYS);
    rig_end(rig);
}

static void a_directory_moves_with_its_slash(void **state)
{
    (void)state;
    struct rig *rig = rig_default();

    assert_int_equal(rig_rename(rig, "/dir/", "/x/", 0), 0);
    assert_int_equal(rig_stat(rig, "/x/file", &st), 0);
    assert_int_equal(rig_rename(rig, "/x", "/fifo", RENAME_EXCHANGE), 0);
    rig_stat(rig, "/fifo/file", &st);
    assert_int_equal(st.st_size, 10);
    rig_stat(rig, "/x", &st);
    assert_true(S_ISFIFO(st.st_mode));
    rig_end(rig);
}

static void a_refused_rename_changes_no_path(void **state)
{
    (void)state;
    struct rig *rig = rig_default();
    char byte;

    assert_int_equal(rig_open(rig, "/dir/file", O_RDONLY, 0, &file), 0);
    rig->ram.fail_error[RAM_RENAME] = -EXDEV;
    assert_int_equal(rig_rename(rig, "/dir", "/x", 0), -EXDEV);
    assert_int_equal(rig_pread(rig, &file, &byte, 1, 0), 1);
    assert_string_equal(rig->ram.last_path, "/dir/file");
    assert_int_equal(rig_unlink(rig, "/dir/file"), -EXDEV); /* hiding is a rename */
    rig->ram.fail_error[RAM_RENAME] = 0;
    rig_close(rig, &file);
    assert_int_equal(rig_stat(rig, "/dir/file", &st), 0);
    rig_end(rig);
}

static void long_paths_move_too(void **state)
{
    (void)state;
    struct rig *rig = rig_default();
    char deep[240] = "/dir/sub";
    char byte;

    for (int i = 0; i < 10; i++) {
        strcat(deep, "/abcdefghijklmnopqr");
        assert_int_equal(rig_mkdir(rig, deep, 0755), 0);
    }
    strcat(deep, "/f");
    assert_int_equal(rig_open(rig, deep, O_RDWR | O_CREAT, 0600, &file), 0);
    assert_int_equal(rig_rename(rig, "/dir/sub", "/dir/submarine", 0), 0);
    assert_int_equal(rig_pread(rig, &file, &byte, 1, 0), 0);
    assert_int_equal(strncmp(rig->ram.last_path, "/dir/submarine/abc", 18), 0);
    rig_close(rig, &file);
    rig_end(rig);
}

/* ---- threads: names move and files open, all at once ---- */

#define ROUNDS 400

struct mover {
    struct rig *rig;
    const char *from, *to;
};

static void *move_to_and_fro(void *arg)
{
    struct mover *mover = arg;
    struct rig *rig = mover->rig;
    struct df_call call = rig_own_call(rig);
    struct rig_where a, b;

    for (int i = 0; i < ROUNDS; i++) {
        rig->fs->ops->rename(rig->fs, &call, rig_where(&a, NULL, mover->from, DF_WHERE_PARENT),
                             rig_where(&b, NULL, mover->to, DF_WHERE_PARENT), 0);
        rig->fs->ops->rename(rig->fs, &call, rig_where(&a, NULL, mover->to, DF_WHERE_PARENT),
                             rig_where(&b, NULL, mover->from, DF_WHERE_PARENT), 0);
    }
    return NULL;
}

/* Whoever opened the file reads its bytes, wherever it is called to by then. */
static void *open_and_read(void *arg)
{
    struct rig *rig = arg;
    struct df_call call = rig_own_call(rig);
    struct rig_where where;
    char byte;
    struct iovec iov = {&byte, 1};

    for (int i = 0; i < ROUNDS; i++) {
        struct df_file opened;
        memset(&opened, 0, sizeof(opened));
        int result = rig->fs->ops->open(rig->fs, &call, rig_where(&where, NULL, "/dir/file", 0),
                                        &opened, O_RDONLY, 0);
        if (result)
            continue;
        if (rig->fs->ops->read(rig->fs, &call, &opened, &iov, 1, 3) != 1 || byte != '3')
            return "read something else";
        rig->fs->ops->release(rig->fs, &call, &opened);
    }
    return NULL;
}

/* A plugin that reads by path alone: a stale path would be found out. */
static int read_by_path(const char *path, char *buf, size_t size, off_t offset,
                        struct fuse_file_info *fi)
{
    fi->fh = 0;
    return ram_read(path, buf, size, offset, fi);
}

static void paths_stay_true_under_renames_of_other_threads(void **state)
{
    (void)state;
    struct rig *rig = rig_new();
    pthread_t threads[4];
    void *result;

    rig->ops.read = read_by_path;
    assert_int_equal(rig_start(rig), 0);
    struct mover movers[2] = {{rig, "/dir", "/elsewhere"}, {rig, "/dir/file", "/dir/sub/file"}};
    rig->ram.yields = true;
    for (int i = 0; i < 2; i++) {
        pthread_create(&threads[i], NULL, move_to_and_fro, &movers[i]);
        pthread_create(&threads[2 + i], NULL, open_and_read, rig);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], &result);
        assert_null(result);
    }
    rig->ram.yields = false;
    assert_int_equal(df_open_paths_count(&df_highlevel_of(rig->fs)->open_paths), 0);
    rig_end(rig);
}

static void *open_and_unlink(void *arg)
{
    struct rig *rig = arg;
    struct df_call call = rig_own_call(rig);
    struct rig_where where, parent;
    char byte;
    struct iovec iov = {&byte, 1};

    for (int i = 0; i < ROUNDS; i++) {
        struct df_file opened;
        memset(&opened, 0, sizeof(opened));
        if (rig->fs->ops->open(rig->fs, &call, rig_where(&where, NULL, "/dir/tmp", 0), &opened,
                               O_RDWR | O_CREAT, 0600))
            continue; /* EEXIST: another thread made it between lookup and create */
        rig->fs->ops->unlink(rig->fs, &call, rig_where(&parent, NULL, "/dir/tmp", DF_WHERE_PARENT));
        if (rig->fs->ops->read(rig->fs, &call, &opened, &iov, 1, 0) < 0)
            return "an open file was lost";
        rig->fs->ops->release(rig->fs, &call, &opened);
    }
    return NULL;
}

static void open_files_survive_unlinks_of_other_threads(void **state)
{
    (void)state;
    struct rig *rig = rig_new();
    pthread_t threads[3];
    void *result;

    rig->ops.read = read_by_path;
    assert_int_equal(rig_start(rig), 0);
    rig->ram.yields = true;
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, open_and_unlink, rig);
    for (int i = 0; i < 3; i++) {
        pthread_join(threads[i], &result);
        assert_null(result);
    }
    rig->ram.yields = false;
    for (int i = 0; i < RAM_NAMES; i++) /* no hidden file is left */
        assert_null(strstr(rig->ram.names[i].path, "hidden"));
    rig_end(rig);
}

/* A rename over an open file hides that first: for a moment the name is gone. Between the plugin's
 * two renames another thread looks at it and is told ENOENT. */
static sem_t told_absent;
static pthread_t looker;
static int looker_result;

static void *look_at_file(void *arg)
{
    struct rig *rig = arg;
    struct df_call call = rig_own_call(rig);
    struct rig_where where;
    struct stat seen;

    looker_result =
        rig->fs->ops->getattr(rig->fs, &call, rig_where(&where, NULL, "/dir/file", 0), &seen);
    return NULL;
}

static int getattr_and_tell(const char *path, struct stat *out, struct fuse_file_info *fi)
{
    int result = ram_getattr(path, out, fi);

    if (result == -ENOENT && path && strcmp(path, "/dir/file") == 0)
        sem_post(&told_absent);
    return result;
}

static int rename_and_be_seen(const char *from, const char *to, unsigned flags)
{
    if (strcmp(to, "/dir/file") == 0) {
        pthread_create(&looker, NULL, look_at_file, rig_here);
        sem_wait(&told_absent);
    }
    return ram_rename(from, to, flags);
}

static void a_name_that_is_replaced_is_always_there(void **state)
{
    (void)state;
    struct rig *rig = rig_new();

    sem_init(&told_absent, 0, 0);
    rig->config.entry_timeout = rig->config.attr_timeout = 0; /* ask each time */
    rig->ops.getattr = getattr_and_tell;
    rig->ops.rename = rename_and_be_seen;
    assert_int_equal(rig_start(rig), 0);
    assert_int_equal(rig_mknod(rig, "/dir/next", S_IFREG | 0600), 0);
    assert_int_equal(rig_open(rig, "/dir/file", O_RDONLY, 0, &file), 0);
    assert_int_equal(rig_rename(rig, "/dir/next", "/dir/file", 0), 0);
    pthread_join(looker, NULL);
    assert_int_equal(looker_result, 0);
    rig_close(rig, &file);
    rig_end(rig);
    sem_destroy(&told_absent);
}

/* Names relative to open directories, in opposite order, while those directories move. */
struct linker {
    struct rig *rig;
    struct df_file *from, *to;
};

static void *link_across(void *arg)
{
    struct linker *linker = arg;
    struct rig *rig = linker->rig;
    struct df_call call = rig_own_call(rig);
    struct rig_where a, b;

    for (int i = 0; i < ROUNDS; i++) {
        rig->fs->ops->link(rig->fs, &call, rig_where(&a, linker->from, "x", 0),
                           rig_where(&b, linker->to, "y", DF_WHERE_PARENT));
        rig->fs->ops->unlink(rig->fs, &call, rig_where(&b, linker->to, "y", DF_WHERE_PARENT));
        rig->fs->ops->rmdir(rig->fs, &call, rig_where(&b, linker->from, "../b", DF_WHERE_PARENT));
    }
    return NULL;
}

static void relative_names_and_renames_do_not_deadlock(void **state)
{
    (void)state;
    struct rig *rig = rig_default();
    struct df_file a, b;
    pthread_t threads[3];

    assert_int_equal(rig_mkdir(rig, "/a", 0755), 0);
    assert_int_equal(rig_mkdir(rig, "/a/b", 0755), 0);
    assert_int_equal(rig_mknod(rig, "/a/x", S_IFREG | 0600), 0);
    assert_int_equal(rig_mknod(rig, "/a/b/x", S_IFREG | 0600), 0);
    assert_int_equal(rig_open(rig, "/a", O_RDONLY, 0, &a), 0);
    assert_int_equal(rig_open(rig, "/a/b", O_RDONLY, 0, &b), 0);
    struct linker linkers[2] = {{rig, &a, &b}, {rig, &b, &a}};
    struct mover mover = {rig, "/a", "/z"};
    rig->ram.yields = true;
    pthread_create(&threads[0], NULL, link_across, &linkers[0]);
    pthread_create(&threads[1], NULL, link_across, &linkers[1]);
    pthread_create(&threads[2], NULL, move_to_and_fro, &mover);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    rig->ram.yields = false;
    rig_close(rig, &a);
    rig_close(rig, &b);
    rig_end(rig);
}

/* Opens by a name below an open directory that is being moved: the rename waits for whoever holds
 * the directory, and finds what was opened there. */
static void *open_below_and_read(void *arg)
{
    struct linker *opener = arg;
    struct rig *rig = opener->rig;
    struct df_call call = rig_own_call(rig);
    struct rig_where where;
    char byte;
    struct iovec iov = {&byte, 1};

    for (int i = 0; i < ROUNDS; i++) {
        struct df_file opened;
        memset(&opened, 0, sizeof(opened));
        if (rig->fs->ops->open(rig->fs, &call, rig_where(&where, opener->from, "file", 0), &opened,
                               O_RDONLY, 0))
            return "not found below its directory";
        if (rig->fs->ops->read(rig->fs, &call, &opened, &iov, 1, 3) != 1 || byte != '3')
            return "read something else";
        rig->fs->ops->release(rig->fs, &call, &opened);
    }
    return NULL;
}

static void what_is_opened_below_a_moving_directory_moves_with_it(void **state)
{
    (void)state;
    struct rig *rig = rig_new();
    struct df_file dir;
    pthread_t threads[3];
    void *result;

    rig->ops.read = read_by_path;
    assert_int_equal(rig_start(rig), 0);
    assert_int_equal(rig_open(rig, "/dir", O_RDONLY, 0, &dir), 0);
    struct linker opener = {rig, &dir, NULL};
    struct mover mover = {rig, "/dir", "/elsewhere"};
    rig->ram.yields = true;
    pthread_create(&threads[0], NULL, move_to_and_fro, &mover);
    for (int i = 1; i < 3; i++)
        pthread_create(&threads[i], NULL, open_below_and_read, &opener);
    pthread_join(threads[0], NULL);
    for (int i = 1; i < 3; i++) {
        pthread_join(threads[i], &result);
        assert_null(result);
    }
    rig->ram.yields = false;
    rig_close(rig, &dir);
    assert_int_equal(df_open_paths_count(&df_highlevel_of(rig->fs)->open_paths), 0);
    rig_end(rig);
}

static int watchdog(void **state)
{
    (void)state;
    alarm(100); /* a deadlock ends the program, not the day */
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(making_needs_a_free_name),
        cmocka_unit_test(what_is_made_is_there),
        cmocka_unit_test(mknod_of_a_regular_file_prefers_create),
        cmocka_unit_test(removing_knows_what_it_removes),
        cmocka_unit_test(a_plugin_that_says_to_try_again_is_asked_once),
        cmocka_unit_test(a_sticky_directory_protects_its_files),
        cmocka_unit_test(rename_refuses_in_linuxs_order),
        cmocka_unit_test(a_directory_moves_with_its_slash),
        cmocka_unit_test(a_refused_rename_changes_no_path),
        cmocka_unit_test(long_paths_move_too),
        cmocka_unit_test(paths_stay_true_under_renames_of_other_threads),
        cmocka_unit_test(open_files_survive_unlinks_of_other_threads),
        cmocka_unit_test(a_name_that_is_replaced_is_always_there),
        cmocka_unit_test(what_is_opened_below_a_moving_directory_moves_with_it),
        cmocka_unit_test(relative_names_and_renames_do_not_deadlock),
    };
    return cmocka_run_group_tests(tests, watchdog, NULL);
}
