/*
 * test_lowlevel_walk.c - names that lead through symlinks, "..", other mounts and closed doors; and
 * what a plugin takes back of what we know.
 */
#include "lowlevel/private.h"
#include "requests_route.h"

static struct stat st;

static uint64_t make_link(uint64_t parent, const char *name, const char *target)
{
    uint64_t number = traced_make(fs, parent, name, S_IFLNK | 0777);

    snprintf(fs->nodes[number].target, sizeof(fs->nodes[number].target), "%s", target);
    return number;
}

static void mount_it(void)
{
    mount_options("rw");
    df_stat(at(""), &st);
    traced_log(fs, "");
}

static ino_t ino_of(const char *path)
{
    return df_stat(at(path), &st) == 0 ? st.st_ino : 0;
}

/* ---- symlinks ---- */

static void targets_are_walked_from_where_the_link_is(void **state)
{
    uint64_t a = traced_make(fs, 1, "a", S_IFDIR | 0755),
             b = traced_make(fs, a, "b", S_IFDIR | 0755);
    uint64_t file = traced_make(fs, b, "file", S_IFREG | 0644);

    (void)state;
    make_link(b, "self", ".");
    make_link(b, "up", "..");
    make_link(b, "empty", "");
    make_link(b, "around", "../b/./up//b/file");
    make_link(1, "deep", "a/b");
    make_link(1, "slash", "a/b/");
    make_link(1, "file-slash", "a/b/file/");
    mount_it();
    assert_int_equal(ino_of("/a/b/self/self/file"), file);
    assert_int_equal(ino_of("/a/b/up"), a);
    assert_int_equal(ino_of("/a/b/empty"), b);
    assert_int_equal(ino_of("/a/b/empty//file"), file);
    assert_int_equal(ino_of("/a/b/around"), file);
    assert_int_equal(ino_of("/deep/file"), file);
    assert_int_equal(ino_of("/deep/../b"), b);
    assert_int_equal(ino_of("/slash"), b);
    assert_int_equal(ino_of("/slash/up/b/file"), file);
    fails(df_stat(at("/file-slash"), &st), ENOTDIR);
    fails(df_stat(at("/a/b/around/"), &st), ENOTDIR);
    assert_int_equal(df_lstat(at("/deep"), &st), 0);
    assert_true(S_ISLNK(st.st_mode));
    assert_int_equal(df_lstat(at("/deep/"), &st), 0);
    assert_int_equal(st.st_ino, b);
}

static void forty_links_are_followed(void **state)
{
    char name[16], target[16];

    (void)state;
    traced_make(fs, 1, "0", S_IFREG | 0644);
    for (int i = 1; i <= 41; i++) {
        snprintf(name, sizeof(name), "%d", i);
        snprintf(target, sizeof(target), "%d", i - 1);
        make_link(1, name, target);
    }
    make_link(1, "loop", "loop");
    mount_it();
    assert_int_equal(df_stat(at("/40"), &st), 0);
    fails(df_stat(at("/41"), &st), ELOOP);
    fails(df_stat(at("/loop"), &st), ELOOP);
    fails(df_stat(at("/loop/x"), &st), ELOOP);
}

static void links_lead_out_and_back(void **state)
{
    char target[64];
    uint64_t dir = traced_make(fs, 1, "dir", S_IFDIR | 0755);
    uint64_t file = traced_make(fs, dir, "file", S_IFREG | 0644);

    (void)state;
    snprintf(target, sizeof(target), "%s/dir", point);
    make_link(1, "back", target);
    make_link(1, "out", "/dev");
    make_link(1, "above", "../dev/null");
    mount_it();
    assert_int_equal(ino_of("/back/file"), file);
    assert_int_equal(df_stat(at("/out/null"), &st), 0);
    assert_true(S_ISCHR(st.st_mode));
    assert_int_equal(df_stat(at("/above"), &st), 0);
    assert_true(S_ISCHR(st.st_mode));
    assert_int_equal(df_stat(at("/dir/../../dev/null"), &st), 0);
    assert_true(S_ISCHR(st.st_mode));
    assert_int_equal(df_rename(at("/dir/file"), at("/back/moved")), 0);
    assert_int_equal(ino_of("/dir/moved"), file);
    fails(df_rename(at("/dir/moved"), at("/out/moved")), EXDEV);
}

static void creating_follows_links(void **state)
{
    int fd;

    (void)state;
    traced_make(fs, 1, "dir", S_IFDIR | 0755);
    make_link(1, "dangling", "dir/new");
    make_link(1, "to-dir", "dir");
    make_link(1, "slash", "dir/other/");
    make_link(1, "dot", "dir/.");
    make_link(1, "empty", "");
    mount_it();
    fails(df_open(at("/dangling"), O_CREAT | O_EXCL | O_RDWR, 0644), EEXIST);
    fails(df_open(at("/dangling"), O_CREAT | O_NOFOLLOW | O_RDWR, 0644), ELOOP);
    fd = df_open(at("/dangling"), O_CREAT | O_RDWR, 0644);
    assert_true(fd >= 0);
    df_close(fd);
    assert_true(ino_of("/dir/new") > 0);
    fails(df_open(at("/to-dir"), O_CREAT | O_RDWR, 0644), EISDIR);
    fails(df_open(at("/slash"), O_CREAT | O_RDWR, 0644), EISDIR);
    fails(df_open(at("/dot"), O_CREAT | O_RDWR, 0644), EISDIR);
    fails(df_open(at("/empty"), O_CREAT | O_RDWR, 0644), EISDIR);
    fails(df_mkdir(at("/dangling"), 0755), EEXIST);
}

/* The file system is asked. */
static void names_may_be_longer_than_those_on_disk(void **state)
{
    char name[400] = "/";

    (void)state;
    mount_it();
    memset(name + 1, 'x', 256);
    fails(df_stat(at(name), &st), ENOENT);
    snprintf(name, sizeof(name), "/none/%0300d", 0);
    fails(df_stat(at(name), &st), ENOENT); /* the first component decides */
}

/* ---- directories that moved or went away ---- */

static void an_open_directory_keeps_its_place(void **state)
{
    uint64_t a = traced_make(fs, 1, "a", S_IFDIR | 0755),
             b = traced_make(fs, 1, "b", S_IFDIR | 0755);
    uint64_t dir = traced_make(fs, a, "dir", S_IFDIR | 0755);
    int fd;

    (void)state;
    mount_it();
    fd = df_open(at("/a/dir"), O_RDONLY | O_DIRECTORY, 0);
    assert_int_equal(df_fstatat(fd, "..", &st, 0), 0);
    assert_int_equal(st.st_ino, a);
    assert_int_equal(df_rename(at("/a/dir"), at("/b/dir")), 0);
    assert_int_equal(df_fstatat(fd, "..", &st, 0), 0);
    assert_int_equal(st.st_ino, b);
    assert_int_equal(df_fstatat(fd, "../dir", &st, 0), 0);
    assert_int_equal(st.st_ino, dir);
    assert_int_equal(df_rmdir(at("/b/dir")), 0);
    fails(df_fstatat(fd, "x", &st, 0), ENOENT);
    assert_int_equal(df_openat(fd, "x", O_CREAT | O_RDWR, 0644), -1);
    assert_int_equal(errno, ENOENT);
    assert_int_equal(df_fstatat(fd, "..", &st, 0), 0);
    assert_int_equal(st.st_ino, b);
    df_close(fd);
}

/* ---- permissions ---- */

/* Ten directories that somebody else has moved: for seven of them a listing can drop the parent
 * that they had. The others are looked up. */
static void a_listing_learns_as_much_as_it_can_drop(void **state)
{
    uint64_t to = traced_make(fs, FUSE_ROOT_ID, "to", S_IFDIR | 0755), from;
    char before[] = "/from0/0", after[] = "/to/0", buf[4096];
    int fd;

    (void)state;
    mount_options("rw");
    for (char i = '0'; i <= '9'; i++) {
        before[5] = before[7] = i;
        before[6] = '\0';
        from = traced_make(fs, FUSE_ROOT_ID, &before[1], S_IFDIR | 0755);
        before[6] = '/';
        traced_make(fs, from, &before[7], S_IFDIR | 0755);
        assert_int_equal(df_stat(at(before), &st), 0);
        traced_move(fs, from, &before[7], to);
    }
    fd = df_open(at("/to"), O_RDONLY | O_DIRECTORY, 0);
    assert_true(df_getdents(fd, buf, sizeof(buf)) > 0);
    df_close(fd);
    traced_log(fs, "");
    for (char i = '0'; i <= '9'; i++) {
        after[4] = i;
        assert_int_equal(df_stat(at(after), &st), 0);
    }
    asked("LOOKUP 2/7, LOOKUP 2/8, LOOKUP 2/9");
}

static void other_users_stay_outside(void **state)
{
    struct df_identity other = {.uid = 4711, .gid = 4711};

    (void)state;
    traced_make(fs, 1, "file", S_IFREG | 0666);
    mount_it();
    assert_int_equal(df_identity_set(&other), 0);
    fails(df_stat(at("/file"), &st), EACCES);
    fails(df_open(at("/file"), O_RDONLY, 0), EACCES);
    fails(df_mkdir(at("/dir"), 0777), EACCES);
    df_identity_set(NULL);
    asked("");
}

static void mode_bits_are_checked_on_demand(void **state)
{
    struct df_identity other = {.uid = 4711, .gid = 4711};
    uint64_t closed = traced_make(fs, 1, "closed", S_IFDIR | 0700);
    uint64_t sticky = traced_make(fs, 1, "sticky", S_IFDIR | 01777);

    (void)state;
    traced_make(fs, closed, "file", S_IFREG | 0666);
    traced_make(fs, sticky, "file", S_IFREG | 0644);
    traced_make(fs, 1, "plain", S_IFREG | 0644);
    mount_options("default_permissions,allow_other");
    assert_int_equal(df_identity_set(&other), 0);
    fails(df_stat(at("/closed/file"), &st), EACCES);
    fails(df_open(at("/plain"), O_WRONLY, 0), EACCES);
    fails(df_mkdir(at("/dir"), 0755), EACCES);
    fails(df_unlink(at("/sticky/file")), EPERM);
    fails(df_rename(at("/sticky/file"), at("/sticky/moved")), EPERM);
    fails(df_chmod(at("/plain"), 0666), EPERM);
    fails(df_access(at("/plain"), X_OK), EACCES);
    assert_int_equal(df_access(at("/plain"), R_OK), 0);
    assert_int_equal(df_stat(at("/plain"), &st), 0);
    assert_int_equal(df_mkdir(at("/sticky/mine"), 0755), 0);
    df_identity_set(NULL);
    assert_int_equal(df_rmdir(at("/sticky/mine")), 0);
    assert_int_equal(df_stat(at("/closed/file"), &st), 0);
}

/* ---- notifications ---- */

static void invalidated_entries_are_asked_for_again(void **state)
{
    uint64_t file = traced_make(fs, 1, "file", S_IFREG | 0644);

    (void)state;
    mount_it();
    df_stat(at("/file"), &st);
    asked("LOOKUP 1/file");
    assert_int_equal(df_notify_inval_entry(mounted, 1, "file", 4), 0);
    assert_int_equal(ino_of("/file"), file);
    asked("LOOKUP 1/file");
    assert_int_equal(df_stat(at(""), &st), 0);
    asked("GETATTR 1"); /* the parent's attributes as well */
    traced_drop(fs, 1, "file");
    assert_int_equal(df_notify_delete(mounted, 1, file, "file", 4), 0);
    fails(df_stat(at("/file"), &st), ENOENT);
    assert_int_equal(df_notify_inval_entry(mounted, 1, "file", 4), -ENOENT);
    assert_int_equal(df_notify_inval_entry(mounted, 77, "file", 4), -ENOENT);
    traced_make(fs, 1, "other", S_IFREG | 0644);
    df_stat(at("/other"), &st);
    assert_int_equal(df_notify_delete(mounted, 1, 77, "other", 5), -ENOENT);
    assert_int_equal(df_notify_inval_entry(mounted, ino_of("/other"), "x", 1), -ENOTDIR);
}

static void invalidated_attributes_are_asked_for_again(void **state)
{
    uint64_t file = traced_make(fs, 1, "file", S_IFREG | 0644);
    struct fuse_bufvec vec = FUSE_BUFVEC_INIT(10);

    (void)state;
    mount_it();
    df_stat(at("/file"), &st);
    asked("LOOKUP 1/file");
    assert_int_equal(df_notify_inval_inode(mounted, file, 0, 0), 0);
    df_stat(at("/file"), &st);
    asked("GETATTR 2");
    assert_int_equal(df_notify_inval_inode(mounted, 77, 0, 0), -ENOENT);
    assert_int_equal(df_notify_store(mounted, file, 100, &vec, 0), 0);
    df_stat(at("/file"), &st);
    asked("GETATTR 2");
    assert_int_equal(df_notify_store(mounted, 1, 100, &vec, 0), -EINVAL);
    assert_int_equal(df_notify_retrieve(mounted, file, 10, 0, NULL), -ENOSYS);
}

static void invalidated_links_are_read_again(void **state)
{
    uint64_t link;

    (void)state;
    traced_make(fs, 1, "a", S_IFREG | 0644);
    traced_make(fs, 1, "b", S_IFREG | 0644);
    link = make_link(1, "link", "a");
    fs->want_on = FUSE_CAP_CACHE_SYMLINKS;
    mount_it();
    assert_int_equal(ino_of("/link"), 2);
    strcpy(fs->nodes[link].target, "b");
    assert_int_equal(ino_of("/link"), 2);
    assert_int_equal(df_notify_inval_inode(mounted, link, 0, 0), 0);
    assert_int_equal(ino_of("/link"), 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        test(targets_are_walked_from_where_the_link_is),
        test(forty_links_are_followed),
        test(links_lead_out_and_back),
        test(creating_follows_links),
        test(names_may_be_longer_than_those_on_disk),
        test(an_open_directory_keeps_its_place),
        test(a_listing_learns_as_much_as_it_can_drop),
        test(other_users_stay_outside),
        test(mode_bits_are_checked_on_demand),
        test(invalidated_entries_are_asked_for_again),
        test(invalidated_attributes_are_asked_for_again),
        test(invalidated_links_are_read_again),
    };

    umask(022);
    return cmocka_run_group_tests(tests, can_mount, end_mounts);
}
