/*
 * hooks_argp.c - argp_parse(3) for a guest: where libc would end the process, the guest ends.
 *
 * libc calls its own exit() there, which no hook reaches. With ARGP_NO_ERRS it ends nothing, and
 * says nothing either: so what ends a program, and what it is told then, is done here. Behind the
 * guest's parsers stands one of ours, which has the options that end a program. It is the last, so
 * that the guest's first one gets the input, as libc has it, and sees the arguments that nobody has
 * taken.
 */
#include <argp.h>
#include <ctype.h>
#include <dlfcn.h>
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loader/guest.h"
#include "loader/hooks.h"

struct parse {
    struct argp argp; /* the first: parse_of() */
    struct argp ours;
    struct argp_child children[3]; /* the guest's, ours */
    struct argp_option options[4]; /* of ours */
    struct df_guest *guest;
    unsigned flags;      /* as the guest gave them */
    bool takes_the_rest; /* the guest asked how far the scan has come */
    bool was_left;       /* an argument that nobody has taken */
};

enum { KEY_USAGE = -2, EXITS = ARGP_HELP_EXIT_OK | ARGP_HELP_EXIT_ERR };

static error_t parse_ours(int key, char *argument, struct argp_state *state);

/* NULL: the state of a scan that is libc's alone. */
static struct parse *parse_of(const struct argp_state *state)
{
    const struct argp_child *child = state ? state->root_argp->children : NULL;
    for (; child && child->argp; child++)
        if (child->argp->parser == parse_ours)
            return (struct parse *)state->root_argp;
    return NULL;
}

/* A variable that a program defines, or libc's. */
static void *variable(const struct df_guest *guest, const char *name)
{
    void *found = guest->map ? dlsym((void *)guest->map, name) : NULL;
    return found ? found : dlsym(RTLD_DEFAULT, name);
}

static bool has_version(const struct df_guest *guest)
{
    return *(void **)variable(guest, "argp_program_version") ||
           *(void **)variable(guest, "argp_program_version_hook");
}

/* ---- what is said, and the end ----------------------------------------------------------------
 */

static unsigned flags_of(const struct argp_state *state)
{
    const struct parse *parse = parse_of(state);
    return parse ? parse->flags : state ? state->flags : 0;
}

/* Where to say it; NULL: nowhere. */
static FILE *errors_of(const struct df_guest *guest, const struct argp_state *state)
{
    if (flags_of(state) & ARGP_NO_ERRS)
        return NULL;
    return state ? state->err_stream : guest->output;
}

static void end_unless_told(struct df_guest *guest, const struct argp_state *state, int status)
{
    if (!(flags_of(state) & ARGP_NO_EXIT))
        df_hooks_end(guest, status & 0xff);
}

static void help(struct df_guest *guest, const struct argp_state *state, FILE *out, unsigned what)
{
    struct argp_state loud;
    if (!out || flags_of(state) & ARGP_NO_ERRS)
        return;
    if (state) {
        loud = *state;
        loud.flags = flags_of(state);
    }
    argp_state_help(state ? &loud : NULL, out, what & ~EXITS);
    if (what & ARGP_HELP_EXIT_ERR)
        end_unless_told(guest, state, *(int *)variable(guest, "argp_err_exit_status"));
    if (what & ARGP_HELP_EXIT_OK)
        end_unless_told(guest, state, 0);
}

static void say_version(struct df_guest *guest, struct argp_state *state)
{
    typedef void version_hook(FILE *, struct argp_state *);
    version_hook *hook = *(version_hook **)variable(guest, "argp_program_version_hook");
    if (hook)
        hook(state->out_stream, state);
    else
        fprintf(state->out_stream, "%s\n", *(char **)variable(guest, "argp_program_version"));
    end_unless_told(guest, state, 0);
}

/* ---- what was wrong ---------------------------------------------------------------------------
 */

/* All options of a tree of parsers, as getopt_long(3) wants them. */
struct options {
    char letters[3 * UCHAR_MAX + 2];
    struct option names[512]; /* as many as anybody has; the last is the end */
    size_t letters_used, names_used;
};

static void add_option(struct options *all, const char *name, int key, int takes)
{
    static const char *const colons[] = {
        [no_argument] = "", [required_argument] = ":", [optional_argument] = "::"};
    char *end = all->letters + all->letters_used;
    if (key > 0 && key <= UCHAR_MAX && isprint(key) && all->letters_used + 4 < sizeof(all->letters))
        all->letters_used += (size_t)sprintf(end, "%c%s", key, colons[takes]);
    if (name && all->names_used + 1 < sizeof(all->names) / sizeof(all->names[0]))
        all->names[all->names_used++] = (struct option){name, takes, NULL, 1};
}

static int takes(const struct argp_option *option)
{
    if (!option->arg)
        return no_argument;
    return option->flags & OPTION_ARG_OPTIONAL ? optional_argument : required_argument;
}

static void add_options(struct options *all, const struct argp *argp)
{
    const struct argp_option *option = argp->options, *real = option;
    for (; option && (option->name || option->key || option->doc || option->group); option++) {
        if (!(option->flags & OPTION_ALIAS))
            real = option;
        if (!(real->flags & OPTION_DOC))
            add_option(all, option->name, option->key, takes(real));
    }
    for (const struct argp_child *child = argp->children; child && child->argp; child++)
        add_options(all, child->argp);
}

/* Where getopt(3) stands there may be letters of which one was refused. */
static bool has_letters(const char *word)
{
    return word[0] == '-' && word[1] != '-' && word[1] && word[2];
}

/* An option that getopt(3) has refused, in silence. */
static bool complain_of_option(const struct parse *parse, const struct argp_state *state)
{
    struct options all = {.letters = "-", .letters_used = 1};
    int next = state->next, count = next < state->argc && has_letters(state->argv[next]);
    add_options(&all, &parse->argp);
    return df_hooks_complain(errors_of(parse->guest, state), next + count, state->argv, all.letters,
                             all.names, parse->flags & ARGP_LONG_ONLY);
}

/* An error of the guest's own parsers is the guest's to handle. */
static void hear_error(const struct parse *parse, const struct argp_state *state)
{
    FILE *out = errors_of(parse->guest, state);
    if (!out)
        return;
    if (!complain_of_option(parse, state)) {
        if (!parse->was_left || parse->takes_the_rest)
            return;
        fprintf(out, "%s: Too many arguments\n", state->name);
    }
    help(parse->guest, state, out, ARGP_HELP_STD_ERR);
}

/* ---- the parser of ours -----------------------------------------------------------------------
 */

/* The guest may have set others. */
static void set_streams(const struct df_guest *guest, struct argp_state *state)
{
    if (state->out_stream == stdout)
        state->out_stream = guest->output;
    if (state->err_stream == stderr)
        state->err_stream = guest->output;
}

static error_t parse_ours(int key, char *argument, struct argp_state *state)
{
    struct parse *parse = parse_of(state);
    (void)argument;
    switch (key) {
    case ARGP_KEY_INIT:
        set_streams(parse->guest, state);
        return 0;
    case ARGP_KEY_ARG:
        parse->was_left = true;
        return ARGP_ERR_UNKNOWN;
    case ARGP_KEY_ERROR:
        hear_error(parse, state);
        return 0;
    case '?':
        help(parse->guest, state, state->out_stream, ARGP_HELP_STD_HELP);
        return 0;
    case KEY_USAGE:
        help(parse->guest, state, state->out_stream, ARGP_HELP_USAGE | ARGP_HELP_EXIT_OK);
        return 0;
    case 'V':
        say_version(parse->guest, state);
        return 0;
    }
    return ARGP_ERR_UNKNOWN;
}

/* The words are libc's, which has them in other languages, too. */
static void add_help(struct parse *parse)
{
    static const struct argp_option options[] = {
        {"help", '?', NULL, 0, "Give this help list", -1},
        {"usage", KEY_USAGE, NULL, 0, "Give a short usage message", 0},
        {"version", 'V', NULL, 0, "Print program version", -1},
    };
    size_t count = has_version(parse->guest) ? 3 : 2;
    memcpy(parse->options, options, count * sizeof(options[0]));
    parse->ours.options = parse->options;
}

/* ---- the hooks --------------------------------------------------------------------------------
 */

static error_t hook_argp_parse(const struct argp *argp, int argc, char **argv, unsigned flags,
                               int *end, void *input)
{
    struct df_guest *guest = df_guest_current();
    const unsigned silent = ARGP_NO_HELP | ARGP_NO_ERRS | ARGP_NO_EXIT;
    if (!guest)
        return argp_parse(argp, argc, argv, flags, end, input);
    struct parse parse = {
        .ours = {.parser = parse_ours},
        .guest = guest,
        .flags = flags,
        .takes_the_rest = end,
    };
    parse.argp.children = parse.children;
    parse.children[0].argp = argp ? argp : &parse.ours;
    parse.children[1].argp = argp ? &parse.ours : NULL;
    if (!(flags & ARGP_NO_HELP))
        add_help(&parse);
    if (!(flags & ARGP_NO_ERRS))
        flags &= ~ARGP_PARSE_ARGV0; /* libc ignores it where it has words, which need a name */
    return argp_parse(&parse.argp, argc, argv, flags | silent, end, input);
}

static void hook_argp_state_help(const struct argp_state *state, FILE *out, unsigned what)
{
    struct df_guest *guest = df_guest_current();
    if (guest)
        help(guest, state, out, what);
    else
        argp_state_help(state, out, what);
}

static void hook_argp_usage(const struct argp_state *state)
{
    struct df_guest *guest = df_guest_current();
    hook_argp_state_help(state, guest ? guest->output : stderr, ARGP_HELP_STD_USAGE);
}

/* Of an error of the program's. False: to be said nowhere. */
static bool say(struct df_guest *guest, const struct argp_state *state, int error,
                const char *format, va_list arguments)
{
    FILE *out = errors_of(guest, state);
    if (!out)
        return false;
    fputs(state ? state->name : program_invocation_short_name, out);
    if (format) {
        fputs(": ", out);
        vfprintf(out, format, arguments);
    }
    fprintf(out, "%s%s\n", error ? ": " : "", error ? strerror(error) : "");
    return true;
}

static void hook_argp_error(const struct argp_state *state, const char *format, ...)
{
    struct df_guest *guest = df_guest_current();
    va_list arguments;
    va_start(arguments, format);
    bool said = guest && say(guest, state, 0, format, arguments);
    va_end(arguments);
    if (said)
        help(guest, state, errors_of(guest, state), ARGP_HELP_STD_ERR);
}

static void hook_argp_failure(const struct argp_state *state, int status, int error,
                              const char *format, ...)
{
    struct df_guest *guest = df_guest_current();
    va_list arguments;
    va_start(arguments, format);
    bool said = guest && say(guest, state, error, format, arguments);
    va_end(arguments);
    if (said && status != 0)
        end_unless_told(guest, state, status);
}

const struct df_hook df_hooks_argp[] = {
    {"argp_parse", hook_argp_parse},     {"argp_state_help", hook_argp_state_help},
    {"argp_usage", hook_argp_usage},     {"argp_error", hook_argp_error},
    {"argp_failure", hook_argp_failure}, {NULL, NULL},
};
