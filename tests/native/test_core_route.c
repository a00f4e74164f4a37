/*
 * test_core_route.c - from a path to a mount and a name: what the host is given, what is left to
 * the kernel, and ways that lead from one to the other.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/calls.h"
#include "core/fd.h"
#include "core/mount.h"
#include "core/route.h"

/* A file system that remembers what it was asked. */
struct echo {
    struct df_fs fs;
    struct df_ops ops;
    char name[PATH_MAX];
    uint32_t flags;
    bool based;
    int calls;
    int (*answer)(struct df_call *call, const struct df_where *where); /* NULL: 0 */
};

static struct echo outer, inner;
static char base[] = "/tmp/df-test-XXXXXX"; /* a real directory */
static char outer_point[64], inner_point[64];
static int outer_id, inner_id;

static int note(struct df_fs *fs, struct df_call *call, const struct df_where *where)
{
    struct echo *echo = (struct echo *)fs;

    assert_int_equal(strlen(where->name), where->len);
    strcpy(echo->name, where->name);
    echo->flags = where->flags;
    echo->based = where->base != NULL;
    echo->calls++;
    return echo->answer ? echo->answer(call, where) : 0;
}

static int echo_getattr(struct df_fs *fs, struct df_call *call, const struct df_where *where,
                        struct stat *st)
{
    memset(st, 0, sizeof(*st));
    st->st_mode = S_IFDIR | 0755;
    return note(fs, call, where);
}

static int echo_mkdir(struct df_fs *fs, struct df_call *call, const struct df_where *where,
                      mode_t mode)
{
    (void)mode;
    return note(fs, call, where);
}

static int echo_rename(struct df_fs *fs, struct df_call *call, const struct df_where *from,
                       const struct df_where *to, unsigned flags)
{
    int ret = note(fs, call, from);

    (void)flags;
    if (ret == 0 && (ret = note(fs, call, to)) == DF_LEAVE)
        call->leave_second = true;
    return ret;
}

static int echo_open(struct df_fs *fs, struct df_call *call, const struct df_where *where,
                     struct df_file *file, int flags, mode_t mode)
{
    (void)flags, (void)mode;
    file->kind = DF_KIND_DIRECTORY;
    return note(fs, call, where);
}

static int attach(struct echo *echo, const char *point)
{
    struct df_ops given = {.version = DF_OPS_VERSION,
                           .size = sizeof(given),
                           .getattr = echo_getattr,
                           .mkdir = echo_mkdir,
                           .rename = echo_rename,
                           .open = echo_open};
    struct df_mount_spec spec = {.point = point};
    struct df_mount *mount;

    assert_int_equal(df_ops_complete(&echo->ops, &given), 0);
    echo->fs.ops = &echo->ops;
    assert_int_equal(df_mount_attach(&spec, &echo->fs, &mount), 0);
    return mount->id;
}

static int group_setup(void **state)
{
    (void)state;
    if (!mkdtemp(base))
        return -1;
    snprintf(outer_point, sizeof(outer_point), "%s/outer", base);
    snprintf(inner_point, sizeof(inner_point), "%s/outer/in/ner", base);
    outer_id = attach(&outer, outer_point);
    inner_id = attach(&inner, inner_point);
    return 0;
}

static int group_teardown(void **state)
{
    (void)state;
    assert_int_equal(df_mount_detach(inner_id, 0), 0);
    assert_int_equal(df_mount_detach(outer_id, 0), 0);
    return rmdir(base);
}

static int setup(void **state)
{
    (void)state;
    outer.calls = inner.calls = 0;
    outer.answer = inner.answer = NULL;
    return 0;
}

/* base and suffix; valid until four more are made. */
static const char *at(const char *suffix)
{
    static char paths[4][PATH_MAX * 2];
    static int next;
    char *path = paths[next++ % 4];

    snprintf(path, sizeof(paths[0]), "%s%s", base, suffix);
    return path;
}

static int stat_at(int dirfd, const char *path, int flags)
{
    struct stat st;

    return df_call_fstatat(dirfd, path, &st, flags);
}

#define assert_asked(echo, n, f)                                                                   \
    do {                                                                                           \
        assert_int_equal((echo).calls, 1);                                                         \
        assert_string_equal((echo).name, n);                                                       \
        assert_int_equal((echo).flags, f);                                                         \
        (echo).calls = 0;                                                                          \
    } while (0)

static void asks_for(const char *path, struct echo *echo, const char *name, unsigned flags)
{
    assert_int_equal(stat_at(AT_FDCWD, at(path), 0), 0);
    assert_asked(*echo, name, flags);
}

static void makes_paths_canonical(void **state)
{
    (void)state;
    asks_for("/outer", &outer, "/", 0);
    asks_for("/outer/", &outer, "/", DF_WHERE_DIRECTORY);
    asks_for("/outer/a/b", &outer, "/a/b", 0);
    asks_for("//outer//a///b", &outer, "/a/b", 0);
    asks_for("/outer/./a/./b/.", &outer, "/a/b", DF_WHERE_DIRECTORY | DF_WHERE_DOT);
    asks_for("/outer/a/", &outer, "/a", DF_WHERE_DIRECTORY);
    asks_for("/./outer/...", &outer, "/...", 0);
    asks_for("/outer/.hidden/..x", &outer, "/.hidden/..x", 0);
    asks_for("/outer/a/../b", &outer, "/a/../b", DF_WHERE_DOTDOT);
    asks_for("/outer/a/..", &outer, "/a/..", DF_WHERE_DOTDOT);
    asks_for("/outer//a/.././b//", &outer, "/a/../b", DF_WHERE_DOTDOT | DF_WHERE_DIRECTORY);
    assert_int_equal(stat_at(AT_FDCWD, at("/outer/a"), AT_SYMLINK_NOFOLLOW), 0);
    assert_asked(outer, "/a", DF_WHERE_NOFOLLOW);
    assert_int_equal(df_call_mkdirat(AT_FDCWD, at("/outer/a/"), 0), 0);
    assert_asked(outer, "/a", DF_WHERE_PARENT | DF_WHERE_DIRECTORY);
}

static void takes_the_longest_prefix(void **state)
{
    (void)state;
    asks_for("/outer/in/ner/x", &inner, "/x", 0);
    asks_for("/outer/in/ner", &inner, "/", 0);
    asks_for("/outer/in/nerd", &outer, "/in/nerd", 0);
    asks_for("/outer/in", &outer, "/in", 0);
    assert_int_equal(stat_at(AT_FDCWD, at("/outerx"), 0), DF_NOT_OURS);
    assert_int_equal(stat_at(AT_FDCWD, at("/oute"), 0), DF_NOT_OURS);
    assert_int_equal(stat_at(AT_FDCWD, base, 0), DF_NOT_OURS);
    assert_int_equal(stat_at(AT_FDCWD, "/", 0), DF_NOT_OURS);
    assert_null(df_left_path(0));
}

static void refuses_impossible_paths(void **state)
{
    char path[PATH_MAX + 1];
    size_t len;

    (void)state;
    len = (size_t)snprintf(path, sizeof(path), "%s/outer", base);
    memset(path + len, 'x', sizeof(path) - len);
    path[len] = '/';
    path[PATH_MAX] = '\0';
    assert_int_equal(stat_at(AT_FDCWD, path, 0), -ENAMETOOLONG);
    path[len + 1] = '.';
    path[len + 2] = '/';
    assert_int_equal(stat_at(AT_FDCWD, path, 0), -ENAMETOOLONG);
    path[PATH_MAX - 1] = '\0';
    assert_int_equal(stat_at(AT_FDCWD, path, 0), 0);
    assert_int_equal(stat_at(AT_FDCWD, "", 0), -ENOENT);
    assert_int_equal(stat_at(AT_FDCWD, NULL, 0), -EFAULT);
    assert_int_equal(stat_at(DF_FD_BASE + 77, "x", 0), -EBADF);
    assert_int_equal(stat_at(DF_FD_BASE + 77, "", AT_EMPTY_PATH), -EBADF);
}

static void resolves_relative_paths(void **state)
{
    int fd = open(base, O_PATH | O_DIRECTORY | O_CLOEXEC), home = open(".", O_PATH | O_CLOEXEC);

    (void)state;
    assert_int_equal(stat_at(fd, "outer/a", 0), 0);
    assert_asked(outer, "/a", 0);
    assert_int_equal(stat_at(fd, "./outer", 0), 0);
    assert_asked(outer, "/", 0);
    assert_int_equal(stat_at(fd, "other", 0), DF_NOT_OURS);
    assert_int_equal(stat_at(AT_FDCWD, "outer/a", 0), DF_NOT_OURS);
    assert_int_equal(chdir(base), 0);
    assert_int_equal(stat_at(AT_FDCWD, "outer/a", 0), 0);
    assert_asked(outer, "/a", 0);
    assert_int_equal(chdir("/"), 0);
    assert_int_equal(stat_at(AT_FDCWD, base + 1, 0), DF_NOT_OURS);
    assert_int_equal(stat_at(AT_FDCWD, outer_point + 1, 0), 0);
    assert_asked(outer, "/", 0);
    assert_int_equal(fchdir(home), 0);
    close(home);
    close(fd);
}

static void resolves_from_an_open_directory(void **state)
{
    int fd = df_call_openat(AT_FDCWD, at("/outer/d"), O_RDONLY, 0);

    (void)state;
    assert_true(fd >= DF_FD_BASE);
    outer.calls = 0;
    assert_int_equal(stat_at(fd, "x/y", 0), 0);
    assert_asked(outer, "x/y", 0);
    assert_true(outer.based);
    assert_int_equal(stat_at(fd, ".//x/./y/", 0), 0);
    assert_asked(outer, "x/y", DF_WHERE_DIRECTORY);
    assert_int_equal(stat_at(fd, "../x", 0), 0);
    assert_asked(outer, "../x", DF_WHERE_DOTDOT);
    assert_int_equal(stat_at(fd, ".", 0), 0);
    assert_asked(outer, "", DF_WHERE_DIRECTORY | DF_WHERE_DOT);
    assert_int_equal(stat_at(fd, "", AT_EMPTY_PATH), 0);
    assert_asked(outer, "", 0);
    assert_int_equal(stat_at(fd, at("/outer/a"), 0), 0);
    assert_asked(outer, "/a", 0);
    assert_false(outer.based);
    assert_int_equal(df_call_close(fd), 0);
}

/* ".." and symlinks of the real file system, before the mount. */
static void walks_real_directories(void **state)
{
    char real[PATH_MAX], link[PATH_MAX];

    (void)state;
    strcpy(real, at("/real"));
    strcpy(link, at("/link"));
    assert_int_equal(mkdir(real, 0755), 0);
    asks_for("/real/../outer/a", &outer, "/a", 0);
    asks_for("/real/.././outer/a/..", &outer, "/a/..", DF_WHERE_DOTDOT);
    assert_int_equal(stat_at(AT_FDCWD, at("/none/../outer/a"), 0), DF_NOT_OURS);
    assert_int_equal(stat_at(AT_FDCWD, at("/real/../real"), 0), DF_NOT_OURS);

    /* A link into the mount: seen when the door asks again after the kernel's ENOENT. */
    assert_int_equal(symlink("outer/dir", link), 0);
    assert_int_equal(stat_at(AT_FDCWD, at("/link/a"), 0), DF_NOT_OURS);
    assert_false(df_retry_begin(EACCES));
    assert_true(df_retry_begin(ENOENT));
    assert_true(df_retry_begin(ENOTDIR)); /* a signal's handler, within the door's second call */
    df_retry_end();
    asks_for("/link/a/", &outer, "/dir/a", DF_WHERE_DIRECTORY);
    asks_for("/real/../link", &outer, "/dir", 0);
    assert_int_equal(stat_at(AT_FDCWD, link, AT_SYMLINK_NOFOLLOW), DF_NOT_OURS);
    assert_int_equal(stat_at(AT_FDCWD, at("/none"), 0), DF_NOT_OURS);
    df_retry_end();
    assert_int_equal(unlink(link), 0);

    /* A link to itself. */
    assert_int_equal(symlink("link", link), 0);
    assert_int_equal(stat_at(AT_FDCWD, at("/link/../outer"), 0), -ELOOP);
    assert_int_equal(unlink(link), 0);
    assert_int_equal(rmdir(real), 0);
}

/* ---- leaving ---- */

static const char *leave_target;

static int leave_by_link(struct df_call *call, const struct df_where *where)
{
    (void)where;
    return df_call_leave(call, leave_target, strlen(leave_target), "rest/of", true);
}

static int leave_upwards(struct df_call *call, const struct df_where *where)
{
    (void)where;
    return df_call_leave_up(call, "/rest");
}

static void goes_on_where_a_mount_is_left(void **state)
{
    (void)state;
    outer.answer = leave_by_link;
    leave_target = inner_point;
    assert_int_equal(stat_at(AT_FDCWD, at("/outer/l"), 0), 0);
    assert_asked(inner, "/rest/of", 0);
    assert_int_equal(stat_at(AT_FDCWD, at("/outer/l/"), 0), 0); /* still a directory */
    assert_asked(inner, "/rest/of", DF_WHERE_DIRECTORY);
    leave_target = "/etc";
    assert_int_equal(stat_at(AT_FDCWD, at("/outer/l"), 0), DF_NOT_OURS);
    assert_string_equal(df_left_path(0), "/etc/rest/of");
    assert_int_equal(stat_at(AT_FDCWD, at("/outer/l/"), 0), DF_NOT_OURS);
    assert_string_equal(df_left_path(0), "/etc/rest/of/");
    assert_int_equal(stat_at(AT_FDCWD, "/etc", 0), DF_NOT_OURS);
    assert_null(df_left_path(0));
    outer.answer = leave_upwards;
    assert_int_equal(stat_at(AT_FDCWD, at("/outer/.."), 0), DF_NOT_OURS);
    assert_string_equal(df_left_path(0), at("/rest/.")); /* ".." is a directory */
    inner.answer = leave_upwards;
    outer.answer = NULL;
    assert_int_equal(stat_at(AT_FDCWD, at("/outer/in/ner/.."), 0), 0);
    assert_string_equal(outer.name, "/in/rest");
}

static void ends_a_loop_of_links(void **state)
{
    (void)state;
    outer.answer = leave_by_link;
    leave_target = outer_point;
    assert_int_equal(stat_at(AT_FDCWD, at("/outer/l"), 0), -ELOOP);
    assert_int_equal(outer.calls, DF_LINKS_MAX + 1);
}

static int leave_name_out(struct df_call *call, const struct df_where *where)
{
    if (strcmp(where->name, "/out") != 0)
        return 0;
    return df_call_leave(call, leave_target, strlen(leave_target), "", true);
}

static void routes_two_paths(void **state)
{
    (void)state;
    assert_int_equal(df_call_renameat2(AT_FDCWD, at("/outer/a"), AT_FDCWD, at("/outer/b"), 0), 0);
    assert_int_equal(outer.calls, 2);
    assert_int_equal(df_call_renameat2(AT_FDCWD, at("/outer/a"), AT_FDCWD, at("/x"), 0), -EXDEV);
    assert_int_equal(df_call_renameat2(AT_FDCWD, at("/x"), AT_FDCWD, at("/outer/a"), 0), -EXDEV);
    assert_int_equal(
        df_call_renameat2(AT_FDCWD, at("/outer/a"), AT_FDCWD, at("/outer/in/ner/a"), 0), -EXDEV);
    assert_int_equal(df_call_renameat2(AT_FDCWD, at("/x"), AT_FDCWD, at("/y"), 0), DF_NOT_OURS);
    assert_null(df_left_path(0));

    /* The second path leaves: into the same mount, another one, the real file system. */
    outer.answer = leave_name_out;
    leave_target = at("/outer/c");
    assert_int_equal(df_call_renameat2(AT_FDCWD, at("/outer/a"), AT_FDCWD, at("/outer/out"), 0), 0);
    assert_string_equal(outer.name, "/c");
    leave_target = inner_point;
    assert_int_equal(df_call_renameat2(AT_FDCWD, at("/outer/a"), AT_FDCWD, at("/outer/out"), 0),
                     -EXDEV);
    leave_target = "/etc/x";
    assert_int_equal(df_call_renameat2(AT_FDCWD, at("/outer/out"), AT_FDCWD, at("/y"), 0), -EXDEV);
    /* A directory does not take a mount along. */
    outer.answer = NULL;
    assert_int_equal(df_call_renameat2(AT_FDCWD, at("/outer/in"), AT_FDCWD, at("/outer/on"), 0),
                     -EBUSY);
}

/* ---- mountpoints ---- */

static void finds_a_mountpoint_by_both_its_names(void **state)
{
    static struct echo third;
    char real[PATH_MAX], link[PATH_MAX], point[PATH_MAX + 8];
    int id;

    (void)state;
    strcpy(real, at("/real"));
    strcpy(link, at("/link"));
    assert_int_equal(mkdir(real, 0755), 0);
    assert_int_equal(symlink("real", link), 0);
    snprintf(point, sizeof(point), "%s/m//", link);
    id = attach(&third, point);
    asks_for("/link/m/x", &third, "/x", 0);
    asks_for("/real/m/x", &third, "/x", 0);
    assert_int_equal(df_mount_detach(id, 0), 0);
    assert_int_equal(unlink(link), 0);
    assert_int_equal(rmdir(real), 0);
}

static void serves_the_root(void **state)
{
    static struct echo third;
    int id = attach(&third, "/");

    (void)state;
    assert_int_equal(stat_at(AT_FDCWD, "/etc/../x", 0), 0);
    assert_asked(third, "/etc/../x", DF_WHERE_DOTDOT);
    assert_int_equal(stat_at(AT_FDCWD, "/", 0), 0);
    assert_asked(third, "/", DF_WHERE_DIRECTORY);
    asks_for("/outer/a", &outer, "/a", 0);
    assert_int_equal(df_mount_detach(id, 0), 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, setup)
    const struct CMUnitTest tests[] = {
        TEST(makes_paths_canonical),
        TEST(takes_the_longest_prefix),
        TEST(refuses_impossible_paths),
        TEST(resolves_relative_paths),
        TEST(resolves_from_an_open_directory),
        TEST(walks_real_directories),
        TEST(goes_on_where_a_mount_is_left),
        TEST(ends_a_loop_of_links),
        TEST(routes_two_paths),
        TEST(finds_a_mountpoint_by_both_its_names),
        TEST(serves_the_root),
    };

    return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
