/*
 * test_highlevel_io.c - data through the path lane: vectors, limits, appends, holes, copying, sync.
 */
#include <sys/stat.h>

#include "ram_rig.h"

static struct stat st;
static struct df_file file, other;

static ssize_t readv_at(struct rig *rig, struct df_file *from, const struct iovec *iov, int count,
                        off_t offset)
{
    return rig->fs->ops->read(rig->fs, rig_call(rig), from, iov, count, offset);
}

static ssize_t writev_at(struct rig *rig, struct df_file *to, const struct iovec *iov, int count,
                         off_t *offset)
{
    return rig->fs->ops->write(rig->fs, rig_call(rig), to, iov, count, offset);
}

static void one_buffer_goes_to_read_and_write(void **state)
{
    (void)state;
    struct rig *rig = rig_default();
    char buf[32];

    assert_int_equal(rig_open(rig, "/dir/file", O_RDWR, 0, &file), 0);
    assert_int_equal(rig_pread(rig, &file, buf, sizeof(buf), 3), 7);
    assert_memory_equal(buf, "3456789", 7);
    assert_int_equal(rig_pread(rig, &file, buf, sizeof(buf), 100), 0);
    assert_int_equal(rig_pread(rig, &file, buf, 0, 0), 0);
    assert_int_equal(rig_pwrite(rig, &file, "AB", 2, 1), 2);
    assert_int_equal(rig_count(rig, RAM_READ), 2);
    assert_int_equal(rig_count(rig, RAM_WRITE), 1);
    assert_int_equal(rig_count(rig, RAM_READ_BUF), 0);
    assert_int_equal(rig_count(rig, RAM_WRITE_BUF), 0);
    rig_close(rig, &file);
    rig_end(rig);
}

static void several_buffers_go_to_the_buffer_operations(void **state)
{
    (void)state;
    struct rig *rig = rig_default();
    char a[3], b[2], c[20];
    struct iovec iov[] = {{a, 3}, {NULL, 0}, {b, 2}, {c, 20}};
    off_t offset = 8;

    assert_int_equal(rig_open(rig, "/dir/file", O_RDWR, 0, &file), 0);
    assert_int_equal(readv_at(rig, &file, iov, 4, 1), 9);
    assert_memory_equal(a, "123", 3);
    assert_memory_equal(b, "45", 2);
    assert_memory_equal(c, "6789", 4);
    assert_int_equal(rig_count(rig, RAM_READ_BUF), 1);
    memcpy(c, "wxyz", 4);
    iov[3].iov_len = 4;
    assert_int_equal(writev_at(rig, &file, iov, 4, &offset), 9);
    assert_int_equal(rig_count(rig, RAM_WRITE_BUF), 1);
    assert_int_equal(rig_pread(rig, &file, c, 20, 6), 11);
    assert_memory_equal(c, "6712345wxyz", 11);
    rig_close(rig, &file);
    rig_end(rig);
}

static void plain_operations_get_the_buffers_one_by_one(void **state)
{
    (void)state;
    struct rig *rig = rig_new();
    char a[3], b[20];
    struct iovec iov[] = {{a, 3}, {b, 20}};
    off_t offset = 9;

    rig->ops.read_buf = NULL;
    rig->ops.write_buf = NULL;
    assert_int_equal(rig_start(rig), 0);
    assert_int_equal(rig_open(rig, "/dir/file", O_RDWR, 0, &file), 0);
    assert_int_equal(readv_at(rig, &file, iov, 2, 0), 10);
    assert_memory_equal(b, "3456789", 7);
    iov[1].iov_len = 2;
    assert_int_equal(writev_at(rig, &file, iov, 2, &offset), 5);
    assert_int_equal(rig_pread(rig, &file, b, 20, 9), 5);
    assert_memory_equal(b, "01234", 5);
    rig_close(rig, &file);
    rig_end(rig);
}

static void buffer_operations_alone_serve_everything(void **state)
{
    (void)state;
    struct rig *rig = rig_new();
    char buf[4];

    rig->ops.read = NULL;
    rig->ops.write = NULL;
    assert_int_equal(rig_start(rig), 0);
    assert_int_equal(rig_open(rig, "/dir/file", O_RDWR, 0, &file), 0);
    assert_int_equal(rig_pwrite(rig, &file, "ab", 2, 0), 2);
    assert_int_equal(rig_pread(rig, &file, buf, 4, 0), 4);
    assert_memory_equal(buf, "ab23", 4);
    rig_close(rig, &file);
    rig_end(rig);
}

static void requests_are_cut_at_the_agreed_size(void **state)
{
    (void)state;
    struct rig *rig = rig_new();
    size_t size = 10000;
    char *data = malloc(size), *back = malloc(size);

    rig->conn.max_write = 4096;
    rig->session.max_read = 3000;
    assert_int_equal(rig_start(rig), 0);
    assert_int_equal(rig_open(rig, "/big", O_RDWR | O_CREAT, 0600, &file), 0);
    for (size_t i = 0; i < size; i++)
        data[i] = (char)(i * 7);
    assert_int_equal(rig_pwrite(rig, &file, data, size, 0), size);
    assert_int_equal(rig_count(rig, RAM_WRITE), 3);
    assert_int_equal(rig_pread(rig, &file, back, size, 0), size);
    assert_int_equal(rig_count(rig, RAM_READ_BUF) + rig_count(rig, RAM_READ), 4);
    assert_memory_equal(data, back, size);
    rig_close(rig, &file);
    free(data);
    free(back);
    rig_end(rig);
}

static int short_write(const char *path, const char *buf, size_t size, off_t offset,
                       struct fuse_file_info *fi)
{
    (void)path, (void)buf, (void)offset, (void)fi;
    return size > 5 ? 5 : 0;
}

static int long_read(const char *path, char *buf, size_t size, off_t offset,
                     struct fuse_file_info *fi)
{
    (void)path, (void)buf, (void)offset, (void)fi;
    return (int)size + 1;
}

static void odd_counts_from_a_plugin_are_met_as_in_the_kernel(void **state)
{
    (void)state;
    struct rig *rig = rig_new();
    char buf[8];

    rig->ops.write = short_write;
    rig->ops.read = long_read;
    assert_int_equal(rig_start(rig), 0);
    assert_int_equal(rig_open(rig, "/dir/file", O_RDWR, 0, &file), 0);
    assert_int_equal(rig_pwrite(rig, &file, "12345678", 8, 0), 5);
    assert_int_equal(rig_pwrite(rig, &file, "123", 3, 0), -EIO);
    file.traits |= DF_FILE_DIRECT;
    assert_int_equal(rig_pwrite(rig, &file, "123", 3, 0), 0);
    assert_int_equal(rig_pread(rig, &file, buf, 8, 0), -EIO);
    rig_close(rig, &file);
    rig_end(rig);
}

static void an_append_goes_to_the_end_and_says_where(void **state)
{
    (void)state;
    struct rig *rig = rig_default();
    struct iovec iov = {"++", 2};
    off_t offset = 0;

    assert_int_equal(rig_open(rig, "/dir/file", O_WRONLY | O_APPEND, 0, &file), 0);
    assert_int_equal(rig_open(rig, "/dir/file", O_WRONLY, 0, &other), 0);
    assert_int_equal(writev_at(rig, &file, &iov, 1, &offset), 2);
    assert_int_equal(offset, 10);
    assert_int_equal(rig_pwrite(rig, &other, "x", 1, 20), 1);
    assert_int_equal(writev_at(rig, &file, &iov, 1, &offset), 2);
    assert_int_equal(offset, 21);
    atomic_store(&file.flags, O_WRONLY); /* F_SETFL took it away */
    offset = 0;
    assert_int_equal(writev_at(rig, &file, &iov, 1, &offset), 2);
    assert_int_equal(offset, 0);
    assert_int_equal(rig->ram.shown.flags & O_APPEND, 0);
    rig_close(rig, &file);
    rig_close(rig, &other);
    rig_end(rig);
}

#define APPENDS 200

static void *append_many(void *arg)
{
    struct rig *rig = arg;
    struct df_call call = rig_own_call(rig);
    struct iovec iov = {"12345678", 8};

    for (int i = 0; i < APPENDS; i++) {
        off_t offset = 0;
        if (rig->fs->ops->write(rig->fs, &call, &file, &iov, 1, &offset) != 8 || offset % 8)
            return "bad";
    }
    return NULL;
}

static void appends_of_two_threads_do_not_overlap(void **state)
{
    (void)state;
    struct rig *rig = rig_default();
    pthread_t threads[2];
    void *result;

    rig->ram.yields = true;
    assert_int_equal(rig_open(rig, "/log", O_WRONLY | O_APPEND | O_CREAT, 0600, &file), 0);
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, append_many, rig);
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], &result);
        assert_null(result);
    }
    rig->ram.yields = false;
    assert_int_equal(rig_fstat(rig, &file, &st), 0);
    assert_int_equal(st.st_size, 2 * APPENDS * 8);
    rig_close(rig, &file);
    rig_end(rig);
}

static void a_serial_session_runs_one_operation_at_a_time(void **state)
{
    (void)state;
    for (int serial = 0; serial < 2; serial++) {
        struct rig *rig = rig_new();
        pthread_t threads[2];

        rig->session.serial = serial;
        assert_int_equal(rig_start(rig), 0);
        assert_int_equal(rig_open(rig, "/log", O_WRONLY | O_APPEND | O_CREAT, 0600, &file), 0);
        rig->ram.yields = true;
        for (int i = 0; i < 2; i++)
            pthread_create(&threads[i], NULL, append_many, rig);
        for (int i = 0; i < 2; i++)
            pthread_join(threads[i], NULL);
        rig->ram.yields = false;
        if (serial)
            assert_false(rig->ram.overlapped);
        rig_close(rig, &file);
        rig_end(rig);
    }
}

static void holes_come_from_the_plugin_or_there_are_none(void **state)
{
    (void)state;
    struct rig *rig = rig_default();
    off_t (*seek)(struct df_fs *, struct df_call *, struct df_file *, off_t, int) =
        rig->fs->ops->lseek;

    assert_int_equal(rig_open(rig, "/dir/file", O_RDONLY, 0, &file), 0);
    assert_int_equal(seek(rig->fs, rig_call(rig), &file, 4, SEEK_DATA), 5); /* the table's answer */
    rig->ram.fail_error[RAM_LSEEK] = -ENOSYS;
    rig_total(rig);
    assert_int_equal(seek(rig->fs, rig_call(rig), &file, 4, SEEK_DATA), 4);
    assert_int_equal(seek(rig->fs, rig_call(rig), &file, 4, SEEK_HOLE), 10);
    assert_int_equal(seek(rig->fs, rig_call(rig), &file, 10, SEEK_DATA), -ENXIO);
    assert_int_equal(seek(rig->fs, rig_call(rig), &file, -1, SEEK_HOLE), -ENXIO);
    assert_int_equal(rig_count(rig, RAM_LSEEK), 1);
    rig_close(rig, &file);
    rig_end(rig);
}

static void allocation_changes_the_size(void **state)
{
    (void)state;
    struct rig *rig = rig_default();

    assert_int_equal(rig_open(rig, "/dir/file", O_RDWR, 0, &file), 0);
    rig_fstat(rig, &file, &st);
    assert_int_equal(rig->fs->ops->fallocate(rig->fs, rig_call(rig), &file, 0, 0, 100), 0);
    rig_fstat(rig, &file, &st);
    assert_int_equal(st.st_size, 100);
    assert_int_equal(
        rig->fs->ops->fallocate(rig->fs, rig_call(rig), &file, FALLOC_FL_COLLAPSE_RANGE, 0, 100),
        -EOPNOTSUPP);
    rig->ram.fail_error[RAM_FALLOCATE] = -ENOSYS;
    rig_total(rig);
    for (int i = 0; i < 2; i++)
        assert_int_equal(rig->fs->ops->fallocate(rig->fs, rig_call(rig), &file, 0, 0, 100),
                         -EOPNOTSUPP);
    assert_int_equal(rig_count(rig, RAM_FALLOCATE), 1);
    rig_close(rig, &file);
    rig_end(rig);
}

static void copying_between_files_is_handed_over(void **state)
{
    (void)state;
    struct rig *rig = rig_default();
    char buf[10];

    assert_int_equal(rig_open(rig, "/dir/file", O_RDWR, 0, &file), 0);
    assert_int_equal(rig_open(rig, "/copy", O_RDWR | O_CREAT, 0600, &other), 0);
    assert_int_equal(
        rig->fs->ops->copy_file_range(rig->fs, rig_call(rig), &file, 2, &other, 1, 5, 0), 5);
    assert_int_equal(rig_pread(rig, &other, buf, 10, 0), 6);
    assert_memory_equal(buf + 1, "23456", 5);
    assert_int_equal(
        rig->fs->ops->copy_file_range(rig->fs, rig_call(rig), &file, 0, &file, 8, 4, 0),
        4); /* within one file: held once */
    rig->ram.fail_error[RAM_COPY] = -ENOSYS;
    rig_total(rig);
    for (int i = 0; i < 2; i++)
        assert_int_equal(
            rig->fs->ops->copy_file_range(rig->fs, rig_call(rig), &file, 2, &other, 1, 5, 0),
            -EOPNOTSUPP);
    assert_int_equal(rig_count(rig, RAM_COPY), 1);
    rig_close(rig, &file);
    rig_close(rig, &other);
    rig_end(rig);
}

static void sync_without_an_operation_succeeds(void **state)
{
    (void)state;
    struct rig *rig = rig_default();

    assert_int_equal(rig_open(rig, "/dir/file", O_RDWR, 0, &file), 0);
    assert_int_equal(rig_open(rig, "/dir", O_RDONLY, 0, &other), 0);
    assert_int_equal(rig->fs->ops->fsync(rig->fs, rig_call(rig), &file, true), 0);
    assert_int_equal(rig->fs->ops->fsync(rig->fs, rig_call(rig), &other, false), 0);
    assert_int_equal(rig_count(rig, RAM_FSYNC), 1);
    assert_int_equal(rig_count(rig, RAM_FSYNCDIR), 1);
    rig->ram.fail_error[RAM_FSYNC] = -EIO;
    assert_int_equal(rig->fs->ops->fsync(rig->fs, rig_call(rig), &file, true), -EIO);
    rig->ram.fail_error[RAM_FSYNC] = rig->ram.fail_error[RAM_FSYNCDIR] = -ENOSYS;
    rig_total(rig);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(rig->fs->ops->fsync(rig->fs, rig_call(rig), &file, true), 0);
        assert_int_equal(rig->fs->ops->fsync(rig->fs, rig_call(rig), &other, true), 0);
    }
    assert_int_equal(rig_total(rig), 2);
    rig_close(rig, &file);
    rig_close(rig, &other);
    rig_end(rig);
}

static void writing_takes_setuid_from_others_files(void **state)
{
    (void)state;
    struct rig *rig = rig_default();
    struct df_setattr owner = {.valid = DF_SET_UID, .uid = 1000};

    ram_find("/dir/file")->inode->st.st_mode = S_IFREG | 06755;
    assert_int_equal(rig_open(rig, "/dir/file", O_RDWR, 0, &file), 0);
    assert_int_equal(rig_pwrite(rig, &file, "x", 1, 0), 1);
    rig_close(rig, &file);
    rig_stat(rig, "/dir/file", &st);
    assert_int_equal(st.st_mode & 07777, 06755); /* root may */
    rig->caller = (struct df_caller){.uid = 1000};
    assert_int_equal(rig_open(rig, "/dir/file", O_RDWR, 0, &file), 0);
    rig_total(rig);
    assert_int_equal(rig_pwrite(rig, &file, "x", 1, 0), 1);
    assert_int_equal(rig_pwrite(rig, &file, "x", 1, 0), 1);
    assert_int_equal(rig_count(rig, RAM_CHMOD), 1);
    rig_stat(rig, "/dir/file", &st);
    assert_int_equal(st.st_mode & 07777, 0755);
    rig_close(rig, &file);

    ram_find("/dir/file")->inode->st.st_mode = S_IFREG | 06755;
    rig->caller = (struct df_caller){.capable = true};
    df_highlevel_invalidate(rig->fs, "/dir/file");
    assert_int_equal(rig_set(rig, NULL, "/dir/file", &owner), 0); /* chown: also root's */
    rig_stat(rig, "/dir/file", &st);
    assert_int_equal(st.st_mode & 07777, 0755);
    rig_end(rig);

    rig = rig_new();
    rig->want = FUSE_CAP_HANDLE_KILLPRIV;
    ram_find("/dir/file")->inode->st.st_mode = S_IFREG | 06755;
    assert_int_equal(rig_start(rig), 0);
    assert_int_equal(rig_set(rig, NULL, "/dir/file", &owner), 0);
    assert_int_equal(rig_count(rig, RAM_CHMOD), 0);
    rig_end(rig);
}

static void attributes_are_set_in_libfuses_order_and_by_handle(void **state)
{
    (void)state;
    struct rig *rig = rig_default();
    struct df_setattr set = {.valid = DF_SET_SIZE, .size = 3};

    assert_int_equal(rig_open(rig, "/dir/file", O_RDWR, 0, &file), 0);
    assert_int_equal(rig_set(rig, &file, "", &set), 0);
    assert_int_equal(rig_count(rig, RAM_TRUNCATE), 1);
    assert_true(rig->ram.shown.fh != 0);
    set = (struct df_setattr){.valid = DF_SET_ATIME | DF_SET_ATIME_NOW};
    assert_int_equal(rig_set(rig, &file, "", &set), 0);
    const struct stat *kept = &ram_find("/dir/file")->inode->st; /* as it was given */
    assert_int_equal(kept->st_atim.tv_nsec, UTIME_NOW);
    assert_int_equal(kept->st_mtim.tv_nsec, 0);
    set = (struct df_setattr){.valid = DF_SET_MODE | DF_SET_GID | DF_SET_SIZE, .gid = 9};
    rig->ram.fail_error[RAM_CHOWN] = -EPERM;
    rig_total(rig);
    assert_int_equal(rig_set(rig, &file, "", &set), -EPERM);
    assert_int_equal(rig_count(rig, RAM_CHMOD), 1);
    assert_int_equal(rig_count(rig, RAM_TRUNCATE), 0);
    rig_close(rig, &file);
    set = (struct df_setattr){.valid = DF_SET_SIZE};
    assert_int_equal(rig_set(rig, NULL, "/dir", &set), -EISDIR);
    assert_int_equal(rig_set(rig, NULL, "/fifo", &set), -EINVAL);
    rig_end(rig);
}

static void a_read_ends_the_belief_in_times(void **state)
{
    char buf[4];

    (void)state;
    for (int readonly = 0; readonly < 2; readonly++) {
        struct rig *rig = rig_new();
        rig->session.readonly = readonly;
        assert_int_equal(rig_start(rig), 0);
        assert_int_equal(rig_open(rig, "/dir/file", O_RDONLY, 0, &file), 0);
        assert_int_equal(rig_stat(rig, "/dir/file", &st), 0);
        rig_total(rig);
        assert_int_equal(rig_stat(rig, "/dir/file", &st), 0);
        assert_int_equal(rig_count(rig, RAM_GETATTR), 0);
        assert_int_equal(rig_pread(rig, &file, buf, sizeof(buf), 0), 4);
        assert_int_equal(rig_pread(rig, &file, buf, sizeof(buf), 4), 4);
        assert_int_equal(rig_count(rig, RAM_GETATTR), 0);
        assert_int_equal(rig_stat(rig, "/dir/file", &st), 0);
        assert_int_equal(rig_count(rig, RAM_GETATTR), !readonly);
        rig_close(rig, &file);
        rig_end(rig);
    }
}

static off_t told;

static int tell_size(const char *path, struct stat *out, struct fuse_file_info *fi)
{
    int result = ram_ops.getattr(path, out, fi);

    if (result == 0 && S_ISREG(out->st_mode))
        out->st_size = told;
    return result;
}

/* With the file open that getattr says four bytes of. */
static struct rig *rig_told(bool direct, int flags)
{
    struct rig *rig = rig_new();

    rig->ops.getattr = tell_size;
    rig->config.direct_io = direct;
    told = 4;
    assert_int_equal(rig_start(rig), 0);
    assert_int_equal(rig_open(rig, "/dir/file", flags, 0, &file), 0);
    return rig;
}

static void reads_end_where_getattr_says(void **state)
{
    char buf[20];

    (void)state;
    for (int direct = 0; direct < 2; direct++) {
        struct rig *rig = rig_told(direct, O_RDWR);

        assert_int_equal(rig_pread(rig, &file, buf, sizeof(buf), 1), direct ? 9 : 3);
        assert_int_equal(rig_pread(rig, &file, buf, sizeof(buf), 6), direct ? 4 : 0);
        told = 8; /* the attributes have their time yet, until a write ends it */
        assert_int_equal(rig_pread(rig, &file, buf, sizeof(buf), 1), direct ? 9 : 3);
        assert_int_equal(rig_pwrite(rig, &file, "x", 1, 0), 1);
        assert_int_equal(rig_pread(rig, &file, buf, sizeof(buf), 1), direct ? 9 : 7);
        rig_total(rig);
        assert_int_equal(rig_pread(rig, &file, buf, 7, 1), 7);
        assert_int_equal(rig_count(rig, RAM_GETATTR), 0);
        rig_close(rig, &file);
        rig_end(rig);
    }
}

/* A kernel mount does not ask there, but for direct_io. */
static void what_is_refused_behind_the_end_is_the_end(void **state)
{
    char buf[4];

    (void)state;
    for (int direct = 0; direct < 2; direct++) {
        struct rig *rig = rig_told(direct, O_RDONLY);

        rig->ram.fail_error[RAM_READ] = -EINVAL;
        assert_int_equal(rig_pread(rig, &file, buf, sizeof(buf), 3), -EINVAL);
        assert_int_equal(rig_pread(rig, &file, buf, sizeof(buf), 4), direct ? -EINVAL : 0);
        assert_int_equal(rig_pread(rig, &file, buf, sizeof(buf), 100), direct ? -EINVAL : 0);
        rig->ram.fail_error[RAM_READ] = -EINTR;
        assert_int_equal(rig_pread(rig, &file, buf, sizeof(buf), 4), -EINTR);
        rig_close(rig, &file);
        rig_end(rig);
    }
}

static void an_append_believes_no_size_that_leads_nowhere(void **state)
{
    (void)state;
    struct rig *rig = rig_default();

    assert_int_equal(rig_open(rig, "/log", O_WRONLY | O_APPEND | O_CREAT, 0600, &file), 0);
    assert_int_equal(rig_pwrite(rig, &file, "abc", 3, 0), 3); /* its size is not known any more */
    rig->ram.handles[0]->st.st_size = DF_PENDING;
    assert_int_equal(rig_pwrite(rig, &file, "def", 3, 0), -EIO);
    rig->ram.handles[0]->st.st_size = INT64_MAX; /* nothing goes behind that */
    assert_int_equal(rig_pwrite(rig, &file, "def", 3, 0), -EFBIG);
    rig->ram.handles[0]->st.st_size = 3;
    rig_close(rig, &file);
    rig_end(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_buffer_goes_to_read_and_write),
        cmocka_unit_test(several_buffers_go_to_the_buffer_operations),
        cmocka_unit_test(plain_operations_get_the_buffers_one_by_one),
        cmocka_unit_test(buffer_operations_alone_serve_everything),
        cmocka_unit_test(requests_are_cut_at_the_agreed_size),
        cmocka_unit_test(odd_counts_from_a_plugin_are_met_as_in_the_kernel),
        cmocka_unit_test(an_append_goes_to_the_end_and_says_where),
        cmocka_unit_test(appends_of_two_threads_do_not_overlap),
        cmocka_unit_test(a_serial_session_runs_one_operation_at_a_time),
        cmocka_unit_test(holes_come_from_the_plugin_or_there_are_none),
        cmocka_unit_test(allocation_changes_the_size),
        cmocka_unit_test(copying_between_files_is_handed_over),
        cmocka_unit_test(sync_without_an_operation_succeeds),
        cmocka_unit_test(writing_takes_setuid_from_others_files),
        cmocka_unit_test(attributes_are_set_in_libfuses_order_and_by_handle),
        cmocka_unit_test(a_read_ends_the_belief_in_times),
        cmocka_unit_test(reads_end_where_getattr_says),
        cmocka_unit_test(what_is_refused_behind_the_end_is_the_end),
        cmocka_unit_test(an_append_believes_no_size_that_leads_nowhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
