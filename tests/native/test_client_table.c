/*
 * test_client_table.c - which path leads to which mount of a server, and numbers as text.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "channel/layout.h"
#include "client/number.h"
#include "client/remote.h"
#include "client/table.h"
#include "core/table.h"
#include "intercept/intercept.h"

/* What table.c asks of its surroundings: one thread, and no op is called. */
struct df_fs dfi_remote;

void dfi_lock(struct dfi_lock *lock)
{
    lock->word = 1;
}

void dfi_unlock(struct dfi_lock *lock)
{
    lock->word = 0;
}

/* For names, which stay. */
void *dfi_alloc(size_t size)
{
    static void *all[64];
    static size_t count;

    assert_true(count < 64);
    return all[count++] = calloc(1, size);
}

/* The start of a segment: header and mounts. */
static struct {
    struct df_segment header;
    struct df_shared_mount mounts[DF_MOUNT_COUNT];
} *shared;

static void changed(void)
{
    atomic_fetch_add(&shared->header.mounts_changed, 1);
    dfi_table_refresh(&shared->header);
}

static void put(int place, int id, const char *point, uint32_t flags)
{
    struct df_shared_mount *m = &shared->mounts[place];

    m->point_len = (uint32_t)strlen(point);
    strcpy(m->point, point);
    m->flags = flags;
    m->dev = 1000 + (uint64_t)id;
    atomic_store(&m->live, id);
    if (atomic_load(&shared->header.mounts_used) <= (uint32_t)place)
        atomic_store(&shared->header.mounts_used, (uint32_t)place + 1);
    changed();
}

static void drop(int place)
{
    atomic_store(&shared->mounts[place].live, 0);
    changed();
}

static void *segment_memory(size_t size)
{
    void *memory = aligned_alloc(4096, (size + 4095) & ~(size_t)4095);

    return memory ? memset(memory, 0, size) : NULL;
}

static int make_segment(void **state)
{
    (void)state;
    shared = segment_memory(sizeof(*shared));
    if (!shared)
        return -1;
    shared->header.mounts_at = (uint64_t)((char *)shared->mounts - (char *)shared);
    changed();
    return 0;
}

static int free_segment(void **state)
{
    (void)state;
    free(shared);
    return 0;
}

static int found(const char *path)
{
    const struct df_table_entry *entry = df_table_lookup(path, strlen(path));

    return entry ? entry->id : 0;
}

static void nothing_leads_to_no_mount(void **state)
{
    (void)state;
    assert_false(df_table_any());
    assert_int_equal(found("/a"), 0);
    assert_false(df_table_may_begin("a", 1));
    assert_false(df_table_below("/", 1));
    dfi_table_refresh(NULL);
}

static void a_prefix_ends_with_a_component(void **state)
{
    (void)state;
    put(0, 1, "/data", 0);
    assert_true(df_table_any());
    assert_int_equal(found("/data"), 1);
    assert_int_equal(found("/data/x/y"), 1);
    assert_int_equal(found("/dat"), 0);
    assert_int_equal(found("/database"), 0);
    assert_int_equal(found("/"), 0);
    assert_int_equal(df_table_lookup("/data/x", 5)->id, 1); /* the rest is not looked at */
    assert_null(df_table_lookup("/data/x", 4));
}

static void the_longest_prefix_wins(void **state)
{
    (void)state;
    put(0, 1, "/a", 0);
    put(1, 2, "/a/b/c", 0);
    put(2, 3, "/a/b", DF_SHARED_READONLY);
    assert_int_equal(found("/a/x"), 1);
    assert_int_equal(found("/a/b"), 3);
    assert_int_equal(found("/a/b/cc"), 3);
    assert_int_equal(found("/a/b/c/d"), 2);
    drop(2);
    assert_int_equal(found("/a/b"), 1);
    assert_int_equal(found("/a/b/c"), 2);
}

static void the_root_covers_everything(void **state)
{
    (void)state;
    put(5, 9, "", 0);
    assert_int_equal(found("/"), 9);
    assert_int_equal(found("/etc/passwd"), 9);
}

static void a_mount_is_what_the_server_says(void **state)
{
    struct df_mount *mount;

    (void)state;
    put(3, 7, "/ro", DF_SHARED_READONLY);
    mount = dfi_table_mount(7);
    assert_non_null(mount);
    assert_int_equal(mount->flags, DF_ATTACH_READONLY);
    assert_int_equal(mount->dev, 1007);
    assert_string_equal(mount->point, "/ro");
    assert_ptr_equal(atomic_load(&mount->fs), &dfi_remote);
    put(3, 8, "/rw", 0); /* another one in its place */
    assert_null(dfi_table_mount(7));
    assert_int_equal(dfi_table_mount(8)->flags, 0);
    assert_int_equal(found("/ro"), 0);
    assert_int_equal(found("/rw/x"), 8);
}

static void what_lies_above_a_mount(void **state)
{
    (void)state;
    put(0, 1, "/no/such/mount", 0);
    assert_true(df_table_below("/", 1));
    assert_true(df_table_below("/no", 3));
    assert_true(df_table_below("/no/such", 8));
    assert_false(df_table_below("/no/such/mount", 14));
    assert_false(df_table_below("/no/suc", 7));
    assert_true(df_table_may_begin("no", 2));
    assert_true(df_table_may_begin("mount", 5));
    assert_false(df_table_may_begin("moun", 4));
    assert_false(df_table_may_begin("etc", 3));
}

static void numbers_go_there_and_back(void **state)
{
    static const uint64_t numbers[] = {0, 7, 10, 1023, UINT32_MAX, UINT64_MAX};
    char text[32];

    (void)state;
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        const char *at = text;

        *dfi_number_put(text, numbers[i]) = '/';
        assert_true(dfi_number_get(&at) == numbers[i]);
        assert_int_equal(*at, '/');
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_segment, free_segment)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(nothing_leads_to_no_mount),
        TEST(a_prefix_ends_with_a_component),
        TEST(the_longest_prefix_wins),
        TEST(the_root_covers_everything),
        TEST(a_mount_is_what_the_server_says),
        TEST(what_lies_above_a_mount),
        cmocka_unit_test(numbers_go_there_and_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
