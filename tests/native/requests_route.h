/*
 * requests_route.h - one mount of the traced file system, through our node lane or, with
 * KERNEL_ROUTE, through Linux. Calls are spelled df_*; on the kernel's route they are libc's.
 */
#ifndef DF_TESTS_REQUESTS_ROUTE_H
#define DF_TESTS_REQUESTS_ROUTE_H

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cmocka.h>

#include "traced.h"

static struct traced *fs;

#ifdef KERNEL_ROUTE

#include <sys/mount.h>
#include <sys/syscall.h>

#define df_open      open
#define df_openat    openat
#define df_close     close
#define df_dup       dup
#define df_stat      stat
#define df_lstat     lstat
#define df_fstat     fstat
#define df_fstatat   fstatat
#define df_pread     pread
#define df_pwrite    pwrite
#define df_write     write
#define df_mkdir     mkdir
#define df_mknod     mknod
#define df_rmdir     rmdir
#define df_unlink    unlink
#define df_rename    rename
#define df_renameat2 renameat2
#define df_link      link
#define df_symlink   symlink
#define df_readlink  readlink
#define df_truncate  truncate
#define df_ftruncate ftruncate
#define df_chmod     chmod
#define df_access    access
#define df_statvfs   statvfs
#define df_fsync     fsync
#define df_utimensat utimensat

static char point[] = "/tmp/df-requests-XXXXXX";
static struct fuse_session *session;
static pthread_t server;

static ssize_t df_getdents(int fd, void *buf, size_t size)
{
    return syscall(SYS_getdents64, fd, buf, size);
}

static void *serve(void *arg)
{
    (void)arg;
    fuse_session_loop(session);
    return NULL;
}

static int can_mount(void **state)
{
    (void)state;
    if (access("/dev/fuse", R_OK | W_OK) != 0 || geteuid() != 0) {
        print_message("skipped: the kernel's route needs root and /dev/fuse\n");
        exit(77);
    }
    return mkdtemp(point) ? 0 : -1;
}

static int end_mounts(void **state)
{
    (void)state;
    return rmdir(point);
}

static void mount_options(const char *options)
{
    char *argv[] = {"traced", "-o", (char *)(uintptr_t)options, NULL};
    struct fuse_args args = FUSE_ARGS_INIT(3, argv);

    session = fuse_session_new(&args, &traced_ops, sizeof(traced_ops), fs);
    assert_non_null(session);
    assert_int_equal(fuse_session_mount(session, point), 0);
    assert_int_equal(pthread_create(&server, NULL, serve, NULL), 0);
    fuse_opt_free_args(&args);
}

static void unmount_it(void)
{
    int busy = umount2(point, 0);

    if (busy) /* a test failed with files open: nobody must wait for this server */
        umount2(point, MNT_FORCE | MNT_DETACH);
    pthread_join(server, NULL);
    assert_int_equal(busy, 0);
    fuse_session_destroy(session);
}

#else

#include <directfuse.h>

#include "core/mount.h"
#include "lowlevel/lowlevel.h"

static const char point[] = "/df-requests";
static struct df_session session;
static struct df_fs *mounted;
static int mount_id;

static int can_mount(void **state)
{
    (void)state;
    return 0;
}

static int end_mounts(void **state)
{
    (void)state;
    return 0;
}

static void mount_options(const char *options)
{
    struct df_mount_spec spec = {.point = point};
    struct fuse_conn_info conn = {0};
    struct df_fs *lane;
    struct df_mount *mount;

    session = (struct df_session){
        .mountpoint = point,
        .owner_uid = getuid(),
        .owner_gid = getgid(),
        .default_permissions = strstr(options, "default_permissions") != NULL,
        .serial = strstr(options, "serial") != NULL,
        .allow_other = strstr(options, "allow_other") != NULL,
    };
    lane = df_lowlevel_new(&traced_ops, sizeof(traced_ops), fs, &session, NULL);
    assert_non_null(lane);
    assert_int_equal(df_lowlevel_init(lane, &conn), 0);
    assert_int_equal(df_mount_attach(&spec, lane, &mount), 0);
    mount_id = mount->id;
    mounted = lane;
}

/* The lane itself, for tests that look inside (lowlevel/private.h). */
static inline struct df_lowlevel *lane_of_mount(void)
{
    return (struct df_lowlevel *)mounted;
}

static void unmount_it(void)
{
    assert_int_equal(df_unmount(mount_id, 0), 0);
}

#endif

/* A path inside the mount; valid for the next seven calls. */
static inline const char *at(const char *path)
{
    static char text[8][512];
    static unsigned turn;
    char *out = text[turn++ % 8];

    snprintf(out, sizeof(text[0]), "%s%s", point, path);
    return out;
}

static inline void expect_log(const char *expected, const char *file, int line)
{
    const char *log = traced_log(fs, expected);

    if (strcmp(log, expected) != 0) {
        print_error("expected: %s\n     got: %s\n", expected, log);
        _fail(file, line);
    }
}

/* The requests since the last time are exactly these. */
#define asked(expected) expect_log(expected, __FILE__, __LINE__)

#define fails(expression, error)                                                                   \
    do {                                                                                           \
        errno = 0;                                                                                 \
        assert_int_equal(expression, -1);                                                          \
        assert_int_equal(errno, error);                                                            \
    } while (0)

static inline int new_fs(void **state)
{
    (void)state;
    fs = traced_new();
    return 0;
}

/* Every lookup is forgotten, every open file released. */
static inline int end_fs(void **state)
{
    (void)state;
    unmount_it();
    if (fs->errors > 0)
        print_error("the file system saw %d contradictions, the last: %s\n", fs->errors, fs->error);
    assert_int_equal(fs->errors, 0);
    assert_int_equal(traced_opens(fs), 0);
#ifndef KERNEL_ROUTE /* which may leave FORGETs out at the end */
    assert_int_equal(traced_lookups(fs), 0);
#endif
    assert_int_equal(fs->destroyed, 1);
    traced_free(fs);
    return 0;
}

#define test(function) cmocka_unit_test_setup_teardown(function, new_fs, end_fs)

#endif
