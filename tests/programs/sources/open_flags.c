/*
 * open_flags.c - a FUSE program that tells which flags its functions saw: the content of "/seen".
 * With -DLOW_LEVEL the same through libfuse's low-level API. Any name that is not "dir" or "absent"
 * is a file; creating "absent" succeeds.
 */
#ifdef LOW_LEVEL
#include <fuse_lowlevel.h>
#else
#include <fuse.h>
#endif
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static char seen[65536];
static size_t seen_size;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* protects those two */

static void note(const char *op, int flags)
{
    pthread_mutex_lock(&lock);
    seen_size += snprintf(seen + seen_size, sizeof(seen) - seen_size, "%s %o\n", op, flags);
    pthread_mutex_unlock(&lock);
}

static size_t copy_seen(char *buf, size_t size, size_t at)
{
    pthread_mutex_lock(&lock);
    size_t left = at < seen_size ? seen_size - at : 0;
    size = left < size ? left : size;
    memcpy(buf, seen + at, size);
    pthread_mutex_unlock(&lock);
    return size;
}

static size_t size_of_seen(void)
{
    pthread_mutex_lock(&lock);
    size_t size = seen_size;
    pthread_mutex_unlock(&lock);
    return size;
}

static int stat_of(const char *name, struct stat *st)
{
    if (strcmp(name, "absent") == 0)
        return -ENOENT;
    memset(st, 0, sizeof(*st));
    st->st_mode = *name == '\0' || strcmp(name, "dir") == 0 ? S_IFDIR | 0755 : S_IFREG | 0644;
    st->st_nlink = 1;
    st->st_size = strcmp(name, "seen") == 0 ? size_of_seen() : 0;
    return 0;
}

#ifndef LOW_LEVEL

static int flags_getattr(const char *path, struct stat *st, struct fuse_file_info *fi)
{
    (void)fi;
    return stat_of(path + 1, st);
}

static int flags_open(const char *path, struct fuse_file_info *fi)
{
    fi->fh = strcmp(path, "/seen") == 0;
    fi->direct_io = 1;
    if (!fi->fh)
        note("open", fi->flags);
    return 0;
}

static int flags_opendir(const char *path, struct fuse_file_info *fi)
{
    (void)path;
    note("opendir", fi->flags);
    return 0;
}

static int flags_create(const char *path, mode_t mode, struct fuse_file_info *fi)
{
    (void)path, (void)mode;
    fi->fh = 0;
    fi->direct_io = 1;
    note("create", fi->flags);
    return -EDQUOT; /* or getattr would have to show it */
}

static int flags_truncate(const char *path, off_t size, struct fuse_file_info *fi)
{
    (void)path, (void)size, (void)fi;
    note("truncate", 0);
    return 0;
}

static int flags_read(const char *path, char *buf, size_t size, off_t at, struct fuse_file_info *fi)
{
    (void)path;
    if (!fi->fh) {
        note("read", fi->flags);
        return 0;
    }
    return copy_seen(buf, size, at);
}

static const struct fuse_operations operations = {
    .getattr = flags_getattr,
    .open = flags_open,
    .opendir = flags_opendir,
    .create = flags_create,
    .truncate = flags_truncate,
    .read = flags_read,
};

int main(int argc, char *argv[])
{
    return fuse_main(argc, argv, &operations, NULL);
}

#else

static const char *const names[] = {"", "", "dir", "seen", "file"}; /* by number; 1 is the root */
enum { SEEN = 3, NAMES = 5 };

static void flags_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    struct fuse_entry_param entry = {0};

    (void)parent;
    for (entry.ino = 2; entry.ino < NAMES; entry.ino++) {
        if (strcmp(name, names[entry.ino]) == 0) {
            stat_of(name, &entry.attr);
            entry.attr.st_ino = entry.ino;
            fuse_reply_entry(req, &entry);
            return;
        }
    }
    fuse_reply_err(req, ENOENT);
}

static void flags_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    struct stat st;

    (void)fi;
    stat_of(names[ino], &st);
    st.st_ino = ino;
    fuse_reply_attr(req, &st, 0);
}

static void flags_setattr(fuse_req_t req, fuse_ino_t ino, struct stat *attr, int to_set,
                          struct fuse_file_info *fi)
{
    (void)attr, (void)to_set;
    note("truncate", 0);
    flags_getattr(req, ino, fi);
}

static void flags_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    fi->direct_io = 1;
    if (ino != SEEN)
        note("open", fi->flags);
    fuse_reply_open(req, fi);
}

static void flags_opendir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    (void)ino;
    note("opendir", fi->flags);
    fuse_reply_open(req, fi);
}

static void flags_create(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode,
                         struct fuse_file_info *fi)
{
    (void)parent, (void)name, (void)mode;
    note("create", fi->flags);
    fuse_reply_err(req, EDQUOT);
}

static void flags_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t at,
                       struct fuse_file_info *fi)
{
    char buf[sizeof(seen)];

    if (ino == SEEN) {
        fuse_reply_buf(req, buf, copy_seen(buf, size, at));
        return;
    }
    note("read", fi->flags);
    fuse_reply_buf(req, NULL, 0);
}

static const struct fuse_lowlevel_ops operations = {
    .lookup = flags_lookup,
    .getattr = flags_getattr,
    .setattr = flags_setattr,
    .open = flags_open,
    .opendir = flags_opendir,
    .create = flags_create,
    .read = flags_read,
};

int main(int argc, char *argv[])
{
    struct fuse_args args = FUSE_ARGS_INIT(argc, argv);
    struct fuse_cmdline_opts options;

    if (fuse_parse_cmdline(&args, &options) != 0)
        return 1;
    struct fuse_session *session = fuse_session_new(&args, &operations, sizeof(operations), NULL);
    if (!session || fuse_session_mount(session, options.mountpoint) != 0)
        return 1;
    int status = fuse_session_loop(session);
    fuse_session_unmount(session);
    fuse_session_destroy(session);
    return status != 0;
}

#endif
