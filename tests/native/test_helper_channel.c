/*
 * test_helper_channel.c - backends/helper's channel between eight callers and a server that answers
 * out of order: who reads, who is woken, what happens when the server goes. The fuse_reply_* here
 * are the test's.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "helper/requests.h"

enum { CALLERS = 8, CALLS = 300, HELD = 5, WINDOW = 1 << 17, NODE = 2 };

/* ---- libfuse's side, played by the test -------------------------------------------------------
 */

struct fuse_req {
    struct channel *channel;
    struct fuse_ctx ctx;
    pthread_mutex_t lock; /* protects the rest */
    pthread_cond_t answered;
    int answers, error;
    uint64_t node;
    uint64_t offset; /* of a READ */
    bool wrong;      /* the bytes are not those of the place */
};

static void answer(fuse_req_t req, int error, uint64_t node)
{
    pthread_mutex_lock(&req->lock);
    req->answers++;
    req->error = error;
    req->node = node;
    pthread_cond_signal(&req->answered);
    pthread_mutex_unlock(&req->lock);
}

void *fuse_req_userdata(fuse_req_t req)
{
    return req->channel;
}

const struct fuse_ctx *fuse_req_ctx(fuse_req_t req)
{
    return &req->ctx;
}

void fuse_req_interrupt_func(fuse_req_t req, fuse_interrupt_func_t func, void *data)
{
    (void)req, (void)func, (void)data; /* no mount server: signals are the thread's own */
}

void fuse_log(enum fuse_log_level level, const char *format, ...)
{
    (void)level, (void)format;
}

int fuse_reply_err(fuse_req_t req, int error)
{
    answer(req, error, 0);
    return 0;
}

int fuse_reply_entry(fuse_req_t req, const struct fuse_entry_param *entry)
{
    answer(req, 0, entry->ino);
    return 0;
}

/* Each word of the file says where it is. */
int fuse_reply_iov(fuse_req_t req, const struct iovec *parts, int count)
{
    uint64_t at = req->offset;

    for (int i = 0; i < count; i++) {
        const uint64_t *words = parts[i].iov_base;
        for (size_t n = 0; n < parts[i].iov_len / 8; n++, at += 8)
            req->wrong |= words[n] != at;
    }
    answer(req, 0, 0);
    return 0;
}

/* What these tests never reach. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
#define UNREACHED(type, name, ...)                                                                 \
    type name(__VA_ARGS__)                                                                         \
    {                                                                                              \
        abort();                                                                                   \
    }

UNREACHED(int, fuse_reply_create, fuse_req_t r, const struct fuse_entry_param *e,
          const struct fuse_file_info *f)
UNREACHED(int, fuse_reply_attr, fuse_req_t r, const struct stat *s, double t)
UNREACHED(int, fuse_reply_readlink, fuse_req_t r, const char *l)
UNREACHED(int, fuse_reply_open, fuse_req_t r, const struct fuse_file_info *f)
UNREACHED(int, fuse_reply_buf, fuse_req_t r, const char *b, size_t s)
UNREACHED(int, fuse_reply_write, fuse_req_t r, size_t s)
UNREACHED(int, fuse_reply_statfs, fuse_req_t r, const struct statvfs *s)
UNREACHED(int, fuse_reply_xattr, fuse_req_t r, size_t s)
UNREACHED(int, fuse_reply_lock, fuse_req_t r, const struct flock *l)
UNREACHED(int, fuse_reply_ioctl, fuse_req_t r, int i, const void *b, size_t s)
UNREACHED(int, fuse_reply_poll, fuse_req_t r, unsigned e)
UNREACHED(int, fuse_reply_lseek, fuse_req_t r, off_t o)
UNREACHED(void, fuse_reply_none, fuse_req_t r)
UNREACHED(int, fuse_lowlevel_notify_poll, struct fuse_pollhandle *p)
#if FUSE_VERSION >= FUSE_MAKE_VERSION(3, 17)
UNREACHED(int, fuse_lowlevel_notify_expire_entry, struct fuse_session *s, fuse_ino_t p,
          const char *n, size_t l)
#else
UNREACHED(int, fuse_lowlevel_notify_expire_entry, struct fuse_session *s, fuse_ino_t p,
          const char *n, size_t l, enum fuse_expire_flags f)
#endif
UNREACHED(int, fuse_lowlevel_notify_increment_epoch, struct fuse_session *s)
UNREACHED(int, fuse_lowlevel_notify_prune, struct fuse_session *s, fuse_ino_t *i, uint32_t n)
UNREACHED(int, fuse_req_getgroups, fuse_req_t r, int n, gid_t *g)
UNREACHED(int, fuse_lowlevel_notify_inval_inode, struct fuse_session *s, fuse_ino_t i, off_t o,
          off_t l)
UNREACHED(int, fuse_lowlevel_notify_inval_entry, struct fuse_session *s, fuse_ino_t p,
          const char *n, size_t l)
UNREACHED(int, fuse_lowlevel_notify_delete, struct fuse_session *s, fuse_ino_t p, fuse_ino_t c,
          const char *n, size_t l)
UNREACHED(int, fuse_lowlevel_notify_store, struct fuse_session *s, fuse_ino_t i, off_t o,
          struct fuse_bufvec *b, enum fuse_buf_copy_flags f)
UNREACHED(void, fuse_pollhandle_destroy, struct fuse_pollhandle *p)

#pragma GCC diagnostic pop

/* ---- the server's side -------------------------------------------------------------------------
 */

struct request {
    struct fuse_in_header header;
    char name[64];
};

/* LOOKUP of "<n>" finds node n. */
static void reply_to(int fd, const struct request *request)
{
    struct {
        struct fuse_out_header header;
        struct fuse_entry_out entry;
    } out = {.header = {.len = sizeof(out), .unique = request->header.unique}};

    out.entry.nodeid = strtoull(request->name, NULL, 10);
    assert_int_equal(send(fd, &out, sizeof(out), MSG_NOSIGNAL), sizeof(out));
}

static void send_words(int fd, const struct request *request)
{
    static struct {
        struct fuse_out_header header;
        uint64_t words[WINDOW / 8];
    } out;
    struct fuse_read_in in;

    memcpy(&in, request->name, sizeof(in));
    for (size_t i = 0; i < in.size / 8; i++)
        out.words[i] = in.offset + 8 * i;
    out.header = (struct fuse_out_header){.len = (uint32_t)sizeof(out.header) + in.size,
                                          .unique = request->header.unique};
    assert_int_equal(send(fd, &out, out.header.len, MSG_NOSIGNAL), out.header.len);
}

/* Holds up to HELD requests back, while more come at once, and answers the latest first. */
static void *serve(void *argument)
{
    int fd = *(int *)argument;
    struct request held[HELD];
    int count = 0;

    for (;;) {
        ssize_t got = recv(fd, &held[count], sizeof(held[0]), count > 0 ? MSG_DONTWAIT : 0);
        if (got > 0 && ++count < HELD)
            continue;
        if (got == 0 || (got < 0 && errno != EAGAIN))
            return NULL;
        while (count-- > 0)
            (held[count].header.opcode == FUSE_READ ? send_words : reply_to)(fd, &held[count]);
        count = 0;
    }
}

/* Takes `CALLERS` requests and answers none. */
static void *swallow(void *argument)
{
    int fd = *(int *)argument;
    struct request request;

    for (int i = 0; i < CALLERS; i++)
        assert_true(recv(fd, &request, sizeof(request), 0) > 0);
    close(fd);
    return NULL;
}

/* ---- callers ------------------------------------------------------------------------------------
 */

struct caller {
    pthread_t thread;
    struct channel *channel;
    struct handle *handle;
    int number, calls, wrong, last_error;
};

static void look_up(struct caller *caller, uint64_t node)
{
    struct fuse_req req = {.channel = caller->channel};
    char name[64];

    pthread_mutex_init(&req.lock, NULL);
    pthread_cond_init(&req.answered, NULL);
    snprintf(name, sizeof(name), "%llu", (unsigned long long)node);
    request_lookup(&req, 1, name);
    pthread_mutex_lock(&req.lock);
    while (req.answers == 0)
        pthread_cond_wait(&req.answered, &req.lock);
    caller->wrong += req.answers != 1 || (!req.error && req.node != node);
    caller->last_error = req.error;
    pthread_mutex_unlock(&req.lock);
    pthread_cond_destroy(&req.answered);
    pthread_mutex_destroy(&req.lock);
}

static void *call(void *argument)
{
    struct caller *caller = argument;

    for (int i = 0; i < caller->calls; i++)
        look_up(caller, (uint64_t)(caller->number * CALLS + i + 1));
    return NULL;
}

static void call_from_all(struct channel *channel, int calls, struct caller callers[CALLERS])
{
    for (int i = 0; i < CALLERS; i++) {
        callers[i] = (struct caller){.channel = channel, .number = i, .calls = calls};
        assert_int_equal(pthread_create(&callers[i].thread, NULL, call, &callers[i]), 0);
    }
    for (int i = 0; i < CALLERS; i++)
        pthread_join(callers[i].thread, NULL);
}

/* ---- tests --------------------------------------------------------------------------------------
 */

static void test_every_caller_gets_its_own_answer(void **state)
{
    (void)state;
    struct caller callers[CALLERS];
    pthread_t server;
    int theirs;
    struct channel *channel = channel_new(&theirs);

    assert_non_null(channel);
    channel->minor = FUSE_KERNEL_MINOR_VERSION;
    assert_int_equal(channel_start(channel, NULL), 0);
    pthread_create(&server, NULL, serve, &theirs);
    call_from_all(channel, CALLS, callers);
    for (int i = 0; i < CALLERS; i++) {
        assert_int_equal(callers[i].wrong, 0);
        assert_int_equal(callers[i].last_error, 0);
    }
    channel_free(channel); /* the server reads the end */
    pthread_join(server, NULL);
    close(theirs);
}

/* Not answered: it is another thread's turn, and the READ would be sent as it is. */
static bool read_at(struct caller *caller, off_t offset)
{
    const struct fuse_file_info fi = {.fh = (uint64_t)(uintptr_t)caller->handle};
    struct fuse_req req = {.channel = caller->channel, .offset = (uint64_t)offset};
    bool done;

    pthread_mutex_init(&req.lock, NULL);
    pthread_cond_init(&req.answered, NULL);
    done = ahead_read(&req, NODE, 4096, offset, &fi);
    caller->wrong += req.wrong || req.error || req.answers != done;
    pthread_cond_destroy(&req.answered);
    pthread_mutex_destroy(&req.lock);
    return done;
}

/* Reads from front to back, and now and then says that the file has changed. */
static void *read_all(void *argument)
{
    struct caller *caller = argument;

    for (int i = 0; i < 4 * CALLS; i++) {
        caller->calls += read_at(caller, (off_t)i * 4096);
        if (i % 50 == caller->number)
            files_changed(caller->channel, NODE);
    }
    return NULL;
}

/* Two callers share an open file, all of them the node. */
static void test_reading_ahead_of_many(void **state)
{
    (void)state;
    struct caller callers[CALLERS];
    struct handle *handles[CALLERS / 2];
    struct fuse_req req = {0};
    pthread_t server;
    int theirs, done = 0;
    struct channel *channel = req.channel = channel_new(&theirs);

    assert_non_null(channel);
    channel->max_read = channel->max_readahead = WINDOW;
    channel->most_ahead = 4 * WINDOW;
    channel->flags = FUSE_ASYNC_READ;
    assert_int_equal(channel_start(channel, NULL), 0);
    pthread_create(&server, NULL, serve, &theirs);
    for (int i = 0; i < CALLERS / 2; i++) {
        handles[i] = handle_new();
        assert_non_null(handles[i]);
        handle_opened(channel, handles[i], NODE, 0, &(struct fuse_open_out){.fh = 7});
    }
    for (int i = 0; i < CALLERS; i++) {
        callers[i] = (struct caller){.channel = channel, .number = i, .handle = handles[i / 2]};
        assert_int_equal(pthread_create(&callers[i].thread, NULL, read_all, &callers[i]), 0);
    }
    for (int i = 0; i < CALLERS; i++) {
        pthread_join(callers[i].thread, NULL);
        assert_int_equal(callers[i].wrong, 0);
        done += callers[i].calls;
    }
    assert_true(done > 0);
    for (int i = 0; i < CALLERS / 2; i++) {
        ahead_settle(&req, &handles[i]->ahead);
        handle_free(channel, handles[i]);
    }
    channel_free(channel);
    pthread_join(server, NULL);
    close(theirs);
}

static void test_everybody_hears_that_the_server_has_gone(void **state)
{
    (void)state;
    struct caller callers[CALLERS], late = {0};
    pthread_t server;
    int theirs;
    struct channel *channel = channel_new(&theirs);

    assert_non_null(channel);
    assert_int_equal(channel_start(channel, NULL), 0);
    pthread_create(&server, NULL, swallow, &theirs);
    call_from_all(channel, 1, callers);
    for (int i = 0; i < CALLERS; i++)
        assert_int_equal(callers[i].last_error, ECONNABORTED);
    late.channel = channel;
    look_up(&late, 1);
    assert_int_equal(late.last_error, ENOTCONN);
    pthread_join(server, NULL);
    channel_free(channel);
}

static void test_channel_that_was_never_used(void **state)
{
    (void)state;
    int theirs;
    struct channel *channel = channel_new(&theirs);

    assert_non_null(channel);
    channel_free(channel);
    close(theirs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_caller_gets_its_own_answer),
        cmocka_unit_test(test_reading_ahead_of_many),
        cmocka_unit_test(test_everybody_hears_that_the_server_has_gone),
        cmocka_unit_test(test_channel_that_was_never_used),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
