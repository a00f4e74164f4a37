/*
 * test_acl.c - access control lists against a caller: the rules of Linux, and answers of a file
 * system that are no lists.
 */
#include <errno.h>
#include <linux/posix_acl.h>
#include <linux/posix_acl_xattr.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/caller.h"
#include "host/acl.h"

#define NONE UINT32_MAX

static const gid_t groups[] = {50, 51};
static const struct df_caller user = {.uid = 1, .gid = 1, .group_count = 2, .groups = groups};
static const struct stat st = {.st_mode = S_IFREG | 0660, .st_uid = 2, .st_gid = 51};

struct entry {
    uint16_t tag, rights;
    uint32_t id;
};

struct list {
    uint32_t version;
    struct entry entries[6];
};

#define SIZE(n) ((ssize_t)(sizeof(uint32_t) + (n) * sizeof(struct entry)))

static int check(const struct list *list, size_t count, int mask)
{
    return df_acl_check(&user, &st, list, SIZE(count), mask);
}

static void a_user_by_name_is_in_no_group(void **state)
{
    struct list list = {2,
                        {{ACL_USER_OBJ, 7, NONE},
                         {ACL_USER, 4, 1},
                         {ACL_GROUP_OBJ, 7, NONE},
                         {ACL_MASK, 7, NONE},
                         {ACL_OTHER, 7, NONE}}};
    (void)state;
    assert_int_equal(check(&list, 5, R_OK), 0);
    assert_int_equal(check(&list, 5, W_OK), -EACCES);
    list.entries[3].rights = 2;
    assert_int_equal(check(&list, 5, R_OK), -EACCES);
}

static void one_group_that_grants_all_is_enough(void **state)
{
    struct list list = {2,
                        {{ACL_USER_OBJ, 7, NONE},
                         {ACL_GROUP_OBJ, 4, NONE}, /* 51 */
                         {ACL_GROUP, 6, 50},
                         {ACL_MASK, 7, NONE},
                         {ACL_OTHER, 7, NONE}}};
    (void)state;
    assert_int_equal(check(&list, 5, R_OK | W_OK), 0);
    assert_int_equal(check(&list, 5, X_OK), -EACCES); /* others are who is in none */
    list.entries[2].id = 52;
    assert_int_equal(check(&list, 5, R_OK | W_OK), -EACCES);
    list.entries[1].rights = 7;
    list.entries[3].rights = 5;
    assert_int_equal(check(&list, 5, R_OK | X_OK), 0);
    assert_int_equal(check(&list, 5, W_OK), -EACCES);
}

static void no_list_leaves_it_to_the_mode(void **state)
{
    const struct list empty = {.version = 2};
    (void)state;
    assert_int_equal(check(&empty, 0, R_OK), DF_ACL_ABSENT);
    assert_int_equal(df_acl_check(&user, &st, NULL, 0, R_OK), DF_ACL_ABSENT);
    assert_int_equal(df_acl_check(&user, &st, NULL, -ENODATA, R_OK), DF_ACL_ABSENT);
    assert_int_equal(df_acl_check(&user, &st, NULL, -EOPNOTSUPP, R_OK), DF_ACL_ABSENT);
    assert_int_equal(df_acl_check(&user, &st, NULL, -ERANGE, R_OK), -E2BIG);
    assert_int_equal(df_acl_check(&user, &st, NULL, -EIO, R_OK), -EIO);
}

static void what_is_no_list_is_an_error(void **state)
{
    struct list list = {2, {{ACL_USER_OBJ, 7, NONE}, {ACL_GROUP_OBJ, 7, NONE}}};
    (void)state;
    list.entries[1].rights = 0;
    assert_int_equal(check(&list, 2, R_OK), -EIO); /* and nothing of others */
    assert_int_equal(df_acl_check(&user, &st, &list, 3, R_OK), -EINVAL);
    assert_int_equal(df_acl_check(&user, &st, &list, SIZE(2) - 1, R_OK), -EINVAL);
    list.entries[1].tag = 0x40;
    assert_int_equal(check(&list, 2, R_OK), -EINVAL);
    list.entries[1].tag = ACL_GROUP | ACL_MASK;
    assert_int_equal(check(&list, 2, R_OK), -EINVAL);
    list.version = 1;
    assert_int_equal(check(&list, 2, R_OK), -EOPNOTSUPP);
}

static void entries_that_name_nobody_have_no_id(void **state)
{
    struct list list = {2, {{ACL_USER_OBJ, 7, 0}, {ACL_USER, 7, 5}, {ACL_OTHER, 7, 3}}};
    (void)state;
    assert_int_equal(df_acl_get(&list, SIZE(3)), SIZE(3));
    assert_int_equal(list.entries[0].id, NONE);
    assert_int_equal(list.entries[1].id, 5);
    assert_int_equal(list.entries[2].id, NONE);
    assert_int_equal(df_acl_get(&list, SIZE(0)), -ENODATA);
    assert_int_equal(df_acl_get(&list, 0), -ENODATA);
    assert_int_equal(df_acl_get(&list, -ERANGE), -ERANGE);
    assert_int_equal(df_acl_get(&list, 3), -EINVAL);
}

static void for_whom_a_list_is(void **state)
{
    const struct df_caller root = {.capable = true}, owner = {.uid = 2};
    struct stat closed = st;
    (void)state;
    assert_true(df_caller_is_for_acl(&user, &st));
    assert_false(df_caller_is_for_acl(&root, &st));
    assert_false(df_caller_is_for_acl(&owner, &st));
    closed.st_mode = S_IFREG | 0607;
    assert_false(df_caller_is_for_acl(&user, &closed));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_user_by_name_is_in_no_group),
        cmocka_unit_test(one_group_that_grants_all_is_enough),
        cmocka_unit_test(no_list_leaves_it_to_the_mode),
        cmocka_unit_test(what_is_no_list_is_an_error),
        cmocka_unit_test(entries_that_name_nobody_have_no_id),
        cmocka_unit_test(for_whom_a_list_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
