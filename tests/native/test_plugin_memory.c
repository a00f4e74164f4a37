/*
 * test_plugin_memory.c - starting and stopping plugins while the n-th allocation fails, for every
 * n: each time an error or a mount, and nothing is left behind.
 *
 * The failing malloc is defined here and so interposed in the whole process. Allocations of the
 * dynamic linker itself are spared: glibc's dlopen does not survive their failure. Under a
 * sanitizer, which has a malloc of its own, only the runs without failures remain.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loader/plugin.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif

/* ---- the allocator -------------------------------------------------------------------------- */

static _Atomic bool counting;
static _Atomic long asked; /* allocations since counting began */
static long failing;       /* the one that fails; 0: none */
static uintptr_t linker, linker_end;

#ifndef SANITIZED
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *memory, size_t size);

static bool fails(const void *caller)
{
    uintptr_t address = (uintptr_t)caller;
    if (!counting || (address >= linker && address < linker_end) || ++asked != failing)
        return false;
    errno = ENOMEM;
    return true;
}

#pragma GCC visibility push(default) /* for all libraries of the process */
void *malloc(size_t size)
{
    return fails(__builtin_return_address(0)) ? NULL : __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    return fails(__builtin_return_address(0)) ? NULL : __libc_calloc(count, size);
}

void *realloc(void *memory, size_t size)
{
    return fails(__builtin_return_address(0)) ? NULL : __libc_realloc(memory, size);
}
#pragma GCC visibility pop
#endif

static int find_linker(void **state)
{
    (void)state;
    char line[512];
    unsigned long from, to;
    FILE *maps = fopen("/proc/self/maps", "re");
    assert_non_null(maps);
    while (fgets(line, sizeof(line), maps)) {
        if (!strstr(line, "/ld-linux") || sscanf(line, "%lx-%lx", &from, &to) != 2)
            continue;
        linker = linker ? linker : from;
        linker_end = to;
    }
    fclose(maps);
    return linker ? 0 : -1;
}

/* ---- one run --------------------------------------------------------------------------------- */

enum { WARM_RUNS = 8, RUNS = 24, SLACK = 100 /* bytes a run: chunks that threads keep cached */ };

/* Starts and stops; true when the n-th allocation was reached. */
static bool run(char **argv, long n)
{
    char path[512], message[256];
    struct df_plugin *plugin = NULL;
    int argc = 0, status;
    while (argv[argc])
        argc++;
    snprintf(path, sizeof(path), "%s%s.so", PLUGINS, argv[0]);
    failing = n;
    asked = 0;
    counting = true;
    const struct df_plugin_program program = {.library = path, .argc = argc, .argv = argv};
    int error = df_plugin_start(&program, &plugin, message, sizeof(message));
    int stopped = error == 0 ? df_plugin_stop(plugin, 0, &status) : 0;
    counting = false;
    if (stopped == -ENOMEM) /* then it is still there */
        stopped = df_plugin_stop(plugin, 0, &status);
    assert_int_equal(stopped, 0);
    assert_true(error == 0 || error == -EIO || error == -ENOMEM || error == -EAGAIN);
    return asked >= n;
}

static size_t heap(void)
{
    return mallinfo2().uordblks;
}

static size_t growth(char **argv, long n, int runs)
{
    size_t before = heap();
    for (int i = 0; i < runs; i++)
        run(argv, n);
    size_t after = heap();
    return after > before ? after - before : 0;
}

/* What is left behind is so each time; what the C library keeps once, is not. */
static void assert_nothing_is_left(char **argv, long n)
{
    size_t grown = 0;
    growth(argv, n, WARM_RUNS);
    for (int tries = 0; tries < 3; tries++) {
        grown = growth(argv, n, RUNS);
        if (grown <= RUNS * SLACK)
            return;
    }
    print_error("%s: allocation %ld: %zu bytes a run\n", argv[0], n, grown / RUNS);
    fail();
}

static void sweep(char **argv)
{
    assert_nothing_is_left(argv, 0);
#ifndef SANITIZED
    long n = 1;
    for (; run(argv, n); n++)
        assert_nothing_is_left(argv, n);
    assert_true(n > 5); /* the sweep has met something */
#endif
}

static void test_a_mount_with_modules(void **state)
{
    (void)state;
    sweep((char *[]){"hello_high", "-o", "text=a,modules=subdir:iconv,subdir=/,fsname=b",
                     "/t-memory/high", NULL});
}

static void test_a_message(void **state)
{
    (void)state;
    sweep((char *[]){"odd", "log", NULL});
}

static void test_help(void **state)
{
    (void)state;
    sweep((char *[]){"hello_high", "--help", NULL});
}

static void test_a_session(void **state)
{
    (void)state;
    sweep((char *[]){"odd", "descriptor", NULL});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_mount_with_modules),
        cmocka_unit_test(test_a_message),
        cmocka_unit_test(test_help),
        cmocka_unit_test(test_a_session),
    };
    if (!dlopen(STAGE_LIB "libdf3.so.3", RTLD_NOW | RTLD_LOCAL)) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    return cmocka_run_group_tests(tests, find_linker, NULL);
}
