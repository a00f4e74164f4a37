/*
 * test_highlevel_open.c - opening, creating, closing through the path lane: flags as the plugin
 * sees them, ENOSYS that is remembered, files that lose their name while open.
 */
#include <malloc.h>

#include "ram_rig.h"

static struct stat st;
static struct df_file file, other;

static void flags_reach_the_plugin_as_from_the_kernel(void **state)
{
    (void)state;
    struct rig *rig = rig_default();

    assert_int_equal(rig_open(rig, "/dir/file", O_RDWR | O_CREAT | O_NOCTTY | O_APPEND, 0, &file),
                     0);
    assert_int_equal(rig->ram.shown.flags, O_RDWR | O_APPEND);
    assert_int_equal(rig_count(rig, RAM_CREATE), 0);
    assert_int_equal(file.kind, DF_KIND_REGULAR);
    rig_fstat(rig, &file, &st);
    assert_true(file.ino == st.st_ino);
    rig_close(rig, &file);
    assert_int_equal(rig->ram.shown.flags, O_RDWR | O_APPEND); /* release: the same */
    rig_end(rig);
}

static void a_warm_open_is_one_call(void **state)
{
    (void)state;
    struct rig *rig = rig_default();

    rig_stat(rig, "/dir/file", &st);
    rig_total(rig);
    assert_int_equal(rig_open(rig, "/dir/file", O_RDONLY, 0, &file), 0);
    assert_int_equal(rig_count(rig, RAM_OPEN), 1);
    assert_int_equal(rig_total(rig), 1);
    rig_close(rig, &file);
    assert_int_equal(rig_count(rig, RAM_FLUSH), 1);
    assert_int_equal(rig_count(rig, RAM_RELEASE), 1);
    rig_end(rig);
}

static void truncation_goes_with_the_flag_or_behind_the_open(void **state)
{
    (void)state;
    struct rig *rig = rig_default();

    assert_int_equal(rig_open(rig, "/dir/file", O_WRONLY | O_TRUNC, 0, &file), 0);
    assert_int_equal(rig->ram.shown.flags, O_WRONLY | O_TRUNC);
    assert_int_equal(rig_count(rig, RAM_TRUNCATE), 0);
    assert_int_equal(rig_fstat(rig, &file, &st), 0);
    assert_int_equal(st.st_size, 0);
    rig_close(rig, &file);
    rig_end(rig);

    rig = rig_new();
    rig->drop = FUSE_CAP_ATOMIC_O_TRUNC;
    assert_int_equal(rig_start(rig), 0);
    assert_int_equal(rig_open(rig, "/dir/file", O_WRONLY | O_TRUNC, 0, &file), 0);
    assert_int_equal(rig->ram.shown.flags, O_WRONLY);
    assert_int_equal(rig_count(rig, RAM_TRUNCATE), 1);
    rig_close(rig, &file);
    rig->ram.fail_error[RAM_TRUNCATE] = -EDQUOT;
    assert_int_equal(rig_open(rig, "/dir/file", O_WRONLY | O_TRUNC, 0, &file), -EDQUOT);
    assert_int_equal(rig_count(rig, RAM_RELEASE), 2); /* what was opened is released */
    rig_end(rig);
}

static void a_file_is_created_behind_a_negative_lookup(void **state)
{
    (void)state;
    struct rig *rig = rig_default();

    rig_stat(rig, "/dir", &st);
    rig_total(rig);
    assert_int_equal(rig_open(rig, "/dir/new", O_RDWR | O_CREAT, 0666, &file), 0);
    assert_int_equal(rig_count(rig, RAM_GETATTR), 2); /* the lookup, and what was made */
    assert_int_equal(rig_count(rig, RAM_CREATE), 1);
    assert_int_equal(rig_count(rig, RAM_OPEN), 0);
    assert_int_equal(rig_stat(rig, "/dir/new", &st), 0);
    assert_int_equal(st.st_mode, S_IFREG | 0644); /* umask 022 */
    assert_int_equal(rig_open(rig, "/dir/new", O_RDWR | O_CREAT | O_EXCL, 0666, &other), -EEXIST);
    rig_close(rig, &file);
    assert_int_equal(rig_open(rig, "/none/new", O_RDWR | O_CREAT, 0666, &file), -ENOENT);
    assert_int_equal(rig_open(rig, "/dir/x/", O_RDWR | O_CREAT, 0666, &file), -EISDIR);
    rig_end(rig);
}

static void creation_follows_a_dangling_link_unless_exclusive(void **state)
{
    (void)state;
    struct rig *rig = rig_default();

    assert_int_equal(rig_symlink(rig, "dir/fresh", "/dangling"), 0);
    assert_int_equal(rig_open(rig, "/dangling", O_WRONLY | O_CREAT | O_EXCL, 0600, &file), -EEXIST);
    assert_int_equal(rig_open(rig, "/dangling", O_WRONLY | O_CREAT, 0600, &file), 0);
    assert_int_equal(rig_lstat(rig, "/dir/fresh", &st), 0);
    assert_true(S_ISREG(st.st_mode));
    rig_close(rig, &file);
    rig_end(rig);
}

static void without_create_it_is_mknod_and_open(void **state)
{
    (void)state;
    struct rig *rig = rig_new();

    rig->ram.fail_error[RAM_CREATE] = -ENOSYS;
    assert_int_equal(rig_start(rig), 0);
    for (int i = 0; i < 2; i++) {
        char path[] = "/dir/newN";
        path[8] = (char)('0' + i);
        assert_int_equal(rig_open(rig, path, O_RDWR | O_CREAT, 0666, &file), 0);
        assert_int_equal(rig_count(rig, RAM_MKNOD), 1);
        assert_int_equal(rig_count(rig, RAM_OPEN), 1);
        rig_close(rig, &file);
    }
    assert_int_equal(rig_count(rig, RAM_CREATE), 1); /* asked once */
    rig_end(rig);
}

static void dont_mask_leaves_the_mode_to_the_plugin(void **state)
{
    (void)state;
    struct rig *rig = rig_new();

    rig->want = FUSE_CAP_DONT_MASK;
    assert_int_equal(rig_start(rig), 0);
    assert_int_equal(rig_mkdir(rig, "/d", 0777), 0);
    assert_int_equal(rig->ram.context.umask, 022);
    rig_stat(rig, "/d", &st);
    assert_int_equal(st.st_mode, S_IFDIR | 0777);
    rig_end(rig);
}

static void enosys_of_open_means_no_handle(void **state)
{
    (void)state;
    struct rig *rig = rig_new();
    char buf[4];

    rig->ram.fail_error[RAM_OPEN] = rig->ram.fail_error[RAM_OPENDIR] = -ENOSYS;
    assert_int_equal(rig_start(rig), 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(rig_open(rig, "/dir/file", O_RDWR, 0, &file), 0);
        assert_int_equal(rig_pread(rig, &file, buf, 4, 2), 4);
        assert_memory_equal(buf, "2345", 4);
        assert_int_equal(rig_fstat(rig, &file, &st), 0);
        rig_close(rig, &file);
        assert_int_equal(rig_open(rig, "/dir", O_RDONLY, 0, &file), 0);
        rig_close(rig, &file);
    }
    assert_int_equal(rig_count(rig, RAM_OPEN), 1);
    assert_int_equal(rig_count(rig, RAM_OPENDIR), 1);
    assert_int_equal(rig_count(rig, RAM_RELEASE), 0);
    assert_int_equal(rig_count(rig, RAM_RELEASEDIR), 0);
    rig_end(rig);
}

static void without_open_release_is_still_due(void **state)
{
    (void)state;
    struct rig *rig = rig_new();

    rig->ops.open = NULL;
    assert_int_equal(rig_start(rig), 0);
    assert_int_equal(rig_open(rig, "/dir/file", O_RDONLY, 0, &file), 0);
    assert_int_equal(rig_fstat(rig, &file, &st), 0); /* by path: nobody made a handle */
    rig_close(rig, &file);
    assert_int_equal(rig_count(rig, RAM_RELEASE), 1);
    rig_end(rig);
}

static void types_are_known_before_the_plugin_is_asked(void **state)
{
    (void)state;
    struct rig *rig = rig_default();

    assert_int_equal(rig_open(rig, "/fifo", O_RDONLY, 0, &file), -ENXIO);
    assert_int_equal(rig_open(rig, "/dir", O_WRONLY, 0, &file), -EISDIR);
    assert_int_equal(rig_open(rig, "/dir", O_RDONLY | O_TRUNC, 0, &file), -EISDIR);
    assert_int_equal(rig_open(rig, "/dir", O_RDONLY | O_CREAT, 0, &file), -EISDIR);
    assert_int_equal(rig_open(rig, "/dir/file", O_RDONLY | O_DIRECTORY, 0, &file), -ENOTDIR);
    assert_int_equal(rig_open(rig, "/link", O_RDONLY | O_NOFOLLOW, 0, &file), -ELOOP);
    assert_int_equal(rig_open(rig, "/link", O_RDONLY | O_NOFOLLOW | O_DIRECTORY, 0, &file),
                     -ENOTDIR);
    assert_int_equal(rig_count(rig, RAM_OPEN), 0);
    assert_int_equal(rig_count(rig, RAM_OPENDIR), 0);
    rig_end(rig);
}

static void o_path_asks_for_nothing_and_names_what_it_opened(void **state)
{
    (void)state;
    struct rig *rig = rig_default();

    assert_int_equal(rig_open(rig, "/link", O_PATH | O_NOFOLLOW, 0, &file), 0);
    assert_int_equal(file.kind, DF_KIND_OTHER);
    assert_int_equal(rig_fstat(rig, &file, &st), 0);
    assert_true(S_ISLNK(st.st_mode));
    rig_close(rig, &file);
    assert_int_equal(rig_open(rig, "/dir/file", O_PATH, 0, &file), 0);
    assert_int_equal(rig_rename(rig, "/dir/file", "/moved", 0), 0);
    assert_int_equal(rig_fstat(rig, &file, &st), 0);
    assert_int_equal(st.st_size, 10);
    rig_close(rig, &file);
    assert_int_equal(rig_count(rig, RAM_OPEN), 0);
    assert_int_equal(rig_count(rig, RAM_FLUSH), 0);
    assert_int_equal(rig_count(rig, RAM_RELEASE), 0);
    rig_end(rig);
}

static void o_noatime_is_for_owners(void **state)
{
    (void)state;
    struct rig *rig = rig_default();

    rig->caller = (struct df_caller){.uid = 1000};
    assert_int_equal(rig_open(rig, "/dir/file", O_RDONLY | O_NOATIME, 0, &file), -EPERM);
    ram_find("/dir/file")->inode->st.st_uid = 1000;
    df_highlevel_invalidate(rig->fs, "/dir/file");
    assert_int_equal(rig_open(rig, "/dir/file", O_RDONLY | O_NOATIME, 0, &file), 0);
    rig_close(rig, &file);
    rig_end(rig);
}

static void what_the_plugin_says_of_the_file_becomes_a_trait(void **state)
{
    (void)state;
    struct rig *rig = rig_new();

    rig->config.no_rofd_flush = 1;
    rig->ops.lock = NULL;
    assert_int_equal(rig_start(rig), 0);
    assert_int_equal(rig_open(rig, "/dir/file", O_RDONLY, 0, &file), 0);
    assert_true(file.traits & DF_FILE_NOFLUSH);
    rig_close(rig, &file);
    assert_int_equal(rig_open(rig, "/dir/file", O_RDWR, 0, &file), 0);
    assert_int_equal(file.traits, 0);
    rig_close(rig, &file);
    rig_end(rig);
}

/* ---- the path of an open file ---- */

static void an_open_file_follows_renames_of_itself_and_above(void **state)
{
    (void)state;
    struct rig *rig = rig_default();
    char byte;

    assert_int_equal(rig_open(rig, "/dir/file", O_RDWR, 0, &file), 0);
    assert_int_equal(rig_rename(rig, "/dir/file", "/dir/sub/moved", 0), 0);
    assert_int_equal(rig_pread(rig, &file, &byte, 1, 0), 1);
    assert_string_equal(rig->ram.last_path, "/dir/sub/moved");
    assert_int_equal(rig_rename(rig, "/dir", "/d2", 0), 0);
    assert_int_equal(rig_pread(rig, &file, &byte, 1, 0), 1);
    assert_string_equal(rig->ram.last_path, "/d2/sub/moved");
    assert_int_equal(rig_mkdir(rig, "/dir", 0755), 0);
    assert_int_equal(rig_rename(rig, "/dir", "/d2", RENAME_EXCHANGE), 0);
    assert_int_equal(rig_pread(rig, &file, &byte, 1, 0), 1);
    assert_string_equal(rig->ram.last_path, "/dir/sub/moved");
    rig_close(rig, &file);
    rig_end(rig);
}

static void a_plugin_without_paths_gets_none(void **state)
{
    (void)state;
    struct rig *rig = rig_new();
    char byte;

    rig->config.nullpath_ok = 1;
    rig->config.attr_timeout = 0;
    assert_int_equal(rig_start(rig), 0);
    assert_int_equal(rig_open(rig, "/dir/file", O_RDWR, 0, &file), 0);
    assert_true(rig->ram.shown_path); /* open gets it */
    assert_int_equal(rig_pread(rig, &file, &byte, 1, 0), 1);
    assert_false(rig->ram.shown_path);
    assert_int_equal(rig_pwrite(rig, &file, "x", 1, 0), 1);
    assert_false(rig->ram.shown_path);
    assert_int_equal(rig_fstat(rig, &file, &st), 0);
    assert_false(rig->ram.shown_path);
    assert_int_equal(rig->fs->ops->lseek(rig->fs, rig_call(rig), &file, 0, SEEK_DATA), 1);
    assert_true(rig->ram.shown_path); /* libfuse's list leaves lseek out */
    rig_close(rig, &file);
    assert_false(rig->ram.shown_path);
    rig_end(rig);
}

static int count_hidden(struct rig *rig)
{
    int count = 0;

    for (int i = 0; i < RAM_NAMES; i++)
        count += strstr(rig->ram.names[i].path, "/.fuse_hidden") != NULL;
    return count;
}

static void an_open_file_that_is_unlinked_hides_until_the_last_close(void **state)
{
    (void)state;
    struct rig *rig = rig_default();
    char buf[4];

    assert_int_equal(rig_open(rig, "/dir/file", O_RDWR, 0, &file), 0);
    assert_int_equal(rig_open(rig, "/dir/file", O_RDONLY, 0, &other), 0);
    assert_int_equal(rig_unlink(rig, "/dir/file"), 0);
    assert_int_equal(rig_count(rig, RAM_UNLINK), 0);
    assert_int_equal(count_hidden(rig), 1);
    assert_int_equal(rig_stat(rig, "/dir/file", &st), -ENOENT);
    assert_int_equal(rig_fstat(rig, &file, &st), 0);
    assert_int_equal(st.st_nlink, 0);
    assert_int_equal(rig_pread(rig, &other, buf, 4, 0), 4);
    assert_int_equal(rig_pwrite(rig, &file, "new", 3, 10), 3);
    rig_close(rig, &file);
    assert_int_equal(count_hidden(rig), 1);
    rig_close(rig, &other);
    assert_int_equal(count_hidden(rig), 0);
    assert_int_equal(rig_count(rig, RAM_UNLINK), 1);
    rig_end(rig);
}

static void hide_files(struct rig *rig, int count)
{
    for (int i = 0; i < count; i++) {
        assert_int_equal(rig_open(rig, "/dir/tmp", O_RDWR | O_CREAT, 0600, &file), 0);
        assert_int_equal(rig_unlink(rig, "/dir/tmp"), 0);
        rig_close(rig, &file);
    }
}

/* Each hidden name is another. */
static void files_of_one_name_that_hide_take_no_more_memory_in_the_end(void **state)
{
    (void)state;
    struct rig *rig = rig_default();
    size_t before;

    hide_files(rig, 2000);
    before = mallinfo2().uordblks; /* 0 with AddressSanitizer */
    hide_files(rig, 2000);
    assert_in_range(mallinfo2().uordblks, 0, before + 2000 * sizeof(struct df_open_path) / 10);
    rig_end(rig);
}

static void a_file_renamed_over_an_open_one_hides_that(void **state)
{
    (void)state;
    struct rig *rig = rig_default();
    char buf[10];

    assert_int_equal(rig_open(rig, "/dir/file", O_RDONLY, 0, &file), 0);
    assert_int_equal(rig_mknod(rig, "/dir/next", S_IFREG | 0600), 0);
    assert_int_equal(rig_rename(rig, "/dir/next", "/dir/file", 0), 0);
    assert_int_equal(count_hidden(rig), 1);
    assert_int_equal(rig_pread(rig, &file, buf, 10, 0), 10);
    assert_int_equal(rig_open(rig, "/dir/file", O_RDONLY, 0, &other), 0);
    assert_int_equal(rig_pread(rig, &other, buf, 10, 0), 0);
    rig_close(rig, &file);
    assert_int_equal(count_hidden(rig), 0);
    assert_int_equal(rig_stat(rig, "/dir/file", &st), 0);
    rig_close(rig, &other);
    rig_end(rig);
}

static void hard_remove_removes_at_once(void **state)
{
    (void)state;
    struct rig *rig = rig_new();
    char buf[4];

    rig->config.hard_remove = 1;
    rig->config.nullpath_ok = 1;
    assert_int_equal(rig_start(rig), 0);
    assert_int_equal(rig_open(rig, "/dir/file", O_RDWR, 0, &file), 0);
    assert_int_equal(rig_unlink(rig, "/dir/file"), 0);
    assert_int_equal(rig_count(rig, RAM_UNLINK), 1);
    assert_int_equal(rig_mknod(rig, "/dir/file", S_IFREG | 0600), 0);
    assert_int_equal(rig_pread(rig, &file, buf, 4, 0), 4); /* by its handle */
    assert_int_equal(rig_fstat(rig, &file, &st), 0);
    assert_int_equal(st.st_size, 10);
    assert_int_equal(rig_stat(rig, "/dir/file", &st), 0); /* the new one */
    assert_int_equal(st.st_size, 0);
    rig_close(rig, &file);
    rig_end(rig);
}

/* get_path_nullok() of libfuse 3; libfuse 2 wants to be told that the program bears it. */
static void what_was_removed_is_used_without_a_path(void **state)
{
    (void)state;
    struct rig *rig = rig_new();
    char buf[4];

    rig->config.hard_remove = 1;
    rig->caller.capable = false;
    assert_int_equal(rig_start(rig), 0);
    assert_int_equal(rig_open(rig, "/dir/file", O_RDWR, 0, &file), 0);
    assert_int_equal(rig_unlink(rig, "/dir/file"), 0);
    assert_int_equal(rig_pwrite(rig, &file, "new", 3, 0), 3);
    assert_int_equal(rig_pread(rig, &file, buf, 4, 0), 4);
    assert_memory_equal(buf, "new", 3);
    assert_false(rig->ram.shown_path);
    assert_int_equal(rig->fs->ops->fsync(rig->fs, rig_call(rig), &file, false), 0);
    rig_total(rig);
    assert_int_equal(rig_fstat(rig, &file, &st), -ENOENT); /* getattr knows no handle there */
    assert_int_equal(rig_count(rig, RAM_GETATTR), 0);
    df_highlevel_need_paths(rig->fs);
    assert_int_equal(rig_pread(rig, &file, buf, 4, 0), -ENOENT);
    rig_close(rig, &file);
    rig_end(rig);
}

/* As libfuse 2's chmod: it takes no handle, so there is nothing to call it with. */
static void a_write_to_what_was_removed_takes_no_setuid_away_by_path(void **state)
{
    (void)state;
    struct rig *rig = rig_new();

    rig->config.hard_remove = 1;
    rig->config.nullpath_ok = 1;
    rig->caller.capable = false;
    assert_int_equal(rig_start(rig), 0);
    df_highlevel_need_paths(rig->fs);
    ram_find("/dir/file")->inode->st.st_mode = S_IFREG | S_ISUID | 0777;
    assert_int_equal(rig_open(rig, "/dir/file", O_RDWR, 0, &file), 0);
    assert_int_equal(rig_unlink(rig, "/dir/file"), 0);
    assert_int_equal(rig_pwrite(rig, &file, "x", 1, 0), -ENOENT);
    assert_int_equal(rig_count(rig, RAM_CHMOD), 0);
    rig_close(rig, &file);
    rig_end(rig);
}

static void a_file_that_goes_before_it_is_truncated_is_not_opened(void **state)
{
    (void)state;
    struct rig *rig = rig_new();

    rig->config.attr_timeout = 0;
    rig->caller.capable = false;
    assert_int_equal(rig_start(rig), 0);
    assert_int_equal(rig_stat(rig, "/dir/file", &st), 0); /* its name is known now */
    rig->ram.fail_error[RAM_GETATTR] = -ENOENT;
    rig_total(rig);
    assert_int_equal(rig_open(rig, "/dir/file", O_RDWR | O_TRUNC, 0, &file), -ENOENT);
    assert_int_equal(rig_count(rig, RAM_OPEN), 1);
    assert_int_equal(rig_count(rig, RAM_RELEASE), 1);
    assert_int_equal(rig_count(rig, RAM_CHMOD), 0);
    rig_end(rig);
}

static void a_failed_open_leaves_nothing_behind(void **state)
{
    (void)state;
    struct rig *rig = rig_default();

    rig->ram.fail_error[RAM_OPEN] = -EPERM;
    assert_int_equal(rig_open(rig, "/dir/file", O_RDONLY, 0, &file), -EPERM);
    rig->ram.fail_error[RAM_OPEN] = -ENOENT; /* it has gone meanwhile: asked anew next time */
    rig_total(rig);
    assert_int_equal(rig_open(rig, "/dir/file", O_RDONLY, 0, &file), -ENOENT);
    assert_int_equal(rig_open(rig, "/dir/file", O_RDONLY, 0, &file), -ENOENT);
    assert_int_equal(rig_count(rig, RAM_GETATTR), 1);
    rig->ram.fail_error[RAM_OPEN] = 0;
    assert_int_equal(df_open_paths_count(&df_highlevel_of(rig->fs)->open_paths), 0);
    rig_end(rig);
}

static void the_context_is_that_of_the_caller(void **state)
{
    (void)state;
    struct rig *rig = rig_default();

    rig->caller.uid = 12;
    rig->caller.gid = 13;
    assert_int_equal(rig_open(rig, "/dir/file", O_RDONLY, 0, &file), 0);
    assert_int_equal(rig->ram.context.uid, 12);
    assert_int_equal(rig->ram.context.gid, 13);
    assert_int_equal(rig->ram.context.pid, 42);
    assert_int_equal(rig->ram.context.umask, 022);
    assert_ptr_equal(rig->ram.context.fuse, rig);
    assert_ptr_equal(rig->ram.context.private_data, &rig->ram); /* what init returned */
    assert_string_equal(rig->private_data, "user data");        /* what init saw */
    assert_null(df_highlevel_context());
    assert_true(rig->ram.shown.fh != 0 || rig->ram.last_path[0]);
    assert_int_equal(rig->fs->ops->fsync(rig->fs, rig_call(rig), &file, false), 0);
    assert_int_equal(rig->ram.shown.lock_owner, 7);
    rig_close(rig, &file);
    rig_end(rig);
}

static void init_may_not_want_what_was_not_offered(void **state)
{
    (void)state;
    struct rig *rig = rig_new();

    rig->want = FUSE_CAP_WRITEBACK_CACHE;
    assert_int_equal(rig_start(rig), -EPROTO);
    assert_false(rig->conn.capable & FUSE_CAP_WRITEBACK_CACHE);
    rig_end(rig);
}

static void a_shorter_table_of_operations_is_completed(void **state)
{
    (void)state;
    struct rig *rig = rig_new();

    rig->fs = df_highlevel_new(&rig->ops, offsetof(struct fuse_operations, create), NULL,
                               &rig->session, NULL);
    assert_int_equal(df_highlevel_init(rig->fs, NULL, &rig->conn), 0);
    assert_int_equal(rig_open(rig, "/dir/new", O_RDWR | O_CREAT, 0600, &file), 0);
    assert_int_equal(rig_count(rig, RAM_CREATE), 0);
    assert_int_equal(rig_count(rig, RAM_MKNOD), 1);
    rig_close(rig, &file);
    rig_end(rig);
}

/* ---- closed files in a mount server ---- */

static struct rig *rig_of_server(bool numbers)
{
    struct rig *rig = rig_new();

    rig->config.kernel_cache = 1;
    rig->config.use_ino = !numbers;
    assert_int_equal(rig_start(rig), 0);
    return rig;
}

static uint32_t kept(struct rig *rig)
{
    return df_open_paths_count(&df_highlevel_of(rig->fs)->open_paths);
}

/* By which its bytes are known. */
static uint64_t body_of(struct rig *rig, const char *path, int flags)
{
    uint64_t body;

    assert_int_equal(rig_open(rig, path, flags, 0600, &file), 0);
    body = file.body;
    file.counted = true;
    rig_close(rig, &file);
    return body;
}

static void a_closed_file_is_the_same_file_under_each_of_its_names(void **state)
{
    (void)state;
    struct rig *rig = rig_of_server(false);
    uint64_t body = body_of(rig, "/dir/file", O_RDONLY);

    assert_int_equal(kept(rig), 1);
    assert_int_equal(body_of(rig, "/dir/file", O_RDONLY), body);
    assert_int_equal(rig_rename(rig, "/dir/file", "/dir/moved", 0), 0);
    assert_int_equal(body_of(rig, "/dir/moved", O_RDONLY), body);
    assert_int_equal(rig_rename(rig, "/dir", "/d2", 0), 0);
    assert_int_equal(body_of(rig, "/d2/moved", O_RDONLY), body);
    assert_int_equal(kept(rig), 1);
    rig_end(rig);
}

static void another_file_is_another_under_the_same_name(void **state)
{
    (void)state;
    struct rig *rig = rig_of_server(false);
    uint64_t body = body_of(rig, "/dir/file", O_RDONLY), next;

    assert_int_equal(rig_unlink(rig, "/dir/file"), 0);
    assert_int_equal(kept(rig), 0);
    next = body_of(rig, "/dir/file", O_RDWR | O_CREAT);
    assert_int_not_equal(next, body);
    body = body_of(rig, "/dir/other", O_RDWR | O_CREAT);
    assert_int_equal(rig_rename(rig, "/dir/other", "/dir/file", 0), 0);
    assert_int_equal(body_of(rig, "/dir/file", O_RDONLY), body);
    assert_int_equal(kept(rig), 1);
    rig_end(rig);
}

static void with_invented_numbers_a_closed_file_stays_the_same_file(void **state)
{
    (void)state;
    struct rig *rig = rig_of_server(true);
    uint64_t body = body_of(rig, "/dir/file", O_RDONLY), ino = file.ino;

    assert_int_equal(rig_rename(rig, "/dir/file", "/dir/moved", 0), 0);
    assert_int_equal(kept(rig), 1);
    assert_int_equal(body_of(rig, "/dir/moved", O_RDONLY), body);
    assert_int_equal(file.ino, ino);
    rig_end(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(flags_reach_the_plugin_as_from_the_kernel),
        cmocka_unit_test(a_warm_open_is_one_call),
        cmocka_unit_test(truncation_goes_with_the_flag_or_behind_the_open),
        cmocka_unit_test(a_file_is_created_behind_a_negative_lookup),
        cmocka_unit_test(creation_follows_a_dangling_link_unless_exclusive),
        cmocka_unit_test(without_create_it_is_mknod_and_open),
        cmocka_unit_test(dont_mask_leaves_the_mode_to_the_plugin),
        cmocka_unit_test(enosys_of_open_means_no_handle),
        cmocka_unit_test(without_open_release_is_still_due),
        cmocka_unit_test(types_are_known_before_the_plugin_is_asked),
        cmocka_unit_test(o_path_asks_for_nothing_and_names_what_it_opened),
        cmocka_unit_test(o_noatime_is_for_owners),
        cmocka_unit_test(what_the_plugin_says_of_the_file_becomes_a_trait),
        cmocka_unit_test(an_open_file_follows_renames_of_itself_and_above),
        cmocka_unit_test(a_closed_file_is_the_same_file_under_each_of_its_names),
        cmocka_unit_test(another_file_is_another_under_the_same_name),
        cmocka_unit_test(with_invented_numbers_a_closed_file_stays_the_same_file),
        cmocka_unit_test(a_plugin_without_paths_gets_none),
        cmocka_unit_test(an_open_file_that_is_unlinked_hides_until_the_last_close),
        cmocka_unit_test(files_of_one_name_that_hide_take_no_more_memory_in_the_end),
        cmocka_unit_test(a_file_renamed_over_an_open_one_hides_that),
        cmocka_unit_test(hard_remove_removes_at_once),
        cmocka_unit_test(what_was_removed_is_used_without_a_path),
        cmocka_unit_test(a_write_to_what_was_removed_takes_no_setuid_away_by_path),
        cmocka_unit_test(a_file_that_goes_before_it_is_truncated_is_not_opened),
        cmocka_unit_test(a_failed_open_leaves_nothing_behind),
        cmocka_unit_test(the_context_is_that_of_the_caller),
        cmocka_unit_test(init_may_not_want_what_was_not_offered),
        cmocka_unit_test(a_shorter_table_of_operations_is_completed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
