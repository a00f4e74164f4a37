/*
 * test_intercept_learn.c - what the programs of a run tell each other of sites: which are rewritten
 * when a file is mapped, and what a table that somebody has spoilt may do.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "intercept/learn.h"
#include "intercept/run.h"

#define SIZE 4096ul

struct dfi_run *dfi_run;

static struct dfi_learn *table;

static int make_run(void **state)
{
    size_t size = sizeof(*dfi_run) + sizeof(*table);

    (void)state;
    dfi_run = calloc(1, size);
    if (!dfi_run)
        return -1;
    dfi_run->learn_offset = sizeof(*dfi_run);
    table = (struct dfi_learn *)(dfi_run + 1);
    return 0;
}

static int free_run(void **state)
{
    (void)state;
    free(dfi_run);
    dfi_run = NULL;
    return 0;
}

/* A file of its own, which begins with a byte. */
static int new_file(const char *byte)
{
    int fd = memfd_create("learn", MFD_CLOEXEC);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, byte, 1), 1);
    return fd;
}

/* A program maps the file and traps at the offset. */
static int use(int fd, unsigned long offset)
{
    int file = dfi_learn_file(fd);

    dfi_learn_trap(file, offset, 7);
    return file;
}

static unsigned count_learnt(int file, unsigned long offset, unsigned long size)
{
    unsigned at = 0, count = 0;

    while (count <= 2 * DFI_LEARN_SITES && dfi_learn_next(file, offset, size, &at))
        count++;
    return count;
}

static void the_fourth_program_knows(void **state)
{
    int fd = new_file("a"), file = DFI_LEARN_NONE;
    unsigned at = 0;

    (void)state;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(file == DFI_LEARN_NONE ? 0 : count_learnt(file, 0, SIZE), 0);
        file = use(fd, 100);
    }
    assert_int_equal(dfi_learn_file(fd), file);
    struct dfi_learn_site *site = dfi_learn_next(file, 0, SIZE, &at);
    assert_non_null(site);
    assert_int_equal(site->offset, 100);
    assert_int_equal(site->nr, 7);
    assert_null(dfi_learn_next(file, 0, SIZE, &at));
    close(fd);
}

static void what_few_programs_use_is_left(void **state)
{
    int fd = new_file("a"), file = DFI_LEARN_NONE;

    (void)state;
    for (int i = 0; i < 20; i++) {
        file = use(fd, 100);
        if (i % 2)
            dfi_learn_trap(file, SIZE + 200, 8);
    }
    assert_int_equal(count_learnt(file, 0, 2 * SIZE), 1);
    assert_int_equal(count_learnt(file, SIZE, SIZE), 0);
    close(fd);
}

static void a_page_that_is_written_to_anyway(void **state)
{
    int fd = new_file("a"), file = DFI_LEARN_NONE;

    (void)state;
    for (int i = 0; i < 24; i++) {
        file = use(fd, 100);
        if (i % 8 == 0) {
            dfi_learn_trap(file, 200, 8);
            dfi_learn_trap(file, SIZE + 200, 8);
        }
        if (i % 12 == 0)
            dfi_learn_trap(file, 300, 8);
    }
    count_learnt(file, 0, SIZE); /* 100 is decided on, behind 200 */
    assert_int_equal(count_learnt(file, 0, SIZE), 2);
    assert_int_equal(count_learnt(file, SIZE, SIZE), 0);
    close(fd);
}

/* One of four programs, but in each it traps until it is rewritten. */
static void what_is_dear_to_few_programs(void **state)
{
    int fd = new_file("a"), file = DFI_LEARN_NONE;

    (void)state;
    for (int i = 0; i < 16; i++) {
        file = use(fd, 100);
        if (i % 4 == 0) {
            dfi_learn_trap(file, SIZE + 200, 8);
            dfi_learn_trap(file, 2 * SIZE + 200, 8);
            dfi_learn_cost(file, SIZE + 200, 10);
        }
    }
    dfi_learn_cost(file, SIZE + 300, 10); /* nobody has told of it */
    dfi_learn_cost(DFI_LEARN_NONE, SIZE + 200, 10);
    assert_int_equal(count_learnt(file, SIZE, SIZE), 1);
    assert_int_equal(count_learnt(file, 2 * SIZE, SIZE), 0);
    close(fd);
}

static void only_the_range_that_is_mapped(void **state)
{
    int fd = new_file("a"), file = DFI_LEARN_NONE;

    (void)state;
    for (int i = 0; i < 4; i++) {
        file = use(fd, 100);
        dfi_learn_trap(file, 5000, 8);
    }
    assert_int_equal(count_learnt(file, 0, 10000), 2);
    assert_int_equal(count_learnt(file, 0, 5000), 1);
    assert_int_equal(count_learnt(file, 101, 5000), 1);
    assert_int_equal(count_learnt(file, 5001, 10000), 0);
    close(fd);
}

static void a_file_that_is_changed_is_another(void **state)
{
    int fd = new_file("a"), file = DFI_LEARN_NONE;

    (void)state;
    for (int i = 0; i < 4; i++)
        file = use(fd, 100);
    assert_int_equal(count_learnt(file, 0, SIZE), 1);
    assert_int_equal(write(fd, "b", 1), 1);
    int changed = dfi_learn_file(fd);
    assert_int_not_equal(changed, file);
    assert_int_equal(count_learnt(changed, 0, SIZE), 0);
    close(fd);
}

static void what_has_no_room_traps(void **state)
{
    int fd = new_file("a"), file = dfi_learn_file(fd);

    (void)state;
    for (unsigned long i = 0; i < DFI_LEARN_SITES + 10; i++)
        dfi_learn_trap(file, i, 7);
    for (int i = 0; i < 4; i++)
        use(fd, DFI_LEARN_SITES + 5);
    assert_int_equal(count_learnt(file, 0, 2 * DFI_LEARN_SITES), 0);
    for (int i = 1; i < DFI_LEARN_FILES; i++) {
        int other = new_file("b");
        assert_int_equal(dfi_learn_file(other), i);
        close(other);
    }
    int last = new_file("c");
    assert_int_equal(dfi_learn_file(last), DFI_LEARN_NONE);
    dfi_learn_trap(DFI_LEARN_NONE, 1, 7);
    close(last);
    close(fd);
}

static void a_spoilt_table_ends(void **state)
{
    int fd = new_file("a"), file = DFI_LEARN_NONE;

    (void)state;
    for (int i = 0; i < 4; i++)
        file = use(fd, 100);
    table->sites[0].next = 1; /* a ring */
    dfi_learn_trap(file, 300, 7);
    unsigned at = 0;
    assert_non_null(dfi_learn_next(file, 0, SIZE, &at));
    table->files[file].first = UINT32_MAX;
    table->sites[0].next = UINT32_MAX - 1;
    dfi_learn_trap(file, 300, 7);
    at = UINT32_MAX;
    dfi_learn_next(file, 0, SIZE, &at);
    table->sites_used = UINT32_MAX;
    dfi_learn_trap(file, 400, 7);
    close(fd);
}

static void *trap_at_all(void *argument)
{
    int file = *(const int *)argument;

    for (int i = 0; i < 20000; i++)
        dfi_learn_trap(file, (unsigned long)(i % 50), 7);
    return NULL;
}

static void programs_at_the_same_time(void **state)
{
    int fd = new_file("a"), file = dfi_learn_file(fd);
    pthread_t threads[4];
    unsigned long users = 0;

    (void)state;
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, trap_at_all, &file), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    for (unsigned i = 0; i < table->sites_used; i++)
        users += table->sites[i].users;
    assert_int_equal(users, 4 * 20000);
    assert_true(table->sites_used >= 50 && table->sites_used <= 200);
    assert_true(count_learnt(file, 0, SIZE) >= 50);
    close(fd);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_run, free_run)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_fourth_program_knows),         TEST(what_few_programs_use_is_left),
        TEST(a_page_that_is_written_to_anyway), TEST(what_is_dear_to_few_programs),
        TEST(only_the_range_that_is_mapped),    TEST(a_file_that_is_changed_is_another),
        TEST(what_has_no_room_traps),           TEST(a_spoilt_table_ends),
        TEST(programs_at_the_same_time),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
