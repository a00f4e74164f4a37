/*
 * test_highlevel_walk.c - what the path lane asks a plugin to verify a path, and when it need not:
 * the kernel's sequence of lookups, honouring the entry and attribute time-outs.
 */
#include "ram_rig.h"

static struct stat st;

static void a_cold_path_is_verified_by_components(void **state)
{
    (void)state;
    struct rig *rig = rig_default();

    assert_int_equal(rig_stat(rig, "/dir/file", &st), 0);
    assert_int_equal(st.st_size, 10);
    assert_int_equal(rig_count(rig, RAM_GETATTR), 2); /* /dir, /dir/file: as LOOKUP twice */
    rig_end(rig);
}

static void a_live_attribute_costs_no_call(void **state)
{
    (void)state;
    struct rig *rig = rig_default();

    rig_stat(rig, "/dir/file", &st);
    rig_total(rig);
    memset(&st, 0, sizeof(st));
    assert_int_equal(rig_stat(rig, "/dir/file", &st), 0);
    assert_int_equal(st.st_size, 10);
    assert_int_equal(st.st_mode, S_IFREG | 0644);
    assert_int_equal(rig_total(rig), 0);
    rig_end(rig);
}

static void below_a_live_directory_one_call_is_enough(void **state)
{
    (void)state;
    struct rig *rig = rig_new();

    rig->config.attr_timeout = 0;
    assert_int_equal(rig_start(rig), 0);
    rig_stat(rig, "/dir/file", &st);
    rig_total(rig);
    assert_int_equal(rig_stat(rig, "/dir/file", &st), 0);
    assert_int_equal(rig_total(rig), 1);
    assert_string_equal(rig->ram.last_path, "/dir/file");
    rig_end(rig);
}

static void without_entry_timeout_every_call_walks(void **state)
{
    (void)state;
    struct rig *rig = rig_new();

    rig->config.entry_timeout = 0;
    assert_int_equal(rig_start(rig), 0);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(rig_stat(rig, "/dir/file", &st), 0);
        assert_int_equal(rig_count(rig, RAM_GETATTR), 2);
    }
    rig_end(rig);
}

static void an_absent_name_is_remembered_for_the_negative_timeout(void **state)
{
    (void)state;
    struct rig *rig = rig_default();

    for (int i = 0; i < 2; i++) { /* by default: not at all */
        assert_int_equal(rig_stat(rig, "/none", &st), -ENOENT);
        assert_int_equal(rig_count(rig, RAM_GETATTR), 1);
    }
    rig_end(rig);

    rig = rig_new();
    rig->config.negative_timeout = 1000;
    assert_int_equal(rig_start(rig), 0);
    assert_int_equal(rig_stat(rig, "/none", &st), -ENOENT);
    assert_int_equal(rig_count(rig, RAM_GETATTR), 1);
    assert_int_equal(rig_stat(rig, "/none", &st), -ENOENT);
    assert_int_equal(rig_count(rig, RAM_GETATTR), 0);
    assert_int_equal(rig_mkdir(rig, "/none", 0755), 0); /* no lookup: known not to be there */
    assert_int_equal(rig_stat(rig, "/none", &st), 0);
    rig_end(rig);
}

static void links_are_followed_where_they_stand(void **state)
{
    (void)state;
    struct rig *rig = rig_default();
    struct df_file file;

    ram_add("/dir/empty", S_IFLNK | 0777)->inode->data = strdup("");
    assert_int_equal(rig_stat(rig, "/link/file", &st), 0);
    assert_string_equal(rig->ram.last_path, "/dir/file");
    assert_int_equal(rig_stat(rig, "/link/sub/../up", &st), 0); /* ".." behind the link */
    assert_int_equal(st.st_size, 10);
    assert_int_equal(rig_stat(rig, "/dir/up", &st), 0);
    assert_true(S_ISREG(st.st_mode));
    assert_int_equal(rig_lstat(rig, "/dir/up", &st), 0);
    assert_true(S_ISLNK(st.st_mode));
    assert_int_equal(rig_lstat(rig, "/link/", &st), 0); /* a slash follows, lstat or not */
    assert_true(S_ISDIR(st.st_mode));
    assert_int_equal(rig_stat(rig, "/dir/empty", &st), 0);
    assert_true(S_ISDIR(st.st_mode));
    assert_int_equal(rig_stat(rig, "/dir/empty//file", &st), 0);
    assert_int_equal(st.st_size, 10);
    assert_int_equal(rig_open(rig, "/dir/empty", O_CREAT | O_RDWR, 0600, &file), -EISDIR);
    assert_int_equal(rig_stat(rig, "/loop", &st), -ELOOP);
    assert_int_equal(rig_stat(rig, "/loop/x", &st), -ELOOP);
    rig_end(rig);
}

static void what_leads_out_goes_back_to_the_core(void **state)
{
    (void)state;
    struct rig *rig = rig_default();

    assert_int_equal(rig_stat(rig, "/away/passwd", &st), DF_LEAVE);
    assert_string_equal(rig->call.leave, "/etc/passwd");
    assert_int_equal(rig_stat(rig, "/away", &st), DF_LEAVE);
    assert_string_equal(rig->call.leave, "/etc");
    assert_int_equal(rig_stat(rig, "/away/x/", &st), DF_LEAVE);
    assert_string_equal(rig->call.leave, "/etc/x/");
    assert_int_equal(rig_stat(rig, "/away/", &st), DF_LEAVE);
    assert_string_equal(rig->call.leave, "/etc/.");
    assert_int_equal(rig_stat(rig, "/dir/../../other", &st), DF_LEAVE);
    assert_string_equal(rig->call.leave, "/top/other"); /* the mountpoint is /top/mnt */
    assert_int_equal(rig_rename(rig, "/dir/file", "/away/file", 0), DF_LEAVE);
    assert_true(rig->call.leave_second);
    assert_int_equal(rig_rename(rig, "/away/file", "/dir/file", 0), DF_LEAVE);
    assert_false(rig->call.leave_second);
    assert_int_equal(rig_link(rig, "/dir/file", "/away/file"), DF_LEAVE);
    assert_true(rig->call.leave_second);
    rig_end(rig);
}

static void wrong_ways_have_their_errors(void **state)
{
    (void)state;
    struct rig *rig = rig_default();
    char name[400];

    assert_int_equal(rig_stat(rig, "/dir/file/x", &st), -ENOTDIR);
    assert_int_equal(rig_stat(rig, "/dir/file/", &st), -ENOTDIR);
    assert_int_equal(rig_stat(rig, "/dir/file/..", &st), -ENOTDIR);
    assert_int_equal(rig_stat(rig, "/none/x", &st), -ENOENT);
    assert_int_equal(rig_stat(rig, "/none/..", &st), -ENOENT);
    assert_int_equal(rig_stat(rig, "/dir/", &st), 0);
    memset(name, 'n', sizeof(name));
    name[0] = '/';
    name[257] = '\0'; /* longer than NAME_MAX: the file system is asked */
    assert_int_equal(rig_stat(rig, name, &st), -ENOENT);
    memcpy(name + 257, "x/y", 4);
    assert_int_equal(rig_stat(rig, name, &st), -ENOENT);
    rig_end(rig);
}

static void a_name_relative_to_a_directory_follows_its_moves(void **state)
{
    (void)state;
    struct rig *rig = rig_default();
    struct rig_where where;
    struct df_file dir;

    assert_int_equal(rig_open(rig, "/dir", O_RDONLY | O_DIRECTORY, 0, &dir), 0);
    rig_total(rig);
    assert_int_equal(
        rig->fs->ops->getattr(rig->fs, rig_call(rig), rig_where(&where, &dir, "file", 0), &st), 0);
    assert_int_equal(rig_total(rig), 1); /* the open directory is verified: it is open */
    assert_int_equal(rig_rename(rig, "/dir", "/moved", 0), 0);
    assert_int_equal(rig->fs->ops->getattr(rig->fs, rig_call(rig),
                                           rig_where(&where, &dir, "sub/../file", 0), &st),
                     0);
    assert_string_equal(rig->ram.last_path, "/moved/file");
    assert_int_equal(
        rig->fs->ops->getattr(rig->fs, rig_call(rig), rig_where(&where, &dir, "../moved", 0), &st),
        0);
    rig_close(rig, &dir);
    rig_end(rig);
}

static void a_removed_directory_leads_nowhere(void **state)
{
    (void)state;
    struct rig *rig = rig_default();
    struct rig_where where;
    struct df_file dir;

    assert_int_equal(rig_open(rig, "/dir/sub", O_RDONLY | O_DIRECTORY, 0, &dir), 0);
    assert_int_equal(rig_rmdir(rig, "/dir/sub"), 0);
    assert_int_equal(rig_mkdir(rig, "/dir/sub", 0755), 0); /* another one */
    assert_int_equal(
        rig->fs->ops->getattr(rig->fs, rig_call(rig), rig_where(&where, &dir, "x", 0), &st),
        -ENOENT);
    assert_int_equal(rig_fstat(rig, &dir, &st), -ENOENT);
    rig_close(rig, &dir);
    rig_end(rig);
}

static void an_op_that_meets_estale_begins_again(void **state)
{
    (void)state;
    struct rig *rig = rig_default();

    rig_stat(rig, "/dir/file", &st);
    rig->ram.fail_error[RAM_STATFS] = -ESTALE;
    rig_total(rig);
    struct statvfs out;
    struct rig_where where;
    assert_int_equal(
        rig->fs->ops->statfs(rig->fs, rig_call(rig), rig_where(&where, NULL, "/dir/file", 0), &out),
        -ESTALE);
    assert_int_equal(rig_count(rig, RAM_STATFS), 2);
    assert_int_equal(rig_count(rig, RAM_GETATTR), 2); /* the second time nothing is believed */
    rig_end(rig);
}

static void changes_are_seen_at_once(void **state)
{
    (void)state;
    struct rig *rig = rig_default();
    struct df_setattr set = {.valid = DF_SET_MODE, .mode = 0600};
    struct df_file file;

    rig_stat(rig, "/dir/file", &st);
    assert_int_equal(rig_set(rig, NULL, "/dir/file", &set), 0);
    rig_stat(rig, "/dir/file", &st);
    assert_int_equal(st.st_mode, S_IFREG | 0600);
    assert_int_equal(rig_open(rig, "/dir/file", O_WRONLY, 0, &file), 0);
    assert_int_equal(rig_pwrite(rig, &file, "abcdef", 6, 8), 6);
    rig_stat(rig, "/dir/file", &st);
    assert_int_equal(st.st_size, 14);
    assert_int_equal(rig_rename(rig, "/dir/file", "/dir/other", 0), 0);
    assert_int_equal(rig_stat(rig, "/dir/file", &st), -ENOENT);
    assert_int_equal(rig_stat(rig, "/dir/other", &st), 0);
    assert_int_equal(rig_pwrite(rig, &file, "x", 1, 20), 1);
    rig_stat(rig, "/dir/other", &st);
    assert_int_equal(st.st_size, 21);
    rig_close(rig, &file);
    assert_int_equal(rig_unlink(rig, "/dir/other"), 0);
    assert_int_equal(rig_stat(rig, "/dir/other", &st), -ENOENT);
    rig_end(rig);
}

static void renaming_a_directory_forgets_what_was_below(void **state)
{
    (void)state;
    struct rig *rig = rig_default();

    rig_stat(rig, "/dir/file", &st);
    assert_int_equal(rig_rename(rig, "/dir", "/new", 0), 0);
    assert_int_equal(rig_stat(rig, "/dir/file", &st), -ENOENT);
    assert_int_equal(rig_stat(rig, "/new/file", &st), 0);
    rig_end(rig);
}

static void only_the_owner_enters_without_allow_other(void **state)
{
    (void)state;
    struct rig *rig = rig_new();

    rig->session.allow_other = false;
    rig->session.owner_uid = 1000;
    rig->session.owner_gid = 1000;
    assert_int_equal(rig_start(rig), 0);
    assert_int_equal(rig_stat(rig, "/dir", &st), -EACCES); /* root is nobody special here */
    rig->caller.uid = rig->caller.gid = 1000;
    assert_int_equal(rig_stat(rig, "/dir", &st), 0);
    rig_end(rig);

    rig = rig_new();
    rig->session.allow_other = false;
    rig->session.allow_root = true;
    rig->session.owner_uid = 1000;
    assert_int_equal(rig_start(rig), 0);
    assert_int_equal(rig_stat(rig, "/dir", &st), 0);
    rig->caller.uid = 1001;
    assert_int_equal(rig_stat(rig, "/dir", &st), -EACCES);
    rig_end(rig);
}

static void default_permissions_checks_the_whole_way(void **state)
{
    (void)state;
    struct rig *rig = rig_new();
    struct df_file file;

    rig->session.default_permissions = true;
    ram_find("/dir")->inode->st.st_mode = S_IFDIR | 0710;
    ram_find("/dir")->inode->st.st_gid = 50;
    assert_int_equal(rig_start(rig), 0);
    assert_int_equal(rig_stat(rig, "/dir/sub/../file", &st), 0); /* root */
    rig->caller = (struct df_caller){.uid = 1000, .gid = 1000};
    assert_int_equal(rig_stat(rig, "/dir", &st), 0);
    assert_int_equal(rig_stat(rig, "/dir/file", &st), -EACCES);
    rig->caller.gid = 50;
    assert_int_equal(rig_stat(rig, "/dir/file", &st), 0);
    assert_int_equal(rig_open(rig, "/dir/file", O_RDWR, 0, &file), -EACCES);
    assert_int_equal(rig_open(rig, "/dir/file", O_RDONLY, 0, &file), 0);
    rig_close(rig, &file);
    assert_int_equal(rig_open(rig, "/dir/new", O_WRONLY | O_CREAT, 0644, &file), -EACCES);
    assert_int_equal(rig_unlink(rig, "/dir/file"), -EACCES);
    assert_int_equal(rig_rename(rig, "/dir/file", "/dir/x", 0), -EACCES);
    assert_int_equal(
        rig_set(rig, NULL, "/dir/file", &(struct df_setattr){.valid = DF_SET_MODE, .mode = 0777}),
        -EPERM);
    assert_int_equal(rig_count(rig, RAM_ACCESS), 0);
    rig_end(rig);
}

/* Attributes that refuse are asked again before they are believed. */
static void a_refusal_is_not_taken_from_the_cache(void **state)
{
    (void)state;
    struct rig *rig = rig_new();

    rig->session.default_permissions = true;
    ram_find("/dir")->inode->st.st_mode = S_IFDIR | 0700;
    assert_int_equal(rig_start(rig), 0);
    rig->caller = (struct df_caller){.uid = 1000, .gid = 1000};
    assert_int_equal(rig_stat(rig, "/dir/file", &st), -EACCES);
    ram_find("/dir")->inode->st.st_mode = S_IFDIR | 0755; /* behind our back */
    assert_int_equal(rig_stat(rig, "/dir/file", &st), 0);
    rig_end(rig);
}

static void the_configuration_overrides_attributes(void **state)
{
    (void)state;
    struct rig *rig = rig_new();

    rig->config.set_uid = rig->config.set_gid = rig->config.set_mode = 1;
    rig->config.uid = 5;
    rig->config.gid = 6;
    rig->config.umask = 077;
    assert_int_equal(rig_start(rig), 0);
    assert_int_equal(rig_stat(rig, "/dir/file", &st), 0);
    assert_int_equal(st.st_uid, 5);
    assert_int_equal(st.st_gid, 6);
    assert_int_equal(st.st_mode, S_IFREG | 0700);
    assert_int_equal(st.st_blksize, 4096);
    rig_end(rig);
}

static void only_a_device_has_a_device_number(void **state)
{
    (void)state;
    struct rig *rig = rig_default();

    ram_find("/dir/file")->inode->st.st_rdev = 7;
    ram_add("/device", S_IFCHR | 0600)->inode->st.st_rdev = 7;
    assert_int_equal(rig_stat(rig, "/dir/file", &st), 0);
    assert_int_equal(st.st_rdev, 0);
    assert_int_equal(rig_stat(rig, "/device", &st), 0);
    assert_int_equal(st.st_rdev, 7);
    rig_end(rig);
}

static void invented_inode_numbers_stay_with_open_files(void **state)
{
    (void)state;
    struct rig *rig = rig_new();
    struct df_file file;
    ino_t ino;

    rig->config.use_ino = 0;
    assert_int_equal(rig_start(rig), 0);
    rig_stat(rig, "/dir/file", &st);
    ino = st.st_ino;
    rig_stat(rig, "/dir", &st);
    assert_true(st.st_ino != ino);
    assert_int_equal(rig_open(rig, "/dir/file", O_RDONLY, 0, &file), 0);
    assert_true(file.ino == ino);
    assert_int_equal(rig_rename(rig, "/dir/file", "/dir/log.1", 0), 0);
    rig_stat(rig, "/dir/log.1", &st);
    assert_true(st.st_ino == ino);
    rig_fstat(rig, &file, &st);
    assert_true(st.st_ino == ino);
    assert_int_equal(rig_mknod(rig, "/dir/file", S_IFREG | 0644), 0);
    rig_stat(rig, "/dir/file", &st); /* another file: another number */
    assert_true(st.st_ino != ino);
    rig_close(rig, &file);
    rig_end(rig);
}

static void nonsense_from_the_plugin_is_eio(void **state)
{
    (void)state;
    struct rig *rig = rig_default();

    ram_find("/dir/file")->inode->st.st_mode = 0644;
    assert_int_equal(rig_stat(rig, "/dir/file", &st), -EIO);
    ram_find("/dir/file")->inode->st.st_mode = 0150644; /* a type that there is none of */
    assert_int_equal(rig_stat(rig, "/dir/file", &st), -EIO);
    ram_find("/dir/file")->inode->st.st_mode = S_IFREG | 0644;
    rig->ram.fail_error[RAM_GETATTR] = -ENOTCONN; /* an error goes through as it is */
    assert_int_equal(rig_stat(rig, "/dir/file", &st), -ENOTCONN);
    rig->ram.fail_error[RAM_GETATTR] = 0;
    rig_end(rig);
}

static void invalidating_a_path_asks_again(void **state)
{
    (void)state;
    struct rig *rig = rig_default();

    rig_stat(rig, "/dir/file", &st);
    rig_total(rig);
    assert_int_equal(df_highlevel_invalidate(rig->fs, "/dir/file"), 0);
    assert_int_equal(df_highlevel_invalidate(rig->fs, "/dir/none"), -ENOENT);
    rig_stat(rig, "/dir/file", &st);
    assert_int_equal(rig_total(rig), 1);
    rig_end(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cold_path_is_verified_by_components),
        cmocka_unit_test(a_live_attribute_costs_no_call),
        cmocka_unit_test(below_a_live_directory_one_call_is_enough),
        cmocka_unit_test(without_entry_timeout_every_call_walks),
        cmocka_unit_test(an_absent_name_is_remembered_for_the_negative_timeout),
        cmocka_unit_test(links_are_followed_where_they_stand),
        cmocka_unit_test(what_leads_out_goes_back_to_the_core),
        cmocka_unit_test(wrong_ways_have_their_errors),
        cmocka_unit_test(a_name_relative_to_a_directory_follows_its_moves),
        cmocka_unit_test(a_removed_directory_leads_nowhere),
        cmocka_unit_test(an_op_that_meets_estale_begins_again),
        cmocka_unit_test(changes_are_seen_at_once),
        cmocka_unit_test(renaming_a_directory_forgets_what_was_below),
        cmocka_unit_test(only_the_owner_enters_without_allow_other),
        cmocka_unit_test(default_permissions_checks_the_whole_way),
        cmocka_unit_test(a_refusal_is_not_taken_from_the_cache),
        cmocka_unit_test(the_configuration_overrides_attributes),
        cmocka_unit_test(only_a_device_has_a_device_number),
        cmocka_unit_test(invented_inode_numbers_stay_with_open_files),
        cmocka_unit_test(nonsense_from_the_plugin_is_eio),
        cmocka_unit_test(invalidating_a_path_asks_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
