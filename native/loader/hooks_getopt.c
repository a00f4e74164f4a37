/*
 * hooks_getopt.c - getopt(3) for a guest.
 *
 * getopt speaks through globals. A guest's optind and optarg are copies of its own (COPY
 * relocations), libc's function reads and writes libc's; so each call carries the values across,
 * both ways. The scan's hidden state is libc's alone: one lock lets one guest parse at a time, and
 * a guest that starts (optind is 1) makes libc start afresh.
 *
 * libc says what is wrong with an option on the process's own stderr; so it is told to be silent,
 * and what it would have said goes to the guest's log (complain()).
 */
#include <getopt.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "loader/guest.h"
#include "loader/hooks.h"

/* Protects libc's getopt globals while a guest's values stand in them, and `parsing`. */
static pthread_mutex_t getopt_lock = PTHREAD_MUTEX_INITIALIZER;
static const struct df_guest *parsing; /* whose scan libc's hidden state belongs to */

static void lock(void)
{
    pthread_mutex_lock(&getopt_lock);
}

static void unlock(void)
{
    pthread_mutex_unlock(&getopt_lock);
}

/* A thread that the child does not have may be parsing. */
static void register_fork(void)
{
    pthread_atfork(lock, unlock, unlock);
}

static void begin(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, register_fork);
    lock();
}

static void carry_in(struct df_guest *guest)
{
    const struct df_guest_globals *globals = &guest->globals;
    int next = globals->optind ? *globals->optind : optind;
    if (parsing != guest)
        next = 0; /* glibc: 0 forgets the scan before */
    parsing = guest;
    optind = next;
}

static void carry_out(struct df_guest *guest, int result)
{
    const struct df_guest_globals *globals = &guest->globals;
    if (globals->optind)
        *globals->optind = optind;
    if (globals->optarg)
        *globals->optarg = optarg;
    if (globals->optopt)
        *globals->optopt = optopt;
    if (result == -1)
        parsing = NULL;
}

/* The next guest may lie where this one was, with arguments of its own. */
void df_hooks_forget_scan(const struct df_guest *guest)
{
    lock();
    if (parsing == guest)
        parsing = NULL;
    unlock();
}

typedef int (*scan_function)(int, char *const *, const char *, const struct option *, int *);

static int scan_short(int argc, char *const *argv, const char *options, const struct option *longs,
                      int *index)
{
    (void)longs;
    (void)index;
    return getopt(argc, argv, options);
}

/* ---- what is wrong with an option --------------------------------------------------------------
 */

static bool is_prefix_of_one(const char *name, size_t length, const struct option *longs)
{
    for (; longs->name; longs++)
        if (strncmp(longs->name, name, length) == 0)
            return true;
    return false;
}

/* Of an option of more than a letter, "--name" or "--name=value"; optopt is 0 if there is none. */
static void complain_of_long(FILE *out, const char *program, const char *option,
                             const struct option *longs)
{
    const char *name = option + strspn(option, "-");
    size_t length = strcspn(name, "=");
    int shown = (int)(name - option + (ptrdiff_t)length);
    if (optopt != 0)
        fprintf(out,
                name[length] == '=' ? "%s: option '%.*s' doesn't allow an argument\n"
                                    : "%s: option '%.*s' requires an argument\n",
                program, shown, option);
    else if (is_prefix_of_one(name, length, longs))
        fprintf(out, "%s: option '%s' is ambiguous\n", program, option);
    else
        fprintf(out, "%s: unrecognized option '%s'\n", program, option);
}

/* The words of glibc's getopt. `before` is where the scan stood: an option of one letter may leave
 * it there, with more letters behind it. */
static void complain(FILE *out, char *const *argv, const char *options, const struct option *longs,
                     int before)
{
    const char *option = optind > before ? argv[optind - 1] : "-";
    const char *letter = strchr(options, optopt);
    bool is_long = option[0] == '-' && option[1] == '-';
    bool only = option[0] == '-' && option[1] != '-' && option[1] && optopt == 0;
    if (longs && (is_long || only))
        complain_of_long(out, argv[0], option, longs);
    else if (letter && letter[1] == ':')
        fprintf(out, "%s: option requires an argument -- '%c'\n", argv[0], optopt);
    else
        fprintf(out, "%s: invalid option -- '%c'\n", argv[0], optopt);
}

/* opterr, or a colon in front of the options, asks for silence. */
static bool wants_words(const struct df_guest *guest, const char *options)
{
    const int *asked = guest->globals.opterr;
    return (!asked || *asked) && options[strspn(options, "+-")] != ':';
}

static int scan(scan_function function, int argc, char *const *argv, const char *options,
                const struct option *longs, int *index)
{
    struct df_guest *guest = df_guest_current();
    if (!guest)
        return function(argc, argv, options, longs, index);
    begin();
    carry_in(guest);
    int host_opterr = opterr, before = optind ? optind : 1;
    opterr = 0;
    int result = function(argc, argv, options, longs, index);
    if (result == '?' && wants_words(guest, options))
        complain(guest->output, argv, options, longs, before);
    opterr = host_opterr;
    carry_out(guest, result);
    unlock();
    return result;
}

bool df_hooks_complain(FILE *out, int argc, char *const *argv, const char *letters,
                       const struct option *names, bool long_only)
{
    scan_function function = long_only ? getopt_long_only : getopt_long;
    begin();
    int host_opterr = opterr, before, result;
    parsing = NULL;
    optind = opterr = 0;
    do {
        before = optind ? optind : 1;
        optopt = -1; /* tells a '?' that is an option from one that is refused */
        result = function(argc, argv, letters, names, NULL);
    } while (result != -1 && (result != '?' || optopt == -1));
    if (result != -1)
        complain(out, argv, letters, names, before);
    opterr = host_opterr;
    unlock();
    return result != -1;
}

static int hook_getopt(int argc, char *const *argv, const char *options)
{
    return scan(scan_short, argc, argv, options, NULL, NULL);
}

static int hook_getopt_long(int argc, char *const *argv, const char *options,
                            const struct option *longs, int *index)
{
    return scan(getopt_long, argc, argv, options, longs, index);
}

static int hook_getopt_long_only(int argc, char *const *argv, const char *options,
                                 const struct option *longs, int *index)
{
    return scan(getopt_long_only, argc, argv, options, longs, index);
}

const struct df_hook df_hooks_getopt[] = {
    {"getopt", hook_getopt},
    {"__posix_getopt", hook_getopt},
    {"getopt_long", hook_getopt_long},
    {"getopt_long_only", hook_getopt_long_only},
    {NULL, NULL},
};
