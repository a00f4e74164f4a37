/*
 * test_memfs_door.c - memfs's answers to FUSE requests, received by a libfuse of its own.
 *
 * The functions of libfuse that memfs's door calls are defined here: they note the reply, or refuse
 * it as libfuse does when a request was interrupted.
 */
#include "memfs_fixture.h"

#include "memfs/door.h"

#include <errno.h>
#include <stdio.h>
#include <sys/xattr.h>
#include <unistd.h>

enum { REPLY = 1 << 20 };

struct fuse_req {
    struct fuse_ctx ctx;
    bool refuse; /* replies */
    int error;   /* of the last reply */
    struct fuse_entry_param entry;
    struct fuse_file_info fi;
    struct stat attr;
    const char *direct; /* where the bytes came from, if in one piece */
    size_t size;        /* of what was replied */
    int pieces;
    _Alignas(8) char data[REPLY];
};

static struct fuse_req request, *const req = &request;
static struct door door;
static const struct fuse_lowlevel_ops *const ops = &door_ops.ops;

/* ---- libfuse ---------------------------------------------------------------------------- */

static int reply(fuse_req_t r, int error)
{
    r->error = error;
    return r->refuse ? -ENOENT : 0;
}

void *fuse_req_userdata(fuse_req_t r)
{
    (void)r;
    return &door;
}

const struct fuse_ctx *fuse_req_ctx(fuse_req_t r)
{
    return &r->ctx;
}

int fuse_req_getgroups(fuse_req_t r, int size, gid_t list[])
{
    (void)r, (void)size, (void)list;
    return 0;
}

int fuse_reply_err(fuse_req_t r, int error)
{
    return reply(r, error);
}

void fuse_reply_none(fuse_req_t r)
{
    reply(r, 0);
}

int fuse_reply_entry(fuse_req_t r, const struct fuse_entry_param *entry)
{
    r->entry = *entry;
    return reply(r, 0);
}

int fuse_reply_create(fuse_req_t r, const struct fuse_entry_param *entry,
                      const struct fuse_file_info *fi)
{
    r->fi = *fi;
    return fuse_reply_entry(r, entry);
}

int fuse_reply_open(fuse_req_t r, const struct fuse_file_info *fi)
{
    r->fi = *fi;
    return reply(r, 0);
}

int fuse_reply_attr(fuse_req_t r, const struct stat *attr, double timeout)
{
    (void)timeout;
    r->attr = *attr;
    return reply(r, 0);
}

int fuse_reply_readlink(fuse_req_t r, const char *target)
{
    return fuse_reply_buf(r, target, strlen(target));
}

int fuse_reply_write(fuse_req_t r, size_t count)
{
    r->size = count;
    return reply(r, 0);
}

int fuse_reply_xattr(fuse_req_t r, size_t count)
{
    return fuse_reply_write(r, count);
}

int fuse_reply_lseek(fuse_req_t r, off_t off)
{
    return fuse_reply_write(r, (size_t)off);
}

int fuse_reply_buf(fuse_req_t r, const char *data, size_t size)
{
    r->direct = data;
    r->size = size;
    r->pieces = 1;
    if (size)
        memcpy(r->data, data, size);
    return reply(r, 0);
}

int fuse_reply_iov(fuse_req_t r, const struct iovec *iov, int count)
{
    r->size = 0;
    r->pieces = count;
    for (int i = 0; i < count; i++) {
        memcpy(r->data + r->size, iov[i].iov_base, iov[i].iov_len);
        r->size += iov[i].iov_len;
    }
    return reply(r, 0);
}

int fuse_reply_statfs(fuse_req_t r, const struct statvfs *st)
{
    r->size = st->f_bfree;
    return reply(r, 0);
}

/* An entry of a listing: the offset, the node or number, the name in 48 bytes. */
struct listed {
    off_t off;
    uint64_t node;
    char name[48];
};

static size_t add(char *buf, size_t room, const char *name, uint64_t node, off_t off)
{
    struct listed *entry = (struct listed *)buf;
    if (room < sizeof(*entry))
        return sizeof(*entry);
    *entry = (struct listed){.off = off, .node = node};
    strncpy(entry->name, name, sizeof(entry->name) - 1);
    return sizeof(*entry);
}

size_t fuse_add_direntry(fuse_req_t r, char *buf, size_t room, const char *name,
                         const struct stat *st, off_t off)
{
    (void)r;
    return add(buf, room, name, st->st_ino, off);
}

size_t fuse_add_direntry_plus(fuse_req_t r, char *buf, size_t room, const char *name,
                              const struct fuse_entry_param *entry, off_t off)
{
    (void)r;
    return add(buf, room, name, entry->ino, off);
}

size_t fuse_buf_size(const struct fuse_bufvec *bufv)
{
    size_t size = 0;
    for (size_t i = 0; i < bufv->count; i++)
        size += bufv->buf[i].size;
    return size;
}

ssize_t fuse_buf_copy(struct fuse_bufvec *to, struct fuse_bufvec *from,
                      enum fuse_buf_copy_flags flags)
{
    size_t size = to->buf[0].size;
    (void)flags;
    if (size > from->buf[0].size - from->off)
        size = from->buf[0].size - from->off;
    memcpy(to->buf[0].mem, (char *)from->buf[0].mem + from->off, size);
    from->off += size;
    return (ssize_t)size;
}

/* ---- helpers ---------------------------------------------------------------------------- */

static int make_door(void **state)
{
    memset(req, 0, sizeof(*req));
    if (make_store(state) != 0)
        return -1;
    door = (struct door){
        .store = store, .timeout = 100, .keep_cache = true, .absent.entry_timeout = 100};
    return 0;
}

static fuse_ino_t create(const char *name)
{
    struct fuse_file_info fi = {.flags = O_CREAT | O_EXCL | O_RDWR};
    ops->create(req, FUSE_ROOT_ID, name, 0644, &fi);
    assert_int_equal(req->error, 0);
    return req->entry.ino;
}

static void write_at(fuse_ino_t ino, const char *data, size_t size, off_t off)
{
    struct fuse_file_info fi = {0};
    struct fuse_bufvec bufv = FUSE_BUFVEC_INIT(size);
    bufv.buf[0].mem = (void *)(uintptr_t)data;
    ops->write_buf(req, ino, &bufv, off, &fi);
    assert_int_equal(req->error, 0);
    assert_int_equal(req->size, size);
}

static uint64_t refs_of(fuse_ino_t ino)
{
    return atomic_load(&door_inode(&door, ino)->refs);
}

/* ---- tests ------------------------------------------------------------------------------ */

static void references_follow_the_replies(void **state)
{
    fuse_ino_t ino = create("f");
    (void)state;

    assert_int_equal(refs_of(ino), 2);
    ops->lookup(req, FUSE_ROOT_ID, "f");
    assert_int_equal(req->entry.ino, ino);
    assert_int_equal(refs_of(ino), 3);
    req->refuse = true; /* nobody heard: nothing to forget */
    ops->lookup(req, FUSE_ROOT_ID, "f");
    assert_int_equal(refs_of(ino), 3);
    ops->link(req, ino, FUSE_ROOT_ID, "g");
    assert_int_equal(refs_of(ino), 3);
    req->refuse = false;
    struct fuse_forget_data forgets[] = {{ino, 1}, {FUSE_ROOT_ID, 7}};
    ops->forget_multi(req, 2, forgets);
    assert_int_equal(refs_of(ino), 2);
    ops->unlink(req, FUSE_ROOT_ID, "f");
    ops->unlink(req, FUSE_ROOT_ID, "g");
    ops->getattr(req, ino, NULL);
    assert_int_equal(req->attr.st_nlink, 0);
    ops->forget(req, ino, 1);
    assert_int_equal(quota_left(&store->inodes), INODES - 1);
}

static void absent_names_are_remembered(void **state)
{
    (void)state;
    ops->lookup(req, FUSE_ROOT_ID, "none");
    assert_int_equal(req->error, 0);
    assert_int_equal(req->entry.ino, 0);
    assert_true(req->entry.entry_timeout == 100);
    door.timeout = 0;
    ops->lookup(req, FUSE_ROOT_ID, "none");
    assert_int_equal(req->error, ENOENT);
}

static void create_opens_what_came_between(void **state)
{
    struct fuse_file_info fi = {.flags = O_CREAT | O_RDWR | O_TRUNC};
    fuse_ino_t ino = create("f");
    (void)state;

    write_at(ino, "text", 4, 0);
    ops->create(req, FUSE_ROOT_ID, "f", 0600, &fi);
    assert_int_equal(req->error, 0);
    assert_int_equal(req->entry.ino, ino);
    assert_int_equal(req->entry.attr.st_size, 0);
    assert_true(req->fi.keep_cache && req->fi.noflush && !req->fi.direct_io);
    fi.flags |= O_EXCL;
    ops->create(req, FUSE_ROOT_ID, "f", 0600, &fi);
    assert_int_equal(req->error, EEXIST);
    fi.flags &= ~O_EXCL;
    ops->mkdir(req, FUSE_ROOT_ID, "d", 0700);
    ops->create(req, FUSE_ROOT_ID, "d", 0600, &fi);
    assert_int_equal(req->error, EISDIR);
}

static void open_truncates(void **state)
{
    struct fuse_file_info fi = {.flags = O_WRONLY | O_TRUNC};
    fuse_ino_t ino = create("f");
    (void)state;

    write_at(ino, "text", 4, 0);
    door_inode(&door, ino)->attr.mode |= S_ISUID;
    request.ctx.uid = 1000;
    ops->open(req, ino, &fi);
    ops->getattr(req, ino, NULL);
    assert_int_equal(req->attr.st_size, 0);
    assert_int_equal(req->attr.st_mode, S_IFREG | 0644);
    ops->open(req, FUSE_ROOT_ID, &fi);
    assert_int_equal(req->error, EISDIR);
}

static void reads_point_into_the_store(void **state)
{
    enum { MANY = 600 };
    fuse_ino_t ino = create("f");
    struct fuse_file_info fi = {.flags = O_RDONLY};
    char page[PAGE];
    (void)state;

    memset(page, 'p', PAGE);
    write_at(ino, page, PAGE, 0);
    ops->read(req, ino, 2 * PAGE, 0, &fi);
    assert_int_equal(req->size, PAGE);
    const struct chunk *chunk = map_get(&door_inode(&door, ino)->chunks, 0);
    assert_ptr_equal(req->direct, chunk->mem);
    ops->read(req, ino, 10, PAGE, &fi);
    assert_int_equal(req->error, 0);
    assert_int_equal(req->size, 0);

    for (int i = 1; i < MANY; i++) /* data and holes by turns: more pieces than vectors */
        write_at(ino, page, PAGE, 2 * i * PAGE);
    for (size_t pages = 2; pages < 2 * MANY && pages * PAGE <= REPLY; pages += 50) {
        ops->read(req, ino, pages * PAGE, 0, &fi);
        assert_int_equal(req->size, pages * PAGE);
        assert_int_equal(req->pieces, pages <= 256 ? pages : 1);
        for (size_t i = 0; i < req->size; i++)
            assert_int_equal(req->data[i], i / PAGE % 2 ? 0 : 'p');
    }
    ops->read(req, FUSE_ROOT_ID, 1, 0, &fi);
    assert_int_equal(req->error, EISDIR);
}

/* Lists the root with replies of `size` bytes; the count of entries, with "." and "..". */
static unsigned list(size_t size, bool plus, bool *met, unsigned names)
{
    unsigned count = 0;
    off_t off = 0;

    memset(met, 0, names);
    for (;;) {
        (plus ? ops->readdirplus : ops->readdir)(req, FUSE_ROOT_ID, size, off, NULL);
        assert_int_equal(req->error, 0);
        if (req->size == 0)
            return count;
        for (size_t at = 0; at < req->size; at += sizeof(struct listed)) {
            const struct listed *entry = (const struct listed *)(req->data + at);
            off = entry->off;
            if (entry->name[0] == '.') {
                assert_int_equal(entry->node, plus ? 0 : 1);
            } else {
                assert_false(met[atoi(entry->name)]);
                met[atoi(entry->name)] = true;
            }
            count++;
        }
    }
}

static void listings_are_complete(void **state)
{
    enum { NAMES = 2000 };
    static fuse_ino_t nodes[NAMES];
    static bool met[NAMES];
    char name[16];
    (void)state;

    for (unsigned i = 0; i < NAMES; i++) {
        snprintf(name, sizeof(name), "%u", i);
        nodes[i] = create(name);
    }
    assert_int_equal(list(sizeof(struct listed), false, met, NAMES), NAMES + 2);
    assert_int_equal(list(4096, false, met, NAMES), NAMES + 2);
    assert_int_equal(list(REPLY, true, met, NAMES), NAMES + 2);
    for (unsigned i = 0; i < NAMES; i++)
        assert_int_equal(refs_of(nodes[i]), 3);
    req->refuse = true;
    ops->readdirplus(req, FUSE_ROOT_ID, REPLY, 0, NULL);
    assert_true(req->size > 0);
    for (unsigned i = 0; i < NAMES; i++)
        assert_int_equal(refs_of(nodes[i]), 3);
}

static void removed_directories_cannot_be_listed(void **state)
{
    (void)state;
    ops->mkdir(req, FUSE_ROOT_ID, "d", 0755);
    fuse_ino_t ino = req->entry.ino;
    ops->rmdir(req, FUSE_ROOT_ID, "d");
    ops->readdir(req, ino, 4096, 0, NULL);
    assert_int_equal(req->error, ENOENT);
}

static void attributes_are_set(void **state)
{
    struct stat st = {.st_mode = 0, .st_atim = {5, 6}, .st_mtim = {7, 8}, .st_ctim = {9, 10}};
    fuse_ino_t ino = create("f");
    (void)state;

    ops->setattr(req, ino, &st, FUSE_SET_ATTR_MTIME | FUSE_SET_ATTR_CTIME, NULL);
    assert_int_equal(req->attr.st_mtim.tv_nsec, 8);
    assert_int_equal(req->attr.st_ctim.tv_nsec, 10);
    assert_int_equal(req->attr.st_mode, S_IFREG | 0644);
    ops->setattr(req, ino, &st, FUSE_SET_ATTR_MODE | FUSE_SET_ATTR_ATIME, NULL);
    assert_int_equal(req->attr.st_mode, S_IFREG);
    assert_int_equal(req->attr.st_atim.tv_sec, 5);
    assert_true(req->attr.st_ctim.tv_sec > 10);
    ops->setattr(req, ino, &st, FUSE_SET_ATTR_ATIME | FUSE_SET_ATTR_ATIME_NOW | FUSE_SET_ATTR_UID,
                 NULL);
    assert_true(req->attr.st_atim.tv_sec > 5);

    ops->mknod(req, FUSE_ROOT_ID, "null", S_IFCHR | 0666, 259);
    assert_int_equal(req->entry.attr.st_rdev, 259);
    ops->symlink(req, "target", FUSE_ROOT_ID, "link");
    assert_int_equal(req->entry.attr.st_size, 6);
    ops->readlink(req, req->entry.ino);
    assert_memory_equal(req->data, "target", 6);
    ops->readlink(req, ino);
    assert_int_equal(req->error, EINVAL);
}

static void xattrs_tell_their_size(void **state)
{
    fuse_ino_t ino = create("f");
    (void)state;

    ops->setxattr(req, ino, "user.a", "value", 5, 0);
    ops->setxattr(req, ino, "trusted.b", "", 0, XATTR_CREATE);
    ops->getxattr(req, ino, "user.a", 0);
    assert_int_equal(req->size, 5);
    ops->getxattr(req, ino, "user.a", 4);
    assert_int_equal(req->error, ERANGE);
    ops->getxattr(req, ino, "user.a", 5);
    assert_memory_equal(req->data, "value", 5);
    ops->listxattr(req, ino, 0);
    assert_int_equal(req->size, 17);
    ops->listxattr(req, ino, 16);
    assert_int_equal(req->error, ERANGE);
    request.ctx.uid = 1000; /* who may not see trusted.* */
    ops->listxattr(req, ino, 16);
    assert_int_equal(req->error, 0);
    assert_int_equal(req->size, 7);
    ops->removexattr(req, ino, "user.a");
    ops->getxattr(req, ino, "user.a", 5);
    assert_int_equal(req->error, ENODATA);
}

static void only_what_is_offered_is_wanted(void **state)
{
    struct fuse_conn_info conn = {.capable = FUSE_CAP_EXPLICIT_INVAL_DATA | FUSE_CAP_DONT_MASK,
                                  .want = FUSE_CAP_HANDLE_KILLPRIV | FUSE_CAP_ASYNC_READ};
    (void)state;
    ops->init(&door, &conn);
    assert_int_equal(conn.want, FUSE_CAP_EXPLICIT_INVAL_DATA | FUSE_CAP_ASYNC_READ);
}

/* u::rw-,u:7:rw-,g::r--,m::rw-,o::--- */
static const char acl[] = "\2\0\0\0\1\0\6\0\377\377\377\377\2\0\6\0\7\0\0\0\4\0\4\0\377\377\377\377"
                          "\20\0\6\0\377\377\377\377\40\0\0\0\377\377\377\377";

/* Else they would be kept, and obeyed by nobody. */
static void lists_are_for_a_kernel_that_consults_them(void **state)
{
    struct fuse_conn_info conn = {.capable = FUSE_CAP_POSIX_ACL | FUSE_CAP_DONT_MASK};
    fuse_ino_t ino = create("f");
    (void)state;

    ops->setxattr(req, ino, "system.posix_acl_access", acl, sizeof(acl) - 1, 0);
    assert_int_equal(req->error, EOPNOTSUPP);
    ops->getxattr(req, ino, "system.posix_acl_access", 0);
    assert_int_equal(req->error, EOPNOTSUPP);
    ops->init(&door, &conn);
    assert_int_equal(conn.want, FUSE_CAP_POSIX_ACL | FUSE_CAP_DONT_MASK);
    ops->getxattr(req, ino, "system.posix_acl_access", 0);
    assert_int_equal(req->error, ENODATA);
    ops->setxattr(req, ino, "system.posix_acl_access", acl, sizeof(acl) - 1, 0);
    assert_int_equal(req->error, 0);
    ops->getattr(req, ino, NULL);
    assert_int_equal(req->attr.st_mode, S_IFREG | 0660);
}

/* Whoever sets a list may not keep a group's sgid bit that is not his. */
static void a_list_takes_the_sgid_bit(void **state)
{
    struct fuse_conn_info conn = {.capable = FUSE_CAP_POSIX_ACL | FUSE_CAP_DONT_MASK};
    struct stat st = {.st_mode = S_IFREG | 02750, .st_gid = 9};
    fuse_ino_t ino = create("f");
    (void)state;

    ops->init(&door, &conn);
    ops->setattr(req, ino, &st, FUSE_SET_ATTR_MODE | FUSE_SET_ATTR_GID, NULL);
    ops->setxattr(req, ino, "system.posix_acl_access", acl, sizeof(acl) - 1, 0);
    ops->getattr(req, ino, NULL);
    assert_int_equal(req->attr.st_mode, S_IFREG | 02660);
    request.ctx.uid = 1000;
    ops->setxattr(req, ino, "system.posix_acl_access", acl, sizeof(acl) - 1, 0);
    ops->getattr(req, ino, NULL);
    assert_int_equal(req->attr.st_mode, S_IFREG | 0660);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_door, drop_store)
    const struct CMUnitTest tests[] = {
        TEST(references_follow_the_replies),
        TEST(absent_names_are_remembered),
        TEST(create_opens_what_came_between),
        TEST(open_truncates),
        TEST(reads_point_into_the_store),
        TEST(listings_are_complete),
        TEST(removed_directories_cannot_be_listed),
        TEST(attributes_are_set),
        TEST(xattrs_tell_their_size),
        TEST(only_what_is_offered_is_wanted),
        TEST(lists_are_for_a_kernel_that_consults_them),
        TEST(a_list_takes_the_sgid_bit),
    };
    alarm(100); /* a hang is a failure */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
