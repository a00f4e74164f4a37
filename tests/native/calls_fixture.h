/*
 * calls_fixture.h - a RAM file system mounted at POINT for each test of the calls, and what nearly
 * every test does with it. Not every test program uses all of it.
 */
#ifndef CALLS_FIXTURE_H
#define CALLS_FIXTURE_H

#include "core/fd.h"
#include "core/mount.h"
#include "ramfs.h"

#define POINT "/df-test-calls"

static struct ramfs_probe probe;
static int mount_id;

static inline int attach(const char *point, unsigned flags, struct df_fs *fs)
{
    struct df_mount_spec spec = {.point = point, .flags = flags};
    struct df_mount *mount;

    assert_non_null(fs);
    assert_int_equal(df_mount_attach(&spec, fs, &mount), 0);
    return mount->id;
}

static inline int setup(void **state)
{
    (void)state;
    memset(&probe, 0, sizeof(probe));
    mount_id = attach(POINT, 0, ramfs_new(&probe));
    return 0;
}

static inline int teardown(void **state)
{
    (void)state;
    assert_int_equal(df_unmount(mount_id, 0), 0);
    assert_int_equal(probe.destroyed, 1);
    assert_int_equal(probe.opened, probe.released);
    assert_int_equal(probe.nodes, 0);
    assert_int_equal(df_fd_count(), 0);
    return 0;
}

#define assert_fails(expression, error)                                                            \
    do {                                                                                           \
        errno = 0;                                                                                 \
        assert_int_equal(expression, -1);                                                          \
        assert_int_equal(errno, error);                                                            \
    } while (0)

static inline int make_file(const char *path, const char *text)
{
    int fd = df_open(path, O_RDWR | O_CREAT | O_TRUNC, 0644);

    assert_true(fd >= DF_FD_BASE);
    assert_int_equal(df_write(fd, text, strlen(text)), strlen(text));
    return fd;
}

static inline void make_closed(const char *path, const char *text)
{
    assert_int_equal(df_close(make_file(path, text)), 0);
}

static inline void assert_reads(int fd, off_t offset, const char *text)
{
    char buf[256] = "";

    assert_int_equal(df_pread(fd, buf, sizeof(buf), offset), strlen(text));
    assert_string_equal(buf, text);
}

#endif
