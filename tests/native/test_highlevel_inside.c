/*
 * test_highlevel_inside.c - a plugin calls into its own mount inside of an operation: what that
 * needs of the operation itself is refused with EDEADLK, and the rest is done. Behind the kernel
 * much of it would hang.
 */
#include <sched.h>

#include "ram_rig.h"

/* ---- a plugin that makes one call ---- */

static int (*inside)(struct rig *rig); /* the call; NULL: it was made */
static int answer;                     /* to that */
static struct df_file file, dir;       /* /dir/file and /dir, open */

static void go_inside(void)
{
    int (*call)(struct rig *) = inside;

    inside = NULL;
    if (call)
        answer = call(rig_here);
}

static int inside_read(const char *path, char *buf, size_t size, off_t offset,
                       struct fuse_file_info *fi)
{
    go_inside();
    return ram_ops.read(path, buf, size, offset, fi);
}

static int inside_write(const char *path, const char *buf, size_t size, off_t offset,
                        struct fuse_file_info *fi)
{
    go_inside();
    return ram_ops.write(path, buf, size, offset, fi);
}

static int inside_truncate(const char *path, off_t size, struct fuse_file_info *fi)
{
    go_inside();
    return ram_ops.truncate(path, size, fi);
}

static int inside_rename(const char *from, const char *to, unsigned flags)
{
    go_inside();
    return ram_ops.rename(from, to, flags);
}

static int inside_unlink(const char *path)
{
    go_inside();
    return ram_ops.unlink(path);
}

static int inside_readdir(const char *path, void *buf, fuse_fill_dir_t fill, off_t offset,
                          struct fuse_file_info *fi, enum fuse_readdir_flags flags)
{
    go_inside();
    return ram_ops.readdir(path, buf, fill, offset, fi, flags);
}

static struct rig *begin(void)
{
    struct rig *rig = rig_new();

    rig->ops.read = inside_read;
    rig->ops.read_buf = NULL;
    rig->ops.write = inside_write;
    rig->ops.write_buf = NULL;
    rig->ops.truncate = inside_truncate;
    rig->ops.rename = inside_rename;
    rig->ops.unlink = inside_unlink;
    rig->ops.readdir = inside_readdir;
    assert_int_equal(rig_start(rig), 0);
    assert_int_equal(rig_mknod(rig, "/dir/other", 0644), 0);
    assert_int_equal(rig_open(rig, "/dir/file", O_RDWR, 0, &file), 0);
    assert_int_equal(rig_open(rig, "/dir", O_RDONLY | O_DIRECTORY, 0, &dir), 0);
    return rig;
}

static void end(struct rig *rig)
{
    rig_close(rig, &dir);
    rig_close(rig, &file);
    rig_end(rig);
}

/* ---- calls, outside or inside ---- */

static int read_it(struct rig *rig)
{
    char byte;

    return (int)rig_pread(rig, &file, &byte, 1, 0);
}

static int write_it(struct rig *rig)
{
    return (int)rig_pwrite(rig, &file, "x", 1, 0);
}

static int set_size(struct rig *rig, struct df_file *base, const char *path)
{
    struct df_setattr set = {.valid = DF_SET_SIZE, .size = 5};

    return rig_set(rig, base, path, &set);
}

static int cut_it(struct rig *rig)
{
    return set_size(rig, NULL, "/dir/file");
}

static int cut_it_open(struct rig *rig)
{
    return set_size(rig, &file, "");
}

static int stat_it(struct rig *rig)
{
    struct stat st;

    return rig_fstat(rig, &file, &st);
}

static int open_and_close(struct rig *rig, const char *path)
{
    struct df_file opened;
    int result = rig_open(rig, path, O_RDWR, 0, &opened);

    if (result == 0)
        rig_close(rig, &opened);
    return result;
}

static int open_it(struct rig *rig)
{
    return open_and_close(rig, "/dir/file");
}

static int open_other(struct rig *rig)
{
    return open_and_close(rig, "/dir/other");
}

static int rename_it(struct rig *rig)
{
    return rig_rename(rig, "/dir/file", "/dir/to", 0);
}

static int rename_other(struct rig *rig)
{
    return rig_rename(rig, "/dir/other", "/dir/to", 0);
}

static int unlink_it(struct rig *rig)
{
    return rig_unlink(rig, "/dir/file");
}

static int unlink_other(struct rig *rig)
{
    return rig_unlink(rig, "/dir/other");
}

static int list_it(struct rig *rig)
{
    char names[512];

    return rig_list(rig, &dir, 0, sizeof(names), names, NULL);
}

/* ---- each of them inside of another ---- */

static const struct {
    int (*outside)(struct rig *rig), (*inside)(struct rig *rig);
    int expected;
} cases[] = {
    {rename_it, rename_other, -EDEADLK},
    {rename_it, unlink_it, -EDEADLK},
    {rename_it, open_it, -EDEADLK},
    {rename_it, open_other, 0},
    {rename_it, unlink_other, 0},
    {rename_it, write_it, 1},
    {rename_it, read_it, 1},
    {rename_it, stat_it, 0},
    {unlink_other, unlink_other, -EDEADLK},
    {unlink_other, rename_other, -EDEADLK},
    {unlink_other, open_other, -EDEADLK},
    {unlink_other, open_it, 0},
    {unlink_other, unlink_it, 0},
    {read_it, rename_it, -EDEADLK},
    {read_it, unlink_it, -EDEADLK},
    {read_it, rename_other, 0},
    {read_it, unlink_other, 0},
    {read_it, open_it, 0},
    {read_it, write_it, 1},
    {read_it, cut_it, 0},
    {write_it, write_it, -EDEADLK},
    {write_it, cut_it, -EDEADLK},
    {write_it, cut_it_open, -EDEADLK},
    {write_it, read_it, 1},
    {cut_it, write_it, -EDEADLK},
    {cut_it_open, write_it, -EDEADLK},
    {list_it, list_it, -EDEADLK},
    {list_it, open_other, 0},
};

static void what_needs_the_operation_itself_is_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct rig *rig = begin();

        inside = cases[i].inside;
        if (cases[i].outside(rig) < 0)
            fail_msg("case %zu: the operation failed", i);
        if (inside || answer != cases[i].expected)
            fail_msg("case %zu: %d", i, answer);
        end(rig);
    }
}

/* ---- beside somebody else ---------------------------------------------------------------------
 */

static void *rename_beside(void *arg)
{
    struct rig *rig = arg;
    struct df_call call = {.mount = &rig->mount, .caller = &rig->caller};
    struct rig_where from, to;

    rig_where(&from, NULL, "/dir/file", DF_WHERE_PARENT);
    rig_where(&to, NULL, "/dir/to", DF_WHERE_PARENT);
    return rig->fs->ops->rename(rig->fs, &call, &from.where, &to.where, 0) == 0 ? NULL : "failed";
}

static pthread_t thread;

/* With a rename under way that waits for the operation which this is in. */
static int rename_other_beside(struct rig *rig)
{
    struct df_open_path *node = df_handle_of(&file)->node;

    assert_int_equal(pthread_create(&thread, NULL, rename_beside, rig), 0);
    while (atomic_load(&node->lock.writers) == 0)
        sched_yield();
    return rename_other(rig);
}

static void a_rename_that_waits_for_the_operation_is_not_waited_for(void **state)
{
    (void)state;
    struct rig *rig = begin();
    void *result;

    inside = rename_other_beside;
    assert_int_equal(read_it(rig), 1);
    assert_int_equal(answer, -EDEADLK);
    pthread_join(thread, &result);
    assert_null(result);
    end(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_needs_the_operation_itself_is_refused),
        cmocka_unit_test(a_rename_that_waits_for_the_operation_is_not_waited_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
