/*
 * test_node_lock.c - the lock of a node: who excludes whom, and that nobody is forgotten.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "nodes/lock.h"

static void exclusive_excludes_all(void **state)
{
    struct df_node_lock lock = {0};

    (void)state;
    df_node_lock(&lock);
    assert_false(df_node_trylock(&lock));
    df_node_unlock(&lock);
    assert_true(df_node_trylock(&lock));
    df_node_unlock(&lock);
    assert_int_equal(lock.word, 0);
}

static void readers_share(void **state)
{
    struct df_node_lock lock = {0};

    (void)state;
    df_node_lock_shared(&lock);
    df_node_lock_shared(&lock);
    assert_false(df_node_trylock(&lock));
    df_node_unlock_shared(&lock);
    assert_false(df_node_trylock(&lock));
    df_node_unlock_shared(&lock);
    assert_int_equal(lock.word, 0);
}

/* What the lock protects: writers keep both equal, readers look whether they are. */
static struct df_node_lock shared;
static long left, right;
static _Atomic long torn, reads;

static void *write_often(void *arg)
{
    (void)arg;
    for (int i = 0; i < 20000; i++) {
        df_node_lock(&shared);
        left++;
        right++;
        df_node_unlock(&shared);
    }
    return NULL;
}

static void *read_often(void *arg)
{
    (void)arg;
    for (int i = 0; i < 20000; i++) {
        df_node_lock_shared(&shared);
        torn += left != right;
        reads++;
        df_node_unlock_shared(&shared);
    }
    return NULL;
}

static void it_holds_under_contention(void **state)
{
    pthread_t threads[6];

    (void)state;
    for (int i = 0; i < 6; i++)
        pthread_create(&threads[i], NULL, i % 2 ? read_often : write_often, NULL);
    for (int i = 0; i < 6; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(left, 60000);
    assert_int_equal(right, 60000);
    assert_int_equal(reads, 60000);
    assert_int_equal(torn, 0);
    assert_int_equal(shared.word, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exclusive_excludes_all),
        cmocka_unit_test(readers_share),
        cmocka_unit_test(it_holds_under_contention),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
