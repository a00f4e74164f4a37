/*
 * plugin_fixture.h - programs of plugins/ started, looked at and stopped, for the tests of
 * loader/plugin.c.
 */
#ifndef DF_TEST_PLUGIN_FIXTURE_H
#define DF_TEST_PLUGIN_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/calls.h"
#include "loader/plugin.h"

enum { MESSAGE_SIZE = 4096 };

static char message[MESSAGE_SIZE];

/* Starts a program of plugins/ (or of any path) with the arguments that follow, up to NULL. */
static inline int start(struct df_plugin **plugin, const char *name, ...)
{
    char path[512];
    char *argv[16] = {(char *)name};
    int argc = 1;
    va_list args;
    va_start(args, name);
    while ((argv[argc] = va_arg(args, char *)))
        argc++;
    va_end(args);
    snprintf(path, sizeof(path), "%s%s%s", strchr(name, '/') ? "" : PLUGINS, name,
             strchr(name, '/') ? "" : ".so");
    *plugin = NULL;
    message[0] = '\0';
    const struct df_plugin_program program = {.library = path, .argc = argc, .argv = argv};
    int error = df_plugin_start(&program, plugin, message, sizeof(message));
    if (error)
        assert_null(*plugin);
    return error;
}

#define assert_started(plugin, ...)                                                                \
    do {                                                                                           \
        int started = start(plugin, __VA_ARGS__, NULL);                                            \
        if (started != 0)                                                                          \
            print_error("%s\n", message);                                                          \
        assert_int_equal(started, 0);                                                              \
    } while (0)

static inline void stop_plugin(struct df_plugin *plugin, int expected_status)
{
    int status = -77;
    assert_int_equal(df_plugin_stop(plugin, 0, &status), 0);
    assert_int_equal(status, expected_status);
}

static inline int open_file(const char *path)
{
    return df_call_openat(AT_FDCWD, path, O_RDONLY, 0);
}

static inline void assert_content(const char *path, const char *expected)
{
    char text[256] = "";
    int fd = open_file(path);
    assert_true(fd >= 0);
    assert_int_equal(df_call_pread(fd, text, sizeof(text) - 1, 0), strlen(expected));
    assert_string_equal(text, expected);
    assert_int_equal(df_call_close(fd), 0);
}

static inline int count_entries(const char *directory)
{
    int count = 0;
    DIR *dir = opendir(directory);
    assert_non_null(dir);
    while (readdir(dir))
        count++;
    closedir(dir);
    return count;
}

/* An empty temporary file; the caller removes and frees it. */
static inline char *temporary_file(void)
{
    char *path = strdup("/tmp/df-test-plugin-XXXXXX");
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    return path;
}

static inline void assert_file_says(const char *path, const char *expected)
{
    char text[256] = "";
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0 && read(fd, text, sizeof(text) - 1) >= 0);
    close(fd);
    assert_string_equal(text, expected);
}

/* Until this many threads are left: one that was joined is still seen for a moment, and the reaper
 * takes a plugin away some time after the last close. */
static inline void await_threads(int count)
{
    while (count_entries("/proc/self/task") > count)
        sched_yield();
}

#endif
