/*
 * hooks_output.c - what a guest prints goes to its log: the functions that mean stdout or stderr
 * without saying so. (Its `stdout` and `stderr` themselves are pointed at the log by the loader.)
 */
#include <err.h>
#include <errno.h>
#include <error.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <syslog.h>
#include <unistd.h>

#include "loader/guest.h"
#include "loader/hooks.h"
#include "loader/plugin.h"

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

/* ---- by streams: libraries name libc's own, the guest is given its log's (hooks.c) ------------
 */

static FILE *meant(FILE *out)
{
    struct df_guest *guest = df_guest_current();
    return guest && (out == stdout || out == stderr) ? guest->output : out;
}

static int hook_vfprintf(FILE *out, const char *format, va_list arguments)
{
    return vfprintf(meant(out), format, arguments);
}

static int hook_fprintf(FILE *out, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int result = vfprintf(meant(out), format, arguments);
    va_end(arguments);
    return result;
}

static int hook_vfprintf_chk(FILE *out, int flag, const char *format, va_list arguments)
{
    (void)flag;
    return vfprintf(meant(out), format, arguments);
}

static int hook_fprintf_chk(FILE *out, int flag, const char *format, ...)
{
    (void)flag;
    va_list arguments;
    va_start(arguments, format);
    int result = vfprintf(meant(out), format, arguments);
    va_end(arguments);
    return result;
}

static int hook_fputs(const char *text, FILE *out)
{
    return fputs(text, meant(out));
}

static int hook_fputc(int byte, FILE *out)
{
    return fputc(byte, meant(out));
}

static size_t hook_fwrite(const void *data, size_t size, size_t count, FILE *out)
{
    return fwrite(data, size, count, meant(out));
}

static int hook_fflush(FILE *out)
{
    return fflush(out ? meant(out) : out);
}

/* The host's are not the guest's to close, and its log is needed to the end. */
static bool is_kept(const struct df_guest *guest, const FILE *out)
{
    return guest && (out == stdin || out == stdout || out == stderr || out == guest->output);
}

static int hook_fclose(FILE *out)
{
    if (is_kept(df_guest_current(), out))
        return out == stdin ? 0 : fflush(meant(out));
    return fclose(out);
}

/* As daemons do with /dev/null: what it says is said to its log all the same. */
static FILE *hook_freopen(const char *path, const char *mode, FILE *out)
{
    char room[DF_GUEST_PATH_ROOM];
    struct df_guest *guest = df_guest_current();
    return is_kept(guest, out) ? out : freopen(df_guest_path(guest, path, room), mode, out);
}

/* Its log has no number; this is one by which it is written, too. */
static int hook_fileno(FILE *out)
{
    const struct df_guest *guest = df_guest_current();
    return guest && out == guest->output ? STDERR_FILENO : fileno(out);
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

/* ---- by descriptors ---------------------------------------------------------------------------
 */

static FILE *stream_of(int fd)
{
    struct df_guest *guest = df_guest_current();
    return guest && (fd == STDOUT_FILENO || fd == STDERR_FILENO) ? guest->output : NULL;
}

static ssize_t hook_write(int fd, const void *data, size_t size)
{
    FILE *out = stream_of(fd);
    return out ? (ssize_t)fwrite(data, 1, size, out) : df_hooks_write_connection(fd, data, size);
}

static ssize_t hook_writev(int fd, const struct iovec *iov, int count)
{
    FILE *out = stream_of(fd);
    ssize_t written = 0;
    if (!out)
        return df_hooks_writev_connection(fd, iov, count);
    for (int i = 0; i < count; i++)
        written += (ssize_t)fwrite(iov[i].iov_base, 1, iov[i].iov_len, out);
    return written;
}

static int hook_vdprintf(int fd, const char *format, va_list arguments)
{
    FILE *out = stream_of(fd);
    return out ? vfprintf(out, format, arguments)
               : df_hooks_print_connection(fd, format, arguments);
}

static int hook_dprintf(int fd, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int result = hook_vdprintf(fd, format, arguments);
    va_end(arguments);
    return result;
}

static int hook_vdprintf_chk(int fd, int flag, const char *format, va_list arguments)
{
    (void)flag;
    return hook_vdprintf(fd, format, arguments);
}

static int hook_dprintf_chk(int fd, int flag, const char *format, ...)
{
    va_list arguments;
    (void)flag;
    va_start(arguments, format);
    int result = hook_vdprintf(fd, format, arguments);
    va_end(arguments);
    return result;
}

/* ---- and the end ------------------------------------------------------------------------------
 */

/* err(3), warn(3) and their kin: "message: error", and for err the end of the guest. */
static void report(int error, const char *format, va_list arguments)
{
    FILE *out = stream(stderr);
    if (format)
        vfprintf(out, format, arguments);
    if (error)
        fprintf(out, "%s%s", format ? ": " : "", strerror(error));
    fputc('\n', out);
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
    df_hooks_exit(status);
}

static void hook_errx(int status, const char *format, ...)
{
    REPORT(0);
    df_hooks_exit(status);
}

static void hook_vwarn(const char *format, va_list arguments)
{
    report(errno, format, arguments);
}

static void hook_vwarnx(const char *format, va_list arguments)
{
    report(0, format, arguments);
}

static void hook_verr(int status, const char *format, va_list arguments)
{
    report(errno, format, arguments);
    df_hooks_exit(status);
}

static void hook_verrx(int status, const char *format, va_list arguments)
{
    report(0, format, arguments);
    df_hooks_exit(status);
}

static void hook_error(int status, int error, const char *format, ...)
{
    REPORT(error);
    if (status)
        df_hooks_exit(status);
}

static void hook_error_at_line(int status, int error, const char *file, unsigned line,
                               const char *format, ...)
{
    fprintf(stream(stderr), "%s:%u: ", file, line);
    REPORT(error);
    if (status)
        df_hooks_exit(status);
}

/* ---- the system's log: openlog(3) keeps pointers into the program, for the whole process ----- */

static void hook_openlog(const char *name, int option, int facility)
{
    if (!df_guest_current())
        openlog(name, option, facility);
}

static void hook_closelog(void)
{
    if (!df_guest_current())
        closelog();
}

static void hook_vsyslog(int priority, const char *format, va_list arguments)
{
    struct df_guest *guest = df_guest_current();
    if (!guest) {
        vsyslog(priority, format, arguments);
        return;
    }
    vfprintf(guest->output, format, arguments); /* glibc's printf knows %m, too */
    fputc('\n', guest->output);
}

static void hook_syslog(int priority, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    hook_vsyslog(priority, format, arguments);
    va_end(arguments);
}

static void hook_vsyslog_chk(int priority, int flag, const char *format, va_list arguments)
{
    (void)flag;
    hook_vsyslog(priority, format, arguments);
}

static void hook_syslog_chk(int priority, int flag, const char *format, ...)
{
    (void)flag;
    va_list arguments;
    va_start(arguments, format);
    hook_vsyslog(priority, format, arguments);
    va_end(arguments);
}

const struct df_hook df_hooks_output[] = {
    {"printf", hook_printf},
    {"vprintf", hook_vprintf},
    {"__printf_chk", hook_printf_chk},
    {"__vprintf_chk", hook_vprintf_chk},
    {"vfprintf", hook_vfprintf},
    {"fprintf", hook_fprintf},
    {"__vfprintf_chk", hook_vfprintf_chk},
    {"__fprintf_chk", hook_fprintf_chk},
    {"fputs", hook_fputs},
    {"fputs_unlocked", hook_fputs},
    {"fputc", hook_fputc},
    {"fputc_unlocked", hook_fputc},
    {"putc", hook_fputc},
    {"putc_unlocked", hook_fputc},
    {"_IO_putc", hook_fputc},
    {"fwrite", hook_fwrite},
    {"fwrite_unlocked", hook_fwrite},
    {"fflush", hook_fflush},
    {"fflush_unlocked", hook_fflush},
    {"fclose", hook_fclose},
    {"freopen", hook_freopen},
    {"freopen64", hook_freopen},
    {"fileno", hook_fileno},
    {"fileno_unlocked", hook_fileno},
    {"puts", hook_puts},
    {"putchar", hook_putchar},
    {"putchar_unlocked", hook_putchar},
    {"perror", hook_perror},
    {"write", hook_write},
    {"writev", hook_writev},
    {"dprintf", hook_dprintf},
    {"vdprintf", hook_vdprintf},
    {"__dprintf_chk", hook_dprintf_chk},
    {"__vdprintf_chk", hook_vdprintf_chk},
    {"warn", hook_warn},
    {"warnx", hook_warnx},
    {"err", hook_err},
    {"errx", hook_errx},
    {"vwarn", hook_vwarn},
    {"vwarnx", hook_vwarnx},
    {"verr", hook_verr},
    {"verrx", hook_verrx},
    {"error", hook_error},
    {"error_at_line", hook_error_at_line},
    {"openlog", hook_openlog},
    {"closelog", hook_closelog},
    {"syslog", hook_syslog},
    {"vsyslog", hook_vsyslog},
    {"__syslog_chk", hook_syslog_chk},
    {"__vsyslog_chk", hook_vsyslog_chk},
    {NULL, NULL},
};
