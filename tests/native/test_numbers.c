/*
 * test_numbers.c - inode numbers of paths: made from names, exchanged by renames, forgotten when
 * the table is full.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "paths/numbers.h"

static struct df_numbers numbers;
static const struct df_numbers none;

static int setup(void **state)
{
    (void)state;
    memset(&numbers, 0, sizeof(numbers));
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    df_numbers_destroy(&numbers);
    return 0;
}

static ino_t number(const char *path)
{
    return df_number_of(&numbers, path, (uint32_t)strlen(path));
}

static ino_t made(const char *path)
{
    return df_number_of(&none, path, (uint32_t)strlen(path));
}

static void exchange(const char *a, const char *b)
{
    assert_int_equal(df_numbers_reserve(&numbers), 0);
    df_numbers_exchange(&numbers, a, (uint32_t)strlen(a), b, (uint32_t)strlen(b));
}

static void numbers_are_made_from_directory_and_name(void **state)
{
    (void)state;
    assert_int_equal(number("/"), DF_NUMBER_ROOT);
    assert_int_equal(number("/a"), made("/a"));
    assert_int_not_equal(number("/a/c"), number("/b/c"));
    assert_int_not_equal(number("/a/c"), number("/c/a"));
    assert_int_not_equal(number("/ac"), number("/a/c"));
    assert_int_equal(df_number_below(&numbers, number("/a"), "c", 1), number("/a/c"));
}

static void both_names_of_an_exchange_change_theirs(void **state)
{
    (void)state;
    exchange("/a", "/d/b");
    assert_int_equal(number("/a"), made("/d/b"));
    assert_int_equal(number("/d/b"), made("/a"));
    exchange("/d/b", "/c");
    assert_int_equal(number("/c"), made("/a"));
    assert_int_equal(number("/d/b"), made("/c"));
    assert_int_equal(number("/a"), made("/d/b"));
}

static void what_is_below_goes_along(void **state)
{
    (void)state;
    exchange("/a/f", "/a/g");
    exchange("/a", "/b");
    assert_int_equal(number("/b/c/d"), made("/a/c/d"));
    assert_int_equal(number("/b/g"), made("/a/f"));
    assert_int_equal(number("/a/c/d"), made("/b/c/d"));
}

static void exchange_back_is_none(void **state)
{
    (void)state;
    exchange("/a", "/b");
    exchange("/b", "/a");
    assert_int_equal(number("/a"), made("/a"));
    assert_int_equal(number("/b"), made("/b"));
    assert_int_equal(numbers.used, 2);
}

static void full_table_is_forgotten(void **state)
{
    char path[32];
    uint32_t count = 0;

    (void)state;
    while (df_numbers_reserve(&numbers) == 0) {
        snprintf(path, sizeof(path), "/%u", count++);
        exchange(path, "/f");
        assert_int_equal(number("/f"), made(path));
    }
    assert_int_equal(df_numbers_reserve(&numbers), -ENOSPC);
    assert_int_equal(count, DF_NUMBERS_MAX - 2); /* the first took two */
    df_numbers_forget(&numbers);
    assert_int_equal(df_numbers_reserve(&numbers), 0);
    assert_int_equal(number("/f"), made("/f"));
    assert_int_equal(number(path), made(path));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(numbers_are_made_from_directory_and_name, setup, teardown),
        cmocka_unit_test_setup_teardown(both_names_of_an_exchange_change_theirs, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_below_goes_along, setup, teardown),
        cmocka_unit_test_setup_teardown(exchange_back_is_none, setup, teardown),
        cmocka_unit_test_setup_teardown(full_table_is_forgotten, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
