/*
 * test_highlevel_dir.c - reading directories through the path lane, in both of libfuse's modes.
 */
#include "ram_rig.h"

static struct stat st;
static struct df_file dir, other;
static char names[4096];

static void offsets_go_straight_through(void **state)
{
    (void)state;
    struct rig *rig = rig_default();
    off_t end = 0;

    assert_int_equal(rig_open(rig, "/dir", O_RDONLY, 0, &dir), 0);
    assert_int_equal(dir.kind, DF_KIND_DIRECTORY);
    assert_int_equal(rig_list(rig, &dir, 0, 0, names, &end), 0);
    assert_string_equal(names, "sub,file,up,");
    assert_int_equal(rig_list(rig, &dir, end, 0, names, NULL), 0);
    assert_string_equal(names, "");
    assert_int_equal(rig_list(rig, &dir, 0, 60, names, &end), 0); /* room for two */
    assert_string_equal(names, "sub,file,");
    assert_int_equal(rig_list(rig, &dir, end, 60, names, &end), 0);
    assert_string_equal(names, "up,");
    assert_int_equal(rig_list(rig, &dir, 0, 10, names, &end), -EINVAL);
    rig_close(rig, &dir);
    assert_int_equal(rig_count(rig, RAM_RELEASEDIR), 1);
    assert_int_equal(rig_count(rig, RAM_FLUSH), 0);
    rig_end(rig);
}

static void a_whole_listing_is_kept_until_it_is_rewound(void **state)
{
    (void)state;
    struct rig *rig = rig_default();
    off_t end = 0;

    rig->ram.whole = true;
    assert_int_equal(rig_open(rig, "/dir", O_RDONLY, 0, &dir), 0);
    assert_int_equal(rig_list(rig, &dir, 0, 60, names, &end), 0);
    assert_string_equal(names, "sub,file,");
    assert_int_equal(rig_unlink(rig, "/dir/up"), 0); /* entries stay while one iterates */
    assert_int_equal(rig_list(rig, &dir, end, 60, names, &end), 0);
    assert_string_equal(names, "up,");
    assert_int_equal(rig_list(rig, &dir, end, 60, names, &end), 0);
    assert_string_equal(names, "");
    assert_int_equal(rig_count(rig, RAM_READDIR), 1);
    assert_int_equal(rig_list(rig, &dir, 0, 0, names, &end), 0);
    assert_string_equal(names, "sub,file,");
    assert_int_equal(rig_count(rig, RAM_READDIR), 1);
    assert_int_equal(rig_list(rig, &dir, 0, 10, names, &end), -EINVAL);
    assert_int_equal(rig_list(rig, &dir, 123456, 0, names, &end), 0); /* nobody gave that out */
    assert_string_equal(names, "");
    assert_int_equal(rig_list(rig, &dir, -8, 0, names, &end), 0);
    rig_close(rig, &dir);
    rig_end(rig);
}

/* Bytes of a name there say that one of 4626 bytes begins. */
static void a_position_that_nobody_gave_out_shows_no_name_that_is_too_long(void **state)
{
    (void)state;
    struct rig *rig = rig_default();
    static char data[8192];

    rig->ram.whole = true;
    for (int i = 0; i < 40; i++) {
        char path[220];
        snprintf(path, sizeof(path), "/dir/sub/%0200d", i);
        memset(path + strlen("/dir/sub/"), 0x12, 190);
        assert_int_equal(rig_mknod(rig, path, S_IFREG | 0600), 0);
    }
    assert_int_equal(rig_open(rig, "/dir/sub", O_RDONLY, 0, &dir), 0);
    assert_int_equal(rig_list(rig, &dir, 0, 700, names, NULL), 0);
    for (off_t offset = 8; offset < 240; offset += 8) {
        struct df_dirbuf buf = {.data = data, .size = sizeof(data)};

        assert_int_equal(rig->fs->ops->readdir(rig->fs, rig_call(rig), &dir, offset, &buf), 0);
        for (size_t at = 0; at < buf.used;) {
            struct dirent64 *entry = (struct dirent64 *)(data + at);

            assert_true(entry->d_reclen <= offsetof(struct dirent64, d_name) + DF_NAME_MAX + 8);
            at += entry->d_reclen;
        }
    }
    rig_close(rig, &dir);
    rig_end(rig);
}

static void a_big_whole_listing_is_complete(void **state)
{
    (void)state;
    struct rig *rig = rig_default();
    off_t end = 0;
    int count = 0;

    rig->ram.whole = true;
    for (int i = 0; i < 40; i++) {
        char path[200];
        snprintf(path, sizeof(path), "/dir/sub/%0150d", i);
        assert_int_equal(rig_mknod(rig, path, S_IFREG | 0600), 0);
    }
    assert_int_equal(rig_open(rig, "/dir/sub", O_RDONLY, 0, &dir), 0);
    do {
        assert_int_equal(rig_list(rig, &dir, end, 700, names, &end), 0);
        for (char *p = names; *p; p++)
            count += *p == ',';
    } while (names[0]);
    assert_int_equal(count, 40);
    rig_close(rig, &dir);
    rig_end(rig);
}

static void what_readdir_writes_into_the_handle_does_not_persist(void **state)
{
    (void)state;
    struct rig *rig = rig_default();

    assert_int_equal(rig_open(rig, "/dir", O_RDONLY, 0, &dir), 0);
    uint64_t fh = df_handle_of(&dir)->fh;
    assert_int_equal(rig_list(rig, &dir, 0, 0, names, NULL), 0);
    assert_true(df_handle_of(&dir)->fh == fh);
    rig_close(rig, &dir);
    assert_true(rig->ram.shown.fh == fh); /* releasedir's */
    rig_end(rig);
}

static void names_with_attributes_fill_the_cache(void **state)
{
    (void)state;
    struct rig *rig = rig_default();

    rig->ram.plus = true;
    assert_int_equal(rig_open(rig, "/dir", O_RDONLY, 0, &dir), 0);
    assert_int_equal(rig_list(rig, &dir, 0, 0, names, NULL), 0);
    rig_total(rig);
    assert_int_equal(rig_stat(rig, "/dir/file", &st), 0);
    assert_int_equal(st.st_size, 10);
    assert_int_equal(rig_stat(rig, "/dir/sub", &st), 0);
    assert_int_equal(rig_total(rig), 0);
    assert_int_equal(rig_stat(rig, "/dir/sub/none", &st), -ENOENT); /* verified with its parent */
    assert_int_equal(rig_total(rig), 1);
    rig_close(rig, &dir);
    rig_end(rig);
}

/* A listing in which a file changes before its name comes: what it says of that file is old. */
static int readdir_and_unlink(const char *path, void *buf, fuse_fill_dir_t fill, off_t offset,
                              struct fuse_file_info *fi, enum fuse_readdir_flags flags)
{
    struct stat old = {.st_mode = S_IFREG | 0644, .st_size = 10};
    struct df_call call = {.mount = &rig_here->mount, .caller = &rig_here->caller};
    struct rig_where where;

    (void)path, (void)offset, (void)fi, (void)flags;
    rig_here->fs->ops->unlink(rig_here->fs, &call,
                              rig_where(&where, NULL, "/dir/file", DF_WHERE_PARENT));
    fill(buf, "file", &old, 0, FUSE_FILL_DIR_PLUS);
    return 0;
}

static void a_listing_does_not_bring_back_what_was_removed(void **state)
{
    (void)state;
    struct rig *rig = rig_new();

    rig->ops.readdir = readdir_and_unlink;
    assert_int_equal(rig_start(rig), 0);
    assert_int_equal(rig_open(rig, "/dir", O_RDONLY, 0, &dir), 0);
    assert_int_equal(rig_list(rig, &dir, 0, 0, names, NULL), 0);
    assert_string_equal(names, "file,");
    assert_int_equal(rig_stat(rig, "/dir/file", &st), -ENOENT);
    rig_close(rig, &dir);
    rig_end(rig);
}

static int readdir_mixed(const char *path, void *buf, fuse_fill_dir_t fill, off_t offset,
                         struct fuse_file_info *fi, enum fuse_readdir_flags flags)
{
    (void)path, (void)offset, (void)fi, (void)flags;
    assert_int_equal(fill(buf, "a", NULL, 0, 0), 0);
    assert_int_equal(fill(buf, "b", NULL, 7, 0), 1);
    return 0;
}

static int readdir_mixed_late(const char *path, void *buf, fuse_fill_dir_t fill, off_t offset,
                              struct fuse_file_info *fi, enum fuse_readdir_flags flags)
{
    (void)path, (void)offset, (void)fi, (void)flags;
    assert_int_equal(fill(buf, "a", NULL, 7, 0), 0);
    assert_int_equal(fill(buf, "b", NULL, 0, 0), 1);
    return 0;
}

static int readdir_slash(const char *path, void *buf, fuse_fill_dir_t fill, off_t offset,
                         struct fuse_file_info *fi, enum fuse_readdir_flags flags)
{
    (void)path, (void)offset, (void)fi, (void)flags;
    fill(buf, "a/b", NULL, 0, 0);
    return 0;
}

static void nonsense_in_a_listing_is_eio(void **state)
{
    (void)state;
    struct rig *rig = rig_new();

    rig->ops.readdir = readdir_mixed;
    assert_int_equal(rig_start(rig), 0);
    assert_int_equal(rig_open(rig, "/dir", O_RDONLY, 0, &dir), 0);
    assert_int_equal(rig_list(rig, &dir, 0, 0, names, NULL), -EIO);
    df_highlevel_of(rig->fs)->ops.readdir = readdir_mixed_late;
    assert_int_equal(rig_list(rig, &dir, 0, 0, names, NULL), -EIO);
    assert_string_equal(names, ""); /* getdents64(2) would show them, and go on behind them */
    df_highlevel_of(rig->fs)->ops.readdir = readdir_slash;
    assert_int_equal(rig_list(rig, &dir, 0, 0, names, NULL), -EIO);
    rig_close(rig, &dir);
    rig_end(rig);
}

static void a_plugins_error_ends_the_listing(void **state)
{
    (void)state;
    struct rig *rig = rig_default();

    assert_int_equal(rig_open(rig, "/dir", O_RDONLY, 0, &dir), 0);
    rig->ram.fail_error[RAM_READDIR] = -EACCES;
    assert_int_equal(rig_list(rig, &dir, 0, 0, names, NULL), -EACCES);
    rig->ram.fail_error[RAM_READDIR] = 0;
    assert_int_equal(rig_list(rig, &dir, 0, 0, names, NULL), 0);
    assert_int_equal(rig_open(rig, "/dir/file", O_RDONLY, 0, &other), 0);
    assert_int_equal(rig_list(rig, &other, 0, 0, names, NULL), -ENOTDIR);
    rig_close(rig, &other);
    rig_close(rig, &dir);
    rig_end(rig);
}

static void a_removed_directory_has_no_listing(void **state)
{
    (void)state;
    struct rig *rig = rig_default();

    assert_int_equal(rig_open(rig, "/dir/sub", O_RDONLY, 0, &dir), 0);
    assert_int_equal(rig_rmdir(rig, "/dir/sub"), 0);
    assert_int_equal(rig_list(rig, &dir, 0, 0, names, NULL), -ENOENT);
    rig_close(rig, &dir);
    rig_end(rig);
}

/* The first entry of a listing of /dir tells what stat does. */
static void assert_told(struct rig *rig)
{
    char data[512];
    struct df_dirbuf buf = {.data = data, .size = sizeof(data)};
    struct dirent64 *entry = (struct dirent64 *)data;

    assert_int_equal(rig_open(rig, "/dir", O_RDONLY, 0, &dir), 0);
    assert_int_equal(rig->fs->ops->readdir(rig->fs, rig_call(rig), &dir, 0, &buf), 0);
    assert_string_equal(entry->d_name, "sub");
    assert_int_equal(entry->d_type, DT_DIR);
    rig_stat(rig, "/dir/sub", &st);
    assert_true(entry->d_ino == st.st_ino);
    rig_close(rig, &dir);
}

static void numbers_in_a_listing_are_those_of_stat(void **state)
{
    (void)state;
    for (int use_ino = 0; use_ino < 2; use_ino++) {
        struct rig *rig = rig_new();

        rig->config.use_ino = use_ino;
        assert_int_equal(rig_start(rig), 0);
        assert_told(rig);
        rig_end(rig);
    }
}

static void numbers_that_come_with_attributes_alone_are_asked_for(void **state)
{
    (void)state;
    for (int whole = 0; whole < 2; whole++) {
        struct rig *rig = rig_new();

        rig->ram.whole = whole;
        rig->ram.bare = true;
        rig->config.attr_timeout = 0; /* no other reason to ask for attributes */
        assert_int_equal(rig_start(rig), 0);
        assert_told(rig);
        assert_int_equal(rig_count(rig, RAM_READDIR), 2);
        assert_told(rig);
        assert_int_equal(rig_count(rig, RAM_READDIR), 1);
        rig_end(rig);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(offsets_go_straight_through),
        cmocka_unit_test(a_whole_listing_is_kept_until_it_is_rewound),
        cmocka_unit_test(a_position_that_nobody_gave_out_shows_no_name_that_is_too_long),
        cmocka_unit_test(a_big_whole_listing_is_complete),
        cmocka_unit_test(what_readdir_writes_into_the_handle_does_not_persist),
        cmocka_unit_test(names_with_attributes_fill_the_cache),
        cmocka_unit_test(a_listing_does_not_bring_back_what_was_removed),
        cmocka_unit_test(nonsense_in_a_listing_is_eio),
        cmocka_unit_test(a_plugins_error_ends_the_listing),
        cmocka_unit_test(a_removed_directory_has_no_listing),
        cmocka_unit_test(numbers_in_a_listing_are_those_of_stat),
        cmocka_unit_test(numbers_that_come_with_attributes_alone_are_asked_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
