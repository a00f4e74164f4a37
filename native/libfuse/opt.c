/*
 * opt.c - option parsing: struct fuse_args and fuse_opt_parse(), as <fuse_opt.h> describes them.
 *
 * One pass over the arguments builds a new vector of what is kept. Options that came with -o are
 * collected apart and put in front as one "-o a,b" once all are seen.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/export.h"
#include "libfuse/abi.h"

/* ---- the argument vector ---------------------------------------------------------------- */

static void free_vector(int argc, char **argv)
{
    for (int i = 0; i < argc; i++)
        free(argv[i]);
    free(argv);
}

void fuse_opt_free_args(struct fuse_args *args)
{
    if (!args)
        return;
    if (args->allocated)
        free_vector(args->argc, args->argv);
    *args = (struct fuse_args){0};
}

/* libfuse aborts when a borrowed vector (main's argv) is added to; we take a copy instead. */
static int own_vector(struct fuse_args *args)
{
    if (args->allocated || !args->argv)
        return 0;
    char **copy = calloc((size_t)args->argc + 1, sizeof(*copy));
    if (!copy)
        return -1;
    for (int i = 0; i < args->argc; i++) {
        copy[i] = strdup(args->argv[i]);
        if (!copy[i]) {
            free_vector(i, copy);
            return -1;
        }
    }
    args->argv = copy;
    args->allocated = 1;
    return 0;
}

int fuse_opt_insert_arg(struct fuse_args *args, int pos, const char *arg)
{
    if (pos < 0 || pos > args->argc) {
        fuse_log(FUSE_LOG_ERR, "fuse: no argument can be inserted at position %d of %d\n", pos,
                 args->argc);
        return -1;
    }
    char *copy = strdup(arg);
    if (!copy || own_vector(args) != 0) {
        free(copy);
        return df_abi_no_memory();
    }
    char **argv = realloc(args->argv, ((size_t)args->argc + 2) * sizeof(*argv));
    if (!argv) {
        free(copy);
        return df_abi_no_memory();
    }
    memmove(argv + pos + 1, argv + pos, (size_t)(args->argc - pos) * sizeof(*argv));
    argv[pos] = copy;
    argv[++args->argc] = NULL;
    args->argv = argv;
    args->allocated = 1;
    return 0;
}

int fuse_opt_add_arg(struct fuse_args *args, const char *arg)
{
    return fuse_opt_insert_arg(args, args->argc, arg);
}

/* ---- a comma-separated list of options -------------------------------------------------- */

static int append_option(char **list, const char *option, bool escape)
{
    size_t used = *list ? strlen(*list) : 0;
    char *to = realloc(*list, used + 1 + 2 * strlen(option) + 1);
    if (!to)
        return df_abi_no_memory();
    *list = to;
    to += used;
    if (used > 0)
        *to++ = ',';
    for (; *option; option++) {
        if (escape && (*option == ',' || *option == '\\'))
            *to++ = '\\';
        *to++ = *option;
    }
    *to = '\0';
    return 0;
}

int fuse_opt_add_opt(char **opts, const char *opt)
{
    return append_option(opts, opt, false);
}

int fuse_opt_add_opt_escaped(char **opts, const char *opt)
{
    return append_option(opts, opt, true);
}

static bool is_octal(const char *text)
{
    return text[0] >= '0' && text[0] <= '3' && text[1] >= '0' && text[1] <= '7' && text[2] >= '0' &&
           text[2] <= '7';
}

/* Reads one character of a list, resolving \c and \ooo (as in /proc/mounts); moves *at behind it.
 */
static char unescape(const char **at)
{
    const char *text = *at;
    if (text[0] != '\\' || text[1] == '\0') {
        *at = text + 1;
        return text[0];
    }
    text++;
    if (!is_octal(text)) {
        *at = text + 1;
        return text[0];
    }
    *at = text + 3;
    return (char)((text[0] - '0') << 6 | (text[1] - '0') << 3 | (text[2] - '0'));
}

/* ---- templates -------------------------------------------------------------------------- */

/*
 * A template is a plain word, or a word that ends in '=' or ' ' and perhaps a scanf format.
 * *param is how many characters of an argument the name takes: its parameter begins there
 * (an '=' still before it); 0 when the argument has none.
 */
static bool match_template(const char *template, const char *arg, size_t *param)
{
    const char *mark = strchr(template, '=');
    if (!mark)
        mark = strchr(template, ' ');
    if (mark && (mark[1] == '\0' || mark[1] == '%')) {
        size_t name = (size_t)(mark - template);
        if (strncmp(arg, template, name + (*mark == '=')) == 0) {
            *param = name;
            return true;
        }
    }
    *param = 0;
    return strcmp(template, arg) == 0;
}

static const struct fuse_opt *find_template(const struct fuse_opt *opt, const char *arg,
                                            size_t *param)
{
    for (; opt && opt->templ; opt++)
        if (match_template(opt->templ, arg, param))
            return opt;
    return NULL;
}

int fuse_opt_match(const struct fuse_opt opts[], const char *opt)
{
    size_t param;
    return find_template(opts, opt, &param) ? 1 : 0;
}

/* ---- parsing ---------------------------------------------------------------------------- */

struct parser {
    const struct fuse_args *in;
    int next;             /* index in `in` of the next argument */
    struct fuse_args out; /* what is kept */
    char *group;          /* options kept that came with -o */
    int separator;        /* length of `out` just behind "--"; 0: not seen */
    const struct fuse_opt *opts;
    fuse_opt_proc_t proc;
    void *data;
    bool keeps; /* what a "%s" variable held before is not freed: see fuse_opt_parse_2() */
};

static int call_proc(struct parser *parser, const char *arg, int key, bool grouped)
{
    if (key == FUSE_OPT_KEY_DISCARD)
        return 0;
    if (key != FUSE_OPT_KEY_KEEP && parser->proc) {
        int keep = parser->proc(parser->data, arg, key, &parser->out);
        if (keep == -1 || keep == 0)
            return keep;
    }
    return grouped ? fuse_opt_add_opt_escaped(&parser->group, arg)
                   : fuse_opt_add_arg(&parser->out, arg);
}

static int store_parameter(const struct parser *parser, void *variable, const char *format,
                           const char *param, const char *arg)
{
    if (format[1] == 's') {
        char *copy = strdup(param);
        if (!copy)
            return df_abi_no_memory();
        if (!parser->keeps)
            free(*(char **)variable);
        *(char **)variable = copy;
        return 0;
    }
    if (sscanf(param, format, variable) == 1)
        return 0;
    fuse_log(FUSE_LOG_ERR, "fuse: invalid parameter in option `%s'\n", arg);
    return -1;
}

/* One template that matches. `param` as match_template() gave it. */
static int apply(struct parser *parser, const struct fuse_opt *opt, size_t param, const char *arg,
                 bool grouped)
{
    if (opt->offset == -1U || opt->offset == -1UL)
        return call_proc(parser, arg, opt->value, grouped) == -1 ? -1 : 0;
    void *variable = (char *)parser->data + opt->offset;
    const char *format = param > 0 ? opt->templ + param + 1 : "";
    if (*format == '\0') {
        *(int *)variable = opt->value;
        return 0;
    }
    return store_parameter(parser, variable, format, arg + param + (opt->templ[param] == '='), arg);
}

static const char *next_argument(struct parser *parser, const char *option)
{
    if (parser->next < parser->in->argc)
        return parser->in->argv[parser->next++];
    fuse_log(FUSE_LOG_ERR, "fuse: missing argument after `%s'\n", option);
    return NULL;
}

/* "-x param" in two arguments is handled as "-xparam". */
static int apply_split(struct parser *parser, const struct fuse_opt *opt, size_t name,
                       const char *arg, bool grouped)
{
    char *joined;
    const char *param = next_argument(parser, arg);
    if (!param)
        return -1;
    if (asprintf(&joined, "%.*s%s", (int)name, arg, param) < 0)
        return df_abi_no_memory();
    int result = apply(parser, opt, name, joined, grouped);
    free(joined);
    return result;
}

/* One option, without its -o: every template that matches acts. */
static int parse_option(struct parser *parser, const char *arg, bool grouped)
{
    size_t param;
    const struct fuse_opt *opt = find_template(parser->opts, arg, &param);
    if (!opt)
        return call_proc(parser, arg, FUSE_OPT_KEY_OPT, grouped);
    for (; opt; opt = find_template(opt + 1, arg, &param)) {
        bool split = param > 0 && opt->templ[param] == ' ' && arg[param] == '\0';
        int result = split ? apply_split(parser, opt, param, arg, grouped)
                           : apply(parser, opt, param, arg, grouped);
        if (result == -1)
            return -1;
    }
    return 0;
}

static int parse_group(struct parser *parser, const char *list)
{
    char *option = malloc(strlen(list) + 1);
    if (!option)
        return df_abi_no_memory();
    int result = 0;
    for (bool last = false; !last && result != -1;) {
        char *to = option;
        while (*list && *list != ',')
            *to++ = unescape(&list);
        *to = '\0';
        last = *list++ == '\0';
        result = parse_option(parser, option, true);
    }
    free(option);
    return result == -1 ? -1 : 0;
}

static int parse_argument(struct parser *parser, const char *arg)
{
    if (parser->separator || arg[0] != '-')
        return call_proc(parser, arg, FUSE_OPT_KEY_NONOPT, false);
    if (arg[1] == 'o') {
        const char *list = arg[2] ? arg + 2 : next_argument(parser, arg);
        return list ? parse_group(parser, list) : -1;
    }
    if (strcmp(arg, "--") != 0)
        return parse_option(parser, arg, false);
    if (fuse_opt_add_arg(&parser->out, arg) == -1)
        return -1;
    parser->separator = parser->out.argc;
    return 0;
}

/* A "--" that is all that was kept behind argv[0] says nothing. (As in libfuse it stays when a
 * group of options was put in front.) */
static void drop_separator(struct parser *parser)
{
    struct fuse_args *out = &parser->out;
    if (parser->separator == 0 || parser->separator != out->argc ||
        strcmp(out->argv[out->argc - 1], "--") != 0)
        return;
    free(out->argv[--out->argc]);
    out->argv[out->argc] = NULL;
}

static int parse(struct parser *parser)
{
    if (fuse_opt_add_arg(&parser->out, next_argument(parser, "")) == -1)
        return -1;
    while (parser->next < parser->in->argc)
        if (parse_argument(parser, parser->in->argv[parser->next++]) == -1)
            return -1;
    if (parser->group && (fuse_opt_insert_arg(&parser->out, 1, "-o") == -1 ||
                          fuse_opt_insert_arg(&parser->out, 2, parser->group) == -1))
        return -1;
    drop_separator(parser);
    return 0;
}

static int parse_all(struct fuse_args *args, void *data, const struct fuse_opt opts[],
                     fuse_opt_proc_t proc, bool keeps)
{
    if (!args || !args->argv || args->argc == 0)
        return 0;
    struct parser parser = {.in = args, .opts = opts, .proc = proc, .data = data, .keeps = keeps};
    int result = parse(&parser);
    free(parser.group);
    if (result == 0) {
        fuse_opt_free_args(args);
        *args = parser.out;
    } else {
        fuse_opt_free_args(&parser.out);
    }
    return result;
}

int fuse_opt_parse(struct fuse_args *args, void *data, const struct fuse_opt opts[],
                   fuse_opt_proc_t proc)
{
    return parse_all(args, data, opts, proc, false);
}

/* As in libfuse 2 (libdf2.so.2's fuse_opt_parse): the variable of a "%s" may hold a literal. */
int fuse_opt_parse_2(struct fuse_args *args, void *data, const struct fuse_opt opts[],
                     fuse_opt_proc_t proc);
DF_PRIVATE_EXPORT
int fuse_opt_parse_2(struct fuse_args *args, void *data, const struct fuse_opt opts[],
                     fuse_opt_proc_t proc)
{
    return parse_all(args, data, opts, proc, true);
}
