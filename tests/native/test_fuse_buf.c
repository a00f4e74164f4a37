/*
 * test_fuse_buf.c - copying between buffer vectors. Built twice: with our library and with libfuse3
 * itself, so that an expectation that libfuse does not meet is found out.
 */
#define FUSE_USE_VERSION 312
#include <errno.h>
#include <fcntl.h>
#include <fuse.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

/* ---- helpers ------------------------------------------------------------------------------ */

/* Room for three buffers; struct fuse_bufvec itself has one. */
union vector {
    struct fuse_bufvec vec;
    char room[sizeof(struct fuse_bufvec) + 2 * sizeof(struct fuse_buf)];
};

static struct fuse_buf in_memory(void *mem, size_t size)
{
    return (struct fuse_buf){.size = size, .mem = mem, .fd = -1};
}

static struct fuse_buf in_file(int fd, size_t size, off_t pos)
{
    return (struct fuse_buf){
        .size = size,
        .flags = FUSE_BUF_IS_FD | FUSE_BUF_FD_SEEK,
        .fd = fd,
        .pos = pos,
    };
}

static struct fuse_bufvec *one(union vector *vector, struct fuse_buf buf)
{
    memset(vector, 0, sizeof(*vector));
    vector->vec.count = 1;
    vector->vec.buf[0] = buf;
    return &vector->vec;
}

static struct fuse_bufvec *two(union vector *vector, struct fuse_buf first, struct fuse_buf second)
{
    one(vector, first)->count = 2;
    (&vector->vec.buf[0])[1] = second;
    return &vector->vec;
}

static int file_with(const char *text)
{
    int fd = memfd_create("test", MFD_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    return fd;
}

static void assert_file(int fd, const char *text)
{
    char buf[256] = "";
    assert_int_equal(pread(fd, buf, sizeof(buf) - 1, 0), strlen(text));
    assert_string_equal(buf, text);
}

/* ---- sizes -------------------------------------------------------------------------------- */

static void test_size_is_the_sum(void **state)
{
    (void)state;
    union vector v;
    assert_int_equal(fuse_buf_size(two(&v, in_memory(NULL, 3), in_memory(NULL, 4))), 7);
    assert_int_equal(fuse_buf_size(one(&v, in_memory(NULL, SIZE_MAX))), SIZE_MAX);
    v.vec.count = 0;
    assert_int_equal(fuse_buf_size(&v.vec), 0);
}

/* ---- memory ------------------------------------------------------------------------------- */

static void test_memory_to_memory_over_borders(void **state)
{
    (void)state;
    char a[] = "abc", b[] = "defgh", x[6], y[6];
    union vector from, to;
    memset(x, '.', sizeof(x));
    memset(y, '.', sizeof(y));
    two(&from, in_memory(a, 3), in_memory(b, 5));
    two(&to, in_memory(x, 5), in_memory(y, 6));
    assert_int_equal(fuse_buf_copy(&to.vec, &from.vec, 0), 8);
    assert_memory_equal(x, "abcde.", 6);
    assert_memory_equal(y, "fgh...", 6);
    assert_int_equal(from.vec.idx, 2);
    assert_int_equal(to.vec.idx, 1);
    assert_int_equal(to.vec.off, 0); /* not moved on: the source was used up first */
}

static void test_copy_goes_on_where_it_stopped(void **state)
{
    (void)state;
    char text[] = "abcdef", x[4], y[2];
    union vector from, to;
    one(&from, in_memory(text, 6));
    assert_int_equal(fuse_buf_copy(one(&to, in_memory(x, 4)), &from.vec, 0), 4);
    assert_int_equal(from.vec.off, 4);
    assert_int_equal(fuse_buf_copy(one(&to, in_memory(y, 2)), &from.vec, 0), 2);
    assert_memory_equal(x, "abcd", 4);
    assert_memory_equal(y, "ef", 2);
    assert_int_equal(fuse_buf_copy(one(&to, in_memory(y, 2)), &from.vec, 0), 0);
}

static void test_overlapping_memory(void **state)
{
    (void)state;
    char text[] = "abcdef";
    union vector from, to;
    assert_int_equal(
        fuse_buf_copy(one(&to, in_memory(text + 2, 4)), one(&from, in_memory(text, 4)), 0), 4);
    assert_string_equal(text, "ababcd");
}

static void test_empty_buffers_are_passed_over(void **state)
{
    (void)state;
    char text[] = "ab", x[2];
    union vector from, to;
    two(&from, in_memory(text, 0), in_memory(text, 2));
    assert_int_equal(fuse_buf_copy(one(&to, in_memory(x, 2)), &from.vec, 0), 2);
    assert_memory_equal(x, "ab", 2);
}

static void test_vector_onto_itself(void **state)
{
    (void)state;
    char text[] = "abcdef";
    union vector v;
    one(&v, in_memory(text, 6));
    assert_int_equal(fuse_buf_copy(&v.vec, &v.vec, 0), 6);
}

/* ---- descriptors --------------------------------------------------------------------------- */

static void test_file_to_memory(void **state)
{
    (void)state;
    char x[] = "........";
    union vector from, to;
    int fd = file_with("0123456789");
    /* Ends with the file, though the buffer promises more. */
    assert_int_equal(fuse_buf_copy(one(&to, in_memory(x, 8)), one(&from, in_file(fd, 100, 6)), 0),
                     4);
    assert_memory_equal(x, "6789....", 8);
    assert_int_equal(lseek(fd, 0, SEEK_CUR), 10);
    close(fd);
}

static void test_memory_to_file(void **state)
{
    (void)state;
    char text[] = "xyz";
    union vector from, to;
    int fd = file_with("0123456789");
    assert_int_equal(fuse_buf_copy(one(&to, in_file(fd, 3, 4)), one(&from, in_memory(text, 3)), 0),
                     3);
    assert_file(fd, "0123xyz789");
    close(fd);
}

static void test_file_to_file(void **state)
{
    (void)state;
    union vector from, to;
    int in = file_with("0123456789");
    int out = file_with("");
    assert_int_equal(fuse_buf_copy(one(&to, in_file(out, 5, 0)), one(&from, in_file(in, 5, 3)), 0),
                     5);
    assert_file(out, "34567");
    assert_int_equal(fuse_buf_copy(one(&to, in_file(out, 5, 5)), one(&from, in_file(in, 5, 0)),
                                   FUSE_BUF_NO_SPLICE),
                     5);
    assert_file(out, "3456701234");
    assert_int_equal(fuse_buf_copy(one(&to, in_file(out, 5, 5)), one(&from, in_file(in, 5, 0)),
                                   FUSE_BUF_FORCE_SPLICE),
                     -EINVAL);
    close(in);
    close(out);
}

static void test_large_file_to_file(void **state)
{
    (void)state;
    enum { SIZE = 1 << 20 };
    unsigned char *data = malloc(SIZE), *back = malloc(SIZE);
    union vector from, to;
    for (int i = 0; i < SIZE; i++)
        data[i] = (unsigned char)(i * 7 + (i >> 8));
    int in = file_with("");
    int out = file_with("");
    assert_int_equal(pwrite(in, data, SIZE, 0), SIZE);
    assert_int_equal(
        fuse_buf_copy(one(&to, in_file(out, SIZE, 0)), one(&from, in_file(in, SIZE, 0)), 0), SIZE);
    assert_int_equal(pread(out, back, SIZE, 0), SIZE);
    assert_memory_equal(back, data, SIZE);
    free(data);
    free(back);
    close(in);
    close(out);
}

static void test_pipe_with_and_without_retry(void **state)
{
    (void)state;
    int pipes[2];
    char x[8];
    union vector from, to;
    assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
    struct fuse_buf source = {.size = 8, .flags = FUSE_BUF_IS_FD, .fd = pipes[0]};
    assert_int_equal(write(pipes[1], "ab", 2), 2);
    assert_int_equal(fuse_buf_copy(one(&to, in_memory(x, 8)), one(&from, source), 0), 2);
    assert_int_equal(write(pipes[1], "cd", 2), 2);
    close(pipes[1]);
    source.flags |= FUSE_BUF_FD_RETRY;
    assert_int_equal(fuse_buf_copy(one(&to, in_memory(x, 8)), one(&from, source), 0), 2);
    assert_memory_equal(x, "cd", 2);
    close(pipes[0]);
}

static void test_file_through_pipe_is_spliced(void **state)
{
    (void)state;
    int pipes[2];
    char x[4];
    union vector from, to;
    int in = file_with("0123456789");
    assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
    struct fuse_buf end = {.size = 4, .flags = FUSE_BUF_IS_FD, .fd = pipes[1]};
    assert_int_equal(
        fuse_buf_copy(one(&to, end), one(&from, in_file(in, 4, 2)), FUSE_BUF_FORCE_SPLICE), 4);
    assert_int_equal(read(pipes[0], x, 4), 4);
    assert_memory_equal(x, "2345", 4);
    close(in);
    close(pipes[0]);
    close(pipes[1]);
}

/* ---- errors -------------------------------------------------------------------------------- */

static void test_bad_descriptor(void **state)
{
    (void)state;
    char x[] = "abcd";
    union vector from, to;
    assert_int_equal(fuse_buf_copy(one(&to, in_memory(x, 4)), one(&from, in_file(-1, 4, 0)), 0),
                     -EBADF);
    assert_int_equal(fuse_buf_copy(one(&to, in_file(-1, 4, 0)), one(&from, in_memory(x, 4)), 0),
                     -EBADF);
}

static void test_error_after_some_bytes_is_their_count(void **state)
{
    (void)state;
    char text[] = "ab", x[8];
    union vector from, to;
    two(&from, in_memory(text, 2), in_file(-1, 4, 0));
    assert_int_equal(fuse_buf_copy(one(&to, in_memory(x, 8)), &from.vec, 0), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_size_is_the_sum),
        cmocka_unit_test(test_memory_to_memory_over_borders),
        cmocka_unit_test(test_copy_goes_on_where_it_stopped),
        cmocka_unit_test(test_overlapping_memory),
        cmocka_unit_test(test_empty_buffers_are_passed_over),
        cmocka_unit_test(test_vector_onto_itself),
        cmocka_unit_test(test_file_to_memory),
        cmocka_unit_test(test_memory_to_file),
        cmocka_unit_test(test_file_to_file),
        cmocka_unit_test(test_large_file_to_file),
        cmocka_unit_test(test_pipe_with_and_without_retry),
        cmocka_unit_test(test_file_through_pipe_is_spliced),
        cmocka_unit_test(test_bad_descriptor),
        cmocka_unit_test(test_error_after_some_bytes_is_their_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
