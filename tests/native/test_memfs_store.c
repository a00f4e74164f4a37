/*
 * test_memfs_store.c - names, limits, extended attributes and times of memfs's store.
 *
 * Without FUSE and without threads. Limits and references are checked to be back where they were.
 */
#include "memfs_fixture.h"

#include <errno.h>
#include <stdio.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

/* ---- directories ------------------------------------------------------------------------ */

static void names_follow_the_rules(void **state)
{
    struct inode *root = store->root, *out;
    char name[300];
    (void)state;

    struct inode *file = make_file(root, "f");
    assert_int_equal(make(root, "f", S_IFREG, &out), -EEXIST);
    assert_int_equal(make(file, "x", S_IFREG, &out), -ENOTDIR);
    assert_int_equal(tree_lookup(store, root, "g", &out), -ENOENT);
    memset(name, 'n', sizeof(name));
    name[256] = '\0';
    assert_int_equal(make(root, name, S_IFREG, &out), -ENAMETOOLONG);
    assert_int_equal(make(root, "", S_IFREG, &out), -ENOENT);
    assert_int_equal(make(root, ".", S_IFREG, &out), -EINVAL);
    assert_int_equal(make(root, "..", S_IFREG, &out), -EINVAL);
    name[255] = '\0';
    struct inode *longest = make_file(root, name);
    assert_int_equal(tree_lookup(store, root, name, &out), 0);
    assert_ptr_equal(out, longest);
    assert_int_equal(tree_rmdir(store, root, "f"), -ENOTDIR);

    struct inode *dir = make_dir(root, "d");
    assert_int_equal(root->attr.nlink, 3);
    assert_int_equal(tree_unlink(store, root, "d"), -EISDIR);
    assert_int_equal(tree_link(store, dir, root, "d2"), -EPERM);
    assert_int_equal(tree_link(store, file, dir, "hard"), 0);
    assert_int_equal(file->attr.nlink, 2);
    assert_int_equal(tree_rmdir(store, root, "d"), -ENOTEMPTY);
    assert_int_equal(tree_unlink(store, dir, "hard"), 0);
    assert_int_equal(tree_rmdir(store, root, "d"), 0);
    assert_int_equal(make(dir, "late", S_IFREG, &out), -ENOENT);
    assert_int_equal(tree_link(store, file, dir, "late"), -ENOENT);
    assert_int_equal(tree_unlink(store, root, "f"), 0);
    assert_int_equal(tree_link(store, file, root, "again"), 0); /* whether it may is the kernel's */
    assert_int_equal(file->attr.nlink, 1);
    inode_put(store, file, 1);
    assert_int_equal(tree_lookup(store, root, "again", &out), 0);
    assert_ptr_equal(out, file);
    assert_int_equal(tree_unlink(store, root, "again"), 0);
    inode_put(store, file, 1);
    inode_put(store, dir, 1);
}

static void group_comes_from_a_setgid_directory(void **state)
{
    struct attr_change change = {.valid = ATTR_MODE | ATTR_GID, .to = {.mode = 02775, .gid = 77}};
    (void)state;

    struct inode *dir = make_dir(store->root, "d");
    assert_int_equal(attr_set(store, dir, &change), 0);
    assert_int_equal(make_file(dir, "f")->attr.gid, 77);
    struct inode *sub = make_dir(dir, "s");
    assert_int_equal(sub->attr.gid, 77);
    assert_int_equal(sub->attr.mode, S_IFDIR | S_ISGID | 0755);
}

/* Names 0..COUNT-1 come and go; a reader that goes on between must meet each that stayed once. */
static void readers_meet_each_entry_once(void **state)
{
    enum { COUNT = 700, ROUNDS = 60 };
    static bool present[COUNT], stayed[COUNT], met[COUNT];
    struct inode *dir = make_dir(store->root, "d"), *out;
    char name[16];
    (void)state;

    memset(present, 0, sizeof(present));
    for (unsigned round = 0; round < ROUNDS; round++) {
        uint64_t cookie = 0;
        memcpy(stayed, present, sizeof(stayed));
        memset(met, 0, sizeof(met));
        for (bool more = true; more;) {
            uint32_t pos = dir_seek(dir->dir, cookie);
            for (unsigned i = 0; i < 40 && more; i++) {
                const struct dentry *dentry = dir_step(dir->dir, &pos, &cookie);
                more = dentry != NULL;
                if (!more)
                    break;
                unsigned index = (unsigned)atoi(dentry->name);
                assert_true(present[index]);
                assert_false(met[index] && stayed[index]);
                assert_true(stayed[index]); /* what was made since is before him */
                met[index] = true;
            }
            for (unsigned i = random_below(60); more && i > 0; i--) {
                unsigned index = random_below(COUNT);
                snprintf(name, sizeof(name), "%u", index);
                if (present[index]) {
                    assert_int_equal(tree_unlink(store, dir, name), 0);
                    stayed[index] = false;
                } else {
                    assert_int_equal(make(dir, name, S_IFREG, &out), 0);
                    inode_put(store, out, 1);
                }
                present[index] = !present[index];
            }
        }
        for (unsigned i = 0; i < COUNT; i++)
            assert_true(met[i] || !stayed[i]);
    }
    for (unsigned i = 0; i < COUNT; i++) {
        snprintf(name, sizeof(name), "%u", i);
        assert_int_equal(tree_unlink(store, dir, name), present[i] ? 0 : -ENOENT);
    }
    assert_int_equal(dir->attr.size, 40);
}

/* ---- rename ----------------------------------------------------------------------------- */

static void renames_follow_the_rules(void **state)
{
    struct inode *root = store->root, *a = make_dir(root, "a"), *b = make_dir(a, "b");
    struct inode *c = make_dir(root, "c"), *f = make_file(root, "f"), *g = make_file(c, "g");
    (void)state;

    assert_int_equal(rename_entry(store, root, "a", b, "x", 0), -EINVAL);
    assert_int_equal(rename_entry(store, root, "a", a, "x", 0), -EINVAL);
    assert_int_equal(rename_entry(store, a, "b", root, "a", 0), -ENOTEMPTY);
    assert_int_equal(rename_entry(store, a, "b", root, "a", RENAME_EXCHANGE), -EINVAL);
    assert_int_equal(rename_entry(store, root, "f", root, "a", 0), -EISDIR);
    assert_int_equal(rename_entry(store, root, "a", root, "f", 0), -ENOTDIR);
    assert_int_equal(rename_entry(store, root, "a", root, "c", 0), -ENOTEMPTY);
    assert_int_equal(rename_entry(store, root, "f", c, "g", RENAME_NOREPLACE), -EEXIST);
    assert_int_equal(rename_entry(store, root, "f", c, "h", RENAME_EXCHANGE), -ENOENT);
    assert_int_equal(rename_entry(store, root, "f", c, "h", RENAME_WHITEOUT), -EINVAL);
    assert_int_equal(rename_entry(store, root, "none", c, "h", 0), -ENOENT);

    assert_int_equal(rename_entry(store, root, "f", a, "b", RENAME_EXCHANGE), 0);
    assert_ptr_equal(b->dir->parent, root);
    assert_int_equal(a->attr.nlink, 2);
    assert_int_equal(root->attr.nlink, 5);
    assert_int_equal(rename_entry(store, a, "b", c, "g", 0), 0); /* file f over file g */
    assert_int_equal(g->attr.nlink, 0);
    assert_int_equal(rename_entry(store, root, "f", root, "a", 0), 0); /* b over the empty a */
    assert_int_equal(a->attr.nlink, 0);
    assert_int_equal(root->attr.nlink, 4);
    assert_int_equal(tree_link(store, f, root, "other"), 0);
    assert_int_equal(rename_entry(store, root, "other", c, "g", 0), 0); /* one file: nothing */
    assert_int_equal(f->attr.nlink, 2);
    inode_put(store, a, 1);
    inode_put(store, g, 1);
}

/* References: whatever directories were moved where, removing the tree frees every inode. */
static void moved_directories_leave_no_reference(void **state)
{
    enum { DIRS = 12 };
    struct inode *dirs[DIRS + 1] = {store->root};
    int64_t left = quota_left(&store->inodes);
    char name[8], other[8];
    (void)state;

    for (unsigned i = 1; i <= DIRS; i++) {
        snprintf(name, sizeof(name), "%u", i);
        dirs[i] = make_dir(dirs[random_below(i)], name);
    }
    for (unsigned i = 0; i < 3000; i++) {
        unsigned source = 1 + random_below(DIRS), target = 1 + random_below(DIRS);
        snprintf(name, sizeof(name), "%u", source);
        snprintf(other, sizeof(other), "%u", target);
        struct inode *from = dirs[source]->dir->parent, *to = dirs[random_below(DIRS + 1)];
        if (random_below(3)) {
            rename_entry(store, from, name, to, name, RENAME_NOREPLACE);
        } else if (!rename_entry(store, from, name, dirs[target]->dir->parent, other,
                                 RENAME_EXCHANGE)) {
            struct inode *swap = dirs[source];
            dirs[source] = dirs[target];
            dirs[target] = swap;
        }
    }
    for (unsigned gone = 0; gone < DIRS;) {
        for (unsigned i = 1; i <= DIRS; i++) {
            snprintf(name, sizeof(name), "%u", i);
            if (!dirs[i] || tree_rmdir(store, dirs[i]->dir->parent, name) != 0)
                continue;
            inode_put(store, dirs[i], 1);
            dirs[i] = NULL;
            gone++;
        }
    }
    assert_int_equal(quota_left(&store->inodes), left);
    assert_int_equal(atomic_load(&store->root->refs), 1);
    assert_int_equal(store->root->attr.nlink, 2);
}

/* ---- limits ----------------------------------------------------------------------------- */

static void a_full_store_refuses_and_recovers(void **state)
{
    struct inode *file = make_file(store->root, "f");
    char *data = calloc(PAGES + 10, PAGE);
    struct statvfs st;
    (void)state;

    for (int round = 0; round < 3; round++) {
        assert_int_equal(put(file, data, (size_t)(PAGES + 10) * PAGE, 100),
                         (ssize_t)PAGES * PAGE - 100); /* as much as fits */
        assert_int_equal(put(file, data, 1, (int64_t)PAGES * PAGE), -ENOSPC);
        assert_int_equal(put(file, data, PAGE, 50), PAGE); /* what is there can be overwritten */
        assert_int_equal(space_allocate(store, file, 0, (int64_t)PAGES * PAGE, 1, 0), -ENOSPC);
        store_statfs(store, &st);
        assert_int_equal(st.f_bfree, 0);
        assert_int_equal(st.f_blocks, PAGES);
        assert_int_equal(resize(file, 0), 0);
        assert_int_equal(pages_left(), PAGES);
    }
    assert_int_equal(space_allocate(store, file, 0, 0, (int64_t)PAGES * PAGE + 1, 0), -ENOSPC);
    assert_int_equal(file->attr.used, 0);
    assert_int_equal(space_allocate(store, file, 0, 0, (int64_t)PAGES * PAGE, 0), 0);
    assert_int_equal(pages_left(), 0);
    assert_int_equal(tree_unlink(store, store->root, "f"), 0);
    assert_int_equal(pages_left(), 0); /* still open */
    inode_put(store, file, 1);
    assert_int_equal(pages_left(), PAGES);
    free(data);
}

static void inodes_are_limited(void **state)
{
    struct inode *out, *first = make_file(store->root, "0");
    char name[16];
    unsigned count = 2;
    (void)state;

    for (;; count++) {
        snprintf(name, sizeof(name), "%u", count);
        if (make(store->root, name, S_IFREG, &out))
            break;
        inode_put(store, out, 1);
    }
    assert_int_equal(count, INODES);
    assert_int_equal(make(store->root, "x", S_IFDIR, &out), -ENOSPC);
    assert_int_equal(tree_link(store, first, store->root, "x"), -ENOSPC);
    assert_int_equal(tree_unlink(store, store->root, "7"), 0);
    assert_int_equal(tree_link(store, first, store->root, "x"), 0);
    assert_int_equal(make(store->root, "y", S_IFREG, &out), -ENOSPC);
    assert_int_equal(tree_unlink(store, store->root, "x"), 0);
    assert_int_equal(make(store->root, "y", S_IFREG, &out), 0);
}

/* ---- extended attributes ---------------------------------------------------------------- */

static void xattrs_follow_the_rules(void **state)
{
    struct inode *file = make_file(store->root, "f");
    int64_t left = quota_left(&store->bytes);
    static char big[65537];
    char name[300] = "user.", list[64];
    const void *value;
    size_t size;
    (void)state;

    assert_int_equal(xattr_set(store, file, "user.a", "1", 1, XATTR_REPLACE), -ENODATA);
    assert_int_equal(xattr_set(store, file, "user.a", "1", 1, XATTR_CREATE), 0);
    assert_int_equal(xattr_set(store, file, "user.a", "1", 1, XATTR_CREATE), -EEXIST);
    assert_int_equal(xattr_set(store, file, "user.a", "22", 2, 0), 0);
    assert_int_equal(xattr_get(file, "user.a", &value, &size), 0);
    assert_int_equal(size, 2);
    assert_memory_equal(value, "22", 2);
    assert_int_equal(xattr_get(file, "user.b", &value, &size), -ENODATA);
    assert_int_equal(xattr_set(store, file, "system.posix_acl_access", "", 0, 0), -EOPNOTSUPP);
    assert_int_equal(xattr_set(store, file, "user.b", big, 65537, 0), -E2BIG);
    memset(name + 5, 'n', 251);
    assert_int_equal(xattr_set(store, file, name, "", 0, 0), -ERANGE);
    assert_int_equal(xattr_set(store, file, "trusted.t", "", 0, 0), 0);
    assert_int_equal(xattr_list(file, NULL, false), 7);
    assert_int_equal(xattr_list(file, list, true), 17);
    assert_memory_equal(list, "user.a\0trusted.t", 17);

    unsigned count = 0;
    int error;
    do {
        snprintf(name, sizeof(name), "user.%u", count);
        error = xattr_set(store, file, name, big, 65536, 0);
    } while (!error && ++count);
    assert_int_equal(error, -ENOSPC);
    assert_int_equal(count, 15); /* with "22" the sixteenth would pass 1 MiB */
    while (count-- > 0) {
        snprintf(name, sizeof(name), "user.%u", count);
        assert_int_equal(xattr_remove(store, file, name), 0);
    }
    assert_int_equal(xattr_remove(store, file, "user.a"), 0);
    assert_int_equal(xattr_remove(store, file, "user.a"), -ENODATA);
    assert_int_equal(xattr_remove(store, file, "trusted.t"), 0);
    assert_int_equal(quota_left(&store->bytes), left);
}

/* ---- times ------------------------------------------------------------------------------ */

static void a_change_that_was_looked_at_is_told_apart(void **state)
{
    struct inode *file = make_file(store->root, "f"), *other = make_file(store->root, "g");
    struct attr before = inode_attr(file);
    (void)state;

    for (int i = 0; i < 1000; i++) {
        assert_int_equal(put(file, "x", 1, 0), 1);
        struct attr after = inode_attr(file);
        assert_true(after.mtime.tv_sec != before.mtime.tv_sec ||
                    after.mtime.tv_nsec > before.mtime.tv_nsec);
        assert_int_equal(put(other, "x", 1, 0), 1); /* unseen, yet never older */
        assert_true(other->attr.mtime.tv_sec > after.mtime.tv_sec ||
                    other->attr.mtime.tv_nsec >= after.mtime.tv_nsec);
        before = after;
    }
}

/* ---- size ------------------------------------------------------------------------------- */

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#define SANITIZED (__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
#else
#define SANITIZED 0
#endif

static long resident(void)
{
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%*d %ld", &pages), 1);
    fclose(file);
    return pages * sysconf(_SC_PAGESIZE);
}

/* Of the processor: what else runs on the machine does not count. */
static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Bounds are generous: a table that does not scale takes minutes, not seconds. */
static void a_million_files(void **state)
{
    enum { FILES = 1000000 };
    struct store_options options = {.mode = 0755};
    struct inode *inode;
    char name[16];
    (void)state;

    store = store_new(&options);
    assert_non_null(store);
    struct inode *dir = make_dir(store->root, "d");
    double start = seconds();
    long before = resident();
    for (int i = 0; i < FILES; i++) {
        snprintf(name, sizeof(name), "file%07d", i);
        inode_put(store, make_file(dir, name), 1);
    }
    long each = (resident() - before) / FILES;
    for (int i = 0; i < FILES; i++) {
        snprintf(name, sizeof(name), "file%07d", i);
        assert_int_equal(tree_lookup(store, dir, name, &inode), 0);
        assert_int_equal(inode_attr(inode).nlink, 1);
        inode_put(store, inode, 1);
    }
    uint64_t cookie = 0;
    int listed = 0;
    for (uint32_t pos; (pos = dir_seek(dir->dir, cookie), dir_step(dir->dir, &pos, &cookie));)
        listed++;
    assert_int_equal(listed, FILES);
    for (int i = 0; i < FILES; i++) {
        snprintf(name, sizeof(name), "file%07d", i);
        assert_int_equal(tree_unlink(store, dir, name), 0);
    }
    double took = seconds() - start;
    inode_put(store, dir, 1);
    store_free(store);
    print_message("a million files: %ld bytes each, %.1f s\n", each, took);
    assert_true(took < 60);
    if (!SANITIZED) /* sanitizers need memory of their own */
        assert_in_range(each, 1, 256 + 11);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        MEMFS_TEST(names_follow_the_rules),
        MEMFS_TEST(group_comes_from_a_setgid_directory),
        MEMFS_TEST(readers_meet_each_entry_once),
        MEMFS_TEST(renames_follow_the_rules),
        MEMFS_TEST(moved_directories_leave_no_reference),
        MEMFS_TEST(a_full_store_refuses_and_recovers),
        MEMFS_TEST(inodes_are_limited),
        MEMFS_TEST(xattrs_follow_the_rules),
        MEMFS_TEST(a_change_that_was_looked_at_is_told_apart),
        cmocka_unit_test(a_million_files),
    };
    alarm(100); /* a hang is a failure */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
