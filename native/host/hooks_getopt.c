/*
 * hooks_getopt.c - getopt(3) for a guest.
 *
 * getopt speaks through globals. A guest's optind and optarg are copies of its own (COPY
 * relocations), libc's function reads and writes libc's; so each call carries the values across,
 * both ways. The scan's hidden state is libc's alone: one lock lets one guest parse at a time, and
 * a guest that starts (optind is 1) makes libc start afresh.
 */
#include <getopt.h>
#include <pthread.h>
#include <stddef.h>

#include "host/guest.h"
#include "host/hooks.h"

/* Protects libc's getopt globals while a guest's values stand in them, and `parsing`. */
static pthread_mutex_t getopt_lock = PTHREAD_MUTEX_INITIALIZER;
static const struct df_guest *parsing; /* whose scan libc's hidden state belongs to */

static void carry_in(struct df_guest *guest)
{
    const struct df_guest_globals *globals = &guest->globals;
    int next = globals->optind ? *globals->optind : optind;
    if (parsing != guest)
        next = 0; /* glibc: 0 forgets the scan before */
    parsing = guest;
    optind = next;
    if (globals->opterr)
        opterr = *globals->opterr;
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

typedef int (*scan_function)(int, char *const *, const char *, const struct option *, int *);

static int scan_short(int argc, char *const *argv, const char *options, const struct option *longs,
                      int *index)
{
    (void)longs;
    (void)index;
    return getopt(argc, argv, options);
}

static int scan(scan_function function, int argc, char *const *argv, const char *options,
                const struct option *longs, int *index)
{
    struct df_guest *guest = df_guest_current();
    if (!guest)
        return function(argc, argv, options, longs, index);
    pthread_mutex_lock(&getopt_lock);
    carry_in(guest);
    int result = function(argc, argv, options, longs, index);
    carry_out(guest, result);
    pthread_mutex_unlock(&getopt_lock);
    return result;
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
