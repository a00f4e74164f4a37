/*
 * log.c - fuse_log and where its lines go: to the plugin that speaks.
 *
 * libfuse has one log function in the process. Here several programs share a process, so each
 * plugin has its own: the one it set, or ours, which keeps the lines for the mount's owner. A line
 * from a thread and a library that belong to nobody goes to every plugin's log. Where no plugin is
 * (a program linked to this library and started by hand) lines go to stderr as libfuse's do, for
 * there is no host that could show them.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libfuse/abi.h"

enum { LINE_SIZE = 1024 }; /* bytes; longer lines are formatted on the heap */

/* A word of each plugin, and this one outside of any, holds the function that was set. */
static _Atomic(void *) outside;

struct df_plugin *df_abi_plugin(const void *address)
{
    struct df_plugin *plugin = df_plugin_self();
    return plugin ? plugin : df_plugin_of_code(address);
}

static _Atomic(void *) *function_of(struct df_plugin *plugin)
{
    return plugin ? df_plugin_word(plugin, DF_PLUGIN_LOG_FUNCTION) : &outside;
}

/* level: what is CRIT or worse ends the file system; its owner hears of it (df_plugin_died). */
static void print(struct df_plugin *plugin, enum fuse_log_level level, FILE *stream,
                  const char *format, va_list args)
{
    char line[LINE_SIZE];
    char *text = line;
    va_list again;

    va_copy(again, args);
    int length = vsnprintf(line, sizeof(line), format, args);
    if (length >= (int)sizeof(line) && vasprintf(&text, format, again) < 0)
        text = line; /* memory is short: the beginning must do */
    va_end(again);
    if (plugin && level <= FUSE_LOG_CRIT)
        df_plugin_died(plugin, text);
    else if (plugin)
        df_plugin_log(plugin, text);
    else if (!df_plugin_log_all(text))
        fputs(text, stream);
    if (text != line)
        free(text);
}

void fuse_set_log_func(fuse_log_func_t func)
{
    *function_of(df_abi_plugin(__builtin_return_address(0))) = (void *)func;
}

void fuse_log(enum fuse_log_level level, const char *fmt, ...)
{
    struct df_plugin *plugin = df_abi_plugin(__builtin_return_address(0));
    fuse_log_func_t func = (fuse_log_func_t)atomic_load(function_of(plugin));
    va_list args;

    va_start(args, fmt);
    if (func)
        func(level, fmt, args);
    else
        print(plugin, level, stderr, fmt, args);
    va_end(args);
}

void df_abi_print(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    print(df_plugin_self(), FUSE_LOG_INFO, stdout, format, args);
    va_end(args);
}

int df_abi_no_memory(void)
{
    fuse_log(FUSE_LOG_ERR, "fuse: memory allocation failed\n");
    return -1;
}
