/*
 * test_memfs_threads.c - memfs's store under several threads; made for ThreadSanitizer.
 */
#include "memfs_fixture.h"

#include <errno.h>
#include <linux/falloc.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

enum { THREADS = 4 };

/* cmocka's assertions jump, which must not happen in a thread. */
#define REQUIRE(condition)                                                                         \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

struct worker {
    pthread_t thread;
    uint64_t random;
    int64_t result;
    void *shared;
};

static unsigned pick(struct worker *worker, unsigned limit)
{
    worker->random = worker->random * 6364136223846793005ULL + 1442695040888963407ULL;
    return (unsigned)(worker->random >> 33) % limit;
}

/* Runs the function in all threads at once; the sum of their results. */
static int64_t run(void *(*function)(void *), void *shared)
{
    struct worker workers[THREADS];
    int64_t sum = 0;

    for (int i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){.random = SEED + (unsigned)i, .shared = shared};
        assert_int_equal(pthread_create(&workers[i].thread, NULL, function, &workers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(workers[i].thread, NULL);
        sum += workers[i].result;
    }
    return sum;
}

/* ---- locks ------------------------------------------------------------------------------ */

struct pair {
    struct lock lock;
    int64_t a, b;
};

static void *count_under_lock(void *arg)
{
    struct worker *worker = arg;
    struct pair *pair = worker->shared;

    for (int i = 0; i < 20000; i++) {
        if (pick(worker, 4) == 0) {
            lock_write(&pair->lock);
            pair->a++;
            if (pick(worker, 1000) == 0)
                usleep(100); /* let others sleep on the lock */
            pair->b++;
            lock_write_done(&pair->lock);
            worker->result++;
        } else {
            lock_read(&pair->lock);
            REQUIRE(pair->a == pair->b);
            lock_read_done(&pair->lock);
        }
    }
    return NULL;
}

static void locks_exclude(void **state)
{
    struct pair pair = {0};
    (void)state;
    int64_t sum = run(count_under_lock, &pair);
    assert_int_equal(pair.a, sum);
    assert_int_equal(atomic_load(&pair.lock.word), 0);
}

/* ---- quotas ----------------------------------------------------------------------------- */

static void *take_all(void *arg)
{
    struct worker *worker = arg;
    while (quota_take(worker->shared, 3))
        worker->result += 3;
    return NULL;
}

static void *take_and_give(void *arg)
{
    struct worker *worker = arg;
    for (int i = 0; i < 20000; i++) {
        int64_t amount = 1 + pick(worker, 40);
        if (quota_take(worker->shared, amount))
            quota_give(worker->shared, amount);
    }
    return NULL;
}

static void quotas_are_exact(void **state)
{
    enum { LIMIT = 30001 };
    struct quota quota;
    (void)state;
    assert_int_equal(quota_init(&quota, LIMIT, 50), 0);
    assert_int_equal(run(take_all, &quota), LIMIT / 3 * 3);
    assert_int_equal(quota_left(&quota), LIMIT % 3);
    quota_give(&quota, LIMIT / 3 * 3);
    run(take_and_give, &quota);
    assert_int_equal(quota_left(&quota), LIMIT);
    quota_free(&quota);
}

static void a_quota_of_all_there_is_can_be_taken(void **state)
{
    struct quota quota;
    (void)state;
    assert_int_equal(quota_init(&quota, INT64_MAX, 50), 0);
    assert_true(quota_take(&quota, 1)); /* leaves credit with a CPU */
    assert_true(quota_take(&quota, INT64_MAX - 1));
    assert_false(quota_take(&quota, 1));
    quota_free(&quota);
}

/* ---- attributes and data ---------------------------------------------------------------- */

static void *change_and_look(void *arg)
{
    struct worker *worker = arg;
    struct inode *file = worker->shared;

    for (int i = 0; i < 20000; i++) {
        if (pick(worker, 3) == 0) {
            unsigned id = pick(worker, 1000);
            struct attr_change change = {.valid = ATTR_UID | ATTR_GID,
                                         .to = {.uid = id, .gid = id}};
            REQUIRE(attr_set(store, file, &change) == 0);
        } else {
            struct attr attr = inode_attr(file);
            REQUIRE(attr.uid == attr.gid);
        }
    }
    return NULL;
}

static void attributes_are_never_torn(void **state)
{
    struct inode *file = make_file(store->root, "f");
    (void)state;
    struct attr_change change = {.valid = ATTR_UID | ATTR_GID};
    assert_int_equal(attr_set(store, file, &change), 0);
    run(change_and_look, file);
}

static void *write_and_read(void *arg)
{
    enum { BLOCK = 3 * PAGE };
    struct worker *worker = arg;
    unsigned char block[BLOCK];

    for (int i = 0; i < 3000; i++) {
        if (pick(worker, 2)) {
            memset(block, (int)pick(worker, 256), BLOCK);
            REQUIRE(put(worker->shared, block, BLOCK, 100) == BLOCK);
        } else if (pick(worker, 20) == 0) {
            REQUIRE(resize(worker->shared, 0) == 0);
        } else {
            size_t size = get(worker->shared, block, BLOCK, 100);
            REQUIRE(size == 0 || size == BLOCK);
            for (size_t k = 1; k < size; k++)
                REQUIRE(block[k] == block[0]);
        }
    }
    return NULL;
}

static void writes_are_atomic(void **state)
{
    (void)state;
    run(write_and_read, make_file(store->root, "f"));
}

/* ---- everything at once ----------------------------------------------------------------- */

enum { NAMES = 6, STEPS = 6000 };

/* A directory near the root, with a reference: the root itself, or one or two levels below. */
static struct inode *some_dir(struct worker *worker)
{
    struct inode *dir = store->root, *next;
    char name[8];

    inode_get(dir);
    for (unsigned depth = pick(worker, 3); depth > 0; depth--) {
        snprintf(name, sizeof(name), "d%u", pick(worker, NAMES));
        int error = tree_lookup(store, dir, name, &next);
        if (error)
            break;
        inode_put(store, dir, 1);
        dir = next;
    }
    return dir;
}

static void list(struct inode *dir)
{
    uint64_t cookie;
    lock_read(&dir->lock);
    uint32_t pos = dir_seek(dir->dir, 0);
    for (const struct dentry *dentry; (dentry = dir_step(dir->dir, &pos, &cookie));)
        REQUIRE(inode_attr(dentry->inode).nlink > 0);
    lock_read_done(&dir->lock);
}

static void use_file(struct worker *worker, struct inode *file)
{
    static const char data[3 * PAGE];
    struct attr_change change = {.valid = ATTR_MODE, .to.mode = 0600};
    char some[100];

    switch (pick(worker, 6)) {
    case 0:
        put(file, data, 1 + pick(worker, sizeof(data)), pick(worker, 3 * CHUNK));
        break;
    case 1:
        get(file, some, sizeof(some), pick(worker, 3 * CHUNK));
        break;
    case 2:
        resize(file, pick(worker, 3 * CHUNK));
        break;
    case 3:
        space_allocate(store, file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, CHUNK, 0);
        break;
    case 4:
        attr_set(store, file, &change);
        break;
    default:
        xattr_set(store, file, "user.x", data, pick(worker, 100), 0);
    }
}

static void *do_anything(void *arg)
{
    struct worker *worker = arg;

    for (int i = 0; i < STEPS; i++) {
        struct inode *dir = some_dir(worker), *other = some_dir(worker), *inode = NULL;
        char name[8], to[8];
        unsigned kind = pick(worker, 2);
        snprintf(name, sizeof(name), "%c%u", "df"[kind], pick(worker, NAMES));
        snprintf(to, sizeof(to), "%c%u", "df"[kind], pick(worker, NAMES));

        switch (pick(worker, 8)) {
        case 0:
        case 1:
            make(dir, name, kind ? S_IFREG | 0644 : S_IFDIR | 0755, &inode);
            break;
        case 2:
            kind ? tree_unlink(store, dir, name) : tree_rmdir(store, dir, name);
            break;
        case 3:
            rename_entry(store, dir, name, other, to, pick(worker, 3));
            break;
        case 4:
            if (tree_lookup(store, dir, name, &inode) == 0)
                tree_link(store, inode, other, to);
            break;
        case 5:
            list(dir);
            break;
        default:
            if (tree_lookup(store, dir, name, &inode) == 0 && inode->type == DT_REG)
                use_file(worker, inode);
        }
        if (inode)
            inode_put(store, inode, 1);
        inode_put(store, dir, 1);
        inode_put(store, other, 1);
    }
    return NULL;
}

static void remove_all(struct inode *dir)
{
    for (;;) {
        uint64_t cookie;
        uint32_t pos = dir_seek(dir->dir, 0);
        const struct dentry *dentry = dir_step(dir->dir, &pos, &cookie);
        if (!dentry)
            return;
        char name[8];
        snprintf(name, sizeof(name), "%s", dentry->name);
        if (dentry->inode->type == DT_DIR) {
            remove_all(dentry->inode);
            assert_int_equal(tree_rmdir(store, dir, name), 0);
        } else {
            assert_int_equal(tree_unlink(store, dir, name), 0);
        }
    }
}

static void anything_goes(void **state)
{
    int64_t bytes = quota_left(&store->bytes), inodes = quota_left(&store->inodes);
    (void)state;
    run(do_anything, NULL);
    remove_all(store->root);
    assert_int_equal(quota_left(&store->bytes), bytes);
    assert_int_equal(quota_left(&store->inodes), inodes);
    assert_int_equal(atomic_load(&store->root->refs), 1);
    assert_int_equal(store->root->attr.nlink, 2);
    assert_int_equal(store->root->attr.size, 40);
}

/* ---- the end of an inode ------------------------------------------------------------------- */

struct late {
    struct inode *inode;
    _Atomic bool replied, unlocked;
};

/* A READ: its reply goes out under the lock, and FORGET may be handled before the lock is free. */
static void *reply_late(void *arg)
{
    struct late *late = arg;

    lock_read(&late->inode->lock);
    atomic_store(&late->replied, true);
    usleep(20000);
    atomic_store(&late->unlocked, true);
    lock_read_done(&late->inode->lock);
    return NULL;
}

static void an_inode_outlives_its_readers(void **state)
{
    struct late late = {0};
    pthread_t thread;
    (void)state;

    assert_int_equal(make(store->root, "f", S_IFREG | 0644, &late.inode), 0);
    assert_int_equal(tree_unlink(store, store->root, "f"), 0);
    assert_int_equal(pthread_create(&thread, NULL, reply_late, &late), 0);
    while (!atomic_load(&late.replied))
        usleep(100);
    inode_put(store, late.inode, 1);
    assert_true(atomic_load(&late.unlocked));
    pthread_join(thread, NULL);
    assert_int_equal(atomic_load(&late.inode->lock.word), 0); /* inodes' memory stays */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        MEMFS_TEST(locks_exclude),
        MEMFS_TEST(quotas_are_exact),
        cmocka_unit_test(a_quota_of_all_there_is_can_be_taken),
        MEMFS_TEST(attributes_are_never_torn),
        MEMFS_TEST(writes_are_atomic),
        MEMFS_TEST(anything_goes),
        MEMFS_TEST(an_inode_outlives_its_readers),
    };
    alarm(100); /* a hang is a failure */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
