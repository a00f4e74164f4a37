/*
 * test_lowlevel_inside.c - a file system calls into its own mount inside of an operation: what
 * waits for the operation itself is refused with EDEADLK, and the rest is done. Behind the kernel
 * it would hang.
 */
#include <sched.h>

#include "lowlevel/private.h"
#include "requests_route.h"

#define POINT "/df-requests"

/* ---- calls, outside or inside ---------------------------------------------------------------- */

static int file, dir; /* /dir/file and /dir, open */

static int stat_path(const char *path)
{
    struct stat st;

    return df_stat(path, &st);
}

static int look_up(void)
{
    return stat_path(POINT "/dir/new");
}

static int look_up_other(void)
{
    return stat_path(POINT "/dir/other");
}

static int look_elsewhere(void)
{
    return stat_path(POINT "/aside/x");
}

static int make(void)
{
    return df_mkdir(POINT "/dir/made", 0755);
}

static int make_in_sub(void)
{
    return df_mkdir(POINT "/aside/sub/made", 0755);
}

static int drop(void)
{
    return df_unlink(POINT "/dir/old");
}

static int drop_sub(void)
{
    return df_rmdir(POINT "/aside/sub");
}

static int move(void)
{
    return df_rename(POINT "/dir/old", POINT "/aside/old");
}

static int replace_sub(void)
{
    return df_rename(POINT "/dir/sub", POINT "/aside/sub");
}

static int move_elsewhere(void)
{
    return df_rename(POINT "/b/x", POINT "/c/x");
}

static int write_it(void)
{
    return df_pwrite(file, "x", 1, 0) == 1 ? 0 : -1;
}

static int cut_it(void)
{
    return df_ftruncate(file, 5);
}

static int read_it(void)
{
    char byte;

    return df_pread(file, &byte, 1, 0) < 0 ? -1 : 0;
}

static int list_it(void)
{
    char buf[4096];
    ssize_t size = df_getdents(dir, buf, sizeof(buf));

    return size < 0 ? -1 : 0;
}

/* ---- each of them inside of another ---------------------------------------------------------- */

static const struct {
    int (*outside)(void);
    const char *request; /* of the outer call, in which the inner one is made */
    int (*inside)(void);
    int shared, alone; /* the inner call's error where lookups are parallel, and where not */
} cases[] = {
    {look_up, "LOOKUP", look_up_other, 0, EDEADLK},
    {look_up, "LOOKUP", make, EDEADLK, EDEADLK},
    {look_up, "LOOKUP", look_elsewhere, 0, 0},
    {list_it, "READDIR", look_up_other, 0, EDEADLK},
    {list_it, "READDIR", drop, EDEADLK, EDEADLK},
    {make, "MKDIR", look_up_other, EDEADLK, EDEADLK},
    {make, "MKDIR", list_it, EDEADLK, EDEADLK},
    {drop, "UNLINK", move, EDEADLK, EDEADLK},
    {drop, "UNLINK", write_it, 0, 0},
    {drop_sub, "RMDIR", make_in_sub, EDEADLK, EDEADLK},
    {move, "RENAME", move_elsewhere, EDEADLK, EDEADLK},
    {move, "RENAME", look_elsewhere, EDEADLK, EDEADLK},
    {replace_sub, "RENAME", make_in_sub, EDEADLK, EDEADLK},
    {write_it, "WRITE", write_it, EDEADLK, EDEADLK},
    {write_it, "WRITE", cut_it, EDEADLK, EDEADLK},
    {write_it, "WRITE", read_it, 0, 0},
    {write_it, "WRITE", make, 0, 0},
    {cut_it, "SETATTR", write_it, EDEADLK, EDEADLK},
};

static size_t number; /* of the case */
static int error;     /* of the inner call */

static void call_inside(void)
{
    errno = 0;
    error = cases[number].inside() < 0 ? errno : 0;
}

static void make_tree(void)
{
    static const char *const directories[] = {"dir", "aside", "b", "c"};

    for (uint64_t id = 2; id < 6; id++)
        assert_int_equal(traced_make(fs, FUSE_ROOT_ID, directories[id - 2], S_IFDIR | 0755), id);
    traced_make(fs, 2, "file", S_IFREG | 0644);
    traced_make(fs, 2, "old", S_IFREG | 0644);
    traced_make(fs, 2, "new", S_IFREG | 0644);
    traced_make(fs, 2, "other", S_IFREG | 0644);
    traced_make(fs, 2, "sub", S_IFDIR | 0755);
    traced_make(fs, 3, "sub", S_IFDIR | 0755);
    traced_make(fs, 3, "x", S_IFREG | 0644);
    traced_make(fs, 4, "x", S_IFREG | 0644);
}

static void check_case(unsigned want_off, int expected)
{
    assert_int_equal(new_fs(NULL), 0);
    fs->want_off = want_off | FUSE_CAP_READDIRPLUS;
    mount_options("rw");
    make_tree();
    file = df_open(POINT "/dir/file", O_RDWR, 0);
    dir = df_open(POINT "/dir", O_RDONLY | O_DIRECTORY, 0);
    assert_int_equal(df_access(POINT "/aside/sub", F_OK), 0);
    fs->inside = call_inside;
    fs->inside_of = cases[number].request;
    if (cases[number].outside() < 0)
        fail_msg("case %zu: the operation failed: %s", number, strerror(errno));
    if (fs->inside_of || error != expected)
        fail_msg("case %zu: %s", number, strerror(error));
    df_close(dir);
    df_close(file);
    assert_int_equal(end_fs(NULL), 0);
}

static void what_waits_for_the_operation_itself_is_refused(void **state)
{
    (void)state;
    for (number = 0; number < sizeof(cases) / sizeof(cases[0]); number++) {
        check_case(0, cases[number].shared);
        check_case(FUSE_CAP_PARALLEL_DIROPS, cases[number].alone);
    }
}

/* ---- one operation at a time -------------------------------------------------------------------
 */

static pthread_t thread;

static void *look_up_beside(void *arg)
{
    (void)arg;
    return look_up() == 0 ? NULL : "failed";
}

static void call_serially(void)
{
    struct df_node *node = df_node_find(&lane_of_mount()->nodes, 2);

    assert_int_equal(look_up_other(), 0);
    assert_int_equal(pthread_create(&thread, NULL, look_up_beside, NULL), 0);
    while (atomic_load(&node->lock.word) == 0)
        sched_yield();
    errno = 0;
    error = make() < 0 ? errno : 0;
}

/* Another thread is in the directory, and waits for the operation to end. */
static void who_keeps_all_others_waiting_waits_for_none(void **state)
{
    void *result;

    (void)state;
    mount_options("serial");
    make_tree();
    file = df_open(POINT "/dir/file", O_RDWR, 0);
    fs->inside = call_serially;
    fs->inside_of = "READ";
    assert_int_equal(read_it(), 0);
    assert_int_equal(error, EDEADLK);
    pthread_join(thread, &result);
    assert_null(result);
    df_close(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_waits_for_the_operation_itself_is_refused),
        test(who_keeps_all_others_waiting_waits_for_none),
    };
    return cmocka_run_group_tests(tests, can_mount, end_mounts);
}
