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
    assert_int_equal(df_permission_remove(&user, &dir, &victim), -EPERM);
    victim.st_uid = 1;
    assert_int_equal(df_permission_remove(&user, &dir, &victim), 0);
    dir.st_mode = S_IFDIR | 0755;
    assert_int_equal(df_permission_remove(&user, &dir, &victim), -EACCES);
}

static void attributes_are_for_owners(void **state)
{
    (void)state;
    struct stat own = file(S_IFREG | 0600, 1, 2), other = file(S_IFREG | 0606, 2, 2);
    struct df_setattr set = {.valid = DF_SET_MODE, .mode = 02755};
    assert_int_equal(df_permission_setattr(&user, &other, true, &set), -EPERM);
    assert_int_equal(df_permission_setattr(&user, &own, true, &set), 0);
    assert_int_equal(set.mode, 0755); /* not in the file's group */
    set = (struct df_setattr){.valid = DF_SET_GID, .gid = 50};
    assert_int_equal(df_permission_setattr(&user, &own, true, &set), 0);
    set.gid = 51;
    assert_int_equal(df_permission_setattr(&user, &own, true, &set), -EPERM);
    set.valid = DF_SET_ATIME | DF_SET_MTIME;
    assert_int_equal(df_permission_setattr(&user, &other, true, &set), -EPERM);
    set.valid |= DF_SET_ATIME_NOW | DF_SET_MTIME_NOW;
    assert_int_equal(df_permission_setattr(&user, &other, true, &set), 0);
}

static void privileges_are_stripped_where_they_are_some(void **state)
{
    (void)state;
    assert_int_equal(df_check_strip(06755), 0755);
    assert_int_equal(df_check_strip(06745), 02745); /* setgid without x: mandatory locking */
    assert_int_equal(df_permission_of_open(O_RDONLY | O_TRUNC), R_OK | W_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_class_that_fits_decides),
        cmocka_unit_test(a_sticky_directory_is_for_owners),
        cmocka_unit_test(attributes_are_for_owners),
        cmocka_unit_test(privileges_are_stripped_where_they_are_some),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
