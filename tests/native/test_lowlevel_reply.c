/*
 * test_lowlevel_reply.c - replies: once, of the right kind and size, from any thread, and their
 * data straight to where the caller wants them.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/uio.h>

#include "core/call.h"
#include "lone_file.h"

static struct stat st;
static int said; /* what a reply function returned */

/* ---- once, and of the right kind ---- */

static void twice(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    struct stat attr = {.st_ino = ino, .st_mode = S_IFREG | 0600};

    (void)fi;
    assert_int_equal(df_reply_attr(req, &attr, 0), 0);
    said = df_reply_err(req, EIO);
}

static void a_second_reply_is_refused(void **state)
{
    (void)state;
    lone_mount((struct fuse_lowlevel_ops){.getattr = twice}, 0, 0);
    assert_int_equal(df_stat(FILE_, &st), 0);
    assert_int_equal(st.st_mode, S_IFREG | 0600);
    assert_int_equal(said, -ENOENT);
    lone_unmount();
}

static void wrong_kind(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    struct fuse_entry_param entry = {.ino = ino};

    (void)fi;
    said = df_reply_entry(req, &entry);
}

static void nothing(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    (void)ino, (void)fi;
    said = df_reply_err(req, 0);
}

static void another_kind_of_reply_is_an_error(void **state)
{
    (void)state;
    lone_mount((struct fuse_lowlevel_ops){.getattr = wrong_kind}, 0, 0);
    fails(df_stat(FILE_, &st), EIO);
    assert_int_equal(said, -EINVAL);
    lone_unmount();
    lone_mount((struct fuse_lowlevel_ops){.getattr = nothing}, 0, 0);
    fails(df_stat(FILE_, &st), EIO);
    assert_int_equal(said, -EINVAL);
    lone_unmount();
}

static int number;

static void reply_number(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    (void)ino, (void)fi;
    said = df_reply_err(req, number);
}

static void errors_are_passed_on_as_they_are(void **state)
{
    (void)state;
    lone_mount((struct fuse_lowlevel_ops){.getattr = reply_number}, 0, 0);
    number = EUCLEAN;
    fails(df_stat(FILE_, &st), EUCLEAN);
    number = -ENOENT; /* a common mistake; libfuse makes it ERANGE */
    fails(df_stat(FILE_, &st), ERANGE);
    number = 511;
    fails(df_stat(FILE_, &st), 511);
    number = 512; /* ERESTARTSYS: the kernel takes no such answer */
    fails(df_stat(FILE_, &st), ERANGE);
    lone_unmount();
}

/* ---- late ---- */

struct late {
    fuse_req_t req;
    fuse_ino_t ino;
    pthread_t thread;
};

static struct late late;
static _Atomic bool returned;

static void *answer(void *arg)
{
    struct stat attr = {.st_ino = late.ino, .st_mode = S_IFREG | 0600, .st_size = 42};

    (void)arg;
    while (!returned)
        sched_yield();
    said = df_reply_attr(late.req, &attr, 0);
    return NULL;
}

static void postpone(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    (void)fi;
    if (ino == 1) {
        lone_getattr(req, ino, fi);
        return;
    }
    late.req = req;
    late.ino = ino;
    pthread_create(&late.thread, NULL, answer, NULL);
}

static void *release_it(void *arg)
{
    (void)arg;
    returned = true;
    return NULL;
}

static void a_reply_may_come_late_from_another_thread(void **state)
{
    pthread_t other;

    (void)state;
    returned = false;
    lone_mount((struct fuse_lowlevel_ops){.getattr = postpone}, 0, 0);
    pthread_create(&other, NULL, release_it, NULL); /* at some time, mostly after the operation */
    assert_int_equal(df_stat(FILE_, &st), 0);
    assert_int_equal(st.st_size, 42);
    pthread_join(late.thread, NULL);
    pthread_join(other, NULL);
    assert_int_equal(said, 0);
    lone_unmount();
}

/* ---- data ---- */

#define SIZE 30000

static char content[SIZE];
static size_t sizes[64];
static unsigned requests;
static int source; /* a descriptor with the content */
static enum { BUF, IOV, DATA, TOO_MUCH, MIXED } how;

static void reply_mixed(fuse_req_t req, size_t size, off_t off)
{
    struct {
        struct fuse_bufvec vec;
        struct fuse_buf second;
    } both = {.vec = {.count = 2}};

    both.vec.buf[0] = (struct fuse_buf){.size = size / 2, .mem = content + off, .fd = -1};
    both.second = (struct fuse_buf){.size = size - size / 2,
                                    .flags = FUSE_BUF_IS_FD | FUSE_BUF_FD_SEEK,
                                    .fd = source,
                                    .pos = off + (off_t)(size / 2)};
    said = df_reply_data(req, &both.vec, 0);
}

static void reply_fd(fuse_req_t req, size_t size, off_t off)
{
    struct fuse_bufvec vec = FUSE_BUFVEC_INIT(size);

    vec.buf[0].flags = FUSE_BUF_IS_FD | FUSE_BUF_FD_SEEK;
    vec.buf[0].fd = source;
    vec.buf[0].pos = off;
    said = df_reply_data(req, &vec, 0);
}

static void op_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off,
                    struct fuse_file_info *fi)
{
    struct iovec iov[2];

    (void)ino, (void)fi;
    sizes[requests++ % 64] = size;
    if (how == TOO_MUCH) {
        said = df_reply_buf(req, content, size + 1);
        return;
    }
    if (off >= SIZE)
        size = 0;
    else if (size > (size_t)(SIZE - off))
        size = (size_t)(SIZE - off);
    iov[0] = (struct iovec){content + off, size / 3};
    iov[1] = (struct iovec){content + off + size / 3, size - size / 3};
    if (how == BUF)
        said = df_reply_buf(req, content + off, size);
    else if (how == IOV)
        said = df_reply_iov(req, iov, 2);
    else if (how == DATA)
        reply_fd(req, size, off);
    else
        reply_mixed(req, size, off);
}

static int fill(void **state)
{
    (void)state;
    for (int i = 0; i < SIZE; i++)
        content[i] = (char)(i * 31 >> 3);
    source = memfd_create("content", MFD_CLOEXEC);
    requests = 0;
    how = BUF;
    return write(source, content, SIZE) == SIZE ? 0 : -1;
}

static int empty(void **state)
{
    (void)state;
    return close(source);
}

static void data_go_where_they_are_wanted(void **state)
{
    char buf[SIZE];
    struct iovec iov[] = {{buf, 10}, {buf + 10, 0}, {buf + 10, 4000}, {buf + 4010, SIZE - 4010}};
    int fd;

    (void)state;
    lone_mount((struct fuse_lowlevel_ops){.read = op_read}, 0, 0);
    lone_size = SIZE;
    fd = df_open(FILE_, O_RDONLY, 0);
    for (how = BUF; how <= MIXED; how++) {
        if (how == TOO_MUCH)
            continue;
        memset(buf, 0, SIZE);
        assert_int_equal(df_pread(fd, buf, SIZE, 0), SIZE);
        assert_memory_equal(buf, content, SIZE);
        memset(buf, 0, SIZE);
        assert_int_equal(df_preadv(fd, iov, 4, 0), SIZE);
        assert_memory_equal(buf, content, SIZE);
        assert_int_equal(df_pread(fd, buf, 100, SIZE - 40), 40);
        assert_memory_equal(buf, content + SIZE - 40, 40);
        assert_int_equal(said, 0);
    }
    df_close(fd);
    lone_unmount();
}

static void more_data_than_asked_for_are_refused(void **state)
{
    char buf[101];
    int fd;

    (void)state;
    how = TOO_MUCH;
    lone_mount((struct fuse_lowlevel_ops){.read = op_read}, 0, 0);
    lone_size = SIZE;
    fd = df_open(FILE_, O_RDONLY, 0);
    buf[100] = 'x';
    fails(df_pread(fd, buf, 100, 0), EIO);
    assert_int_equal(said, -EINVAL);
    assert_int_equal(buf[100], 'x');
    df_close(fd);
    lone_unmount();
}

static char target[PATH_MAX + 1];

static void lookup_link(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    struct fuse_entry_param entry = {.ino = 2, .attr = {.st_ino = 2, .st_mode = S_IFLNK | 0777}};

    (void)parent, (void)name;
    df_reply_entry(req, &entry);
}

static void read_link(fuse_req_t req, fuse_ino_t ino)
{
    (void)ino;
    said = df_reply_readlink(req, target);
}

/* The kernel reads a link into a page, and ends it with a NUL. */
static void a_link_that_fills_a_page_is_refused(void **state)
{
    (void)state;
    char text[2 * PATH_MAX];

    lone_mount((struct fuse_lowlevel_ops){.lookup = lookup_link, .readlink = read_link}, 0, 0);
    memset(target, 'x', PATH_MAX - 1);
    assert_int_equal(df_readlink(FILE_, text, sizeof(text)), PATH_MAX - 1);
    assert_int_equal(df_readlink(FILE_, text, 10), 10);
    target[PATH_MAX - 1] = 'x';
    fails(df_readlink(FILE_, text, sizeof(text)), EIO);
    fails(df_readlink(FILE_, text, 10), EIO);
    fails(df_stat(FILE_, &st), EIO);
    assert_int_equal(said, -EINVAL);
    lone_unmount();
}

static void reads_are_split(void **state)
{
    char buf[SIZE];
    int fd;

    (void)state;
    lone_mount((struct fuse_lowlevel_ops){.read = op_read}, 8192, 0);
    lone_size = SIZE;
    fd = df_open(FILE_, O_RDONLY, 0);
    assert_int_equal(df_pread(fd, buf, SIZE, 0), SIZE);
    assert_memory_equal(buf, content, SIZE);
    assert_int_equal(requests, 4);
    assert_int_equal(sizes[0], 8192);
    assert_int_equal(sizes[3], SIZE - 3 * 8192);
    requests = 0;
    assert_int_equal(df_pread(fd, buf, SIZE, 20000), SIZE - 20000);
    assert_int_equal(requests, 2); /* the second was short */
    df_close(fd);
    lone_unmount();
}

static char written[SIZE];

static void op_write(fuse_req_t req, fuse_ino_t ino, const char *buf, size_t size, off_t off,
                     struct fuse_file_info *fi)
{
    (void)ino, (void)fi;
    sizes[requests++ % 64] = size;
    memcpy(written + off, buf, size);
    said = df_reply_write(req, size);
}

static void op_write_buf(fuse_req_t req, fuse_ino_t ino, struct fuse_bufvec *bufv, off_t off,
                         struct fuse_file_info *fi)
{
    assert_int_equal(bufv->count, 1);
    assert_int_equal(bufv->idx + bufv->off, 0);
    op_write(req, ino, bufv->buf[0].mem, bufv->buf[0].size, off, fi);
}

static void refuse_write(fuse_req_t req, fuse_ino_t ino, const char *buf, size_t size, off_t off,
                         struct fuse_file_info *fi)
{
    (void)req, (void)ino, (void)buf, (void)size, (void)off, (void)fi;
    df_reply_err(req, EIO); /* write_buf is there */
}

static void nothing_is_appended_to_the_largest_file(void **state)
{
    int fd;

    (void)state;
    lone_mount((struct fuse_lowlevel_ops){.write = op_write}, 0, 0);
    lone_size = INT64_MAX;
    fd = df_open(FILE_, O_WRONLY | O_APPEND, 0);
    fails(df_write(fd, "more", 4), EFBIG);
    assert_int_equal(requests, 0);
    df_close(fd);
    lone_unmount();
}

static void writes_are_split_and_gathered(void **state)
{
    struct iovec iov[] = {{content, 10}, {content + 10, 100}, {content + 110, 9000}};
    int fd;

    (void)state;
    for (int i = 0; i < 2; i++) {
        lone_mount(i ? (struct fuse_lowlevel_ops){.write = refuse_write, .write_buf = op_write_buf}
                     : (struct fuse_lowlevel_ops){.write = op_write},
                   0, 8192);
        fd = df_open(FILE_, O_WRONLY, 0);
        requests = 0;
        assert_int_equal(df_pwrite(fd, content, 20000, 0), 20000);
        assert_int_equal(requests, 3);
        assert_int_equal(sizes[2], 20000 - 2 * 8192);
        assert_memory_equal(written, content, 20000);
        requests = 0;
        assert_int_equal(df_pwritev(fd, iov, 3, 500), 9110);
        assert_int_equal(requests, 2);
        assert_int_equal(sizes[0], 8192);
        assert_memory_equal(written + 500, content, 9110);
        df_close(fd);
        lone_unmount();
    }
}

/* ---- what a plugin may ask of a request ---- */

static struct fuse_ctx ctx;
static void *userdata;
static int groups;

static void remember(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    gid_t list[4];

    ctx = *df_req_ctx(req);
    userdata = df_req_userdata(req);
    groups = df_req_getgroups(req, 4, list);
    assert_int_equal(df_req_interrupted(req), 0);
    df_req_interrupt_func(req, NULL, NULL);
    lone_getattr(req, ino, fi);
}

static void a_request_knows_its_caller(void **state)
{
    gid_t group = 77;
    struct df_identity identity = {
        .uid = 55, .gid = 66, .umask = 027, .groups = &group, .group_count = 1};

    (void)state;
    lone_mount((struct fuse_lowlevel_ops){.getattr = remember}, 0, 0);
    assert_int_equal(df_identity_set(&identity), 0);
    assert_int_equal(df_stat(FILE_, &st), 0);
    assert_int_equal(df_identity_set(NULL), 0);
    assert_int_equal(ctx.uid, 55);
    assert_int_equal(ctx.gid, 66);
    assert_int_equal(ctx.umask, 027);
    assert_int_equal(ctx.pid, getpid());
    assert_int_equal(groups, 1);
    assert_ptr_equal(userdata, &lone_data);
    lone_unmount();
}

/* ---- signals ---- */

static struct {
    df_call_tell *tell;
    void *data;
} heard;

static void hear(df_call_tell *tell, void *data)
{
    if (tell) {
        heard.tell = tell;
        heard.data = data;
    }
}

static int signals; /* that requests were told of */

static void ask_another(fuse_req_t req, void *data)
{
    (void)req, (void)data;
    signals++;
    assert_int_equal(df_stat(FILE_, &st), 0);
}

static void interrupt(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    df_req_interrupt_func(req, signals == 0 ? ask_another : NULL, NULL);
    if (signals == 0)
        heard.tell(heard.data);
    lone_getattr(req, ino, fi);
}

/* As where it waits for a thread that is in another request's operation. */
static void who_is_told_of_a_signal_keeps_no_other_request_waiting(void **state)
{
    (void)state;
    lone_mount((struct fuse_lowlevel_ops){.getattr = interrupt}, 0, 0);
    atomic_store(&df_call_signals, hear);
    assert_int_equal(df_stat(FILE_, &st), 0);
    atomic_store(&df_call_signals, NULL);
    assert_int_equal(signals, 1);
    lone_unmount();
}

#define test(function) cmocka_unit_test_setup_teardown(function, fill, empty)

int main(void)
{
    const struct CMUnitTest tests[] = {
        test(a_second_reply_is_refused),
        test(another_kind_of_reply_is_an_error),
        test(errors_are_passed_on_as_they_are),
        test(a_reply_may_come_late_from_another_thread),
        test(data_go_where_they_are_wanted),
        test(more_data_than_asked_for_are_refused),
        test(a_link_that_fills_a_page_is_refused),
        test(reads_are_split),
        test(writes_are_split_and_gathered),
        test(nothing_is_appended_to_the_largest_file),
        test(a_request_knows_its_caller),
        test(who_is_told_of_a_signal_keeps_no_other_request_waiting),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
