/*
 * hello_low.c - a small file system on libfuse's low-level API, for test_plugin.c: /text holds what
 * -o text= said. With -o later it answers reads from another thread. With -o tell=FD it leaves a
 * thread behind, which writes to that descriptor when it has seen the file system end.
 */
#define FUSE_USE_VERSION 312
#include <errno.h>
#include <fuse_lowlevel.h>
#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TEXT_INO = 2 };

static struct {
    char *text;
    int later;
    int own_loop;
    int tell;
} options;

static const struct fuse_opt templates[] = {
    {"text=%s", offsetof(__typeof__(options), text), 0},
    {"later", offsetof(__typeof__(options), later), 1},
    {"own_loop", offsetof(__typeof__(options), own_loop), 1},
    {"tell=%d", offsetof(__typeof__(options), tell), 0},
    FUSE_OPT_END,
};

static int attributes(fuse_ino_t ino, struct stat *st)
{
    *st = (struct stat){.st_ino = ino, .st_nlink = 1};
    if (ino == FUSE_ROOT_ID)
        st->st_mode = S_IFDIR | 0755;
    else
        st->st_mode = S_IFREG | 0444;
    if (ino == TEXT_INO)
        st->st_size = (off_t)strlen(options.text);
    return ino == FUSE_ROOT_ID || ino == TEXT_INO ? 0 : ENOENT;
}

static void hello_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    struct fuse_entry_param entry = {.ino = TEXT_INO, .attr_timeout = 1, .entry_timeout = 1};
    if (parent != FUSE_ROOT_ID || strcmp(name, "text") != 0) {
        fuse_reply_err(req, ENOENT);
        return;
    }
    attributes(TEXT_INO, &entry.attr);
    fuse_reply_entry(req, &entry);
}

static void hello_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    (void)fi;
    struct stat st;
    int error = attributes(ino, &st);
    if (error)
        fuse_reply_err(req, error);
    else
        fuse_reply_attr(req, &st, 1);
}

static void hello_readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset,
                          struct fuse_file_info *fi)
{
    (void)ino;
    (void)fi;
    static const char *const names[] = {".", "..", "text"};
    char buf[512];
    size_t used = 0;
    if (size > sizeof(buf))
        size = sizeof(buf);
    for (off_t i = offset; i < 3; i++) {
        struct stat st = {.st_ino = i < 2 ? FUSE_ROOT_ID : TEXT_INO,
                          .st_mode = i < 2 ? S_IFDIR : S_IFREG};
        size_t need = fuse_add_direntry(req, buf + used, size - used, names[i], &st, i + 1);
        if (need > size - used)
            break;
        used += need;
    }
    fuse_reply_buf(req, buf, used);
}

static void hello_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    (void)ino;
    fuse_reply_open(req, fi);
}

/* What a thread needs to answer. */
struct answer {
    fuse_req_t req;
    size_t size;
    off_t offset;
};

static void reply_text(const struct answer *answer)
{
    size_t length = strlen(options.text);
    size_t offset = (size_t)answer->offset < length ? (size_t)answer->offset : length;
    size_t size = answer->size < length - offset ? answer->size : length - offset;
    fuse_reply_buf(answer->req, options.text + offset, size);
}

static void *reply_later(void *argument)
{
    reply_text(argument);
    free(argument);
    return NULL;
}

static void hello_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset,
                       struct fuse_file_info *fi)
{
    (void)ino;
    (void)fi;
    struct answer now = {req, size, offset};
    if (!options.later) {
        reply_text(&now);
        return;
    }
    struct answer *later = malloc(sizeof(*later));
    pthread_t thread;
    if (!later) {
        fuse_reply_err(req, ENOMEM);
        return;
    }
    *later = now;
    if (pthread_create(&thread, NULL, reply_later, later) != 0) {
        free(later);
        fuse_reply_err(req, EAGAIN);
        return;
    }
    pthread_detach(thread);
}

static const struct fuse_lowlevel_ops operations = {
    .lookup = hello_lookup,
    .getattr = hello_getattr,
    .readdir = hello_readdir,
    .open = hello_open,
    .read = hello_read,
};

/* Goes on after main has returned, as threads may that the end of a process would stop. */
static void *stray(void *argument)
{
    struct fuse_session *se = argument;
    while (fuse_lowlevel_notify_inval_inode(se, FUSE_ROOT_ID, 0, 0) != -ENOENT)
        sched_yield();
    fuse_session_exit(se);
    fuse_log(FUSE_LOG_INFO, "the file system has ended\n");
    if (write(options.tell, "x", 1) != 1)
        abort();
    return NULL;
}

static int start_stray(struct fuse_session *se)
{
    pthread_t thread;
    return pthread_create(&thread, NULL, stray, se) == 0 ? pthread_detach(thread) : -1;
}

/* A program that drives the session itself. */
static int own_loop(struct fuse_session *se)
{
    struct fuse_buf buf = {.mem = NULL};
    int result = 0;
    while (!fuse_session_exited(se)) {
        result = fuse_session_receive_buf(se, &buf);
        if (result == -EINTR)
            continue;
        if (result <= 0)
            break;
        fuse_session_process_buf(se, &buf);
    }
    free(buf.mem);
    fuse_session_reset(se);
    return result < 0 ? -1 : 0;
}

static int serve(struct fuse_session *se, const struct fuse_cmdline_opts *opts)
{
    if (options.tell && start_stray(se) != 0)
        return -1;
    if (options.own_loop)
        return own_loop(se);
    if (opts->singlethread)
        return fuse_session_loop(se);
    struct fuse_loop_config *config = fuse_loop_cfg_create();
    int result = fuse_session_loop_mt(se, config);
    fuse_loop_cfg_destroy(config);
    return result;
}

int main(int argc, char *argv[])
{
    struct fuse_args args = FUSE_ARGS_INIT(argc, argv);
    struct fuse_cmdline_opts opts = {0};
    int status = 1;
    if (fuse_opt_parse(&args, &options, templates, NULL) != 0 ||
        fuse_parse_cmdline(&args, &opts) != 0)
        goto out;
    struct fuse_session *se = fuse_session_new(&args, &operations, sizeof(operations), NULL);
    if (!se)
        goto out;
    if (fuse_set_signal_handlers(se) == 0) {
        if (fuse_session_mount(se, opts.mountpoint) == 0) {
            fuse_daemonize(opts.foreground);
            status = serve(se, &opts) == 0 ? 0 : 1;
            fuse_session_unmount(se);
        }
        fuse_remove_signal_handlers(se);
    }
    fuse_session_destroy(se);
out:
    free(opts.mountpoint);
    free(options.text);
    fuse_opt_free_args(&args);
    return status;
}
