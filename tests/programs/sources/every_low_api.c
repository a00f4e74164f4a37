/*
 * every_low_api.c - one small file system, written against each version of libfuse's low-level API:
 * -DFUSE_USE_VERSION=24, 25, 26 (libfuse 2) and 30 ... 312 (libfuse 3). A directory with one file.
 *
 * With -DOWN_LOOP the program receives and processes requests itself.
 */
#include <errno.h>
#include <fuse_lowlevel.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define V FUSE_USE_VERSION

enum { NODE = 2, ROOM = 8192, HANDLE = 4711 };

static char data[ROOM] = "content\n";
static size_t size = 8;
static mode_t mode = 0644;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* protects those three */
static int userdata, initialised;

static struct stat stat_of(fuse_ino_t ino)
{
    struct stat st = {.st_ino = ino, .st_uid = getuid(), .st_gid = getgid()};
    pthread_mutex_lock(&lock);
    st.st_mode = ino == FUSE_ROOT_ID ? S_IFDIR | 0755 : S_IFREG | mode;
    st.st_nlink = ino == FUSE_ROOT_ID ? 2 : 1;
    st.st_size = ino == FUSE_ROOT_ID ? 0 : (off_t)size;
    pthread_mutex_unlock(&lock);
    return st;
}

#if V < 26
static void do_init(void *given)
#else
static void do_init(void *given, struct fuse_conn_info *conn)
#endif
{
#if V >= 26
    if (conn->proto_major != 7)
        return;
#endif
    initialised = given == &userdata;
}

static void do_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    struct fuse_entry_param entry = {.ino = NODE, .generation = 1, .attr = stat_of(NODE)};
    (void)parent;
    if (strcmp(name, "file") == 0 && initialised && fuse_req_userdata(req) == &userdata)
        fuse_reply_entry(req, &entry);
    else
        fuse_reply_err(req, ENOENT);
}

static void do_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    struct stat st = stat_of(ino);
    (void)fi;
    fuse_reply_attr(req, &st, 0);
}

static void do_setattr(fuse_req_t req, fuse_ino_t ino, struct stat *attr, int to_set,
                       struct fuse_file_info *fi)
{
    (void)fi;
    if (ino != NODE) {
        fuse_reply_err(req, EPERM);
        return;
    }
    pthread_mutex_lock(&lock);
    if (to_set & FUSE_SET_ATTR_MODE)
        mode = attr->st_mode & 07777;
    if (to_set & FUSE_SET_ATTR_SIZE)
        size = (size_t)attr->st_size;
    pthread_mutex_unlock(&lock);
    do_getattr(req, ino, NULL);
}

static void do_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    (void)ino;
    fi->fh = HANDLE;
    fi->direct_io = 1;
    fuse_reply_open(req, fi);
}

static void do_read(fuse_req_t req, fuse_ino_t ino, size_t wanted, off_t off,
                    struct fuse_file_info *fi)
{
    (void)ino;
    if (fi->fh != HANDLE) {
        fuse_reply_err(req, EBADF);
        return;
    }
    pthread_mutex_lock(&lock);
    size_t left = (size_t)off < size ? size - (size_t)off : 0;
    fuse_reply_buf(req, data + off, left < wanted ? left : wanted);
    pthread_mutex_unlock(&lock);
}

static void do_write(fuse_req_t req, fuse_ino_t ino, const char *buf, size_t count, off_t off,
                     struct fuse_file_info *fi)
{
    (void)ino;
    if (fi->fh != HANDLE || count + (size_t)off > ROOM) {
        fuse_reply_err(req, EBADF);
        return;
    }
    pthread_mutex_lock(&lock);
    memcpy(data + off, buf, count);
    if (size < count + (size_t)off)
        size = count + (size_t)off;
    pthread_mutex_unlock(&lock);
    fuse_reply_write(req, count);
}

static void do_readdir(fuse_req_t req, fuse_ino_t ino, size_t wanted, off_t off,
                       struct fuse_file_info *fi)
{
    static const char *const names[] = {".", "..", "file"};
    static const fuse_ino_t nodes[] = {1, 1, NODE};
    char buf[1024];
    size_t used = 0;
    (void)ino;
    (void)fi;
    for (int i = (int)off; i < 3; i++) {
        struct stat st = stat_of(nodes[i]);
#if V < 26
        size_t need = fuse_dirent_size(strlen(names[i]));
        if (used + need <= wanted)
            used = (size_t)(fuse_add_dirent(buf + used, names[i], &st, i + 1) - buf);
#else
        size_t need = fuse_add_direntry(req, NULL, 0, names[i], NULL, 0);
        if (used + need <= wanted)
            used += fuse_add_direntry(req, buf + used, sizeof(buf) - used, names[i], &st, i + 1);
#endif
    }
    fuse_reply_buf(req, buf, used);
}

#if V < 26
static void do_statfs(fuse_req_t req)
#else
static void do_statfs(fuse_req_t req, fuse_ino_t ino)
#endif
{
#if V == 24
    struct statfs st = {.f_bsize = 512, .f_blocks = 4242, .f_namelen = 63};
#else
    struct statvfs st = {.f_bsize = 512, .f_frsize = 512, .f_blocks = 4242, .f_namemax = 63};
#endif
#if V >= 26
    (void)ino;
#endif
    fuse_reply_statfs(req, &st);
}

#if V == 24
static const struct fuse_lowlevel_ops_compat ops = {
#elif V == 25
static const struct fuse_lowlevel_ops_compat25 ops = {
#else
static const struct fuse_lowlevel_ops ops = {
#endif
    .init = do_init,
    .lookup = do_lookup,
    .getattr = do_getattr,
    .setattr = do_setattr,
    .open = do_open,
    .read = do_read,
    .write = do_write,
    .readdir = do_readdir,
    .statfs = do_statfs,
};

#if V < 26

/* The mount is a descriptor, and the channel is made of it. */
int main(int argc, char *argv[])
{
    const char *mountpoint = argv[argc - 1];
#if V == 24
    int fd = fuse_mount(mountpoint, "fsname=low");
    struct fuse_session *se = fuse_lowlevel_new(NULL, &ops, sizeof(ops), &userdata);
#else
    struct fuse_args args = FUSE_ARGS_INIT(1, argv);
    int fd = fuse_mount(mountpoint, &args);
    struct fuse_session *se = fuse_lowlevel_new(&args, &ops, sizeof(ops), &userdata);
#endif
    struct fuse_chan *chan = fd == -1 ? NULL : fuse_kern_chan_new(fd);
    if (!se || !chan)
        return 1;
    fuse_session_add_chan(se, chan);
    int result = 0;
#ifdef OWN_LOOP
    char *buf = malloc(fuse_chan_bufsize(chan));
    while (!fuse_session_exited(se)) {
        result = fuse_chan_receive(chan, buf, fuse_chan_bufsize(chan));
        if (result == -1)
            break;
        if (result > 0)
            fuse_session_process(se, buf, (size_t)result, chan);
    }
    free(buf);
    result = 0;
#else
    result = fuse_session_loop(se);
#endif
    fuse_session_destroy(se);
    fuse_unmount(mountpoint);
#if V != 24
    fuse_opt_free_args(&args);
#endif
    return result != 0;
}

#elif V == 26

#ifdef OWN_LOOP
static int loop(struct fuse_session *se, struct fuse_chan *chan)
{
    size_t room = fuse_chan_bufsize(chan);
    char *buf = malloc(room);
    int count = 0;
    while (!fuse_session_exited(se)) {
        struct fuse_chan *from = chan;
        count = fuse_chan_recv(&from, buf, room);
        if (count == -EINTR)
            continue;
        if (count <= 0)
            break;
        fuse_session_process(se, buf, (size_t)count, from);
    }
    free(buf);
    fuse_session_reset(se);
    return count < 0 ? -1 : 0;
}
#else
static int loop(struct fuse_session *se, struct fuse_chan *chan)
{
    (void)chan;
    return fuse_session_loop_mt(se);
}
#endif

int main(int argc, char *argv[])
{
    struct fuse_args args = FUSE_ARGS_INIT(argc, argv);
    char *mountpoint = NULL;
    int result = -1;
    if (fuse_parse_cmdline(&args, &mountpoint, NULL, NULL) != 0 || !mountpoint)
        return 1;
    struct fuse_chan *chan = fuse_mount(mountpoint, &args);
    if (!chan)
        return 1;
    struct fuse_session *se = fuse_lowlevel_new(&args, &ops, sizeof(ops), &userdata);
    if (se) {
        fuse_session_add_chan(se, chan);
        result = loop(se, chan);
        fuse_session_remove_chan(chan);
        fuse_session_destroy(se);
    }
    fuse_unmount(mountpoint, chan);
    free(mountpoint);
    fuse_opt_free_args(&args);
    return result != 0;
}

#else

#ifdef OWN_LOOP
static int loop(struct fuse_session *se)
{
    struct fuse_buf buf = {.mem = NULL};
    int count = 0;
    while (!fuse_session_exited(se)) {
        count = fuse_session_receive_buf(se, &buf);
        if (count == -EINTR)
            continue;
        if (count <= 0)
            break;
        fuse_session_process_buf(se, &buf);
    }
    free(buf.mem);
    fuse_session_reset(se);
    return count < 0 ? -1 : 0;
}
#elif V < 32
static int loop(struct fuse_session *se)
{
    return fuse_session_loop_mt(se, 0);
}
#elif V < 312
static int loop(struct fuse_session *se)
{
    struct fuse_loop_config config = {.max_idle_threads = 3};
    return fuse_session_loop_mt(se, &config);
}
#else
static int loop(struct fuse_session *se)
{
    return fuse_session_loop_mt(se, NULL);
}
#endif

int main(int argc, char *argv[])
{
    struct fuse_args args = FUSE_ARGS_INIT(argc, argv);
    struct fuse_cmdline_opts opts;
    int result = -1;
    if (fuse_parse_cmdline(&args, &opts) != 0 || !opts.mountpoint)
        return 1;
    struct fuse_session *se = fuse_session_new(&args, &ops, sizeof(ops), &userdata);
    if (se && fuse_session_mount(se, opts.mountpoint) == 0) {
        result = loop(se);
        fuse_session_unmount(se);
    }
    if (se)
        fuse_session_destroy(se);
    free(opts.mountpoint);
    fuse_opt_free_args(&args);
    return result != 0;
}

#endif
