/*
 * args_rig.h - what the tests of command lines and options share: what is logged, and a vector of
 * arguments, made and shown. Compiled with our library or with libfuse3 itself.
 */
#ifndef DF_TEST_ARGS_RIG_H
#define DF_TEST_ARGS_RIG_H

#define FUSE_USE_VERSION 312
#include <fuse.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static char logged[4096];

static void keep_log(enum fuse_log_level level, const char *format, va_list args)
{
    size_t used = strlen(logged);
    (void)level;
    vsnprintf(logged + used, sizeof(logged) - used, format, args);
}

static int set_up(void **state)
{
    (void)state;
    logged[0] = '\0';
    fuse_set_log_func(keep_log);
    return 0;
}

#define ARGS(...)                                                                                  \
    FUSE_ARGS_INIT(sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *),                         \
                   ((char *[]){__VA_ARGS__, NULL}))

/* "prog -o a,b": the vector as one line. */
static const char *line(const struct fuse_args *args)
{
    static char text[1024];
    text[0] = '\0';
    for (int i = 0; i < args->argc; i++)
        snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s", i ? " " : "",
                 args->argv[i]);
    assert_null(args->argv[args->argc]);
    return text;
}

#endif
