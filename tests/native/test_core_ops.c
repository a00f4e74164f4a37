/*
 * test_core_ops.c - the table of ops: completion, defaults, directory records.
 */
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/call.h"
#include "core/file.h"
#include "core/ops.h"

static struct stat answer;

static int fixed_getattr(struct df_fs *fs, struct df_call *call, const struct df_where *where,
                         struct stat *st)
{
    (void)fs, (void)call, (void)where;
    *st = answer;
    return 0;
}

static ssize_t fixed_read(struct df_fs *fs, struct df_call *call, struct df_file *file,
                          const struct iovec *iov, int iovcnt, off_t offset)
{
    (void)fs, (void)call, (void)file, (void)iovcnt;
    return offset < 0 ? -EIO : (ssize_t)iov[0].iov_len;
}

static struct df_ops ops;
static struct df_fs fs = {.ops = &ops};

static int setup(void **state)
{
    struct df_ops given = {.version = DF_OPS_VERSION,
                           .size = sizeof(given),
                           .getattr = fixed_getattr,
                           .read = fixed_read};

    (void)state;
    return df_ops_complete(&ops, &given);
}

static void refuses_what_it_does_not_know(void **state)
{
    struct df_ops full;
    struct df_ops later = {.version = DF_OPS_VERSION + 1, .size = sizeof(later)};
    struct df_ops empty = {.version = DF_OPS_VERSION, .size = sizeof(empty)};

    (void)state;
    later.getattr = fixed_getattr;
    assert_int_equal(df_ops_complete(&full, &later), -EINVAL);
    assert_int_equal(df_ops_complete(&full, &empty), -EINVAL);
}

/* A table compiled against an earlier header is shorter. */
static void fills_a_short_table(void **state)
{
    struct df_ops full, given = {.version = DF_OPS_VERSION,
                                 .size = offsetof(struct df_ops, setattr),
                                 .getattr = fixed_getattr,
                                 .read = (void *)fixed_getattr}; /* behind the size: not seen */

    (void)state;
    assert_int_equal(df_ops_complete(&full, &given), 0);
    assert_ptr_equal(full.getattr, fixed_getattr);
    assert_ptr_not_equal((void *)full.read, (void *)fixed_getattr);
    assert_int_equal(full.size, sizeof(full));
#define DF_OP(name) assert_non_null(full.name);
#include "core/ops.def"
#undef DF_OP
}

static void access_follows_mode_bits(void **state)
{
    gid_t groups[] = {30};
    struct df_caller caller = {.uid = 10, .gid = 20, .groups = groups, .group_count = 1};
    struct df_call call = {.caller = &caller};
    struct df_where where = {.name = "/"};

    (void)state;
    answer = (struct stat){.st_mode = S_IFREG | 0640, .st_uid = 10, .st_gid = 30};
    assert_int_equal(ops.access(&fs, &call, &where, R_OK | W_OK), 0);
    assert_int_equal(ops.access(&fs, &call, &where, X_OK), -EACCES);
    caller.uid = 11;
    assert_int_equal(ops.access(&fs, &call, &where, R_OK), 0);
    assert_int_equal(ops.access(&fs, &call, &where, W_OK), -EACCES);
    caller.group_count = 0;
    assert_int_equal(ops.access(&fs, &call, &where, R_OK), -EACCES);
    assert_int_equal(ops.access(&fs, &call, &where, F_OK), 0);
    caller.capable = true;
    assert_int_equal(ops.access(&fs, &call, &where, R_OK | W_OK), 0);
    assert_int_equal(ops.access(&fs, &call, &where, X_OK), -EACCES);
    answer.st_mode = S_IFDIR;
    assert_int_equal(ops.access(&fs, &call, &where, X_OK), 0);
}

static void seeks_without_holes(void **state)
{
    struct df_call call = {0};
    struct df_file file = {0};

    (void)state;
    answer = (struct stat){.st_size = 100};
    assert_int_equal(ops.lseek(&fs, &call, &file, 10, SEEK_DATA), 10);
    assert_int_equal(ops.lseek(&fs, &call, &file, 10, SEEK_HOLE), 100);
    assert_int_equal(ops.lseek(&fs, &call, &file, 100, SEEK_HOLE), -ENXIO);
    assert_int_equal(ops.lseek(&fs, &call, &file, -1, SEEK_DATA), -ENXIO);
}

static void a_batch_is_read_one_by_one(void **state)
{
    struct df_call call = {0};
    struct df_extent extents[] = {{.size = 3}, {.size = 4, .offset = -1}, {.size = 5}};

    (void)state;
    assert_int_equal(ops.read_batch(&fs, &call, extents, 3), 0);
    assert_int_equal(extents[0].result, 3);
    assert_int_equal(extents[1].result, -EIO);
    assert_int_equal(extents[2].result, 5);
}

static void other_defaults(void **state)
{
    struct df_call call = {0};
    struct df_file file = {0};
    struct df_where where = {.name = "/"};
    struct df_lock lock = {0};
    struct statvfs vfs;

    (void)state;
    assert_int_equal(ops.statfs(&fs, &call, &where, &vfs), 0);
    assert_int_equal(vfs.f_namemax, 255);
    assert_int_equal(vfs.f_bsize, 512);
    assert_int_equal(ops.mkdir(&fs, &call, &where, 0), -EROFS);
    assert_int_equal(ops.readlink(&fs, &call, &where, NULL, 0), -EINVAL);
    assert_int_equal(ops.getxattr(&fs, &call, &where, "user.a", NULL, 0), -EOPNOTSUPP);
    assert_int_equal(ops.readdir(&fs, &call, &file, 0, NULL), -ENOTDIR);
    assert_int_equal(ops.ioctl(&fs, &call, &file, 0, NULL), -ENOTTY);
    assert_int_equal(ops.lock(&fs, &call, &file, &lock), DF_NOT_OURS);
    assert_int_equal(ops.flock(&fs, &call, &file, 0, 0), DF_NOT_OURS);
    assert_int_equal(ops.poll(&fs, &call, &file, POLLIN | POLLPRI, NULL), POLLIN);
    assert_int_equal(ops.flush(&fs, &call, &file, 0), 0);
    assert_int_equal(ops.fsync(&fs, &call, &file, true), 0);
}

static void records_fill_a_buffer(void **state)
{
    char bytes[64 + 1];
    struct df_dirbuf buf = {.data = bytes + 1, .size = 64}; /* any alignment */
    struct dirent64 first;

    (void)state;
    assert_true(df_dirbuf_add(&buf, "name", 4, 7, 1, DT_REG));
    assert_int_equal(buf.used, 24);
    assert_true(df_dirbuf_add(&buf, "another-name", 12, 8, 2, DT_DIR));
    assert_int_equal(buf.used, 56);
    assert_int_equal(buf.next, 2);
    assert_false(df_dirbuf_add(&buf, "x", 1, 9, 3, DT_REG));
    assert_int_equal(buf.used, 56);
    assert_int_equal(buf.next, 2);
    memcpy(&first, bytes + 1, 24);
    assert_int_equal(first.d_ino, 7);
    assert_int_equal(first.d_off, 1);
    assert_int_equal(first.d_reclen, 24);
    assert_int_equal(first.d_type, DT_REG);
    assert_string_equal(first.d_name, "name");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refuses_what_it_does_not_know), cmocka_unit_test(fills_a_short_table),
        cmocka_unit_test(access_follows_mode_bits),      cmocka_unit_test(seeks_without_holes),
        cmocka_unit_test(a_batch_is_read_one_by_one),    cmocka_unit_test(other_defaults),
        cmocka_unit_test(records_fill_a_buffer),
    };

    return cmocka_run_group_tests(tests, setup, NULL);
}
