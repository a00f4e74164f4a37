/*
 * test_heap.c - when a server gives back what its file systems have freed (process/heap.h), and
 * that it goes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "process/heap.h"

#define SECOND INT64_C(1000000000)

static void what_is_idle_gives_back_once(void **state)
{
    struct df_heap heap = {0};

    (void)state;
    assert_false(df_heap_cool(&heap, 0, 10 * SECOND));
    assert_false(df_heap_cool(&heap, 5, 20 * SECOND)); /* somebody is at it */
    assert_false(df_heap_cool(&heap, 6, 30 * SECOND));
    assert_true(df_heap_cool(&heap, 6, 40 * SECOND));
    assert_false(df_heap_cool(&heap, 6, 50 * SECOND)); /* nothing can have been freed */
    assert_false(df_heap_cool(&heap, 6, 5000 * SECOND));
}

static void what_is_busy_gives_back_each_minute(void **state)
{
    struct df_heap heap = {0};
    unsigned given = 0;

    (void)state;
    for (int64_t now = 10; now <= 600; now += 10)
        given += df_heap_cool(&heap, (uint64_t)now, now * SECOND);
    assert_int_equal(given, 10);
}

static size_t resident(void)
{
    unsigned long all, here = 0;
    FILE *file = fopen("/proc/self/statm", "r");

    assert_non_null(file);
    assert_int_equal(fscanf(file, "%lu %lu", &all, &here), 2);
    fclose(file);
    return here * (size_t)sysconf(_SC_PAGESIZE);
}

/* A sanitizer's malloc keeps for a while what was freed. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define KEEPS true
#else
#define KEEPS false
#endif

/* As removed files leave it, of which one in fifty stays: free() alone returns nothing. */
static void memory_between_what_stays_goes(void **state)
{
    enum { COUNT = 16384, SIZE = 4096, STAYS = 50 };
    static char *pieces[COUNT];
    struct df_heap heap = {0};
    size_t before;

    (void)state;
    if (KEEPS)
        skip();
    for (unsigned i = 0; i < COUNT; i++)
        memset(pieces[i] = malloc(SIZE), 1, SIZE);
    for (unsigned i = 0; i < COUNT; i++)
        if (i % STAYS != 0)
            free(pieces[i]);
    before = resident();
    assert_true(df_heap_cool(&heap, 1, 100 * SECOND));
    assert_in_range(before - resident(), COUNT / 10 * 9 * SIZE, COUNT * SIZE);
    for (unsigned i = 0; i < COUNT; i += STAYS)
        free(pieces[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_idle_gives_back_once),
        cmocka_unit_test(what_is_busy_gives_back_each_minute),
        cmocka_unit_test(memory_between_what_stays_goes),
    };
    alarm(30); /* a hang is a failure */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
