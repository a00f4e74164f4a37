/*
 * test_node_cache.c - nodes and entries by themselves: found, counted, dropped in order, bounded.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "nodes/cache.h"
#include "nodes/evict.h"
#include "nodes/lookup.h"
#include "nodes/path.h"

/* ---- a plugin: forgets what it is told to forget, and in which order ---- */

#define IDS 5000

static struct df_nodes nodes;
static uint64_t forgotten[IDS]; /* counts */
static unsigned order[IDS];     /* when, from 1 */
static unsigned forgets;

static int absent(struct df_nodes *all, struct df_call *call, struct df_node *dir, const char *name,
                  struct df_node_found *found)
{
    (void)all, (void)call, (void)dir, (void)name, (void)found;
    return -ENOENT;
}

static void note_forget(struct df_nodes *all, const struct df_node_forget *list, size_t count)
{
    (void)all;
    for (size_t i = 0; i < count; i++) {
        forgotten[list[i].id] += list[i].count;
        order[list[i].id] = ++forgets;
    }
}

static const struct df_node_source source = {.lookup = absent, .forget = note_forget};

static int begin(void **state)
{
    (void)state;
    memset(forgotten, 0, sizeof(forgotten));
    memset(order, 0, sizeof(order));
    forgets = 0;
    return df_nodes_init(&nodes, &source);
}

static int end(void **state)
{
    (void)state;
    df_nodes_forget_all(&nodes);
    df_nodes_destroy(&nodes);
    return 0;
}

static struct df_node_name name_of(const char *text)
{
    return df_node_cache_name(&nodes, text, strlen(text));
}

/* As if the plugin had answered LOOKUP of dir/text with this number. */
static struct df_node *enter(struct df_node *dir, const char *text, uint64_t id, mode_t mode)
{
    struct df_node_found found = {
        .id = id,
        .attr = {.st_ino = id, .st_mode = mode, .st_nlink = 1},
        .attr_timeout = 1e9,
        .entry_timeout = 1e9,
    };
    struct df_node_name name = name_of(text);
    struct df_node_drops drops;
    struct df_node_search search = {.nodes = &nodes, .dir = dir, .name = &name, .drops = &drops};
    struct df_node *node;
    bool is_new;

    df_node_cache_begin_drops(&drops);
    df_node_lock(&dir->lock);
    assert_int_equal(df_node_get(&nodes, &found, 0, 1, &node, &is_new), 0);
    assert_int_equal(df_node_lookup_enter(&search, node, is_new, 1e9), 0);
    df_node_unlock(&dir->lock);
    df_node_cache_drop(&nodes, &drops);
    return node;
}

static struct df_node_entry *find(struct df_node *dir, const char *text)
{
    struct df_node_name name = name_of(text);

    return df_node_cache_find(dir, &name);
}

static void drop(struct df_node *dir, const char *text)
{
    struct df_node_drops drops;

    df_node_cache_begin_drops(&drops);
    df_node_lock(&dir->lock);
    struct df_node_entry *entry = find(dir, text);
    df_node_cache_remove(&nodes, dir, entry);
    df_node_cache_drop_later(&drops, entry);
    df_node_unlock(&dir->lock);
    df_node_cache_drop(&nodes, &drops);
}

/* ---- cases ---- */

static void names_are_compared_in_full(void **state)
{
    static const char *const texts[] = {"a",
                                        "b",
                                        "ab",
                                        "ba",
                                        "abc",
                                        "abd",
                                        "abcdefgh",
                                        "abcdefgi",
                                        "abcdefghi",
                                        "bbcdefghi",
                                        "0123456789abcdef",
                                        "0123456789abcdeg",
                                        "0123456789abcdef0",
                                        "0123456789abcdef1",
                                        "0123456789abcdef0123456789abcdef",
                                        "0123456789abcdef0123456789abcdeg",
                                        "1123456789abcdef0123456789abcdef"};

    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        for (size_t j = 0; j < sizeof(texts) / sizeof(texts[0]); j++)
            if (strlen(texts[i]) == strlen(texts[j]))
                assert_int_equal(df_node_cache_same(texts[i], texts[j], strlen(texts[i])), i == j);
}

static void a_directory_grows(void **state)
{
    char text[32];

    (void)state;
    for (unsigned i = 0; i < 3000; i++) {
        snprintf(text, sizeof(text), "%u", i);
        enter(nodes.root, text, 2 + i, S_IFREG | 0644);
    }
    for (unsigned i = 0; i < 3000; i++) {
        snprintf(text, sizeof(text), "%u", i);
        assert_int_equal(find(nodes.root, text)->node->id, 2 + i);
        assert_ptr_equal(df_node_find(&nodes, 2 + i), find(nodes.root, text)->node);
    }
    assert_null(find(nodes.root, "3000"));
    assert_int_equal(nodes.root->entries, 3000);
}

static void lookups_are_counted_and_forgotten(void **state)
{
    struct df_node *file;

    (void)state;
    file = enter(nodes.root, "a", 2, S_IFREG | 0644);
    assert_ptr_equal(enter(nodes.root, "b", 2, S_IFREG | 0644), file); /* a hard link */
    assert_int_equal(file->lookups, 2);
    assert_int_equal(file->refs, 2);
    drop(nodes.root, "a");
    assert_int_equal(forgets, 0);
    drop(nodes.root, "b");
    assert_int_equal(forgotten[2], 2);
    assert_null(df_node_find(&nodes, 2));
}

static void children_go_before_their_directory(void **state)
{
    struct df_node *a, *b;

    (void)state;
    a = enter(nodes.root, "a", 2, S_IFDIR | 0755);
    b = enter(a, "b", 3, S_IFDIR | 0755);
    enter(b, "file", 4, S_IFREG | 0644);
    enter(b, "other", 5, S_IFREG | 0644);
    drop(nodes.root, "a");
    assert_int_equal(forgets, 4);
    assert_true(order[4] < order[3] && order[5] < order[3] && order[3] < order[2]);
}

static void a_child_in_use_pins_its_parents(void **state)
{
    struct df_node *a, *b;

    (void)state;
    a = enter(nodes.root, "a", 2, S_IFDIR | 0755);
    b = enter(a, "b", 3, S_IFDIR | 0755);
    assert_true(df_node_try_hold(b));
    drop(nodes.root, "a");
    assert_int_equal(forgets, 0);
    assert_ptr_equal(b->parent, a); /* ".." still leads somewhere */
    df_node_put(&nodes, b);
    assert_true(order[3] == 1 && order[2] == 2);
}

static void a_directory_has_one_place(void **state)
{
    struct df_node *a, *b, *moved;

    (void)state;
    a = enter(nodes.root, "a", 2, S_IFDIR | 0755);
    b = enter(nodes.root, "b", 3, S_IFDIR | 0755);
    moved = enter(a, "dir", 4, S_IFDIR | 0755);
    assert_ptr_equal(enter(b, "dir", 4, S_IFDIR | 0755), moved); /* moved behind our back */
    assert_ptr_equal(moved->parent, b);
    assert_int_equal(find(a, "dir")->expiry, 0);
    assert_true(find(b, "dir")->expiry == DF_NODE_FOREVER);
}

static void another_generation_is_another_node(void **state)
{
    struct df_node_found found = {
        .id = 2, .generation = 1, .attr = {.st_mode = S_IFREG | 0644}, .attr_timeout = 1e9};
    struct df_node *old, *node;
    bool is_new;

    (void)state;
    old = enter(nodes.root, "a", 2, S_IFREG | 0644);
    assert_int_equal(df_node_get(&nodes, &found, 0, 1, &node, &is_new), 0);
    assert_true(is_new);
    assert_ptr_not_equal(node, old);
    assert_true(df_node_has(old, DF_NODE_BAD));
    assert_ptr_equal(df_node_find(&nodes, 2), node);
    df_node_put(&nodes, node);
    assert_int_equal(forgotten[2], 1);
    drop(nodes.root, "a");
    assert_int_equal(forgotten[2], 2);
}

static void a_node_on_its_way_out_hides_no_other(void **state)
{
    struct df_node_drops drops;
    struct df_node_entry *entry;
    struct df_node *node;
    char text[32];

    (void)state;
    enter(nodes.root, "a", 2, S_IFREG | 0644);
    entry = find(nodes.root, "a");
    df_node_cache_begin_drops(&drops);
    df_node_cache_remove(&nodes, nodes.root, entry);
    assert_false(df_node_cache_drop_now(&drops, entry)); /* it is still in its chain */
    node = enter(nodes.root, "b", 2, S_IFREG | 0644);
    for (unsigned i = 0; i < 3000; i++) { /* chains are made anew, their order turned around */
        snprintf(text, sizeof(text), "%u", i);
        enter(nodes.root, text, 3 + i, S_IFREG | 0644);
        assert_ptr_equal(df_node_find(&nodes, 2), node);
    }
    df_node_cache_drop(&nodes, &drops);
    assert_int_equal(forgotten[2], 1);
    assert_ptr_equal(enter(nodes.root, "c", 2, S_IFREG | 0644), node);
}

static void impossible_answers_are_refused(void **state)
{
    struct df_node_found found = {.id = 2, .attr = {.st_mode = 0644}};
    struct df_node *node;
    bool is_new;

    (void)state;
    assert_int_equal(df_node_get(&nodes, &found, 0, 1, &node, &is_new), -EIO);
    found.attr.st_mode = S_IFREG;
    found.attr.st_size = -1;
    assert_int_equal(df_node_get(&nodes, &found, 0, 1, &node, &is_new), -EIO);
    found = (struct df_node_found){.id = 1, .attr = {.st_mode = S_IFDIR}};
    assert_int_equal(df_node_get(&nodes, &found, 0, 1, &node, &is_new), -EIO);
    df_node_forget_one(&nodes, 1);
    assert_int_equal(forgotten[1], 0); /* the root is never forgotten */
}

static void entries_are_bounded(void **state)
{
    struct df_node *used;
    char text[32];

    (void)state;
    df_nodes_set_capacity(&nodes, 500);
    used = enter(nodes.root, "used", 4500, S_IFREG | 0644);
    assert_true(df_node_try_hold(used)); /* an open file */
    for (unsigned i = 0; i < 4000; i++) {
        snprintf(text, sizeof(text), "%u", i);
        enter(nodes.root, text, 2 + i, S_IFREG | 0644);
        if (nodes.crowded)
            df_node_evict(&nodes);
        df_node_cache_touch(find(nodes.root, "used"));
    }
    assert_true(nodes.root->entries < 700);
    assert_true(forgets > 3000);
    assert_non_null(find(nodes.root, "used"));
    df_node_put(&nodes, used);
}

static void directories_are_evicted_after_their_entries(void **state)
{
    struct df_node *dir;
    char text[32];

    (void)state;
    df_nodes_set_capacity(&nodes, 50);
    for (unsigned i = 0; i < 400; i++) {
        snprintf(text, sizeof(text), "d%u", i);
        dir = enter(nodes.root, text, 2 + 2 * i, S_IFDIR | 0755);
        enter(dir, "file", 3 + 2 * i, S_IFREG | 0644);
        while (nodes.crowded)
            df_node_evict(&nodes);
    }
    assert_true(forgets > 600);
    for (unsigned i = 2; i < 800; i += 2)
        assert_true(order[i] == 0 || (order[i + 1] > 0 && order[i + 1] < order[i]));
}

/* What is all in use may exceed the bound: it must not be looked through again at every call. */
static void a_crowd_in_use_is_let_be(void **state)
{
    struct df_node *files[200];
    char text[32];
    int rounds = 0;

    (void)state;
    df_nodes_set_capacity(&nodes, 50);
    for (unsigned i = 0; i < 200; i++) {
        snprintf(text, sizeof(text), "%u", i);
        files[i] = enter(nodes.root, text, 2 + i, S_IFREG | 0644);
        assert_true(df_node_try_hold(files[i]));
    }
    while (nodes.crowded && rounds < 100) {
        df_node_evict(&nodes);
        rounds++;
    }
    assert_false(nodes.crowded);
    assert_int_equal(forgets, 0);
    for (unsigned i = 0; i < 200; i++)
        df_node_put(&nodes, files[i]);
}

static void assert_path(const struct df_node *node, const char *wanted)
{
    char text[16];
    ssize_t len = df_node_path(&nodes, node, text, sizeof(text));

    assert_int_equal(len, strlen(wanted));
    assert_memory_equal(text, wanted, strlen(wanted));
}

static void a_node_is_called_as_the_entries_say(void **state)
{
    struct df_node *dir = enter(nodes.root, "dir", 2, S_IFDIR | 0755);
    struct df_node *below = enter(dir, "below", 3, S_IFDIR | 0755);
    struct df_node *file = enter(below, "file", 4, S_IFREG | 0644);
    char text[16];

    (void)state;
    df_node_hold(file);
    assert_path(nodes.root, "/");
    assert_path(dir, "/dir");
    assert_path(below, "/dir/below");
    assert_path(file, "/dir/below/file");
    assert_int_equal(df_node_path(&nodes, file, text, 14), -ENAMETOOLONG);
    assert_int_equal(df_node_path(&nodes, dir, text, 3), -ENAMETOOLONG);
    drop(below, "file");
    assert_int_equal(df_node_path(&nodes, file, text, sizeof(text)), -ENOENT);
    enter(dir, "again", 4, S_IFREG | 0644);
    assert_path(file, "/dir/again");
    df_node_put(&nodes, file);
}

#define test(function) cmocka_unit_test_setup_teardown(function, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        test(names_are_compared_in_full),
        test(a_directory_grows),
        test(lookups_are_counted_and_forgotten),
        test(children_go_before_their_directory),
        test(a_child_in_use_pins_its_parents),
        test(a_directory_has_one_place),
        test(another_generation_is_another_node),
        test(a_node_on_its_way_out_hides_no_other),
        test(impossible_answers_are_refused),
        test(entries_are_bounded),
        test(directories_are_evicted_after_their_entries),
        test(a_crowd_in_use_is_let_be),
        test(a_node_is_called_as_the_entries_say),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
