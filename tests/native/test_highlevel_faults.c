/*
 * test_highlevel_faults.c - the path lane while each operation of its plugin fails in turn, then
 * each allocation: nothing is left behind (the table's handles and the paths of open files are
 * counted).
 *
 * Linked with --wrap for malloc and its kin.
 */
#include "allocations.h"

/* The table's own do not fail. */
#define malloc(size)        __real_malloc(size)
#define calloc(count, size) __real_calloc(count, size)
#define realloc(old, size)  __real_realloc(old, size)

#include "ram_rig.h"

static struct stat st;

/* ---- what is done ---- */

/* A directory is renamed with more open below it than a rename has room for at first. */
static int rename_with_open_files(struct rig *rig)
{
    static const char *const paths[] = {"/s/0", "/s/1", "/s/2"};
    struct df_file files[3];
    int opened[3], failures = 0;

    for (int i = 0; i < 3; i++) {
        opened[i] = rig_open(rig, paths[i], O_RDWR | O_CREAT, 0600, &files[i]);
        failures += opened[i] != 0;
    }
    failures += rig_rename(rig, "/s", "/t", 0) != 0;
    for (int i = 0; i < 3; i++) {
        if (opened[i] == 0)
            rig_close(rig, &files[i]);
    }
    return failures;
}

/* How many calls have failed. */
static int scenario(struct rig *rig)
{
    struct df_file a, d;
    char names[512], buf[4];
    int failures = 0;

    failures += rig_mkdir(rig, "/s", 0755) != 0;
    int opened = rig_open(rig, "/s/f", O_RDWR | O_CREAT, 0600, &a);
    failures += opened != 0;
    if (opened == 0) {
        failures += rig_pwrite(rig, &a, "abcd", 4, 0) != 4;
        failures += rig_pread(rig, &a, buf, 4, 0) != 4;
        failures += rig_fstat(rig, &a, &st) != 0;
        failures += rig_rename(rig, "/s/f", "/s/g", 0) != 0;
        failures += rig_link(rig, "/s/g", "/s/h") != 0;
        failures += rig_unlink(rig, "/s/g") != 0; /* hides */
        rig_close(rig, &a);
    }
    opened = rig_open(rig, "/s", O_RDONLY, 0, &d);
    failures += opened != 0;
    if (opened == 0) {
        failures += rig_list(rig, &d, 0, 0, names, NULL) != 0;
        rig_close(rig, &d);
    }
    failures += rig_symlink(rig, "h", "/s/l") != 0;
    failures += rig_stat(rig, "/s/l", &st) != 0;
    return failures + rename_with_open_files(rig);
}

/* With and without help from the cache; with names that are looked at, or not. */
static struct rig *start(unsigned variant)
{
    struct rig *rig = rig_new();

    rig->config.entry_timeout = variant % 2;
    rig->config.attr_timeout = variant % 3;
    assert_int_equal(rig_start(rig), 0);
    df_highlevel_of(rig->fs)->checks_names = variant / 6;
    return rig;
}

enum { VARIANTS = 12 };

static void end(struct rig *rig)
{
    assert_int_equal(df_open_paths_count(&df_highlevel_of(rig->fs)->open_paths), 0);
    rig_end(rig); /* looks for handles that were not released */
}

/* ---- sweeps ---- */

static void sweep_operations(unsigned variant)
{
    unsigned operations = 1;

    for (unsigned n = 0; n <= operations; n++) {
        struct rig *rig = start(variant);
        rig->ram.fail_at = n;
        int failures = scenario(rig);
        if (n == 0) {
            assert_int_equal(failures, 0);
            operations = rig->ram.total;
        }
        end(rig);
    }
    assert_true(operations > 15);
}

static void any_operation_may_fail(void **state)
{
    (void)state;
    for (unsigned variant = 0; variant < VARIANTS; variant++)
        sweep_operations(variant);
}

static void sweep_allocations(unsigned variant)
{
    long total = 1;

    for (fail_at = 0; fail_at <= total; fail_at++) {
        struct rig *rig = start(variant);
        allocations = 0;
        counting = true;
        int failures = scenario(rig);
        counting = false;
        if (fail_at == 0) {
            assert_int_equal(failures, 0);
            total = allocations;
        }
        end(rig);
    }
    assert_true(total > 5);
}

static void any_allocation_may_fail(void **state)
{
    (void)state;
    for (unsigned variant = 0; variant < VARIANTS; variant++)
        sweep_allocations(variant);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_operation_may_fail),
        cmocka_unit_test(any_allocation_may_fail),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
