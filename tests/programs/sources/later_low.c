/*
 * later_low.c - a low-level file system of libfuse 3.18 (libfuse3.so.4), for machines whose libfuse
 * is older: what its headers say otherwise is declared here by hand. A root directory, files that
 * O_TMPFILE makes, and names that link(2) gives them.
 */
#ifndef FUSE_USE_VERSION
#define FUSE_USE_VERSION 312
#endif
#define fuse_session_new_versioned their_session_new /* declared by hand below */
#include <errno.h>
#include <fcntl.h>
#include <fuse_lowlevel.h>
#undef fuse_session_new_versioned
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

struct operations {
    struct fuse_lowlevel_ops base;
#if FUSE_VERSION >= FUSE_MAKE_VERSION(3, 17)
#define TMPFILE base.tmpfile
#else
#define TMPFILE tmpfile
    void (*tmpfile)(fuse_req_t, fuse_ino_t, mode_t, struct fuse_file_info *);
#endif
#if FUSE_VERSION >= FUSE_MAKE_VERSION(3, 18)
#define STATX base.statx
#else
#define STATX statx
    void (*statx)(fuse_req_t, fuse_ino_t, int flags, int mask, struct fuse_file_info *);
#endif
};

struct version {
    uint32_t major, minor, hotfix, padding;
};

int fuse_reply_statx(fuse_req_t, int flags, struct statx *, double timeout);
struct fuse_session *fuse_session_new_versioned(struct fuse_args *, const void *op, size_t op_size,
                                                struct version *, void *userdata);

enum { FIRST = 2, FILES = 8, HANDLE = 4711, BORN = 1234567890 };

static struct {
    char name[32]; /* "": none */
    mode_t mode;
} files[FILES];
static int count, statx_calls;

static struct stat stat_of(fuse_ino_t ino)
{
    struct stat st = {.st_ino = ino, .st_mode = S_IFDIR | 0777, .st_nlink = 2};

    if (ino != FUSE_ROOT_ID) {
        st.st_mode = files[ino - FIRST].mode;
        st.st_nlink = files[ino - FIRST].name[0] != 0;
        st.st_size = statx_calls;
    }
    return st;
}

static struct fuse_entry_param entry_of(fuse_ino_t ino)
{
    return (struct fuse_entry_param){.ino = ino, .attr = stat_of(ino)};
}

static void do_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    (void)parent;
    for (int i = 0; i < count; i++)
        if (strcmp(files[i].name, name) == 0) {
            struct fuse_entry_param entry = entry_of((fuse_ino_t)i + FIRST);

            fuse_reply_entry(req, &entry);
            return;
        }
    fuse_reply_err(req, ENOENT);
}

static void do_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    struct stat st = stat_of(ino);

    (void)fi;
    fuse_reply_attr(req, &st, 0);
}

static void do_tmpfile(fuse_req_t req, fuse_ino_t parent, mode_t mode, struct fuse_file_info *fi)
{
    bool right = parent == FUSE_ROOT_ID && S_ISREG(mode) && (fi->flags & O_TMPFILE) == O_TMPFILE &&
                 (fi->flags & O_ACCMODE) == O_RDWR;

    if (!right || count == FILES) {
        fuse_reply_err(req, right ? ENOSPC : EBADMSG);
        return;
    }
    files[count].mode = mode;
    fi->fh = HANDLE;
    struct fuse_entry_param entry = entry_of((fuse_ino_t)count++ + FIRST);
    fuse_reply_create(req, &entry, fi);
}

static void do_link(fuse_req_t req, fuse_ino_t ino, fuse_ino_t parent, const char *name)
{
    (void)parent;
    snprintf(files[ino - FIRST].name, sizeof(files[0].name), "%s", name);
    struct fuse_entry_param entry = entry_of(ino);
    fuse_reply_entry(req, &entry);
}

static void do_statx(fuse_req_t req, fuse_ino_t ino, int flags, int mask, struct fuse_file_info *fi)
{
    struct stat st = stat_of(ino);
    struct statx stx = {.stx_mask = STATX_BASIC_STATS | STATX_BTIME,
                        .stx_mode = (uint16_t)st.st_mode,
                        .stx_nlink = (uint32_t)st.st_nlink,
                        .stx_ino = ino,
                        .stx_size = (uint64_t)++statx_calls,
                        .stx_btime = {.tv_sec = BORN, .tv_nsec = 2000000000}};

    if (flags != 0 || mask != (STATX_BASIC_STATS | STATX_BTIME) || fi)
        fuse_reply_err(req, EBADMSG);
    else
        fuse_reply_statx(req, 0, &stx, 0);
}

static void do_release(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    if (fi->fh != HANDLE)
        files[ino - FIRST].mode = S_IFREG; /* so that it shows */
    fuse_reply_err(req, 0);
}

static const struct operations ops = {
    .base = {.lookup = do_lookup, .getattr = do_getattr, .link = do_link, .release = do_release},
    .TMPFILE = do_tmpfile,
    .STATX = do_statx,
};

int main(int argc, char *argv[])
{
    struct fuse_args args = FUSE_ARGS_INIT(argc, argv);
    struct version version = {3, 18, 2, 0};
    struct fuse_cmdline_opts options;
    int result = 1;

    if (fuse_parse_cmdline(&args, &options) != 0)
        return 1;
    struct fuse_session *session =
        fuse_session_new_versioned(&args, &ops, sizeof(ops), &version, NULL);
    if (session && fuse_session_mount(session, options.mountpoint) == 0) {
        result = fuse_session_loop(session);
        fuse_session_unmount(session);
    }
    if (session)
        fuse_session_destroy(session);
    fuse_opt_free_args(&args);
    return result ? 1 : 0;
}
