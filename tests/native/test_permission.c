/*
 * test_permission.c - mode bits against a caller: the rules of Linux, row by row.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/call.h"
#include "core/check.h"
#include "core/ops.h"
#include "host/permission.h"

static const gid_t groups[] = {50};
static const struct df_caller root = {.capable = true};
static const struct df_caller user = {.uid = 1, .gid = 1, .group_count = 1, .groups = groups};

static struct stat file(mode_t mode, uid_t uid, gid_t gid)
{
    return (struct stat){.st_mode = mode, .st_uid = uid, .st_gid = gid};
}

static void the_first_class_that_fits_decides(void **state)
{
    (void)state;
    struct stat own = file(S_IFREG | 0077, 1, 1), group = file(S_IFREG | 0707, 2, 50);
    struct stat other = file(S_IFREG | 0704, 2, 2), dir = file(S_IFDIR, 2, 2);
    assert_int_equal(df_permission_check(&user, &own, R_OK), -EACCES);
    assert_int_equal(df_permission_check(&user, &group, R_OK), -EACCES);
    assert_int_equal(df_permission_check(&user, &other, R_OK), 0);
    assert_int_equal(df_permission_check(&user, &other, R_OK | W_OK), -EACCES);
    assert_int_equal(df_permission_check(&root, &dir, R_OK | W_OK | X_OK), 0);
    dir.st_mode = S_IFREG;
    assert_int_equal(df_permission_check(&root, &dir, R_OK | W_OK), 0);
    assert_int_equal(df_permission_check(&root, &dir, X_OK), -EACCES);
}

static void a_sticky_directory_is_for_owners(void **state)
{
    (void)state;
    struct stat dir = file(S_IFDIR | 01777, 2, 2), victim = file(S_IFREG, 3, 3);
    assert_int_equal(df_permission_sticky(&user, &dir, &victim), -EPERM);
    victim.st_uid = 1;
    assert_int_equal(df_permission_sticky(&user, &dir, &victim), 0);
    victim.st_uid = 3;
    dir.st_mode = S_IFDIR | 0777;
    assert_int_equal(df_permission_sticky(&user, &dir, &victim), 0);
}

static void attributes_are_for_owners(void **state)
{
    (void)state;
    struct stat own = file(S_IFREG | 0600, 1, 2), other = file(S_IFREG | 0606, 2, 2);
    struct df_setattr set = {.valid = DF_SET_MODE, .mode = 02755};
    assert_int_equal(df_permission_setattr(&user, &other, &set), -EPERM);
    assert_int_equal(df_permission_setattr(&user, &own, &set), 0);
    assert_int_equal(set.mode, 0755); /* not in the file's group */
    set = (struct df_setattr){.valid = DF_SET_GID, .gid = 50};
    assert_int_equal(df_permission_setattr(&user, &own, &set), 0);
    set.gid = 51;
    assert_int_equal(df_permission_setattr(&user, &own, &set), -EPERM);
    set.valid = DF_SET_ATIME | DF_SET_MTIME;
    assert_int_equal(df_permission_setattr(&user, &other, &set), -EPERM);
    set.valid |= DF_SET_ATIME_NOW | DF_SET_MTIME_NOW;
    assert_int_equal(df_permission_setattr(&user, &other, &set), 0);
}

static void some_attributes_take_the_right_to_write(void **state)
{
    (void)state;
    struct stat own = file(S_IFREG | 0600, 1, 2), other = file(S_IFREG | 0606, 2, 2);
    struct df_setattr set = {.valid = DF_SET_SIZE};
    assert_true(df_permission_setattr_writes(&user, &own, true, &set));
    assert_false(df_permission_setattr_writes(&user, &own, false, &set));
    set.valid = DF_SET_ATIME | DF_SET_MTIME | DF_SET_ATIME_NOW;
    assert_false(df_permission_setattr_writes(&user, &other, true, &set));
    set.valid |= DF_SET_MTIME_NOW;
    assert_true(df_permission_setattr_writes(&user, &other, true, &set));
    assert_false(df_permission_setattr_writes(&user, &own, true, &set));
}

static void privileges_are_stripped_where_they_are_some(void **state)
{
    (void)state;
    assert_int_equal(df_check_strip(06755), 0755);
    assert_int_equal(df_check_strip(06745), 02745); /* setgid without x: mandatory locking */
    assert_int_equal(df_permission_of_open(O_RDONLY | O_TRUNC), R_OK | W_OK);
}

/* xattr_permission(), cap_inode_setxattr(), set_posix_acl(). */
static void name_spaces_of_attributes_have_rules(void **state)
{
    static const char acl[] = "system.posix_acl_access";
    const struct stat own = {.st_mode = S_IFREG | 0600, .st_uid = 1};
    const struct stat other = {.st_mode = S_IFREG | 0666, .st_uid = 2};

    (void)state;
    assert_int_equal(df_permission_xattr(&user, &own, "security.capability", true), -EPERM);
    assert_int_equal(df_permission_xattr(&user, &other, "security.capability", false), 0);
    assert_int_equal(df_permission_xattr(&root, &other, "security.capability", true), 0);
    assert_int_equal(df_permission_xattr(&user, &own, acl, true), 0);
    assert_int_equal(df_permission_xattr(&user, &other, acl, true), -EPERM);
    assert_int_equal(df_permission_xattr(&user, &other, acl, false), 0);
    assert_int_equal(df_permission_xattr(&user, &other, "system.other", true), 0);
    assert_int_equal(df_permission_xattr(&user, &other, "trusted.a", false), -ENODATA);
    assert_true(df_permission_xattr_asks(&user, acl, true));
    assert_false(df_permission_xattr_asks(&user, acl, false));
    assert_false(df_permission_xattr_asks(&root, acl, true));
    assert_false(df_permission_xattr_by_mode("security.a"));
    assert_false(df_permission_xattr_by_mode(acl));
    assert_true(df_permission_xattr_by_mode("user.a"));
    assert_true(df_permission_xattr_by_mode("none.a")); /* of no name space: as in the kernel */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_class_that_fits_decides),
        cmocka_unit_test(a_sticky_directory_is_for_owners),
        cmocka_unit_test(attributes_are_for_owners),
        cmocka_unit_test(some_attributes_take_the_right_to_write),
        cmocka_unit_test(privileges_are_stripped_where_they_are_some),
        cmocka_unit_test(name_spaces_of_attributes_have_rules),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
