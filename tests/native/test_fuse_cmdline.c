/*
 * test_fuse_cmdline.c - the command line of a FUSE program: common options, connection options,
 * mount options. Built twice: with our library and with libfuse3 itself; what differs on purpose is
 * under OURS.
 */
#include "args_rig.h"

#include <fuse_lowlevel.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

static void release(struct fuse_args *args, struct fuse_cmdline_opts *opts)
{
    free(opts->mountpoint);
    fuse_opt_free_args(args);
}

/* ---- common options ------------------------------------------------------------------------ */

static void test_defaults(void **state)
{
    (void)state;
    struct fuse_cmdline_opts opts;
    struct fuse_args args = ARGS("/usr/bin/prog", "/");
    assert_int_equal(fuse_parse_cmdline(&args, &opts), 0);
    assert_string_equal(opts.mountpoint, "/");
    assert_int_equal(opts.singlethread, 0);
    assert_int_equal(opts.foreground, 0);
    assert_int_equal(opts.debug, 0);
    assert_int_equal(opts.show_help, 0);
    assert_int_equal(opts.show_version, 0);
    assert_int_equal(opts.clone_fd, 0);
    assert_int_equal(opts.max_idle_threads, UINT_MAX);
    assert_int_equal(opts.max_threads, 10);
    assert_string_equal(line(&args), "/usr/bin/prog -osubtype=prog");
    release(&args, &opts);
}

static void test_all_common_options(void **state)
{
    (void)state;
    struct fuse_cmdline_opts opts;
    struct fuse_args args =
        ARGS("prog", "-f", "-s", "-h", "-V", "-ofsname=x,own,clone_fd,max_idle_threads=3,ro", "/",
             "-omax_threads=4", "-d");
    assert_int_equal(fuse_parse_cmdline(&args, &opts), 0);
    assert_int_equal(opts.foreground, 1);
    assert_int_equal(opts.singlethread, 1);
    assert_int_equal(opts.debug, 1);
    assert_int_equal(opts.show_help, 1);
    assert_int_equal(opts.show_version, 1);
    assert_int_equal(opts.clone_fd, 1);
    assert_int_equal(opts.max_idle_threads, 3);
    assert_int_equal(opts.max_threads, 4);
    assert_int_equal(opts.nodefault_subtype, 1);
    assert_string_equal(line(&args), "prog -o fsname=x,own,ro -d");
    release(&args, &opts);
}

static void test_debug_implies_foreground(void **state)
{
    (void)state;
    struct fuse_cmdline_opts opts;
    struct fuse_args args = ARGS("prog", "-odebug,subtype=own", "/");
    assert_int_equal(fuse_parse_cmdline(&args, &opts), 0);
    assert_int_equal(opts.foreground, 1);
    assert_string_equal(line(&args), "prog -o debug,subtype=own");
    release(&args, &opts);
}

static void test_no_mountpoint_is_left_to_the_program(void **state)
{
    (void)state;
    struct fuse_cmdline_opts opts;
    struct fuse_args args = ARGS("prog", "--version");
    assert_int_equal(fuse_parse_cmdline(&args, &opts), 0);
    assert_null(opts.mountpoint);
    assert_int_equal(opts.show_version, 1);
    release(&args, &opts);
}

static void test_two_mountpoints(void **state)
{
    (void)state;
    struct fuse_cmdline_opts opts;
    struct fuse_args args = ARGS("prog", "/", "/tmp");
    assert_int_equal(fuse_parse_cmdline(&args, &opts), -1);
    assert_non_null(strstr(logged, "invalid argument `/tmp'"));
    release(&args, &opts);
}

static void test_empty_mountpoint(void **state)
{
    (void)state;
    struct fuse_cmdline_opts opts;
    struct fuse_args args = ARGS("prog", "");
    assert_int_equal(fuse_parse_cmdline(&args, &opts), -1);
    assert_non_null(strstr(logged, "bad mount point `': No such file or directory"));
    release(&args, &opts);
}

#ifdef OURS
static void test_mountpoint_need_not_exist(void **state)
{
    (void)state;
    char expected[PATH_MAX + 32];
    char cwd[PATH_MAX];
    struct fuse_cmdline_opts opts;
    struct fuse_args args = ARGS("prog", "not/there");
    assert_int_equal(fuse_parse_cmdline(&args, &opts), 0);
    snprintf(expected, sizeof(expected), "%s/not/there", getcwd(cwd, sizeof(cwd)));
    assert_string_equal(opts.mountpoint, expected);
    release(&args, &opts);
}
#endif

/* The struct was shorter; the older function must not write behind its end. */
static void test_older_result_is_shorter(void **state)
{
    (void)state;
    int fuse_parse_cmdline_30(struct fuse_args * args, struct fuse_cmdline_opts * opts);
    struct fuse_cmdline_opts opts = {.max_threads = 77};
    struct fuse_args args = ARGS("prog", "-f", "/");
    assert_int_equal(fuse_parse_cmdline_30(&args, &opts), 0);
    assert_int_equal(opts.foreground, 1);
    assert_int_equal(opts.max_threads, 77);
    release(&args, &opts);
}

/* ---- connection options --------------------------------------------------------------------- */

static struct fuse_conn_info applied(const char *options, unsigned want)
{
    struct fuse_conn_info conn = {.want = want, .max_write = 1, .max_readahead = 2};
    struct fuse_args args = ARGS("prog", "-o", (char *)options);
    struct fuse_conn_info_opts *opts = fuse_parse_conn_info_opts(&args);
    assert_non_null(opts);
    fuse_apply_conn_info_opts(opts, &conn);
    free(opts);
    fuse_opt_free_args(&args);
    return conn;
}

static void test_limits_of_the_connection(void **state)
{
    (void)state;
    struct fuse_conn_info conn =
        applied("max_write=4096,max_background=7,congestion_threshold=5,time_gran=1000,other", 0);
    assert_int_equal(conn.max_write, 4096);
    assert_int_equal(conn.max_readahead, 2);
    assert_int_equal(conn.max_background, 7);
    assert_int_equal(conn.congestion_threshold, 5);
    assert_int_equal(conn.time_gran, 1000);
    assert_int_equal(applied("max_readahead=0", 0).max_readahead, 0);
}

static void test_capabilities_of_the_connection(void **state)
{
    (void)state;
    static const struct {
        const char *option;
        unsigned capability;
        int want;
    } rows[] = {
        {"async_read", FUSE_CAP_ASYNC_READ, 1},
        {"sync_read", FUSE_CAP_ASYNC_READ, 0},
        {"splice_write", FUSE_CAP_SPLICE_WRITE, 1},
        {"no_splice_write", FUSE_CAP_SPLICE_WRITE, 0},
        {"splice_move", FUSE_CAP_SPLICE_MOVE, 1},
        {"no_splice_move", FUSE_CAP_SPLICE_MOVE, 0},
        {"splice_read", FUSE_CAP_SPLICE_READ, 1},
        {"no_splice_read", FUSE_CAP_SPLICE_READ, 0},
        {"auto_inval_data", FUSE_CAP_AUTO_INVAL_DATA, 1},
        {"no_auto_inval_data", FUSE_CAP_AUTO_INVAL_DATA, 0},
        {"async_dio", FUSE_CAP_ASYNC_DIO, 1},
        {"no_async_dio", FUSE_CAP_ASYNC_DIO, 0},
        {"writeback_cache", FUSE_CAP_WRITEBACK_CACHE, 1},
        {"no_writeback_cache", FUSE_CAP_WRITEBACK_CACHE, 0},
        {"no_remote_lock", FUSE_CAP_POSIX_LOCKS | FUSE_CAP_FLOCK_LOCKS, 0},
        {"no_remote_posix_lock", FUSE_CAP_POSIX_LOCKS, 0},
        {"no_remote_flock", FUSE_CAP_FLOCK_LOCKS, 0},
        {"readdirplus=no", FUSE_CAP_READDIRPLUS, 0},
        {"readdirplus=yes", FUSE_CAP_READDIRPLUS_AUTO, 0},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        unsigned before = rows[i].want ? 0 : ~0u;
        unsigned after = rows[i].want ? rows[i].capability : ~rows[i].capability;
        assert_int_equal(applied(rows[i].option, before).want, after);
    }
    assert_int_equal(applied("readdirplus=no,readdirplus=auto", ~0u).want, ~0u);
}

#ifdef OURS /* libfuse 3.14 parses the option and forgets to apply it */
static void test_atomic_o_trunc_is_applied(void **state)
{
    (void)state;
    assert_int_equal(applied("atomic_o_trunc", 0).want, FUSE_CAP_ATOMIC_O_TRUNC);
}
#endif

static void test_bad_connection_option(void **state)
{
    (void)state;
    struct fuse_args args = ARGS("prog", "-omax_write=much");
    assert_null(fuse_parse_conn_info_opts(&args));
    fuse_opt_free_args(&args);
}

/* ---- sessions ------------------------------------------------------------------------------- */

static struct fuse_session *session(const char *options)
{
    static const struct fuse_lowlevel_ops ops;
    struct fuse_args args = ARGS("prog", "-o", (char *)options);
    struct fuse_session *se = fuse_session_new(&args, &ops, sizeof(ops), NULL);
    fuse_opt_free_args(&args);
    return se;
}

static void test_mount_options_are_taken(void **state)
{
    (void)state;
    struct fuse_session *se =
        session("ro,rw,suid,nosuid,dev,nodev,exec,noexec,async,sync,dirsync,atime,noatime,"
                "allow_other,allow_root,default_permissions,max_read=65536,fsname=a\\,b,subtype=c,"
                "auto_unmount,blkdev,blksize=512,context=x,fscontext=x,defcontext=x,rootcontext=x,"
                "user=me,debug");
    assert_non_null(se);
    assert_int_equal(fuse_session_exited(se), 0);
    fuse_session_exit(se);
    assert_int_equal(fuse_session_exited(se), 1);
    fuse_session_reset(se);
    assert_int_equal(fuse_session_exited(se), 0);
    assert_int_equal(fuse_session_fd(se), -1);
    fuse_session_destroy(se);
}

static void test_unknown_option(void **state)
{
    (void)state;
    assert_null(session("ro,whatever,else"));
    assert_non_null(strstr(logged, "unknown option(s): `-o whatever,else'"));
}

static void test_no_program_name(void **state)
{
    (void)state;
    static const struct fuse_lowlevel_ops ops;
    struct fuse_args args = FUSE_ARGS_INIT(0, NULL);
    assert_null(fuse_session_new(&args, &ops, sizeof(ops), NULL));
}

static void test_high_level_options(void **state)
{
    (void)state;
    static const struct fuse_operations ops;
    struct fuse_args args =
        ARGS("prog", "-okernel_cache,auto_cache,noauto_cache,no_rofd_flush,umask=022,uid=1,gid=2,"
                     "entry_timeout=1.5,attr_timeout=2,ac_attr_timeout=3,negative_timeout=0,"
                     "noforget,remember=7,debug");
    struct fuse *fuse = fuse_new(&args, &ops, sizeof(ops), NULL);
    assert_non_null(fuse);
    assert_non_null(fuse_get_session(fuse));
    assert_null(fuse_get_context());
    assert_int_equal(fuse_interrupted(), 0);
    fuse_destroy(fuse);
    fuse_opt_free_args(&args);
}

static void test_unknown_high_level_option(void **state)
{
    (void)state;
    static const struct fuse_operations ops;
    struct fuse_args args = ARGS("prog", "-ouse_ino");
    assert_null(fuse_new(&args, &ops, sizeof(ops), NULL));
    assert_non_null(strstr(logged, "unknown option(s): `-o use_ino'"));
    fuse_opt_free_args(&args);
}

/* Runs first: libfuse forgets its modules when the first struct fuse is destroyed. */
static void test_modules_are_stacked(void **state)
{
    (void)state;
    static const struct fuse_operations ops;
    struct fuse_args args = ARGS("prog", "-omodules=subdir:iconv,subdir=/a,from_code=latin1");
    struct fuse *fuse = fuse_new(&args, &ops, sizeof(ops), NULL);
    assert_non_null(fuse);
    fuse_destroy(fuse);
    fuse_opt_free_args(&args);
}

#ifdef OURS
static void assert_module_fails(const char *options, const char *message)
{
    static const struct fuse_operations ops;
    struct fuse_args args = ARGS("prog", "-o", (char *)options);
    assert_null(fuse_new(&args, &ops, sizeof(ops), NULL));
    assert_non_null(strstr(logged, message));
    fuse_opt_free_args(&args);
}

static void test_modules_want_their_options(void **state)
{
    (void)state;
    assert_module_fails("modules=subdir", "subdir=DIR is missing");
    assert_module_fails("modules=iconv:nothing", "no module `nothing'");
    assert_module_fails("modules=iconv,from_code=no-such-charset", "no-such-charset");
}
#endif

#if defined(OURS) && FUSE_VERSION >= FUSE_MAKE_VERSION(3, 17)
enum { THEIR_VERSION = FUSE_MAKE_VERSION(3, 18) }; /* of libdf4.so.4, by whatever headers */
#else
enum { THEIR_VERSION = FUSE_VERSION };
#endif

static void test_loop_configuration(void **state)
{
    (void)state;
    struct fuse_loop_config *config = fuse_loop_cfg_create();
    assert_non_null(config);
    fuse_loop_cfg_set_clone_fd(config, 1);
    fuse_loop_cfg_set_idle_threads(config, 2);
    fuse_loop_cfg_set_max_threads(config, 3);
    fuse_loop_cfg_destroy(config);
    assert_int_equal(fuse_version(), THEIR_VERSION);
    assert_int_equal(strncmp(fuse_pkgversion(), "3.", 2), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_modules_are_stacked, set_up),
        cmocka_unit_test_setup(test_defaults, set_up),
        cmocka_unit_test_setup(test_all_common_options, set_up),
        cmocka_unit_test_setup(test_debug_implies_foreground, set_up),
        cmocka_unit_test_setup(test_no_mountpoint_is_left_to_the_program, set_up),
        cmocka_unit_test_setup(test_two_mountpoints, set_up),
        cmocka_unit_test_setup(test_empty_mountpoint, set_up),
#ifdef OURS
        cmocka_unit_test_setup(test_mountpoint_need_not_exist, set_up),
        cmocka_unit_test_setup(test_atomic_o_trunc_is_applied, set_up),
        cmocka_unit_test_setup(test_modules_want_their_options, set_up),
#endif
        cmocka_unit_test_setup(test_older_result_is_shorter, set_up),
        cmocka_unit_test_setup(test_limits_of_the_connection, set_up),
        cmocka_unit_test_setup(test_capabilities_of_the_connection, set_up),
        cmocka_unit_test_setup(test_bad_connection_option, set_up),
        cmocka_unit_test_setup(test_mount_options_are_taken, set_up),
        cmocka_unit_test_setup(test_unknown_option, set_up),
        cmocka_unit_test_setup(test_no_program_name, set_up),
        cmocka_unit_test_setup(test_high_level_options, set_up),
        cmocka_unit_test_setup(test_unknown_high_level_option, set_up),
        cmocka_unit_test_setup(test_loop_configuration, set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
