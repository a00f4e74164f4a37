/*
 * test_memfs_faults.c - memfs's store when memory runs out, at any moment.
 *
 * One long story is told again and again, each time with the n-th allocation failing, until it is
 * told without a failure. A step may answer -ENOMEM or -ENOSPC and is then left out. Whatever
 * happened, the tree can be removed, and then nothing is charged any more.
 *
 * Needs the linker's --wrap for each function below.
 */
#include "memfs_fixture.h"

#include <errno.h>
#include <linux/falloc.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

static long countdown; /* allocations until the one that fails; 0: none fails */

static bool fails(void)
{
    return countdown > 0 && --countdown == 0;
}

void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_malloc(size_t size)
{
    return fails() ? NULL : __real_malloc(size);
}

void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size)
{
    return fails() ? NULL : __real_calloc(count, size);
}

void *__real_realloc(void *old, size_t size);
void *__wrap_realloc(void *old, size_t size);
void *__wrap_realloc(void *old, size_t size)
{
    return fails() ? NULL : __real_realloc(old, size);
}

void *__real_aligned_alloc(size_t alignment, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
    return fails() ? NULL : __real_aligned_alloc(alignment, size);
}

char *__real_strdup(const char *text);
char *__wrap_strdup(const char *text);
char *__wrap_strdup(const char *text)
{
    return fails() ? NULL : __real_strdup(text);
}

void *__real_mmap(void *at, size_t size, int prot, int flags, int fd, off_t off);
void *__wrap_mmap(void *at, size_t size, int prot, int flags, int fd, off_t off);
void *__wrap_mmap(void *at, size_t size, int prot, int flags, int fd, off_t off)
{
    return fails() ? MAP_FAILED : __real_mmap(at, size, prot, flags, fd, off);
}

/* ---- the story -------------------------------------------------------------------------- */

static const char data[3 * PAGE];

static void expect(int64_t result, int64_t wanted)
{
    if (result != -ENOMEM && result != -ENOSPC)
        assert_int_equal(result, wanted);
}

static void write_some(struct inode *file)
{
    static const int64_t offsets[] = {0,     100,        5000,           300000,          1200000,
                                      CHUNK, CHUNK * 70, CHUNK * 5000LL, CHUNK * 300000LL};
    for (size_t i = 0; i < sizeof(offsets) / sizeof(offsets[0]); i++) {
        ssize_t done = put(file, data, sizeof(data), offsets[i]);
        if (done != -ENOMEM)
            assert_in_range(done, 1, sizeof(data)); /* may stop at the end of a chunk */
    }
    expect(space_allocate(store, file, 0, CHUNK * 9LL, 3 * PAGE, 0), 0);
    expect(space_allocate(store, file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 5000, CHUNK, 0),
           0);
    expect(resize(file, 77), 0);
}

static void tell(void)
{
    struct inode *root = store->root, *dir, *inode;
    char name[16];

    if (make(root, "dir", S_IFDIR | 0755, &dir))
        return;
    for (int i = 0; i < 40; i++) {
        snprintf(name, sizeof(name), "file%d", i);
        int error = make(dir, name, S_IFREG | 0644, &inode);
        expect(error, 0);
        if (error)
            continue;
        if (i % 20 == 0)
            write_some(inode);
        expect(xattr_set(store, inode, "user.x", "value", 5, 0), 0);
        expect(tree_link(store, inode, root, name), 0);
        expect(rename_entry(store, dir, name, root, "moved", 0), 0);
        if (i % 2)
            tree_unlink(store, root, "moved");
        inode_put(store, inode, 1);
    }
    if (make(root, "link", S_IFLNK | 0777, &inode) == 0)
        inode_put(store, inode, 1);
    inode_put(store, dir, 1);
}

static void remove_all(struct inode *dir)
{
    const struct dentry *dentry;
    uint64_t cookie;
    uint32_t pos;
    char name[16];

    while (pos = dir_seek(dir->dir, 0), (dentry = dir_step(dir->dir, &pos, &cookie))) {
        snprintf(name, sizeof(name), "%s", dentry->name);
        if (dentry->inode->type == DT_DIR) {
            remove_all(dentry->inode);
            assert_int_equal(tree_rmdir(store, dir, name), 0);
        } else {
            assert_int_equal(tree_unlink(store, dir, name), 0);
        }
    }
}

static void every_allocation_may_fail(void **state)
{
    enum { MOST = 5000 };
    long n = 1;
    bool failed = true;
    (void)state;

    for (; failed && n < MOST; n++) {
        countdown = n;
        if (make_store(NULL) == 0) {
            tell();
            failed = countdown == 0;
            if (n % 2) /* removals get along without memory as well */
                countdown = 0;
            remove_all(store->root);
            assert_int_equal(pages_left(), PAGES);
            assert_int_equal(quota_left(&store->inodes), INODES - 1);
            assert_int_equal(atomic_load(&store->root->refs), 1);
            drop_store(NULL);
        }
        countdown = 0;
    }
    assert_in_range(n, 100, MOST - 1); /* many moments, and one story without a failure */
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_allocation_may_fail)};
    alarm(100); /* a hang is a failure */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
