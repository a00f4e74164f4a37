/*
 * argp.c - a program that parses its options with argp_parse(3). Its parsers fail as they are told.
 */
#define FUSE_USE_VERSION 31
#include <argp.h>
#include <errno.h>
#include <fuse.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *argp_program_version = "argp 1.0";

static error_t parse(int key, char *argument, struct argp_state *state)
{
    switch (key) {
    case 'p':
    case ARGP_KEY_END:
        return 0;
    case 'v':
        *(char **)state->input = argument;
        return 0;
    case 'f':
        argp_failure(state, 9, ENOENT, "%s of %s", "words", "a failure");
        return 0;
    case 'e':
        argp_error(state, "%s of an error", "words");
        return 0;
    case 'u':
        argp_usage(state);
        return 0;
    case 'r':
        return EINVAL;
    case ARGP_KEY_ARG:
        return state->arg_num == 0 ? 0 : ARGP_ERR_UNKNOWN;
    }
    return ARGP_ERR_UNKNOWN;
}

int main(int argc, char *argv[])
{
    static const struct argp_option options[] = {
        {"plain", 'p', NULL, 0, "An option", 0},
        {"value", 'v', "VALUE", 0, "An option with a value", 0},
        {"almost-a", 'a', NULL, 0, "One that is much like the next", 0},
        {"almost-b", 'b', NULL, 0, "One that is much like that before", 0},
        {"failure", 'f', NULL, 0, "A failure of the program", 0},
        {"error", 'e', NULL, 0, "An error of the user", 0},
        {"use", 'u', NULL, 0, "An error of the user without words", 0},
        {"result", 'r', NULL, 0, "An error that the program hands on", 0},
        {0},
    };
    static const struct argp below = {options, parse, NULL, NULL, NULL, NULL, NULL};
    static const struct argp_child children[] = {{&below, 0, NULL, 0}, {0}};
    static const struct argp all = {NULL, NULL, "[FILE]", "words about it", children, NULL, NULL};
    unsigned flags = getenv("FLAGS") ? (unsigned)atoi(getenv("FLAGS")) : 0;
    char *value = "none";
    int rest = argc;
    error_t error = argp_parse(&all, argc, argv, flags, getenv("REST") ? &rest : NULL, &value);

    printf("%s %s %d %d\n", strerror(error), value, rest, argc);
    fflush(stdout);
    return fuse_version() > 0 ? 4 : 5;
}
