/*
 * test_lowlevel_held.c - the file system holds requests of some threads while calls of others pass,
 * so that what is a race elsewhere (test_lowlevel_threads.c) takes its one course here.
 */
#include <sched.h>
#include <stdatomic.h>

#include "lowlevel/private.h"
#include "requests_route.h"

#define POINT "/df-requests"

/* ---- calls in threads of their own ---------------------------------------------------------- */

struct caller {
    int (*call)(void);
    int result, error;
    _Atomic bool done;
    pthread_t thread;
};

static void *run(void *arg)
{
    struct caller *caller = arg;

    errno = 0;
    caller->result = caller->call();
    caller->error = errno;
    caller->done = true;
    return NULL;
}

static void start(struct caller *caller, int (*call)(void))
{
    caller->call = call;
    caller->done = false;
    assert_int_equal(pthread_create(&caller->thread, NULL, run, caller), 0);
}

static int finish(struct caller *caller)
{
    pthread_join(caller->thread, NULL);
    errno = caller->error;
    return caller->result;
}

static void start_held(struct caller *caller, int (*call)(void), const char *request)
{
    traced_hold(fs, request);
    start(caller, call);
    traced_await_held(fs, request);
}

/* ---- the directory that is forgotten -------------------------------------------------------- */

static uint64_t number;
static struct df_node *node;
static int dir_fd;

static void make_dir(void)
{
    struct stat st;

    mount_options("rw");
    number = traced_make(fs, FUSE_ROOT_ID, "dir", S_IFDIR | 0755);
    assert_int_equal(number, 2);
    assert_int_equal(traced_make(fs, number, "child", S_IFDIR | 0755), 3);
    assert_int_equal(df_stat(POINT "/dir", &st), 0);
    node = df_node_find(&lane_of_mount()->nodes, number);
}

/* Until the call is over, or waits for who is in the directory, or the directory has no reference
 * left. */
static void settle(const struct caller *caller)
{
    while (!caller->done && !(node->lock.word & DF_NODE_LOCK_WAITERS) && node->refs > 0)
        sched_yield();
}

/* ---- forgetting does not wait --------------------------------------------------------------- */

static int open_child(void)
{
    return df_open(POINT "/dir/child", O_RDONLY | O_DIRECTORY, 0);
}

static int forget_dir(void)
{
    struct stat st;

    df_notify_prune(mounted, &number, 1);
    return df_stat(POINT, &st); /* evicts at its end */
}

static void forgetting_does_not_wait_for_a_request(void **state)
{
    struct caller opening, forgetting;
    bool waited;
    int fd;

    (void)state;
    make_dir();
    start_held(&opening, open_child, "LOOKUP 2/child");
    start(&forgetting, forget_dir);
    settle(&forgetting);
    waited = !forgetting.done;
    traced_let_go(fs, "LOOKUP 2/child");
    assert_int_equal(finish(&forgetting), 0);
    fd = finish(&opening);
    assert_true(fd >= 0);
    df_close(fd);
    assert_false(waited);
}

/* ---- a number has one node ------------------------------------------------------------------ */

static int rename_child(void)
{
    return df_renameat2(AT_FDCWD, POINT "/dir/child", AT_FDCWD, POINT "/a/sub/there",
                        RENAME_NOREPLACE);
}

static int exchange_child(void)
{
    return df_renameat2(AT_FDCWD, POINT "/dir/child", AT_FDCWD, POINT "/b/sub/above",
                        RENAME_EXCHANGE);
}

static int close_dir(void)
{
    return df_close(dir_fd);
}

static void make_places(void)
{
    uint64_t a = traced_make(fs, FUSE_ROOT_ID, "a", S_IFDIR | 0755);
    uint64_t b = traced_make(fs, FUSE_ROOT_ID, "b", S_IFDIR | 0755);

    assert_int_equal(a, 4);
    assert_int_equal(b, 5);
    traced_make(fs, traced_make(fs, a, "sub", S_IFDIR | 0755), "there", S_IFDIR | 0755);
    traced_make(fs, traced_make(fs, b, "sub", S_IFDIR | 0755), "above", S_IFDIR | 0755);
}

/* One LOOKUP that fails. */
static void lose_name_of_dir(void)
{
    struct stat st;

    df_notify_inval_entry(mounted, FUSE_ROOT_ID, "dir", 3);
    fs->fail_name = "LOOKUP";
    fs->fail_error = EIO;
    fails(df_stat(POINT "/dir", &st), EIO);
    fs->fail_name = NULL;
}

/*
 * Two renames have walked to /dir, whose name is lost then. The first one is in it, with a LOOKUP,
 * when the last file that is open of it is closed; then its name is looked up again. It moves, and
 * the second rename has to see where it is now.
 */
static void a_directory_in_use_keeps_its_node(void **state)
{
    struct caller first, second, closing;
    struct stat st;

    (void)state;
    make_dir();
    make_places();
    dir_fd = df_open(POINT "/dir", O_RDONLY | O_DIRECTORY, 0);
    start_held(&first, rename_child, "LOOKUP 4/sub");
    start_held(&second, exchange_child, "LOOKUP 5/sub");
    lose_name_of_dir();
    traced_hold(fs, "LOOKUP 2/child");
    traced_let_go(fs, "LOOKUP 4/sub");
    traced_await_held(fs, "LOOKUP 2/child");
    start(&closing, close_dir);
    settle(&closing);
    assert_int_equal(df_stat(POINT "/dir", &st), 0);
    traced_let_go(fs, "LOOKUP 2/child");
    fails(finish(&first), EEXIST);
    assert_int_equal(finish(&closing), 0);

    assert_int_equal(df_rename(POINT "/dir", POINT "/b/sub/above/dir"), 0);
    traced_let_go(fs, "LOOKUP 5/sub");
    fails(finish(&second), EINVAL);
}

/* ---- parents make no loop ------------------------------------------------------------------- */

static int rename_to_child(void)
{
    return df_rename(POINT "/a", POINT "/dir/child/a");
}

static int look_for_moved(void)
{
    struct stat st;

    return df_stat(POINT "/a/child", &st);
}

/* Somebody else moves the target's directory below what is renamed, and back: that is not followed
 * while the rename is under way. */
static void a_rename_that_is_overtaken_makes_no_loop(void **state)
{
    struct caller renaming, looking;

    (void)state;
    make_dir();
    make_places();
    node = lane_of_mount()->nodes.root;
    start_held(&renaming, rename_to_child, "RENAME 1/a 3/a");
    traced_move(fs, number, "child", 4);
    start(&looking, look_for_moved);
    settle(&looking);
    traced_move(fs, 4, "child", number);
    traced_let_go(fs, "RENAME 1/a 3/a");
    assert_int_equal(finish(&renaming), 0);
    fails(finish(&looking), ENOENT);
    assert_int_equal(df_rename(POINT "/b", POINT "/dir/child/a/b"), 0);
    fails(df_rename(POINT "/dir", POINT "/dir/child/a/b/dir"), EINVAL);
}

/* ---- a directory that turns up below another ------------------------------------------------- */

static int remove_moved(void)
{
    return df_rmdir(POINT "/b/a");
}

static int rename_across(void)
{
    return df_rename(POINT "/a/file", POINT "/b/file");
}

/* The parent of one of its two directories is locked, and locks it in its turn. */
static void a_rename_does_not_wait_for_what_waits_for_it(void **state)
{
    struct caller removing, renaming;
    struct stat st;

    (void)state;
    mount_options("rw");
    assert_int_equal(traced_make(fs, FUSE_ROOT_ID, "a", S_IFDIR | 0755), 2);
    assert_int_equal(traced_make(fs, FUSE_ROOT_ID, "b", S_IFDIR | 0755), 3);
    traced_make(fs, 2, "file", S_IFREG | 0644);
    traced_make(fs, 2, "other", S_IFREG | 0644);
    assert_int_equal(df_stat(POINT "/a", &st), 0);
    assert_int_equal(df_stat(POINT "/b", &st), 0);
    node = df_node_find(&lane_of_mount()->nodes, 3);
    start_held(&removing, remove_moved, "LOOKUP 3/a");
    start(&renaming, rename_across);
    settle(&renaming);
    traced_move(fs, FUSE_ROOT_ID, "a", 3);
    traced_let_go(fs, "LOOKUP 3/a");
    assert_int_equal(finish(&removing), -1);
    assert_true(errno == ENOTEMPTY || errno == ESTALE); /* it may be ahead of the rename, twice */
    assert_int_equal(finish(&renaming), 0);
}

/* ---- a target that changes while it is told -------------------------------------------------- */

static char target[16];

static int read_link(void)
{
    memset(target, 0, sizeof(target));
    return (int)df_readlink(POINT "/link", target, sizeof(target) - 1);
}

/* The answer stands for one that was on its way when the file system changed the target. */
static void a_target_that_was_told_too_late_is_not_kept(void **state)
{
    struct caller reading;

    (void)state;
    fs->want_on = FUSE_CAP_CACHE_SYMLINKS;
    mount_options("rw");
    assert_int_equal(traced_make(fs, FUSE_ROOT_ID, "link", S_IFLNK | 0777), 2);
    strcpy(fs->nodes[2].target, "old");
    start_held(&reading, read_link, "READLINK 2");
    assert_int_equal(df_notify_inval_inode(mounted, 2, 0, 0), 0);
    traced_let_go(fs, "READLINK 2");
    assert_int_equal(finish(&reading), 3);
    strcpy(fs->nodes[2].target, "new");
    assert_int_equal(read_link(), 3);
    assert_string_equal(target, "new");
    strcpy(fs->nodes[2].target, "never seen");
    assert_int_equal(read_link(), 3); /* that one is kept */
}

static int replace(void)
{
    return df_rename(POINT "/a/sub", POINT "/b/sub");
}

static int remove_below(void)
{
    return df_rmdir(POINT "/b/sub/a");
}

/* The directory that is replaced is locked, by who finds that of the rename below it. */
static void a_rename_waits_for_what_it_replaces_with_nothing_above_it(void **state)
{
    struct caller removing, replacing;
    struct stat st;

    (void)state;
    mount_options("rw");
    assert_int_equal(traced_make(fs, FUSE_ROOT_ID, "a", S_IFDIR | 0755), 2);
    assert_int_equal(traced_make(fs, FUSE_ROOT_ID, "b", S_IFDIR | 0755), 3);
    traced_make(fs, 2, "sub", S_IFDIR | 0755);
    assert_int_equal(traced_make(fs, 3, "sub", S_IFDIR | 0755), 5);
    assert_int_equal(df_stat(POINT "/a/sub", &st), 0);
    assert_int_equal(df_stat(POINT "/b/sub", &st), 0);
    node = df_node_find(&lane_of_mount()->nodes, 5);
    start_held(&removing, remove_below, "LOOKUP 5/a");
    start(&replacing, replace);
    settle(&replacing);
    traced_hold(fs, "RENAME 2/sub 3/sub");
    traced_move(fs, FUSE_ROOT_ID, "a", 5);
    traced_let_go(fs, "LOOKUP 5/a");
    traced_await_held(fs, "RENAME 2/sub 3/sub");
    traced_move(fs, 5, "a", FUSE_ROOT_ID);
    traced_let_go(fs, "RENAME 2/sub 3/sub");
    assert_int_equal(finish(&replacing), 0);
    fails(finish(&removing), ENOENT);
}

/* ---- what is told while an answer is on its way ---------------------------------------------- */

static int stat_child(void)
{
    struct stat st;

    return df_stat(POINT "/dir/child", &st);
}

static int make_child(void)
{
    return df_mkdir(POINT "/dir/child", 0755);
}

static int move_child(void)
{
    return df_rename(POINT "/dir/old", POINT "/dir/child");
}

static int list_dir(void)
{
    char buf[4096];
    int fd = df_open(POINT "/dir", O_RDONLY | O_DIRECTORY, 0);
    ssize_t size = df_getdents(fd, buf, sizeof(buf));

    df_close(fd);
    return size > 0 ? 0 : -1;
}

static void tell_of_child(void)
{
    df_notify_inval_entry(mounted, number, "child", 5);
}

static void tell_of_all(void)
{
    df_notify_increment_epoch(mounted);
}

/* The answer to `request` is of before what is told. */
static void check_told(int (*call)(void), const char *request, void (*tell)(void))
{
    struct caller caller;
    struct stat st;

    start_held(&caller, call, request);
    tell();
    traced_let_go(fs, request);
    assert_int_equal(finish(&caller), 0);
    assert_int_equal(df_stat(POINT "/dir", &st), 0);
    traced_log(fs, "");
    assert_int_equal(stat_child(), 0);
    asked("LOOKUP 2/child");
    assert_int_equal(stat_child(), 0);
    asked("");
}

static void what_is_told_of_a_name_ends_answers_on_their_way(void **state)
{
    (void)state;
    mount_options("rw");
    number = traced_make(fs, FUSE_ROOT_ID, "dir", S_IFDIR | 0755);
    check_told(make_child, "MKDIR 2/child 755", tell_of_child);
    check_told(list_dir, "READDIRPLUS 2 0", tell_of_child);
    df_notify_inval_entry(mounted, number, "child", 5);
    check_told(stat_child, "LOOKUP 2/child", tell_of_all);
    assert_int_equal(df_rename(POINT "/dir/child", POINT "/dir/old"), 0);
    check_told(move_child, "RENAME 2/old 2/child", tell_of_child);
}

/* ---- how long answers may be repeated ------------------------------------------------------- */

static uint64_t shortest(void)
{
    return lane_of_mount()->nodes.shortest;
}

/* The shortest time-out that was ever given is for whoever repeats answers: attr.c. */
static void every_answer_may_have_the_shortest_timeout(void **state)
{
    (void)state;
    make_dir();
    assert_int_equal(stat_child(), 0);
    fs->entry_timeout = 1000;
    df_notify_inval_entry(mounted, number, "child", 5);
    assert_int_equal(stat_child(), 0);
    assert_int_equal(shortest(), UINT64_C(1000000000000));
    fs->attr_timeout = 100;
    df_notify_inval_entry(mounted, number, "child", 5);
    assert_int_equal(stat_child(), 0);
    assert_int_equal(shortest(), UINT64_C(100000000000));
    fs->attr_timeout = 10;
    assert_int_equal(df_chmod(POINT "/dir/child", 0700), 0);
    assert_int_equal(shortest(), UINT64_C(10000000000));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        test(a_rename_that_is_overtaken_makes_no_loop),
        test(forgetting_does_not_wait_for_a_request),
        test(a_directory_in_use_keeps_its_node),
        test(a_rename_does_not_wait_for_what_waits_for_it),
        test(a_rename_waits_for_what_it_replaces_with_nothing_above_it),
        test(what_is_told_of_a_name_ends_answers_on_their_way),
        test(every_answer_may_have_the_shortest_timeout),
        test(a_target_that_was_told_too_late_is_not_kept),
    };

    return cmocka_run_group_tests(tests, can_mount, end_mounts);
}
