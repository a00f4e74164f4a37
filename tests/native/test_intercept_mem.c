/*
 * test_intercept_mem.c - the core's own functions of memory do what libc's do.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* Under other names beside libc's. */
#define memcpy  core_memcpy
#define memmove core_memmove
#define memset  core_memset
#define memcmp  core_memcmp
#define strlen  core_strlen
#include "intercept/mem.c"
#undef memcpy
#undef memmove
#undef memset
#undef memcmp
#undef strlen

#define MOST 40 /* bytes: several words and what is left of one */

static int sign(int number)
{
    return (number > 0) - (number < 0);
}

static void bytes_are_compared_as_by_libc(void **state)
{
    (void)state;
    for (size_t size = 0; size <= MOST; size++)
        for (size_t at = 0; at <= size; at++) {
            unsigned char a[MOST + 1], b[MOST + 1];

            for (size_t i = 0; i <= MOST; i++)
                a[i] = b[i] = (unsigned char)(i * 37 + 200);
            b[at]++; /* behind the end, too, where it must not be seen */
            b[size]++;
            assert_int_equal(sign(core_memcmp(a, b, size)), sign(memcmp(a, b, size)));
            assert_int_equal(sign(core_memcmp(b, a, size)), sign(memcmp(b, a, size)));
            if (at + 2 < size) /* a later difference says nothing */
                b[size - 1] = (unsigned char)(a[size - 1] - 1);
            assert_int_equal(sign(core_memcmp(a, b, size)), sign(memcmp(a, b, size)));
        }
}

static void bytes_are_copied_and_moved_as_by_libc(void **state)
{
    (void)state;
    for (size_t size = 0; size <= MOST; size++)
        for (size_t to = 0; to <= MOST; to++) {
            char ours[2 * MOST + 1], theirs[sizeof(ours)], away[MOST + 1] = {0};

            for (size_t i = 0; i < sizeof(ours); i++)
                ours[i] = theirs[i] = (char)(i + 1);
            core_memmove(ours + to, ours + MOST / 2, size);
            memmove(theirs + to, theirs + MOST / 2, size);
            assert_memory_equal(ours, theirs, sizeof(ours));
            core_memcpy(away, ours, size);
            core_memset(away + size, 7, to <= MOST - size ? to : 0);
            assert_memory_equal(away, ours, size);
            assert_int_equal(away[size], size < MOST && to > 0 && to <= MOST - size ? 7 : 0);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_are_compared_as_by_libc),
        cmocka_unit_test(bytes_are_copied_and_moved_as_by_libc),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
