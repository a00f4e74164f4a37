/*
 * test_fuse_opt.c - option parsing. Built twice: with our library, and with libfuse3 itself, so
 * that an expectation that libfuse does not meet is found out.
 */
#include "args_rig.h"

#include <limits.h>
#include <stdlib.h>

struct options {
    int flag;
    int other;
    unsigned number;
    unsigned long wide;
    unsigned long long widest;
    double seconds;
    unsigned octal;
    char *string;
    char *split;
};

#define AT(member) offsetof(struct options, member)

static const struct fuse_opt templates[] = {
    {"-x", AT(flag), 7},
    {"flag", AT(flag), 1},
    {"noflag", AT(flag), 0},
    {"both", AT(flag), 3},
    {"both", AT(other), 4},
    {"number=%u", AT(number), 0},
    {"wide=%lu", AT(wide), 0},
    {"widest=%llu", AT(widest), 0},
    {"seconds=%lf", AT(seconds), 0},
    {"octal=%o", AT(octal), 0},
    {"string=%s", AT(string), 0},
    {"--long=%s", AT(string), 0},
    {"-p %s", AT(split), 0},
    {"set=", AT(other), 9},
    FUSE_OPT_KEY("keep", FUSE_OPT_KEY_KEEP),
    FUSE_OPT_KEY("drop", FUSE_OPT_KEY_DISCARD),
    FUSE_OPT_KEY("asked", 42),
    FUSE_OPT_KEY("param=", 43),
    FUSE_OPT_KEY("-q ", 44),
    FUSE_OPT_END,
};

/* What the processing function was called with, one "key:arg " after the other. */
static char calls[1024];

static int record(void *data, const char *arg, int key, struct fuse_args *outargs)
{
    (void)data;
    (void)outargs;
    snprintf(calls + strlen(calls), sizeof(calls) - strlen(calls), "%d:%s ", key, arg);
    return 1;
}

static int parse(struct fuse_args *args, struct options *options, fuse_opt_proc_t proc)
{
    memset(options, 0, sizeof(*options));
    calls[0] = '\0';
    return fuse_opt_parse(args, options, templates, proc);
}

static void release(struct fuse_args *args, struct options *options)
{
    free(options->string);
    free(options->split);
    fuse_opt_free_args(args);
}

/* ---- templates ---------------------------------------------------------------------------- */

static void test_flags_set_their_value(void **state)
{
    (void)state;
    struct options options;
    struct fuse_args args = ARGS("prog", "-x", "-o", "both,set=whatever");
    assert_int_equal(parse(&args, &options, NULL), 0);
    assert_int_equal(options.flag, 3); /* the later one wins */
    assert_int_equal(options.other, 9);
    assert_string_equal(line(&args), "prog");
    release(&args, &options);
}

static void test_every_format_is_read(void **state)
{
    (void)state;
    struct options options;
    struct fuse_args args = ARGS("prog",
                                 "-onumber=4294967295,wide=18446744073709551615,"
                                 "widest=18446744073709551614,seconds=1.5,octal=755",
                                 "--long=text with spaces", "-p", "two", "-onumber=17");
    assert_int_equal(parse(&args, &options, NULL), 0);
    assert_int_equal(options.number, 17);
    assert_int_equal(options.wide, ULONG_MAX);
    assert_true(options.widest == ULLONG_MAX - 1);
    assert_true(options.seconds == 1.5);
    assert_int_equal(options.octal, 0755);
    assert_string_equal(options.string, "text with spaces");
    assert_string_equal(options.split, "two");
    release(&args, &options);
}

static void test_string_replaces_the_earlier_one(void **state)
{
    (void)state;
    struct options options;
    struct fuse_args args = ARGS("prog", "-ostring=first", "-o", "string=second,string=");
    assert_int_equal(parse(&args, &options, NULL), 0);
    assert_string_equal(options.string, "");
    release(&args, &options);
}

static void test_split_parameter_joined_or_not(void **state)
{
    (void)state;
    struct options options;
    struct fuse_args args = ARGS("prog", "-pjoined", "-q", "key", "-qtight");
    assert_int_equal(parse(&args, &options, record), 0);
    assert_string_equal(options.split, "joined");
    assert_string_equal(calls, "44:-qkey 44:-qtight ");
    assert_string_equal(line(&args), "prog -qkey -qtight");
    release(&args, &options);
}

static void test_match_only_asks(void **state)
{
    (void)state;
    assert_int_equal(fuse_opt_match(templates, "number=1"), 1);
    assert_int_equal(fuse_opt_match(templates, "number"), 0);
    assert_int_equal(fuse_opt_match(templates, "flag"), 1);
    assert_int_equal(fuse_opt_match(templates, "flags"), 0);
    assert_int_equal(fuse_opt_match(templates, "-p"), 1);
    assert_int_equal(fuse_opt_match(NULL, "flag"), 0);
}

/* ---- what is kept ------------------------------------------------------------------------- */

static void test_kept_options_come_first_in_one_group(void **state)
{
    (void)state;
    struct options options;
    struct fuse_args args =
        ARGS("prog", "source", "-o", "a,flag,b", "/mnt", "-v", "-oc,drop,keep", "-d");
    assert_int_equal(parse(&args, &options, NULL), 0);
    assert_string_equal(line(&args), "prog -o a,b,c,keep source /mnt -v -d");
    assert_int_equal(args.allocated, 1);
    release(&args, &options);
}

static void test_keys_reach_the_function(void **state)
{
    (void)state;
    struct options options;
    struct fuse_args args = ARGS("prog", "plain", "-oasked,param=1,unknown,keep,drop", "-u");
    assert_int_equal(parse(&args, &options, record), 0);
    assert_string_equal(calls, "-2:plain 42:asked 43:param=1 -1:unknown -1:-u ");
    release(&args, &options);
}

static int discard_all(void *data, const char *arg, int key, struct fuse_args *outargs)
{
    return record(data, arg, key, outargs) - 1;
}

static void test_function_may_discard(void **state)
{
    (void)state;
    struct options options;
    struct fuse_args args = ARGS("prog", "plain", "-ounknown,keep", "-u");
    assert_int_equal(parse(&args, &options, discard_all), 0);
    assert_string_equal(line(&args), "prog -o keep");
    release(&args, &options);
}

static int refuse_all(void *data, const char *arg, int key, struct fuse_args *outargs)
{
    record(data, arg, key, outargs);
    return -1;
}

static void test_function_may_fail_and_nothing_changes(void **state)
{
    (void)state;
    struct options options;
    struct fuse_args args = ARGS("prog", "-oa", "-b");
    assert_int_equal(parse(&args, &options, refuse_all), -1);
    assert_string_equal(calls, "-1:a ");
    assert_string_equal(line(&args), "prog -oa -b");
    assert_int_equal(args.allocated, 0);
    release(&args, &options);
}

static int add_while_parsing(void *data, const char *arg, int key, struct fuse_args *outargs)
{
    (void)data;
    if (key == FUSE_OPT_KEY_NONOPT)
        assert_int_equal(fuse_opt_insert_arg(outargs, 1, arg), 0);
    return key == FUSE_OPT_KEY_NONOPT ? 0 : 1;
}

static void test_function_may_add(void **state)
{
    (void)state;
    struct options options;
    struct fuse_args args = ARGS("prog", "-u", "one", "two", "-oz");
    assert_int_equal(parse(&args, &options, add_while_parsing), 0);
    assert_string_equal(line(&args), "prog -o z two one -u");
    release(&args, &options);
}

/* ---- escapes and the separator ------------------------------------------------------------- */

static void test_escapes_are_resolved_and_made_again(void **state)
{
    (void)state;
    struct options options;
    struct fuse_args args =
        ARGS("prog", "-o", "string=a\\,b\\\\c\\040d\\999,un\\,known\\\\,\\101BC,end\\");
    assert_int_equal(parse(&args, &options, record), 0);
    assert_string_equal(options.string, "a,b\\c d999");
    assert_string_equal(calls, "-1:un,known\\ -1:ABC -1:end\\ ");
    assert_string_equal(line(&args), "prog -o un\\,known\\\\,ABC,end\\\\");
    release(&args, &options);
}

static void test_empty_options_are_passed_on(void **state)
{
    (void)state;
    struct options options;
    struct fuse_args args = ARGS("prog", "-o", ",a,", "", "-");
    assert_int_equal(parse(&args, &options, record), 0);
    assert_string_equal(calls, "-1: -1:a -1: -2: -1:- ");
    release(&args, &options);
}

static void test_separator_ends_options(void **state)
{
    (void)state;
    struct options options;
    struct fuse_args args = ARGS("prog", "-x", "--", "-x", "--", "-oflag");
    assert_int_equal(parse(&args, &options, record), 0);
    assert_int_equal(options.flag, 7);
    assert_string_equal(calls, "-2:-x -2:-- -2:-oflag ");
    assert_string_equal(line(&args), "prog -- -x -- -oflag");
    release(&args, &options);
}

static void test_separator_without_followers_goes(void **state)
{
    (void)state;
    struct options options;
    struct fuse_args args = ARGS("prog", "-u", "--", "plain");
    assert_int_equal(parse(&args, &options, discard_all), 0);
    assert_string_equal(line(&args), "prog");
    release(&args, &options);
}

/* ---- errors -------------------------------------------------------------------------------- */

static void test_missing_argument(void **state)
{
    (void)state;
    struct options options;
    struct fuse_args args = ARGS("prog", "-p");
    assert_int_equal(parse(&args, &options, NULL), -1);
    assert_non_null(strstr(logged, "missing argument after `-p'"));
    args = (struct fuse_args)ARGS("prog", "-o");
    assert_int_equal(parse(&args, &options, NULL), -1);
    assert_non_null(strstr(logged, "missing argument after `-o'"));
    release(&args, &options);
}

static void test_bad_number(void **state)
{
    (void)state;
    struct options options;
    struct fuse_args args = ARGS("prog", "-onumber=many");
    assert_int_equal(parse(&args, &options, NULL), -1);
    assert_non_null(strstr(logged, "invalid parameter in option `number=many'"));
    release(&args, &options);
}

static void test_nothing_to_parse(void **state)
{
    (void)state;
    struct fuse_args args = FUSE_ARGS_INIT(0, NULL);
    assert_int_equal(fuse_opt_parse(NULL, NULL, templates, NULL), 0);
    assert_int_equal(fuse_opt_parse(&args, NULL, templates, NULL), 0);
    assert_null(args.argv);
    struct fuse_args named = ARGS("prog", "-a", "b");
    assert_int_equal(fuse_opt_parse(&named, NULL, NULL, NULL), 0);
    assert_string_equal(line(&named), "prog -a b");
    fuse_opt_free_args(&named);
    assert_int_equal(named.argc, 0);
    fuse_opt_free_args(&named);
    fuse_opt_free_args(NULL);
}

/* ---- vectors and lists --------------------------------------------------------------------- */

static void test_vector_grows(void **state)
{
    (void)state;
    struct fuse_args args = FUSE_ARGS_INIT(0, NULL);
    assert_int_equal(fuse_opt_add_arg(&args, "prog"), 0);
    assert_int_equal(fuse_opt_add_arg(&args, "last"), 0);
    assert_int_equal(fuse_opt_insert_arg(&args, 1, "middle"), 0);
    assert_int_equal(fuse_opt_insert_arg(&args, 3, "end"), 0);
    assert_string_equal(line(&args), "prog middle last end");
    fuse_opt_free_args(&args);
}

static void test_list_grows(void **state)
{
    (void)state;
    char *list = NULL;
    assert_int_equal(fuse_opt_add_opt(&list, "a,b"), 0);
    assert_string_equal(list, "a,b");
    assert_int_equal(fuse_opt_add_opt_escaped(&list, "c,d\\"), 0);
    assert_string_equal(list, "a,b,c\\,d\\\\");
    assert_int_equal(fuse_opt_add_opt(&list, ""), 0);
    assert_string_equal(list, "a,b,c\\,d\\\\,");
    free(list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_flags_set_their_value, set_up),
        cmocka_unit_test_setup(test_every_format_is_read, set_up),
        cmocka_unit_test_setup(test_string_replaces_the_earlier_one, set_up),
        cmocka_unit_test_setup(test_split_parameter_joined_or_not, set_up),
        cmocka_unit_test_setup(test_match_only_asks, set_up),
        cmocka_unit_test_setup(test_kept_options_come_first_in_one_group, set_up),
        cmocka_unit_test_setup(test_keys_reach_the_function, set_up),
        cmocka_unit_test_setup(test_function_may_discard, set_up),
        cmocka_unit_test_setup(test_function_may_fail_and_nothing_changes, set_up),
        cmocka_unit_test_setup(test_function_may_add, set_up),
        cmocka_unit_test_setup(test_escapes_are_resolved_and_made_again, set_up),
        cmocka_unit_test_setup(test_empty_options_are_passed_on, set_up),
        cmocka_unit_test_setup(test_separator_ends_options, set_up),
        cmocka_unit_test_setup(test_separator_without_followers_goes, set_up),
        cmocka_unit_test_setup(test_missing_argument, set_up),
        cmocka_unit_test_setup(test_bad_number, set_up),
        cmocka_unit_test_setup(test_nothing_to_parse, set_up),
        cmocka_unit_test_setup(test_vector_grows, set_up),
        cmocka_unit_test_setup(test_list_grows, set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
