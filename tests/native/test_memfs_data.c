/*
 * test_memfs_data.c - the contents of files in memfs's store.
 *
 * A file is written, cut and punched at random beside an array that says what it must hold.
 */
#include "memfs_fixture.h"

#include <errno.h>
#include <linux/falloc.h>
#include <unistd.h>

/* ---- memory that is lent ------------------------------------------------------------------ */

enum {
    LENT = 40
}; /* pieces at a time: fewer than the files want, so that all kinds of memory mix */

static struct {
    unsigned char *mem;
    size_t size;
} lent[LENT];
static unsigned lent_count, lent_ever;

/* Whole pages, none of which anybody else has; full of noise. */
static void *take(size_t size)
{
    size = (size + PAGE - 1) / PAGE * PAGE;
    for (unsigned i = 0; i < LENT; i++) {
        if (lent[i].mem)
            continue;
        lent[i].mem = aligned_alloc(PAGE, size);
        lent[i].size = size;
        memset(lent[i].mem, 0xa5, size);
        lent_count++;
        lent_ever++;
        return lent[i].mem;
    }
    return NULL;
}

/* From here on it may be anybody's. */
static void give(void *mem)
{
    unsigned i = 0;

    while (i < LENT && lent[i].mem != mem)
        i++;
    assert_in_range(i, 0, LENT - 1);
    memset(mem, 0x5a, lent[i].size);
    free(mem);
    lent[i].mem = NULL;
    lent_count--;
}

static int set_up_lent(void **state)
{
    directfuse_lend(take, give);
    lent_ever = 0;
    return make_store(state);
}

/* All was given back, by whoever has ended. */
static int tear_down_lent(void **state)
{
    int error = drop_store(state);

    directfuse_lend(NULL, NULL);
    assert_int_equal(lent_count, 0);
    assert_int_not_equal(lent_ever, 0);
    return error;
}

/* ---- map -------------------------------------------------------------------------------- */

static void map_finds_what_was_set(void **state)
{
    enum { KEYS = 300 };
    static max_align_t values[KEYS];
    uint64_t keys[KEYS];
    struct map map = {0};
    (void)state;

    for (unsigned i = 0; i < KEYS; i++) { /* of all sizes, up to the largest file's chunk */
        keys[i] = (((uint64_t)random_below(1u << 31) << 12) + i) >> random_below(43);
        assert_int_equal(map_set(&map, keys[i], &values[i]), 0);
    }
    for (unsigned i = 0; i < KEYS; i++)
        for (unsigned j = i + 1; j < KEYS; j++)
            if (keys[j] == keys[i])
                keys[i] = UINT64_MAX; /* set again later */
    for (unsigned round = 0; round < KEYS; round++) {
        uint64_t from = ((uint64_t)random_below(1u << 31) << 12) >> random_below(43), least = ~0ULL;
        for (unsigned i = 0; i < KEYS; i++) {
            if (keys[i] == UINT64_MAX)
                continue;
            assert_ptr_equal(map_get(&map, keys[i]), &values[i]);
            if (keys[i] >= from && keys[i] < least)
                least = keys[i];
        }
        void *found = map_next(&map, &from);
        assert_true(found ? from == least && map_get(&map, from) == found : least == ~0ULL);
        if (keys[round] != UINT64_MAX)
            map_erase(&map, keys[round]);
        keys[round] = UINT64_MAX;
    }
    assert_int_equal(map.root, 0);
}

/* ---- data ------------------------------------------------------------------------------- */

enum { FILE_SIZE = 3 * CHUNK, PIECE = 600000 };

struct model {
    unsigned char bytes[FILE_SIZE];
    int64_t size;
};

static void model_write(struct model *model, int64_t off, const void *data, int64_t len)
{
    memcpy(model->bytes + off, data, (size_t)len);
    if (off + len > model->size)
        model->size = off + len;
}

static void model_resize(struct model *model, int64_t size)
{
    if (size < model->size)
        memset(model->bytes + size, 0, (size_t)(model->size - size));
    model->size = size;
}

static void step(struct model *model, struct inode *file, const unsigned char *noise)
{
    int64_t off = random_below(FILE_SIZE - PIECE), len = 1 + random_below(random_below(PIECE) + 1);

    if (random_below(2))
        off &= ~(int64_t)(PAGE - 1);
    switch (random_below(6)) {
    case 0:
        assert_int_equal(resize(file, off), 0);
        model_resize(model, off);
        break;
    case 1:
        assert_int_equal(
            space_allocate(store, file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, off, len, 0),
            0);
        memset(model->bytes + off, 0, (size_t)len);
        break;
    case 2:
        assert_int_equal(space_allocate(store, file, random_below(2), off, len, 0), 0);
        model->size = file->attr.size;
        break;
    default:
        noise += random_below(PIECE);
        assert_int_equal(put(file, noise, (size_t)len, off), len);
        model_write(model, off, noise, len);
    }
}

static void compare(const struct model *model, struct inode *file, unsigned char *copy)
{
    assert_int_equal(get(file, copy, FILE_SIZE, 0), model->size);
    assert_memory_equal(copy, model->bytes, (size_t)model->size);
    assert_int_equal(file->attr.used, (PAGES - pages_left()) * PAGE);

    for (int64_t off = 0; off < model->size;) { /* data lies where SEEK_DATA says, and only there */
        int64_t data = space_seek(file, off, SEEK_DATA);
        int64_t end = data < 0 ? model->size : data;
        for (int64_t i = off; i < end; i++)
            assert_int_equal(model->bytes[i], 0);
        if (data < 0)
            break;
        off = space_seek(file, data, SEEK_HOLE);
        assert_true(off > data && off <= model->size);
    }
}

static void files_are_what_was_written(void **state)
{
    static struct model model;
    unsigned char *noise = malloc(2 * PIECE), *copy = malloc(FILE_SIZE);
    struct inode *file = make_file(store->root, "f");
    (void)state;

    memset(&model, 0, sizeof(model));
    for (unsigned i = 0; i < 2 * PIECE; i++)
        noise[i] = (unsigned char)(1 + random_below(255));
    for (unsigned i = 0; i < 300; i++) {
        step(&model, file, noise);
        if (i % 10 == 0)
            compare(&model, file, copy);
    }
    assert_int_equal(resize(file, 0), 0);
    assert_int_equal(pages_left(), PAGES);
    free(noise);
    free(copy);
}

static void small_files_grow_through_all_sizes(void **state)
{
    enum { STEP = 37, TOTAL = 2 * CHUNK + 12345 };
    unsigned char *model = malloc(TOTAL), *copy = malloc(TOTAL);
    struct inode *file = make_file(store->root, "f");
    size_t size = 0;
    (void)state;

    while (size < TOTAL) {
        size_t len = size < 20000 ? STEP : 4099;
        len = len < TOTAL - size ? len : TOTAL - size;
        for (size_t i = 0; i < len; i++)
            model[size + i] = (unsigned char)random_below(256);
        assert_int_equal(put(file, model + size, len, (int64_t)size), len);
        size += len;
    }
    assert_int_equal(get(file, copy, TOTAL, 0), TOTAL);
    assert_memory_equal(copy, model, TOTAL);
    assert_int_equal(file->attr.used, (TOTAL + PAGE - 1) / PAGE * PAGE);
    free(model);
    free(copy);
}

static void copies_keep_holes(void **state)
{
    struct inode *in = make_file(store->root, "in"), *out = make_file(store->root, "out");
    char text[8];
    (void)state;

    assert_int_equal(put(in, "start", 5, 0), 5);
    assert_int_equal(put(in, "end", 3, 10 * CHUNK), 3);
    assert_int_equal(put(out, "overwritten", 11, 2 * CHUNK), 11);
    assert_int_equal(space_copy(store, in, 0, out, 0, SIZE_MAX, 0), 10 * CHUNK + 3);
    assert_int_equal(out->attr.used, 2 * PAGE);
    assert_int_equal(get(out, text, 8, 10 * CHUNK), 3);
    assert_memory_equal(text, "end", 3);
    assert_int_equal(get(out, text, 8, 2 * CHUNK), 8);
    assert_memory_equal(text, "\0\0\0\0\0\0\0", 8);
    assert_int_equal(space_copy(store, in, 0, in, 3, 8, 0), -EINVAL);
    assert_int_equal(space_copy(store, in, 0, in, 4096, 5, 0), 5);
}

static void limits_of_offsets(void **state)
{
    struct inode *file = make_file(store->root, "f");
    char text[4];
    (void)state;

    assert_int_equal(put(file, "xy", 2, INT64_MAX), -EFBIG);
    assert_int_equal(put(file, "xy", 2, INT64_MAX - 1), 1);
    assert_true(file->attr.size == INT64_MAX);
    assert_int_equal(get(file, text, 4, INT64_MAX - 2), 2);
    assert_memory_equal(text, "\0x", 2);
    assert_int_equal(put(file, "x", 1, -1), -EINVAL);
    assert_int_equal(space_allocate(store, file, 0, INT64_MAX - 1, 2, 0), -EFBIG);
    assert_int_equal(space_allocate(store, file, FALLOC_FL_COLLAPSE_RANGE, 0, PAGE, 0),
                     -EOPNOTSUPP);
    assert_int_equal(resize(file, -1), -EINVAL);
    assert_int_equal(resize(store->root, 0), -EISDIR);
}

#define MEMFS_TEST_LENT(name) {#name " in lent memory", name, set_up_lent, tear_down_lent, NULL}

int main(void)
{
    const struct CMUnitTest tests[] = {
        MEMFS_TEST(map_finds_what_was_set),
        MEMFS_TEST(files_are_what_was_written),
        MEMFS_TEST(small_files_grow_through_all_sizes),
        MEMFS_TEST(copies_keep_holes),
        MEMFS_TEST(limits_of_offsets),
        MEMFS_TEST_LENT(files_are_what_was_written),
        MEMFS_TEST_LENT(small_files_grow_through_all_sizes),
        MEMFS_TEST_LENT(copies_keep_holes),
    };
    alarm(100); /* a hang is a failure */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
