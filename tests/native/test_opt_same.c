/*
 * test_opt_same.c - random command lines through our option parser and libfuse's: same result, same
 * variables, same calls, same arguments left. A fixed seed, so that a difference repeats.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FUSE_USE_VERSION 312
#include <fuse.h>

enum { CASES = 20000, ARGUMENTS = 8 };

/* One of the two libraries. */
struct library {
    int (*parse)(struct fuse_args *, void *, const struct fuse_opt[], fuse_opt_proc_t);
    int (*add)(struct fuse_args *, const char *);
    int (*insert)(struct fuse_args *, int, const char *);
    void (*release)(struct fuse_args *);
    void (*set_log)(fuse_log_func_t);
};

static struct library ours, theirs;

static void silent(enum fuse_log_level level, const char *format, va_list args)
{
    (void)level;
    (void)format;
    (void)args;
}

static bool load(struct library *library, const char *name)
{
    void *handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!handle)
        return false;
    *(void **)&library->parse = dlsym(handle, "fuse_opt_parse");
    *(void **)&library->add = dlsym(handle, "fuse_opt_add_arg");
    *(void **)&library->insert = dlsym(handle, "fuse_opt_insert_arg");
    *(void **)&library->release = dlsym(handle, "fuse_opt_free_args");
    *(void **)&library->set_log = dlsym(handle, "fuse_set_log_func");
    library->set_log(silent);
    return true;
}

/* ---- what is parsed ------------------------------------------------------------------------- */

struct values {
    int numbers[4];
    unsigned decimal;
    unsigned octal;
    long wide;
    char *strings[3];
};

#define AT(member) offsetof(struct values, member)

static const struct fuse_opt templates[] = {
    {"-a", AT(numbers[0]), 1},
    {"-b", AT(numbers[1]), 2},
    {"--long", AT(numbers[2]), 3},
    {"word", AT(numbers[0]), 4},
    {"word", AT(numbers[3]), 5},
    {"value=", AT(numbers[1]), 6},
    {"value=%u", AT(decimal), 0},
    {"octal=%o", AT(octal), 0},
    {"wide=%ld", AT(wide), 0},
    {"text=%s", AT(strings[0]), 0},
    {"--text=%s", AT(strings[1]), 0},
    {"-p %s", AT(strings[2]), 0},
    FUSE_OPT_KEY("-q ", 50),
    FUSE_OPT_KEY("asked", 51),
    FUSE_OPT_KEY("asked=", 52),
    FUSE_OPT_KEY("keep", FUSE_OPT_KEY_KEEP),
    FUSE_OPT_KEY("drop", FUSE_OPT_KEY_DISCARD),
    FUSE_OPT_END,
};

static const char *const pieces[] = {
    "-a", "-b",     "-o",      "-p",    "-q",    "--",    "--long", "--text=", "word", "value=",
    "5",  "octal=", "wide=-3", "text=", "asked", "keep",  "drop",   ",",       ",",    "\\",
    "x",  "\\054",  "\\\\",    "\\,",   "=",     "other", "",       " ",       "-",    "/mnt",
};

static unsigned next_random(unsigned *seed)
{
    *seed = *seed * 1103515245u + 12345u;
    return *seed >> 16;
}

static void make_argument(unsigned *seed, char *argument, size_t size)
{
    argument[0] = '\0';
    for (unsigned count = 1 + next_random(seed) % 4; count > 0; count--) {
        const char *piece = pieces[next_random(seed) % (sizeof(pieces) / sizeof(pieces[0]))];
        strncat(argument, piece, size - strlen(argument) - 1);
    }
}

/* ---- one run --------------------------------------------------------------------------------- */

struct run {
    const struct library *library;
    struct values values;
    char story[4096]; /* calls, result, arguments left */
};

static struct run *running; /* the processing function has no other way to its library */

static void tell(struct run *run, const char *format, ...)
{
    size_t used = strlen(run->story);
    va_list args;
    va_start(args, format);
    vsnprintf(run->story + used, sizeof(run->story) - used, format, args);
    va_end(args);
}

/* Keeps, discards, fails, or adds on its own, as the argument's letters say. */
static int process(void *data, const char *arg, int key, struct fuse_args *outargs)
{
    (void)data;
    tell(running, "%d:<%s> ", key, arg);
    switch (strlen(arg) % 7) {
    case 0:
        return 0;
    case 1:
        return key == FUSE_OPT_KEY_NONOPT ? running->library->add(outargs, "added") : 1;
    case 2:
        return running->library->insert(outargs, 1, "inserted") == 0;
    case 6:
        return strstr(arg, "x=x") ? -1 : 1;
    default:
        return 1;
    }
}

static void run(struct run *run, const struct library *library, int argc, char **argv,
                fuse_opt_proc_t proc)
{
    struct fuse_args args = FUSE_ARGS_INIT(argc, argv);
    memset(run, 0, sizeof(*run));
    run->library = library;
    running = run;
    int result = library->parse(&args, &run->values, templates, proc);
    tell(run, "= %d |", result);
    for (int i = 0; i < args.argc; i++)
        tell(run, " <%s>", args.argv[i]);
    for (int i = 0; i < 3; i++) {
        tell(run, " %s", run->values.strings[i] ? run->values.strings[i] : "(none)");
        free(run->values.strings[i]);
        run->values.strings[i] = NULL;
    }
    library->release(&args);
}

static void test_random_command_lines(void **state)
{
    (void)state;
    unsigned seed = 20;
    for (int i = 0; i < CASES; i++) {
        char text[ARGUMENTS][64];
        char *argv[ARGUMENTS + 2] = {"prog"};
        int argc = 1 + (int)(next_random(&seed) % ARGUMENTS);
        for (int at = 1; at < argc; at++) {
            make_argument(&seed, text[at], sizeof(text[at]));
            argv[at] = text[at];
        }
        argv[argc] = NULL;
        fuse_opt_proc_t proc = next_random(&seed) % 4 ? process : NULL;
        static struct run a, b;
        run(&a, &ours, argc, argv, proc);
        run(&b, &theirs, argc, argv, proc);
        assert_string_equal(a.story, b.story);
        assert_memory_equal(&a.values, &b.values, sizeof(a.values));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_random_command_lines)};
    if (!load(&ours, STAGE_LIB "libdf3.so.3")) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    if (!load(&theirs, "libfuse3.so.3")) {
        printf("libfuse3.so.3 is not installed (apt-get install libfuse3-3): nothing compared\n");
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
