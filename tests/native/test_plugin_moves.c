/*
 * test_plugin_moves.c - plugins whose main has no thread while they are mounted:
 * docs/decisions/015. hello_moves is hello_high, stating that.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>

#include "core/mount.h"
#include "plugin_fixture.h"

/* Starts hello_moves at /t-plugin/moves; what it does is written to the file that is returned. */
static char *start_before_witness(struct df_plugin **plugin, const char *text)
{
    char option[128];
    char *witness = temporary_file();
    snprintf(option, sizeof(option), "-owitness=%s", witness);
    assert_started(plugin, "hello_moves", option, text, "/t-plugin/moves");
    return witness;
}

static void test_keeps_no_thread(void **state)
{
    (void)state;
    struct df_plugin *plugin;
    int status = -77;
    int threads = count_entries("/proc/self/task");
    char *witness = start_before_witness(&plugin, "-otext=here");
    await_threads(threads);
    assert_content("/t-plugin/moves/text", "here");
    int fd = open_file("/t-plugin/moves/text");
    assert_int_equal(df_plugin_stop(plugin, 0, &status), -EBUSY);
    await_threads(threads);
    assert_int_equal(df_call_close(fd), 0);
    assert_content("/t-plugin/moves/text", "here");
    stop_plugin(plugin, 0);
    await_threads(threads);
    assert_file_says(witness, "init destroy(elsewhere) returns(elsewhere) ");
    unlink(witness);
    free(witness);
}

static void test_ends_with_the_last_file(void **state)
{
    (void)state;
    struct df_plugin *plugin;
    int status = -77;
    int threads = count_entries("/proc/self/task");
    char *witness = start_before_witness(&plugin, "-otext=lazy");
    int fd = open_file("/t-plugin/moves/text");
    assert_int_equal(df_plugin_stop(plugin, DF_DETACH_LAZY, &status), 0);
    assert_int_equal(status, -1);
    assert_file_says(witness, "init ");
    assert_int_equal(df_call_close(fd), 0);
    await_threads(threads);
    assert_file_says(witness, "init destroy(elsewhere) returns(elsewhere) ");
    unlink(witness);
    free(witness);
}

static void test_ends_itself(void **state)
{
    (void)state;
    struct df_plugin *plugin;
    int threads = count_entries("/proc/self/task");
    assert_started(&plugin, "hello_moves", "/t-plugin/moves");
    int id = df_plugin_mount_of(plugin)->id;
    int fd = open_file("/t-plugin/moves/end");
    assert_true(fd >= 0);
    assert_int_equal(df_call_close(fd), 0);
    df_mount_wait(id); /* which somebody does whom nobody asked */
    stop_plugin(plugin, 0);
    assert_started(&plugin, "hello_moves", "-oend_at_init", "/t-plugin/moves");
    stop_plugin(plugin, 0);
    await_threads(threads);
}

static void test_may_exit(void **state)
{
    (void)state;
    struct df_plugin *plugin;
    assert_started(&plugin, "hello_moves", "-oexit_at_end", "/t-plugin/moves");
    stop_plugin(plugin, 9);
    assert_int_equal(start(&plugin, "hello_moves", "-onone_such", "/t-plugin/moves", NULL), -EIO);
    assert_non_null(strstr(message, "none_such"));
}

/* On the thread that unmounts main still has no asynchronous signal, and that thread has its own
 * mask again when it returns. */
static void test_leaves_the_signal_mask(void **state)
{
    (void)state;
    struct df_plugin *plugin;
    sigset_t mask, after;
    sigemptyset(&mask);
    sigaddset(&mask, SIGUSR2);
    assert_started(&plugin, "hello_moves", "/t-plugin/moves");
    pthread_sigmask(SIG_SETMASK, &mask, NULL);
    stop_plugin(plugin, 0);
    pthread_sigmask(SIG_SETMASK, NULL, &after);
    assert_int_equal(sigismember(&after, SIGUSR2), 1);
    assert_int_equal(sigismember(&after, SIGUSR1), 0);
    sigemptyset(&mask);
    pthread_sigmask(SIG_SETMASK, &mask, NULL);
}

static void test_in_a_forked_child(void **state)
{
    (void)state;
    struct df_plugin *plugin;
    char option[128];
    int status;
    char *witness = temporary_file();
    snprintf(option, sizeof(option), "-owitness=%s", witness);
    assert_started(&plugin, "hello_moves", option, "-otext=fork", "/t-plugin/moves");
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        alarm(20);
        int fd = open_file("/t-plugin/moves/text");
        int ok = fd >= 0 && df_plugin_stop(plugin, 0, &status) == -EBUSY &&
                 df_call_close(fd) == 0 && df_plugin_stop(plugin, 0, &status) == 0 && status == 0 &&
                 count_entries("/proc/self/task") == 3; /* with . and .. */
        _exit(ok ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_content("/t-plugin/moves/text", "fork");
    stop_plugin(plugin, 0);
    assert_file_says(witness, "init destroy(elsewhere) returns(elsewhere) ");
    unlink(witness);
    free(witness);
}

/* With the first thread that is made a sanitizer makes one for itself. */
static int make_a_thread(void **state)
{
    (void)state;
    struct df_plugin *plugin;
    assert_started(&plugin, "hello_moves", "/t-plugin/moves");
    stop_plugin(plugin, 0);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_keeps_no_thread),
        cmocka_unit_test(test_ends_with_the_last_file),
        cmocka_unit_test(test_ends_itself),
        cmocka_unit_test(test_may_exit),
        cmocka_unit_test(test_leaves_the_signal_mask),
        cmocka_unit_test(test_in_a_forked_child),
    };
    return cmocka_run_group_tests(tests, make_a_thread, NULL);
}
