/*
 * test_unborn.c - whether a child that has not said a word yet is there (process/unborn.h).
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "process/unborn.h"

static int ends[2]; /* ends[0]: the parent's, as its children have it */

static uint64_t number(void)
{
    struct stat st;

    assert_int_equal(fstat(ends[0], &st), 0);
    return st.st_ino;
}

static pid_t child(void)
{
    pid_t pid = fork();

    if (pid == 0)
        for (;;)
            pause();
    assert_true(pid > 0);
    return pid;
}

static void end(pid_t pid)
{
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static int begin_test(void **state)
{
    (void)state;
    return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends);
}

static int end_test(void **state)
{
    (void)state;
    close(ends[0]);
    close(ends[1]);
    return 0;
}

static void test_a_child_is_seen_until_its_end(void **state)
{
    pid_t one = child(), two = child();

    (void)state;
    assert_true(df_unborn_may_live(number()));
    end(one);
    assert_true(df_unborn_may_live(number()));
    end(two);
    assert_false(df_unborn_may_live(number()));
}

static void test_a_second_descriptor_of_the_parent_is_no_child(void **state)
{
    int again = dup(ends[0]);

    (void)state;
    assert_false(df_unborn_may_live(number()));
    close(again);
}

static void test_what_nobody_is_seen_to_have_may_be_a_childs(void **state)
{
    uint64_t gone = number();

    (void)state;
    close(ends[0]);
    assert_true(df_unborn_may_live(gone));
}

static void test_without_a_socket_there_is_none(void **state)
{
    (void)state;
    assert_false(df_unborn_may_live(0));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin_test, end_test)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_a_child_is_seen_until_its_end),
        TEST(test_a_second_descriptor_of_the_parent_is_no_child),
        TEST(test_what_nobody_is_seen_to_have_may_be_a_childs),
        TEST(test_without_a_socket_there_is_none),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
