/*
 * lone_file.h - a mount of the node lane with one file, "/f" (node 2), whose other operations a
 * test brings along.
 */
#ifndef DF_TESTS_LONE_FILE_H
#define DF_TESTS_LONE_FILE_H

#include <directfuse.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/mount.h"
#include "lowlevel/lowlevel.h"

#define POINT "/df-lone"
#define FILE_ "/df-lone/f"

static int lone_id;
static off_t lone_size; /* bytes, as attributes say */
static char lone_data;  /* userdata: its address */

static void lone_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    struct fuse_entry_param entry = {.ino = 2, .attr_timeout = 0, .entry_timeout = 1e9};

    (void)parent;
    entry.attr.st_ino = 2;
    entry.attr.st_mode = S_IFREG | 0644;
    entry.attr.st_size = lone_size;
    if (strcmp(name, "f") == 0)
        df_reply_entry(req, &entry);
    else
        df_reply_err(req, ENOENT);
}

static void lone_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    struct stat st = {.st_ino = ino, .st_size = lone_size};

    (void)fi;
    st.st_mode = ino == 1 ? S_IFDIR | 0755 : S_IFREG | 0644;
    df_reply_attr(req, &st, 0);
}

static inline struct df_fs *lone_new(struct fuse_lowlevel_ops ops)
{
    if (!ops.lookup)
        ops.lookup = lone_lookup;
    if (!ops.getattr)
        ops.getattr = lone_getattr;
    lone_size = 0;
    return df_lowlevel_new(&ops, sizeof(ops), &lone_data, NULL, NULL);
}

/* Attaches after INIT with this much for one request, 0: as much as there is. */
static inline void lone_mount(struct fuse_lowlevel_ops ops, unsigned max_read, unsigned max_write)
{
    struct fuse_conn_info conn = {.max_read = max_read, .max_write = max_write};
    struct df_mount_spec spec = {.point = POINT};
    struct df_fs *fs = lone_new(ops);
    struct df_mount *mount;

    assert_non_null(fs);
    assert_int_equal(df_lowlevel_init(fs, &conn), 0);
    assert_int_equal(df_mount_attach(&spec, fs, &mount), 0);
    lone_id = mount->id;
}

static inline void lone_unmount(void)
{
    assert_int_equal(df_unmount(lone_id, 0), 0);
}

#define fails(expression, error)                                                                   \
    do {                                                                                           \
        errno = 0;                                                                                 \
        assert_int_equal(expression, -1);                                                          \
        assert_int_equal(errno, error);                                                            \
    } while (0)

#endif
