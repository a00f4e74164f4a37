/*
 * hooks_output.c - what a guest prints goes to its log: the functions that mean stdout or stderr
 * without saying so. (Its `stdout` and `stderr` themselves are pointed at the log by the loader.)
 */
#include <err.h>
#include <errno.h>
#include <error.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "host/guest.h"
#include "host/hooks.h"
#include "host/plugin.h"

/* The guest's stream; the process's own in a child that it forked. */
static FILE *stream(FILE *otherwise)
{
    struct df_guest *guest = df_guest_current();
    return guest ? guest->output : otherwise;
}

static int hook_vprintf(const char *format, va_list arguments)
{
    return vfprintf(stream(stdout), format, arguments);
}

static int hook_printf(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int result = hook_vprintf(format, arguments);
    va_end(arguments);
    return result;
}

static int hook_vprintf_chk(int flag, const char *format, va_list arguments)
{
    (void)flag;
    return hook_vprintf(format, arguments);
}

static int hook_printf_chk(int flag, const char *format, ...)
{
    (void)flag;
    va_list arguments;
    va_start(arguments, format);
    int result = hook_vprintf(format, arguments);
    va_end(arguments);
    return result;
}

static int hook_puts(const char *text)
{
    return fprintf(stream(stdout), "%s\n", text);
}

static int hook_putchar(int byte)
{
    return fputc(byte, stream(stdout));
}

static void hook_perror(const char *text)
{
    int error = errno;
    if (text && *text)
        fprintf(stream(stderr), "%s: ", text);
    fprintf(stream(stderr), "%s\n", strerror(error));
}

static ssize_t hook_write(int fd, const void *data, size_t size)
{
    struct df_guest *guest = df_guest_current();
    if (!guest || (fd != STDOUT_FILENO && fd != STDERR_FILENO))
        return write(fd, data, size);
    return (ssize_t)fwrite(data, 1, size, guest->output);
}

/* err(3) and warn(3): "message: error", and for err the end of the guest. */
static void report(int error, const char *format, va_list arguments)
{
    FILE *out = stream(stderr);
    if (format)
        vfprintf(out, format, arguments);
    if (error)
        fprintf(out, "%s%s", format ? ": " : "", strerror(error));
    fputc('\n', out);
}

static void end(int status)
{
    for (const struct df_hook *hook = df_hooks_process; hook->name; hook++)
        if (strcmp(hook->name, "exit") == 0)
            ((void (*)(int))hook->function)(status);
}

#define REPORT(error)                                                                              \
    do {                                                                                           \
        int saved = (error);                                                                       \
        va_list arguments;                                                                         \
        va_start(arguments, format);                                                               \
        report(saved, format, arguments);                                                          \
        va_end(arguments);                                                                         \
    } while (0)

static void hook_warn(const char *format, ...)
{
    REPORT(errno);
}

static void hook_warnx(const char *format, ...)
{
    REPORT(0);
}

static void hook_err(int status, const char *format, ...)
{
    REPORT(errno);
    end(status);
}

static void hook_errx(int status, const char *format, ...)
{
    REPORT(0);
    end(status);
}

static void hook_error(int status, int error, const char *format, ...)
{
    REPORT(error);
    if (status)
        end(status);
}

const struct df_hook df_hooks_output[] = {
    {"printf", hook_printf},
    {"vprintf", hook_vprintf},
    {"__printf_chk", hook_printf_chk},
    {"__vprintf_chk", hook_vprintf_chk},
    {"puts", hook_puts},
    {"putchar", hook_putchar},
    {"perror", hook_perror},
    {"write", hook_write},
    {"warn", hook_warn},
    {"warnx", hook_warnx},
    {"err", hook_err},
    {"errx", hook_errx},
    {"error", hook_error},
    {NULL, NULL},
};
