/*
 * test_node_attr.c - when the attributes of a node may be believed: time, changes, answers that
 * were overtaken by changes.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "nodes/attr.h"

static struct df_node node;
static struct df_node_clock clock_;
static struct stat st;

static int fresh(void **state)
{
    (void)state;
    memset(&node, 0, sizeof(node));
    clock_.now = 0;
    st = (struct stat){.st_ino = 7, .st_mode = S_IFREG | 0640, .st_size = 100, .st_nlink = 1};
    node.type = S_IFREG;
    df_node_attr_first(&node, &st, DF_NODE_FOREVER);
    return 0;
}

static bool believed(uint32_t parts)
{
    return df_node_attr_read(&node, parts, &clock_, &st);
}

static void all_of_stat_comes_back(void **state)
{
    struct stat in, out;

    (void)state;
    memset(&in, 0, sizeof(in));
    in.st_ino = 1;
    in.st_mode = S_IFREG | 0777;
    in.st_nlink = 2;
    in.st_uid = 3;
    in.st_gid = 4;
    in.st_rdev = 5;
    in.st_size = 6;
    in.st_blksize = 7;
    in.st_blocks = 8;
    in.st_atim = (struct timespec){9, 10};
    in.st_mtim = (struct timespec){11, 12};
    in.st_ctim = (struct timespec){13, 14};
    memset(&out, 0xff, sizeof(out));
    df_node_attr_first(&node, &in, DF_NODE_FOREVER);
    assert_true(df_node_attr_read(&node, DF_ATTR_ALL, &clock_, &out));
    assert_memory_equal(&in, &out, sizeof(in));
}

static void timeouts_end_belief(void **state)
{
    (void)state;
    assert_int_equal(df_node_expiry(0), 0);
    assert_int_equal(df_node_expiry(-1), 0);
    assert_true(df_node_expiry(1e9) == DF_NODE_FOREVER);
    assert_true(df_node_expiry(1e300) == DF_NODE_FOREVER);
    df_node_attr_first(&node, &st, df_node_expiry(1000));
    assert_true(believed(DF_ATTR_ALL));
    df_node_attr_first(&node, &st, 1);
    assert_false(believed(DF_ATTR_ALL));
    df_node_attr_first(&node, &st, 0);
    assert_false(believed(DF_ATTR_ALL));
}

static void parts_are_forgotten_apart(void **state)
{
    (void)state;
    df_node_attr_accessed(&(struct df_nodes){.read_only = true}, &node);
    assert_true(believed(DF_ATTR_ALL));
    df_node_attr_accessed(&(struct df_nodes){.read_only = false}, &node);
    assert_false(believed(DF_ATTR_ALL));
    assert_true(believed(DF_ATTR_ALL & ~DF_ATTR_ATIME));
    df_node_attr_wrote(&node, 200);
    assert_false(believed(DF_ATTR_TIMES));
    assert_true(believed(DF_ATTR_SIZE));
    assert_int_equal(st.st_size, 200);
    df_node_attr_wrote(&node, 50);
    assert_true(believed(DF_ATTR_SIZE | DF_ATTR_OWNER));
    assert_int_equal(st.st_size, 200);
    df_node_attr_truncated(&node);
    assert_true(believed(DF_ATTR_SIZE));
    assert_int_equal(st.st_size, 0);
}

static void an_answer_is_not_believed_after_a_change(void **state)
{
    uint32_t changes = df_node_attr_changes(&node);

    (void)state;
    df_node_attr_wrote(&node, 200);
    st.st_size = 100;
    assert_int_equal(df_node_attr_store(&node, &st, DF_NODE_FOREVER, changes), 0);
    assert_false(believed(DF_ATTR_ALL));
    assert_true(believed(DF_ATTR_SIZE));
    assert_int_equal(st.st_size, 200);
    changes = df_node_attr_changes(&node);
    assert_int_equal(df_node_attr_store(&node, &st, DF_NODE_FOREVER, changes), 0);
    assert_true(believed(DF_ATTR_ALL));
}

/* The second of two changes must count although nothing was known any more after the first. */
static void a_second_change_is_not_lost(void **state)
{
    uint32_t changes;

    (void)state;
    df_node_attr_forget(&node, DF_ATTR_ALL);
    changes = df_node_attr_changes(&node);
    df_node_attr_forget(&node, DF_ATTR_ALL);
    df_node_attr_store(&node, &st, DF_NODE_FOREVER, changes);
    assert_false(believed(DF_ATTR_ALL));
}

static void what_readdirplus_tells_is_compared_by_eras(void **state)
{
    uint64_t asked = df_node_attr_asking_many();

    (void)state;
    df_node_attr_forget(&node, DF_ATTR_ALL);
    df_node_attr_meet(&node, &st, DF_NODE_FOREVER, asked);
    assert_false(believed(DF_ATTR_ALL)); /* changed since */
    asked = df_node_attr_asking_many();
    df_node_attr_meet(&node, &st, DF_NODE_FOREVER, asked);
    assert_true(believed(DF_ATTR_ALL));
    asked = df_node_attr_asking_many();
    df_node_attr_forget(&node, DF_ATTR_ALL);
    df_node_attr_forget(&node, DF_ATTR_ALL); /* nothing left to forget, but it has changed again */
    df_node_attr_meet(&node, &st, DF_NODE_FOREVER, asked);
    assert_false(believed(DF_ATTR_ALL));
}

static void answers_that_cannot_be_spoil_the_node(void **state)
{
    (void)state;
    st.st_mode = S_IFDIR | 0755;
    assert_int_equal(df_node_attr_store(&node, &st, DF_NODE_FOREVER, 0), -EIO);
    assert_true(df_node_has(&node, DF_NODE_BAD));
    assert_false(believed(DF_ATTR_OWNER));
    st.st_mode = S_IFREG | 0644;
    st.st_size = -1;
    assert_int_equal(df_node_attr_changed(&node, &st, DF_NODE_FOREVER), -EIO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(all_of_stat_comes_back, fresh),
        cmocka_unit_test_setup(timeouts_end_belief, fresh),
        cmocka_unit_test_setup(parts_are_forgotten_apart, fresh),
        cmocka_unit_test_setup(an_answer_is_not_believed_after_a_change, fresh),
        cmocka_unit_test_setup(a_second_change_is_not_lost, fresh),
        cmocka_unit_test_setup(what_readdirplus_tells_is_compared_by_eras, fresh),
        cmocka_unit_test_setup(answers_that_cannot_be_spoil_the_node, fresh),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
